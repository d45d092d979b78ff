//! The load `cpu`: a process on each CPU that computes for a part of its time.

use super::count_one;
use super::workers::Workers;
use punctual_model::{CpuSet, Percent, Span};
use std::hint::black_box;
use std::io;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Steps of one operation: some 10 us, so that counting costs nothing.
const STEPS: u64 = 10_000;
/// Interval at which a process with a share stops to sleep: ten times a scheduler tick, so that both states are seen.
const SLEEP_INTERVAL: Span = Span(10_000_000);
/// The most CPU time that a process makes up for after it was kept from its share.
const MAX_CATCH_UP: Span = Span(100_000_000);

/// Forks a process for each CPU.
pub(super) fn start(workers: &mut Workers<'_>, percent: Percent) -> Result<(), String> {
    for (counter, cpu) in workers.cpus().iter().enumerate() {
        workers.fork(Some(counter), |count| {
            punctual_sys::sched::set_affinity(0, &CpuSet::from_iter([cpu]))?;
            compute(percent, count)
        })?;
    }
    Ok(())
}

fn compute(percent: Percent, count: Option<&AtomicU64>) -> io::Result<()> {
    let mut value = 1_u64;
    // CPU time beyond its share, ns; negative when it is behind.
    let (mut time, mut used) = (punctual_sys::clock::monotonic(), punctual_sys::usage::thread_cpu_time());
    let mut ahead_ns = 0_i64;
    loop {
        for step in 0..STEPS {
            // Knuth's multiplier (MMIX): a chain of dependent multiplications, which fills no cache.
            value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
        }
        count_one(count);
        if percent == Percent::ALL {
            continue;
        }
        let (now, used_now) = (punctual_sys::clock::monotonic(), punctual_sys::usage::thread_cpu_time());
        let share_ns = now.since(time).0 / 100 * i64::from(percent.get());
        ahead_ns += used_now.ns().saturating_sub(used.ns()).cast_signed() - share_ns;
        ahead_ns = ahead_ns.max(-MAX_CATCH_UP.ns().cast_signed());
        (time, used) = (now, used_now);
        // A sleep until the share has caught up with the lead, at most for the rest of one turn.
        let turn_ns = SLEEP_INTERVAL.ns().cast_signed() / 100 * i64::from(100 - percent.get());
        let sleep_ns = turn_ns.min(ahead_ns.saturating_mul(100) / i64::from(percent.get()));
        if sleep_ns >= turn_ns / 2 && sleep_ns > 0 {
            std::thread::sleep(Duration::from_nanos(sleep_ns.unsigned_abs()));
        }
    }
}
