//! Findings about real-time threads in states that delay them or others.

use super::{Finding, when};
use crate::summary::pool::Pool;
use crate::summary::watched::WatchedSummary;
use crate::wording::{duration, things};
use punctual_model::{Policy, Releases, SpinningTask};
use std::collections::{BTreeMap, BTreeSet};

finding!(
    /// Several real-time threads may use one CPU only, the same one.
    pub struct OnOneCpu {
        /// The CPU.
        pub cpu: u32,
        /// Names of the threads, with their policies.
        pub threads: Vec<String>,
        /// ID of the last of them.
        pub tid: u32,
    },
    importance = 2,
    {
        let threads = threads.join(", ");
        format!(
            "one CPU for several real-time threads: {threads} are bound to CPU {cpu} and delay each other; move one: taskset \
             -pc CPU {tid}"
        )
    },
    [OnOneCpu { cpu: 1, threads: vec!["control (fifo:80)".to_owned(), "vision (fifo:70)".to_owned()], tid: 4712 }]
);

finding!(
    /// A real-time thread has the highest priority, above those of interrupts and of the kernel itself.
    pub struct HighestPriority {
        /// Name of the thread.
        pub thread: String,
        /// Its ID; `null` for measured threads.
        pub tid: Option<u32>,
    },
    importance = 4,
    {
        let lower = tid.map_or_else(|| "--policy fifo:98".to_owned(), |tid| format!("chrt --fifo --pid 80 {tid}"));
        format!(
            "priority 99: {thread} delays interrupt threads and the kernel's migration and watchdog threads; {lower}"
        )
    },
    [
        HighestPriority { thread: "control".to_owned(), tid: Some(4711) },
        HighestPriority { thread: "the measured thread".to_owned(), tid: None },
    ]
);

finding!(
    /// A real-time thread of another program keeps a CPU busy.
    pub struct Spinning {
        /// The thread.
        pub task: SpinningTask,
    },
    importance = 1,
    format!("spinning real-time thread: {task}; it may be left over: kill {}", task.tid),
    [Spinning {
        task: SpinningTask {
            tid: 815,
            name: "old-loop".to_owned(),
            policy: "fifo".to_owned(),
            priority: Some(50),
            used_percent: 95,
        },
    }]
);

finding!(
    /// A real-time thread had page faults, and its process has locked no memory.
    pub struct FaultsUnlocked {
        /// Name of the thread.
        pub thread: String,
        /// Page faults within its activations.
        pub page_faults: u64,
    },
    importance = 3,
    {
        let faults = things(*page_faults, "page fault");
        format!(
            "memory not locked: {thread} had {faults} and its process has locked none; mlockall(MCL_CURRENT | MCL_FUTURE)"
        )
    },
    [FaultsUnlocked { thread: "control".to_owned(), page_faults: 12 }]
);

finding!(
    /// The kernel may delay the timer of a normal thread by a notable part of its period.
    pub struct SlackOfWait {
        /// Name of the thread.
        pub thread: String,
        /// Its ID.
        pub tid: u32,
        /// The slack, ns.
        pub slack_ns: u64,
        /// Its period, ns.
        pub period_ns: u64,
    },
    importance = 4,
    {
        let slack = duration(*slack_ns as f64);
        let percent = *slack_ns as f64 * 100.0 / *period_ns as f64;
        format!(
            "timer slack: {thread} may wake {slack} late, {percent:.0} % of its period; echo 1 | sudo tee \
             /proc/{tid}/timerslack_ns (undo: echo 0)"
        )
    },
    [SlackOfWait { thread: "control".to_owned(), tid: 4711, slack_ns: 50_000, period_ns: 1_000_000 }]
);

/// Share of the period below which a timer slack is not notable.
const NOTABLE: f64 = 0.01;

/// Whether a policy has the highest priority.
fn is_highest(policy: Policy) -> bool {
    matches!(policy, Policy::Fifo(priority) | Policy::RoundRobin(priority) if priority.get() == 99)
}

/// Findings about threads that this program measures.
pub(super) fn of_measured(pool: &Pool<'_>) -> Option<Finding> {
    let is_own = pool.cell.task.watch().is_none();
    let found = pool.threads().any(|(_, thread)| is_highest(thread.achieved.policy));
    when(is_own && found, HighestPriority { thread: "the measured thread".to_owned(), tid: None })
}

/// Findings about watched threads.
pub(super) fn of_watched(threads: &[WatchedSummary]) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    let mut bound: BTreeMap<u32, Vec<&WatchedSummary>> = BTreeMap::new();
    for thread in threads {
        let (name, tid) = (thread.name.clone(), thread.tid);
        let is_realtime = thread.policy.is_some_and(Policy::is_realtime);
        if let Some(cpu) =
            thread.cpus.as_ref().filter(|cpus| is_realtime && cpus.len() == 1).and_then(|cpus| cpus.iter().next())
        {
            bound.entry(cpu).or_default().push(thread);
        }
        all.extend(when(
            thread.policy.is_some_and(is_highest),
            HighestPriority { thread: name.clone(), tid: Some(tid) },
        ));
        let page_faults = thread.page_faults;
        let is_unlocked = is_realtime && page_faults > 0 && thread.memory_locked_bytes == Some(0);
        all.extend(when(is_unlocked, FaultsUnlocked { thread: name.clone(), page_faults }));
        let Releases { timer, .. } = thread.releases;
        if let (Some(slack_ns), Some(found)) = (thread.timer_slack_ns, thread.period) {
            let period_ns = found.period.ns();
            let is_notable = timer * 2 > thread.activations && slack_ns as f64 >= period_ns as f64 * NOTABLE;
            all.extend(when(is_notable, SlackOfWait { thread: name, tid, slack_ns, period_ns }));
        }
    }
    for (cpu, threads) in bound.into_iter().filter(|(_, threads)| threads.len() > 1) {
        let policy = |thread: &WatchedSummary| thread.policy.map_or_else(String::new, |policy| policy.to_string());
        let names = threads.iter().map(|thread| format!("{} ({})", thread.name, policy(thread))).collect();
        all.extend(threads.last().map(|last| Finding::from(OnOneCpu { cpu, threads: names, tid: last.tid })));
    }
    all
}

/// Findings about threads of other programs than the watched ones, `ours`.
pub(super) fn of_others<'a>(tasks: impl Iterator<Item = &'a SpinningTask>, ours: &BTreeSet<u32>) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let others = tasks.filter(|task| !ours.contains(&task.tid) && seen.insert(task.tid));
    others.map(|task| Spinning { task: task.clone() }.into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{CpuSet, FoundPeriod, Period, Span, WatchedThread};

    fn watched(policy: &str, change: impl Fn(&mut WatchedThread)) -> WatchedSummary {
        let period =
            Some(FoundPeriod { period: Period::try_from(Span(1_000_000)).unwrap(), is_given: false, regular: 1.0 });
        let mut thread = WatchedThread {
            tid: 7,
            name: "x".to_owned(),
            policy: Some(policy.parse().unwrap()),
            cpus: Some(CpuSet::from_iter([1])),
            activations: 10,
            releases: Releases { timer: 10, ..Releases::default() },
            period,
            ..WatchedThread::default()
        };
        change(&mut thread);
        WatchedSummary::of(&thread, &[], true, 0.95).unwrap()
    }

    #[test]
    fn unfit_states_are_found_with_their_evidence_only() {
        let fault = |locked: Option<u64>| {
            move |thread: &mut WatchedThread| (thread.page_faults, thread.memory_locked_bytes) = (3, locked)
        };
        let slack = |ns: u64| move |thread: &mut WatchedThread| thread.timer_slack = Some(Span(ns));
        for (thread, expected) in [
            (watched("fifo:80", |_| {}), ""),
            (watched("fifo:99", |_| {}), "priority 99"),
            (watched("rr:99", |_| {}), "priority 99"),
            (watched("fifo:80", fault(Some(0))), "memory not locked"),
            (watched("fifo:80", fault(Some(4096))), ""),
            (watched("fifo:80", fault(None)), ""),
            (watched("other", fault(Some(0))), ""),
            (watched("other", slack(50_000)), "timer slack"),
            (watched("other", slack(9_999)), ""),
            (
                watched("other", |thread| {
                    (thread.timer_slack, thread.releases) = (Some(Span(50_000)), Releases::default())
                }),
                "",
            ),
        ] {
            let found: Vec<String> = of_watched(&[thread]).iter().map(ToString::to_string).collect();
            let heads: Vec<&str> = found.iter().filter_map(|text| text.split(':').next()).collect();
            assert_eq!(heads.join(","), expected, "{found:#?}");
        }
    }

    #[test]
    fn real_time_threads_of_one_cpu_are_one_finding() {
        let [a, b] = ["fifo:80", "rr:5"].map(|policy| watched(policy, |_| {}));
        let free = watched("fifo:80", |thread| thread.cpus = Some(CpuSet::from_iter(0..2)));
        let normal = watched("other", |_| {});
        assert_eq!(of_watched(&[a.clone(), free, normal]), []);
        let threads = vec!["x (fifo:80)".to_owned(), "x (rr:5)".to_owned()];
        assert_eq!(of_watched(&[a, b]), [OnOneCpu { cpu: 1, threads, tid: 7 }.into()]);
    }

    #[test]
    fn a_spinning_thread_is_found_once_unless_it_is_watched() {
        let task = |tid| SpinningTask {
            tid,
            name: "x".to_owned(),
            policy: "fifo".to_owned(),
            priority: Some(1),
            used_percent: 95,
        };
        let tasks = [task(7), task(8), task(8)];
        assert_eq!(of_others(tasks.iter(), &BTreeSet::from([7])), [Spinning { task: task(8) }.into()]);
    }
}
