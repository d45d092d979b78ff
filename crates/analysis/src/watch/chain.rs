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
            self.record.other += u64::from(!is_cut(one, before, is_named));
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

/// Whether the thread of the chain that released the earliest known one was not followed yet then: its wait is known
/// after some sleeps only, and nothing tells what released it.
fn is_cut(one: &Activation, before: &[String], is_named: impl Fn(i32, &str) -> bool) -> bool {
    let Some((unknown, known)) = before.split_at_checked(before.len().saturating_sub(one.hops.len())) else {
        return false;
    };
    let by = one.hops.first().map_or(one.release.by_thread(), |first| first.released_by);
    let is_followed = one.hops.iter().zip(known).all(|(hop, name)| is_named(hop.pid, name));
    is_followed && unknown.last().zip(by).is_some_and(|(name, by)| is_named(by, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Hop, Release};

    #[test]
    fn a_cause_before_its_thread_was_followed_is_unknown_and_not_another_one() {
        let names = ["sensor", "controller", "actuator"];
        let is_named = |pid: i32, name: &str| names.get(usize::try_from(pid).unwrap()) == Some(&name);
        let hop = |pid, released_by| Hop { pid, released_by, release_ns: 1, user_ns: 2, woke_next_ns: 3 };
        for (release, hops, n, other) in [
            (Release::Thread(1), vec![hop(0, None), hop(1, Some(0))], 1, 0),
            (Release::Thread(1), vec![hop(1, Some(0))], 0, 0),
            (Release::Thread(1), vec![], 0, 0),
            (Release::Thread(1), vec![hop(1, None)], 0, 1),
            (Release::Thread(1), vec![hop(1, Some(7))], 0, 1),
            (Release::Thread(0), vec![], 0, 1),
            (Release::Timer, vec![], 0, 1),
        ] {
            let mut chain = Chain::new(&names.map(str::to_owned));
            chain.take(2, &Activation { release, hops: hops.clone(), ..Activation::default() }, is_named);
            let record = chain.record();
            assert_eq!((record.latency.n, record.other), (n, other), "{release:?} {hops:?}");
        }
    }
}
