//! Promises that need no order of several threads: affinity, timers, robust mutexes, locked memory.

use super::grounds::{Grounds, SECONDS, unknown};
use super::stage;
use super::stage::{Actor, cues, fifo, perform};
use punctual_model::{Claim, ClaimCases, ClockId, ClockTime, Promise, Span, SplitMix64};
use punctual_sys::ipc::SharedWords;
use punctual_sys::mapping::{Mapping, page_bytes};
use punctual_sys::pthread::{Mutex, MutexKind};
use punctual_sys::{clock, memory, process, sched, usage};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::thread::scope;

/// A thread moves between two CPUs; then two threads share one CPU while the other may be idle.
pub(super) fn affinity(grounds: &Grounds) -> io::Result<Vec<ClaimCases>> {
    const MOVES: usize = 200;
    /// Time in which two threads share a CPU, ns.
    const STAY: u64 = 100_000_000;
    let Some(other) = grounds.other else {
        return Ok(unknown(Promise::Affinity, "needs two CPUs"));
    };
    let [mut moves, mut stays] = [Claim::Move, Claim::Stay].map(ClaimCases::new);
    for cpu in [grounds.cpu, other].into_iter().cycle().take(MOVES) {
        stage::move_to(cpu)?;
        moves.add(sched::current_cpu() == Some(cpu));
    }
    stage::move_to(grounds.cpu)?;
    let stay = || {
        let (begun, mut kept, mut all) = (clock::monotonic(), 0_u64, 0_u64);
        while stage::since(begun) < STAY {
            all += 1;
            kept += u64::from(sched::current_cpu() == Some(grounds.cpu));
        }
        (all, all - kept)
    };
    let both = scope(|scope| {
        let second = scope.spawn(stay);
        [stay(), second.join().unwrap_or_default()]
    });
    for (all, elsewhere) in both {
        (stays.cases, stays.broken) = (stays.cases + all, stays.broken + elsewhere);
    }
    Ok(vec![moves, stays])
}

/// Sleeps until instants of two clocks, by `sleep_until`.
pub(super) fn never_early(sleep_until: fn(ClockId, ClockTime) -> Result<(), i32>) -> ClaimCases {
    const SLEEPS: usize = 300;
    const AHEAD: Span = Span(150_000);
    let mut cases = ClaimCases::new(Claim::NeverEarly);
    for clock_id in [ClockId::Monotonic, ClockId::Boottime].into_iter().cycle().take(2 * SLEEPS) {
        let due = clock::now(clock_id).plus(AHEAD);
        if sleep_until(clock_id, due).is_ok() {
            let woke = clock::now(clock_id);
            cases.add(woke >= due);
            cases.see(woke.0.saturating_sub(due.0));
        }
    }
    cases
}

/// Five sleepers of one priority on one CPU, started in a random order, wake up in the order of their due times.
pub(super) fn timer_order() -> io::Result<ClaimCases> {
    const CASES: u64 = 50;
    const SLEEPERS: usize = 5;
    const PRIORITY: u32 = 10;
    /// Time until the first due time, and between two, ns.
    const AHEAD: u64 = 1_000_000;
    const APART: u64 = 20_000;
    let (mut cases, mut random) = (ClaimCases::new(Claim::Order), SplitMix64::new(0));
    // A case in which a due time was past before all slept is void.
    for _ in 0..2 * CASES {
        let (cues, next) = (cues(SLEEPERS), AtomicUsize::new(0));
        let places = [const { AtomicUsize::new(0) }; SLEEPERS];
        let due = clock::now(ClockId::Monotonic).plus(Span(AHEAD));
        let (next, places) = (&next, &places);
        let sleeper = |index: usize| {
            let due = due.plus(Span(index as u64 * APART));
            move || {
                clock::sleep_until(ClockId::Monotonic, due)?;
                places[index].store(next.fetch_add(1, AcqRel), Release);
                Ok(())
            }
        };
        let actors = (0..SLEEPERS).map(|index| Actor::new(fifo(PRIORITY), sleeper(index))).collect();
        let mut arrivals: Vec<usize> = (0..SLEEPERS).collect();
        random.shuffle(&mut arrivals);
        let mut is_void = false;
        perform(&cues, actors, || {
            arrivals.iter().try_for_each(|index| cues[*index].post())?;
            // All sleep now, because this thread runs.
            is_void = clock::now(ClockId::Monotonic) >= due;
            Ok(())
        })?;
        if !is_void {
            cases.add(places.iter().zip(0..).all(|(place, expected)| place.load(Acquire) == expected));
        }
        if cases.cases >= CASES {
            break;
        }
    }
    Ok(cases)
}

/// The owner of a robust mutex ends: a thread, or a process that is killed while another one waits.
pub(super) fn robust_mutex() -> io::Result<Vec<ClaimCases>> {
    const CASES: u64 = 50;
    let [mut threads, mut processes] = [Claim::ThreadEnded, Claim::ProcessKilled].map(ClaimCases::new);
    let is_told = |mutex: &Mutex| {
        let is_told = mutex.lock() == Err(libc::EOWNERDEAD);
        is_told && mutex.make_consistent().and(mutex.unlock()).and(mutex.lock()).and(mutex.unlock()).is_ok()
    };
    for _ in 0..CASES {
        let (mutex, held) = (Mutex::new(MutexKind::Robust)?, SharedWords::new(1)?);
        let owner = process::fork_tied(None, libc::SIGKILL, || {
            process::end_after(SECONDS);
            let _ = mutex.lock();
            let _ = held.post(0);
            let _ = SharedWords::new(1).and_then(|never| never.take(0));
            0
        })?;
        held.take(0)?;
        process::signal(owner, libc::SIGKILL)?;
        processes.add(is_told(&mutex));
        usage::wait(owner)?;
    }
    for _ in 0..CASES {
        let mutex = Mutex::new(MutexKind::Robust)?;
        scope(|scope| drop(scope.spawn(|| mutex.lock()).join()));
        threads.add(is_told(&mutex));
    }
    Ok(vec![threads, processes])
}

/// First writes to new memory: page faults before `mlockall`, none after it.
pub(super) fn locked_memory() -> io::Result<Vec<ClaimCases>> {
    const CASES: u64 = 60;
    const CONTROLS: u64 = 10;
    const PAGES: usize = 64;
    /// Address space of this process and of the mappings, bytes.
    const LOCKED: usize = 32 << 20;
    let faults = || {
        let mut mapping = Mapping::anonymous(PAGES * page_bytes())?;
        mapping.in_small_pages();
        let before = usage::thread()?;
        mapping.touch();
        let used = usage::since(&before, &usage::thread()?);
        Ok::<_, io::Error>(used.minor_faults + used.major_faults)
    };
    let mut cases = ClaimCases::new(Claim::NoFaults);
    for _ in 0..CONTROLS {
        cases.control(faults()? > 0);
    }
    if memory::try_to_lock(LOCKED).and_then(|()| memory::lock_all()).is_err() {
        let reason = "needs locked memory: run as root, with CAP_IPC_LOCK, or after ulimit -l 65536";
        return Ok(vec![ClaimCases::unknown(Claim::NoFaults, reason)]);
    }
    for _ in 0..CASES {
        cases.add(faults()? == 0);
    }
    Ok(vec![cases])
}
