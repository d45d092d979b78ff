//! Cells compared block by block: a dot for the ratio in each block, the interval of all, and the answer.

use super::markup::{Markup, Prose, Text};
use super::scale::Log;
use super::{Ours, Shown, shown};
use analysis::comparison::{Answer, Arm, Comparison, Question, arm, compare, compare_cells, only_pair};
use analysis::wording::number;
use model::{Cell, Header};
use std::collections::HashMap;
use std::fmt::Write;

/// Comparisons on a page; more would be read by nobody.
const MOST: usize = 40;

/// Width and height of the dots of one comparison, in the units of their picture.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 60.0;
/// Left free at both ends, so that the outermost dots are whole.
const EDGE: f64 = 14.0;

/// Writes a row for any two cells that are worth comparing; nothing where no ratio can be told.
pub(super) fn write(page: &mut Markup, runs: &[Shown<'_>]) {
    let comparisons = comparisons(runs);
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
         answered by <code>punctual compare</code>.</p>\n\
         <div class=scroll tabindex=0 role=region aria-label=\"Comparisons\"><table class=compared><thead><tr>\
         <th scope=col>second against first<th scope=col>answer<th scope=col class=dots>",
    );
    labels(page, axis);
    page.raw("</thead><tbody>\n");
    comparisons.iter().for_each(|comparison| row(page, comparison, axis));
    page.raw("</tbody></table></div></section>\n");
}

/// Cells of one run that differ in policy, or in load, only; where nothing does, its only two, or its only one with itself;
/// or the same cells of several runs.
fn comparisons(runs: &[Shown<'_>]) -> Vec<Comparison> {
    let question = Question::default();
    let ours: Vec<_> = shown::ours(runs).collect();
    let [(of_first, first), others @ ..] = &ours[..] else { return Vec::new() };
    if others.is_empty() {
        let mut pairs = pairs_of(first.header);
        if pairs.is_empty() {
            pairs.extend(only_pair(first.header));
        }
        let pairs = pairs.into_iter().take(MOST);
        return pairs.map(|(a, b)| compare_cells(first.header, first.entries, a, b, &question)).collect();
    }
    let found = others.iter().map(|other| (*other, positions(other.1.header))).collect::<Vec<_>>();
    let same = first.header.first_cells().into_iter().flat_map(|a| {
        let cell = first.header.cells.get(a);
        found.iter().filter_map(move |(other, positions)| Some((a, *other, *positions.get(cell?)?)))
    });
    let arm = |run, cell| lettered(runs, run, cell);
    same.take(MOST).map(|(a, other, b)| compare(&arm((*of_first, first), a), &arm(other, b), None, &question)).collect()
}

/// Where each cell of a run is first.
fn positions(header: &Header) -> HashMap<&Cell, usize> {
    header.first_cells().into_iter().filter_map(|index| Some((header.cells.get(index)?, index))).collect()
}

/// A cell of one of several runs, with the letter of its run.
fn lettered<'a>(runs: &[Shown<'_>], (index, run): (usize, &Ours<'a>), cell: usize) -> Arm<'a> {
    let mut arm = arm(run.header, run.entries, cell);
    if let Some(letter) = super::letter(runs, index) {
        arm.name = format!("{letter} {}", arm.name);
    }
    arm
}

/// Each cell against the first that differs from it in the policy only, then in the load only, then in the kernel only.
pub(super) fn pairs_of(header: &Header) -> Vec<(usize, usize)> {
    let cells: Vec<(usize, &Cell)> =
        header.first_cells().into_iter().filter_map(|index| Some((index, header.cells.get(index)?))).collect();
    let cells: Vec<_> = cells.into_iter().filter(|(_, cell)| cell.method.waits()).collect();
    let Some((_, model)) = cells.first() else { return Vec::new() };
    let mut pairs = Vec::new();
    for with in [with_policy, with_load, with_kernel] {
        // Cells that are the same once all have the policy, or the load, of one; the first of each kind. A run may have
        // thousands of cells, too many to compare each with each.
        let mut firsts: HashMap<String, usize> = HashMap::new();
        for (b, cell) in &cells {
            // Kernels whose time is not the same are not compared.
            let key = format!("{:?} {:?}", cell.kernel.clock(), with(cell, model));
            let a = *firsts.entry(key).or_insert(*b);
            if a != *b {
                pairs.push((a, *b));
            }
        }
    }
    pairs
}

fn with_policy(cell: &Cell, of: &Cell) -> Cell {
    Cell { policy: of.policy, ..cell.clone() }
}

fn with_kernel(cell: &Cell, of: &Cell) -> Cell {
    Cell { kernel: of.kernel.clone(), ..cell.clone() }
}

fn with_load(cell: &Cell, of: &Cell) -> Cell {
    Cell {
        load: of.load.clone(),
        load_cpus: of.load_cpus.clone(),
        load_policy: of.load_policy,
        load_must_hold: of.load_must_hold,
        ..cell.clone()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::testing::RunBuilder;

    #[test]
    fn cells_are_compared_with_the_first_that_differs_in_one_thing() {
        let mut run = RunBuilder::new();
        for load in ["none", "messaging", "disk"] {
            run.cell(load, "other").cell(load, "fifo:80");
        }
        let by_policy = [(0, 1), (2, 3), (4, 5)];
        let by_load = [(0, 2), (1, 3), (0, 4), (1, 5)];
        assert_eq!(pairs_of(&run.header), [&by_policy[..], &by_load].concat());
        run.header.cells[5].period = "250us".parse().unwrap();
        assert_eq!(
            pairs_of(&run.header),
            [(0, 1), (2, 3), (0, 2), (1, 3), (0, 4)],
            "of another period nothing is alike"
        );
        assert_eq!(pairs_of(&RunBuilder::new().header), []);
    }
}
