//! Comparisons block by block as a forest plot: the ratio in each block, the interval of all, and the answer.

use super::markup::{Markup, Prose, Text};
use super::scale::Log;
use super::table::framed;
use super::{Results, letter, runs};
use crate::sections::comparison::comparisons;
use crate::sections::intensity;
use punctual_analysis::Answer;
use punctual_analysis::comparison::{Comparison, Decision, Ratio};
use punctual_analysis::wording::number;
use std::fmt::Write;

/// Size of the plot of one comparison, in the units of its picture.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 60.0;
/// Room at both ends for the outermost dots.
const EDGE: f64 = 14.0;

/// Returns the comparisons of the cells of a run, or of several.
pub(super) fn of(runs: &[Results<'_>]) -> Vec<Comparison> {
    let own: Vec<_> = runs::own(runs).map(|(index, run)| (letter(runs, index), run.header, run.entries)).collect();
    comparisons(&own)
}

/// The answer of several runs: how many of their cells differ, and the clearest of them.
pub(super) fn answer(comparisons: &[Comparison]) -> Answer {
    let far = |one: &&Comparison| one.primary.ratio.map_or(0.0, |ratio| ratio.value.ln().abs());
    let different = || comparisons.iter().filter(|one| one.decision == Decision::Different);
    let clearest = different().max_by(|a, b| far(a).total_cmp(&far(b))).or(comparisons.first());
    let Some(sentence) = clearest.map(Comparison::sentence) else {
        return Answer::cannot_tell("which is later", "the runs have no cell in common", 0);
    };
    match comparisons.len() {
        1 => Answer::new(sentence),
        all => Answer::new(format!("{} of {all} cells are shown to differ. {sentence}", different().count())),
    }
}

/// Writes a row for each comparison; nothing where none has a ratio.
pub(super) fn write(page: &mut Markup, comparisons: &[Comparison]) {
    if comparisons.iter().all(|comparison| comparison.primary.ratio.is_none()) {
        return;
    }
    let ratios = comparisons.iter().flat_map(|comparison| comparison.ratios.iter().copied());
    let margins = comparisons.iter().flat_map(|comparison| [1.0 / comparison.margin, comparison.margin]);
    let held = ratios.chain(margins).filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    let (low, high) = held.fold((1.0_f64, 1.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    let axis = Log::around(low, high);
    page.section("compared", "later", "Comparisons, block by block", None);
    page.raw(
        "<p>Ratio of the second cell to the first. A dot is one block, the bar the 95 % interval of all blocks; in the gray band \
         a difference does not matter; an arrow goes on beyond the axis. Quantiles are by due time here: a missed period counts with its delay. These \
         comparisons are exploratory; <code>punctual compare</code> answers a single question.</p>\n",
    );
    framed(page, "scroll", "Comparisons", |page| {
        page.raw(
            "<table class=compared><thead><tr><th scope=col>second against first<th scope=col>answer\
             <th scope=col class=n>ratio<th scope=col class=dots><div><span>\u{2190} second is lower</span>\
             <span>second is higher \u{2192}</span></div>",
        );
        labels(page, axis);
        page.raw("</thead><tbody>\n");
        comparisons.iter().for_each(|comparison| row(page, comparison, axis));
        page.raw("</tbody></table>");
    });
    page.raw("</section>\n");
}

fn row(page: &mut Markup, comparison: &Comparison, axis: Log) {
    let Comparison { a, b, primary, decision, .. } = comparison;
    let (word, class) = match decision {
        Decision::Different => ("DIFFERENT", "differs"),
        Decision::Equivalent => ("EQUIVALENT", "equals"),
        Decision::Undecided { .. } | Decision::Refused { .. } => ("UNDECIDED", "undecided"),
    };
    let sentence = comparison.sentence();
    let reason = sentence.split_once(": ").map_or("", |(_, reason)| reason);
    page.add(format_args!("<tr><th scope=row>{} <small>against</small> {}", Text(b), Text(a)));
    let [of_a, of_b] = intensity::of_both(&comparison.loads);
    if !of_a.is_empty() && !of_b.is_empty() {
        page.add(format_args!(" <small>load: {} against {}</small>", Text(of_b), Text(of_a)));
    }
    page.add(format_args!(
        "<td class={class}><details><summary><b>{word}</b></summary>{}</details><td class=n>",
        Prose(reason)
    ));
    match primary.ratio {
        Some(ratio) => {
            let (value, range) = in_words(ratio);
            page.add(format_args!("{} {value}<small>{range}</small>", primary.metric));
        }
        None => page.raw("-"),
    }
    page.raw("<td class=dots>");
    forest(page, comparison, axis);
    page.raw("\n");
}

/// Returns a ratio as a factor and its direction, `4.7 times lower`, and its interval.
fn in_words(ratio: Ratio) -> (String, String) {
    let factor = |ratio: f64| number(ratio.max(1.0 / ratio));
    let word = |ratio: f64| if ratio < 1.0 { "lower" } else { "higher" };
    let one = |ratio: f64| format!("{} times {}", factor(ratio), word(ratio));
    let (low, high) = ratio.interval;
    let range = match (word(low), word(high)) {
        ("lower", "lower") => format!("{} to {} times", factor(high), factor(low)),
        ("higher", "higher") => format!("{} to {} times", factor(low), factor(high)),
        _ => format!("{} to {}", one(low), one(high)),
    };
    (one(ratio.value), range)
}

/// Draws the interval and the ratio of each block.
fn forest(page: &mut Markup, comparison: &Comparison, axis: Log) {
    let Comparison { primary, ratios, margin, .. } = comparison;
    page.add(format_args!(
        "<svg class=dots viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"Ratios of {} in {} blocks: {}\">",
        primary.metric,
        ratios.len(),
        Text(&primary.ratio.map_or_else(|| "refused".to_owned(), |ratio| ratio.to_string()))
    ));
    let (from, to) = (x(axis, 1.0 / margin), x(axis, *margin));
    page.add(format_args!("<path class=margin d=M{from:.0},0H{to:.0}V{HEIGHT}H{from:.0}z />"));
    page.add(format_args!("<path class=one d=M{:.0},0V{HEIGHT} />", x(axis, 1.0)));
    if let Some(ratio) = primary.ratio {
        let path = axis.interval((EDGE, WIDTH - EDGE), ratio.interval, |x, y| (x, HEIGHT / 2.0 + y));
        page.add(format_args!("<path class=interval d={path} />"));
    }
    for (block, ratio) in ratios.iter().enumerate() {
        if !axis.holds(*ratio) {
            let (end, side) = if *ratio > 1.0 { (WIDTH, -1.0) } else { (0.0, 1.0) };
            page.add(format_args!(
                "<path class=beyond d=\"M{end:.0},{0:.0}l{1:.0},-14v28z\"><title>block {2}: {3}</title></path>",
                HEIGHT / 2.0,
                side * EDGE,
                block + 1,
                number(*ratio)
            ));
            continue;
        }
        // Three heights in turn, so that fewer dots hide each other.
        let y = HEIGHT * [0.32, 0.5, 0.68].get(block % 3).copied().unwrap_or(0.5);
        page.add(format_args!(
            "<circle cx={:.0} cy={y:.0} r=8><title>block {}: {}</title></circle>",
            x(axis, *ratio),
            block + 1,
            number(*ratio)
        ));
    }
    page.raw("</svg>");
}

/// Returns the place of a ratio on the axis.
fn x(axis: Log, ratio: f64) -> f64 {
    EDGE + axis.share(ratio) * (WIDTH - 2.0 * EDGE)
}

/// Writes the numbers of the axis: factors in both directions.
fn labels(page: &mut Markup, axis: Log) {
    let mut texts = String::new();
    for ratio in axis.labelled() {
        let factor = number(ratio.max(1.0 / ratio));
        let times = if factor == "1" { "" } else { "x" };
        // Writing to a String never fails.
        let _ = write!(texts, "<text x={:.0} y=44>{factor}{times}</text>", x(axis, ratio));
    }
    page.add(format_args!(
        "<svg class=dots viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=true><g class=tx>{texts}</g></svg>"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_factors_with_a_direction() {
        for (value, interval, words) in [
            (0.2, (0.1, 0.25), ("5 times lower", "4 to 10 times")),
            (2.0, (0.5, 8.0), ("2 times higher", "2 times lower to 8 times higher")),
            (1.5, (1.25, 2.0), ("1.5 times higher", "1.25 to 2 times")),
        ] {
            let (found, range) = in_words(Ratio { value, interval, p: 0.01 });
            assert_eq!((found.as_str(), range.as_str()), words);
        }
    }
}
