//! Cells compared block by block: a dot for the ratio in each block, the interval of all, and the answer.

use super::markup::{Markup, Prose, Text};
use super::scale::Log;
use super::table::framed;
use super::{Results, letter, runs};
use crate::sections::comparison::comparisons;
use analysis::comparison::{Answer, Comparison};
use analysis::wording::number;
use std::fmt::Write;

/// Width and height of the dots of one comparison, in the units of their picture.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 60.0;
/// Left free at both ends, so that the outermost dots are whole.
const EDGE: f64 = 14.0;

/// Writes a row for any two cells that are worth comparing; nothing where no ratio can be told.
pub(super) fn write(page: &mut Markup, runs: &[Results<'_>]) {
    let own: Vec<_> = runs::own(runs).map(|(index, run)| (letter(runs, index), run.header, run.entries)).collect();
    let comparisons = comparisons(&own);
    if comparisons.iter().all(|comparison| comparison.primary.ratio.is_none()) {
        return;
    }
    let ratios = comparisons.iter().flat_map(|comparison| comparison.ratios.iter().copied());
    let margins = comparisons.iter().flat_map(|comparison| [1.0 / comparison.margin, comparison.margin]);
    let (low, high) = ratios.chain(margins).fold((1.0_f64, 1.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    let axis = Log::around(low, high);
    page.raw(
        "<section id=compared class=later>\n<h2>Compared, block by block</h2>\n\
         <p>A dot is the ratio of the two in one block, the bar the 95 % interval of all; at its left the second is \
         earlier, at its right later. Within the grey no difference matters. They are to explore: one question is \
         answered by <code>punctual compare</code>.</p>\n",
    );
    framed(page, "scroll", "Comparisons", |page| {
        page.raw("<table class=compared><thead><tr><th scope=col>second against first<th scope=col>answer<th scope=col class=dots>");
        labels(page, axis);
        page.raw("</thead><tbody>\n");
        comparisons.iter().for_each(|comparison| row(page, comparison, axis));
        page.raw("</tbody></table>");
    });
    page.raw("</section>\n");
}

fn row(page: &mut Markup, comparison: &Comparison, axis: Log) {
    let Comparison { a, b, primary, answer, .. } = comparison;
    let (word, class) = match answer {
        Answer::Different => ("DIFFERENT", "differs"),
        Answer::Equivalent => ("EQUIVALENT", "equals"),
        Answer::Undecided { .. } | Answer::Refused { .. } => ("UNDECIDED", "undecided"),
    };
    let sentence = comparison.sentence();
    let reason = sentence.split_once(": ").map_or("", |(_, reason)| reason);
    page.add(format_args!(
        "<tr><th scope=row>{} <small>against</small> {}<td class={class}><b>{word}</b><small>{}</small><td class=dots>",
        Text(b),
        Text(a),
        Prose(reason)
    ));
    page.add(format_args!(
        "<svg class=dots viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"Ratios of {} in {} blocks: {}\">",
        primary.metric,
        comparison.ratios.len(),
        Text(&primary.ratio.map_or_else(|| "refused".to_owned(), |ratio| ratio.to_string()))
    ));
    let (from, to) = (x(axis, 1.0 / comparison.margin), x(axis, comparison.margin));
    page.add(format_args!("<path class=margin d=M{from:.0},0H{to:.0}V{HEIGHT}H{from:.0}z />"));
    page.add(format_args!("<path class=one d=M{:.0},0V{HEIGHT} />", x(axis, 1.0)));
    if let Some(ratio) = primary.ratio {
        let (from, to) = (x(axis, ratio.interval.0), x(axis, ratio.interval.1));
        page.add(format_args!("<path class=interval d=M{from:.0},{0:.0}H{to:.0} />", HEIGHT / 2.0));
    }
    for (block, ratio) in comparison.ratios.iter().enumerate() {
        // Above and below in turn, so that fewer hide each other.
        let y = HEIGHT * [0.32, 0.5, 0.68].get(block % 3).copied().unwrap_or(0.5);
        page.add(format_args!(
            "<circle cx={:.0} cy={y:.0} r=8><title>block {}: {}</title></circle>",
            x(axis, *ratio),
            block + 1,
            number(*ratio)
        ));
    }
    page.raw("</svg>\n");
}

/// Where a ratio is; one outside is at the nearer end.
fn x(axis: Log, ratio: f64) -> f64 {
    EDGE + axis.share(ratio) * (WIDTH - 2.0 * EDGE)
}

/// The numbers of the axis.
fn labels(page: &mut Markup, axis: Log) {
    let mut texts = String::new();
    for ratio in axis.labelled() {
        // Writing to a String never fails.
        let _ = write!(texts, "<text x={:.0} y=44>{}</text>", x(axis, ratio), number(ratio));
    }
    page.add(format_args!(
        "<svg class=dots viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=true><g class=tx>{texts}</g></svg>"
    ));
}
