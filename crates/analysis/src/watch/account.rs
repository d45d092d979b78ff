//! The account of a thread's time: running, waiting for a CPU by the threads that had it, asleep.

use super::calls::{Call, CallKind};
use super::tally::Sum;
use crate::events::{Context, What, state};
use punctual_model::{Span, ThrottledTime};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::ops::RangeInclusive;

/// Slices of a CPU that are kept, 24 bytes each: a longer wait is named in part.
const MOST_SLICES: usize = 1 << 14;
/// Threads whose priority is kept, each in the place of its ID: one that has the same place takes it.
const MOST_PRIORITIES: usize = 1 << 12;
/// CPUs whose slices are kept.
const MOST_CPUS: usize = 4096;
/// Threads with an own sum: those with the least are forgotten when there are more, half of them at once.
const MOST_CULPRITS: usize = 512;
/// Wait, ns, beside an idle CPU from which on the thread may have been throttled: a wake-up takes less.
const HELD_NS: u64 = 500_000;
/// Kernel priorities of FIFO and round robin.
const REAL_TIME: RangeInclusive<i32> = 0..=98;
/// Interrupts and kinds of sleeps with an own sum, and interrupts within each other.
const MOST_NAMES: usize = 256;
const MOST_NESTED: usize = 16;

/// A thread that had a CPU: its ID, 0 for idle, and its priority as the kernel counts.
pub(super) type Culprit = (i32, i32);

/// The latest switches of each CPU.
#[derive(Debug, Default)]
pub(super) struct Occupants {
    cpus: Vec<VecDeque<(u64, Culprit)>>,
    /// Number of switches, of those between them that the trace lacks, and of those among these from idle.
    switches: u64,
    unseen: u64,
    unseen_from_idle: u64,
    /// Threads with their priority at their last switch.
    priorities: Vec<Culprit>,
    /// Whether nothing is known of them.
    pub(super) are_unknown: bool,
    /// Whether any real-time thread was put off, and whether events were lost.
    has_put_off: bool,
    has_lost: bool,
}

/// ID of a thread that is not known; in the place of its priority is the one that left the CPU after it.
const UNKNOWN: i32 = -1;

/// Whether a switch puts a real-time thread off that is to run on, for a normal thread or none: the kernel limits
/// real-time threads (`sched_rt_runtime_us`), or serves normal ones (the fair server, Linux 6.12).
pub(super) fn puts_off(what: &What) -> bool {
    match *what {
        What::Switch { prev_priority, prev_state, next, next_priority, .. } => {
            REAL_TIME.contains(&prev_priority)
                && prev_state & state::NOT_RUNNABLE == 0
                && is_lower((next, next_priority))
        }
        _ => false,
    }
}

/// Whether no real-time thread waits for this one.
fn is_lower((pid, priority): Culprit) -> bool {
    pid == 0 || priority > *REAL_TIME.end()
}

impl Occupants {
    /// Notes that a thread leaves a CPU, before those that it makes room for are looked at; it may be one that is put
    /// off.
    pub(super) fn leave(&mut self, cpu: u32, prev: Culprit, is_put_off: bool) {
        self.has_put_off |= is_put_off;
        self.switches += 1;
        self.priority(prev.0).into_iter().for_each(|known| *known = prev);
        let last = self.cpus.get_mut(cpu as usize).and_then(VecDeque::back_mut);
        if let Some((_, last)) = last.filter(|(_, (last, _))| *last != prev.0) {
            self.unseen += 1;
            self.unseen_from_idle += u64::from(last.0 == 0);
            *last = (UNKNOWN, prev.0);
        }
    }

    /// The thread in the place of `pid`, with its priority.
    fn priority(&mut self, pid: i32) -> Option<&mut Culprit> {
        self.priorities.resize(MOST_PRIORITIES, (UNKNOWN, 0));
        self.priorities.get_mut(pid.unsigned_abs() as usize % MOST_PRIORITIES)
    }

    /// Notes that a thread is seen to have a CPU at `at`, ns, when it wakes another one: the trace may lack its switch.
    pub(super) fn seen(&mut self, cpu: u32, at: u64, pid: i32, woken: i32) {
        let Some(seen) = self.priority(pid).copied().filter(|known| known.0 == pid && pid != woken) else { return };
        let Some(slices) = self.cpus.get_mut(cpu as usize) else { return };
        let place = slices.partition_point(|(from, _)| *from <= at);
        let is_lacking = match place.checked_sub(1).and_then(|last| slices.get(last)) {
            // It had the CPU to the end, or idle up to the woken one.
            Some((_, (UNKNOWN, left))) => *left == pid || pid == 0 && *left == woken,
            // Without what follows, an idle CPU may be one whose next switch is lacking.
            Some((_, (0, _))) => pid != 0,
            _ => false,
        };
        if is_lacking && slices.len() < MOST_SLICES {
            slices.insert(place, (at, seen));
        }
    }

    /// Notes that a thread gets a CPU at `at`, ns.
    pub(super) fn enter(&mut self, cpu: u32, at: u64, next: Culprit) {
        let cpu = cpu as usize;
        if cpu >= MOST_CPUS {
            return;
        }
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, VecDeque::new);
        }
        let Some(slices) = self.cpus.get_mut(cpu) else { return };
        if slices.len() >= MOST_SLICES {
            slices.pop_front();
        }
        slices.push_back((at, next));
    }

    /// Whether the trace lacks many switches, as one of a few threads does: then it is not known whom a thread waited
    /// for. Some kernels leave out one in a hundred.
    pub(super) fn has_gaps(&self) -> bool {
        self.are_unknown || self.unseen > self.switches / 20
    }

    /// Whether it is known whom this thread waited for: where the trace lacks many switches from idle, for most of its
    /// wait.
    pub(super) fn names(&self, account: &Account) -> bool {
        let named: u64 = account.culprits.values().map(|sum| sum.total_ns).sum();
        let few = self.switches / 20;
        !self.has_gaps()
            || !self.are_unknown && self.unseen - self.unseen_from_idle <= few && named >= account.waiting / 5 * 4
    }

    /// Forgets everything, because events were lost.
    pub(super) fn forget(&mut self) {
        self.cpus.iter_mut().for_each(VecDeque::clear);
        self.has_lost = true;
    }

    /// Time in which the limit of real-time threads kept one from a CPU, ns. It begins by putting one off.
    pub(super) fn limited(&self, account: &Account) -> Option<ThrottledTime> {
        let most_ns = if self.has_put_off { account.behind_lower } else { 0 };
        let bounds = ThrottledTime { at_least: Span(account.put_off), at_most: Span(most_ns) };
        (!self.has_gaps() && !self.has_lost).then_some(bounds)
    }

    /// The threads that had a CPU between two instants, the latest first, and how long each, ns. What is older than the
    /// switches that are known, or ended in one that is not, is left out.
    fn between(&self, cpu: u32, from: u64, to: u64) -> impl Iterator<Item = (Culprit, u64)> {
        let until = move |slices: &VecDeque<(u64, Culprit)>| slices.partition_point(|(at, _)| *at < to);
        let slices = self.cpus.get(cpu as usize).into_iter().flat_map(move |all| all.range(..until(all)).rev());
        let mut end = to;
        let slices = slices.map(move |(at, who)| {
            let slice = (*who, end.saturating_sub((*at).max(from)));
            end = end.min((*at).max(from));
            (*at, slice)
        });
        // The slice that began before the wait is the last one of it.
        let mut is_over = false;
        slices
            .take_while(move |(at, _)| !std::mem::replace(&mut is_over, *at <= from))
            .map(|(_, slice)| slice)
            .filter(|((pid, _), length)| *pid != UNKNOWN && *length > 0)
    }
}

/// What a thread does, as far as the account tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Unknown,
    Running,
    Waiting,
    Asleep(Sleep),
    Ended,
}

/// A kind of sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Sleep {
    /// The system call; `None`: outside of all.
    pub(super) call: Option<Call>,
    pub(super) is_fault: bool,
    pub(super) is_uninterruptible: bool,
    pub(super) is_stopped: bool,
}

/// What a thread slept for, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Slept {
    pub(super) on_purpose: u64,
    pub(super) for_locks: u64,
    pub(super) for_memory: u64,
    pub(super) uninterruptible: u64,
    pub(super) stopped: u64,
    pub(super) for_others: u64,
    pub(super) unknown: u64,
}

/// An interrupt that is handled.
#[derive(Debug, Clone, Copy)]
struct Handled {
    context: Context,
    /// Its time so far without those within it, ns.
    own_ns: u64,
}

/// Where the time of one thread went, ns.
#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    phase: Phase,
    /// Start of the phase.
    since: u64,
    /// The CPU from which it was taken, where it waits for one since then.
    queue: Option<u32>,
    pub(super) running: u64,
    pub(super) waiting: u64,
    pub(super) asleep: u64,
    pub(super) unknown: u64,
    pub(super) culprits: BTreeMap<Culprit, Sum>,
    /// Part of the waiting: long waits beside an idle CPU.
    pub(super) held: u64,
    /// The waits while its CPU had no real-time thread; and the part with a normal one, after it was put off.
    behind_lower: u64,
    put_off: u64,
    is_put_off: bool,
    /// Part of the running: interrupts that were handled meanwhile.
    pub(super) interrupted: u64,
    pub(super) interrupts: HashMap<Context, Sum>,
    /// Those that are handled, the innermost last, and the time up to which they are counted, ns.
    handled: Vec<Handled>,
    counted_ns: u64,
    asleep_in: HashMap<Sleep, u64>,
    for_locks: u64,
    /// Part of the sleep: by the thread that released the lock.
    pub(super) locks: HashMap<i32, Sum>,
}

/// The sum of a key, if there is room for it.
fn slot<K: Eq + Hash, V: Default>(sums: &mut HashMap<K, V>, key: K) -> Option<&mut V> {
    let has_room = sums.len() < MOST_NAMES || sums.contains_key(&key);
    has_room.then(|| sums.entry(key).or_default())
}

impl Account {
    /// The account of a thread of which nothing is known since `since`, ns.
    pub(super) fn new(since: u64) -> Account {
        Account { since, ..Account::default() }
    }

    /// Takes what the thread does from `at` on. `cpu` is that of the event, `measured` the measured time, ns.
    pub(super) fn take(&mut self, phase: Phase, cpu: u32, at: u64, occupants: &Occupants, measured: (u64, u64)) {
        if phase == self.phase {
            return;
        }
        let (from, to) = (self.since.max(measured.0), at.min(measured.1));
        let length = to.saturating_sub(from);
        match self.phase {
            Phase::Ended => {}
            Phase::Unknown => self.unknown += length,
            Phase::Running => {
                self.running += length;
                self.count_interrupts(at, measured);
                // An interrupt ends before a switch; a softirq in the context of a thread may be preempted.
                self.handled.retain(|handled| !handled.context.is_hard());
            }
            Phase::Asleep(sleep) => {
                self.asleep += length;
                slot(&mut self.asleep_in, sleep).into_iter().for_each(|sum| *sum += length);
            }
            Phase::Waiting => {
                self.waiting += length;
                for (culprit, length) in occupants.between(self.queue.unwrap_or(cpu), from, to) {
                    self.culprits.entry(culprit).or_default().add(length);
                    self.held += length * u64::from(culprit.0 == 0 && length >= HELD_NS);
                    self.behind_lower += length * u64::from(is_lower(culprit));
                    // Elsewhere it may have been queued for another CPU; an idle one may belong to another core group.
                    let is_limited = self.is_put_off && self.queue == Some(cpu) && culprit.0 != 0;
                    self.put_off += length * u64::from(is_limited && is_lower(culprit));
                }
            }
        }
        if self.culprits.len() > MOST_CULPRITS {
            let mut all: Vec<u64> = self.culprits.values().map(|sum| sum.total_ns).collect();
            let median = *all.select_nth_unstable(MOST_CULPRITS / 2).1;
            self.culprits.retain(|_, sum| sum.total_ns > median);
        }
        self.queue = Some(cpu).filter(|_| self.phase == Phase::Running);
        self.is_put_off = false;
        (self.phase, self.since, self.counted_ns) = (phase, at, at);
    }

    /// Notes that the thread, which waits now, was put off.
    pub(super) fn put_off(&mut self) {
        self.is_put_off = self.phase == Phase::Waiting;
    }

    /// Takes the beginning or the end of an interrupt or softirq while the thread is current.
    pub(super) fn interrupt(&mut self, context: Context, begins: bool, at: u64, measured: (u64, u64)) {
        if self.phase != Phase::Running {
            return;
        }
        self.count_interrupts(at, measured);
        if begins {
            if self.handled.len() >= MOST_NESTED {
                self.handled.clear();
            }
            self.handled.push(Handled { context, own_ns: 0 });
        } else if let Some(index) = self.handled.iter().rposition(|handled| handled.context == context) {
            for Handled { context, own_ns } in self.handled.drain(index..) {
                slot(&mut self.interrupts, context).into_iter().for_each(|sum| sum.add(own_ns));
            }
        }
    }

    /// Counts the time of the interrupt that is handled, up to `at`, ns.
    fn count_interrupts(&mut self, at: u64, measured: (u64, u64)) {
        let from = std::mem::replace(&mut self.counted_ns, at).max(measured.0);
        let length = at.min(measured.1).saturating_sub(from);
        if let Some(handled) = self.handled.last_mut() {
            handled.own_ns += length;
            self.interrupted += length;
        }
    }

    /// Takes a sleep for a lock that this thread released. It is one of those so far.
    pub(super) fn locked(&mut self, holder: i32, from: u64, to: u64, measured: (u64, u64)) {
        let length = to.min(measured.1).saturating_sub(from.max(measured.0));
        if length > 0 {
            self.for_locks += length;
            slot(&mut self.locks, holder).into_iter().for_each(|sum| sum.add(length));
        }
    }

    /// What a thread slept for that waits for its activations in `wait`: exactly the time that it was asleep.
    pub(super) fn slept(&self, wait: Option<Call>) -> Slept {
        let mut slept = Slept::default();
        for (sleep, length) in &self.asleep_in {
            let kind = sleep.call.map(Call::kind);
            let sum = match () {
                () if sleep.is_stopped => &mut slept.stopped,
                () if sleep.call.is_some() && sleep.call == wait => &mut slept.on_purpose,
                () if kind == Some(CallKind::Sleep) => &mut slept.on_purpose,
                () if sleep.is_fault || kind == Some(CallKind::Memory) => &mut slept.for_memory,
                () if sleep.is_uninterruptible || kind == Some(CallKind::Storage) => &mut slept.uninterruptible,
                () if wait.is_some() && sleep.call.is_some_and(|call| !call.is_unknown()) => &mut slept.for_others,
                () => &mut slept.unknown,
            };
            *sum += length;
        }
        slept.for_locks = self.for_locks.min(slept.for_others);
        slept.for_others -= slept.for_locks;
        slept.unknown += self.asleep - self.asleep_in.values().sum::<u64>();
        slept
    }

    /// Forgets the present phase, because events were lost.
    pub(super) fn forget(&mut self) {
        if self.phase != Phase::Ended {
            self.phase = Phase::Unknown;
        }
        self.handled.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Culprit = (5, 120);
    const B: Culprit = (6, 100);
    const IDLE: Culprit = (0, 120);
    const ASLEEP: Phase =
        Phase::Asleep(Sleep { call: None, is_fault: false, is_uninterruptible: false, is_stopped: false });

    fn switch(occupants: &mut Occupants, cpu: u32, at: u64, prev: i32, next: Culprit) {
        occupants.leave(cpu, (prev, 120), false);
        occupants.enter(cpu, at, next);
    }

    fn sums(account: &Account) -> Vec<(Culprit, u64, u64)> {
        account.culprits.iter().map(|(culprit, sum)| (*culprit, sum.n, sum.total_ns)).collect()
    }

    #[test]
    fn a_wait_goes_to_those_that_had_the_cpu() {
        let mut occupants = Occupants::default();
        let mut account = Account::default();
        let all = (0, u64::MAX);
        account.take(Phase::Running, 1, 100, &occupants, all);
        switch(&mut occupants, 1, 100, 0, (9, 50));
        // Preempted on CPU 1 and pulled to CPU 0, where nothing else ran.
        account.take(Phase::Waiting, 1, 150, &occupants, all);
        switch(&mut occupants, 1, 150, 9, A);
        switch(&mut occupants, 1, 170, A.0, B);
        switch(&mut occupants, 0, 120, 7, IDLE);
        assert!(!occupants.has_gaps());
        account.take(Phase::Running, 0, 200, &occupants, all);
        assert_eq!((account.running, account.waiting, sums(&account)), (50, 50, vec![(A, 1, 20), (B, 1, 30)]));
        // Woken on CPU 1, which B has since before.
        account.take(ASLEEP, 0, 210, &occupants, all);
        account.take(Phase::Waiting, 0, 300, &occupants, all);
        account.take(Phase::Running, 1, 340, &occupants, all);
        assert_eq!((account.asleep, account.waiting, sums(&account)), (90, 90, vec![(A, 1, 20), (B, 2, 70)]));
    }

    #[test]
    fn a_thread_whose_switch_from_idle_is_lacking_is_named_where_it_is_seen() {
        for is_seen in [true, false] {
            let (mut occupants, mut account) = (Occupants::default(), Account::default());
            let all = (0, u64::MAX);
            switch(&mut occupants, 0, 10, A.0, IDLE);
            for from in (1000..9000).step_by(1000) {
                account.take(ASLEEP, 0, from, &occupants, all);
                if is_seen {
                    occupants.seen(0, from + 50, A.0, 9);
                }
                account.take(Phase::Waiting, 0, from + 50, &occupants, all);
                switch(&mut occupants, 0, from + 80, A.0, (9, 50));
                account.take(Phase::Running, 0, from + 80, &occupants, all);
                switch(&mut occupants, 0, from + 90, 9, IDLE);
            }
            let expected = if is_seen { vec![(A, 8, 240)] } else { Vec::new() };
            assert_eq!((sums(&account), occupants.names(&account)), (expected, is_seen));
            assert!(occupants.has_gaps() || is_seen);
        }
    }

    #[test]
    fn a_long_wait_beside_an_idle_cpu_may_be_throttling() {
        let (mut occupants, mut account) = (Occupants::default(), Account::default());
        let all = (0, u64::MAX);
        for (from, length) in [(0, HELD_NS - 1), (10 * HELD_NS, HELD_NS)] {
            account.take(Phase::Running, 0, from, &occupants, all);
            account.take(Phase::Waiting, 0, from + 5, &occupants, all);
            switch(&mut occupants, 0, from + 5, 9, IDLE);
            account.take(Phase::Running, 0, from + 5 + length, &occupants, all);
            switch(&mut occupants, 0, from + 5 + length, 0, (9, 50));
        }
        assert_eq!((account.waiting, account.held), (2 * HELD_NS - 1, HELD_NS));
    }

    #[test]
    fn a_real_time_thread_is_throttled_while_normal_ones_run_on_the_cpu_that_took_it_off() {
        let all = (0, u64::MAX);
        // The thread that it is taken off for, its state, and the CPU on which it runs on; then of 100 ns.
        for (next, prev_state, resumed, expected) in [
            (A, 0, 0, (70, 100)),
            (A, 0x100, 0, (70, 100)),
            (IDLE, 0, 0, (0, 100)),
            (A, 0, 1, (0, 100)),
            (A, 1, 0, (0, 0)),
            ((5, 40), 0, 0, (0, 0)),
        ] {
            let (mut occupants, mut account) = (Occupants::default(), Account::default());
            let off = What::Switch { prev: 9, prev_priority: 50, prev_state, next: next.0, next_priority: next.1 };
            account.take(Phase::Running, 0, 0, &occupants, all);
            switch(&mut occupants, 0, 0, 0, (9, 50));
            occupants.leave(0, (9, 50), puts_off(&off));
            account.take(Phase::Waiting, 0, 10, &occupants, all);
            if puts_off(&off) {
                account.put_off();
            }
            occupants.enter(0, 10, next);
            switch(&mut occupants, 0, 80, next.0, IDLE);
            account.take(Phase::Running, resumed, 110, &occupants, all);
            // Behind a thread of its own class it waits as ever.
            account.take(Phase::Waiting, 0, 200, &occupants, all);
            switch(&mut occupants, 0, 200, IDLE.0, (5, 40));
            account.take(Phase::Running, 0, 300, &occupants, all);
            let found = occupants.limited(&account).map(|one| (one.at_least.ns(), one.at_most.ns()));
            assert_eq!(found, Some(expected), "{next:?} {prev_state} {resumed}");
            occupants.forget();
            assert_eq!(occupants.limited(&account), None);
        }
    }

    #[test]
    fn only_measured_time_counts_and_what_was_lost_is_in_no_sum() {
        let (mut occupants, mut account, measured) = (Occupants::default(), Account::default(), (1_000, 2_000));
        switch(&mut occupants, 0, 500, 0, A);
        account.take(Phase::Waiting, 0, 600, &occupants, measured);
        account.take(Phase::Running, 0, 1_100, &occupants, measured);
        assert_eq!((account.waiting, sums(&account)), (100, vec![(A, 1, 100)]));
        account.forget();
        occupants.forget();
        account.take(Phase::Waiting, 0, 1_500, &occupants, measured);
        // The switches before are not known, so this wait has no culprit.
        account.take(Phase::Running, 0, 1_600, &occupants, measured);
        account.take(ASLEEP, 0, 2_500, &occupants, measured);
        account.take(Phase::Waiting, 0, 2_600, &occupants, measured);
        assert_eq!((account.running, account.waiting, account.asleep), (400, 200, 0));
        assert_eq!(account.unknown, 400, "from the waiting that was lost to the next event");
        assert_eq!(sums(&account), [(A, 1, 100)]);
    }

    #[test]
    fn a_slice_that_ended_in_an_unseen_switch_has_no_name() {
        let (mut occupants, mut account) = (Occupants::default(), Account::default());
        account.take(Phase::Waiting, 0, 0, &occupants, (0, u64::MAX));
        for (at, prev, next) in [(0, 0, A), (10, A.0, B), (20, 77, A), (30, A.0, (9, 50))] {
            switch(&mut occupants, 0, at, prev, next);
        }
        account.take(Phase::Running, 0, 30, &occupants, (0, u64::MAX));
        assert_eq!((account.waiting, sums(&account)), (30, vec![(A, 2, 20)]), "not B, from 10 on");
        assert!(occupants.has_gaps());
    }

    #[test]
    fn memory_is_bounded() {
        let (mut occupants, mut account) = (Occupants::default(), Account::default());
        let pid = |at: u64| i32::try_from(at).unwrap();
        for at in 1..=20_000 {
            switch(&mut occupants, 0, at, pid(at) - 1, (pid(at), 120));
        }
        switch(&mut occupants, u32::MAX, 0, 0, A);
        account.take(Phase::Waiting, 0, 0, &occupants, (0, u64::MAX));
        account.take(Phase::Running, 0, 20_000, &occupants, (0, u64::MAX));
        assert_eq!((account.waiting, account.culprits.len(), occupants.cpus[0].len()), (20_000, 0, MOST_SLICES));
    }

    #[test]
    fn interrupts_are_counted_without_those_within_them() {
        let (mut account, none, all) = (Account::default(), Occupants::default(), (1_000, 2_000));
        let (tick, disk, net) = (Context::Vector(0), Context::Interrupt(36), Context::Softirq(3));
        account.take(Phase::Running, 0, 900, &none, all);
        for (context, begins, at) in [
            (tick, true, 980),
            (tick, false, 1_020),
            (net, true, 1_100),
            (disk, true, 1_130),
            (disk, false, 1_140),
            (net, false, 1_200),
            (net, false, 1_300),
            (net, true, 1_400),
        ] {
            account.interrupt(context, begins, at, all);
        }
        // The softirq is preempted, and goes on.
        account.take(Phase::Waiting, 0, 1_450, &none, all);
        account.interrupt(disk, true, 1_460, all);
        account.take(Phase::Running, 0, 1_500, &none, all);
        account.interrupt(net, false, 1_510, all);
        account.interrupt(disk, true, 1_990, all);
        account.take(Phase::Waiting, 0, 2_010, &none, all);
        let sum = |context| account.interrupts.get(&context).map(|sum| (sum.n, sum.total_ns, sum.longest_ns));
        assert_eq!((sum(tick), sum(disk)), (Some((1, 20, 20)), Some((1, 10, 10))));
        assert_eq!(sum(net), Some((2, 90 + 60, 90)));
        assert_eq!((account.running, account.interrupted), (950, 20 + 100 + 60 + 10));
    }

    #[test]
    fn all_of_the_sleep_is_divided() {
        use crate::watch::script::{call, until_instant};
        use syscalls::Sysno;
        let (mut account, none, all) = (Account::default(), Occupants::default(), (0, u64::MAX));
        let plain = |call| Sleep { call, ..Sleep::default() };
        let futex = plain(Some(call(Sysno::futex, [7, 128, 2])));
        let sleeps = [
            (plain(Some(until_instant())), 1),
            (plain(Some(call(Sysno::clock_nanosleep, [1, 0, 0]))), 10),
            (futex, 100),
            (plain(Some(call(Sysno::read, [5, 0, 0]))), 1_000),
            (Sleep { is_uninterruptible: true, ..plain(Some(call(Sysno::write, [5, 0, 0]))) }, 10_000),
            (Sleep { is_fault: true, is_uninterruptible: true, ..plain(None) }, 100_000),
            (Sleep { is_stopped: true, ..futex }, 1_000_000),
            (plain(None), 10_000_000),
        ];
        let mut at = 0;
        for (sleep, length) in sleeps {
            account.take(Phase::Asleep(sleep), 0, at, &none, all);
            if sleep == futex {
                account.locked(9, at, at + 70, all);
            }
            at += length;
        }
        account.take(Phase::Ended, 0, at, &none, all);
        let known = Slept {
            on_purpose: 11,
            for_locks: 70,
            for_memory: 100_000,
            uninterruptible: 10_000,
            stopped: 1_000_000,
            for_others: 1_030,
            unknown: 10_000_000,
        };
        assert_eq!((account.slept(Some(until_instant())), account.asleep), (known, at));
        let not_chosen = account.slept(None);
        assert_eq!((not_chosen.on_purpose, not_chosen.unknown, not_chosen.for_others), (11, 10_001_100, 0));
    }
}
