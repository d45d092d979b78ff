//! Threads whose priority changes while they run.

use super::*;
use Cause::*;
use Evidence::*;

const WAITER: i32 = 400;

/// A normal thread runs, and inherits priority `to` at `at_ns` from a thread of CPU 1.
fn boosted(at_ns: u64, to: i32) -> Story {
    let mut story = Story::new(OTHER);
    story.trace.names.insert(WAITER, "waiter".to_owned());
    story.current[1] = WAITER;
    story.on(1, at_ns, What::Inherit { pid: OTHER, priority: to });
    story
}

/// The waiter is switched out with this priority and state.
fn and_waits(mut story: Story, at_ns: u64, prev_priority: i32, prev_state: u32) -> Story {
    let what = What::Switch { prev: WAITER, prev_priority, prev_state, next: 0, next_priority: 120 };
    story.on(1, at_ns, what);
    story
}

/// The interrupt wakes the thread without a request to switch. Later the other thread is switched out at this priority.
fn left_alone(story: Story, at_leaving: i32) -> Story {
    let mut story = story.interrupt(DUE + 1_000);
    for event in &mut story.trace.cpus[0].events {
        event.flags = 0;
    }
    let mut story = story.runs(DUE + 4_000_000);
    if let Some(What::Switch { prev_priority, .. }) =
        story.trace.cpus[0].events.iter_mut().rev().nth(1).map(|event| &mut event.what)
    {
        *prev_priority = at_leaving;
    }
    story
}

#[test]
fn an_inherited_priority_overrides_that_of_the_switch() {
    for (to, cause) in [(9, HigherPriority), (19, EqualPriority)] {
        let story = left_alone(and_waits(boosted(DUE - 300_000, to), DUE - 299_000, to, 1), 120);
        story.clone().guest().expect(cause, None, Direct, "other");
        let place = story.explained().blame().unwrap().place.clone().unwrap();
        assert!(place.contains("a lock that waiter waits for"), "{place}");
    }
    // The current thread makes another one wait and runs on; or it sleeps later, for another reason.
    for (priority, state) in [(9, 0), (120, 1)] {
        let story = left_alone(and_waits(boosted(DUE - 300_000, 9), DUE - 299_000, priority, state), 120);
        let place = story.explained().blame().unwrap().place.clone().unwrap();
        assert!(place.contains("a thread of that priority waits for"), "{place}");
    }
}

#[test]
fn what_is_inherited_counts_from_then_on_and_until_the_next_switch() {
    // The kernel requests a switch, and the thread inherits the priority 1 ms later.
    let story = boosted(DUE + 1_000_000, 9).interrupt(DUE + 1_000).runs(DUE + 4_000_000);
    let explanation = story.explained();
    let of = |cause| explanation.shares.iter().find(|share| share.cause == cause).map(|share| share.total.ns());
    assert_eq!((of(NotPreemptible), of(HigherPriority)), (Some(997_500), Some(3_000_000)));
    // The thread releases the lock, which requests a switch that no event flag shows.
    let mut story = boosted(DUE - 300_000, 9);
    story = left_alone(story, 120);
    let behind = story.trace.cpus[0].events.len() - 2;
    let what = What::Inherit { pid: OTHER, priority: 120 };
    story.trace.cpus[0].events.insert(behind, Event { at_ns: DUE + 3_970_000, pid: OTHER, flags: 0, what });
    let explanation = story.explained();
    let of = |cause| explanation.shares.iter().find(|share| share.cause == cause).map(|share| share.total.ns());
    assert_eq!((of(NotPreemptible), of(Throttling), of(Unknown)), (Some(30_000), None, None), "{explanation:#?}");
    // A switch ends the inherited priority.
    let story = boosted(DUE - 300_000, 9).switch(DUE - 200_000, 201, 120, 1).switch(DUE - 100_000, OTHER, 120, 1);
    story.interrupt(DUE + 1_000).runs(DUE + 400_000).expect(NotPreemptible, None, Direct, "other");
}

#[test]
fn an_unseen_priority_raise_is_never_called_not_preemptible() {
    // The priority is still raised at the switch out.
    left_alone(Story::new(OTHER), 9).guest().expect(HigherPriority, None, Inferred, "other");
    left_alone(Story::new(OTHER), 19).guest().expect(EqualPriority, None, Inferred, "other");
    // The priority is lowered again. No switch was requested, which may also be throttling.
    left_alone(Story::new(OTHER), 120).guest().expect(HigherPriority, Some(Throttling), Ambiguous, "other");
    // A request before the switch out: the time of the raise is unknown.
    let mut asked = left_alone(Story::new(OTHER), 9);
    asked.trace.cpus[0].events.iter_mut().filter(|event| event.what == What::Leave(TICK)).for_each(|event| {
        event.flags = flags::NEED_RESCHED;
    });
    asked.expect(Unknown, None, Undetermined, "other");
    // The same with a measured thread of normal priority.
    left_alone(Story::new(OTHER).fair(), 9).expect(HigherPriority, None, Inferred, "other");
    left_alone(Story::new(OTHER).fair(), 120).expect(FairScheduling, None, Direct, "other");
}

#[test]
fn without_an_event_after_the_waking_nothing_is_said_of_who_ran() {
    // Woken by CPU 1, while CPU 0 is silent until the switch.
    let mut story = Story::new(OTHER);
    for (at_ns, what) in [
        (DUE + 1_000, What::Enter(TICK)),
        (DUE + 1_500, expiry(TIMER)),
        (DUE + 2_000, What::Waking { pid: ME }),
        (DUE + 2_500, What::Leave(TICK)),
    ] {
        story.on(1, at_ns, what);
    }
    story.runs(DUE + 400_000).guest().expect(Unknown, None, Undetermined, "other");
}

#[test]
fn a_thread_that_was_long_not_waiting_was_busy_or_its_cpu_stood_still() {
    let running = |until: u64| {
        let mut story = Story::new(OTHER);
        story.trace.cpus[0].events.clear();
        story.current[0] = ME;
        let mut story = story.switch(900_000, ME, 19, 0);
        story.at(until, What::TimerStart { timer: TIMER, expires_ns: 1_000_000, soft_ns: 1_000_000 });
        story.switch(until + 1_000, OTHER, 120, 1).interrupt(until + 2_000).runs(until + 5_000)
    };
    running(DUE + 20_000).expect(OwnOverrun, None, Direct, "measured/0");
    running(DUE + 300_000).expect(OwnOverrun, Some(CpuStalled), Ambiguous, "measured/0");
    // A sleep for another event than its timer.
    let mut slept = Story::new(OTHER);
    slept.trace.cpus[0].events.clear();
    slept.current[0] = ME;
    let mut slept = slept.switch(900_000, OTHER, 120, 1).then(DUE + 300_000, What::Waking { pid: ME });
    slept = slept.switch(DUE + 302_000, ME, 19, 0);
    slept.at(DUE + 305_000, What::TimerStart { timer: TIMER, expires_ns: 1_000_000, soft_ns: 1_000_000 });
    let slept = slept.switch(DUE + 306_000, OTHER, 120, 1).interrupt(DUE + 307_000).runs(DUE + 310_000);
    slept.expect(Unknown, None, Undetermined, "measured/0");
    let mut counted = running(DUE + 300_000);
    counted.facts.taker = Taker::Nobody;
    counted.expect(OwnOverrun, None, Inferred, "measured/0");
}
