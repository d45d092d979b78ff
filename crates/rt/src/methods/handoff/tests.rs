//! The accounting of hand-offs with a scripted waker, and every kind with the running kernel.

#![expect(clippy::disallowed_macros, reason = "tests")]

use super::super::{AnyWait, run_cycles, tests::run};
use super::*;
use crate::cyclic::Ends;
use crate::{LoopResult, sample_log};
use punctual_model::{HandoffKind, Method, Nanos, Policy};
use punctual_sys::counter::Counter;
use punctual_sys::signal::{self, SignalSet};
use std::cell::RefCell;
use std::collections::VecDeque;

const PERIOD_NS: u64 = 1_000_000;
const FIRST_NS: u64 = 1 << 40;

/// A hand-off of a cycle: the lag of the waker, and when the waiting thread runs, both after the due time.
type HandedOver = (u64, u64, u64);

/// A waker that has made these hand-offs when the thread runs; after the last it ends with an errno.
struct Script {
    pending: Pending,
    now: Cell<u64>,
    turns: RefCell<VecDeque<HandedOver>>,
    begun: Cell<bool>,
}

impl Receive for Script {
    fn now(&self) -> ClockTime {
        ClockTime(self.now.get())
    }

    fn begin(&self, first_due: ClockTime) -> Result<(), i32> {
        self.begun.set(first_due.0 == FIRST_NS);
        Ok(())
    }

    fn wait(&self) -> Result<(), i32> {
        let Some((cycle, lag, runs)) = self.turns.borrow_mut().pop_front() else {
            self.pending.fail(libc::EIDRM);
            return Ok(());
        };
        let due = FIRST_NS + cycle * PERIOD_NS;
        self.pending.give(Handed { cycle, at: ClockTime(due + lag) });
        self.now.set(self.now.get().max(due + runs));
        Ok(())
    }

    fn pending(&self) -> &Pending {
        &self.pending
    }
}

/// The cycles and latencies (ns) of a run, and its result with the due times passed over.
type Outcome = (Vec<(u64, i64)>, Result<(LoopResult, u64), i32>);

/// The samples of the cycles from `first` to 8 with these hand-offs, and the result of the loop.
fn cycles_with(first: u64, turns: &[HandedOver]) -> Outcome {
    let schedule = Schedule { first_due: ClockTime(FIRST_NS), period: Period::try_from(Span(PERIOD_NS)).unwrap() };
    let turns = RefCell::new(turns.iter().copied().collect());
    let receiver =
        Receiver::new(Script { pending: Pending::default(), now: Cell::new(0), turns, begun: Cell::new(false) });
    receiver.first.set(first);
    let limits = Ends::of(std::iter::once(&(first..8))).limits(0, first, Nanos(i64::MAX));
    let (mut writer, mut reader) = sample_log(8);
    let (ended, allocations) =
        RtSection::enter(|rt| run_cycles(rt, &receiver, &schedule, &limits, &mut writer, &mut None));
    assert!(allocations == 0 && receiver.with.begun.get());
    let mut samples = Vec::new();
    reader.drain(|sample| samples.push((sample.cycle, sample.latency.0)));
    (samples, ended.map(|ended| (ended, receiver.passed_over())))
}

/// Each due time is recorded, missed because the thread was late, or passed over by the waker, and nothing else.
#[test]
fn each_due_time_is_recorded_missed_or_passed_over() {
    const P: u64 = PERIOD_NS;
    let on_time = |from: u64| (from..9).map(|cycle| (cycle, 7, 12));
    let row = |turns: &[HandedOver], then: u64| [turns.to_vec(), on_time(then).collect()].concat();
    for (turns, first_samples, passed_over) in [
        // The waker is 7 ns late: no part of the latency.
        (row(&[], 0), &[(0, 5), (1, 5), (2, 5)][..], 0),
        // The waker is exactly one period late: its next due time is now. One nanosecond more, and it is passed over.
        (row(&[(0, P, P + 5)], 1), &[(0, 5), (1, 5), (2, 5)], 0),
        (row(&[(0, P + 1, P + 6)], 2), &[(0, 5), (2, 5)], 1),
        (row(&[(0, 7, 12), (1, 3 * P + 1, 3 * P + 2)], 5), &[(0, 5), (1, 1), (5, 5)], 3),
        // It passes over the first ones, and all of them.
        (row(&[], 2), &[(2, 5), (3, 5)], 2),
        (vec![(9, 0, 5)], &[], 8),
        // The thread is exactly one period late: the next hand-off, already made, is its own. One nanosecond more, and
        // that one is missed.
        (row(&[(0, 0, P), (1, 0, 0)], 2), &[(0, 1_000_000), (1, 0), (2, 5)], 0),
        (row(&[(0, 0, P + 1), (1, 0, 0)], 2), &[(0, 1_000_001), (2, 5)], 0),
        // The waker found no room for cycle 4 meanwhile, which was missed with the others.
        (row(&[(0, 0, 4 * P + 1), (1, 0, 0), (2, 0, 0), (3, 0, 0)], 5), &[(0, 4_000_001), (5, 5)], 0),
        // As late, after a late hand-off: cycle 1 began before the thread ran, and was not handed over.
        (row(&[(0, P / 2, P + 5)], 2), &[(0, 500_005), (2, 5)], 1),
    ] {
        let (samples, ended) = cycles_with(0, &turns);
        assert_eq!(&samples[..first_samples.len()], first_samples, "{turns:?}");
        assert_eq!(ended.map(|ended| ended.1), Ok(passed_over), "{turns:?}");
        let missed: u64 = samples
            .iter()
            .map(|(cycle, ns)| {
                let missed = u64::try_from(*ns).unwrap().saturating_sub(P).div_ceil(P);
                missed.min(7 - cycle)
            })
            .sum();
        assert_eq!(samples.len() as u64 + missed + passed_over, 8, "{turns:?}");
    }
}

#[test]
fn due_times_of_the_warm_up_are_not_passed_over() {
    let turns: Vec<_> = [0, 4, 5, 6, 7].map(|cycle| (cycle, 0, 3)).into();
    let (samples, ended) = cycles_with(3, &turns);
    assert_eq!(samples, [4, 5, 6, 7].map(|cycle| (cycle, 3)));
    assert_eq!(ended.map(|ended| ended.1), Ok(1), "cycle 3, not 1 and 2");
}

#[test]
fn a_waker_that_ends_is_an_error_after_the_hand_offs_that_it_made() {
    let (samples, ended) = cycles_with(0, &[(0, 0, 3), (1, 0, 4)]);
    assert_eq!((samples, ended), (vec![(0, 3), (1, 4)], Err(libc::EIDRM)));
}

/// With the running kernel: no hand-off takes less than no time, each due time is recorded, missed or passed over.
#[test]
fn every_kind_wakes_and_its_waker_ends() {
    let period = Period::try_from(Span(500_000)).unwrap();
    SignalSet::new(signal::of_timers()).block().unwrap();
    for kind in HandoffKind::KNOWN {
        let method: Method = format!("handoff:{kind}").parse().unwrap();
        let wait = match AnyWait::new((method, Counter::Clock), Policy::OTHER, period, None) {
            Err(err) if err.raw_os_error().is_none() => {
                eprintln!("skipped: {kind}: {err}");
                continue;
            }
            wait => wait.unwrap(),
        };
        let (samples, ended) = run(&wait, ClockId::Monotonic, period, Span(2_000_000));
        let ended = ended.unwrap_or_else(|errno| panic!("{kind}: {errno}"));
        let missed = |(cycle, ns): &(u64, i64)| {
            let missed = u64::try_from(*ns).unwrap().saturating_sub(500_000).div_ceil(500_000);
            missed.min(19 - cycle)
        };
        let missed: u64 = samples.iter().map(missed).sum();
        assert_eq!(samples.len() as u64 + missed + ended.passed_over, 20, "{kind}: {samples:?} {ended:?}");
        let AnyWait::Handoff(handoff) = wait else { panic!("{kind}") };
        let pair = Arc::downgrade(&handoff.receiver.with);
        drop(handoff);
        assert!(punctual_sys::testing::comes_true(|| pair.strong_count() == 0), "{kind}: the waker runs on");
    }
}

#[test]
fn a_cell_that_is_canceled_ends_the_waker() {
    let handoff = "futex-pi".parse().unwrap();
    let wait = HandoffWait::new(handoff, Period::try_from(Span(500_000)).unwrap()).unwrap();
    let pair = Arc::downgrade(&wait.receiver.with);
    drop(wait);
    assert!(punctual_sys::testing::comes_true(|| pair.strong_count() == 0));
}
