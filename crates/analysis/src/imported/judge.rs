//! Requirements of imported measurements: a file can show that a limit is violated, and seldom that it is kept.

use super::ImportedCell;
use crate::stats::rate::zero_events_upper;
use crate::summary::due_time::View;
use crate::verdict::{Case, Gap, Kept, Limit, Verdict, Violation, limits};
use model::{Level, Requirement, Span};

/// The verdict on all cells, and each limit in each of them.
pub(super) fn judge(cells: &[ImportedCell], require: &Requirement) -> (Verdict, Vec<Case>) {
    if require.is_empty() {
        return (Verdict::NoneAsked, Vec::new());
    }
    let mut cases = Vec::new();
    for cell in cells {
        cases.extend(limits(require).into_iter().map(|(limit, value)| {
            let verdict = match value {
                Limit::Max(limit) => max(cell, limit),
                Limit::Quantile(level, limit) => quantile(cell, level, limit),
                Limit::MissesPerHour(_) => untold(cell, "the file does not tell how misses came in time"),
            };
            Case { cell: Some(cell.name.clone()), limit, verdict }
        }));
    }
    (Verdict::together(cases.iter().map(|case| &case.verdict)), cases)
}

fn untold(cell: &ImportedCell, why: &str) -> Verdict {
    Verdict::NotShown { gaps: vec![Gap::Untold { cell: cell.name.clone(), why: why.to_owned() }] }
}

fn max(cell: &ImportedCell, limit: Span) -> Verdict {
    let Some(value_ns) = cell.max_ns else { return untold(cell, "it holds no sample") };
    let (name, limit_ns) = (cell.name.clone(), limit.ns());
    // What is cut to whole microseconds may be just above its limit.
    let resolution_ns = i64::try_from(cell.imported.resolution.ns()).unwrap_or(i64::MAX);
    let within = |ns: i64| u64::try_from(ns).unwrap_or(0) <= limit_ns;
    if !within(value_ns) {
        return Verdict::Fail { violations: vec![Violation::Max { cell: name, limit_ns, value_ns, at_least: false }] };
    }
    if cell.imported.threads.iter().any(|thread| thread.beyond.is_some_and(|beyond| beyond.samples.is_none())) {
        return untold(cell, "samples beyond the histogram are missing");
    }
    if !within(value_ns.saturating_add(resolution_ns - 1)) {
        return untold(cell, "its values are cut so coarsely that the largest may be above the limit");
    }
    let Some(measured) = cell.imported.measured.filter(|measured| *measured > Span(0)) else {
        return untold(cell, "the file does not say how long was measured, so no rate is excluded");
    };
    let upper_per_hour = zero_events_upper(measured.as_secs_f64() / 3600.0);
    let measured_ns = measured.ns();
    Verdict::Pass { kept: vec![Kept::Max { cell: name, limit_ns, value_ns, measured_ns, upper_per_hour }] }
}

fn quantile(cell: &ImportedCell, level: Level, limit: Span) -> Verdict {
    if !cell.courses.allows_interval(level) {
        return Verdict::NotShown { gaps: vec![Gap::Unsteady { cell: cell.name.clone(), level }] };
    }
    let Some((lower_ns, upper_ns)) = cell.quantiles.at(level).interval_ns() else {
        return untold(cell, "the file does not tell how latency went in time, so quantiles have no intervals");
    };
    let (name, limit_ns, view) = (cell.name.clone(), limit.ns(), View::WakeUps);
    let within = |ns: i64| u64::try_from(ns).unwrap_or(0) <= limit_ns;
    let value_ns = cell.quantiles.at(level).value_ns().unwrap_or(lower_ns);
    if !within(lower_ns) {
        let violation = Violation::Quantile { cell: name, level, view, limit_ns, value_ns, lower_ns };
        return Verdict::Fail { violations: vec![violation] };
    }
    if within(upper_ns) {
        return Verdict::Pass { kept: vec![Kept::Quantile { cell: name, level, view, limit_ns, upper_ns }] };
    }
    let interval_ns = Some((lower_ns, upper_ns));
    Verdict::NotShown { gaps: vec![Gap::Quantile { cell: name, level, view, limit_ns, interval_ns, late: None }] }
}
