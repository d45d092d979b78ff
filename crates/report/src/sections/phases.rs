//! Phases into which marks of the program cut the activations of watched threads.

use super::Section;
use super::latencies::latency_or_dash;
use crate::table::{Column, Field, Table, dash, share};
use punctual_analysis::wording::{count, things};
use punctual_analysis::{PhaseSummary, RunSummary, WatchSpread, WatchedSummary};
use punctual_model::{Order, PhaseKind};
use std::collections::BTreeSet;

/// Shares of the lateness that are named in a sentence.
const NAMED: usize = 3;

/// The name of a cell, that of a thread, and a phase.
type Row<'a> = (&'a str, &'a str, &'a PhaseSummary);

/// The phases of a run: a row for each.
pub(crate) fn of(summary: &RunSummary) -> Option<Section> {
    let cells = summary.cells.iter().filter_map(|cell| Some((&*cell.name, &*cell.watch.as_ref()?.threads)));
    of_cells(cells, summary.cells.len() > 1, crate::unit(summary))
}

/// The same of these cells: their names and threads.
pub(crate) fn of_cells<'a>(
    cells: impl Iterator<Item = (&'a str, &'a [WatchedSummary])>,
    several: bool,
    unit: &str,
) -> Option<Section> {
    let (mut rows, mut sentences) = (Vec::<Row<'_>>::new(), Vec::new());
    let mut has_phases = false;
    for (name, threads) in cells {
        let prefix = if several { format!("{name}: ") } else { String::new() };
        let (mut known, mut passed) = (BTreeSet::new(), BTreeSet::new());
        for (thread, phases) in threads.iter().filter_map(|one| Some((one, one.phases.as_deref()?))) {
            has_phases = true;
            let marks = || phases.iter().filter(|one| one.phase > PhaseKind::Start);
            known.extend(marks().map(PhaseSummary::name));
            passed.extend(marks().filter(|one| one.activations > 0).map(PhaseSummary::name));
            if marks().any(|one| one.activations > 0) {
                rows.extend(phases.iter().map(|one| (name, &*thread.name, one)));
                sentences.extend(sentence(&thread.name, phases).map(|text| format!("{prefix}{text}")));
            }
        }
        let never: Vec<&str> = known.difference(&passed).copied().collect();
        if !never.is_empty() {
            sentences.push(format!("{prefix}Passed in no activation: {}.", never.join(", ")));
        } else if has_phases && known.is_empty() {
            sentences.push(format!("{prefix}No watched thread passed a mark."));
        }
    }
    let fields = fields();
    has_phases.then(|| Section {
        title: "Phases",
        table: (!rows.is_empty()).then(|| Table::of(&fields[usize::from(!several)..], &rows)),
        sentences,
        notes: if rows.is_empty() { Vec::new() } else { vec![note(unit)] },
    })
}

/// Where the lateness of a thread is, and what passes of marks were counted besides.
fn sentence(thread: &str, phases: &[PhaseSummary]) -> Option<String> {
    let mut late: Vec<(f64, &str)> = phases
        .iter()
        .filter_map(|one| Some((one.late_share?, one.name())))
        .filter(|(share, _)| *share >= 0.005)
        .collect();
    late.order_by(|a, b| b.0.total_cmp(&a.0));
    let named: Vec<String> =
        late.iter().take(NAMED).map(|(of_late, name)| format!("{name} {}", share(Some(*of_late)))).collect();
    let again: Vec<String> = phases
        .iter()
        .filter(|one| one.repeated > 0)
        .map(|one| format!("{} ({})", one.name(), things(one.repeated, "time")))
        .collect();
    let mut parts = Vec::new();
    if !named.is_empty() {
        parts.push(format!("late activations lose their time in {}", named.join(", ")));
    }
    if !again.is_empty() {
        parts.push(format!("passed again within an activation: {}", again.join(", ")));
    }
    (!parts.is_empty()).then(|| format!("{thread}: {}.", parts.join("; ")))
}

fn fields<'a>() -> [Field<Row<'a>>; 7] {
    [
        (Column::text("cell"), |(cell, ..)| (*cell).to_owned()),
        (Column::text("thread"), |(_, thread, _)| (*thread).to_owned()),
        (Column::text("phase"), |(_, _, one)| one.name().to_owned()),
        (Column::figure("activations"), |(_, _, one)| count(one.activations)),
        (Column::figure("since release").spare(3), |(_, _, one)| match one.phase {
            PhaseKind::WakeUp => dash(),
            _ => three(&one.since_release),
        }),
        (Column::figure("length"), |(_, _, one)| three(&one.length)),
        (Column::figure("of lateness").spare(2), |(_, _, one)| share(one.late_share)),
    ]
}

/// `5.0 / 12 / 33`; `-` where nothing is known.
fn three(spread: &WatchSpread) -> String {
    if spread.max_ns.is_none() {
        return dash();
    }
    [spread.p50_ns, spread.p99_ns, spread.max_ns].map(latency_or_dash).join(" / ")
}

fn note(unit: &str) -> String {
    format!(
        "p50 / p99 / max in {unit}. A phase lasts from its mark to the next mark of any name, or to the end; several in one \
         activation are added up. Since release: to the first pass. Of lateness: share of the time by which the phases of \
         late activations exceed their medians."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(phase: PhaseKind, mark: &str, activations: u64, late_share: Option<f64>) -> PhaseSummary {
        let spread = WatchSpread { p50_ns: Some(1_000), p99_ns: Some(2_000), max_ns: Some(3_000) };
        let spread = if activations > 0 { spread } else { WatchSpread::default() };
        PhaseSummary {
            phase,
            mark: mark.to_owned(),
            activations,
            without: 10 - activations,
            repeated: 0,
            since_release: spread,
            length: spread,
            share: Some(0.25),
            late_share,
        }
    }

    #[test]
    fn a_mark_that_is_not_passed_is_not_zero() {
        let mut phases = vec![
            phase(PhaseKind::WakeUp, "", 10, Some(0.0)),
            phase(PhaseKind::Start, "", 10, Some(0.07)),
            phase(PhaseKind::Mark, "solve", 9, Some(0.93)),
            phase(PhaseKind::Mark, "never", 0, Some(0.0)),
        ];
        assert_eq!(three(&phases[3].length), "-");
        assert_eq!(
            sentence("control", &phases).unwrap(),
            "control: late activations lose their time in solve 93 %, (start) 7 %."
        );
        phases[2].repeated = 1;
        phases.iter_mut().for_each(|one| one.late_share = None);
        assert_eq!(
            sentence("control", &phases).unwrap(),
            "control: passed again within an activation: solve (1 time)."
        );
        assert_eq!(sentence("control", &phases[..2]), None);
    }
}
