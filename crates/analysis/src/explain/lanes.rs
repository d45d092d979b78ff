//! Scheduling of some threads over a whole measurement, from the switches of all CPUs.
//!
//! It says when each thread ran, waited for a CPU and which thread had it, slept, or was stopped.

use super::event::{What, state};

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneState {
    /// It ran.
    Running,
    /// It was ready to run, and this other thread had its CPU; 0 is the idle thread, which then lets it in.
    Waiting {
        /// ID of the other thread; `None` if no event names it.
        owner: Option<i32>,
        /// Whether the switch to it left no event: the CPU seemed idle, and this thread had it at its end.
        is_inferred: bool,
    },
    /// It slept.
    Asleep,
    /// A signal or a debugger had stopped it.
    Stopped,
    /// Events are missing.
    Unknown,
}

/// Interval of a thread in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanePiece {
    /// Start, `CLOCK_MONOTONIC`, ns.
    pub from_ns: u64,
    /// End, ns.
    pub to_ns: u64,
    /// State.
    pub state: LaneState,
    /// CPU that it ran on or waited for.
    pub cpu: Option<u32>,
}

/// The scheduling of some threads so far.
#[derive(Debug, Clone)]
pub struct Lanes {
    lanes: Vec<Lane>,
    /// The current thread of each CPU, and the time of its last event, ns.
    cpus: Vec<(Option<i32>, u64)>,
    n_changes: usize,
}

#[derive(Debug, Clone)]
struct Lane {
    pid: i32,
    /// CPU that it ran on last, or was moved to.
    cpu: Option<u32>,
    /// Changes of its state, in the order of time.
    changes: Vec<Change>,
}

#[derive(Debug, Clone, Copy)]
struct Change {
    at_ns: u64,
    state: LaneState,
    cpu: Option<u32>,
}

/// Limit of kept changes, 32 bytes each: owners of further waits are those at their start.
const MAX_CHANGES: usize = 4 << 20;

impl Lanes {
    /// Nothing is known yet of the threads with these IDs.
    pub fn new(pids: &[i32], n_cpus: usize) -> Lanes {
        let lanes = pids.iter().map(|pid| Lane { pid: *pid, cpu: None, changes: Vec::new() }).collect();
        Lanes { lanes, cpus: vec![(None, 0); n_cpus], n_changes: 0 }
    }

    /// Takes an event of `cpu`. Events of all CPUs together come in the order of time.
    pub fn take(&mut self, cpu: u32, at_ns: u64, what: &What) {
        match *what {
            What::Switch { prev, prev_state, next, .. } => self.switch(cpu, at_ns, (prev, prev_state), next),
            What::Waking { pid } => {
                if let Some(lane) = self.lane(pid)
                    && lane.changes.last().is_none_or(|last| !matches!(last.state, LaneState::Running))
                {
                    let cpu = lane.cpu;
                    self.waits(pid, at_ns, cpu);
                }
            }
            What::Migrate { pid, cpu } => {
                let Some(lane) = self.lane(pid) else { return };
                lane.cpu = Some(cpu);
                if lane.changes.last().is_some_and(|last| matches!(last.state, LaneState::Waiting { .. })) {
                    self.waits(pid, at_ns, Some(cpu));
                }
            }
            _ => {}
        }
        if let Some(slot) = usize::try_from(cpu).ok().and_then(|cpu| self.cpus.get_mut(cpu)) {
            slot.1 = at_ns;
        }
    }

    /// Records that events of `cpu` before `at_ns` were lost: since the last one of that CPU nothing is known.
    pub fn lost(&mut self, cpu: u32, at_ns: u64) {
        let Some(slot) = usize::try_from(cpu).ok().and_then(|cpu| self.cpus.get_mut(cpu)) else { return };
        let since = slot.1.min(at_ns);
        *slot = (None, at_ns);
        for lane in &mut self.lanes {
            lane.changes.retain(|change| change.at_ns < since);
            lane.changes.push(Change { at_ns: since, state: LaneState::Unknown, cpu: None });
        }
    }

    fn lane(&mut self, pid: i32) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.pid == pid)
    }

    fn switch(&mut self, cpu: u32, at_ns: u64, (prev, prev_state): (i32, u32), next: i32) {
        if let Some(slot) = usize::try_from(cpu).ok().and_then(|cpu| self.cpus.get_mut(cpu)) {
            let current = slot.0.replace(next);
            if let Some(current) = current.filter(|current| *current != prev) {
                self.lanes.iter_mut().for_each(|lane| lane.correct(cpu, current, prev));
            }
        }
        if let Some(lane) = self.lane(prev) {
            lane.cpu = Some(cpu);
            match prev_state {
                stopped if stopped & state::STOPPED != 0 => self.change(prev, at_ns, LaneState::Stopped, None),
                sleeps if sleeps & state::NOT_RUNNABLE != 0 => self.change(prev, at_ns, LaneState::Asleep, None),
                _ => self.change(prev, at_ns, waiting(Some(next)), Some(cpu)),
            }
        }
        if let Some(lane) = self.lane(next) {
            lane.cpu = Some(cpu);
            self.change(next, at_ns, LaneState::Running, Some(cpu));
        }
        // Others wait for this CPU, too, and now for another thread.
        let is_full = self.n_changes >= MAX_CHANGES;
        let waits = |lane: &&mut Lane| {
            lane.pid != prev && lane.cpu == Some(cpu) && !is_full && matches!(lane.last(), LaneState::Waiting { .. })
        };
        let mut changed = 0;
        for lane in self.lanes.iter_mut().filter(waits) {
            lane.changes.push(Change { at_ns, state: waiting(Some(next)), cpu: Some(cpu) });
            changed += 1;
        }
        self.n_changes += changed;
    }

    fn waits(&mut self, pid: i32, at_ns: u64, cpu: Option<u32>) {
        let current = cpu.and_then(|cpu| self.cpus.get(usize::try_from(cpu).ok()?)?.0);
        self.change(pid, at_ns, waiting(current), cpu);
    }

    fn change(&mut self, pid: i32, at_ns: u64, state: LaneState, cpu: Option<u32>) {
        self.n_changes += 1;
        if let Some(lane) = self.lane(pid) {
            lane.changes.push(Change { at_ns, state, cpu });
        }
    }

    /// The pieces of thread `pid` from `from_ns` to `to_ns`, without gaps.
    pub fn between(&self, pid: i32, from_ns: u64, to_ns: u64) -> Vec<LanePiece> {
        let unknown = Change { at_ns: 0, state: LaneState::Unknown, cpu: None };
        let changes = self.lanes.iter().find(|lane| lane.pid == pid).map(|lane| &lane.changes[..]).unwrap_or_default();
        let first = changes.partition_point(|change| change.at_ns <= from_ns);
        let before = first.checked_sub(1).and_then(|index| changes.get(index)).copied().unwrap_or(unknown);
        let rest = changes.get(first..).unwrap_or_default().iter().copied().take_while(|change| change.at_ns < to_ns);
        let all: Vec<Change> = std::iter::once(before).chain(rest).collect();
        let ends = all.iter().skip(1).map(|change| change.at_ns).chain([to_ns]);
        let pieces = all.iter().zip(ends).map(|(change, to_ns)| LanePiece {
            from_ns: change.at_ns.max(from_ns),
            to_ns,
            state: change.state,
            cpu: change.cpu,
        });
        pieces.filter(|piece| piece.from_ns < piece.to_ns).fold(Vec::new(), |mut joined: Vec<LanePiece>, piece| {
            match joined.last_mut().filter(|last| last.state == piece.state && last.cpu == piece.cpu) {
                Some(last) => last.to_ns = piece.to_ns,
                None => joined.push(piece),
            }
            joined
        })
    }
}

fn waiting(owner: Option<i32>) -> LaneState {
    LaneState::Waiting { owner, is_inferred: false }
}

impl Lane {
    /// Corrects the owner of the latest waits: `current` seemed to have the CPU, and `prev` left it.
    ///
    /// A kernel may omit the switch away from an idle thread (seen on Linux 6.18). A thread does not wait for an idle
    /// CPU, so `prev` had it. After another thread the owner is unknown.
    fn correct(&mut self, cpu: u32, current: i32, prev: i32) {
        for change in self.changes.iter_mut().rev() {
            let LaneState::Waiting { owner, .. } = change.state else { return };
            if change.cpu != Some(cpu) || owner != Some(current) {
                return;
            }
            let owner = if current == 0 { Some(prev) } else { None };
            change.state = LaneState::Waiting { owner, is_inferred: true };
        }
    }

    fn last(&self) -> LaneState {
        self.changes.last().map_or(LaneState::Unknown, |last| last.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VCPU: i32 = 7;

    fn switch(prev: i32, prev_state: u32, next: i32) -> What {
        What::Switch { prev, prev_priority: 120, prev_state, next, next_priority: 120 }
    }

    fn lanes(events: &[(u32, u64, What)]) -> Lanes {
        let mut lanes = Lanes::new(&[VCPU], 2);
        events.iter().for_each(|(cpu, at_ns, what)| lanes.take(*cpu, *at_ns, what));
        lanes
    }

    fn states(lanes: &Lanes, from_ns: u64, to_ns: u64) -> Vec<(u64, LaneState, Option<u32>)> {
        let pieces = lanes.between(VCPU, from_ns, to_ns);
        pieces.iter().map(|piece| (piece.to_ns - piece.from_ns, piece.state, piece.cpu)).collect()
    }

    #[test]
    fn a_thread_waits_for_the_threads_that_have_its_cpu() {
        let lanes = lanes(&[
            (0, 100, switch(1, 0, VCPU)),
            (0, 200, switch(VCPU, 0, 20)),
            (1, 250, switch(5, 1, 6)),
            (0, 300, switch(20, 1, 21)),
            (0, 400, switch(21, 1, VCPU)),
            (0, 500, switch(VCPU, 1, 0)),
            (0, 600, What::Waking { pid: VCPU }),
            (0, 605, What::Migrate { pid: VCPU, cpu: 1 }),
            (1, 640, switch(6, 1, VCPU)),
            (1, 700, switch(VCPU, 4, 0)),
        ]);
        let expected = [
            (50, LaneState::Unknown, None),
            (100, LaneState::Running, Some(0)),
            (100, waiting(Some(20)), Some(0)),
            (100, waiting(Some(21)), Some(0)),
            (100, LaneState::Running, Some(0)),
            (100, LaneState::Asleep, None),
            (5, waiting(Some(0)), Some(0)),
            (35, waiting(Some(6)), Some(1)),
            (60, LaneState::Running, Some(1)),
            (100, LaneState::Stopped, None),
        ];
        assert_eq!(states(&lanes, 50, 800), expected);
        assert_eq!(states(&lanes, 350, 360), [(10, waiting(Some(21)), Some(0))]);
        assert_eq!(lanes.between(8, 0, 10)[0].state, LaneState::Unknown, "another thread");
    }

    #[test]
    fn lost_events_make_everything_since_the_last_one_unknown() {
        let mut lanes = lanes(&[(0, 100, switch(1, 0, VCPU)), (1, 150, switch(5, 1, 6))]);
        lanes.lost(1, 300);
        assert_eq!(states(&lanes, 100, 400), [(50, LaneState::Running, Some(0)), (250, LaneState::Unknown, None)]);
        lanes.take(0, 500, &switch(VCPU, 1, 0));
        assert_eq!(states(&lanes, 450, 600), [(50, LaneState::Unknown, None), (100, LaneState::Asleep, None)]);
    }

    #[test]
    fn a_switch_without_an_event_is_inferred_after_idle_and_unknown_after_a_thread() {
        let waits = |current: i32| {
            let lanes = lanes(&[
                (0, 100, switch(VCPU, 1, current)),
                (0, 200, What::Waking { pid: VCPU }),
                (0, 300, switch(30, 0, VCPU)),
            ]);
            states(&lanes, 200, 300)
        };
        let inferred = |owner| vec![(100, LaneState::Waiting { owner, is_inferred: true }, Some(0))];
        assert_eq!(waits(30), [(100, waiting(Some(30)), Some(0))]);
        assert_eq!(waits(0), inferred(Some(30)));
        assert_eq!(waits(20), inferred(None));
    }

    proptest! {
        /// Whatever happens, the pieces of a window follow each other without a gap.
        #[test]
        fn pieces_have_no_gaps(
            steps in prop::collection::vec((0u32..2, 1u64..50, 0u8..5, 0i32..4, 0u32..6), 0..200),
            from in 0u64..3000, length in 1u64..3000,
        ) {
            let mut lanes = Lanes::new(&[VCPU], 2);
            let mut at = 0;
            for (cpu, after, kind, other, prev_state) in steps {
                at += after;
                match kind {
                    0 => lanes.take(cpu, at, &switch(VCPU, prev_state, other)),
                    1 => lanes.take(cpu, at, &switch(other, prev_state, VCPU)),
                    2 => lanes.take(cpu, at, &What::Waking { pid: VCPU }),
                    3 => lanes.take(cpu, at, &What::Migrate { pid: VCPU, cpu: 1 - cpu }),
                    _ => lanes.lost(cpu, at),
                }
            }
            let pieces = lanes.between(VCPU, from, from + length);
            prop_assert_eq!(pieces.first().map(|piece| piece.from_ns), Some(from));
            prop_assert_eq!(pieces.last().map(|piece| piece.to_ns), Some(from + length));
            prop_assert!(pieces.windows(2).all(|two| two[0].to_ns == two[1].from_ns));
        }
    }
}
