//! All cells against all limits.

use super::{Count, Gap, Judged, Kept, Limit, Verdict, Violation};
use crate::findings::{AnswersLeftOut, Finding, LoadDidNothing, LoadFailed, NotSent, run_progress};
use crate::stats::rate::{Rate, zero_events_upper};
use crate::stats::woodruff::Quantile;
use crate::summary::cell::CellSummary;
use crate::summary::due_time::View;
use crate::summary::late::Late;
use crate::summary::responses::Response;
use model::{Entry, Header, Level, Span};

/// What is known of all limits while cells are looked at.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    kept: Vec<Kept>,
    violations: Vec<Violation>,
    gaps: Vec<Gap>,
}

impl Judgement {
    /// A violation stays one however much is missing; a gap outweighs what was kept.
    pub(super) fn verdict(mut self) -> Verdict {
        if !self.violations.is_empty() {
            // Stable: of equal ones the first limit and cell of the plan.
            self.violations.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
            return Verdict::Fail { violations: self.violations };
        }
        if self.gaps.is_empty() { Verdict::Pass { kept: self.kept } } else { Verdict::NotShown { gaps: self.gaps } }
    }

    pub(super) fn gaps_of_run(&mut self, header: &Header, entries: &[Entry]) {
        let (done, planned) = run_progress(header, entries);
        if done < planned || planned == 0 {
            self.gaps.push(Gap::Incomplete { done, planned });
        }
        if let Some(first) = header.skipped.first() {
            let cells = u64::try_from(header.skipped.len()).unwrap_or(u64::MAX);
            self.gaps.push(Gap::Skipped { cells, why: first.reason.clone() });
        }
    }

    pub(super) fn gaps_of_cell(&mut self, Judged { summary, findings }: Judged<'_>) {
        let cell = || summary.name.clone();
        // Cells without any record are missing measurements of the run already.
        if summary.samples == 0 && summary.blocks > 0 {
            self.gaps.push(Gap::NoSamples { cell: cell() });
        }
        if summary.lost > 0 {
            self.gaps.push(Gap::Lost { cell: cell(), lost: summary.lost });
        }
        let failed = findings.iter().find_map(|finding| match finding {
            Finding::LoadFailed(LoadFailed { load, reason, .. }) => Some((load.clone(), reason.clone())),
            Finding::LoadDidNothing(LoadDidNothing { load, .. }) => Some((load.clone(), "it did nothing".to_owned())),
            _ => None,
        });
        if let Some((load, what)) = failed {
            self.gaps.push(Gap::Load { cell: cell(), load, what });
        }
        if let Some(open) = summary.censored {
            self.gaps.push(Gap::Open { cell: cell(), at_least_ns: open.at_least_ns });
        }
        match &summary.response {
            Some(Response { left_out: left_out @ 1.., .. }) => {
                let why = AnswersLeftOut { left_out: *left_out }.to_string();
                self.gaps.push(Gap::Untold { cell: cell(), why });
            }
            Some(Response { lost: never @ 1.., .. }) => {
                self.gaps.push(Gap::NeverAnswered { cell: cell(), never: *never });
            }
            _ => {}
        }
    }

    /// All cells against one limit.
    pub(super) fn judge(&mut self, cells: &[&CellSummary], limit: Limit) {
        match limit {
            Limit::Max(limit) => self.max(cells, limit),
            Limit::Quantile(level, limit) => self.quantile(cells, level, limit),
            Limit::MissesPerHour(limit) => self.misses(cells, limit),
        }
    }

    fn max(&mut self, cells: &[&CellSummary], limit: Span) {
        let limit_ns = limit.ns();
        let maxima: Vec<_> = cells.iter().filter_map(|cell| Some((&cell.name, cell.max?))).collect();
        let beyond = |ns: i64| u64::try_from(ns).is_ok_and(|ns| ns > limit_ns);
        self.violations.extend(maxima.iter().filter(|(_, max)| beyond(max.latency_ns)).map(|(name, max)| {
            let (value_ns, at_least) = (max.latency_ns, max.at_least);
            Violation::Max { cell: (*name).clone(), limit_ns, value_ns, at_least }
        }));
        let measured = cells.iter().map(|cell| cell.measured).min().unwrap_or_default();
        let largest = maxima.iter().max_by_key(|(_, max)| max.latency_ns);
        self.kept.extend(largest.map(|(name, max)| Kept::Max {
            cell: (*name).clone(),
            limit_ns,
            value_ns: max.latency_ns,
            measured_ns: measured.ns(),
            upper_per_hour: zero_events_upper(measured.as_secs_f64() / 3600.0),
        }));
    }

    /// Both views have to keep the limit: wake-ups alone leave out the due times that were missed, and due times can have the
    /// smaller quantile when many late ones fill in. Where a quantile has no interval, what counts is how many are later.
    fn quantile(&mut self, cells: &[&CellSummary], level: Level, limit: Span) {
        let limit_ns = limit.ns();
        let within = |ns: i64| u64::try_from(ns).unwrap_or(0) <= limit_ns;
        let mut largest: Option<(i64, View, &str)> = None;
        let mut latest: Option<(&Late, &str)> = None;
        for summary in cells.iter().filter(|cell| cell.samples > 0) {
            let cell = || summary.name.clone();
            // The delay of answers to triggers that were not sent is unknown: half of what may exceed the limit is tolerated.
            let due = summary.samples + summary.missed;
            let unsent = summary.response.as_ref().map_or(0, |response| response.unsent);
            if unsent as f64 > due as f64 * (1.0 - level.p()) / 2.0 && !summary.cell.task.misses_when_late() {
                let why = format!("{level} is not known: {}", NotSent { unsent, due });
                self.gaps.push(Gap::Untold { cell: cell(), why });
                continue;
            }
            let is_steady = summary.steadiness.courses.allows_interval(level);
            let counted = |view: View| summary.late.iter().find(|late| late.level == level && late.view == view);
            let is_violated = |late: &Late| late.is_violated() && is_steady;
            let mut open = None;
            let mut ends: Vec<(View, &Quantile, (i64, i64))> = Vec::new();
            let mut counts: Vec<&Late> = Vec::new();
            let mut violated = None;
            let views = views(summary, level);
            for (view, quantile) in &views {
                match (quantile.interval_ns(), counted(*view)) {
                    (Some(interval), _) => ends.push((*view, quantile, interval)),
                    (None, Some(late)) if late.is_kept() => counts.push(late),
                    (None, Some(late)) if is_violated(late) => violated = Some(late),
                    (None, _) => open = Some(*view),
                }
            }
            open = ends
                .iter()
                .filter(|(.., (_, upper_ns))| !within(*upper_ns))
                .map(|(view, ..)| *view)
                .next_back()
                .or(open);
            let beyond = ends.iter().filter(|(.., (lower_ns, _))| !within(*lower_ns)).max_by_key(|(.., ends)| ends.0);
            if let Some((view, quantile, (lower_ns, _))) = beyond {
                let (view, lower_ns, value_ns) = (*view, *lower_ns, quantile.value_ns().unwrap_or(*lower_ns));
                self.violations.push(Violation::Quantile { cell: cell(), level, view, limit_ns, value_ns, lower_ns });
            } else if let Some(Late { view, late, of, share, .. }) = violated {
                let (view, late, of, at_least) = (*view, *late, *of, share.0);
                self.violations.push(Violation::Late { cell: cell(), level, view, limit_ns, late, of, at_least });
            } else if open.is_some() && !is_steady {
                self.gaps.push(Gap::Unsteady { cell: cell(), level });
            } else if let Some(view) = open {
                let interval_ns = ends.iter().find(|(other, ..)| *other == view).map(|(.., interval)| *interval);
                let late = counted(view).map(|late| Count {
                    late: late.late,
                    of: late.of,
                    n_eff: crate::stats::special::whole(late.n_eff),
                    more_ns: late
                        .times_as_long
                        .map(|times| crate::stats::special::whole(summary.measured.ns() as f64 * (times - 1.0))),
                });
                self.gaps.push(Gap::Quantile { cell: cell(), level, view, limit_ns, interval_ns, late });
            } else {
                let name = summary.name.as_str();
                let of_cell = ends.iter().map(|(view, _, (_, upper_ns))| (*upper_ns, *view, name));
                largest = largest.into_iter().chain(of_cell).max_by_key(|(upper_ns, ..)| *upper_ns);
                let of_cell = counts.into_iter().map(|late| (late, name));
                latest = latest.into_iter().chain(of_cell).max_by(|(a, _), (b, _)| a.share.1.total_cmp(&b.share.1));
            }
        }
        self.kept.extend(largest.map(|(upper_ns, view, cell)| {
            let cell = cell.to_owned();
            Kept::Quantile { cell, level, view, limit_ns, upper_ns }
        }));
        self.kept.extend(latest.map(|(Late { view, late, of, share, .. }, cell)| {
            let (cell, view, late, of, at_most) = (cell.to_owned(), *view, *late, *of, share.1);
            Kept::Late { cell, level, view, limit_ns, late, of, at_most }
        }));
    }

    fn misses(&mut self, cells: &[&CellSummary], limit_per_hour: f64) {
        let rates: Vec<(&str, Rate)> =
            cells.iter().filter_map(|cell| Some((cell.name.as_str(), cell.misses?))).collect();
        for (name, rate) in &rates {
            let cell = (*name).to_owned();
            let Rate { episodes, hours, lower_per_hour, upper_per_hour, .. } = *rate;
            if lower_per_hour > limit_per_hour {
                self.violations.push(Violation::MissesPerHour { cell, limit_per_hour, episodes, lower_per_hour });
            } else if upper_per_hour > limit_per_hour {
                let hours_needed = rate.hours_needed(limit_per_hour);
                self.gaps.push(Gap::MissesPerHour {
                    cell,
                    limit_per_hour,
                    episodes,
                    hours,
                    upper_per_hour,
                    hours_needed,
                });
            }
        }
        let largest = rates.iter().max_by(|(_, a), (_, b)| a.upper_per_hour.total_cmp(&b.upper_per_hour));
        self.kept.extend(largest.map(|(cell, rate)| Kept::MissesPerHour {
            cell: (*cell).to_owned(),
            limit_per_hour,
            upper_per_hour: rate.upper_per_hour,
        }));
    }
}

/// The quantile by wake-up and by due time; once where they are the same.
fn views(cell: &CellSummary, level: Level) -> Vec<(View, Quantile)> {
    let (by_wakeup, by_due_time) = (*cell.quantiles.at(level), *cell.due_times.quantiles.at(level));
    let shown = |quantile: Quantile| (quantile.value_ns(), quantile.interval_ns());
    if shown(by_wakeup) == shown(by_due_time) {
        return vec![(View::Both, by_wakeup)];
    }
    vec![(View::WakeUps, by_wakeup), (View::DueTimes, by_due_time)]
}
