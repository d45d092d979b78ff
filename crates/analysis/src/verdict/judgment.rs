//! The judgment of all cells against all limits.

use super::{Count, Gap, Kept, Limit, Verdict, Violation, missing_evidence};
use crate::findings::{AnswersLeftOut, Finding, LoadDidNothing, LoadFailed, run_progress};
use crate::row::{Origin, Row};
use crate::stats::rate::{Rate, zero_events_upper};
use crate::stats::woodruff::Quantile;
use crate::summary::due_time::View;
use crate::summary::late::Late;
use crate::summary::responses::Response;
use crate::summary::watched::WatchSummary;
use crate::wording::{duration, things};
use punctual_model::{Entry, Header, Level, Order, Span};

/// Evidence collected so far.
#[derive(Debug, Default)]
pub(super) struct Judgment {
    kept: Vec<Kept>,
    violations: Vec<Violation>,
    pub(super) gaps: Vec<Gap>,
}

impl Judgment {
    /// Verdict on the evidence: a violation outweighs gaps, and a gap outweighs passes.
    pub(super) fn verdict(mut self) -> Verdict {
        if !self.violations.is_empty() {
            // Stable: among equal ones the first limit and cell of the plan.
            self.violations.order_by(|a, b| b.factor().total_cmp(&a.factor()));
            return Verdict::Fail { violations: self.violations };
        }
        if self.gaps.is_empty() { Verdict::Pass { kept: self.kept } } else { Verdict::Inconclusive { gaps: self.gaps } }
    }

    /// Reasons to doubt a run as a whole. Its cells with latencies are `cells`: costs alone show nothing of them.
    pub(super) fn gaps_of_run(&mut self, header: &Header, entries: &[Entry], cells: &[Row<'_>]) {
        let (done, planned) = run_progress(header, entries);
        let planned = if cells.is_empty() { 0 } else { planned };
        if done < planned || planned == 0 {
            self.gaps.push(Gap::Incomplete { done, planned });
        }
        if let Some(first) = header.skipped.first() {
            let cells = u64::try_from(header.skipped.len()).unwrap_or(u64::MAX);
            self.gaps.push(Gap::Skipped { cells, why: first.reason.clone() });
        }
    }

    /// Reasons to doubt the records of this program; for imported files these are checked limit by limit.
    pub(super) fn gaps_of_cell(&mut self, row: &Row<'_>) {
        let Origin::Own(summary, findings) = row.origin else { return };
        let cell = || summary.name.clone();
        // Cells without any record already count as missing measurements of the run.
        if summary.samples == 0 && summary.blocks > 0 {
            self.gaps.push(Gap::NoSamples { cell: cell() });
        }
        if let Some(lost) = summary.lost.filter(|lost| *lost > 0) {
            self.gaps.push(Gap::Lost { cell: cell(), lost });
        }
        let (unseen, due) = (summary.ledger.not_seen(), summary.ledger.due);
        if unseen > 0 {
            self.gaps.push(Gap::NotSeen { cell: cell(), unseen, due });
        }
        let failed = findings.iter().find_map(|finding| match finding {
            Finding::LoadFailed(LoadFailed { load, reason, .. }) => Some((load.clone(), reason.clone())),
            Finding::LoadDidNothing(LoadDidNothing { load, .. }) => Some((load.clone(), "it did nothing".to_owned())),
            _ => None,
        });
        if let Some((load, what)) = failed {
            self.gaps.push(Gap::Load { cell: cell(), load, what });
        }
        match (&summary.watch, summary.censored) {
            (Some(watch), _) => self.gaps_of_watched(&summary.name, watch, summary.cell.duration),
            (None, Some(open)) => self.gaps.push(Gap::Open { cell: cell(), at_least_ns: open.at_least_ns }),
            (None, None) => {}
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

    /// Watched threads that were not seen to the end of the time: what is not over, what has ended, and threads without
    /// activations.
    fn gaps_of_watched(&mut self, cell: &str, watch: &WatchSummary, asked: Span) {
        let cell = || cell.to_owned();
        for thread in &watch.threads {
            let unfinished = thread.open.clone();
            let gap = unfinished.map(|open| Gap::Unfinished { cell: cell(), thread: thread.name.clone(), open });
            self.gaps.extend(gap);
        }
        if let Some((status, after_ns)) = watch.status.as_ref().zip(watch.ended_after_ns) {
            let (after, asked) = (duration(after_ns as f64), duration(asked.ns() as f64));
            let what = format!("the program ended after {after} of {asked} ({status})");
            self.gaps.push(Gap::Ended { cell: cell(), what });
            return;
        }
        for thread in &watch.threads {
            let ended = thread.ended.as_ref().map(|ended| format!("{} {ended}", thread.name));
            self.gaps.extend(ended.map(|what| Gap::Ended { cell: cell(), what }));
        }
        if let Some(n) = watch.left_out {
            let why = format!("nothing is known of {}, which no list had room for", things(n, "thread"));
            self.gaps.push(Gap::Untold { cell: cell(), why });
        }
        for thread in &watch.unseen {
            let why = format!("nothing is known of thread {thread}, which never waited twice in one call");
            self.gaps.push(Gap::Untold { cell: cell(), why });
        }
    }

    /// All cells against one limit.
    pub(super) fn judge(&mut self, cells: &[Row<'_>], limit: Limit) {
        match limit {
            Limit::Max(limit) => self.max(cells, limit),
            Limit::Quantile(level, limit) => self.quantile(cells, level, limit),
            Limit::MissesPerHour(limit) => self.misses(cells, limit),
            Limit::Waiting(limit) => self.waiting(cells, limit),
        }
    }

    /// Whether a cell lacks the evidence for a limit; adds the gap.
    fn is_untold(&mut self, row: &Row<'_>, limit: Limit) -> bool {
        let gap = missing_evidence::why(row, limit).map(|why| Gap::Untold { cell: row.name.to_owned(), why });
        let is_untold = gap.is_some();
        self.gaps.extend(gap);
        is_untold
    }

    /// Adds a violation, or the gap of a cell that does not show it.
    fn violates(&mut self, row: &Row<'_>, limit: Limit, violation: Violation) {
        let gap =
            missing_evidence::why_not_violated(row, limit).map(|why| Gap::Untold { cell: row.name.to_owned(), why });
        match gap {
            // It may be the reason, too, why the limit is not shown to be met.
            Some(gap) if self.gaps.contains(&gap) => {}
            Some(gap) => self.gaps.push(gap),
            None => self.violations.push(violation),
        }
    }

    /// Adds the gap of a cell that lacks the evidence for a limit, or has wake-ups and not the number that is limited.
    fn number_is_untold(&mut self, row: &Row<'_>, limit: Limit, is_known: impl Fn(&Row<'_>) -> bool) {
        if !self.is_untold(row, limit) && has_samples(row) && !is_known(row) {
            let why = "the number that is limited is unknown".to_owned();
            self.gaps.push(Gap::Untold { cell: row.name.to_owned(), why });
        }
    }

    fn max(&mut self, cells: &[Row<'_>], limit: Span) {
        let limit_ns = limit.ns();
        let is_known = |row: &Row<'_>| row.max_ns.is_some();
        cells.iter().for_each(|row| self.number_is_untold(row, Limit::Max(limit), is_known));
        let maxima: Vec<_> = cells.iter().filter_map(|row| Some((row, row.max_ns?))).collect();
        let beyond = |ns: i64| u64::try_from(ns).is_ok_and(|ns| ns > limit_ns);
        for (row, value_ns) in maxima.iter().filter(|(_, value_ns)| beyond(*value_ns)) {
            let at_least = row.max().is_some_and(|max| max.at_least);
            let violation = Violation::Max { cell: row.name.to_owned(), limit_ns, value_ns: *value_ns, at_least };
            self.violates(row, Limit::Max(limit), violation);
        }
        let measured = cells.iter().filter_map(|row| row.measured).min().unwrap_or_default();
        let largest = maxima.iter().max_by_key(|(_, value_ns)| *value_ns);
        self.kept.extend(largest.map(|(row, value_ns)| Kept::Max {
            cell: row.name.to_owned(),
            limit_ns,
            value_ns: *value_ns,
            measured_ns: measured.ns(),
            upper_per_hour: zero_events_upper(measured.as_secs_f64() / 3600.0),
        }));
    }

    /// Both views must meet the limit: wake-ups alone leave out the missed due times, and due times can have the
    /// smaller quantile when many late ones fill in. A quantile without an interval is judged by the share of late
    /// samples.
    fn quantile(&mut self, cells: &[Row<'_>], level: Level, limit: Span) {
        let limit_ns = limit.ns();
        let within = |ns: i64| u64::try_from(ns).unwrap_or(0) <= limit_ns;
        let mut largest: Option<(i64, View, &str)> = None;
        let mut latest: Option<(&Late, &str)> = None;
        for row in cells {
            let is_untold = self.is_untold(row, Limit::Quantile(level, limit));
            if !has_samples(row) || is_untold && !missing_evidence::shows_violations(row) {
                continue;
            }
            let cell = || row.name.to_owned();
            let is_steady = row.allows_interval(level);
            let all_late = row.own().map_or(&[][..], |cell| &cell.late);
            let counted = |view: View| all_late.iter().find(|late| late.level == level && late.view == view);
            // Where the latency changes, its parts show a violation only together.
            let is_violated = |late: &Late| late.is_violated() && (is_steady || late.is_throughout);
            let mut open = None;
            let mut ends: Vec<(View, &Quantile, (i64, i64))> = Vec::new();
            let mut counts: Vec<&Late> = Vec::new();
            let mut violated = None;
            let views = views(row, level);
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
                let violation = Violation::Quantile { cell: cell(), level, view, limit_ns, value_ns, lower_ns };
                self.violates(row, Limit::Quantile(level, limit), violation);
            } else if let Some(Late { view, late, of, share, .. }) = violated {
                let (view, late, of, at_least) = (*view, *late, *of, share.0);
                let violation = Violation::Late { cell: cell(), level, view, limit_ns, late, of, at_least };
                self.violates(row, Limit::Quantile(level, limit), violation);
            } else if is_untold {
                // Its gap is there.
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
                        .zip(row.measured)
                        .map(|(times, measured)| crate::stats::special::whole(measured.ns() as f64 * (times - 1.0))),
                });
                self.gaps.push(Gap::Quantile { cell: cell(), level, view, limit_ns, interval_ns, late });
            } else {
                let name = row.name;
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

    fn misses(&mut self, cells: &[Row<'_>], limit_per_hour: f64) {
        let misses = |row: &Row<'_>| row.own().and_then(|cell| cell.misses);
        cells.iter().for_each(|row| {
            self.number_is_untold(row, Limit::MissesPerHour(limit_per_hour), |row| misses(row).is_some());
        });
        let rates: Vec<(&Row<'_>, Rate)> = cells.iter().filter_map(|row| Some((row, misses(row)?))).collect();
        for (row, rate) in &rates {
            let cell = row.name.to_owned();
            let Rate { episodes, hours, lower_per_hour, upper_per_hour, .. } = *rate;
            if lower_per_hour > limit_per_hour {
                let violation = Violation::MissesPerHour { cell, limit_per_hour, episodes, lower_per_hour };
                self.violates(row, Limit::MissesPerHour(limit_per_hour), violation);
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
        self.kept.extend(largest.map(|(row, rate)| Kept::MissesPerHour {
            cell: row.name.to_owned(),
            limit_per_hour,
            upper_per_hour: rate.upper_per_hour,
        }));
    }

    fn waiting(&mut self, cells: &[Row<'_>], limit_percent: f64) {
        for row in cells {
            self.is_untold(row, Limit::Waiting(limit_percent));
        }
        let of_cell = |row| waited(row).map(move |(thread, percent)| (row, thread, percent));
        let shares: Vec<(&Row<'_>, &str, f64)> = cells.iter().flat_map(of_cell).collect();
        for (row, thread, percent) in shares.iter().filter(|(.., percent)| *percent > limit_percent) {
            let (cell, thread, percent) = (row.name.to_owned(), (*thread).to_owned(), *percent);
            self.violations.push(Violation::Waiting { cell, thread, limit_percent, percent });
        }
        let largest = shares.into_iter().max_by(|(.., a), (.., b)| a.total_cmp(b));
        self.kept.extend(largest.map(|(row, thread, percent)| {
            let (cell, thread) = (row.name.to_owned(), thread.to_owned());
            Kept::Waiting { cell, thread, limit_percent, percent }
        }));
    }
}

/// Whether a row has a distribution that limits could be about.
fn has_samples(row: &Row<'_>) -> bool {
    row.own().is_none_or(|cell| cell.blocks > 0) && row.samples != Some(0)
}

/// The watched threads of a cell, and the percentage of its time that each waited for a CPU, as far as that is known.
fn waited<'a>(row: &Row<'a>) -> impl Iterator<Item = (&'a str, f64)> {
    let threads = row.own().and_then(|cell| cell.watch.as_ref()).into_iter().flat_map(|watch| &watch.threads);
    threads.filter_map(|one| {
        let account = one.account.as_ref()?;
        let share = account.waiting_for_cpu.ns() as f64 / account.total().ns() as f64;
        Some((one.name.as_str(), share * 100.0)).filter(|(_, percent)| percent.is_finite())
    })
}

/// The quantile by wake-up and by due time; once if no due time was missed, or if both are known and equal. Imported
/// files have no due times.
fn views(row: &Row<'_>, level: Level) -> Vec<(View, Quantile)> {
    let by_wakeup = *row.quantiles.at(level);
    let Some(cell) = row.own() else { return vec![(View::WakeUps, by_wakeup)] };
    let by_due_time = *cell.due_times.quantiles.at(level);
    if cell.due_times.is_by_wakeup || by_wakeup.is_known_as(&by_due_time) {
        return vec![(View::Both, by_wakeup)];
    }
    vec![(View::WakeUps, by_wakeup), (View::DueTimes, by_due_time)]
}
