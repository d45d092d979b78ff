//! Timers of one watched thread: which of them released it, and when it was due.

/// Functions of timers that wake a thread which waits for them: sleeps and timeouts, timerfd, POSIX timers, setitimer.
/// The scheduler starts timers of its own while a thread goes to sleep.
pub const WAKING_TIMERS: [&str; 5] =
    ["hrtimer_wakeup", "timerfd_tmrproc", "posix_timer_fn", "it_real_fn", "alarmtimer_fired"];

/// Most timers of one thread that are remembered.
const MOST_TIMERS: usize = 64;
/// Distance between an expiry and a waking by it that clocks may seem to reverse, ns.
const CLOCK_NS: u64 = 1_000;
/// Longest time, ns, between the due time of a timer and a waking by it.
const MOST_LATE_NS: u64 = 10_000_000_000;
/// The same for a timer that is not known as that of the thread's waits.
const MOST_UNKNOWN_NS: u64 = 1_000_000;

/// One start of a timer: when, and the earliest expiry by the timer's own clock, ns.
#[derive(Debug, Clone, Copy)]
struct Start {
    at_ns: u64,
    soft_ns: i64,
}

/// A timer: its latest start, and the one before, which the wait for it may have replaced already.
#[derive(Debug, Clone, Copy)]
struct Timer {
    latest: Start,
    before: Option<Start>,
}

/// A due time of a timer, and the start that set it, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) at_ns: u64,
    pub(super) started_ns: u64,
    /// Address of the timer.
    timer: u64,
}

/// The timers that one thread started, by address.
#[derive(Debug, Default)]
pub(super) struct Timers {
    known: Vec<(u64, Timer)>,
    /// The timer that the thread's waits wait for, although none of their calls starts it, as with `timerfd_create`.
    standing: Option<u64>,
    /// The latest due time that released the thread, ns: each releases it once.
    last_due_ns: u64,
}

impl Timers {
    /// Forgets all but the timer of the waits.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Adds a start.
    pub(super) fn start(&mut self, timer: u64, at_ns: u64, soft_ns: i64) {
        let latest = Start { at_ns, soft_ns };
        if let Some((_, known)) = self.known.iter_mut().find(|(address, _)| *address == timer) {
            *known = Timer { latest, before: Some(known.latest) };
            return;
        }
        let new = (timer, Timer { latest, before: None });
        if self.known.len() < MOST_TIMERS {
            self.known.push(new);
        } else if let Some(oldest) = self.known.iter_mut().min_by_key(|(_, known)| known.latest.at_ns) {
            *oldest = new;
        }
    }

    /// Forgets a timer that ended with the call that started it.
    pub(super) fn end(&mut self, timer: u64) {
        self.known.retain(|(address, _)| *address != timer);
    }

    fn known(&self, timer: u64) -> Option<&Timer> {
        self.known.iter().find(|(address, _)| *address == timer).map(|(_, known)| known)
    }

    /// The due time by which the thread runs at `at_ns`: of the timer that its call started, or of the one that its
    /// waits wait for. `offsets` are those of the other clocks from `CLOCK_MONOTONIC`, ns.
    pub(super) fn due(&self, of_call: Option<u64>, at_ns: u64, offsets: &[i64]) -> Option<Due> {
        let candidates = of_call.or(self.standing).into_iter();
        let found = candidates.filter_map(|address| self.known(address)?.due(address, at_ns, offsets)).next();
        found.filter(|due| due.at_ns > self.last_due_ns && at_ns.saturating_sub(due.at_ns) < MOST_LATE_NS)
    }

    /// The same of any timer of the thread whose interrupt may have woken it at `at_ns`. The kernel starts other timers
    /// while a thread runs, so one that is not known to be its own counts only right after its due time.
    pub(super) fn due_of_any(&self, of_call: Option<u64>, at_ns: u64, offsets: &[i64]) -> Option<Due> {
        let of_any = || {
            let dues = self.known.iter().filter_map(|(address, timer)| timer.due(*address, at_ns, offsets));
            let last = self.last_due_ns;
            dues.filter(|due| due.at_ns > last && at_ns.saturating_sub(due.at_ns) < MOST_UNKNOWN_NS).max()
        };
        self.due(of_call, at_ns, offsets).or_else(of_any)
    }

    /// Takes the due time, if any, that released the thread from a wait whose call started the timer `of_call`.
    pub(super) fn take(&mut self, due: Option<Due>, of_call: Option<u64>) {
        let Some(due) = due else { return };
        self.last_due_ns = due.at_ns;
        if of_call.is_none() {
            self.standing = Some(due.timer);
        }
    }
}

impl Timer {
    /// The latest due time up to `at_ns` of this timer at `address`.
    fn due(&self, address: u64, at_ns: u64, offsets: &[i64]) -> Option<Due> {
        let of = |start: Start| {
            let clocks = offsets.iter().copied().chain([0]);
            let dues = clocks.filter_map(|ahead| u64::try_from(start.soft_ns.saturating_sub(ahead)).ok());
            // Its clock is the one by which it was due after its start, at the latest now.
            let due_ns = dues.filter(|due| *due <= at_ns.saturating_add(CLOCK_NS)).max()?;
            Some(Due { at_ns: due_ns, started_ns: start.at_ns, timer: address })
        };
        of(self.latest).or_else(|| self.before.and_then(of))
    }
}
