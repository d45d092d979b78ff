//! The page of an experiment with settings: answers, effects with their intervals, and latency against work.

use super::markup::{Markup, Text};
use super::scale::{LEFT, Log, RIGHT};
use super::{foot, opening, table, top};
use crate::TuneReport;
use crate::sections::machine;
use punctual_analysis::tune::{KnobAnswer, TunedKnob};
use punctual_analysis::wording::number;
use punctual_model::Order;

/// Height of a name with its interval in the picture of effects, and of its margins, in quarters of a pixel.
const LINE: f64 = 124.0;
const MARGIN: f64 = 60.0;
/// Left edge of the plane of effects, where names begin, and the width of a picture.
const BEGIN: f64 = 60.0;
const WIDTH: f64 = 1760.0;
/// Height of the picture of the trade-off.
const HEIGHT: f64 = 1000.0;
/// Characters of a name in a picture, in the larger letters of a narrow page, too.
const LONGEST: usize = 50;
const LONGEST_IN_PLANE: usize = 24;
/// Distance of two names in the plane of the trade-off, and of two labels of an axis.
const NAME_HEIGHT: f64 = 54.0;
const LABEL_WIDTH: f64 = 150.0;

/// Returns the page: the answer, the effects, the table and the answers of all knobs, and the price.
pub fn tune_html(report: &TuneReport<'_>) -> String {
    let mut page = Markup::default();
    let title = format!("Which settings change {}?", report.tuned.screening.metric);
    opening(&mut page, &title);
    page.raw("<main id=top>\n<header>\n");
    top::answer(&mut page, None, &report.tuned.answer());
    page.add(format_args!("<h1>{}</h1>\n", Text(title)));
    let header = report.header;
    let mut facts = machine::measured_on(header);
    facts.extend([format!("load: {}", report.cell.load), header.tool.clone()]);
    top::facts(&mut page, &facts, ("", header.started_unix_ms), header.host.command_line.as_deref());
    page.add(format_args!("<p class=quiet>{}</p>\n</header>\n", Text(report.subject())));
    effects(&mut page, report);
    page.raw("<section id=answers>\n<h2>Answers</h2>\n");
    table::numbers(&mut page, "Answers", "", &report.table());
    page.raw("<ul class=findings>\n");
    for knob in &report.tuned.knobs {
        page.add(format_args!("<li>{}.\n", Text(&knob.sentence)));
    }
    report.remarks().iter().for_each(|remark| page.add(format_args!("<li>{}\n", Text(remark))));
    page.raw("</ul>\n</section>\n");
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

fn name(knob: &TunedKnob, longest: usize) -> String {
    let name = format!("{} = {}", knob.knob.key, knob.knob.changed);
    let n = name.chars().count();
    // The end of a path tells more than its beginning.
    let end: String = name.chars().skip(n.saturating_sub(longest)).collect();
    if n > longest { format!("...{end}") } else { name }
}

/// How far from the values an interval is drawn; one that goes on ends in an arrow.
const FARTHEST_INTERVAL: f64 = 10.0;

/// Axis of ratios around 1 that holds these values, and their intervals unless they are very wide.
fn axis(effects: impl Iterator<Item = (f64, (f64, f64))>, least: f64) -> Log {
    let is_drawn = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
    let ends = effects.filter(|(value, _)| is_drawn(value)).flat_map(|(value, (low, high))| {
        let (least, most) = (value / FARTHEST_INTERVAL, value * FARTHEST_INTERVAL);
        [
            value,
            if is_drawn(&low) { low.max(least) } else { least },
            if is_drawn(&high) { high.min(most) } else { most },
        ]
    });
    let (low, high) = ends.fold((1.0 / least, least), |(low, high), end| (low.min(end), high.max(end)));
    Log { from: low.log10() - 0.03, to: high.log10() + 0.03 }
}

/// Ratios for the labels of an axis of this length, 1 among them, as far apart as labels need.
fn ticks(axis: Log, length: f64) -> Vec<f64> {
    let place = |ratio: f64| axis.share(ratio) * length;
    let mut ticks = vec![1.0f64];
    // First what is most legible.
    for steps in [&[1.0][..], &[2.0, 5.0], &[1.5, 3.0, 7.0], &[1.1, 1.2, 8.0, 9.0]] {
        for ratio in axis.decades().flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade))) {
            let is_within = ratio.log10() >= axis.from && ratio.log10() <= axis.to;
            if is_within && ticks.iter().all(|other| (place(*other) - place(ratio)).abs() >= LABEL_WIDTH) {
                ticks.push(ratio);
            }
        }
    }
    ticks
}

/// Color and width of the line of a tick.
fn line_of(ratio: f64) -> (&'static str, u8) {
    if (ratio - 1.0).abs() < 1e-9 { ("axis", 5) } else { ("grid", 2) }
}

/// Writes the picture of all effects with their intervals on an axis of ratios.
fn effects(page: &mut Markup, report: &TuneReport<'_>) {
    let knobs = &report.tuned.knobs;
    let axis = axis(knobs.iter().map(|knob| (effect(knob).0, effect(knob).1)), 1.25);
    let x = |ratio: f64| BEGIN + axis.share(ratio) * (RIGHT - BEGIN);
    let bottom = MARGIN + LINE * knobs.len() as f64;
    let metric = report.tuned.screening.metric;
    page.add(format_args!(
        "<section id=effects>\n<h2>Effects</h2>\n<figure><figcaption>{metric} with the change, as ratio to the machine as it is\
         </figcaption><svg class=ratios viewBox=\"0 0 {WIDTH} {:.0}\" role=img aria-label=\"Effects with their intervals\">\n",
        bottom + 80.0
    ));
    for ratio in ticks(axis, RIGHT - BEGIN) {
        let (color, width) = line_of(ratio);
        page.add(format_args!(
            "<path d=\"M{0:.1} {1:.0}V{bottom:.0}\" style=\"stroke:var(--{color});stroke-width:{width}\"/>\
             <text class=tick x={0:.1} y={2:.0} text-anchor=middle>{3}</text>\n",
            x(ratio),
            MARGIN - 30.0,
            bottom + 56.0,
            number(ratio)
        ));
    }
    for (index, knob) in knobs.iter().enumerate() {
        let y = MARGIN + LINE * (index as f64 + 0.75);
        let (value, (low, high), is_confirmed) = effect(knob);
        let color = color(knob.answer);
        let fill = if is_confirmed { color } else { "paper" };
        let path = axis.interval((BEGIN, RIGHT), (low, high), |along, across| (along, y + across));
        page.add(format_args!(
            "<g><title>{}</title><text x={:.0} y={:.0}>{}</text>\
             <path d=\"{path}\" style=\"stroke:var(--{color});stroke-width:8;fill:none\"/>",
            Text(&knob.sentence),
            BEGIN,
            y - 36.0,
            Text(name(knob, LONGEST)),
        ));
        if axis.holds(value) {
            page.add(format_args!(
                "<circle cx={:.1} cy={y:.1} r=14 style=\"fill:var(--{fill});stroke:var(--{color});stroke-width:6\"/>",
                x(value)
            ));
        }
        page.raw("</g>\n");
    }
    page.raw(
        "</svg><p class=note>Bars: 95 % intervals, with an arrow where they go on beyond the axis. Hollow: of the screening \
         only.</p></figure>\n</section>\n",
    );
}

/// Writes the picture of latency against the work of the load, with a point for each confirmed change; nothing without
/// a load.
fn trade_off(page: &mut Markup, report: &TuneReport<'_>) {
    let point = |knob: &TunedKnob| {
        let confirmed = knob.confirmed.as_ref()?;
        let (ratio, work) = (confirmed.ratio?, confirmed.work()?);
        (work > 0.0).then(|| (name(knob, LONGEST_IN_PLANE), ratio.value, ratio.interval, work, color(knob.answer)))
    };
    let mut points: Vec<_> = report.tuned.knobs.iter().filter_map(point).collect();
    if let Some((ratio, work)) = report
        .tuned
        .together
        .as_ref()
        .and_then(|together| together.ratio.zip(together.work()))
        .filter(|(_, w)| *w > 0.0)
    {
        points.push(("all of them together".to_owned(), ratio.value, ratio.interval, work, "s0"));
    }
    if points.is_empty() {
        return;
    }
    points.push(("as it is".to_owned(), 1.0, (1.0, 1.0), 1.0, "s4"));
    let latency = axis(points.iter().map(|point| (point.1, point.2)), 1.1);
    let works = axis(points.iter().map(|point| (point.3, (point.3, point.3))), 1.1);
    let (top, bottom) = (40.0, HEIGHT - 130.0);
    let y = |ratio: f64| bottom - latency.share(ratio) * (bottom - top);
    let right = RIGHT - 300.0;
    let x = |ratio: f64| LEFT + works.share(ratio) * (right - LEFT);
    let metric = report.tuned.screening.metric;
    page.add(format_args!(
        "<section id=price>\n<h2>Latency and throughput</h2>\n<figure><figcaption>{metric} against the work of the load</figcaption>\
         <svg class=\"ratios plane\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"Latency and throughput\">\n"
    ));
    for ratio in ticks(latency, bottom - top) {
        let (color, width) = line_of(ratio);
        page.add(format_args!(
            "<path d=\"M{LEFT} {0:.1}H{right}\" style=\"stroke:var(--{color});stroke-width:{width}\"/>\
             <text class=tick x={1:.0} y={2:.0} text-anchor=end>{3}</text>\n",
            y(ratio),
            LEFT - 20.0,
            y(ratio) + 10.0,
            number(ratio)
        ));
    }
    for ratio in ticks(works, right - LEFT) {
        let (color, width) = line_of(ratio);
        page.add(format_args!(
            "<path d=\"M{0:.1} {top}V{bottom}\" style=\"stroke:var(--{color});stroke-width:{width}\"/>\
             <text class=tick x={0:.1} y={1:.0} text-anchor=middle>{2}</text>\n",
            x(ratio),
            bottom + 56.0,
            number(ratio)
        ));
    }
    // Names of points at the same height are moved apart.
    points.order_by(|a, b| b.1.total_cmp(&a.1));
    let mut at = f64::NEG_INFINITY;
    for (name, value, interval, work, color) in points.iter().filter(|point| latency.holds(point.1)) {
        at = (y(*value) - 16.0).max(at + NAME_HEIGHT);
        let path = latency.interval((bottom, top), *interval, |along, across| (x(*work) + across, along));
        page.add(format_args!(
            "<path d=\"{path}\" style=\"stroke:var(--{color});stroke-width:5;fill:none\"/>\
             <circle cx={0:.1} cy={1:.1} r=14 style=\"fill:var(--{color})\"/>\
             <text x={2:.1} y={at:.1}>{3}</text>\n",
            x(*work),
            y(*value),
            x(*work) + 24.0,
            Text(name)
        ));
    }
    page.add(format_args!(
        "</svg><p class=note>Upwards {metric}, to the right work, as ratios to the machine as it is: lower and farther right \
         is better.</p></figure>\n</section>\n"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::word;

    #[test]
    fn an_axis_holds_every_value_and_cuts_wide_intervals() {
        let holds = |effects: &[(f64, (f64, f64))], all: &[f64], none: &[f64]| {
            let axis = axis(effects.iter().copied(), 1.25);
            assert!(all.iter().all(|ratio| axis.holds(*ratio)), "{axis:?}");
            assert!(none.iter().all(|ratio| !axis.holds(*ratio)), "{axis:?}");
            assert!(ticks(axis, 1_500.0).len() <= 11);
        };
        holds(&[], &[0.8, 1.0, 1.25], &[0.5, 2.0]);
        holds(&[(4e-4, (3e-5, 6e-3))], &[4e-4, 4e-5, 4e-3, 1.0], &[3e-5]);
        holds(&[(2.0, (0.0, f64::INFINITY))], &[0.2, 20.0], &[0.0, 25.0, f64::INFINITY]);
        holds(&[(f64::NAN, (f64::NAN, f64::NAN)), (f64::INFINITY, (1.0, 2.0))], &[1.0], &[3.0]);
    }

    #[test]
    fn every_answer_has_a_word_and_a_color() {
        let none = KnobAnswer::Undecided { blocks_needed: None, seconds_needed: None };
        let all = [KnobAnswer::Better, KnobAnswer::Worse, KnobAnswer::MoreMisses, none, KnobAnswer::Disturbed];
        assert!(all.iter().all(|answer| !word(*answer).is_empty()));
        assert_eq!(all.map(color), ["pass", "fail", "fail", "open", "open"]);
    }
}
