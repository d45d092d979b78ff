//! Limits of CPU time: turns of SCHED_RR, budgets of SCHED_DEADLINE, time for normal threads beside SCHED_FIFO.

use super::grounds::{Grounds, reason};
use super::stage::{Actor, cues, fifo, perform, since};
use punctual_model::{Claim, ClaimCases, DeadlineBudget, MonoTime, Policy, RtPriority, Span};
use punctual_sys::futex::Futex;
use punctual_sys::usage::thread_cpu_time;
use punctual_sys::{clock, sched, thread};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::thread::{Builder, scope, sleep};
use std::time::Duration;

/// The policy of threads that take turns.
pub(super) const PROMISED: fn(RtPriority) -> Policy = Policy::RoundRobin;
const MS: u64 = 1_000_000;
/// Turns to see, and the longest time of both threads.
const TURNS: usize = 6;
const TURNS_NS: u64 = 850 * MS;
/// Rounds of a loop between two readings of the clock.
const STEP: u64 = 64;

/// A turn of a thread: from its first to its last look at the clock, `None` for one that is not complete; and the
/// rounds of its loop.
struct Turn {
    wall_ns: Option<u64>,
    rounds: u64,
}

/// What two threads that take turns share.
struct Turns {
    begun: MonoTime,
    /// Rounds of each.
    rounds: [AtomicU64; 2],
    /// Least time of [`STEP`] rounds, ns.
    step_ns: AtomicU64,
    is_over: AtomicBool,
    all: Mutex<Vec<Turn>>,
}

impl Turns {
    /// Adds a turn; the last one ends the test.
    fn push(&self, turn: Turn) {
        if let Ok(mut all) = self.all.lock() {
            all.push(turn);
            self.is_over.fetch_or(all.len() >= TURNS, AcqRel);
        }
    }

    /// The loop of a thread.
    fn take(&self, me: usize) {
        let others = || self.rounds[1 - me].load(Acquire);
        let (mut before, mut from, mut first, mut n) = (others(), clock::monotonic(), 0, 0);
        let mut last = from;
        while !self.is_over.load(Acquire) && since(self.begun) < TURNS_NS {
            for _ in 0..STEP {
                self.rounds[me].fetch_add(1, AcqRel);
            }
            let (now, seen) = (clock::monotonic(), others());
            if seen == before {
                self.step_ns.fetch_min(now.0.saturating_sub(last.0), AcqRel);
            } else {
                // The other one has run since the last look.
                self.push(Turn { wall_ns: Some(last.0.saturating_sub(from.0)), rounds: n - first });
                (before, first, from) = (seen, n, now);
            }
            (last, n) = (now, n + STEP);
        }
        if !self.is_over.swap(true, AcqRel) {
            self.push(Turn { wall_ns: None, rounds: n - first });
        }
    }
}

/// Turns of two threads of one priority. One is too short if it lasts less than half of the quantum, also with what was
/// taken from the CPU, and too long if it does the work of two.
pub(super) fn round_robin(policy: fn(RtPriority) -> Policy) -> io::Result<Vec<ClaimCases>> {
    const PRIORITY: u32 = 15;
    let priority = RtPriority::new(PRIORITY).unwrap_or(RtPriority::DEFAULT);
    let (policy, round_robin) = (policy(priority), Policy::RoundRobin(priority));
    let (begun, step_ns, rounds) = (clock::monotonic(), AtomicU64::new(u64::MAX), Default::default());
    let turns = Turns { begun, rounds, step_ns, is_over: AtomicBool::new(false), all: Mutex::default() };
    let (cues, quantum) = (cues(2), AtomicU64::new(1));
    let first = || {
        // That of a FIFO thread is 0.
        let interval = sched::set_policy(0, round_robin).and_then(|()| sched::round_robin_interval());
        quantum.store(interval.map_err(punctual_sys::errno)?.ns().max(1), Release);
        sched::set_policy(0, policy).map_err(punctual_sys::errno)?;
        // Ready, and behind this one.
        cues[1].post()?;
        turns.take(0);
        Ok(())
    };
    let second = || {
        turns.take(1);
        Ok(())
    };
    perform(&cues, vec![Actor::new(policy, first), Actor::new(policy, second)], || cues[0].post())?;
    let (quantum, step_ns) = (quantum.load(Acquire), turns.step_ns.load(Acquire));
    let mut cases = ClaimCases { asked_ns: Some(quantum), ..ClaimCases::new(Claim::Turn) };
    for Turn { wall_ns, rounds } in turns.all.into_inner().unwrap_or_default() {
        // Two quanta of work are a turn that the other thread missed.
        let missed = (rounds / STEP).saturating_mul(step_ns) / quantum.saturating_mul(2);
        (0..missed.min(TURNS as u64)).for_each(|_| cases.add(false));
        if let Some(wall_ns) = wall_ns {
            cases.see(wall_ns);
            if missed == 0 {
                cases.add(wall_ns >= quantum / 2);
            }
        }
    }
    if quantum.saturating_mul(TURNS as u64 + 1) > TURNS_NS {
        cases.unknown = Some("the quantum is too long for a test of 0.85 s".to_owned());
    }
    Ok(vec![cases])
}

/// A budget of SCHED_DEADLINE whose deadline is its period.
fn budget(runtime_ns: u64, period_ns: u64) -> Policy {
    Policy::Deadline(DeadlineBudget { runtime: Span(runtime_ns), deadline: Span(period_ns), period: Span(period_ns) })
}

/// Both claims about SCHED_DEADLINE.
pub(super) fn deadline(grounds: &Grounds) -> io::Result<Vec<ClaimCases>> {
    let or_unknown = |claim, cases: io::Result<ClaimCases>| {
        cases.unwrap_or_else(|err| {
            let deadline = err.raw_os_error() == Some(libc::EPERM);
            let rights = || format!("needs real-time priority: {}", punctual_host::how_to_allow(budget(MS, 10 * MS)));
            ClaimCases::unknown(claim, if deadline { rights() } else { reason(&err) })
        })
    };
    let admission = match grounds.realtime_us {
        Some(limit) => or_unknown(Claim::Admission, admission(limit)),
        None => {
            ClaimCases::unknown(Claim::Admission, "sched_rt_runtime_us is -1, which switches the admission test off")
        }
    };
    Ok(vec![admission, or_unknown(Claim::Runtime, runtime())])
}

/// Sleeping threads ask for 0.9 of a CPU each, until one is refused. No more may be admitted than the
/// real-time share of all CPUs, and the refusal is `EBUSY`, each time.
fn admission((runtime_us, period_us): (u64, u64)) -> io::Result<ClaimCases> {
    const REFUSALS: u64 = 60;
    let policy = budget(9 * MS, 10 * MS);
    let n_cpus = sched::affinity(0)?.len() as u64;
    let most = n_cpus * runtime_us * 10 / (period_us.max(1) * 9);
    let (end, ready) = (Futex::default(), Futex::default());
    let mut cases = ClaimCases::new(Claim::Admission);
    scope(|scope| {
        let result = (0..=most).try_for_each(|_| {
            let id = AtomicU32::new(0);
            let id = std::sync::Arc::new(id);
            let told = std::sync::Arc::clone(&id);
            let (end, ready) = (&end, &ready);
            Builder::new().stack_size(64 << 10).spawn_scoped(scope, move || {
                told.store(thread::id(), Release);
                let _ = ready.post();
                let _ = end.take();
            })?;
            ready.take().map_err(io::Error::from_raw_os_error)?;
            let id = id.load(Acquire);
            match sched::set_policy(id, policy) {
                Err(err) if err.raw_os_error() == Some(libc::EBUSY) => {
                    for _ in 0..REFUSALS {
                        let again = sched::set_policy(id, policy);
                        cases.add(again.is_err_and(|err| err.raw_os_error() == Some(libc::EBUSY)));
                    }
                    Err(io::ErrorKind::Other.into())
                }
                set => set,
            }
        });
        let ended = (0..=most).try_for_each(|_| end.post()).map_err(io::Error::from_raw_os_error);
        match result.and(ended) {
            Err(err) if err.raw_os_error().is_none() => Ok(()),
            Err(err) => Err(err),
            // All were admitted.
            Ok(()) => {
                (0..REFUSALS).for_each(|_| cases.add(false));
                Ok(())
            }
        }
    })?;
    Ok(cases)
}

/// A thread that never sleeps gets its runtime of 4 ms in 20 ms: less than half of the time, with what the kernel
/// accounts a tick too late.
fn runtime() -> io::Result<ClaimCases> {
    const CASES: u64 = 12;
    const RUNTIME: u64 = 4 * MS;
    const PERIOD: u64 = 20 * MS;
    const CASE: u64 = 120 * MS;
    let mut cases = ClaimCases { asked_ns: Some(CASE / PERIOD * RUNTIME), ..ClaimCases::new(Claim::Runtime) };
    let spin = || {
        sched::set_policy(0, budget(RUNTIME, PERIOD))?;
        for _ in 0..CASES {
            let (begun, used) = (clock::monotonic(), thread_cpu_time());
            while since(begun) < CASE {}
            let (used, wall) = (thread_cpu_time().ns().saturating_sub(used.ns()), since(begun));
            cases.see(used);
            cases.add(used < wall / 2);
        }
        Ok(())
    };
    let spun = scope(|scope| Builder::new().spawn_scoped(scope, spin)?.join().unwrap_or(Ok(())));
    spun.map(|()| cases)
}

/// A FIFO thread spins until a normal one on its CPU has run, 1.1 s at most.
pub(super) fn starvation(grounds: &Grounds) -> io::Result<Vec<ClaimCases>> {
    const CASES: u64 = 2;
    const LONGEST: u64 = 1100 * MS;
    const PRIORITY: u32 = 10;
    let mut cases = ClaimCases::new(Claim::Starvation);
    for _ in 0..CASES {
        let (cues, rounds, is_over) = (cues(2), AtomicU64::new(0), AtomicBool::new(false));
        let (waited_ns, has_run) = (AtomicU64::new(0), AtomicBool::new(false));
        let normal = || {
            while !is_over.load(Acquire) {
                rounds.fetch_add(1, AcqRel);
            }
            Ok(())
        };
        let hog = || {
            let (begun, before) = (clock::monotonic(), rounds.load(Acquire));
            while since(begun) < LONGEST && rounds.load(Acquire) == before {}
            waited_ns.store(since(begun), Release);
            has_run.store(rounds.load(Acquire) != before, Release);
            is_over.store(true, Release);
            Ok(())
        };
        let actors = vec![Actor::new(Policy::OTHER, normal), Actor::new(fifo(PRIORITY), hog)];
        perform(&cues, actors, || {
            cues[0].post()?;
            while rounds.load(Acquire) == 0 {
                sleep(Duration::from_millis(1));
            }
            cues[1].post()
        })?;
        if has_run.load(Acquire) {
            cases.see(waited_ns.load(Acquire));
            cases.add(true);
        } else if grounds.fair_server == Some(true) {
            cases.add(false);
        } else {
            cases.unknown = Some(
                "the kernel may need up to 1.95 s to stop a real-time thread; this test ends after 1.1 s".to_owned(),
            );
        }
    }
    Ok(vec![cases])
}
