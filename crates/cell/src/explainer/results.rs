//! Results of explanations: the worst ones, the sums over all, and the counts.

use super::SpikeReport;
use super::trace_reader::TraceStatistics;
use crate::worst_spikes::WorstSpikes;
use punctual_analysis::explain::{Case, Symbols, Trace};
use punctual_ftrace::{Layouts, Window};
use punctual_model::{AnswerStages, Explain, ExplainRecord, Explanation, IrqLatency, NotCovered, Span};
use punctual_rt::SpikeWatch;
use std::sync::mpsc::SyncSender;

/// Growing results.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// The explanations.
    kept: WorstSpikes,
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
    /// The latest spikes that no trace covers, latest first, if a host explains them.
    others: Option<Vec<NotCovered>>,
}

impl Results {
    /// No results so far, of a trace with these layouts.
    pub(super) fn new(
        request: &Explain,
        layouts: Layouts,
        missing: Vec<String>,
        reports: Option<SyncSender<SpikeReport>>,
    ) -> Results {
        let others = request.for_host.then(Vec::new);
        Results { kept: WorstSpikes::new(request, layouts, Vec::new()), reports, missing, others, ..Results::default() }
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
        self.kept.take_not_covered(one);
        if let Some(others) = &mut self.others {
            let at = others.partition_point(|kept| kept.latency >= one.latency);
            others.insert(at, one);
            others.truncate(self.kept.most);
        }
    }

    /// Adds what was explained from one trace.
    pub(super) fn take(
        &mut self,
        window: &Window,
        trace: &Trace,
        symbols: Symbols<'_>,
        explained: Vec<(Case, Explanation)>,
    ) {
        let Some(reports) = &self.reports else { return self.kept.take(window, trace, symbols, explained) };
        for (_, explanation) in explained {
            self.is_full = reports.try_send(SpikeReport::Explained(Box::new(explanation))).is_err();
        }
    }

    /// The threshold above which a wake-up would still be kept, ns; `None` while there is room. A receiver without room
    /// sets another one when it has taken the reports.
    pub(super) fn raised_threshold_ns(&self) -> Option<i64> {
        if self.is_full {
            return Some(i64::MAX);
        }
        i64::try_from(self.kept.floor_ns()?).ok()
    }

    pub(super) fn finish(self, watch: &SpikeWatch) -> ExplainRecord {
        let (record, lost) = (self.kept.record(self.missing), self.statistics.lost);
        let above_at_end = known(watch.above_ns());
        ExplainRecord {
            above: self.statistics.first_above_ns.and_then(known).or(above_at_end),
            above_at_end,
            spikes: record.spikes + lost,
            not_covered: record.not_covered + lost,
            others_not_covered: self.others.unwrap_or_default(),
            stood_still: Some(self.statistics.stood_still),
            overwritten: Some(self.statistics.overwritten),
            longest_freeze: watch.longest_freeze_ns().map(Span),
            events: self.events,
            explaining_us: self
                .explaining_us
                .zip(self.statistics.used_us)
                .map(|(explaining, taking)| explaining + taking),
            irq: self.irq,
            answers: self.answers,
            ..record
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

    #[test]
    fn the_latest_that_was_not_covered_is_kept() {
        let mut kept = Results::new(&Explain { keep: 2, ..Explain::default() }, Layouts::default(), Vec::new(), None);
        for (due_ns, latency) in [(1, 20), (2, 50), (3, 50), (4, 30)] {
            kept.not_covered(NotCovered { cpu: 0, due_ns, latency: Span(latency) });
        }
        assert_eq!(kept.others, None);
        let record = kept.kept.record(Vec::new());
        assert_eq!(record.latest_not_covered.map(|latest| (latest.due_ns, record.not_covered)), Some((2, 4)));
    }

    #[test]
    fn for_a_host_as_many_of_them_are_kept_as_explanations() {
        let mut kept = Results::new(
            &Explain { keep: 2, for_host: true, ..Explain::default() },
            Layouts::default(),
            Vec::new(),
            None,
        );
        for (due_ns, latency) in [(1, 20), (2, 50), (3, 50), (4, 30)] {
            kept.not_covered(NotCovered { cpu: 0, due_ns, latency: Span(latency) });
        }
        assert_eq!(kept.others.unwrap().iter().map(|one| one.due_ns).collect::<Vec<_>>(), [2, 3]);
    }
}
