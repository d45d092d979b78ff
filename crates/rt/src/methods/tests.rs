//! All methods, with the running kernel.

use super::*;
use crate::cyclic::Ends;
use crate::sample_log;
use punctual_model::{ClockId, ClockTime, Nanos, Span};
use punctual_sys::signal;

/// The wait of a normal thread.
pub(super) fn wait_of(method: Method, period: Period, link: Option<LinkEnd>) -> AnyWait {
    AnyWait::new((method, Counter::Clock), Policy::OTHER, period, link).unwrap()
}

/// Runs 20 cycles of `period` by `wait`, the first of them `soon`; returns the cycles and latencies (ns), and the
/// result of the run.
pub(super) fn run(
    wait: &AnyWait,
    clock: ClockId,
    period: Period,
    soon: Span,
) -> (Vec<(u64, i64)>, Result<LoopResult, i32>) {
    let schedule = Schedule { first_due: punctual_sys::clock::now(clock).plus(soon), period };
    let limits = Ends::of(std::iter::once(&(0..20))).limits(0, 0, Nanos(i64::MAX));
    let (mut writer, mut reader) = sample_log(32);
    let (ended, allocations) = RtSection::enter(|rt| wait.run(rt, &schedule, &limits, &mut writer, &mut None));
    assert_eq!(allocations, 0);
    let mut samples = Vec::new();
    reader.drain(|sample| samples.push((sample.cycle, sample.latency.0)));
    (samples, ended)
}

/// As [`run`], by `method` and every 500 us.
fn cycles(method: &str) -> (Vec<(u64, i64)>, LoopResult) {
    let method: Method = method.parse().unwrap();
    let period = Period::try_from(Span(500_000)).unwrap();
    signal::SignalSet::new(signal::of_timers()).block().unwrap();
    let wait = wait_of(method, period, None);
    let (samples, ended) = run(&wait, method.clock(), period, Span(2_000_000));
    (samples, ended.unwrap())
}

/// The methods with due times on a grid, except `itimer`, whose signal goes to any thread of a process that has not
/// blocked it, and `deadline`, which needs a policy: both are tested as cells.
const GRID: [&str; 11] = [
    "clock_nanosleep",
    "clock_nanosleep:realtime",
    "clock_nanosleep:boottime",
    "clock_nanosleep:tai",
    "timerfd",
    "timerfd:realtime",
    "posix_timer",
    "posix_timer:tai",
    "futex",
    "futex:realtime",
    "poll",
];

/// No method returns before its due time, and every due time is a sample or was past.
#[test]
fn every_method_waits_until_its_due_time() {
    for method in GRID {
        let (samples, ended) = cycles(method);
        assert!(samples.iter().all(|(_, latency)| *latency >= 0), "{method}: {samples:?}");
        let mut next = 0;
        for (cycle, latency) in &samples {
            assert_eq!(*cycle, next, "{method}: {samples:?}");
            next = cycle + 1 + u64::try_from((latency - 500_000).max(0)).unwrap().div_ceil(500_000);
        }
        assert!(next >= 20, "{method}: {samples:?}");
        // Expirations that the kernel skipped are at most those until the last wake-up.
        let expired = samples.last().map_or(0, |(cycle, latency)| cycle + u64::try_from(*latency).unwrap() / 500_000);
        assert!(ended.overruns <= expired, "{method}: {ended:?} {samples:?}");
        assert_eq!(ended.origin_uncertainty, Span(0), "{method}");
    }
}

#[test]
fn relative_sleeps_are_never_shorter_than_requested_and_drift() {
    for method in ["clock_nanosleep:relative", "clock_nanosleep:relative:tai", "nanosleep"] {
        // Where the CPU is busy, the first sleep may itself begin after its cycle, or after the last one.
        let mut samples = Vec::new();
        let has_slept = punctual_sys::testing::comes_true(|| {
            samples = cycles(method).0;
            !samples.is_empty()
        });
        assert!(has_slept, "{method}");
        assert!(samples.iter().all(|(cycle, latency)| *cycle < 20 && *latency >= 0), "{method}: {samples:?}");
        assert!(samples.windows(2).all(|pair| pair[0].0 < pair[1].0), "{method}: {samples:?}");
    }
}

#[test]
fn a_due_time_that_is_past_ends_the_wait_at_once() {
    for method in GRID.into_iter().filter(|method| !method.starts_with("posix")) {
        let clock = method.parse::<Method>().unwrap().clock();
        let period = Period::try_from(Span(500_000)).unwrap();
        let begun = punctual_sys::clock::now(clock);
        let schedule = Schedule { first_due: ClockTime(begun.0 - 5_000_000), period };
        let limits = Ends::of(std::iter::once(&(0..1))).limits(0, 0, Nanos(i64::MAX));
        let (mut writer, mut reader) = sample_log(1);
        let wait = wait_of(method.parse().unwrap(), period, None);
        let (ended, _) = RtSection::enter(|rt| wait.run(rt, &schedule, &limits, &mut writer, &mut None));
        ended.unwrap();
        let mut latency = 0;
        reader.drain(|sample| latency = sample.latency.0);
        assert!(latency >= 5_000_000, "{method}: {latency}");
    }
}
