//! Results of explanations: the worst ones, the sums over all, and the counts.

use super::SpikeReport;
use super::trace_reader::TraceStatistics;
use analysis::explain::Totals;
use model::{AnswerStages, Explain, ExplainRecord, Explanation, IrqLatency, NotCovered, Span};
use rt::SpikeWatch;
use std::sync::mpsc::SyncSender;

/// Growing results.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// The number of worst explanations to keep.
    most: usize,
    /// The receiver of each spike, where none is kept here.
    reports: Option<SyncSender<SpikeReport>>,
    /// Whether the receiver had no room for the latest one.
    is_full: bool,
    missing: Vec<String>,
    pub(super) events: u64,
    pub(super) explaining_us: Option<u64>,
    pub(super) irq: Vec<IrqLatency>,
    pub(super) answers: Vec<AnswerStages>,
    /// Statistics of the trace and its gaps.
    pub(super) statistics: TraceStatistics,
    not_covered: u64,
    latest_not_covered: Option<NotCovered>,
    /// The latest of those, latest first, if a host explains them.
    others: Option<Vec<NotCovered>>,
    totals: Totals,
    /// Worst first.
    worst: Vec<Explanation>,
}

impl Results {
    pub(super) fn new(request: &Explain, missing: Vec<String>, reports: Option<SyncSender<SpikeReport>>) -> Results {
        let most = usize::try_from(request.keep).unwrap_or(usize::MAX);
        Results { most, reports, missing, others: request.for_host.then(Vec::new), ..Results::default() }
    }

    /// Whether each spike goes to another thread.
    pub(super) fn are_passed_on(&self) -> bool {
        self.reports.is_some()
    }

    /// Counts a spike that the trace does not cover.
    pub(super) fn not_covered(&mut self, one: NotCovered) {
        if let Some(reports) = &self.reports {
            self.is_full = reports.try_send(SpikeReport::NotCovered(one)).is_err();
            return;
        }
        self.not_covered += 1;
        if let Some(others) = &mut self.others {
            let at = others.partition_point(|kept| kept.latency >= one.latency);
            others.insert(at, one);
            others.truncate(self.most);
        }
        let latest = self.latest_not_covered.take().filter(|latest| latest.latency >= one.latency);
        self.latest_not_covered = latest.or(Some(one));
    }

    /// Records something else that is missing.
    pub(super) fn missed(&mut self, what: String) {
        self.missing.push(what);
    }

    /// Adds an explanation; returns the one that is not kept, if any: this one, or one that was kept so far.
    pub(super) fn take(&mut self, explanation: Explanation) -> Option<Explanation> {
        if let Some(reports) = &self.reports {
            self.is_full = reports.try_send(SpikeReport::Explained(explanation)).is_err();
            return None;
        }
        self.totals.add(&explanation);
        let at = self.worst.partition_point(|kept| kept.latency >= explanation.latency);
        self.worst.insert(at, explanation);
        if self.worst.len() > self.most { self.worst.pop() } else { None }
    }

    /// The threshold above which a wake-up would still be kept, ns; `None` while there is room. A receiver without room
    /// sets another one when it has taken the reports.
    pub(super) fn raised_threshold_ns(&self) -> Option<i64> {
        if self.is_full {
            return Some(i64::MAX);
        }
        let least = self.worst.get(self.most.checked_sub(1)?)?;
        i64::try_from(least.latency.ns()).ok()
    }

    pub(super) fn finish(self, watch: &SpikeWatch) -> ExplainRecord {
        let above_at_end = known(watch.above_ns());
        ExplainRecord {
            above: self.statistics.first_above_ns.and_then(known).or(above_at_end),
            above_at_end,
            spikes: self.totals.explained + self.not_covered + self.statistics.lost,
            explained: self.totals.explained,
            not_covered: self.not_covered + self.statistics.lost,
            latest_not_covered: self.latest_not_covered,
            others_not_covered: self.others.unwrap_or_default(),
            stood_still: Some(self.statistics.stood_still),
            overwritten: Some(self.statistics.overwritten),
            longest_freeze: watch.longest_freeze_ns().map(Span),
            events: self.events,
            explaining_us: self
                .explaining_us
                .zip(self.statistics.used_us)
                .map(|(explaining, taking)| explaining + taking),
            late: Span(self.totals.late_ns),
            evidence_ns: self.totals.evidence_ns,
            irq: self.irq,
            answers: self.answers,
            host_error_ns: None,
            missing: self.missing,
            causes: self.totals.causes(),
            worst: self.worst,
        }
    }
}

/// A threshold, or `None` while it is not set.
fn known(above_ns: i64) -> Option<Span> {
    u64::try_from(above_ns).ok().filter(|_| above_ns < i64::MAX).map(Span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explanation(latency: u64) -> Explanation {
        Explanation {
            cpu: 0,
            cycle: 0,
            due_ns: 0,
            latency: Span(latency),
            phases: Vec::new(),
            shares: Vec::new(),
            segments: Vec::new(),
            doubts: Vec::new(),
            host: None,
            thread: None,
        }
    }

    #[test]
    fn the_worst_are_kept_and_the_threshold_rises_when_there_is_no_room() {
        let mut kept = Results::new(&Explain { keep: 2, ..Explain::default() }, Vec::new(), None);
        kept.take(explanation(20));
        assert_eq!(kept.raised_threshold_ns(), None);
        kept.take(explanation(50));
        assert_eq!(kept.raised_threshold_ns(), Some(20));
        kept.take(explanation(15));
        kept.take(explanation(30));
        assert_eq!(kept.raised_threshold_ns(), Some(30));
        assert_eq!(kept.worst.iter().map(|one| one.latency.ns()).collect::<Vec<_>>(), [50, 30]);
        assert_eq!(kept.totals.explained, 4);
    }

    #[test]
    fn the_latest_that_was_not_covered_is_kept() {
        let mut kept = Results::new(&Explain { keep: 2, ..Explain::default() }, Vec::new(), None);
        for (due_ns, latency) in [(1, 20), (2, 50), (3, 50), (4, 30)] {
            kept.not_covered(NotCovered { cpu: 0, due_ns, latency: Span(latency) });
        }
        assert_eq!(kept.latest_not_covered.map(|latest| (latest.due_ns, kept.not_covered)), Some((2, 4)));
        assert_eq!(kept.others, None);
    }

    #[test]
    fn for_a_host_as_many_of_them_are_kept_as_explanations() {
        let mut kept = Results::new(&Explain { keep: 2, for_host: true, ..Explain::default() }, Vec::new(), None);
        for (due_ns, latency) in [(1, 20), (2, 50), (3, 50), (4, 30)] {
            kept.not_covered(NotCovered { cpu: 0, due_ns, latency: Span(latency) });
        }
        assert_eq!(kept.others.unwrap().iter().map(|one| one.due_ns).collect::<Vec<_>>(), [2, 3]);
    }
}
