//! State of one watched thread, event by event, and the activations that follow from it.

use super::account::{Phase, Sleep};
use super::activation::{Activation, Block, Futexes, Hop, Release, Wait};
use super::calls::{Call, CallKind};
use super::packets::Brought;
use super::timers::{Due, Timers};
use crate::events::{Event, What, flags, state};
use std::collections::VecDeque;

/// Most sleeps and waits of one activation that are kept; later ones are added to the last.
const MOST_PIECES: usize = 256;
/// Most threads of a chain before this one.
const MOST_HOPS: usize = 8;
/// Range of results of a system call that a signal interrupted and that goes on (`ERESTARTSYS` to
/// `ERESTART_RESTARTBLOCK`, include/linux/errno.h).
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;
/// Wakings by softirqs that are kept until the wait is known.
const MOST_BROUGHT: usize = 4096;
/// Result of a call that would have to wait (`EAGAIN`).
const AGAIN: i64 = -11;
/// Longest time, ns, from a waking by another CPU to the switch out that it does not prevent.
const SWITCH_OUT_NS: u64 = 50_000;

/// What the thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Unknown,
    Running,
    /// It is to run; the thread that runs instead, if known.
    Ready {
        since: u64,
        by: i32,
    },
    Asleep {
        since: u64,
        is_uninterruptible: bool,
        is_stopped: bool,
    },
}

/// The system call that the thread is in.
#[derive(Debug, Clone, Copy)]
struct Current {
    call: Call,
    /// Its first argument.
    first: u64,
    at_ns: u64,
    is_wait: bool,
    /// Whether it slept in it.
    slept: bool,
    /// The timer that it started in it.
    timer: Option<u64>,
    run_ns: u64,
}

/// The waking from a wait.
#[derive(Debug, Clone, Copy)]
struct Woken {
    at_ns: u64,
    by: i32,
    in_interrupt: bool,
    brought: Option<Brought>,
}

/// Something that a thread completed.
#[derive(Debug, Clone)]
pub(super) enum Completed {
    /// An activation; only where the wait is known.
    Activation(Box<Activation>),
    /// A sleep in a call; only where the wait is not known.
    Sleep {
        /// The call.
        call: Call,
        /// Its beginning, ns.
        from_ns: u64,
        /// The due time of the timer that ended it, or the waking, ns.
        release_ns: u64,
        /// Whether a timer of the thread ended it.
        by_timer: bool,
    },
}

/// An activation that was released and is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfinished {
    /// Its release, ns.
    pub(super) release_ns: u64,
    /// Whether the program has run since then, so that its latency is known.
    pub(super) has_run: bool,
    /// Time on the CPU since then, ns.
    pub(super) run_ns: u64,
}

/// What a thread does at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Unknown, after lost events.
    Unknown,
    /// Runs, in this call or outside of calls.
    Runs(Option<Call>),
    /// Waits for a CPU, on which this thread runs.
    Ready(i32),
    /// Stopped by a signal or a debugger since this instant, ns.
    Stopped(u64),
    /// Sleeps in this call.
    Sleeps(Call),
    /// Sleeps in a page fault.
    Faults,
    /// Sleeps outside of calls.
    SleepsElsewhere,
}

/// State of one thread.
#[derive(Debug, Default)]
pub(super) struct Track {
    pid: i32,
    /// The call in which it waits for its next activation.
    wait: Option<Call>,
    state: State,
    /// The time up to which its running is accounted for, ns.
    accounted_ns: u64,
    current: Option<Current>,
    /// Whether the latest event of the running thread outside of system calls is a page fault.
    in_fault: bool,
    woken: Option<Woken>,
    /// A waking while it ran on its way to sleep, with effect if it is switched out right after.
    woken_early: Option<Woken>,
    timers: Timers,
    cpu: Option<u32>,
    migrations: u32,
    n_activations: u64,
    open: Option<Activation>,
    /// The threads that caused the next activation.
    hops: Vec<Hop>,
    /// What softirqs brought that woke it: when, ns, the latest last.
    brought: VecDeque<(u64, Brought)>,
    /// Calls for data that returned at once without any.
    pub(super) empty_polls: u64,
    /// Time by which the kernel may delay the timer of its latest wait, ns.
    slack_ns: Option<u64>,
    /// Whether it has called sched_yield(2).
    yields: bool,
    /// The futexes of the open activation.
    futexes: Futexes,
}

impl Track {
    pub(super) fn new(pid: i32, wait: Option<Call>) -> Track {
        Track { pid, wait, ..Track::default() }
    }

    /// Forgets what may be wrong after lost events.
    pub(super) fn forget(&mut self) {
        let Track { pid, wait, n_activations, yields, empty_polls, .. } = *self;
        let mut timers = std::mem::take(&mut self.timers);
        timers.forget();
        *self = Track { n_activations, timers, yields, empty_polls, ..Track::new(pid, wait) };
    }

    /// The open activation and what caused it, for a thread that it wakes at `at_ns`.
    pub(super) fn hops(&self, at_ns: u64) -> Option<Vec<Hop>> {
        let open = self.open.as_ref()?;
        let mut hops = open.hops.clone();
        let Activation { release, release_ns, user_ns, .. } = *open;
        let released_by = release.by_thread();
        hops.push(Hop { pid: self.pid, released_by, release_ns, user_ns, woke_next_ns: at_ns });
        let surplus = hops.len().saturating_sub(MOST_HOPS);
        hops.drain(..surplus);
        Some(hops)
    }

    /// The activation that was released and is not over at `at_ns`, the time up to which the events are known.
    pub(super) fn unfinished(&self, at_ns: u64, offsets: &[i64]) -> Option<Unfinished> {
        if let Some(open) = &self.open {
            let (release_ns, run_ns) = (open.release_ns, open.run_ns);
            return Some(Unfinished { release_ns, has_run: open.user_ns > 0, run_ns });
        }
        let current = self.current.filter(|current| current.is_wait)?;
        let release_ns = match self.state {
            State::Unknown | State::Running => return None,
            State::Ready { .. } => self.release(current, self.woken?, offsets).1,
            // Its own timer has expired, and the waking is still to come. A timer that is due in the past at its start
            // lets nothing sleep: then it counts by another clock.
            State::Asleep { .. } => {
                let due = self.timers.due(Some(current.timer?), at_ns, offsets);
                due.filter(|due| due.at_ns >= due.started_ns)?.at_ns
            }
        };
        Some(Unfinished { release_ns, has_run: false, run_ns: 0 })
    }

    /// What it does after the last event.
    pub(super) fn doing(&self) -> Doing {
        let call = self.current.map(|current| current.call);
        match (self.state, call) {
            (State::Unknown, _) => Doing::Unknown,
            (State::Running, call) => Doing::Runs(call),
            (State::Ready { by, .. }, _) => Doing::Ready(by),
            (State::Asleep { is_stopped: true, since, .. }, _) => Doing::Stopped(since),
            (State::Asleep { .. }, Some(call)) => Doing::Sleeps(call),
            (State::Asleep { .. }, None) if self.in_fault => Doing::Faults,
            (State::Asleep { .. }, None) => Doing::SleepsElsewhere,
        }
    }

    /// Time by which the kernel may delay the timer of its latest wait, ns.
    pub(super) fn slack_ns(&self) -> Option<u64> {
        self.slack_ns
    }

    /// Whether it has called sched_yield(2).
    pub(super) fn yields(&self) -> bool {
        self.yields
    }

    /// The instant since which it sleeps in a futex, ns.
    pub(super) fn asleep_in_futex(&self) -> Option<u64> {
        match (self.state, self.current) {
            (State::Asleep { since, .. }, Some(current)) if current.call.kind() == CallKind::Futex => Some(since),
            _ => None,
        }
    }

    /// What it does, for the account of its time.
    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Unknown => Phase::Unknown,
            State::Running => Phase::Running,
            State::Ready { .. } => Phase::Waiting,
            State::Asleep { is_uninterruptible, is_stopped, .. } => {
                let of = |current: Current| if current.is_wait { self.wait } else { Some(current.call) };
                let call = self.current.and_then(of);
                Phase::Asleep(Sleep { call, is_fault: self.in_fault, is_uninterruptible, is_stopped })
            }
        }
    }

    /// Whether it sleeps, so that a waking has an effect.
    pub(super) fn is_asleep(&self) -> bool {
        matches!(self.state, State::Asleep { .. })
    }

    /// Sets the threads that cause its next activation.
    pub(super) fn caused_by(&mut self, hops: Vec<Hop>) {
        self.hops = hops;
    }

    /// Notes what wakes it at `at_ns`, before that event.
    pub(super) fn brought(&mut self, at_ns: u64, brought: Brought) {
        if self.brought.len() >= MOST_BROUGHT {
            self.brought.pop_front();
        }
        self.brought.push_back((at_ns, brought));
    }

    /// The same track once the wait is known, from its beginning on.
    pub(super) fn again(&mut self, wait: Call) -> Track {
        Track { brought: std::mem::take(&mut self.brought), ..Track::new(self.pid, Some(wait)) }
    }

    /// Whether a timer of its own may wake it at `at_ns`.
    pub(super) fn is_due(&self, at_ns: u64, offsets: &[i64]) -> bool {
        let of_call = self.current.and_then(|current| current.timer);
        self.timers.due_of_any(of_call, at_ns, offsets).is_some()
    }

    /// Whether it is in a call that may wait for a packet: asleep, or on its way to sleep.
    pub(super) fn may_wait_for_packet(&self) -> bool {
        self.current.is_some_and(|current| current.call.may_be_of_socket())
    }

    /// Takes an event by the thread or about it. `offsets` are those of the other clocks from `CLOCK_MONOTONIC`, ns.
    pub(super) fn take(&mut self, cpu: u32, event: &Event, offsets: &[i64]) -> Option<Completed> {
        let at = event.at_ns;
        let is_own = event.pid == self.pid && event.flags & (flags::HARDIRQ | flags::SOFTIRQ) == 0;
        // A kernel may omit the switch to it, but its own events show that it runs.
        let is_unseen = is_own && matches!(self.state, State::Ready { .. } | State::Asleep { .. });
        let is_unseen = is_unseen && !matches!(event.what, What::Switch { .. } | What::Waking { .. });
        let sleep = if is_unseen { self.switch_in(cpu, at, 0, None, offsets) } else { None };
        self.take_known(cpu, event, is_own, offsets).or(sleep)
    }

    fn take_known(&mut self, cpu: u32, event: &Event, is_own: bool, offsets: &[i64]) -> Option<Completed> {
        let at = event.at_ns;
        match event.what {
            What::Switch { next, prev, prev_state, next_priority, .. } => {
                if prev == self.pid {
                    self.switch_out(at, prev_state, next);
                    None
                } else if next == self.pid {
                    self.switch_in(cpu, at, prev, Some(next_priority), offsets)
                } else {
                    None
                }
            }
            What::Waking { pid } if pid == self.pid => {
                let in_interrupt = event.flags & (flags::HARDIRQ | flags::SOFTIRQ) != 0;
                self.waking(at, event.pid, in_interrupt);
                None
            }
            What::SysEnter { number, arguments } if is_own => self.enter(at, Call::of(number, arguments), arguments),
            What::SysExit { result, .. } if is_own => self.exit(cpu, at, result, offsets),
            What::TimerStart { timer, soft_ns, expires_ns } if is_own => {
                self.timers.start(timer, at, soft_ns);
                if let Some(current) = &mut self.current {
                    current.timer = Some(timer);
                    if current.is_wait {
                        self.slack_ns = Some(expires_ns.saturating_sub(soft_ns).max(0).cast_unsigned());
                    }
                }
                None
            }
            What::Exit if is_own => {
                self.account(at);
                self.complete(at)
            }
            What::PageFault if is_own => {
                self.account(at);
                self.in_fault = self.current.is_none();
                if let Some(open) = &mut self.open {
                    open.faults += 1;
                }
                None
            }
            What::Pass(mark) if is_own => {
                let open = self.open.as_mut().filter(|open| open.user_ns > 0);
                open.into_iter().for_each(|open| open.marks.pass(mark, at));
                None
            }
            _ => None,
        }
    }

    /// Adds the time on the CPU up to `at`.
    fn account(&mut self, at: u64) {
        let length = at.saturating_sub(self.accounted_ns);
        self.accounted_ns = at;
        if self.state != State::Running {
            return;
        }
        if let Some(current) = &mut self.current {
            current.run_ns += length;
        }
        if let Some(open) = &mut self.open {
            open.run_ns += length;
            if self.current.is_none() {
                open.user_run_ns += length;
            }
        }
    }

    fn switch_out(&mut self, at: u64, prev_state: u32, next: i32) {
        self.account(at);
        if prev_state & state::NOT_RUNNABLE == 0 {
            self.state = State::Ready { since: at, by: next };
            return;
        }
        let is_stopped = prev_state & state::STOPPED != 0;
        self.state =
            State::Asleep { since: at, is_uninterruptible: prev_state & state::UNINTERRUPTIBLE != 0, is_stopped };
        self.woken = self.woken_early.take().filter(|woken| at - woken.at_ns.min(at) <= SWITCH_OUT_NS);
        if let Some(current) = &mut self.current {
            current.slept = true;
            // A wake-up in the wait that did not end it was none.
            if current.is_wait && self.open.as_ref().is_some_and(|open| open.user_ns == 0) {
                self.open = None;
                self.n_activations -= 1;
            }
        }
    }

    fn waking(&mut self, at: u64, by: i32, in_interrupt: bool) {
        while self.wait.is_some() && self.brought.front().is_some_and(|(before, _)| *before < at) {
            self.brought.pop_front();
        }
        let brought = self.brought.binary_search_by_key(&at, |(at, _)| *at).ok();
        let brought = brought.and_then(|index| self.brought.get(index)).map(|(_, brought)| *brought);
        let woken = Woken { at_ns: at, by, in_interrupt, brought };
        let State::Asleep { since, is_uninterruptible, is_stopped } = self.state else {
            self.woken_early = Some(woken).filter(|_| self.state == State::Running);
            return;
        };
        self.state = State::Ready { since: at, by: 0 };
        self.woken = Some(woken);
        let call = self.current.map(|current| current.call);
        let block = Block {
            call,
            is_fault: self.in_fault,
            is_uninterruptible,
            is_stopped,
            from_ns: since,
            to_ns: at,
            waker: Some(by).filter(|_| !in_interrupt),
            futex: self.current.filter(|current| current.call.is_futex()).map_or(0, |current| current.first),
            may_be_wait: false,
            is_lock: false,
        };
        if let Some(open) = &mut self.open {
            let is_full = open.blocks.len() >= MOST_PIECES;
            match open.blocks.last_mut() {
                Some(last) if is_full => last.to_ns += at - since,
                _ => open.blocks.push(block),
            }
        }
    }

    fn switch_in(&mut self, cpu: u32, at: u64, prev: i32, priority: Option<i32>, offsets: &[i64]) -> Option<Completed> {
        let before = std::mem::replace(&mut self.state, State::Running);
        self.accounted_ns = at;
        self.migrations += u32::from(self.cpu.is_some_and(|last| last != cpu));
        self.cpu = Some(cpu);
        if let (State::Ready { since, by }, Some(open)) = (before, &mut self.open) {
            let wait = Wait { by: if by == 0 { prev } else { by }, length_ns: at - since };
            let is_full = open.waits.len() >= MOST_PIECES;
            match open.waits.last_mut() {
                Some(last) if is_full => last.length_ns += wait.length_ns,
                _ => open.waits.push(wait),
            }
        }
        let current = self.current?;
        let woken = self.woken.take()?;
        match self.wait {
            Some(_) if current.is_wait && self.open.is_none() => {
                let (release, release_ns, due) = self.release(current, woken, offsets);
                self.timers.take(due, current.timer);
                self.begin(cpu, at, release, release_ns);
                if let Some(open) = &mut self.open {
                    open.brought = woken.brought.map(|brought| (woken.at_ns, brought));
                    open.priority = priority;
                    open.timer_started_ns = due.map(|due| due.started_ns);
                }
                None
            }
            None if current.slept => {
                let (release, release_ns, due) = self.release(current, woken, offsets);
                self.timers.take(due, current.timer);
                let by_timer = release == Release::Timer;
                Some(Completed::Sleep { call: current.call, from_ns: current.at_ns, release_ns, by_timer })
            }
            _ => None,
        }
    }

    /// What released the thread, when, and the due time of the timer that did.
    fn release(&self, current: Current, woken: Woken, offsets: &[i64]) -> (Release, u64, Option<Due>) {
        if let Some(Brought::By(packet)) = woken.brought {
            return (Release::Interrupt, packet.arrived_ns(), None);
        }
        if woken.in_interrupt || woken.by == 0 {
            let due = self.timers.due_of_any(current.timer, woken.at_ns, offsets);
            return due.map_or((Release::Interrupt, woken.at_ns, None), |due| (Release::Timer, due.at_ns, Some(due)));
        }
        (Release::Thread(woken.by), woken.at_ns, None)
    }

    /// Begins an activation.
    fn begin(&mut self, cpu: u32, at: u64, release: Release, release_ns: u64) {
        let index = self.n_activations;
        self.n_activations += 1;
        self.open = Some(Activation {
            index,
            release,
            release_ns: release_ns.min(at),
            start_ns: at,
            cpu,
            migrations: std::mem::take(&mut self.migrations),
            hops: if matches!(release, Release::Thread(_)) { std::mem::take(&mut self.hops) } else { Vec::new() },
            ..Activation::default()
        });
        self.futexes = Futexes::default();
    }

    fn enter(&mut self, at: u64, call: Call, arguments: [u64; 3]) -> Option<Completed> {
        self.runs(at);
        self.in_fault = false;
        // A wait that a signal interrupted goes on.
        let is_wait = match self.current {
            Some(before) if call.is_restart() => before.is_wait,
            _ => self.wait == Some(call),
        };
        let first = arguments[0];
        self.current = Some(Current { call, first, at_ns: at, is_wait, slept: false, timer: None, run_ns: 0 });
        self.yields |= call.is_yield();
        self.futexes.take(call, arguments, at);
        if !is_wait {
            return None;
        }
        self.complete(at)
    }

    /// Ends the activation, if the program has run in it.
    fn complete(&mut self, at: u64) -> Option<Completed> {
        let futexes = std::mem::take(&mut self.futexes);
        let mut open = self.open.take().filter(|open| open.user_ns > 0)?;
        futexes.mark(&mut open.blocks, MOST_PIECES);
        open.marks.end(at);
        Some(Completed::Activation(Box::new(Activation { end_ns: at, ..open })))
    }

    fn exit(&mut self, cpu: u32, at: u64, result: i64, offsets: &[i64]) -> Option<Completed> {
        self.runs(at);
        if RESTARTS.contains(&result) {
            if let Some(open) = self.open.take_if(|open| open.user_ns == 0) {
                self.n_activations = open.index;
            }
            return None;
        }
        let current = self.current.take()?;
        self.returned(cpu, at, result, current, offsets);
        if let Some(timer) = current.timer.filter(|_| current.call.owns_its_timer()) {
            self.timers.end(timer);
        }
        None
    }

    /// Takes the end of a call.
    fn returned(&mut self, cpu: u32, at: u64, result: i64, current: Current, offsets: &[i64]) {
        let is_empty = result == AGAIN || result == 0 && current.call.polls();
        self.empty_polls += u64::from(is_empty && !current.slept && current.call.may_be_of_socket());
        if !current.is_wait {
            if let Some(open) = &mut self.open {
                let (run_ns, n) = open.calls.entry(current.call.number).or_default();
                *run_ns += current.run_ns;
                *n += 1;
            }
            return;
        }
        if self.open.is_none() {
            // It did not sleep: the due time had passed, or what it waits for had happened.
            let due = self.timers.due(current.timer, at, offsets);
            self.timers.take(due, current.timer);
            if due.is_none() && current.slept {
                // The event of its waking is missing, and so is the release.
                return;
            }
            let (release, release_ns) =
                due.map_or((Release::Immediate, current.at_ns), |due| (Release::Timer, due.at_ns));
            self.begin(cpu, at, release, release_ns);
            if let Some(open) = &mut self.open {
                open.timer_started_ns = due.map(|due| due.started_ns);
            }
        }
        if let Some(open) = &mut self.open {
            open.user_ns = at;
        }
    }

    /// An event of the thread itself shows that it runs.
    fn runs(&mut self, at: u64) {
        if self.state != State::Running {
            self.state = State::Running;
            self.accounted_ns = at;
        }
        self.account(at);
    }
}

#[cfg(test)]
mod tests;
