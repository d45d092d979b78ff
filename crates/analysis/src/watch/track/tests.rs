//! Activations of hand-made events: what released each, and when it began and ended.

use super::super::script::{ME, OTHER, Script, THIRD, TIMER, call, until_instant};
use super::*;
use syscalls::Sysno;

const STRAY: u64 = 0xdef;

#[test]
fn a_timer_releases_at_its_due_time() {
    let one = Script::released().waits(1_050_000).activation(until_instant());
    assert_eq!((one.release, one.release_ns, one.start_ns), (Release::Timer, 1_000_000, 1_004_000));
    assert_eq!((one.user_ns, one.end_ns, one.latency_ns()), (1_005_000, 1_050_000, 5_000));
    assert_eq!((one.run_ns, one.user_run_ns, one.response_ns()), (46_000, 45_000, 50_000));
    assert_eq!((one.priority, one.timer_started_ns, one.cpu), (Some(19), Some(101_000), 0));
}

#[test]
fn a_timer_that_is_due_in_the_past_releases_then() {
    // The program overran: its next due time is 0.2 ms ago, and the kernel does not let it sleep.
    let late = Script::new()
        .enter(1_200_000, Sysno::clock_nanosleep, [1, 1, 0])
        .timer(1_201_000, TIMER, 1_000_000)
        .exit(1_202_000, Sysno::clock_nanosleep, 0);
    let one = late.waits(1_250_000).activation(until_instant());
    assert_eq!((one.release, one.release_ns, one.user_ns), (Release::Timer, 1_000_000, 1_202_000));
    assert_eq!((one.priority, one.response_ns()), (None, 250_000));
}

#[test]
fn a_wait_that_a_signal_interrupts_goes_on() {
    let script = Script::new()
        .enter(100_000, Sysno::nanosleep, [1, 0, 0])
        .timer(101_000, TIMER, 1_000_000)
        .sleep(102_000, OTHER)
        .woken_by(0, 400_000)
        .switch(402_000, ME, 0)
        .exit(403_000, Sysno::nanosleep, -516)
        .enter(404_000, Sysno::restart_syscall, [0, 0, 0])
        .timer(405_000, TIMER, 1_000_000)
        .sleep(406_000, 0)
        .tick(1_001_000)
        .switch(1_004_000, ME, 0)
        .exit(1_005_000, Sysno::restart_syscall, 0)
        .enter(1_050_000, Sysno::nanosleep, [1, 0, 0]);
    let one = script.activation(call(Sysno::nanosleep, [1, 0, 0]));
    assert_eq!((one.index, one.release, one.release_ns, one.user_ns), (0, Release::Timer, 1_000_000, 1_005_000));
}

/// A loop of waits for a timer that another call has started, as with `timerfd_create`; the kernel restarts the timer
/// in each wait.
fn timer_started_by(start: Sysno, wait: Sysno) -> Script {
    Script::new()
        .enter(10_000, start, [5, 0, 0])
        .timer(11_000, TIMER, 1_000_000)
        .exit(12_000, start, 0)
        .enter(20_000, wait, [5, 0, 0])
        .sleep(21_000, 0)
        .tick(1_001_000)
        .switch(1_004_000, ME, 0)
        .timer(1_004_500, TIMER, 2_000_000)
        .exit(1_005_000, wait, 8)
}

#[test]
fn a_timer_file_releases_at_its_due_time_even_if_it_is_read_late() {
    let read = call(Sysno::read, [5, 0, 0]);
    let late = timer_started_by(Sysno::timerfd_settime, Sysno::read)
        .enter(2_300_000, Sysno::read, [5, 0, 0])
        .timer(2_300_500, TIMER, 3_000_000)
        .exit(2_301_000, Sysno::read, 8)
        .enter(2_310_000, Sysno::read, [5, 0, 0]);
    let both = late.activations(read);
    let releases: Vec<_> = both.iter().map(|one| (one.release, one.release_ns, one.user_ns)).collect();
    assert_eq!(releases, [(Release::Timer, 1_000_000, 1_005_000), (Release::Timer, 2_000_000, 2_301_000)], "{both:#?}");
}

#[test]
fn a_timer_by_signal_releases_the_wait_for_the_signal() {
    let waits = timer_started_by(Sysno::setitimer, Sysno::rt_sigtimedwait);
    let script = waits.enter(1_040_000, Sysno::rt_sigtimedwait, [5, 0, 0]);
    let one = script.activation(call(Sysno::rt_sigtimedwait, [5, 0, 0]));
    assert_eq!((one.release, one.release_ns, one.latency_ns()), (Release::Timer, 1_000_000, 5_000));
}

#[test]
fn loops_over_events_and_conditions_are_measured_from_the_waker() {
    for (known, arguments) in
        [(Sysno::epoll_pwait, [4, 0, 0]), (Sysno::futex, [7, 128 | 9, 0]), (Sysno::read, [5, 0, 0])]
    {
        let script = Script::new()
            .switch_on(1, 50_000, OTHER, 0)
            .enter(100_000, known, arguments)
            .sleep(102_000, 0)
            .woken_by(1, 700_000)
            .switch(703_000, ME, 0)
            .exit(704_000, known, 1)
            .enter(740_000, known, arguments);
        let one = script.activation(call(known, arguments));
        assert_eq!((one.release, one.release_ns), (Release::Thread(OTHER), 700_000));
        assert_eq!((one.latency_ns(), one.response_ns(), one.run_ns), (4_000, 40_000, 37_000));
    }
}

#[test]
fn what_has_happened_already_releases_when_the_call_begins() {
    let read = call(Sysno::read, [5, 0, 0]);
    let script = Script::new().enter(100_000, Sysno::read, [5, 0, 0]).exit(101_000, Sysno::read, 8);
    let one = script.enter(140_000, Sysno::read, [5, 0, 0]).activation(read);
    assert_eq!((one.release, one.release_ns, one.user_ns), (Release::Immediate, 100_000, 101_000));
}

#[test]
fn timers_of_the_kernel_itself_release_nothing() {
    // The kernel starts one of its own while the thread writes; a device wakes the thread long after it was due.
    let read = call(Sysno::read, [5, 0, 0]);
    let script = Script::new()
        .enter(10_000, Sysno::write, [5, 0, 0])
        .timer(11_000, STRAY, 500_000)
        .exit(12_000, Sysno::write, 8)
        .enter(20_000, Sysno::read, [5, 0, 0])
        .sleep(21_000, 0)
        .interrupted(9_000_000, crate::explain::Context::Interrupt(36))
        .switch(9_004_000, ME, 0)
        .exit(9_005_000, Sysno::read, 8)
        .enter(9_040_000, Sysno::read, [5, 0, 0]);
    let one = script.activation(read);
    assert_eq!((one.release, one.release_ns), (Release::Interrupt, 9_001_000));
    // Nor does it release a call that did not sleep.
    let script = Script::new().enter(10_000, Sysno::write, [5, 0, 0]).timer(11_000, STRAY, 500_000);
    let script = script.exit(12_000, Sysno::write, 8).enter(600_000, Sysno::read, [5, 0, 0]);
    let one = script.exit(601_000, Sysno::read, 8).enter(640_000, Sysno::read, [5, 0, 0]).activation(read);
    assert_eq!((one.release, one.release_ns), (Release::Immediate, 600_000));
}

#[test]
fn a_waking_on_the_way_to_sleep_is_the_release() {
    let read = call(Sysno::read, [5, 0, 0]);
    let script = Script::new()
        .switch_on(1, 50_000, OTHER, 0)
        .enter(100_000, Sysno::read, [5, 0, 0])
        .woken_by(1, 101_000)
        .sleep(102_000, 0)
        .switch(104_000, ME, 0)
        .exit(105_000, Sysno::read, 8)
        .enter(140_000, Sysno::read, [5, 0, 0]);
    let one = script.activation(read);
    assert_eq!((one.release, one.release_ns, one.start_ns), (Release::Thread(OTHER), 101_000, 104_000));
}

#[test]
fn a_switch_without_an_event_is_seen_from_what_follows() {
    let read = call(Sysno::read, [5, 0, 0]);
    let asleep = || {
        let script = Script::new().switch_on(1, 50_000, OTHER, 0).enter(100_000, Sysno::read, [5, 0, 0]);
        script.sleep(102_000, THIRD)
    };
    let script = asleep().woken_by(1, 700_000).unseen(ME).exit(704_000, Sysno::read, 8);
    let one = script.enter(740_000, Sysno::read, [5, 0, 0]).activation(read);
    assert_eq!((one.release, one.release_ns, one.start_ns), (Release::Thread(OTHER), 700_000, 704_000));
    // Without the waking, nothing shows its release.
    let script = asleep().unseen(ME).exit(704_000, Sysno::read, 8).enter(740_000, Sysno::read, [5, 0, 0]);
    assert_eq!(script.activations(read), []);
}

#[test]
fn sleeps_and_waits_within_an_activation_are_kept_with_their_reasons() {
    let script = Script::released()
        .at(1_010_000, What::PageFault)
        .sleep_for_disk(1_011_000)
        .interrupted(1_200_000, crate::explain::Context::Interrupt(36))
        .switch(1_203_000, ME, 0)
        .enter(1_210_000, Sysno::fsync, [7, 0, 0])
        .sleep_for_disk(1_212_000)
        .interrupted(1_400_000, crate::explain::Context::Interrupt(36))
        .switch(1_403_000, ME, 0)
        .exit(1_405_000, Sysno::fsync, 0)
        .switch(1_410_000, THIRD, 0)
        .switch(1_510_000, ME, 0)
        .waits(1_520_000);
    let one = script.activation(until_instant());
    let blocks: Vec<_> =
        one.blocks.iter().map(|it| (it.call.map(Call::name), it.is_fault, it.from_ns, it.to_ns)).collect();
    assert_eq!(blocks, [(None, true, 1_011_000, 1_201_000), (Some("fsync".to_owned()), false, 1_212_000, 1_401_000)]);
    assert!(one.blocks.iter().all(|block| block.is_uninterruptible && block.waker.is_none()));
    let waits: Vec<_> = one.waits.iter().map(|wait| (wait.by, wait.length_ns)).collect();
    assert_eq!(waits, [(0, 2_000), (0, 2_000), (THIRD, 100_000)]);
    assert_eq!((one.faults, one.calls.values().copied().collect::<Vec<_>>()), (1, vec![(4_000, 1)]));
    assert_eq!((one.blocked_ns(), one.waited_ns()), (379_000, 104_000));
    // 7 us after the first sleep, 4 us of fsync around the second, 5 us, and 10 us after the last wait.
    assert_eq!((one.user_run_ns, one.run_ns), (6_000 + 7_000 + 5_000 + 10_000, 1_000 + 28_000 + 4_000));
}

#[test]
fn the_timeout_of_another_call_releases_nothing() {
    // A sleep of 100 us within the activation, and a packet 200 us after its due time.
    let wait = call(Sysno::recvfrom, [3, 0, 0]);
    let turn = |script: Script, cycle: u64| {
        let at_ns = cycle * Script::PERIOD_NS;
        let due_ns = at_ns + 100_000;
        let sleeping = script.waits_until(at_ns, due_ns).runs_at(due_ns);
        let receiving = sleeping.enter(due_ns + 50_000, Sysno::recvfrom, [3, 0, 0]).sleep(due_ns + 60_000, 0);
        let woken = receiving.on(0, due_ns + 200_000, flags::SOFTIRQ, What::Waking { pid: ME });
        woken.switch(due_ns + 210_000, ME, 0).exit(due_ns + 211_000, Sysno::recvfrom, 8)
    };
    let found = (1..5).fold(Script::new(), turn).activations(wait);
    assert!(found.len() > 2 && found.iter().all(|one| one.release == Release::Interrupt), "{found:#?}");
}
