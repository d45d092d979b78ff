//! The account of a thread's time: running, waiting for a CPU by the threads that had it, asleep.

use super::tally::Sum;
use std::collections::{BTreeMap, VecDeque};

/// Slices of a CPU that are kept, 24 bytes each: a longer wait is named in part.
const MOST_SLICES: usize = 1 << 14;
/// CPUs whose slices are kept.
const MOST_CPUS: usize = 4096;
/// Threads with an own sum: those with the least are forgotten when there are more, half of them at once.
const MOST_CULPRITS: usize = 512;

/// A thread that had a CPU: its ID, 0 for idle, and its priority as the kernel counts.
pub(super) type Culprit = (i32, i32);

/// The latest switches of each CPU.
#[derive(Debug, Default)]
pub(super) struct Occupants {
    cpus: Vec<VecDeque<(u64, Culprit)>>,
    /// Number of switches, and of those between them that the trace lacks.
    switches: u64,
    unseen: u64,
    /// Whether nothing is known of them.
    pub(super) are_unknown: bool,
}

/// ID of a thread that is not known.
const UNKNOWN: i32 = -1;

impl Occupants {
    /// Notes that a thread leaves a CPU, before those that it makes room for are looked at.
    pub(super) fn leave(&mut self, cpu: u32, prev: i32) {
        self.switches += 1;
        let last = self.cpus.get_mut(cpu as usize).and_then(VecDeque::back_mut);
        if let Some((_, (last, _))) = last.filter(|(_, (last, _))| *last != prev) {
            self.unseen += 1;
            *last = UNKNOWN;
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

    /// Forgets everything, because events were lost.
    pub(super) fn forget(&mut self) {
        self.cpus.iter_mut().for_each(VecDeque::clear);
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
    Asleep,
    Ended,
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
            Phase::Running => self.running += length,
            Phase::Asleep => self.asleep += length,
            Phase::Waiting => {
                self.waiting += length;
                for (culprit, length) in occupants.between(self.queue.unwrap_or(cpu), from, to) {
                    self.culprits.entry(culprit).or_default().add(length);
                }
            }
        }
        if self.culprits.len() > MOST_CULPRITS {
            let mut all: Vec<u64> = self.culprits.values().map(|sum| sum.total_ns).collect();
            let (_, median, _) = all.select_nth_unstable(MOST_CULPRITS / 2);
            let median = *median;
            self.culprits.retain(|_, sum| sum.total_ns > median);
        }
        self.queue = Some(cpu).filter(|_| self.phase == Phase::Running);
        (self.phase, self.since) = (phase, at);
    }

    /// Forgets the present phase, because events were lost.
    pub(super) fn forget(&mut self) {
        if self.phase != Phase::Ended {
            self.phase = Phase::Unknown;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Culprit = (5, 120);
    const B: Culprit = (6, 100);
    const IDLE: Culprit = (0, 120);

    fn switch(occupants: &mut Occupants, cpu: u32, at: u64, prev: i32, next: Culprit) {
        occupants.leave(cpu, prev);
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
        account.take(Phase::Asleep, 0, 210, &occupants, all);
        account.take(Phase::Waiting, 0, 300, &occupants, all);
        account.take(Phase::Running, 1, 340, &occupants, all);
        assert_eq!((account.asleep, account.waiting, sums(&account)), (90, 90, vec![(A, 1, 20), (B, 2, 70)]));
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
        account.take(Phase::Asleep, 0, 2_500, &occupants, measured);
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
}
