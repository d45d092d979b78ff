//! Timers of other threads in the interrupt of the thread's own timer, and in softirqs.

use super::*;
use Cause::*;
use Evidence::*;

/// The thread's own timer expires after another one, whose function takes 8 ms.
fn behind(function: Option<u64>) -> Story {
    let at = DUE - 5_000;
    let story = Story::new(OTHER).then(at, What::Enter(TICK)).then(at + 500, What::TimerExpire { timer: 7, function });
    let story = story.then(DUE + 8_000_000, expiry(TIMER)).then(DUE + 8_001_000, What::Waking { pid: ME });
    story.flags(flags::NEED_RESCHED).then(DUE + 8_002_000, What::Leave(TICK)).runs(DUE + 8_005_000)
}

#[test]
fn a_silence_in_another_timers_function_names_that_function() {
    behind(Some(CLEAR_PAGE)).expect(Interrupt, None, Direct, "interrupt local_timer (clear_page_erms)");
    // The CPU of a guest may be taken away in a timer function as well.
    let named = "interrupt local_timer (clear_page_erms)";
    behind(Some(CLEAR_PAGE)).guest().expect(Interrupt, Some(CpuStalled), Ambiguous, named);
    behind(None).guest().expect(Interrupt, Some(CpuStalled), Ambiguous, "interrupt local_timer");
    let mut counted = behind(Some(CLEAR_PAGE));
    counted.facts.taker = Taker::Nobody;
    counted.expect(Interrupt, None, Direct, named);
}

#[test]
fn the_time_after_the_waking_is_of_the_functions_that_run_then() {
    // The thread's own timer is the first of 20; each of the others takes 50 us.
    let at = DUE + 1_000;
    let mut story = Story::new(OTHER).then(at, What::Enter(TICK)).then(at + 500, expiry(TIMER));
    story = story.then(at + 1_000, What::Waking { pid: ME }).flags(flags::NEED_RESCHED);
    for i in 1..20 {
        story.at(at + i * 50_000, What::TimerExpire { timer: i, function: Some(UNLOCK) });
    }
    let story = story.then(at + 1_000_000, What::Leave(TICK)).runs(at + 1_003_000);
    story.expect(Interrupt, None, Direct, "interrupt local_timer (_raw_spin_unlock_irqrestore)");
}

#[test]
fn a_timer_restarted_in_an_interrupt_is_not_the_threads_own() {
    // The clock tick arrives between the wake-up of the thread and its reading of the clock, and restarts its own
    // timer.
    let next = i64::try_from(DUE).unwrap() + 4_000_000;
    let start = |timer| What::TimerStart { timer, expires_ns: next, soft_ns: next };
    let woken = || Story::new(OTHER).interrupt(DUE + 300_000).runs(DUE + 310_000);
    let tick = |flags| {
        let story = woken().flags(flags).then(DUE + 330_000, What::Enter(TICK)).then(DUE + 331_000, start(0x7));
        story.then(DUE + 335_000, What::Leave(TICK)).flags(0).reads(DUE + 340_000).explained()
    };
    let phases = |one: &Explanation| one.phases.iter().map(|phase| phase.phase).collect::<Vec<_>>();
    let usual = [Phase::ExpiryToInterrupt, Phase::InterruptToWakeup, Phase::WakeupToSwitch, Phase::SwitchToUser];
    assert_eq!(phases(&tick(flags::IRQS_OFF | flags::HARDIRQ)), usual);
    assert_eq!(phases(&tick(flags::SOFTIRQ)), usual);
    // Outside of interrupts, the thread itself starts its wait, too late.
    assert_eq!(phases(&tick(flags::IRQS_OFF))[0], Phase::NotYetWaiting);
}

#[test]
fn timers_of_the_wheel_name_their_function_and_are_no_silence() {
    let wheel = Context::Softirq(1);
    let story = |expiries: u64| {
        let mut story = Story::new(OTHER).then(DUE - 5_000, What::Enter(wheel));
        for i in 0..expiries {
            story.at(DUE - 4_000 + i, What::WheelExpire { function: CLEAR_PAGE });
        }
        // An interrupt that nests in the softirq has timers of its own.
        let mut story = story.interrupt(DUE + 1_000).flags(0);
        for i in 1..expiries {
            story.at(DUE + 5_000 + i * 20_000, What::WheelExpire { function: CLEAR_PAGE });
        }
        story.then(DUE + 350_000, What::Leave(wheel)).runs(DUE + 352_000).guest()
    };
    story(0).expect(Softirq, Some(CpuStalled), Ambiguous, "softirq TIMER");
    story(1).expect(Softirq, Some(CpuStalled), Ambiguous, "softirq TIMER (clear_page_erms)");
    story(17).expect(Softirq, None, Direct, "softirq TIMER (clear_page_erms)");
}

#[test]
fn a_timer_that_is_passed_over_had_a_slack_that_is_unknown() {
    // The start of the timer is not in the trace; ticks at 10, 20 and 30 ms do not wake the thread, that of 40 ms does.
    let story = |fair: bool| {
        let mut story = if fair { Story::new(OTHER).fair() } else { Story::new(OTHER) };
        story.trace.cpus[0].events.retain(|event| !matches!(event.what, What::TimerStart { .. }));
        for i in 1..4 {
            let at = DUE + i * 10_000_000;
            story = story.then(at, What::Enter(TICK)).then(at + 500, expiry(7)).then(at + 1_000, What::Leave(TICK));
        }
        story.interrupt(DUE + 40_000_000).runs(DUE + 40_004_000)
    };
    let explanation = story(true).explained();
    let shares: Vec<_> = explanation.shares.iter().map(|one| (one.cause, one.evidence, one.total.ns())).collect();
    assert_eq!(shares[..2], [(TimerSlack, Inferred, 30_000_000), (Unknown, Undetermined, 9_999_000)]);
    // Timers of real-time threads have no slack.
    assert!(story(false).explained().shares.iter().all(|share| share.cause != TimerSlack));
}
