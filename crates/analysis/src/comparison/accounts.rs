//! Where the time of watched threads went in two configurations.

use crate::summary::watched::account;
use punctual_model::{Entry, Span, TimeAccount, WatchedThread};
use serde::Serialize;
use std::collections::BTreeSet;

/// A watched thread of both configurations that ran, or waited for a CPU, for different shares of its time.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ChangedAccount {
    /// Its name.
    pub thread: String,
    /// Percent of its time in which it ran, in the first and in the second.
    pub ran_percent: (f64, f64),
    /// Percent of its time in which it waited for a CPU.
    pub waited_percent: (f64, f64),
}

/// Smallest difference of a share, percent of the time, that counts.
const NOTABLE: f64 = 1.0;

/// The threads of both measurements whose accounts differ, in the order of the first one.
pub(super) fn changed(a: &[&Entry], b: &[&Entry]) -> Vec<ChangedAccount> {
    let of = |entries: &[&Entry], name: &str| -> Option<TimeAccount> {
        let threads = threads(entries).filter(|thread| thread.name == name);
        account(threads.map(|thread| thread.account.as_ref())).filter(|account| account.total() > Span(0))
    };
    let mut seen = BTreeSet::new();
    let names = threads(a).map(|thread| thread.name.clone()).filter(|name| seen.insert(name.clone()));
    let one = |thread: String| {
        let (of_a, of_b) = (of(a, &thread)?, of(b, &thread)?);
        let percent = |part: fn(&TimeAccount) -> Span| {
            let of = |one: &TimeAccount| part(one).ns() as f64 * 100.0 / one.total().ns() as f64;
            (of(&of_a), of(&of_b))
        };
        let (ran_percent, waited_percent) = (percent(|one| one.running), percent(|one| one.waiting_for_cpu));
        let is_notable = |(a, b): (f64, f64)| (a - b).abs() >= NOTABLE;
        let changed = ChangedAccount { thread, ran_percent, waited_percent };
        (is_notable(ran_percent) || is_notable(waited_percent)).then_some(changed)
    };
    names.filter_map(one).collect()
}

pub(super) fn threads<'a>(entries: &'a [&Entry]) -> impl Iterator<Item = &'a WatchedThread> {
    entries.iter().filter_map(|entry| entry.record.watch.as_deref()).flat_map(|watch| &watch.threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use punctual_model::WatchRecord;

    #[test]
    fn threads_of_both_that_waited_longer_are_named_with_their_shares() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").cell("none", "fifo:80");
        for (cell, waited) in [(0, 30), (1, 2)] {
            run.measure(0, cell, |_, _| 0);
            let account = |waiting: u64, asleep: u64| {
                let [waiting_for_cpu, asleep] = [Span(waiting), Span(asleep)];
                Some(TimeAccount { running: Span(10), waiting_for_cpu, asleep, ..TimeAccount::default() })
            };
            let thread =
                |name: &str, account| WatchedThread { name: name.to_owned(), account, ..WatchedThread::default() };
            let threads = vec![thread("control", account(waited, 90 - waited)), thread("log", account(0, 90))];
            let watch = WatchRecord { threads, ..WatchRecord::default() };
            run.entries.last_mut().unwrap().record.watch = Some(Box::new(watch));
        }
        let [a, b] = [0, 1].map(|at| [&run.entries[at]]);
        let control =
            ChangedAccount { thread: "control".to_owned(), ran_percent: (10.0, 10.0), waited_percent: (30.0, 2.0) };
        assert_eq!((changed(&a, &b), changed(&a, &a)), (vec![control], vec![]));
    }
}
