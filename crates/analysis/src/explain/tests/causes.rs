//! One wake-up for each cause, and the distinctions between causes.

use super::*;
use Cause::*;
use Evidence::*;

#[test]
fn phases_begin_where_the_events_are_and_leave_nothing_over() {
    let explanation = Story::new(OTHER).interrupt(DUE + 1_000).runs(DUE + 5_000).explained();
    let phases: Vec<_> = explanation.phases.iter().map(|phase| (phase.phase, phase.length.ns())).collect();
    assert_eq!(
        phases,
        [
            (Phase::ExpiryToInterrupt, 1_000),
            (Phase::InterruptToWakeup, 1_000),
            (Phase::WakeupToSwitch, 3_000),
            (Phase::SwitchToUser, 2_000)
        ]
    );
    assert_eq!(explanation.blame().unwrap().cause, UsualWakeUp);
    // All events at one time: no phase and no cause.
    let nothing = Story::new(OTHER).reads(DUE).explained();
    assert_eq!((nothing.phases.len(), nothing.shares.len()), (0, 0));
}

#[test]
fn higher_and_equal_priorities_are_distinguished() {
    for (priority, cause) in [(4, HigherPriority), (18, HigherPriority), (19, EqualPriority), (-1, HigherPriority)] {
        let story = Story::new(0).switch(DUE - 100_000, OTHER, priority, 0).interrupt(DUE + 1_000);
        story.runs(DUE + 405_000).expect(cause, None, Direct, "other");
    }
    // A thread one priority below, which cannot be preempted.
    let story = Story::new(0).switch(DUE - 100_000, OTHER, 20, 0).interrupt(DUE + 1_000);
    story.runs(DUE + 55_000).expect(NotPreemptible, None, Direct, "other");
}

#[test]
fn kernel_code_that_does_not_let_go_is_named_with_where_it_did() {
    // Interrupts inside the stretch show that the CPU was running.
    let mut story = Story::new(300).interrupt(DUE + 1_000).then(DUE - 5_000, What::Work { function: CLEAR_PAGE });
    for at in (20_000..380_000).step_by(20_000) {
        story
            .at(DUE + at, What::Enter(Context::Interrupt(36)))
            .at(DUE + at + 1_000, What::Leave(Context::Interrupt(36)));
    }
    story.trace.cpus[0].events.sort_by_key(|event| event.at_ns);
    let story = story.guest().runs(DUE + 400_000);
    let mut with_stack = story.clone();
    let behind = with_stack.trace.cpus[0].events.iter().position(|event| event.at_ns == DUE + 400_000).unwrap();
    with_stack.trace.stacks.push(vec![UNKNOWN, TRACE, SCHEDULE, CLEAR_PAGE]);
    with_stack.trace.cpus[0]
        .events
        .insert(behind + 1, Event { at_ns: DUE + 400_000, pid: 300, flags: 0, what: What::Stack(0) });
    story.expect(NotPreemptible, None, Direct, "kworker clear_page_erms");
    assert!(with_stack.explained().doubts.is_empty(), "a stack behind a switch is of the thread before");
    let place = with_stack.explained().shares.iter().find_map(|share| share.place.clone());
    assert_eq!(place.as_deref(), Some("rescheduled in clear_page_erms"));
}

#[test]
fn a_silent_section_in_a_guest_has_two_readings_and_a_witness_decides() {
    let story = Story::new(OTHER).interrupt(DUE + 1_000).runs(DUE + 400_000);
    story.expect(NotPreemptible, None, Direct, "other");
    let mut guest = story.guest();
    guest.expect(NotPreemptible, Some(CpuStalled), Ambiguous, "other");
    guest.facts.witness_ns = Some(100_000);
    guest.expect(CpuStalled, None, Inferred, "other");
    guest.facts.witness_ns = Some(200_000);
    guest.expect(NotPreemptible, Some(CpuStalled), Ambiguous, "other");
}

#[test]
fn the_code_hit_by_the_interrupt_separates_irqs_off_from_steal() {
    let late = |stack: &[u64]| {
        let at = DUE + 300_000;
        let story = Story::new(OTHER).then(at, What::Enter(TICK)).then(at + 500, expiry(TIMER));
        let story = story.then(at + 1_000, What::Waking { pid: ME });
        let story = if stack.is_empty() { story } else { story.stack(at + 1_001, stack) };
        story.flags(flags::NEED_RESCHED).then(at + 1_500, What::Leave(TICK)).runs(at + 3_000)
    };
    late(&[]).expect(InterruptsOff, None, Inferred, "other");
    late(&[]).guest().expect(InterruptsOff, Some(CpuStalled), Ambiguous, "other");
    late(&[SCHEDULE, ENTRY, UNLOCK, CLEAR_PAGE]).expect(InterruptsOff, None, Inferred, "other");
    late(&[ENTRY, UNLOCK]).guest().expect(InterruptsOff, Some(CpuStalled), Ambiguous, "other");
    late(&[ENTRY]).guest().expect(CpuStalled, None, Inferred, "other");
    late(&[ENTRY, CLEAR_PAGE, UNLOCK]).guest().expect(CpuStalled, None, Inferred, "other");
    // A function that is not in any list may have turned interrupts on itself.
    late(&[ENTRY, SCHEDULE]).expect(InterruptsOff, Some(CpuStalled), Ambiguous, "other");
    let place = late(&[ENTRY, UNLOCK, CLEAR_PAGE]).explained().shares[0].place.clone();
    assert_eq!(place.as_deref(), Some("enabled again in _raw_spin_unlock_irqrestore < clear_page_erms"));
}

#[test]
fn in_virtual_time_nobody_takes_the_cpu_so_silence_has_one_reading() {
    let counted = |mut story: Story| {
        story.facts.taker = Taker::Nobody;
        story
    };
    counted(Story::new(OTHER).interrupt(DUE + 1_000).runs(DUE + 400_000)).expect(NotPreemptible, None, Direct, "other");
    let at = DUE + 300_000;
    let late = Story::new(OTHER).then(at, What::Enter(TICK)).then(at + 500, expiry(TIMER));
    let late = late.then(at + 1_000, What::Waking { pid: ME }).stack(at + 1_001, &[ENTRY, CLEAR_PAGE]);
    let late = counted(late.flags(flags::NEED_RESCHED).then(at + 1_500, What::Leave(TICK)).runs(at + 3_000));
    late.expect(InterruptsOff, None, Inferred, "other");
    assert_eq!(late.explained().shares[0].place.as_deref(), Some("enabled again in clear_page_erms"));
    let softirq = Context::Softirq(1);
    let held = Story::new(OTHER).then(DUE - 5_000, What::Enter(softirq)).interrupt(DUE + 1_000);
    let held = held.flags(0).then(DUE + 350_000, What::Leave(softirq)).runs(DUE + 352_000);
    held.clone().guest().expect(Softirq, Some(CpuStalled), Ambiguous, "softirq TIMER");
    counted(held).expect(Softirq, None, Direct, "softirq TIMER");
}

#[test]
fn an_idle_cpu_that_idles_on_after_a_waking_shows_a_group_limit() {
    // A waking of a thread whose group has used up its quota requests no switch.
    let woken = |ticks: &[u64]| {
        let mut story = Story::new(0)
            .then(DUE + 1_000, What::Enter(TICK))
            .then(DUE + 1_500, expiry(TIMER))
            .then(DUE + 2_000, What::Waking { pid: ME })
            .then(DUE + 2_500, What::Leave(TICK))
            .guest();
        for at in ticks {
            story = story.then(DUE + at, What::Enter(TICK)).then(DUE + at + 1_000, What::Leave(TICK));
        }
        story.runs(DUE + 400_000)
    };
    woken(&[100_000, 200_000]).expect(Throttling, None, Inferred, "idle");
    // With a requested switch, the CPU either took long to leave idle or was away.
    let story = Story::new(0).interrupt(DUE + 1_000).runs(DUE + 400_000);
    story.guest().expect(IdleExit, Some(CpuStalled), Ambiguous, "idle");
}

#[test]
fn a_timer_that_expires_while_the_thread_is_stopped_does_not_wake_it() {
    // A signal wakes the thread, which then stops. Its timer expires meanwhile.
    let expired = |story: Story| {
        story.then(DUE + 1_000, What::Enter(TICK)).then(DUE + 1_500, expiry(TIMER)).then(DUE + 2_000, What::Leave(TICK))
    };
    let story = Story::new(0).then(DUE - 50_000, What::Waking { pid: ME }).switch(DUE - 40_000, ME, 19, 0);
    let story = expired(story.switch(DUE - 20_000, OTHER, 120, 4)).then(DUE + 40_000_000, What::Waking { pid: ME });
    story.runs(DUE + 40_010_000).expect(Stopped, None, Direct, "measured/0");
    // No event explains the missing wake-up.
    let story = expired(Story::new(OTHER)).then(DUE + 40_000_000, What::Waking { pid: ME }).runs(DUE + 40_010_000);
    story.expect(Unknown, None, Undetermined, "other");
}

#[test]
fn an_event_with_interrupts_on_says_that_the_interrupt_itself_was_late() {
    let story = Story::new(OTHER).then(DUE + 100_000, What::PageFault).interrupt(DUE + 300_000).runs(DUE + 303_000);
    story.guest().expect(CpuStalled, None, Inferred, "other");
}

#[test]
fn late_timers_of_other_cpus_show_that_the_machine_stood_still() {
    let tick = expiry(0xdef);
    let mut story = Story::new(OTHER).interrupt(DUE + 5_900_000).runs(DUE + 5_903_000).guest();
    story.expect(InterruptsOff, Some(CpuStalled), Ambiguous, "other");
    // Ticks of CPU 1 every 300 us; the next one comes only when CPU 0 runs again.
    for at in [100_000, 400_000, 700_000, DUE - 1_000] {
        story.on(1, at, tick);
    }
    story.expect(InterruptsOff, Some(CpuStalled), Ambiguous, "other");
    story.on(1, DUE + 5_901_000, tick);
    story.expect(CpuStalled, None, Inferred, "other");
    // CPU 1 was active in between, so its lateness is no evidence.
    let mut active = story.clone();
    active.trace.cpus[1]
        .events
        .insert(4, Event { at_ns: DUE + 3_000_000, pid: 0, flags: 0, what: What::Waking { pid: 1 } });
    active.expect(InterruptsOff, Some(CpuStalled), Ambiguous, "other");
}

#[test]
fn interrupts_and_softirqs_are_named() {
    let softirq = Context::Softirq(9);
    let story = Story::new(OTHER).interrupt(DUE + 1_000).then(DUE + 3_000, What::Enter(softirq));
    story.then(DUE + 83_000, What::Leave(softirq)).runs(DUE + 85_000).expect(Softirq, None, Direct, "softirq RCU");
    let device = Context::Interrupt(36);
    let story = Story::new(OTHER).interrupt(DUE + 1_000).then(DUE + 3_000, What::Enter(device));
    let story = story.then(DUE + 83_000, What::Leave(device)).runs(DUE + 85_000);
    story.expect(Interrupt, None, Direct, "interrupt 36 virtio1-req");
    // The same before the timer's own interrupt: interrupts are off in the handler.
    let story = Story::new(OTHER).then(DUE - 1_000, What::Enter(device)).then(DUE + 60_000, What::Leave(device));
    story.interrupt(DUE + 61_000).runs(DUE + 64_000).expect(Interrupt, None, Direct, "interrupt 36 virtio1-req");
    // In a guest, a long silence in a handler may be stolen time.
    let story = Story::new(OTHER).then(DUE - 1_000, What::Enter(device)).then(DUE + 900_000, What::Leave(device));
    let story = story.interrupt(DUE + 901_000).runs(DUE + 904_000).guest();
    story.expect(Interrupt, Some(CpuStalled), Ambiguous, "interrupt 36 virtio1-req");
}

#[test]
fn a_non_maskable_interrupt_is_carved_out_of_whoever_ran() {
    let story = Story::new(OTHER).then(DUE + 70_000, What::Nmi { length_ns: 65_000 });
    let explanation = story.interrupt(DUE + 71_000).runs(DUE + 74_000).explained();
    let blame = explanation.blame().unwrap();
    assert_eq!((blame.owner.name.as_str(), blame.total.ns()), ("non-maskable interrupt", 65_000));
}

#[test]
fn a_handler_that_stalls_is_the_cpu_and_one_with_many_timers_is_not() {
    let at = DUE + 1_000;
    let story = Story::new(OTHER).then(at, What::Enter(TICK)).then(at + 500, expiry(TIMER));
    let stalled = story.clone().then(at + 200_000, What::Waking { pid: ME }).then(at + 201_000, What::Leave(TICK));
    // Waking takes kernel locks, so the CPU need not have stood still.
    stalled.runs(at + 203_000).expect(CpuStalled, Some(Interrupt), Ambiguous, "interrupt local_timer");
    let mut busy = story;
    for i in 1..20 {
        busy.at(at + i * 8_000, expiry(i));
    }
    let busy = busy.then(at + 160_000, What::Waking { pid: ME }).then(at + 161_000, What::Leave(TICK));
    busy.runs(at + 163_000).expect(Interrupt, None, Direct, "interrupt local_timer");
}

#[test]
fn throttling_shows_by_a_scheduler_that_was_asked_and_chose_another() {
    // A switch to a normal thread while the measured thread is runnable.
    let until = |at_ns| Story::new(0).switch(at_ns, OTHER, 4, 0).interrupt(DUE + 1_000).flags(0);
    let switched = |story: Story| story.switch(DUE + 50_000, 201, 120, 0).runs(DUE + 40_000_000);
    let story = until(300_000);
    switched(story.clone()).expect(Throttling, None, Inferred, "other");
    // Real-time threads had less of the CPU than any limit: the thread may have been queued for another one.
    switched(until(DUE - 100_000)).expect(Unknown, None, Undetermined, "other");
    // A switch to idle.
    let idle = story.switch(DUE + 50_000, 0, 120, 0);
    idle.clone().runs(DUE + 40_000_000).guest().expect(Throttling, None, Inferred, "idle");
    // A guest that idles for longer than real-time threads are held back may have been stopped meanwhile.
    idle.clone().runs(DUE + 51_000_000).expect(Throttling, None, Inferred, "idle");
    idle.runs(DUE + 51_000_000).guest().expect(Throttling, Some(CpuStalled), Ambiguous, "idle");
    // The scheduler cleared the request without a switch: the fair server kept the same thread.
    let story = Story::new(0).switch(300_000, 201, 4, 0).switch(DUE - 9_000, OTHER, 120, 0).interrupt(DUE + 1_000);
    let story = story.flags(0).then(DUE + 4_000, What::Enter(TICK)).then(DUE + 5_000, What::Leave(TICK));
    story.runs(DUE + 40_000_000).expect(Throttling, None, Inferred, "other");
}

#[test]
fn threads_of_one_program_that_the_fair_scheduler_lets_run_are_added_up() {
    let mut story = Story::new(OTHER).fair().interrupt(DUE + 1_000).flags(0);
    for i in 0..50_u64 {
        let next = if i % 2 == 0 { 201 } else { OTHER };
        story = story.switch(DUE + 10_000 + i * 20_000, next, 120, 0);
    }
    let mut limited = story.clone().runs(DUE + 1_100_000);
    limited.facts.has_cpu_quota = true;
    assert_eq!(limited.explained().blame().unwrap().or, Some(Throttling));
    let explanation = story.runs(DUE + 1_100_000).explained();
    let blame = explanation.blame().unwrap();
    assert_eq!((blame.cause, blame.threads, blame.evidence), (FairScheduling, 2, Direct));
    assert!(blame.pieces > 40 && blame.total.ns() > 1_000_000, "{blame:?}");
    assert!(explanation.segments.len() <= Explanation::STRETCHES);
    // A real-time thread ahead of a normal one.
    let story = Story::new(0).fair().switch(DUE - 9_000, OTHER, 50, 0).interrupt(DUE + 1_000).runs(DUE + 90_000);
    story.expect(HigherPriority, None, Direct, "other");
    // The timer of the quota expires, and the thread runs.
    let story = Story::new(OTHER).fair().interrupt(DUE + 1_000).flags(0).switch(DUE + 5_000, 201, 120, 0);
    let period = What::TimerExpire { timer: 7, function: Some(sleep_in("sched_cfs_period_timer")) };
    let mut story = story.then(DUE + 870_000, period).runs(DUE + 900_000);
    story.facts.has_cpu_quota = true;
    story.expect(Throttling, None, Inferred, "other");
    // Control group quota: the CPU is idle while the thread is runnable.
    let mut story = Story::new(OTHER).fair().interrupt(DUE + 1_000).switch(DUE + 5_000, 0, 120, 0).runs(DUE + 90_000);
    story.expect(Unknown, None, Undetermined, "idle");
    story.facts.has_cpu_quota = true;
    story.expect(Throttling, None, Inferred, "idle");
    // A requested switch that comes late: the thread is in the kernel, as a later event shows, or was chosen again.
    let story = Story::new(OTHER).fair().interrupt(DUE + 1_000);
    story.clone().runs(DUE + 90_000).expect(FairScheduling, Some(NotPreemptible), Ambiguous, "other");
    let later = |story: Story| story.then(DUE + 70_000, What::Enter(TICK)).then(DUE + 72_000, What::Leave(TICK));
    later(story.clone()).runs(DUE + 90_000).expect(NotPreemptible, None, Direct, "other");
    later(story.flags(0)).runs(DUE + 200_000).expect(FairScheduling, None, Direct, "other");
}

#[test]
fn a_thread_that_lost_its_priority_is_not_throttled() {
    // Asked for priority 80; every switch shows nice 0.
    let mut story = Story::new(OTHER).fair().interrupt(DUE + 1_000).flags(0).switch(DUE + 5_000, 201, 120, 0);
    story = story.runs(DUE + 4_000_000);
    story.subject.priority = 19;
    story.expect(Demoted, None, Direct, "other");
    let blame = story.explained().blame().unwrap().clone();
    assert_eq!(blame.place.as_deref(), Some("nice 0 instead of priority 80"));
    // A thread that would have run first anyway.
    let mut story = Story::new(0).fair().switch(DUE - 9_000, OTHER, 9, 0).interrupt(DUE + 1_000).runs(DUE + 90_000);
    story.subject.priority = 19;
    story.expect(HigherPriority, None, Direct, "other");
}

#[test]
fn a_runtime_that_is_used_up_is_said_to_be() {
    let mut story = Story::new(0);
    story.subject.priority = -1;
    let mut story = story.interrupt(DUE + 1_000).flags(0).switch(DUE + 5_000, ME, -1, 0);
    story = story.switch(DUE + 305_000, OTHER, 120, 0);
    let replenish = |at_ns: u64, story: Story| {
        let story = story.then(at_ns, What::Enter(TICK));
        story.then(at_ns + 500, What::TimerExpire { timer: TIMER + 8, function: Some(sleep_in("dl_task_timer")) })
    };
    let late = replenish(DUE + 1_000_000, story.clone()).then(DUE + 1_002_000, What::Leave(TICK));
    late.runs(DUE + 1_004_000).expect(Throttling, None, Direct, "other");
    // Without the event of the timer.
    story.runs(DUE + 1_004_000).expect(Throttling, None, Inferred, "other");
}

#[test]
fn a_thaw_is_no_wake_up() {
    // Frozen in its sleep at 0.5 ms, thawed at 40 ms.
    let frozen = Story::new(OTHER).then(DUE - 500_000, What::Waking { pid: ME }).switch(DUE - 499_000, ME, 19, 0);
    let frozen = frozen.switch(DUE - 498_000, OTHER, 120, 1);
    // Its timer expires, which wakes no frozen thread.
    let expired = frozen.then(DUE + 1_000, What::Enter(TICK)).then(DUE + 1_500, expiry(TIMER));
    let thawed = expired.then(DUE + 2_500, What::Leave(TICK)).then(DUE + 39_000_000, What::Waking { pid: ME });
    let thawed = thawed.stack(DUE + 39_000_100, &[sleep_in("cgroup_freeze_task")]).runs(DUE + 39_004_000);
    thawed.expect(Stopped, None, Direct, "measured/0");
}

#[test]
fn timer_slack_is_what_the_start_of_the_timer_allowed() {
    let mut story = Story::new(OTHER).fair();
    let (soft_ns, expires_ns) = (DUE.cast_signed(), DUE.cast_signed() + 50_000);
    story.trace.cpus[0].events[0].what = What::TimerStart { timer: TIMER, expires_ns, soft_ns };
    let late = story.clone().interrupt(DUE + 51_000).runs(DUE + 54_000);
    late.expect(TimerSlack, None, Direct, "measured/0");
    assert_eq!(late.explained().blame().unwrap().total.ns(), 50_000);
    // An earlier interrupt: only the used part of the slack counts.
    let early = story.interrupt(DUE + 20_000).runs(DUE + 23_000).explained();
    assert_eq!((early.phases[0].phase, early.phases[0].length.ns()), (Phase::TimerSlack, 20_000));
}

#[test]
fn an_idle_cpu_that_takes_long_to_come_back_is_named_with_its_state() {
    let story = Story::new(0).then(200_000, What::Idle { state: Some(3) }).interrupt(DUE + 200_000).runs(DUE + 204_000);
    story.expect(IdleExit, None, Inferred, "idle");
    assert_eq!(story.explained().blame().unwrap().place.as_deref(), Some("idle state 3"));
    story.guest().expect(IdleExit, Some(CpuStalled), Ambiguous, "idle");
}

#[test]
fn a_page_fault_after_the_switch_is_the_threads_own() {
    let story = Story::new(OTHER).interrupt(DUE + 1_000).flags(0).switch(DUE + 3_000, ME, 19, 0);
    let fault = story.clone().then(DUE + 4_000, What::PageFault);
    // A page fault served from memory.
    fault.clone().reads(DUE + 90_000).expect(PageFault, None, Direct, "measured/0");
    // A page fault served from disk, with a sleep.
    let waits = fault.switch(DUE + 6_000, OTHER, 120, 2).then(DUE + 700_000, What::Waking { pid: ME });
    waits.flags(flags::NEED_RESCHED).runs(DUE + 702_000).expect(PageFault, None, Direct, "measured/0");
    // Silence without a page fault.
    let silent = story.reads(DUE + 90_000);
    silent.expect(CpuStalled, None, Inferred, "measured/0");
    let mut blind = silent;
    blind.facts.sees_page_faults = false;
    blind.expect(PageFault, Some(CpuStalled), Ambiguous, "measured/0");
}

#[test]
fn a_stopped_thread_is_late_by_the_stop_and_not_by_others() {
    // Woken by SIGSTOP before its due time, stopped, and continued 65 ms later. It restarts its timer, which has
    // expired.
    let mut story = Story::new(OTHER).then(500_000, What::Waking { pid: ME }).switch(502_000, ME, 19, 0);
    story = story.switch(510_000, OTHER, 120, 4).then(DUE + 65_000_000, What::Waking { pid: ME });
    story = story.switch(DUE + 65_002_000, ME, 19, 0);
    story.at(DUE + 65_010_000, What::TimerStart { timer: TIMER, expires_ns: 1_000_000, soft_ns: 1_000_000 });
    let story = story.switch(DUE + 65_012_000, OTHER, 120, 1).interrupt(DUE + 65_013_000).runs(DUE + 65_020_000);
    story.expect(Stopped, None, Direct, "measured/0");
    let explanation = story.explained();
    assert_eq!(explanation.phases[0].phase, Phase::NotYetWaiting);
    assert_eq!(explanation.blame().unwrap().total.ns(), 65_000_000);
}

#[test]
fn without_the_events_of_the_wake_up_nothing_is_claimed() {
    // A switch without a waking.
    let mut story = Story::new(OTHER);
    story.trace.cpus[0].events.remove(0);
    let story = story.runs(DUE + 300_000);
    story.expect(Unknown, None, Undetermined, "measured/0");
    assert_eq!(story.explained().phases[0].phase, Phase::WholeWakeUp);
}
