//! Explanations that are kept: the worst ones, with their captures and exported files, and the sums over all.

use crate::trace::Export;
use punctual_analysis::explain::{Case, Symbols, Totals, Trace};
use punctual_ftrace::{Capture, Layouts, Window};
use punctual_model::{CaptureFile, Captures, Explain, ExplainRecord, Explanation, NotCovered, Span};
use std::collections::HashSet;
use std::sync::Arc;

/// A packed capture.
type Packed = Arc<(String, Vec<u8>)>;

/// The kept explanations.
#[derive(Debug, Default)]
pub(super) struct WorstSpikes {
    /// The number of worst explanations to keep.
    pub(super) most: usize,
    captures: Captures,
    /// How to read the pages of captures, and the timers whose starts count.
    layouts: Layouts,
    timers: Vec<u64>,
    /// Export of each kept spike, if requested.
    export: Option<Export>,
    totals: Totals,
    /// Number of spikes that no trace covers, and the latest of them.
    pub(super) not_covered: u64,
    latest_not_covered: Option<NotCovered>,
    /// Worst first.
    worst: Vec<(Explanation, Option<Packed>)>,
    /// Captures of others, the first ones.
    others: Vec<Packed>,
}

impl WorstSpikes {
    /// Nothing is kept so far; `layouts` are those of the trace.
    pub(super) fn new(request: &Explain, layouts: Layouts, timers: Vec<u64>) -> WorstSpikes {
        let export = request.export.as_deref().map(|dir| Export::new(dir, layouts.clone()));
        let most = usize::try_from(request.keep).unwrap_or(usize::MAX);
        WorstSpikes { most, captures: request.captures, layouts, timers, export, ..WorstSpikes::default() }
    }

    /// The first file that could not be exported, with the reason.
    fn failure(&mut self) -> Option<String> {
        self.export.as_mut().and_then(Export::failure)
    }

    /// Adds what was explained from one trace.
    pub(super) fn take(
        &mut self,
        window: &Window,
        trace: &Trace,
        symbols: Symbols<'_>,
        explained: Vec<(Case, Explanation)>,
    ) {
        let floor_ns = self.floor_ns();
        let is_captured = |(_, explanation): &&(Case, Explanation)| match self.captures {
            Captures::None => false,
            Captures::Spikes => floor_ns.is_none_or(|floor_ns| explanation.latency.ns() > floor_ns),
            Captures::All => true,
        };
        let captured: Vec<(Case, Explanation)> = explained.iter().filter(is_captured).cloned().collect();
        let packed = captured.first().map(|(_, first)| name_of(first)).map(|name| {
            let (layouts, window) = (self.layouts.clone(), window.clone());
            let capture = Capture::new(layouts, window, trace, symbols, &self.timers, captured);
            Arc::new((format!("{name}{}", CaptureFile::SUFFIX), capture.pack()))
        });
        if self.captures == Captures::All {
            self.others.extend(packed.clone());
        }
        for (case, explanation) in explained {
            if let Some(export) = &mut self.export {
                export.write(&name_of(&explanation), &explanation, &case.subject, trace, window, symbols);
            }
            self.totals.add(&explanation);
            let at = self.worst.partition_point(|(kept, _)| kept.latency >= explanation.latency);
            self.worst.insert(at, (explanation, packed.clone()));
            if self.worst.len() > self.most
                && let Some((dropped, _)) = self.worst.pop()
                && let Some(export) = &mut self.export
            {
                export.remove(&name_of(&dropped));
            }
        }
        self.limit();
    }

    /// Drops captures above the limit of a run: those that are not of the worst, then those of the least late. From
    /// then on only those of the worst are made.
    fn limit(&mut self) {
        while self.captured().map(|packed| packed.1.len()).sum::<usize>() > Explain::CAPTURE_BYTES {
            self.captures = Captures::Spikes;
            if self.others.pop().is_none() {
                let least = self.worst.iter_mut().rev().find_map(|(_, packed)| packed.take());
                debug_assert!(least.is_some(), "what has bytes is captured");
            }
        }
    }

    /// All captures, each once.
    fn captured(&self) -> impl Iterator<Item = &Packed> {
        let mut known = HashSet::new();
        let all = self.worst.iter().filter_map(|(_, packed)| packed.as_ref()).chain(&self.others);
        all.filter(move |packed| known.insert(Arc::as_ptr(packed)))
    }

    /// The latency above which a wake-up would still be kept, ns; `None` while there is room.
    pub(super) fn floor_ns(&self) -> Option<u64> {
        self.worst.get(self.most.checked_sub(1)?).map(|(least, _)| least.latency.ns())
    }

    /// Counts a spike that no trace covers.
    pub(super) fn take_not_covered(&mut self, one: NotCovered) {
        self.not_covered += 1;
        let latest = self.latest_not_covered.take().filter(|latest| latest.latency >= one.latency);
        self.latest_not_covered = latest.or(Some(one));
    }

    /// The record of all spikes, without what only the trace knows.
    pub(super) fn record(mut self, mut missing: Vec<String>) -> ExplainRecord {
        missing.extend(self.failure());
        let totals = std::mem::take(&mut self.totals);
        let (not_covered, latest_not_covered) = (self.not_covered, self.latest_not_covered);
        let (worst, captures) = self.finish();
        ExplainRecord {
            spikes: totals.explained + not_covered,
            explained: totals.explained,
            not_covered,
            latest_not_covered,
            late: Span(totals.late_ns),
            evidence_ns: totals.evidence_ns,
            missing,
            causes: totals.causes(),
            layers: totals.layers(),
            worst,
            captures,
            ..ExplainRecord::default()
        }
    }

    /// The worst explanations, worst first, and the captures.
    fn finish(self) -> (Vec<Explanation>, Vec<CaptureFile>) {
        let files = self.captured().map(|packed| CaptureFile::new(&packed.0, &packed.1)).collect();
        let worst = self.worst.into_iter().map(|(explanation, packed)| {
            let capture = packed.map(|packed| packed.0.clone());
            Explanation { capture, ..explanation }
        });
        (worst.collect(), files)
    }
}

/// The name of a spike in its cell, for its files.
fn name_of(explanation: &Explanation) -> String {
    let Explanation { cpu, cycle, thread, .. } = explanation;
    let thread = thread.as_ref().and_then(|thread| thread.pid).map(|pid| format!("-thread{pid}"));
    format!("spike-cpu{cpu}-cycle{cycle}{}", thread.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::explain::{Facts, Subject};

    /// A spike of this latency, in the cycle of the same number.
    fn explained(latency: u64) -> (Case, Explanation) {
        let cycle = latency.cast_signed();
        let subject = Subject {
            pid: 9,
            waits_for: punctual_analysis::explain::WaitsFor::Timer,
            cpu: 0,
            priority: 19,
            due_ns: 5_000,
            woke_ns: 5_000 + latency,
            slack_ns: 0,
        };
        let case = Case { cycle, due_ns: 0, thread: None, subject, facts: Facts::default(), inside: None };
        let explanation = Explanation { cycle, latency: Span(latency), ..Explanation::default() };
        (case, explanation)
    }

    fn kept(captures: Captures) -> WorstSpikes {
        let request = Explain { keep: 2, captures, ..Explain::default() };
        WorstSpikes::new(&request, punctual_ftrace::testing::layouts(), Vec::new())
    }

    fn take(kept: &mut WorstSpikes, latencies: &[u64]) {
        let window = Window { from_ns: 0, around: vec![punctual_ftrace::testing::page_of_wakeup()], own: Vec::new() };
        let (trace, _) = window.trace(&punctual_ftrace::testing::decoder(), |_| ());
        let explained = latencies.iter().map(|latency| explained(*latency)).collect();
        kept.take(&window, &trace, &|_| None, explained);
    }

    #[test]
    fn the_worst_are_kept_and_the_floor_rises_when_there_is_no_room() {
        let mut kept = kept(Captures::Spikes);
        take(&mut kept, &[20]);
        assert_eq!(kept.floor_ns(), None);
        take(&mut kept, &[50]);
        assert_eq!(kept.floor_ns(), Some(20));
        take(&mut kept, &[15, 30]);
        assert_eq!((kept.floor_ns(), kept.totals.explained), (Some(30), 4));
        let (worst, _) = kept.finish();
        assert_eq!(worst.iter().map(|one| one.latency.ns()).collect::<Vec<_>>(), [50, 30]);
    }

    #[test]
    fn the_worst_have_captures_that_explain_them() {
        for (captures, n_files) in [(Captures::None, 0), (Captures::Spikes, 2), (Captures::All, 3)] {
            let mut kept = kept(captures);
            for latencies in [&[20][..], &[50], &[15], &[30, 40]] {
                take(&mut kept, latencies);
            }
            let (worst, files) = kept.finish();
            // Those of 30 and 40 have one, and those of 50, 40 are the worst.
            let all = if captures == Captures::All { 4 } else { n_files };
            assert_eq!(files.len(), all, "{captures:?}");
            for one in worst.iter().filter(|_| captures != Captures::None) {
                let file = files.iter().find(|file| Some(&file.name) == one.capture.as_ref()).unwrap();
                let capture = Capture::unpack(&file.content().unwrap()).unwrap();
                let again = capture.again().unwrap();
                assert!(again.iter().any(|again| again.then.latency == one.latency));
            }
        }
    }

    #[test]
    fn captures_above_the_limit_are_those_of_the_least_late() {
        let mut kept = kept(Captures::Spikes);
        take(&mut kept, &[20]);
        take(&mut kept, &[50]);
        let big = Arc::new(("big".to_owned(), vec![0; Explain::CAPTURE_BYTES]));
        kept.worst[0].1 = Some(big);
        kept.limit();
        let (worst, files) = kept.finish();
        let captured: Vec<_> = worst.iter().map(|one| one.capture.as_deref()).collect();
        assert_eq!((captured, files.len()), (vec![Some("big"), None], 1));
    }
}
