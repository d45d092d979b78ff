//! Findings, equal ones together, the most important first.

use crate::lines::Lines;
use punctual_analysis::stationarity::MIN_SECONDS;
use punctual_analysis::wording::duration;
use punctual_analysis::{CellSummary, Finding, RunSummary, Steadiness};
use punctual_model::{Order, shell_word};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::mem::discriminant;

/// Largest number of findings in a brief report.
pub(crate) const MOST: usize = 5;

/// Findings that a brief report has even where they do not fit the screen.
const LEAST: usize = 2;

/// Findings of one kind with different numbers; further ones come after all others.
const OF_ONE_KIND: usize = 2;

/// Number of cells listed by name.
const NAMES: usize = 3;

/// A finding and its cells; none for the run as a whole.
struct Remark<'a> {
    finding: &'a Finding,
    cells: Vec<&'a CellSummary>,
}

/// The findings in brief form: the most important sentences, and one line of constant facts.
pub(crate) struct Digest {
    /// One sentence per finding, the most important first.
    pub(crate) sentences: Vec<String>,
    /// Constant facts of the machine and of the measured time; `None` if there are none.
    pub(crate) limits: Option<String>,
    /// Number of findings that are not among `sentences`.
    pub(crate) left_out: usize,
}

impl Digest {
    /// At most `most` findings.
    pub(crate) fn of(summary: &RunSummary, most: usize) -> Digest {
        let (mut constant, remarks): (Vec<_>, Vec<_>) =
            merged(summary).into_iter().partition(|remark| remark.finding.brief().is_some());
        constant.order_by_key(|remark| remark.finding.importance());
        let sentences: Vec<_> =
            most_important(&remarks, most).into_iter().map(|remark| sentence(remark, summary)).collect();
        let mut limits: Vec<String> = Vec::new();
        for brief in constant.iter().filter_map(|remark| remark.finding.brief()).chain(steadiness(&summary.cells)) {
            if !limits.contains(&brief) {
                limits.push(brief);
            }
        }
        let limits = (!limits.is_empty()).then(|| format!("Limits: {}.", limits.join("; ")));
        let left_out = remarks.len() - sentences.len() + constant.len();
        Digest { sentences, limits, left_out }
    }

    /// As many findings as fit in `rows` of the terminal.
    pub(crate) fn fitting(summary: &RunSummary, lines: &Lines, rows: usize) -> Digest {
        let needed = |digest: &Digest| {
            digest.sentences.iter().chain(&digest.limits).map(|text| lines.rows("  ", text)).sum::<usize>()
        };
        let mut digests = (LEAST..=MOST).rev().map(|most| Digest::of(summary, most));
        digests.find(|digest| needed(digest) <= rows).unwrap_or_else(|| Digest::of(summary, LEAST))
    }

    /// The heading: how many findings are shown, and the command that prints the others of the run in `dir`.
    pub(crate) fn heading(&self, dir: &str) -> String {
        match (self.sentences.len(), self.left_out) {
            (_, 0) => "Findings".to_owned(),
            (shown, more) => format!("Findings ({shown} of {}; {})", shown + more, rest(dir)),
        }
    }

    /// Everything as a list of sentences.
    pub(crate) fn into_sentences(self, dir: &str) -> Vec<String> {
        let more = (self.left_out > 0 && !dir.is_empty())
            .then(|| format!("{} more findings: `{}`.", self.left_out, show_all(dir)));
        self.sentences.into_iter().chain(self.limits).chain(more).collect()
    }
}

/// Every finding as a sentence, the most important first.
pub(crate) fn all(summary: &RunSummary) -> Vec<String> {
    let (mut sentences, _) = sentences(summary, usize::MAX);
    sentences.extend(steadiness(&summary.cells).map(|steadiness| format!("{steadiness}.")));
    sentences
}

/// Command that shows all findings of the run in `dir`, which is empty if the run was not kept.
pub(crate) fn rest(dir: &str) -> String {
    if dir.is_empty() { "keep the run to see all".to_owned() } else { format!("all: {}", show_all(dir)) }
}

/// The command that prints everything about the run in `dir`.
pub(crate) fn show_all(dir: &str) -> String {
    format!("punctual show {} --all", shell_word(dir))
}

/// The first `most` sentences, and the number of the others.
pub(crate) fn first(mut sentences: Vec<String>, most: usize) -> (Vec<String>, usize) {
    let more = sentences.len().saturating_sub(most);
    sentences.truncate(most);
    (sentences, more)
}

/// The `most` important findings, one sentence each, and the number of the others.
pub(crate) fn sentences(summary: &RunSummary, most: usize) -> (Vec<String>, usize) {
    let remarks = merged(summary);
    let shown = most_important(&remarks, most);
    (shown.iter().map(|remark| sentence(remark, summary)).collect(), remarks.len() - shown.len())
}

/// Stationarity of the cells, in a few words. `None` without cells.
fn steadiness(cells: &[CellSummary]) -> Option<String> {
    let measured: Vec<_> = cells.iter().filter(|cell| cell.samples > 0).collect();
    let count = |is: fn(&Steadiness) -> bool| measured.iter().filter(|cell| is(&cell.steadiness)).count();
    let untested = count(|steadiness| !steadiness.courses.is_tested());
    let steady = count(|steadiness| steadiness.courses.stayed_the_same());
    let (all, changed) = (measured.len(), measured.len() - untested - steady);
    let seconds = |ns: f64| duration(ns * 1e9);
    let least = measured.iter().map(|cell| cell.measured.as_secs_f64()).fold(f64::INFINITY, f64::min);
    Some(if all == 0 {
        return None;
    } else if untested == all && least >= MIN_SECONDS as f64 {
        "stationarity not tested (too few wake-ups)".to_owned()
    } else if untested == all {
        format!("stationarity not tested (needs {})", seconds(MIN_SECONDS as f64))
    } else if steady == all {
        format!("latency steady over {} per cell", seconds(least))
    } else if changed == all {
        "latency not steady".to_owned()
    } else if changed > 0 {
        format!("latency not steady in {changed} of {all} cells")
    } else {
        format!("latency steady in {steady} of {all} cells, not tested in the others")
    })
}

/// Findings of the run, then those of cells; cells with equal findings share one remark.
fn merged(summary: &RunSummary) -> Vec<Remark<'_>> {
    let mut remarks: Vec<_> = summary.findings.iter().map(|finding| Remark { finding, cells: Vec::new() }).collect();
    // Keyed by sentence because findings contain floats: pairwise comparison would take minutes for 10 000 cells.
    let mut of_cells = HashMap::new();
    for (cell, findings) in summary.cells.iter().zip(&summary.cell_findings) {
        for finding in findings {
            let index = *of_cells.entry(finding.to_string()).or_insert(remarks.len());
            match remarks.get_mut(index) {
                Some(remark) => remark.cells.push(cell),
                None => remarks.push(Remark { finding, cells: vec![cell] }),
            }
        }
    }
    remarks
}

/// The `most` important ones, the most important first; of equally important ones those of the latest cells.
fn most_important<'a, 'b>(remarks: &'b [Remark<'a>], most: usize) -> Vec<&'b Remark<'a>> {
    let worst_ns = |remark: &Remark<'_>| {
        let of_cells = remark.cells.iter().filter_map(|cell| cell.max).map(|max| max.latency_ns).max();
        if remark.cells.is_empty() { i64::MAX } else { of_cells.unwrap_or(0) }
    };
    let mut ranked: Vec<_> = remarks.iter().collect();
    // Stable: the others keep the order of the cells.
    ranked.order_by_key(|remark| (remark.finding.importance(), Reverse(worst_ns(remark))));
    let mut seen = HashMap::new();
    let (mut first, mut repeated) = (Vec::new(), Vec::new());
    for remark in ranked {
        let of_kind = seen.entry(discriminant(remark.finding)).or_insert(0);
        *of_kind += 1;
        if *of_kind > OF_ONE_KIND { repeated.push(remark) } else { first.push(remark) }
    }
    first.into_iter().chain(repeated).take(most).collect()
}

fn sentence(remark: &Remark<'_>, summary: &RunSummary) -> String {
    match cells(&remark.cells, &summary.cells) {
        Some(cells) => format!("{cells}: {}.", remark.finding),
        None => format!("{}.", remark.finding),
    }
}

/// The shortest description of a set of cells: an axis value that selects exactly them, or their names.
fn cells(some: &[&CellSummary], all: &[CellSummary]) -> Option<String> {
    let first = some.first()?;
    if some.len() == all.len() && all.len() > 1 {
        return Some("all cells".to_owned());
    }
    let are = |is: &dyn Fn(&CellSummary) -> bool| {
        all.iter().filter(|cell| is(cell)).count() == some.len() && some.iter().all(|cell| is(cell))
    };
    if some.len() > 1 && are(&|cell| cell.cell.policy == first.cell.policy) {
        return Some(first.cell.policy.to_string());
    }
    if some.len() > 1 && are(&|cell| cell.cell.load == first.cell.load) {
        return Some(first.cell.load.label());
    }
    let names = some.iter().take(NAMES).map(|cell| cell.name.as_str()).collect::<Vec<_>>().join(", ");
    Some(match some.len().saturating_sub(NAMES) {
        0 => names,
        more => format!("{names} and {more} more"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::findings::{DmaLatencyLeft, Lost};
    use punctual_analysis::summarise;
    use punctual_analysis::testing::RunBuilder;

    #[test]
    fn sets_of_cells_have_short_names() {
        let mut run = RunBuilder::new();
        for load in ["none", "messaging", "messaging:groups=1"] {
            run.cell(load, "other").cell(load, "fifo:80");
        }
        let all = summarise(&run.header, &[]).cells;
        let named = |indices: &[usize]| cells(&indices.iter().map(|i| &all[*i]).collect::<Vec<_>>(), &all);
        for (indices, name) in [
            (&[][..], None),
            (&[0], Some("none/other")),
            (&[0, 1, 2, 3, 4, 5], Some("all cells")),
            (&[0, 2, 4], Some("other")),
            (&[2, 3], Some("messaging")),
            (&[0, 3], Some("none/other, messaging/fifo:80")),
            (&[0, 1, 2, 3], Some("none/other, none/fifo:80, messaging/other and 1 more")),
        ] {
            assert_eq!(named(indices).as_deref(), name, "{indices:?}");
        }
    }

    #[test]
    fn many_remarks_of_one_kind_leave_room_for_others() {
        let losses: Vec<_> = (1..20).map(|lost| Finding::from(Lost { lost })).collect();
        let floor = Finding::from(DmaLatencyLeft {});
        let remarks: Vec<_> =
            losses.iter().chain([&floor]).map(|finding| Remark { finding, cells: Vec::new() }).collect();
        let shown: Vec<_> = most_important(&remarks, MOST).into_iter().map(|remark| remark.finding).collect();
        assert_eq!(shown.len(), MOST);
        assert_eq!((shown[0], shown[1], shown[2]), (&losses[0], &losses[1], &floor));
    }
}
