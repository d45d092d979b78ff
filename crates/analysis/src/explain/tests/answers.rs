//! Wake-ups by devices, and answers to triggers: no timer is started for them.

use super::*;

const DEVICE: Context = Context::Interrupt(36);
const NET_RX: Context = Context::Softirq(3);
const THREAD: i32 = 400;

fn lengths(explanation: &Explanation) -> Vec<(Phase, u64)> {
    explanation.phases.iter().map(|phase| (phase.phase, phase.length.ns())).collect()
}

/// The thread sends at its due time and sleeps 3 us later; the CPU is idle then.
fn asked() -> Story {
    let mut story = Story::new(0).switch(DUE - 10_000, ME, 19, 0).switch(DUE + 3_000, 0, 120, 1);
    story.subject.waits_for = WaitsFor::Answer;
    story
}

/// A softirq brings an answer and wakes the thread.
fn answer(story: Story, at: u64) -> Story {
    story.then(at, What::Enter(NET_RX)).then(at + 4_000, What::Waking { pid: ME }).then(at + 5_000, What::Leave(NET_RX))
}

/// The thread waits for a device; `current` has the CPU.
fn waits_for_device(current: i32) -> Story {
    let mut story = Story::new(current);
    story.subject.waits_for = WaitsFor::Device;
    story.trace.names.insert(THREAD, "irq/36-virtio1-req".to_owned());
    story
}

#[test]
fn an_answer_is_divided_by_its_interrupt_its_waking_and_its_switch() {
    let came = |story, at| answer(story, at).runs(at + 8_000);
    use Phase::{Away, InterruptToWakeup, Sending, SwitchToUser, WakeupToSwitch};
    let by_softirq = came(asked(), DUE + 500_000).explained();
    assert_eq!(
        lengths(&by_softirq),
        [(Sending, 3_000), (Away, 497_000), (InterruptToWakeup, 4_000), (WakeupToSwitch, 4_000), (SwitchToUser, 2_000)]
    );
    // A softirq at the end of an interrupt belongs to it; a later one does not.
    let interrupted = |at| asked().then(at, What::Enter(DEVICE)).then(at + 1_000, What::Leave(DEVICE));
    let behind = came(interrupted(DUE + 100_000), DUE + 101_500).explained();
    assert_eq!(lengths(&behind)[1..3], [(Away, 97_000), (InterruptToWakeup, 5_500)]);
    let later = came(interrupted(DUE + 100_000), DUE + 110_000).explained();
    assert_eq!(lengths(&later)[1..3], [(Away, 107_000), (InterruptToWakeup, 4_000)]);
    // The cause is outside of this machine.
    came(asked(), DUE + 500_000).expect(Cause::LinkAndTarget, None, Evidence::Inferred, "link and target");
    // An earlier waking was not by an answer.
    let foreign = asked().then(DUE + 50_000, What::Waking { pid: ME }).switch(DUE + 52_000, ME, 19, 0);
    let again = came(foreign.switch(DUE + 60_000, 0, 120, 1), DUE + 200_000).explained();
    assert_eq!(lengths(&again)[1..3], [(Away, 140_000), (InterruptToWakeup, 4_000)]);
}

#[test]
fn an_answer_that_is_there_before_the_thread_sleeps_is_all_sending() {
    let explanation = asked().reads(DUE + 2_500).explained();
    assert_eq!(lengths(&explanation), [(Phase::Sending, 2_500)]);
    assert_eq!(explanation.blame().unwrap().cause, Cause::UsualWakeUp);
}

#[test]
fn who_runs_when_an_answer_has_come_is_named_as_for_any_wake_up() {
    let story = Story::new(0).switch(DUE - 10_000, ME, 19, 0).switch(DUE + 3_000, OTHER, 4, 1);
    let mut story = story.then(DUE + 10_000, What::Enter(NET_RX)).then(DUE + 11_000, What::Waking { pid: ME });
    story.subject.waits_for = WaitsFor::Answer;
    story.then(DUE + 12_000, What::Leave(NET_RX)).runs(DUE + 300_000).expect(
        Cause::HigherPriority,
        None,
        Evidence::Direct,
        "other",
    );
}

#[test]
fn a_device_that_is_due_while_interrupts_are_off_is_late_by_that() {
    let at = DUE + 200_000;
    let story = waits_for_device(OTHER).then(at, What::Enter(DEVICE)).then(at + 1_000, What::Waking { pid: ME });
    let mut story = story.stack(at + 1_001, &[ENTRY, UNLOCK]).flags(flags::NEED_RESCHED);
    story.facts.taker = Taker::Nobody;
    let story = story.then(at + 1_500, What::Leave(DEVICE)).runs(at + 3_000);
    story.expect(Cause::InterruptsOff, None, Evidence::Inferred, "other");
    assert_eq!(
        lengths(&story.explained())[..2],
        [(Phase::ExpiryToInterrupt, 200_000), (Phase::InterruptToWakeup, 1_000)]
    );
}

#[test]
fn an_interrupt_thread_is_part_of_handling_and_its_delays_are_named() {
    let woken = |priority: i32, waits: u64| {
        let story = waits_for_device(0).switch(DUE - 50_000, OTHER, priority, 0);
        let story = story.then(DUE + 1_000, What::Enter(DEVICE)).then(DUE + 2_000, What::Leave(DEVICE));
        let story = story.switch(DUE + 2_000 + waits, THREAD, 49, 0);
        story.then(DUE + 12_000 + waits, What::Waking { pid: ME }).runs(DUE + 14_000 + waits)
    };
    let quick = woken(120, 1_000).explained();
    assert_eq!(
        lengths(&quick),
        [
            (Phase::ExpiryToInterrupt, 1_000),
            (Phase::InterruptToWakeup, 12_000),
            (Phase::WakeupToSwitch, 2_000),
            (Phase::SwitchToUser, 2_000)
        ]
    );
    let its_own = |share: &&punctual_model::Share| share.cause == Cause::Interrupt && share.owner.pid == Some(THREAD);
    assert_eq!(quick.shares.iter().find(its_own).map(|share| share.total.ns()), Some(10_000));
    woken(4, 300_000).expect(Cause::HigherPriority, None, Evidence::Direct, "other");
    woken(49, 300_000).expect(Cause::EqualPriority, None, Evidence::Direct, "other");
    woken(120, 300_000).expect(Cause::NotPreemptible, None, Evidence::Inferred, "other");
}

#[test]
fn the_stages_of_every_answer_are_seen_and_wake_ups_by_a_timer_are_none() {
    let mut story = Story::new(0);
    for at in (1_u64..=3).map(|n| DUE * n) {
        let asked = story
            .then(at - 20_000, What::TimerStart { timer: TIMER, expires_ns: 0, soft_ns: 0 })
            .switch(at - 10_000, 0, 120, 1)
            .interrupt(at)
            .flags(0)
            .switch(at + 3_000, ME, 19, 0)
            .switch(at + 6_000, 0, 120, 1);
        story = answer(asked, at + 50_000).switch(at + 54_000 + at / 200, ME, 19, 0);
    }
    let mut answers = Answers::new([Answered { pid: ME, measured_ns: DUE..u64::MAX }].into_iter());
    let mut woken = answers.clone();
    answers.take(&story.trace);
    // The last wake-up has no sleep after it and counts. One that has not run yet does not.
    woken.take(&answer(story.clone().switch(DUE * 4, 0, 120, 1), DUE * 4 + 50_000).trace);
    for answers in [answers, woken] {
        let seen = answers.histograms().map(|stages| stages.map(|one| (one.n, one.min_ns, one.max_ns)));
        assert_eq!(seen.collect::<Vec<_>>(), [[(3, Some(4_000), Some(4_000)), (3, Some(5_000), Some(15_000))]]);
    }
    let mut before = Answers::new([Answered { pid: ME, measured_ns: 0..DUE }].into_iter());
    before.take(&story.trace);
    assert!(before.histograms().all(|[handler, _]| handler.n == 0));
}

#[test]
fn who_is_woken_again_once_it_runs_was_woken_by_the_first() {
    let first = answer(asked(), DUE + 500_000).switch(DUE + 508_000, ME, 19, 0);
    // Answers to earlier triggers follow each other; the thread does not sleep for them.
    let explanation = answer(answer(first, DUE + 520_000), DUE + 530_000).reads(DUE + 540_000).explained();
    use Phase::{Away, InterruptToWakeup, Sending, SwitchToUser, WakeupToSwitch};
    assert_eq!(
        lengths(&explanation),
        [
            (Sending, 3_000),
            (Away, 497_000),
            (InterruptToWakeup, 4_000),
            (WakeupToSwitch, 4_000),
            (SwitchToUser, 32_000)
        ]
    );
}

#[test]
fn a_missing_switch_is_at_the_first_own_event_or_the_clock_reading() {
    // The kernel omits all events of the thread that has the CPU, including the switch away from it.
    let mut asked = Story::new(0).switch(DUE - 10_000, ME, 19, 0).switch(DUE + 3_000, OTHER, 120, 1);
    asked.subject.waits_for = WaitsFor::Answer;
    let mut story = asked.then(DUE + 500_000, What::Enter(NET_RX)).then(DUE + 504_000, What::Waking { pid: ME });
    story = story.flags(flags::NEED_RESCHED).then(DUE + 505_000, What::Leave(NET_RX));
    story.current[0] = ME;
    use Phase::{Away, InterruptToWakeup, Sending, SwitchToUser, WakeupToSwitch};
    let unseen = story.clone().flags(0).reads(DUE + 600_000).explained();
    assert_eq!(
        lengths(&unseen),
        [(Sending, 3_000), (Away, 497_000), (InterruptToWakeup, 4_000), (WakeupToSwitch, 96_000)]
    );
    let seen = story.flags(0).then(DUE + 550_000, expiry(1)).reads(DUE + 600_000).explained();
    assert_eq!(lengths(&seen)[3..], [(WakeupToSwitch, 46_000), (SwitchToUser, 50_000)]);
    for explained in [unseen, seen] {
        let unknown = explained.shares.iter().find(|share| share.evidence == Evidence::Undetermined).unwrap();
        assert_eq!(unknown.place.as_deref(), Some("a context switch event is missing"));
        assert_eq!(explained.doubts, ["1 switch of CPU 0 left no event"]);
    }
}

#[test]
fn who_is_woken_while_it_is_being_switched_out_has_slept() {
    let mut story = Story::new(0).switch(DUE - 10_000, ME, 19, 0);
    story.subject.waits_for = WaitsFor::Answer;
    story.on(1, DUE + 2_000, What::Enter(NET_RX)).on(1, DUE + 2_500, What::Waking { pid: ME });
    let story = story.switch(DUE + 3_000, OTHER, 4, 1);
    let explanation = story.runs(DUE + 300_000);
    use Phase::{Sending, SwitchToUser, WakeupToSwitch};
    assert_eq!(lengths(&explanation.explained()), [(Sending, 3_000), (WakeupToSwitch, 297_000), (SwitchToUser, 2_000)]);
    explanation.expect(Cause::HigherPriority, None, Evidence::Direct, "other");
}
