//! Watched threads of a cell over all its blocks: their activations in figures.

use crate::stats::histogram::merged;
use crate::stats::levels::Quantiles;
use crate::stats::quantile::quantile;
use crate::summary::packets::{self, PacketSummary};
use crate::summary::pool::Pool;
use crate::summary::spread::Spread;
use punctual_model::{
    ChainRecord, ChainStage, CountedName, CpuSet, FoundPeriod, Histogram, InterruptTime, NamedTime, OpenActivation,
    OpenKind, Order, OtherThread, PhaseKind, PhaseRecord, Policy, RefusedCall, Releases, SettingChange, SleepTime,
    Slice, Span, ThreadRecord, ThrottledTime, TimeAccount, WatchRecord, WatchedThread,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The watched threads of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WatchSummary {
    /// The program that the cell started, as words; empty when it watched running ones.
    pub command_line: Vec<String>,
    /// How the program ended by itself, in the first block in which it did; `null` if it never did.
    pub status: Option<String>,
    /// Measured time of that block until then, ns.
    pub ended_after_ns: Option<u64>,
    /// The threads, those of the highest priority and rate first. Threads of one name in several blocks are one.
    pub threads: Vec<WatchedSummary>,
    /// Threads that never waited for a further activation, in the block with most of them.
    pub inactive: u64,
    /// Those of them that ran or were not asleep at the end of a block: of each name the one that ran most.
    pub others: Vec<OtherThread>,
    /// Those of them that were not asleep at the end of a block, with their state, as text: nothing is known of them.
    pub unseen: Vec<String>,
    /// Calls that asked for a policy, CPUs or locked memory and were refused, those of the first block with each.
    pub refused: Vec<RefusedCall>,
    /// The chain; `null` if none was requested.
    pub chain: Option<ChainSummary>,
    /// Gaps in the trace of the threads' activity: events were lost.
    pub gaps: u64,
    /// Share of one CPU that reading the events took; `null` when it cannot be read.
    pub watching_cpus: Option<f64>,
    /// Events that the kernel cannot trace, and what is unknown without them.
    pub missing: Vec<String>,
    /// Number of threads beyond the most that are watched, the largest of all blocks; `null` if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
}

/// Activations of one thread. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WatchedSummary {
    /// Its name.
    pub name: String,
    /// Thread ID in the first block.
    pub tid: u32,
    /// Policy in the first block; `null` when unknown.
    pub policy: Option<Policy>,
    /// CPUs that it may use, in the first block; `null` when unknown.
    pub cpus: Option<CpuSet>,
    /// CPU on which most activations of the first block began.
    pub cpu: u32,
    /// The call in which it waits for its next activation, as text.
    pub wait: String,
    /// Its period in the first block; `null` when its activations are not periodic.
    pub period: Option<FoundPeriod>,
    /// Response time above which an activation is late; `null` when unknown.
    #[serde(rename = "deadline_ns")]
    #[schemars(with = "Option<u64>")]
    pub deadline: Option<Span>,
    /// Complete activations.
    pub activations: u64,
    /// Due times that passed while an activation before them was not over.
    pub skipped: u64,
    /// Activations later than the deadline, with those that were not over at the end of a block; `null` without a
    /// deadline.
    pub late: Option<u64>,
    /// Most activations that the complete ones may be; `null` where none may be several.
    pub activations_at_most: Option<u64>,
    /// What released the activations.
    pub releases: Releases,
    /// Threads that released most of them.
    pub wakers: Vec<CountedName>,
    /// Those that packets released; `null`: a softirq released none, or a record does not say.
    pub packets: Option<PacketSummary>,
    /// Response time, with intervals.
    pub response: Quantiles,
    /// Largest response time of a complete activation.
    pub response_max_ns: Option<i64>,
    /// Upper bound of the largest response time, where calls returned at once; `null` if it is the largest, or unknown.
    pub response_max_at_most_ns: Option<i64>,
    /// Lower bounds of the response times.
    #[serde(skip)]
    pub(crate) at_least: Histogram,
    /// Upper bounds of the response times; `None` if unknown.
    #[serde(skip)]
    pub(crate) at_most: Option<Histogram>,
    /// Median interval between releases.
    pub interval_p50_ns: Option<i64>,
    /// From the release until the program runs.
    pub latency: Spread,
    /// Difference of the interval between starts from the period; of no activation without a period.
    pub jitter: Spread,
    /// Time on the CPU.
    pub run: Spread,
    /// Time in which it was to run within an activation and did not.
    pub preempted: Spread,
    /// Time in which it slept within an activation.
    pub blocked: Spread,
    /// Threads that ran instead of it, most time first.
    pub preempted_by: Vec<NamedTime>,
    /// Where its time went; `null` if a record does not say.
    pub account: Option<TimeAccount>,
    /// Phases into which marks cut its activations, in their order; `null` without marks, or if a record does not say.
    pub phases: Option<Vec<PhaseSummary>>,
    /// Calls in which it slept within an activation, most time first.
    pub blocked_in: Vec<NamedTime>,
    /// Changes of its priority and of its CPUs, oldest first.
    pub changes: Vec<SettingChange>,
    /// Page faults within activations.
    pub page_faults: u64,
    /// Locked memory of its process at the end of the first block; `null` when unknown.
    pub memory_locked_bytes: Option<u64>,
    /// Time by which the kernel may delay the timer of its wait, in the first block; `null` without one.
    pub timer_slack_ns: Option<u64>,
    /// Changes of the CPU.
    pub migrations: u64,
    /// Whether its sleeps last a length of time instead of until an instant; `null` when that is not clear.
    pub is_relative: Option<bool>,
    /// When it ended or was stopped, as text; `null` if it ran to the end.
    pub ended: Option<String>,
    /// What it had not finished at the end of a block: the oldest of all blocks, of the gravest kind; `null` if there
    /// was nothing.
    pub open: Option<OpenActivation>,
}

impl WatchedSummary {
    /// What it had not finished at the end, where that was due: not a thread that had nothing to do.
    pub fn unfinished(&self) -> Option<&OpenActivation> {
        self.open.as_ref().filter(|open| open.kind != OpenKind::Silence)
    }

    /// Response time so far of what is not over, ns, if it is larger than every complete one.
    pub fn open_ns(&self) -> Option<i64> {
        let so_far = i64::try_from(self.unfinished()?.at_least.ns()).ok();
        so_far.filter(|open_ns| Some(*open_ns) > self.response_max_ns)
    }
}

/// A phase of the activations of a thread. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PhaseSummary {
    /// Its kind.
    pub phase: PhaseKind,
    /// The mark that begins it; empty for other kinds.
    pub mark: String,
    /// Activations that have it: of a mark, those that passed it.
    pub activations: u64,
    /// Activations that do not.
    pub without: u64,
    /// Passes of its mark after the first one of an activation.
    pub repeated: u64,
    /// From the release to its beginning: the lateness of its mark.
    pub since_release: Spread,
    /// Its length.
    pub length: Spread,
    /// Its share of the time of all activations; `null` without any.
    pub share: Option<f64>,
    /// Its share of the time by which the phases of late activations exceed their medians; `null` without late ones.
    pub late_share: Option<f64>,
}

/// A chain of threads.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ChainSummary {
    /// Names of the threads, from the first to the last.
    pub threads: Vec<String>,
    /// Activations of the last thread that the chain released.
    pub n: u64,
    /// Those that something else released.
    pub other: u64,
    /// From the release of the first thread to the end of the last one's activation.
    pub latency: Spread,
    /// From the release of the first thread until the last one runs: age of its data then.
    pub age: Spread,
    /// Stages, in order.
    pub stages: Vec<StageSummary>,
}

/// A stage of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StageSummary {
    /// The thread.
    pub thread: String,
    /// Whether it is from the release of the thread until it runs; else from then until it wakes the next, or ends.
    pub is_wake_up: bool,
    /// Its lengths.
    #[serde(flatten)]
    pub length: Spread,
    /// Its share of the end-to-end latency, by the means; `null` without any.
    pub share: Option<f64>,
}

impl WatchedSummary {
    /// The summary of one measurement of a thread, with its samples in slices and figures of this confidence;
    /// `is_sampled`: the samples are its response times.
    pub fn of(one: &WatchedThread, slices: &[Slice], is_sampled: bool, confidence: f64) -> Option<WatchedSummary> {
        thread(&[(one, slices)], is_sampled, confidence)
    }
}

impl PhaseSummary {
    /// Its name: that of its mark, or one in parentheses.
    pub fn name(&self) -> &str {
        match self.phase {
            PhaseKind::WakeUp => "(wake-up)",
            PhaseKind::Start => "(start)",
            PhaseKind::Mark => &self.mark,
            PhaseKind::OtherMark => "(other marks)",
        }
    }
}

impl ChainSummary {
    /// The summary of one measurement of a chain.
    pub fn of(one: &ChainRecord) -> Option<ChainSummary> {
        chain(&[one])
    }
}

/// Name of a thread, and its place among those of that name.
type Key<'a> = (&'a str, usize);

/// A thread in one block, with its samples in slices.
pub(crate) type Watched<'a> = (&'a WatchedThread, &'a [Slice]);

/// The watched threads of a cell; `None` for every method but `watch`, or without a record.
pub(crate) fn of(pool: &Pool<'_>) -> Option<WatchSummary> {
    let records: Vec<(&WatchRecord, &[ThreadRecord])> = (pool.entries.iter())
        .filter_map(|entry| Some((entry.record.watch.as_deref()?, &entry.record.threads[..])))
        .collect();
    let ended = pool.entries.iter().find_map(|entry| {
        let status = entry.record.watch.as_deref()?.status.clone()?;
        Some((status, entry.record.measured.ns()))
    });
    let (first, _) = *records.first()?;
    let mut groups: Vec<(Key<'_>, Vec<Watched<'_>>)> = Vec::new();
    for (record, threads) in &records {
        for (index, thread) in record.threads.iter().enumerate() {
            // Threads of one name are distinguished by their order.
            let before = record.threads.iter().take(index).filter(|other| other.name == thread.name).count();
            let slices = threads.get(index).map_or(&[][..], |measured| &measured.slices);
            let key = (thread.name.as_str(), before);
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, all)) => all.push((thread, slices)),
                None => groups.push((key, vec![(thread, slices)])),
            }
        }
    }
    let is_sampled = pool.cell.task.watch().is_some_and(|watch| watch.sample == punctual_model::WatchSample::Response);
    let threads = groups.iter().filter_map(|(_, all)| thread(all, is_sampled, pool.confidence)).collect();
    let used: Option<u64> = records.iter().map(|(record, _)| record.watching_us).sum();
    let chains: Vec<&ChainRecord> = records.iter().filter_map(|(record, _)| record.chain.as_ref()).collect();
    let distinct = |of: fn(&WatchRecord) -> &[String]| -> Vec<String> {
        let all: BTreeSet<&String> = records.iter().flat_map(|(record, _)| of(record)).collect();
        all.into_iter().cloned().collect()
    };
    let of_all = || records.iter().flat_map(|(record, _)| &record.others);
    let awake = of_all().filter(|other| other.state.is_awake());
    let awake = awake.map(|other| format!("{} ({})", other.name, other.state));
    let unseen: BTreeSet<String> = distinct(|record| &record.unseen).into_iter().chain(awake).collect();
    let mut others: Vec<OtherThread> = Vec::new();
    for other in of_all() {
        match others.iter_mut().find(|known| known.name == other.name) {
            Some(known) if known.ran < other.ran => *known = other.clone(),
            Some(_) => {}
            None => others.push(other.clone()),
        }
    }
    others.order_by_key(|other| Reverse(other.ran));
    let of_older = |thread: &WatchedThread| -> Vec<RefusedCall> {
        let named = |call: &RefusedCall| RefusedCall { thread: thread.name.clone(), ..call.clone() };
        thread.refused.iter().map(named).collect()
    };
    let mut refused: Vec<RefusedCall> = Vec::new();
    let of_all_blocks = records
        .iter()
        .flat_map(|(record, _)| record.refused.iter().cloned().chain(record.threads.iter().flat_map(of_older)));
    for call in of_all_blocks {
        let is_known =
            |known: &RefusedCall| (&known.thread, &known.call, &known.asked) == (&call.thread, &call.call, &call.asked);
        if !refused.iter().any(is_known) {
            refused.push(call);
        }
    }
    Some(WatchSummary {
        command_line: first.command_line.clone(),
        ended_after_ns: ended.as_ref().map(|(_, after_ns)| *after_ns),
        status: ended.map(|(status, _)| status),
        threads,
        inactive: records.iter().map(|(record, _)| record.inactive).max().unwrap_or(0),
        unseen: unseen.into_iter().collect(),
        others,
        refused,
        chain: chain(&chains),
        gaps: records.iter().map(|(record, _)| record.gaps).sum(),
        watching_cpus: used
            .filter(|_| pool.measured() > Span(0))
            .map(|us| us as f64 * 1e3 / pool.measured().ns() as f64),
        missing: distinct(|record| &record.missing),
        left_out: records.iter().filter_map(|(record, _)| record.left_out).max(),
    })
}

fn thread(all: &[Watched<'_>], is_sampled: bool, confidence: f64) -> Option<WatchedSummary> {
    let (first, _) = *all.first()?;
    let sum = |of: fn(&WatchedThread) -> u64| all.iter().map(|(thread, _)| of(thread)).sum();
    let pooled = |of: fn(&WatchedThread) -> &Histogram| merged(all.iter().map(|(thread, _)| of(thread)));
    let spread = |of: fn(&WatchedThread) -> &Histogram| Spread::of(&pooled(of));
    let response = pooled(|thread| &thread.response);
    // Where the sample is another time, the response time has no time series.
    let slices = all.iter().filter(|_| is_sampled).flat_map(|(_, slices)| slices.iter());
    let slices: Vec<Histogram> = slices.map(|slice| slice.histogram.clone()).collect();
    let at_least = pooled(|thread| thread.response_at_least.as_ref().unwrap_or(&thread.response));
    let has_several = all.iter().any(|(thread, _)| thread.response_at_least.is_some());
    let of_one = |thread: &WatchedThread| {
        let slept_always = thread.releases.immediate == 0;
        thread.response_at_most.clone().or_else(|| slept_always.then(|| thread.response.clone()))
    };
    let at_most: Option<Vec<Histogram>> = all.iter().map(|(thread, _)| of_one(thread)).collect();
    let at_most = at_most.map(|all| merged(all.iter()));
    let releases = all.iter().fold(Releases::default(), |sum, (thread, _)| Releases {
        timer: sum.timer + thread.releases.timer,
        thread: sum.thread + thread.releases.thread,
        interrupt: sum.interrupt + thread.releases.interrupt,
        immediate: sum.immediate + thread.releases.immediate,
    });
    Some(WatchedSummary {
        name: first.name.clone(),
        tid: first.tid,
        policy: first.policy,
        cpus: first.cpus.clone(),
        cpu: first.cpu,
        wait: first.wait.clone(),
        period: first.period,
        // Without one in a block, its misses are unknown.
        deadline: first.deadline.filter(|_| all.iter().all(|(thread, _)| thread.deadline.is_some())),
        activations: sum(|thread| thread.activations),
        skipped: sum(|thread| thread.skipped),
        late: all.iter().map(|(thread, _)| thread.deadline.map(|_| thread.late)).sum(),
        activations_at_most: at_most.as_ref().map(|all| all.n).filter(|_| has_several),
        releases,
        wakers: first.wakers.clone(),
        packets: packets::of(all.iter().filter_map(|(thread, _)| thread.packets.as_ref())),
        response: Quantiles::of(&response, &slices, confidence),
        response_max_ns: response.max_ns,
        response_max_at_most_ns: at_most.as_ref().and_then(|all| all.max_ns).filter(|_| releases.immediate > 0),
        at_least,
        at_most,
        interval_p50_ns: spread(|thread| &thread.interval).p50_ns,
        latency: spread(|thread| &thread.latency),
        jitter: spread(|thread| &thread.jitter),
        run: spread(|thread| &thread.run),
        preempted: spread(|thread| &thread.preempted),
        blocked: spread(|thread| &thread.blocked),
        preempted_by: times(all.iter().flat_map(|(thread, _)| &thread.preempted_by)),
        phases: phases(all),
        account: account(all.iter().map(|(thread, _)| thread.account.as_ref())),
        blocked_in: times(all.iter().flat_map(|(thread, _)| &thread.blocked_in)),
        changes: all.iter().flat_map(|(thread, _)| thread.changes.iter().cloned()).collect(),
        page_faults: sum(|thread| thread.page_faults),
        memory_locked_bytes: first.memory_locked_bytes,
        timer_slack_ns: first.timer_slack.map(Span::ns),
        migrations: sum(|thread| thread.migrations),
        is_relative: first.is_relative,
        ended: all.iter().find_map(|(thread, _)| thread.ended.clone()),
        open: all
            .iter()
            .filter_map(|(thread, _)| thread.open.as_ref())
            .max_by_key(|open| (open.kind, open.at_least))
            .cloned(),
    })
}

/// The phases of several blocks as one.
pub(crate) fn phases(all: &[Watched<'_>]) -> Option<Vec<PhaseSummary>> {
    let of_blocks: Vec<&Vec<PhaseRecord>> =
        all.iter().map(|(thread, _)| thread.phases.as_ref()).collect::<Option<_>>()?;
    let mut groups: Vec<Vec<&PhaseRecord>> = Vec::new();
    for one in of_blocks.into_iter().flatten() {
        let is_it = |known: &&mut Vec<&PhaseRecord>| {
            known.iter().any(|other| (other.phase, &other.mark) == (one.phase, &one.mark))
        };
        match groups.iter_mut().find(is_it) {
            Some(known) => known.push(one),
            None => groups.push(vec![one]),
        }
    }
    let activations: u64 = all.iter().map(|(thread, _)| thread.activations).sum();
    // Above the median in late activations, ns.
    let excess = |group: &[&PhaseRecord], length: &Histogram| {
        let late: u64 = group.iter().map(|one| one.late).sum();
        let late_ns: u64 = group.iter().map(|one| one.late_length.ns()).sum();
        (late_ns as f64 - late as f64 * quantile(length, 0.5).unwrap_or(0) as f64).max(0.0)
    };
    let lengths: Vec<Histogram> = groups.iter().map(|group| merged(group.iter().map(|one| &one.length))).collect();
    let excesses: Vec<f64> = groups.iter().zip(&lengths).map(|(group, length)| excess(group, length)).collect();
    let (all_ns, all_excess) = (lengths.iter().map(|one| one.sum_ns as f64).sum::<f64>(), excesses.iter().sum::<f64>());
    let share = |ns: f64, of: f64| (of > 0.0).then(|| ns / of);
    let phase = |((group, length), excess): ((&Vec<&PhaseRecord>, &Histogram), &f64)| {
        let first = *group.first()?;
        Some(PhaseSummary {
            phase: first.phase,
            mark: first.mark.clone(),
            activations: length.n,
            without: activations.saturating_sub(length.n),
            repeated: group.iter().map(|one| one.repeated).sum(),
            since_release: Spread::of(&merged(group.iter().map(|one| &one.since_release))),
            length: Spread::of(length),
            share: share(length.sum_ns as f64, all_ns),
            late_share: share(*excess, all_excess),
        })
    };
    groups.iter().zip(&lengths).zip(&excesses).map(phase).collect()
}

/// The accounts of several blocks as one.
pub(crate) fn account<'a>(all: impl Iterator<Item = Option<&'a TimeAccount>>) -> Option<TimeAccount> {
    let all: Vec<&TimeAccount> = all.collect::<Option<_>>()?;
    let sum = |of: fn(&TimeAccount) -> Span| Span(all.iter().map(|one| of(one).ns()).sum());
    let interrupts: Option<Vec<&InterruptTime>> = all.iter().map(|one| one.interrupts.as_ref()).collect();
    let asleep: Option<Vec<&SleepTime>> = all.iter().map(|one| one.asleep_for.as_ref()).collect();
    Some(TimeAccount {
        running: sum(|one| one.running),
        interrupts: interrupts.map(|all| InterruptTime {
            total: Span(all.iter().map(|one| one.total.ns()).sum()),
            by: times(all.iter().flat_map(|one| &one.by)),
        }),
        waiting_for_cpu: sum(|one| one.waiting_for_cpu),
        throttled: all.iter().map(|one| one.throttled).collect::<Option<Vec<_>>>().map(|all| ThrottledTime {
            at_least: Span(all.iter().map(|one| one.at_least.ns()).sum()),
            at_most: Span(all.iter().map(|one| one.at_most.ns()).sum()),
        }),
        asleep: sum(|one| one.asleep),
        asleep_for: asleep.map(|all| {
            let sum = |of: fn(&SleepTime) -> Span| Span(all.iter().map(|one| of(one).ns()).sum());
            SleepTime {
                on_purpose: sum(|one| one.on_purpose),
                locks: sum(|one| one.locks),
                locks_of: times(all.iter().flat_map(|one| &one.locks_of)),
                memory: sum(|one| one.memory),
                uninterruptible: sum(|one| one.uninterruptible),
                stopped: sum(|one| one.stopped),
                others: sum(|one| one.others),
                unknown: sum(|one| one.unknown),
            }
        }),
        unknown: all.iter().map(|one| one.unknown.map(Span::ns)).sum::<Option<u64>>().map(Span),
        waited_for: times(all.iter().flat_map(|one| &one.waited_for)),
    })
}

/// Times of one name added up, most time first.
fn times<'a>(all: impl Iterator<Item = &'a NamedTime>) -> Vec<NamedTime> {
    let mut sums: Vec<NamedTime> = Vec::new();
    for one in all {
        match sums.iter_mut().find(|known| known.name == one.name) {
            Some(known) => {
                known.n += one.n;
                known.total = Span(known.total.ns() + one.total.ns());
                known.longest = known.longest.max(one.longest);
            }
            None => sums.push(one.clone()),
        }
    }
    sums.order_by_key(|time| std::cmp::Reverse(time.total));
    sums
}

fn chain(all: &[&ChainRecord]) -> Option<ChainSummary> {
    let first = *all.first()?;
    let pooled = |of: fn(&ChainRecord) -> &Histogram| merged(all.iter().map(|chain| of(chain)));
    let latency = pooled(|chain| &chain.latency);
    let stage = |(index, stage): (usize, &ChainStage)| {
        let lengths = merged(all.iter().filter_map(|chain| Some(&chain.stages.get(index)?.histogram)));
        let share = (latency.sum_ns > 0).then(|| lengths.sum_ns as f64 / latency.sum_ns as f64);
        StageSummary { thread: stage.thread.clone(), is_wake_up: stage.is_wake_up, length: Spread::of(&lengths), share }
    };
    Some(ChainSummary {
        threads: first.threads.clone(),
        n: latency.n,
        other: all.iter().map(|chain| chain.other).sum(),
        latency: Spread::of(&latency),
        age: Spread::of(&pooled(|chain| &chain.age)),
        stages: first.stages.iter().enumerate().map(stage).collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::summarise;
    use crate::testing::RunBuilder;
    use punctual_model::{Span, WatchRecord, WatchedThread};

    #[test]
    fn misses_are_unknown_if_a_block_found_no_period() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        for (block, deadline) in [(0, Some(Span(1_000_000))), (1, None)] {
            run.measure(block, 0, |_, _| 0);
            let thread = WatchedThread { name: "servo".to_owned(), deadline, ..WatchedThread::default() };
            let watch = WatchRecord { threads: vec![thread], ..WatchRecord::default() };
            run.entries.last_mut().unwrap().record.watch = Some(Box::new(watch));
        }
        run.header.cells[0].task = "watch:./servo".parse().unwrap();
        let summary = summarise(&run.header, &run.entries);
        let servo = &summary.cells[0].watch.as_ref().unwrap().threads[0];
        assert_eq!((servo.deadline, servo.late), (None, None));
        assert!(!summary.answer().to_string().contains("never late"), "{}", summary.answer());
    }
}
