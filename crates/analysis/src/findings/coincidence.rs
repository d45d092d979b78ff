//! Coincidences: events in the worst seconds, which may or may not be the cause.

use super::{Finding, when};
use crate::summary::pool::Pool;
use crate::wording::{duration, number};
use punctual_model::{Entry, Header, MachineSecond, Order, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

finding!(
    /// CPU time taken by the hypervisor during the measurement: a coincidence, not a proven cause.
    pub struct Steal {
        /// CPU time taken, ms.
        pub steal_ms: u64,
        /// Share of the available CPU time, 0 to 1; `None` if the number of CPUs is unknown.
        pub share: Option<f64>,
    },
    importance = 5,
    {
        let took = duration(*steal_ms as f64 * 1e6);
        let share = share.map(|share| format!(" ({} %)", number(share * 100.0))).unwrap_or_default();
        format!("steal time: the hypervisor took {took} of CPU time{share}; it may or may not be the cause")
    },
    [Steal { steal_ms: 10, share: Some(0.0008) }]
);

finding!(
    /// An event in most of the worst seconds, and in few of the others: not a proven cause.
    pub struct Coincidence {
        /// The event.
        pub what: String,
        /// Number of the worst seconds with it.
        pub in_worst: usize,
        /// Number of the worst seconds.
        pub worst: usize,
        /// Number of the other seconds with it.
        pub in_others: usize,
        /// Number of the other seconds.
        pub others: usize,
    },
    importance = 5,
    format!(
        "coincidence: {what} in {in_worst} of the {worst} worst seconds, and in {in_others} of the other {others}; it \
             may or may not be the cause"
    ),
    [Coincidence { what: "steal time".into(), in_worst: 9, worst: 10, in_others: 3, others: 50 }]
);

/// Number of the worst seconds.
const WORST: usize = 5;
/// Fewest seconds for a comparison of the worst with the others.
const SECONDS: usize = 20;
/// Fewest of the worst seconds with an event that is reported.
const AT_LEAST: usize = 3;
/// Probability of a false positive, over all kinds of events together.
const BY_ACCIDENT: f64 = 0.05;
/// Most events that are reported, the most significant first.
const SAID: usize = 2;

/// Events in most of the worst seconds, and in few of the others.
pub(super) fn findings(pool: &Pool<'_>) -> Vec<Finding> {
    let mut seconds: Vec<(i64, &MachineSecond)> = pool.entries.iter().flat_map(|entry| rows(entry)).collect();
    if seconds.len() < SECONDS {
        return Vec::new();
    }
    seconds.order_by_key(|(max_ns, _)| Reverse(*max_ns));
    let (worst, others) = seconds.split_at(WORST);
    let (among_worst, among_others) = (count(worst), count(others));
    // Bonferroni's correction: many kinds of interrupts give many chances of a false positive.
    let kinds = among_worst.keys().chain(among_others.keys()).collect::<BTreeSet<_>>().len() as f64;
    let mut found = Vec::new();
    for (what, in_worst) in among_worst {
        let in_others = among_others.get(&what).copied().unwrap_or(0);
        let chance = chance(in_worst, worst.len(), in_worst + in_others, seconds.len());
        if in_worst >= AT_LEAST && chance * kinds < BY_ACCIDENT {
            found.push(Coincidence { what, in_worst, worst: worst.len(), in_others, others: others.len() });
        }
    }
    found.order_by_key(|found| (found.in_others, Reverse(found.in_worst)));
    found.into_iter().take(SAID).map(Finding::from).collect()
}

/// CPU time stolen by the hypervisor within the measured windows.
pub(super) fn steal(header: &Header, pool: &Pool<'_>) -> Option<Finding> {
    let seconds = || pool.entries.iter().flat_map(|entry| &entry.record.machine).filter(|second| second.at > Span(0));
    let known = || seconds().filter_map(|second| Some((second.steal_ms?, second.elapsed)));
    let steal_ms: u64 = known().map(|(steal_ms, _)| steal_ms).sum();
    let elapsed: f64 = known().map(|(_, elapsed)| elapsed.as_secs_f64()).sum();
    let cpus = header.host.cpus_online.as_ref().map(punctual_model::CpuSet::len).filter(|cpus| *cpus > 0);
    let share = cpus.map(|cpus| steal_ms as f64 / 1e3 / elapsed / cpus as f64);
    when(steal_ms > 0, Steal { steal_ms, share })
}

/// Upper tail of the hypergeometric distribution: the chance that at least `hits` of `drawn` seconds, drawn at random
/// from `all`, are among the `marked` ones.
fn chance(hits: usize, drawn: usize, marked: usize, all: usize) -> f64 {
    let choose = |n: usize, k: usize| (0..k).map(|i| (n as f64 - i as f64) / (k - i) as f64).product::<f64>();
    let of = |i: usize| choose(marked, i) * choose(all - marked, drawn - i) / choose(all, drawn);
    (hits..=drawn.min(marked)).filter(|i| drawn - i <= all - marked).map(of).sum()
}

/// Every second of the machine with a wake-up, with the largest latency in it.
fn rows(entry: &Entry) -> Vec<(i64, &MachineSecond)> {
    let record = &entry.record;
    let mut maxima = vec![None; record.machine.len()];
    for thread in &record.threads {
        for second in &thread.seconds {
            let (Some(max_ns), Some(cycle)) = (second.max_ns, second.max_cycle) else { continue };
            // The first row that was read after the end of the wake-up.
            let due_ns = thread.offset.ns().saturating_add(cycle.saturating_mul(thread.period_in(&record.cell).ns()));
            let woke_ns = due_ns.saturating_add_signed(max_ns);
            let row = record.machine.iter().position(|row| row.at.ns() >= woke_ns);
            if let Some(slot) = row.and_then(|row| maxima.get_mut(row)) {
                *slot = (*slot).max(Some(max_ns));
            }
        }
    }
    maxima.into_iter().zip(&record.machine).filter_map(|(max_ns, row)| Some((max_ns?, row))).collect()
}

/// Number of the seconds with each event.
fn count(seconds: &[(i64, &MachineSecond)]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for what in seconds.iter().flat_map(|(_, row)| happened(row)) {
        *counts.entry(what).or_insert(0) += 1;
    }
    counts
}

/// Events in one second, in words.
fn happened(row: &MachineSecond) -> Vec<String> {
    let named = [
        ("steal time", row.steal_ms),
        ("page faults with I/O", row.major_faults),
        ("CPU migrations of a measured thread", row.migrations),
        ("CPU throttling of the cgroup", row.group_throttlings),
        ("thermal throttling", row.heat_throttlings),
        ("system management interrupts", row.smis),
    ];
    let named = named.into_iter().filter(|(_, count)| count.is_some_and(|count| count > 0));
    let interrupts = row.interrupts_by_kind.keys().map(|kind| format!("IRQs {kind} on measured CPUs"));
    let soft = row.soft_interrupts_by_kind.keys().map(|kind| format!("softirqs {kind} on measured CPUs"));
    named.map(|(what, _)| what.to_owned()).chain(interrupts).chain(soft).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::cell::tests::{findings_of, steady};
    use crate::summarise;
    use crate::testing::RunBuilder;

    /// 30 seconds at 1 ms in one block: the wake-ups of the seconds `late` are late.
    fn run(late: &[u64], change: impl Fn(u64, &mut MachineSecond)) -> Vec<String> {
        let mut run = RunBuilder::new();
        run.cell("none", "other").measure(0, 0, |_, _| 5_000);
        let record = &mut run.entries[0].record;
        record.threads.truncate(1);
        record.threads[0].seconds = (0..30)
            .map(|second| punctual_model::Second {
                second,
                max_ns: Some(if late.contains(&second) { 900_000 } else { 5_000 }),
                max_cycle: Some(second * 1000 + 500),
                ..punctual_model::Second::default()
            })
            .collect();
        record.machine = (0..30)
            .map(|second| {
                let at = Span((second + 1) * 1_000_000_000);
                let mut row = MachineSecond { at, elapsed: Span::SECOND, ..MachineSecond::default() };
                change(second, &mut row);
                row
            })
            .collect();
        let findings = summarise(&run.header, &run.entries).cell_findings.remove(0);
        findings.iter().map(ToString::to_string).filter(|text| text.contains("worst seconds")).collect()
    }

    #[test]
    fn what_is_in_most_of_the_worst_seconds_and_seldom_in_others_is_said() {
        let late = [3, 8, 13, 18, 23];
        let said = run(&late, |second, row| row.steal_ms = Some(if [3, 8, 13, 20].contains(&second) { 10 } else { 0 }));
        assert_eq!(
            said,
            ["coincidence: steal time in 3 of the 5 worst seconds, and in 1 of the other 25; it may or may not be \
                 the cause"]
        );
        let in_two = run(&late, |second, row| row.steal_ms = Some(u64::from([3, 8].contains(&second))));
        assert_eq!(in_two, Vec::<String>::new());
        let in_all = run(&late, |_, row| row.steal_ms = Some(10));
        assert_eq!(in_all, Vec::<String>::new(), "as often in the others");
    }

    #[test]
    fn the_chance_is_that_of_drawing_without_putting_back() {
        // 4 marked among 30, 5 drawn, at least 3 hits: (4 x 325 + 26) / 142506.
        assert!((chance(3, 5, 4, 30) - 1326.0 / 142_506.0).abs() < 1e-12);
        assert!((chance(0, 5, 4, 30) - 1.0).abs() < 1e-12);
        assert!((chance(5, 5, 30, 30) - 1.0).abs() < 1e-12);
        assert!(chance(5, 5, 4, 30).abs() < f64::MIN_POSITIVE);
    }

    #[test]
    fn kinds_of_interrupts_are_told_apart() {
        let said = run(&[1, 2, 3, 4, 5], |second, row| {
            row.interrupts_by_kind.insert("LOC".to_owned(), 1000);
            if second < 6 {
                row.interrupts_by_kind.insert("30:virtio1-req.0".to_owned(), 7);
            }
        });
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("coincidence: IRQs 30:virtio1-req.0 on measured CPUs in 5 of the 5 worst seconds"),
            "{said:?}"
        );
    }

    #[test]
    fn steal_counts_within_the_window_only() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80").measure(0, 0, steady);
        let second =
            |at, steal_ms| MachineSecond { at: Span(at), elapsed: Span::SECOND, steal_ms, ..MachineSecond::default() };
        run.entries[0].record.machine =
            vec![second(0, Some(500)), second(1_000_000_000, Some(30)), second(2_000_000_000, None)];
        assert_eq!(
            findings_of(&run),
            [Steal { steal_ms: 30, share: Some(0.015) }.into()],
            "a row that is not known has no part in the share"
        );
    }
}
