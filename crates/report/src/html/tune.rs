//! The page of an experiment with settings: answers, effects with their intervals, and latency against work.

use super::markup::{Markup, Text};
use super::scale::{LEFT, Log, RIGHT};
use super::{foot, opening, table};
use crate::TuneReport;
use crate::tune::work;
use analysis::tune::{KnobAnswer, TunedKnob};
use analysis::wording::number;

/// Height of a line of the picture of effects, and of its margins, in quarters of a pixel.
const LINE: f64 = 72.0;
const MARGIN: f64 = 90.0;
/// Width of the names left of the plane, and of a picture.
const NAMES: f64 = 680.0;
const WIDTH: f64 = 1760.0;
/// Height of the picture of the trade-off.
const HEIGHT: f64 = 1000.0;
/// Characters of a name in a picture.
const LONGEST: usize = 38;

/// Returns the page.
#[must_use]
pub fn tune_html(report: &TuneReport<'_>) -> String {
    let mut page = Markup::default();
    opening(&mut page, "Tune");
    page.raw("<main id=top>\n<h1>Tune</h1>\n");
    page.add(format_args!("<p>{}</p>\n", Text(report.subject())));
    page.raw("<section id=answers>\n<h2>Answers</h2>\n<ul class=findings>\n");
    for knob in &report.tuned.knobs {
        page.add(format_args!("<li>{}.\n", Text(&knob.sentence)));
    }
    report.remarks().iter().for_each(|remark| page.add(format_args!("<li>{}\n", Text(remark))));
    page.raw("</ul>\n");
    table::numbers(&mut page, "Answers", "", &report.table());
    page.raw("</section>\n");
    effects(&mut page, report);
    trade_off(&mut page, report);
    page.raw("</main>\n");
    foot(&mut page);
    page.into_string()
}

/// Ratio and interval that the answer is about, and whether they are of the confirmation.
fn effect(knob: &TunedKnob) -> (f64, (f64, f64), bool) {
    match knob.confirmed.as_ref().and_then(|confirmed| confirmed.ratio) {
        Some(ratio) => (ratio.value, ratio.interval, true),
        None => (knob.screened.ratio, knob.screened.interval, false),
    }
}

fn color(answer: KnobAnswer) -> &'static str {
    match answer {
        KnobAnswer::Better => "pass",
        KnobAnswer::Worse | KnobAnswer::MoreMisses => "fail",
        KnobAnswer::NoEffect { .. } => "s4",
        KnobAnswer::Undecided { .. } | KnobAnswer::Disturbed => "open",
    }
}

fn name(knob: &TunedKnob) -> String {
    let name = format!("{} = {}", knob.knob.key, knob.knob.changed);
    let cut: String = name.chars().take(LONGEST).collect();
    if cut.len() < name.len() { format!("{cut}...") } else { cut }
}

/// Ratios within which intervals are drawn; wider ones end at the edge.
const FARTHEST: f64 = 50.0;

fn limits(knobs: &[TunedKnob]) -> (f64, f64) {
    let ends = knobs.iter().map(|knob| effect(knob).1).filter(|(low, high)| low.is_finite() && high.is_finite());
    let (low, high) = ends.fold((0.8f64, 1.25f64), |(low, high), (a, b)| (low.min(a), high.max(b)));
    (low.max(1.0 / FARTHEST), high.min(FARTHEST))
}

/// Writes the picture of all effects with their intervals on an axis of ratios.
fn effects(page: &mut Markup, report: &TuneReport<'_>) {
    let knobs = &report.tuned.knobs;
    let (low, high) = limits(knobs);
    let axis = Log { from: low.log10() - 0.03, to: high.log10() + 0.03 };
    let x = |ratio: f64| NAMES + axis.share(ratio) * (RIGHT - NAMES);
    let bottom = MARGIN + LINE * knobs.len() as f64;
    let metric = report.tuned.screening.metric;
    page.add(format_args!(
        "<section id=effects>\n<h2>Effects</h2>\n<figure><figcaption>{metric} with the change, divided by that of the \
         machine as it is; 95 % intervals; hollow: of the screening only</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {:.0}\" role=img aria-label=\"Effects with their intervals\">\n",
        bottom + MARGIN
    ));
    for ratio in [0.02f64, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 1.1, 1.4, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0] {
        let is_near_one = high / low > 5.0 && (ratio == 0.9 || ratio == 1.1);
        if ratio.log10() < axis.from || ratio.log10() > axis.to || is_near_one {
            continue;
        }
        let (color, width) = if ratio == 1.0 { ("axis", 5) } else { ("grid", 2) };
        page.add(format_args!(
            "<path d=\"M{0:.1} {1:.0}V{bottom:.0}\" style=\"stroke:var(--{color});stroke-width:{width}\"/>\
             <text x={0:.1} y={2:.0} text-anchor=middle style=\"font-size:30px;fill:var(--quiet)\">{3}</text>\n",
            x(ratio),
            MARGIN - 30.0,
            bottom + 50.0,
            number(ratio)
        ));
    }
    for (index, knob) in knobs.iter().enumerate() {
        let y = MARGIN + LINE * (index as f64 + 0.5);
        let (value, (low, high), is_confirmed) = effect(knob);
        let color = color(knob.answer);
        let fill = if is_confirmed { color } else { "paper" };
        page.add(format_args!(
            "<g><title>{}</title><text x={:.0} y={:.0} text-anchor=end style=\"font-size:30px;fill:var(--ink)\">{}\
             </text><path d=\"M{:.1} {y:.1}H{:.1}\" style=\"stroke:var(--{color});stroke-width:8\"/>\
             <circle cx={:.1} cy={y:.1} r=14 style=\"fill:var(--{fill});stroke:var(--{color});stroke-width:6\"/></g>\n",
            Text(&knob.sentence),
            NAMES - 30.0,
            y + 10.0,
            Text(name(knob)),
            x(low.max(f64::MIN_POSITIVE)),
            x(high),
            x(value)
        ));
    }
    page.raw("</svg></figure>\n</section>\n");
}

/// Writes the picture of latency against the work of the load, with a point for each confirmed change; nothing without
/// a load.
fn trade_off(page: &mut Markup, report: &TuneReport<'_>) {
    let point = |knob: &TunedKnob| {
        let confirmed = knob.confirmed.as_ref()?;
        let (ratio, work) = (confirmed.ratio?, work(confirmed)?);
        (work > 0.0).then(|| (name(knob), ratio.value, ratio.interval, work, color(knob.answer)))
    };
    let mut points: Vec<_> = report.tuned.knobs.iter().filter_map(point).collect();
    if let Some((ratio, work)) =
        report.tuned.together.as_ref().and_then(|together| together.ratio.zip(work(together))).filter(|(_, w)| *w > 0.0)
    {
        points.push(("all of them together".to_owned(), ratio.value, ratio.interval, work, "s0"));
    }
    if points.is_empty() {
        return;
    }
    points.push(("as it is".to_owned(), 1.0, (1.0, 1.0), 1.0, "s4"));
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let clamped = values.filter(|value| value.is_finite()).map(|value| value.clamp(1.0 / FARTHEST, FARTHEST));
        let (low, high) = clamped.fold((0.9f64, 1.1f64), |(low, high), value| (low.min(value), high.max(value)));
        Log { from: low.log10() - 0.05, to: high.log10() + 0.05 }
    };
    let latency = range(&mut points.iter().flat_map(|point| [point.2.0, point.2.1]));
    let works = range(&mut points.iter().map(|point| point.3));
    let (top, bottom) = (40.0, HEIGHT - 130.0);
    let y = |ratio: f64| bottom - latency.share(ratio) * (bottom - top);
    let right = RIGHT - 300.0;
    let x = |ratio: f64| LEFT + works.share(ratio) * (right - LEFT);
    let metric = report.tuned.screening.metric;
    page.add(format_args!(
        "<section id=price>\n<h2>Latency and throughput</h2>\n<figure><figcaption>{metric} (upwards) against the work of \
         the load (to the right), as ratios to the machine as it is; lower and farther right is better</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"Latency and throughput\">\n\
         <path d=\"M{LEFT} {0:.1}H{right}M{1:.1} {top}V{bottom}\" style=\"stroke:var(--axis);stroke-width:3;fill:none\"/>\n",
        y(1.0),
        x(1.0)
    ));
    for (value, place) in [10f64.powf(latency.from), 1.0, 10f64.powf(latency.to)].map(|value| (value, y(value))) {
        page.add(format_args!(
            "<text x={:.0} y={:.0} text-anchor=end style=\"font-size:30px;fill:var(--quiet)\">{}</text>\n",
            LEFT - 20.0,
            place + 10.0,
            number(value)
        ));
    }
    for (value, place) in [10f64.powf(works.from), 1.0, 10f64.powf(works.to)].map(|value| (value, x(value))) {
        page.add(format_args!(
            "<text x={place:.0} y={:.0} text-anchor=middle style=\"font-size:30px;fill:var(--quiet)\">{}</text>\n",
            bottom + 50.0,
            number(value)
        ));
    }
    for (name, value, (low, high), work, color) in &points {
        page.add(format_args!(
            "<path d=\"M{0:.1} {1:.1}V{2:.1}\" style=\"stroke:var(--{color});stroke-width:5\"/>\
             <circle cx={0:.1} cy={3:.1} r=14 style=\"fill:var(--{color})\"/>\
             <text x={4:.1} y={5:.1} style=\"font-size:28px;fill:var(--ink)\">{6}</text>\n",
            x(*work),
            y(*low),
            y(*high),
            y(*value),
            x(*work) + 24.0,
            y(*value) + 9.0,
            Text(name)
        ));
    }
    page.raw("</svg></figure>\n</section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::word;

    #[test]
    fn every_answer_has_a_word_and_a_color() {
        let none = KnobAnswer::Undecided { blocks_needed: None, seconds_needed: None };
        let all = [KnobAnswer::Better, KnobAnswer::Worse, KnobAnswer::MoreMisses, none, KnobAnswer::Disturbed];
        assert!(all.iter().all(|answer| !word(*answer).is_empty()));
        assert_eq!(all.map(color), ["pass", "fail", "fail", "open", "open"]);
    }
}
