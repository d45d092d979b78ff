//! Everything counted of the activations of one thread.

use super::activation::{Activation, Release};
use super::bounds::{Bounded, Bounds};
use super::calls::{Call, CallKind};
use super::marks::{Lengths, Phases};
use super::open::Open;
use super::packet_stages::PacketStages;
use super::period::PeriodFinder;
use super::samples::{Sample, Samples, Settings};
use crate::stats::quantile::quantile;
use punctual_model::{Histogram, NamedTime, Order, Period, Span, WatchSample, WatchedThread};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most different system calls, wakers and other threads that are counted.
const MOST_NAMES: usize = 64;
/// Activations that are known before a response time is unusual.
const ENOUGH: u64 = 50;
/// Largest standard deviation of waits of one length, as a share of their mean.
const ONE_LENGTH: f64 = 0.1;

/// Usual activation of a thread: medians, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usual {
    /// Time on the CPU.
    pub run_ns: u64,
    /// That outside of system calls.
    pub user_run_ns: u64,
    /// That in each system call.
    pub calls: BTreeMap<i64, u64>,
    /// Page faults.
    pub faults: u32,
    /// Response time.
    pub response_ns: u64,
}

/// Time of one name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) n: u64,
    pub(super) total_ns: u64,
    pub(super) longest_ns: u64,
}

impl Sum {
    pub(super) fn add(&mut self, ns: u64) {
        self.n += 1;
        self.total_ns += ns;
        self.longest_ns = self.longest_ns.max(ns);
    }
}

/// Sums by name, most time first.
pub(super) fn times(sums: impl Iterator<Item = (String, Sum)>, most: usize) -> Vec<NamedTime> {
    let mut by_name: BTreeMap<String, NamedTime> = BTreeMap::new();
    for (name, sum) in sums {
        let empty = NamedTime { name: name.clone(), n: 0, total: Span(0), longest: Span(0) };
        let one = by_name.entry(name).or_insert(empty);
        one.n += sum.n;
        one.total = Span(one.total.ns() + sum.total_ns);
        one.longest = one.longest.max(Span(sum.longest_ns));
    }
    let mut all: Vec<NamedTime> = by_name.into_values().collect();
    all.order_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
    all.truncate(most);
    all
}

/// Mean and variance of numbers, one by one (Welford).
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.n += 1.0;
        let off = value - self.mean;
        self.mean += off / self.n;
        self.squares += off * (value - self.mean);
    }
}

/// A sleep in an activation: in a system call, at a page fault, or anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sleeping {
    In(Call),
    Fault,
    Stopped,
    Elsewhere,
}

/// Counts of the activations of one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    sample: WatchSample,
    deadline: Option<Span>,
    pub(super) period: PeriodFinder,
    /// Its sums and distributions; the rest of it is filled in at the end.
    pub(super) thread: WatchedThread,
    /// Due times that passed while events were lost.
    pub(super) lost: u64,
    is_after_loss: bool,
    pub(super) wakers: BTreeMap<i32, u64>,
    pub(super) packets: PacketStages,
    user_run: Histogram,
    calls: BTreeMap<i64, Histogram>,
    faults: Histogram,
    pub(super) bounds: Bounds,
    pub(super) preempted_by: BTreeMap<i32, Sum>,
    pub(super) blocked_in: BTreeMap<Sleeping, Sum>,
    cpus: BTreeMap<u32, u64>,
    pub(super) samples: Samples,
    /// Release of the latest activation, and the time from which the program ran, ns.
    last: Option<(u64, u64)>,
    /// Activations and skipped due times so far.
    pub(super) cycles: u64,
    /// Activations whose deadline is not known yet: the sample, ns, its release, the response time, and the phases.
    pending: Vec<(u64, u64, u64, Lengths)>,
    /// The phases of all of them, where marks are wanted.
    pub(super) phases: Option<Phases>,
    waits: Spread,
    steps: Spread,
    /// Usual response time, ns; `None` while too few are known.
    pub(super) usual_response_ns: Option<u64>,
    pub(super) first_release_ns: Option<u64>,
    pub(super) last_end_ns: u64,
}

impl Tally {
    pub(super) fn new(settings: &Settings) -> Tally {
        Tally {
            sample: settings.sample,
            deadline: settings.deadline,
            period: PeriodFinder::new(settings.period),
            phases: (!settings.marks.is_empty()).then(|| Phases::new(&settings.marks)),
            ..Tally::default()
        }
    }

    /// Response time above which an activation is late, as far as it is known.
    pub(super) fn deadline(&self) -> Option<Span> {
        self.deadline.or_else(|| self.period.period().map(Period::span))
    }

    /// CPU on which most activations began.
    pub(super) fn cpu(&self) -> u32 {
        self.cpus.iter().max_by_key(|(_, n)| **n).map_or(0, |(cpu, _)| *cpu)
    }

    pub(super) fn take(&mut self, one: &mut Activation) {
        self.bounds.take(one);
        let one = &*one;
        let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        self.thread.activations += 1;
        match one.release {
            Release::Timer => self.thread.releases.timer += 1,
            Release::Interrupt => self.thread.releases.interrupt += 1,
            Release::Immediate => self.thread.releases.immediate += 1,
            Release::Thread(pid) => {
                self.thread.releases.thread += 1;
                if let Some(n) = slot(&mut self.wakers, pid) {
                    *n += 1;
                }
            }
        }
        self.packets.take(one);
        self.thread.latency.record(ns(one.latency_ns()));
        self.thread.run.record(ns(one.run_ns));
        self.user_run.record(ns(one.user_run_ns));
        self.faults.record(i64::from(one.faults));
        for (call, (run_ns, _)) in &one.calls {
            if let Some(histogram) = slot(&mut self.calls, *call) {
                histogram.record(ns(*run_ns));
            }
        }
        self.thread.preempted.record(ns(one.waited_ns()));
        self.thread.blocked.record(ns(one.blocked_ns()));
        self.thread.response.record(ns(one.response_ns()));
        for wait in &one.waits {
            if let Some(sum) = slot(&mut self.preempted_by, wait.by) {
                sum.add(wait.length_ns);
            }
        }
        for block in &one.blocks {
            let sleeping = match block.call {
                _ if block.is_stopped => Sleeping::Stopped,
                Some(call) => Sleeping::In(call),
                None if block.is_fault => Sleeping::Fault,
                None => Sleeping::Elsewhere,
            };
            if let Some(sum) = slot(&mut self.blocked_in, sleeping) {
                sum.add(block.to_ns - block.from_ns);
            }
        }
        if self.thread.activations.is_multiple_of(ENOUGH) {
            let median = quantile(&self.thread.response, 0.5);
            self.usual_response_ns = median.and_then(|ns| u64::try_from(ns).ok());
            self.bounds.learn(&self.thread.run, &self.thread.interval);
        }
        self.thread.page_faults += u64::from(one.faults);
        self.thread.migrations += u64::from(one.migrations);
        *self.cpus.entry(one.cpu).or_default() += 1;
        self.first_release_ns.get_or_insert(one.release_ns);
        self.last_end_ns = one.end_ns;
        let skipped = self.take_interval(one);
        let sample = match self.sample {
            WatchSample::Response => one.response_ns(),
            WatchSample::Latency => one.latency_ns(),
        };
        self.thread.skipped += skipped;
        self.cycles += skipped;
        self.samples.missed += skipped;
        let phases = self.phases.as_mut().map(|phases| phases.take(one)).unwrap_or_default();
        self.pending.push((sample, one.release_ns, one.response_ns(), phases));
        if self.deadline().is_some() {
            self.flush();
        }
    }

    /// Notes that events were lost: the due times between the activations before and after are lost, too.
    pub(super) fn lose(&mut self) {
        self.is_after_loss = true;
    }

    /// Records the interval since the last activation; returns the number of due times between both.
    fn take_interval(&mut self, one: &Activation) -> u64 {
        let is_after_loss = std::mem::take(&mut self.is_after_loss);
        let Some((release, user)) = self.last.replace((one.release_ns, one.user_ns)) else { return 0 };
        let interval = one.release_ns.saturating_sub(release);
        if is_after_loss {
            let period = self.period.period().filter(|_| self.is_on_grid());
            let lost = period.map_or(0, |period| ((interval + period.ns() / 2) / period.ns()).saturating_sub(1));
            self.lost += lost;
            self.cycles += lost;
            return 0;
        }
        self.thread.interval.record(i64::try_from(interval).unwrap_or(i64::MAX));
        self.period.take(interval);
        let Some(period) = self.period.period() else { return 0 };
        if let Some(started) = one.timer_started_ns {
            self.waits.add(one.release_ns.saturating_sub(started) as f64);
            // Due times that were skipped do not move the grid.
            let off = interval % period.ns();
            let is_before = off > period.ns() / 2;
            self.steps.add(off as f64 - if is_before { period.ns() as f64 } else { 0.0 });
        }
        let between = one.user_ns.saturating_sub(user);
        self.thread.jitter.record(i64::try_from(between.abs_diff(period.ns())).unwrap_or(i64::MAX));
        // The due times of a timer are on a grid; others are not there to be skipped.
        let periods = (interval + period.ns() / 2) / period.ns();
        let is_on_grid = one.release == Release::Timer && self.is_relative() != Some(true);
        periods.saturating_sub(1).min(if is_on_grid { u64::MAX } else { 0 })
    }

    /// Passes on the activations whose deadline was not known.
    fn flush(&mut self) {
        let deadline = self.deadline();
        let first = self.first_release_ns.unwrap_or(0);
        for (length_ns, release_ns, response_ns, phases) in std::mem::take(&mut self.pending) {
            let is_late = deadline.is_some_and(|deadline| response_ns > deadline.ns());
            self.thread.late += u64::from(is_late);
            self.phases.iter_mut().filter(|_| is_late).for_each(|all| all.take_late(&phases));
            let at_ns = release_ns.saturating_sub(first);
            self.samples.take(Sample { cycle: self.cycles, at_ns, length_ns, skipped: 0, is_late });
            self.cycles += 1;
        }
    }

    /// Completes the tables. A period that most intervals do not follow takes the misses with it that it has implied.
    pub(super) fn finish(&mut self) {
        self.period.find();
        self.flush();
        self.bounds.learn(&self.thread.run, &self.thread.interval);
        if self.period.result().is_none() {
            (self.thread.skipped, self.lost) = (0, 0);
            self.samples.missed = 0;
            if self.deadline.is_none() {
                self.thread.late = 0;
                self.samples.clear_late();
                self.phases.iter_mut().for_each(Phases::clear_late);
            }
        }
    }

    /// Takes the call that the thread waits in, before the first activation, and whether the user has named it.
    pub(super) fn wait_in(&mut self, wait: Call, is_given: bool) {
        self.bounds.is_in_user_space = wait.kind() == CallKind::Futex;
        self.bounds.may_wait_elsewhere = !is_given && (wait.kind() == CallKind::Futex || wait.polls());
    }

    /// Bounds of the response times, after [`Tally::finish`].
    pub(super) fn bounded(&mut self) -> Bounded {
        self.bounds.finish(self.thread.releases.immediate)
    }

    /// Whether most activations are released by a timer whose due times are on a grid, so that one that passes is
    /// skipped.
    pub(super) fn is_on_grid(&self) -> bool {
        self.thread.releases.timer * 2 > self.thread.activations && self.is_relative() != Some(true)
    }

    /// Counts what is not over at the end, after [`Tally::finish`]: late if it is so already, with the due times that
    /// passed meanwhile.
    pub(super) fn take_open(&mut self, open: &Open) {
        let is_late = self.deadline().is_some_and(|deadline| open.at_least_ns > deadline.ns());
        let at_ns = open.due_ns.saturating_sub(self.first_release_ns.unwrap_or(open.due_ns));
        self.thread.late += u64::from(is_late);
        self.thread.skipped += open.behind;
        self.samples.take_open(Sample { cycle: self.cycles, at_ns, length_ns: open.at_least_ns, skipped: 0, is_late });
    }

    /// Whether its sleeps last a length of time instead of until an instant: then the interval between due times varies
    /// and the time from the start of the timer to its due time does not. `None` without a clear answer.
    pub(super) fn is_relative(&self) -> Option<bool> {
        let (n, mean) = (self.waits.n, self.waits.mean);
        let (waits, steps) = (self.waits.squares, self.steps.squares);
        // Where most due times are missed, the steps are off a period that is none, and the waits have any length.
        let is_one_length = waits < n * (mean * ONE_LENGTH).powi(2);
        match () {
            () if n < ENOUGH as f64 => None,
            () if waits * 4.0 < steps && is_one_length => Some(true),
            () if steps * 4.0 < waits => Some(false),
            () => None,
        }
    }

    /// The usual activation; `None` while too few are known.
    pub(super) fn usual(&self) -> Option<Usual> {
        let median =
            |histogram: &Histogram| quantile(histogram, 0.5).and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
        (self.thread.activations >= ENOUGH).then(|| Usual {
            run_ns: median(&self.thread.run),
            user_run_ns: median(&self.user_run),
            // A call that is not made in half of the activations is not usual.
            calls: (self.calls.iter())
                .filter(|(_, histogram)| histogram.n * 2 >= self.thread.activations)
                .map(|(call, histogram)| (*call, median(histogram)))
                .collect(),
            faults: u32::try_from(median(&self.faults)).unwrap_or(u32::MAX),
            response_ns: median(&self.thread.response),
        })
    }
}

/// The value of a key, if there is room for it.
fn slot<K: Ord, V: Default>(map: &mut BTreeMap<K, V>, key: K) -> Option<&mut V> {
    if map.len() >= MOST_NAMES && !map.contains_key(&key) {
        return None;
    }
    Some(map.entry(key).or_default())
}
