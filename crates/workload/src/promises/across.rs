//! Preemption across two CPUs: a woken thread runs before one of lower priority has done more than 1 ms of work.
//!
//! The work is counted in rounds of a loop, so that time in which the CPU was taken from it does not count.

use super::grounds::Grounds;
use super::stage::{Actor, cues, fifo, move_to, perform, since};
use punctual_model::{Claim, ClaimCases, CpuSet};
use punctual_sys::futex::Futex;
use punctual_sys::{clock, sched};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

const CASES: u64 = 40;
/// Work that the lower thread may do, ns of the loop when nothing disturbs it.
const WORK_NS: u64 = 1_000_000;
/// Longest time of a case: no thread spins longer, whatever happens.
const CASE_NS: u64 = 4_000_000;
/// Longest time of real-time threads on the other CPU, of all cases of a claim.
const BUDGET_NS: u64 = 12_000_000;
/// Priorities: of the thread that must yield, of the woken one, and of those that must not.
const LOW: u32 = 10;
const MIDDLE: u32 = 20;
const HIGH: u32 = 30;
/// Rounds of the loop between two readings of the clock.
const STEP: u64 = 256;

/// What the threads of a case share.
#[derive(Default)]
struct Race {
    /// Rounds of the lower thread; it ends at `end`.
    rounds: AtomicU64,
    end: AtomicU64,
    /// Rounds when the thread was woken, and when it ran.
    woken_at: AtomicU64,
    ran_at: AtomicU64,
    has_run: AtomicBool,
    is_posted: AtomicBool,
    /// Whether the CPU is taken for which the woken thread waits.
    is_taken: AtomicBool,
    /// The lower thread has ended; and it ended at `end`.
    is_over: AtomicBool,
    has_done_all: AtomicBool,
    /// Something took so long that the case shows nothing.
    is_void: AtomicBool,
    /// Time on the other CPU, ns.
    spent_ns: AtomicU64,
}

impl Race {
    /// Spins until `is_done` or [`CASE_NS`]; returns whether it is done.
    fn until(is_done: impl Fn() -> bool) -> bool {
        let begun = clock::monotonic();
        while !is_done() {
            if since(begun) > CASE_NS {
                return false;
            }
        }
        true
    }

    /// The lower thread.
    fn work(&self) {
        let (begun, mut rounds) = (clock::monotonic(), 0);
        while !self.has_run.load(Acquire) {
            rounds += 1;
            self.rounds.store(rounds, Release);
            if rounds >= self.end.load(Acquire) {
                self.has_done_all.store(true, Release);
                break;
            }
            if rounds % STEP == 0 && since(begun) > CASE_NS {
                self.is_void.store(true, Release);
                break;
            }
        }
        self.is_over.store(true, Release);
    }

    /// The waker, which keeps its CPU.
    fn wake(&self, claim: Claim, limit: u64, go: &Futex) -> Result<(), i32> {
        let is_ready =
            || if claim == Claim::Pull { self.is_taken.load(Acquire) } else { self.rounds.load(Acquire) > 0 };
        if !Race::until(is_ready) {
            self.is_void.store(true, Release);
        }
        let rounds = self.rounds.load(Acquire);
        self.woken_at.store(rounds, Release);
        self.end.store(rounds + limit, Release);
        go.post()?;
        self.is_posted.store(true, Release);
        Race::until(|| self.has_run.load(Acquire) || self.is_over.load(Acquire));
        Ok(())
    }
}

/// The claims about two CPUs.
pub(super) fn migration(grounds: &Grounds) -> io::Result<Vec<ClaimCases>> {
    let claims = [Claim::OtherCpu, Claim::Push, Claim::Pull];
    let Some(other) = grounds.other else {
        return Ok(claims.map(|claim| ClaimCases::unknown(claim, "needs two CPUs")).into());
    };
    let round_ps = round_ps();
    let limit = WORK_NS * 1_000 / round_ps;
    let series = |claim: Claim| {
        let mut cases = ClaimCases { asked_ns: Some(WORK_NS), ..ClaimCases::new(claim) };
        let mut spent_ns = 0;
        while cases.cases < CASES && spent_ns + CASE_NS < BUDGET_NS {
            let race = Race { end: AtomicU64::new(u64::MAX), ..Race::default() };
            run(&race, claim, (grounds.cpu, other), limit)?;
            // Also for cases that a disturbance made void.
            spent_ns += race.spent_ns.load(Acquire).max(BUDGET_NS / 200);
            let is_late = race.has_done_all.load(Acquire);
            if !is_late && race.is_void.load(Acquire) {
                continue;
            }
            let rounds = race.ran_at.load(Acquire).saturating_sub(race.woken_at.load(Acquire));
            cases.see(rounds.saturating_mul(round_ps) / 1_000);
            cases.add(!is_late);
        }
        Ok(cases)
    };
    claims.into_iter().map(series).collect()
}

/// Time of a round of the lower thread's loop, ps: the least of many stretches.
fn round_ps() -> u64 {
    const ROUNDS: u64 = 4_000;
    let stretch = || {
        let race = Race { end: AtomicU64::new(ROUNDS), ..Race::default() };
        let begun = clock::monotonic();
        race.work();
        since(begun)
    };
    let least = (0..20).map(|_| stretch()).min().unwrap_or(0);
    (least * 1_000 / ROUNDS).max(1)
}

/// One case. The director and the experiments are on the first CPU.
fn run(race: &Race, claim: Claim, (cpu, other): (u32, u32), limit: u64) -> io::Result<()> {
    let (cues, go, home) = (cues(4), Futex::default(), Futex::default());
    let [low, high] = if claim == Claim::OtherCpu { [other, cpu] } else { [cpu, other] };
    let on = |at: u32, act: &dyn Fn() -> Result<(), i32>| {
        move_to(at).map_err(punctual_sys::errno)?;
        let begun = clock::monotonic();
        let result = act();
        if at == other {
            race.spent_ns.fetch_add(since(begun), AcqRel);
        }
        result
    };
    let woken = || {
        let everywhere = [cpu, other].into_iter().filter(|at| claim != Claim::OtherCpu || *at == other);
        // It last ran on the other CPU.
        move_to(other)
            .and_then(|()| sched::set_affinity(0, &everywhere.collect::<CpuSet>()))
            .map_err(punctual_sys::errno)?;
        home.post()?;
        go.take()?;
        race.ran_at.store(race.rounds.load(Acquire), Release);
        race.has_run.store(true, Release);
        Ok(())
    };
    let work = || {
        race.work();
        Ok(())
    };
    let take = || {
        cues[1].post()?;
        race.is_taken.store(true, Release);
        Race::until(|| race.is_posted.load(Acquire));
        Ok(())
    };
    let actors = vec![
        Actor::new(fifo(MIDDLE), woken),
        Actor::new(fifo(LOW), || on(low, &work)),
        Actor::new(fifo(HIGH), || on(high, &|| race.wake(claim, limit, &go))),
        Actor::new(fifo(HIGH), || if claim == Claim::Pull { on(cpu, &take) } else { Ok(()) }),
    ];
    let order: &[usize] = match claim {
        Claim::OtherCpu => &[3, 0, 1, 2],
        Claim::Push => &[3, 0, 2, 1],
        _ => &[0, 2, 3],
    };
    perform(&cues, actors, || {
        order.iter().try_for_each(|index| {
            cues[*index].post()?;
            // The thread to wake is at home before another one takes its CPU.
            if *index == 0 { home.take() } else { Ok(()) }
        })
    })
}
