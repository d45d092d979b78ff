//! Scheduling of some threads over a whole measurement, from the switches of all CPUs: when each of them ran, waited
//! for a CPU and because of whom, slept, or was stopped.

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
    #[must_use]
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
            slot.0 = Some(next);
        }
        if let Some(lane) = self.lane(prev) {
            lane.cpu = Some(cpu);
            match prev_state {
                stopped if stopped & state::STOPPED != 0 => self.change(prev, at_ns, LaneState::Stopped, None),
                sleeps if sleeps & state::NOT_RUNNABLE != 0 => self.change(prev, at_ns, LaneState::Asleep, None),
                _ => self.change(prev, at_ns, LaneState::Waiting { owner: Some(next) }, Some(cpu)),
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
            let state = LaneState::Waiting { owner: Some(next) };
            lane.changes.push(Change { at_ns, state, cpu: Some(cpu) });
            changed += 1;
        }
        self.n_changes += changed;
    }

    fn waits(&mut self, pid: i32, at_ns: u64, cpu: Option<u32>) {
        let current = cpu.and_then(|cpu| self.cpus.get(usize::try_from(cpu).ok()?)?.0);
        self.change(pid, at_ns, LaneState::Waiting { owner: current }, cpu);
    }

    fn change(&mut self, pid: i32, at_ns: u64, state: LaneState, cpu: Option<u32>) {
        self.n_changes += 1;
        if let Some(lane) = self.lane(pid) {
            lane.changes.push(Change { at_ns, state, cpu });
        }
    }

    /// The pieces of thread `pid` from `from_ns` to `to_ns`, without gaps.
    #[must_use]
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

impl Lane {
    fn last(&self) -> LaneState {
        self.changes.last().map_or(LaneState::Unknown, |last| last.state)
    }
}
