//! Chains of threads that wake each other: end-to-end latency, and where it was spent.

use super::activation::Activation;
use punctual_model::{ChainRecord, ChainStage, Histogram};

/// A growing chain.
#[derive(Debug)]
pub(super) struct Chain {
    record: ChainRecord,
}

impl Chain {
    /// A chain of threads with these names, from the first to the last.
    pub(super) fn new(names: &[String]) -> Chain {
        let stage = |thread: &String, is_wake_up| ChainStage {
            thread: thread.clone(),
            is_wake_up,
            histogram: Histogram::default(),
        };
        let stages = names.iter().flat_map(|name| [stage(name, true), stage(name, false)]).collect();
        Chain {
            record: ChainRecord {
                threads: names.to_vec(),
                other: 0,
                latency: Histogram::default(),
                age: Histogram::default(),
                stages,
            },
        }
    }

    /// Takes an activation of a thread; `is_named` says whether a thread has the name at this place of the chain.
    pub(super) fn take(&mut self, pid: i32, one: &Activation, is_named: impl Fn(i32, &str) -> bool) {
        let names = &self.record.threads;
        let Some((last, before)) = names.split_last() else { return };
        if !is_named(pid, last) {
            return;
        }
        let hops = one.hops.len().checked_sub(before.len()).and_then(|surplus| one.hops.get(surplus..));
        let chained = hops.filter(|hops| hops.iter().zip(before).all(|(hop, name)| is_named(hop.pid, name)));
        let Some(hops) = chained.filter(|hops| !hops.is_empty()) else {
            self.record.other += 1;
            return;
        };
        let ns = |from: u64, to: u64| i64::try_from(to.saturating_sub(from)).unwrap_or(i64::MAX);
        let first = hops.first().map_or(one.release_ns, |hop| hop.release_ns);
        self.record.latency.record(ns(first, one.end_ns));
        self.record.age.record(ns(first, one.user_ns));
        let times = hops.iter().flat_map(|hop| [ns(hop.release_ns, hop.user_ns), ns(hop.user_ns, hop.woke_next_ns)]);
        let times = times.chain([ns(one.release_ns, one.user_ns), ns(one.user_ns, one.end_ns)]);
        for (stage, time) in self.record.stages.iter_mut().zip(times) {
            stage.histogram.record(time);
        }
    }

    pub(super) fn record(self) -> ChainRecord {
        self.record
    }
}
