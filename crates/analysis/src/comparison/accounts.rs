//! Where the time of watched threads went in two configurations.

use super::Arm;
use crate::summary::watched::account;
use punctual_model::{Span, TimeAccount};
use serde::Serialize;

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

/// The threads whose accounts differ, in the order of the first configuration.
pub(super) fn changed(a: &Arm<'_>, b: &Arm<'_>) -> Vec<ChangedAccount> {
    let threads = |arm: &Arm<'_>| {
        let watches = arm.entries.iter().filter_map(|entry| entry.record.watch.as_deref());
        watches.flat_map(|watch| &watch.threads).map(|thread| thread.name.clone()).collect::<Vec<String>>()
    };
    let of = |arm: &Arm<'_>, name: &str| -> Option<TimeAccount> {
        let watches = arm.entries.iter().filter_map(|entry| entry.record.watch.as_deref());
        let threads = watches.flat_map(|watch| &watch.threads).filter(|thread| thread.name == name);
        account(threads.map(|thread| thread.account.as_ref())).filter(|account| account.total() > Span(0))
    };
    let mut names = threads(a);
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
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
    names.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use punctual_model::{WatchRecord, WatchedThread};

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
        let [a, b] = [0, 1].map(|at| Arm { name: String::new(), entries: vec![&run.entries[at]] });
        let control =
            ChangedAccount { thread: "control".to_owned(), ran_percent: (10.0, 10.0), waited_percent: (30.0, 2.0) };
        assert_eq!((changed(&a, &b), changed(&a, &a)), (vec![control], vec![]));
    }
}
