//! Phases of the activations of watched threads, and stages of their packets, in two configurations.

use super::accounts::threads;
use crate::summary::packets;
use crate::summary::spread::Spread;
use crate::summary::watched::{Watched, phases};
use punctual_model::Entry;
use serde::Serialize;
use std::collections::BTreeSet;

/// A phase or stage that a watched thread has in both configurations. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ComparedStage {
    /// Name of the thread.
    pub thread: String,
    /// Whether it is a stage of the packets that release the thread; else it is a phase of its activations.
    pub is_of_packets: bool,
    /// Its name, like `solve` or `interrupt to softirq`.
    pub stage: String,
    /// Its lengths in the first.
    pub a: Spread,
    /// Its lengths in the second.
    pub b: Spread,
}

impl ComparedStage {
    /// Whether its median or its 99 % quantile differs by more than this factor.
    pub(super) fn differs(&self, margin: f64) -> bool {
        let (a, b) = (self.a, self.b);
        let pairs = [(a.p50_ns, b.p50_ns), (a.p99_ns, b.p99_ns)].into_iter();
        let mut both = pairs.filter_map(|(a, b)| Some((a? as f64, b? as f64)));
        both.any(|(a, b)| a.max(b) > a.min(b) * margin)
    }
}

/// The stages of both measurements, in the order of the first one.
pub(super) fn compared(a: &[&Entry], b: &[&Entry]) -> Vec<ComparedStage> {
    let mut seen = BTreeSet::new();
    let names = threads(a).map(|thread| thread.name.as_str()).filter(|name| seen.insert(*name));
    let of_thread = |thread: &str| {
        let of_b = stages(b, thread);
        let pair = |(is_of_packets, stage, a): (bool, String, Spread)| {
            let (.., b) = of_b.iter().find(|(of, name, _)| (*of, name) == (is_of_packets, &stage))?;
            Some(ComparedStage { thread: thread.to_owned(), is_of_packets, stage, a, b: *b })
        };
        stages(a, thread).into_iter().filter_map(pair).collect::<Vec<_>>()
    };
    names.flat_map(of_thread).collect()
}

/// The stages of the threads of a name: whether of packets, the name and the lengths of each. Those without any are
/// left out.
fn stages(entries: &[&Entry], name: &str) -> Vec<(bool, String, Spread)> {
    let all: Vec<Watched<'_>> =
        threads(entries).filter(|thread| thread.name == name).map(|thread| (thread, &[][..])).collect();
    let phases = phases(&all).unwrap_or_default().into_iter().map(|one| (false, one.name().to_owned(), one.length));
    let packets = packets::of(all.iter().filter_map(|(thread, _)| thread.packets.as_ref()));
    let packets = packets.into_iter().flat_map(|one| one.stages).map(|one| (true, one.stage, one.length));
    phases.chain(packets).filter(|(.., length)| length.max_ns.is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use punctual_model::{Histogram, PhaseKind, PhaseRecord, WatchRecord, WatchedThread};

    #[test]
    fn phases_of_both_are_compared_and_others_are_not() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").cell("none", "fifo:80");
        for (cell, marks) in [(0, [("solve", 300), ("read", 100)]), (1, [("solve", 200), ("write", 100)])] {
            run.measure(0, cell, |_, _| 0);
            let phase = |(mark, ns): (&str, i64)| {
                let mut length = Histogram::default();
                (0..100).for_each(|_| length.record(ns));
                PhaseRecord { phase: PhaseKind::Mark, mark: mark.to_owned(), length, ..PhaseRecord::default() }
            };
            let phases = Some(marks.map(phase).to_vec());
            let thread = WatchedThread { name: "control".to_owned(), phases, ..WatchedThread::default() };
            let watch = WatchRecord { threads: vec![thread], ..WatchRecord::default() };
            run.entries.last_mut().unwrap().record.watch = Some(Box::new(watch));
        }
        let [a, b] = [0, 1].map(|at| [&run.entries[at]]);
        let [one]: [ComparedStage; 1] = compared(&a, &b).try_into().unwrap();
        assert_eq!((&*one.thread, &*one.stage, one.is_of_packets), ("control", "solve", false));
        assert_eq!((one.a.p50_ns, one.b.p50_ns), (Some(300), Some(200)));
        assert!(one.differs(1.49) && !one.differs(1.5));
    }
}
