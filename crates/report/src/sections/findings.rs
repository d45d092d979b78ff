//! What stands out: the findings, equal ones together, the most important first.

use analysis::stationarity::MIN_SECONDS;
use analysis::wording::duration;
use analysis::{CellSummary, Finding, RunSummary, Steadiness};
use std::collections::HashMap;
use std::mem::discriminant;

/// Sentences shown; the rest is counted.
pub(crate) const SHOWN: usize = 8;

/// Findings of one kind that differ only in their numbers; more of them come after everything else.
const OF_ONE_KIND: usize = 2;

/// Names of cells that are listed one by one.
const NAMES: usize = 3;

/// A finding and the cells it is about; none for the run as a whole.
struct Remark<'a> {
    finding: &'a Finding,
    cells: Vec<&'a CellSummary>,
}

/// The findings as sentences, the most important only unless `all_findings`; the last says how to see the others.
pub(crate) fn as_text(summary: &RunSummary, all_findings: bool) -> Vec<String> {
    let (sentences, more) = sentences(summary, if all_findings { usize::MAX } else { SHOWN });
    with_rest(sentences, more)
}

/// Sentences, and how to see those that are left out.
pub(crate) fn with_rest(mut sentences: Vec<String>, left_out: usize) -> Vec<String> {
    sentences.extend((left_out > 0).then(|| format!("{left_out} more: punctual show RUN --all")));
    sentences
}

/// The first `most` sentences, and how many more there are.
pub(crate) fn first(mut sentences: Vec<String>, most: usize) -> (Vec<String>, usize) {
    let more = sentences.len().saturating_sub(most);
    sentences.truncate(most);
    (sentences, more)
}

/// What stands out, one sentence each: the `most` important findings and what the run cannot have seen; and how many
/// more findings there are.
pub(crate) fn sentences(summary: &RunSummary, most: usize) -> (Vec<String>, usize) {
    let is_floor = |finding: &Finding| matches!(finding, Finding::VisibilityFloor(_));
    let remarks: Vec<_> = merged(summary).into_iter().filter(|remark| !is_floor(remark.finding)).collect();
    let shown = most_important(&remarks, most);
    let mut sentences: Vec<_> = shown.iter().map(|remark| sentence(remark, summary)).collect();
    // What a run cannot have seen is said in every report.
    let floor = summary.findings.iter().find(|finding| is_floor(finding));
    sentences.extend(floor.map(|floor| format!("{floor}.")));
    sentences.extend(steadiness(&summary.cells));
    (sentences, remarks.len() - shown.len())
}

/// Whether latency was the same from beginning to end, in every report. `None` without cells.
fn steadiness(cells: &[CellSummary]) -> Option<String> {
    let measured: Vec<_> = cells.iter().filter(|cell| cell.samples > 0).collect();
    let count = |is: fn(&Steadiness) -> bool| measured.iter().filter(|cell| is(&cell.steadiness)).count();
    let untested = count(|steadiness| !steadiness.courses.is_tested());
    let steady = count(|steadiness| steadiness.courses.stayed_the_same());
    let (all, changed) = (measured.len(), measured.len() - untested - steady);
    let seconds = |ns: f64| duration(ns * 1e9);
    let least = measured.iter().map(|cell| cell.measured.as_secs_f64()).fold(f64::INFINITY, f64::min);
    match () {
        () if all == 0 => None,
        () if untested == all && least >= MIN_SECONDS as f64 => {
            Some("Whether latency stayed the same was not tested: too few wake-ups in too few seconds.".to_owned())
        }
        () if untested == all => {
            let needed = seconds(MIN_SECONDS as f64);
            Some(format!("Whether latency stayed the same was not tested: it takes {needed} of a cell."))
        }
        () if steady == all => Some(format!("Latency stayed the same, as far as {} of a cell show.", seconds(least))),
        () if changed == all => Some("Latency did not stay the same: see above.".to_owned()),
        () if changed > 0 => Some(format!("Latency did not stay the same in {changed} of {all} cells: see above.")),
        () => Some(format!("Latency stayed the same in {steady} of {all} cells; the others were too short to tell.")),
    }
}

/// Findings of the run, then those of cells; cells with an equal finding share one remark.
fn merged(summary: &RunSummary) -> Vec<Remark<'_>> {
    let mut remarks: Vec<_> = summary.findings.iter().map(|finding| Remark { finding, cells: Vec::new() }).collect();
    // By their sentences, because findings hold floats: to compare each with each would take minutes for 10 000 cells.
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

/// The most important ones, `most` of them: those of the run, then those of cells, each by importance.
fn most_important<'a, 'b>(remarks: &'b [Remark<'a>], most: usize) -> Vec<&'b Remark<'a>> {
    let mut seen = HashMap::new();
    let mut order: Vec<(bool, u8, &Remark<'a>)> = Vec::new();
    for remark in remarks {
        let of_kind = seen.entry(discriminant(remark.finding)).or_insert(0);
        *of_kind += 1;
        order.push((*of_kind > OF_ONE_KIND, remark.finding.importance(), remark));
    }
    // Stable: equally important ones stay in the order of the cells.
    order.sort_by_key(|(is_repeated, importance, _)| (*is_repeated, *importance));
    order.truncate(most);
    order.sort_by_key(|(_, importance, remark)| (!remark.cells.is_empty(), *importance));
    order.into_iter().map(|(_, _, remark)| remark).collect()
}

fn sentence(remark: &Remark<'_>, summary: &RunSummary) -> String {
    match cells(&remark.cells, &summary.cells) {
        Some(cells) => format!("{cells}: {}.", remark.finding),
        None => format!("{}.", remark.finding),
    }
}

/// The shortest words for a set of cells: an axis value that means just them, or their names.
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
    use analysis::findings::{DmaLatencyLeft, Lost};
    use analysis::summarise;
    use analysis::testing::RunBuilder;

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
        let shown: Vec<_> = most_important(&remarks, SHOWN).into_iter().map(|remark| remark.finding).collect();
        assert_eq!(shown.len(), SHOWN);
        assert_eq!((shown[0], shown[1], shown[7]), (&losses[0], &losses[1], &floor));
    }
}
