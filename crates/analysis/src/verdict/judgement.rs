//! All cells against all limits.

use super::{Gap, Kept, Verdict, View, Violation};
use crate::Level;
use crate::finding::{Finding, run_progress};
use crate::rate::{Rate, zero_events_upper};
use crate::summary::CellSummary;
use crate::woodruff::Quantile;
use model::{Entry, Header, Span};

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

    pub(super) fn gaps_of_cell(&mut self, summary: &CellSummary) {
        let cell = || summary.name.clone();
        // Cells without any record are missing measurements of the run already.
        if summary.samples == 0 && summary.blocks > 0 {
            self.gaps.push(Gap::NoSamples { cell: cell() });
        }
        if summary.lost > 0 {
            self.gaps.push(Gap::Lost { cell: cell(), lost: summary.lost });
        }
        let failed = summary.findings.iter().find_map(|finding| match finding {
            Finding::LoadFailed { load, reason, .. } => Some((load.clone(), reason.clone())),
            Finding::LoadDidNothing { load, .. } => Some((load.clone(), "it did nothing".to_owned())),
            _ => None,
        });
        if let Some((load, what)) = failed {
            self.gaps.push(Gap::Load { cell: cell(), load, what });
        }
        if let Some(open) = summary.censored {
            self.gaps.push(Gap::Open { cell: cell(), at_least_ns: open.at_least_ns });
        }
    }

    pub(super) fn max(&mut self, cells: &[CellSummary], limit: Span) {
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

    /// Both views have to keep the limit: wake-ups alone leave out who came too late to wait at all, and due times can
    /// have the smaller quantile when many late ones fill in.
    pub(super) fn quantile(&mut self, cells: &[CellSummary], level: Level, limit: Span) {
        let limit_ns = limit.ns();
        let within = |ns: i64| u64::try_from(ns).unwrap_or(0) <= limit_ns;
        let mut largest: Option<(i64, View, &str)> = None;
        for summary in cells.iter().filter(|cell| cell.samples > 0) {
            let cell = || summary.name.clone();
            if !summary.steadiness.allows_intervals() && summary.quantiles.at(level).value_ns().is_some() {
                self.gaps.push(Gap::Unsteady { cell: cell(), level });
                continue;
            }
            let views = views(summary, level);
            let ends = || views.iter().filter_map(|(view, quantile)| Some((*view, quantile, quantile.interval_ns()?)));
            let beyond = ends().filter(|(.., (lower_ns, _))| !within(*lower_ns)).max_by_key(|(.., ends)| ends.0);
            let open = |quantile: &Quantile| quantile.interval_ns().is_none_or(|(_, upper_ns)| !within(upper_ns));
            if let Some((view, quantile, (lower_ns, _))) = beyond {
                let value_ns = quantile.value_ns().unwrap_or(lower_ns);
                self.violations.push(Violation::Quantile { cell: cell(), level, view, limit_ns, value_ns, lower_ns });
            } else if let Some((view, quantile)) = views.iter().rev().find(|(_, quantile)| open(quantile)) {
                let interval_ns = quantile.interval_ns();
                self.gaps.push(Gap::Quantile { cell: cell(), level, view: *view, limit_ns, interval_ns });
            } else {
                let of_cell = ends().map(|(view, _, (_, upper_ns))| (upper_ns, view, summary.name.as_str()));
                largest = largest.into_iter().chain(of_cell).max_by_key(|(upper_ns, ..)| *upper_ns);
            }
        }
        self.kept.extend(largest.map(|(upper_ns, view, cell)| {
            let cell = cell.to_owned();
            Kept::Quantile { cell, level, view, limit_ns, upper_ns }
        }));
    }

    pub(super) fn misses(&mut self, cells: &[CellSummary], limit_per_hour: f64) {
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
