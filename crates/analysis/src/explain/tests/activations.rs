//! What happened inside a late activation of a watched thread: every cause, to the nanosecond.

use super::super::{Inside, explain_activation};
use super::*;
use crate::watch::script::{ME, OTHER, Script, THIRD, TIMER, until_instant};
use crate::watch::{Activation, Usual};
use Cause::*;
use Evidence::*;
use std::collections::HashMap;
use syscalls::Sysno;

/// The usual activation: 45 us in the program.
fn usual() -> Usual {
    Usual { run_ns: 46_000, user_run_ns: 45_000, response_ns: 50_000, ..Usual::default() }
}

fn facts() -> Facts {
    Facts { sees_page_faults: true, frozen_ns: u64::MAX, ..Facts::default() }
}

#[track_caller]
fn explained(script: &Script, facts: Facts) -> Explanation {
    let one = script.activation(until_instant());
    let subject = Subject {
        pid: ME,
        waits_for: WaitsFor::Timer,
        cpu: one.cpu,
        priority: 19,
        due_ns: one.release_ns,
        woke_ns: one.user_ns,
        slack_ns: 0,
    };
    let (priorities, usual) = (HashMap::from([(OTHER, 130)]), usual());
    let files = HashMap::from([(7, "socket".to_owned()), (8, "pipe".to_owned())]);
    let inside = Inside {
        activation: one.clone(),
        behind: None,
        usual,
        priorities,
        files,
        marks: Vec::new(),
        samples: Vec::new(),
    };
    let explanation = explain_activation(&script.trace, &subject, &inside, &facts, &symbols).expect("it is covered");
    assert!(explanation.is_complete(), "{explanation:#?}");
    assert_eq!(explanation.latency.ns(), one.response_ns());
    explanation
}

/// The largest share: cause, alternative, evidence, owner, length in ns, and place.
#[track_caller]
fn blamed(script: &Script, facts: Facts) -> (Cause, Option<Cause>, Evidence, String, u64, String) {
    let explanation = explained(script, facts);
    let share = explanation.blame().expect("it is late").clone();
    (share.cause, share.or, share.evidence, share.owner.name, share.total.ns(), share.place.unwrap_or_default())
}

#[track_caller]
fn expect(script: &Script, cause: Cause, owner: &str, length_ns: u64, place: &str) {
    let expected = (cause, None, Direct, owner.to_owned(), length_ns, place.to_owned());
    assert_eq!(blamed(script, facts()), expected, "{:#?}", explained(script, facts()));
}

/// An activation that enters a call at 1.01 ms and sleeps in it from 1.012 ms on.
fn asleep_in(known: Sysno, arguments: [u64; 3]) -> Script {
    Script::released().enter(1_010_000, known, arguments).sleep(1_012_000, 0)
}

/// The rest of the activation of [`asleep_in`], which is woken at 2.012 ms.
fn goes_on(script: Script, known: Sysno) -> Script {
    script.switch(2_015_000, ME, 0).exit(2_016_000, known, 0).waits(2_050_000)
}

/// The same, woken by a thread on the other CPU, which runs there since 0.5 ms.
fn woken(known: Sysno, arguments: [u64; 3], waker: i32) -> Script {
    let script = Script::released().switch_on(1, 1_006_000, waker, 0);
    let script = script.enter(1_010_000, known, arguments).sleep(1_012_000, 0);
    goes_on(script.woken_by(1, 2_012_000), known)
}

#[test]
fn phases_reach_from_the_release_to_the_end() {
    let explanation = explained(&Script::released().waits(1_050_000), facts());
    let phases: Vec<_> = explanation.phases.iter().map(|phase| (phase.phase, phase.length.ns())).collect();
    assert_eq!(
        phases,
        [
            (Phase::ExpiryToInterrupt, 1_000),
            (Phase::InterruptToWakeup, 1_000),
            (Phase::WakeupToSwitch, 2_000),
            (Phase::SwitchToUser, 1_000),
            (Phase::Activation, 45_000)
        ]
    );
    assert_eq!(explanation.blame().unwrap().cause, UsualRun);
}

#[test]
fn a_thread_that_another_cpu_wakes_waits_for_its_own() {
    // The waker goes on for 20 us and sleeps; the CPU of the thread leaves its idle state 40 us after the waking.
    let asleep = Script::released().enter(1_010_000, Sysno::read, [7, 0, 0]).sleep(1_012_000, 0);
    let script = asleep.switch_on(1, 1_500_000, OTHER, 0).woken_by(1, 2_012_000).switch_on(1, 2_032_000, 0, 1);
    let script = script.switch(2_052_000, ME, 0).exit(2_053_000, Sysno::read, 0).waits(2_090_000);
    let explanation = explained(&script, facts());
    let waited = explanation.segments.iter().find(|segment| segment.at.ns() == 1_012_000).expect("after the waking");
    assert_eq!((waited.cause, waited.owner.name.as_str(), waited.length.ns()), (IdleExit, "idle", 40_000));
    assert!(explanation.shares.iter().all(|share| share.cause != Throttling), "{explanation:#?}");
}

#[test]
fn a_disk_is_named_with_the_call_or_as_a_page_fault() {
    let disk = |script: Script| script.interrupted(2_011_000, Context::Interrupt(36));
    let asleep = Script::released().enter(1_010_000, Sysno::fsync, [7, 0, 0]).sleep_for_disk(1_012_000);
    let script = goes_on(disk(asleep), Sysno::fsync);
    expect(&script, Disk, "control", 1_000_000, "fsync, until an interrupt or a timer woke it");
    let asleep = Script::released().at(1_011_000, What::PageFault).sleep_for_disk(1_012_000);
    let script = disk(asleep).switch(2_015_000, ME, 0).waits(2_050_000);
    expect(&script, PageFault, "control", 1_000_000, "the page came from a file or from swap");
    // Without a page fault, nothing shows why it slept.
    let script = disk(Script::released().sleep_for_disk(1_012_000)).switch(2_015_000, ME, 0).waits(2_050_000);
    let (cause, _, evidence, ..) = blamed(&script, facts());
    assert_eq!((cause, evidence), (Unknown, Undetermined));
}

/// An activation that sleeps in `pwrite64` or in a page fault with these functions, without signals that would end it,
/// and is woken by the logger on the other CPU, or in this context.
fn in_kernel(functions: &[&str], is_fault: bool, woken_in: Option<Context>) -> Script {
    let script = Script::released().switch_on(1, 1_006_000, OTHER, 0);
    let script = match is_fault {
        true => script.at(1_010_000, What::PageFault),
        false => script.enter(1_010_000, Sysno::pwrite64, [7, 0, 0]),
    };
    let mut script = script.sleep_for_disk(1_012_000);
    if !functions.is_empty() {
        script.trace.stacks.push(functions.iter().map(|name| sleep_in(name)).collect());
        let event = Event { at_ns: 1_012_100, pid: ME, flags: 0, what: What::Stack(0) };
        script.trace.cpus[0].events.push(event);
    }
    let script = match woken_in {
        Some(context) => script.interrupted(2_011_000, context),
        None => script.woken_by(1, 2_012_000),
    };
    let script = script.switch(2_015_000, ME, 0);
    let script = if is_fault { script } else { script.exit(2_016_000, Sysno::pwrite64, 0) };
    script.waits(2_050_000)
}

#[test]
fn an_uninterruptible_sleep_is_for_a_disk_only_if_a_device_ended_it() {
    let (disk, softirq) = (Some(Context::Interrupt(36)), |number| Some(Context::Softirq(number)));
    let call = "pwrite64(7) socket";
    let woken = |by: &str| format!("{call}, until {by} woke it");
    let interrupt = woken("an interrupt or a timer");
    for (functions, is_fault, woken_in, cause, evidence, place) in [
        // By the functions in which it slept.
        (
            &["rwsem_down_write_slowpath", "down_write", "shmem_file_write_iter"][..],
            false,
            None,
            KernelLock,
            Direct,
            format!("{call}: that of the file, in shmem_file_write_iter, held by logger (nice 10)"),
        ),
        (
            &["rwsem_down_write_slowpath", "lock_mm_and_find_vma"],
            true,
            None,
            KernelLock,
            Direct,
            "page fault: that of the memory map, in lock_mm_and_find_vma, held by logger (nice 10)".to_owned(),
        ),
        (&["folio_wait_bit_common"], false, disk, Disk, Direct, interrupt.clone()),
        (&["folio_wait_bit_common"], false, None, Disk, Inferred, woken("logger")),
        (&["handle_userfault"], true, None, PageFault, Direct, "userfaultfd, until logger woke it".to_owned()),
        (
            &["__refrigerator"],
            false,
            None,
            Stopped,
            Direct,
            "its control group was frozen, until logger woke it".to_owned(),
        ),
        (&["__wait_rcu_gp"], false, None, SystemCall, Direct, format!("{call}: a grace period of RCU")),
        (
            &["request_wait_answer"],
            false,
            None,
            SystemCall,
            Direct,
            format!("{call}: the server of a file system, until logger woke it"),
        ),
        (
            &["reclaim_throttle"],
            false,
            None,
            MemoryAllocation,
            Direct,
            format!("{call}: the kernel reclaims memory, until logger woke it"),
        ),
        // A function that no list knows.
        (
            &["cgroup_freeze_task"],
            false,
            None,
            SystemCall,
            Direct,
            format!("{call}: in cgroup_freeze_task, until logger woke it"),
        ),
        (&["msleep"], false, softirq(1), SystemCall, Direct, format!("{call}: the kernel sleeps in it")),
        // By what ended it.
        (&[], false, disk, Disk, Direct, interrupt.clone()),
        (&[], false, softirq(4), Disk, Direct, interrupt),
        (&[], false, softirq(1), SystemCall, Direct, format!("{call}: a timer ended it")),
        (&[], false, softirq(9), SystemCall, Direct, format!("{call}: a grace period of RCU")),
        (&[], false, None, KernelLock, Inferred, format!("{call}: unknown which, held by logger (nice 10)")),
        (&[], true, disk, PageFault, Direct, "the page came from a file or from swap".to_owned()),
        (
            &[],
            true,
            softirq(3),
            Unknown,
            Undetermined,
            "page fault: nothing shows what it waited for, until an interrupt or a timer woke it".to_owned(),
        ),
    ] {
        let script = in_kernel(functions, is_fault, woken_in);
        let said = blamed(&script, facts());
        assert_eq!((said.0, said.1, said.2, said.5), (cause, None, evidence, place), "{functions:?} {woken_in:?}");
    }
}

#[test]
fn an_activation_behind_another_one_has_the_cause_of_that_one() {
    // The one released at 1 ms holds up those of 1.5 and 2 ms, by a lock until 2.012 ms.
    let script = Script::released().switch_on(1, 1_006_000, OTHER, 0).enter(1_010_000, Sysno::futex, [0xf00, 128, 2]);
    let script = script.sleep(1_012_000, 0).woken_by(1, 2_012_000).switch(2_015_000, ME, 0);
    let script = script.exit(2_016_000, Sysno::futex, 0).enter(2_050_000, Sysno::clock_nanosleep, [1, 1, 0]);
    let script = script.timer(2_050_500, TIMER, 1_500_000).exit(2_051_000, Sysno::clock_nanosleep, 0).waits(2_090_000);
    let [behind, one] = <[Activation; 2]>::try_from(script.activations(until_instant())).unwrap();
    let case = |behind: Option<Activation>| {
        let (priorities, behind) = (HashMap::from([(OTHER, 130)]), behind);
        let inside = Inside {
            activation: one.clone(),
            behind,
            usual: usual(),
            priorities,
            files: HashMap::new(),
            marks: vec![],
            samples: vec![],
        };
        let thread = punctual_model::Owner { name: "control".to_owned(), pid: Some(ME) };
        let case = Case::of_activation(&script.trace, thread, 19, inside, facts(), 0);
        assert!(case.is_in_order());
        let explanation = case.explain(&script.trace, &symbols).unwrap();
        assert!(explanation.is_complete(), "{explanation:#?}");
        let share = explanation.blame().unwrap().clone();
        (share.phase, share.cause, share.evidence, share.total.ns(), share.place.unwrap_or_default())
    };
    let place =
        "held by logger (nice 10), of lower priority, without inheritance, in an activation before it, of 1.05 ms";
    assert_eq!(case(Some(behind.clone())), (Phase::NotYetWaiting, Lock, Direct, 512_000, place.to_owned()));
    assert_eq!(case(None).1, Unknown);
}

#[test]
fn page_faults_without_a_disk_explain_no_more_than_they_can_take() {
    let faults =
        |n: u64, script: Script| (0..n).fold(script, |script, i| script.at(1_020_000 + i * 10_000, What::PageFault));
    // Each until the next, the last for 20 us.
    let script = faults(20, Script::released()).waits(1_350_000);
    expect(&script, PageFault, "control", 210_000, "20 page faults");
    // Two page faults do not take 300 us.
    let script = faults(2, Script::released()).waits(1_350_000);
    expect(&script, RanLonger, "control", 315_000, "usually 46 us");
    let map = Script::released().enter(1_010_000, Sysno::mremap, [0, 0, 0]).exit(1_012_000, Sysno::mremap, 0);
    let script = faults(20, map).waits(1_350_000);
    expect(&script, MemoryAllocation, "control", 210_000, "20 page faults");
    let unmap = Script::released().enter(1_010_000, Sysno::munmap, [0, 0, 0]).exit(1_410_000, Sysno::munmap, 0);
    expect(&unmap.waits(1_450_000), MemoryAllocation, "control", 400_000, "munmap");
}

#[test]
fn work_around_a_page_that_comes_from_a_disk_is_part_of_the_page_fault() {
    // 30 us until it sleeps, 121 us of sleep, 3 us until it runs, and 46 us of which up to 20 us belong to the fault.
    let fault = |script: Script, at: u64| {
        let asleep = script.at(at, What::PageFault).sleep_for_disk(at + 30_000);
        asleep.interrupted(at + 150_000, Context::Interrupt(36)).switch(at + 154_000, ME, 0)
    };
    let script = (0..4).fold(Script::released(), |script, i| fault(script, 1_010_000 + i * 200_000)).waits(1_810_000);
    let length_ns = 4 * (30_000 + 121_000 + 20_000);
    expect(&script, PageFault, "control", length_ns, "the page came from a file or from swap");
}

#[test]
fn a_lock_is_held_by_the_thread_that_wakes() {
    let futex = [0xf00, 128, 2];
    let script = woken(Sysno::futex, futex, OTHER);
    expect(&script, Lock, "logger", 1_000_000, "held by logger (nice 10), of lower priority, without inheritance");
    let script = woken(Sysno::futex, [0xf00, 128 | 6, 0], OTHER);
    expect(&script, Lock, "logger", 1_000_000, "held by logger (nice 10); priority inheritance is on");
    // A holder of higher priority.
    let trace = |priority: i32| {
        let script = Script::released().priority(OTHER, priority).switch_on(1, 1_006_000, OTHER, 0);
        let script = script.enter(1_010_000, Sysno::futex, futex).sleep(1_012_000, 0);
        goes_on(script.woken_by(1, 2_012_000), Sysno::futex)
    };
    expect(&trace(9), Lock, "logger", 1_000_000, "held by logger (priority 90)");
    expect(&trace(-1), Lock, "logger", 1_000_000, "held by logger (deadline)");
    // A futex with the number of a round, like a barrier, or whose waker wakes all.
    let barrier = woken(Sysno::futex, [0xf00, 128, 6], OTHER);
    expect(&barrier, SystemCall, "control", 1_000_000, "futex, until logger woke it");
    let wake = What::SysEnter { number: Sysno::futex.id().into(), arguments: [0xf00, 129, 0x7fff_ffff] };
    let script = Script::released().switch_on(1, 1_006_000, OTHER, 0).enter(1_010_000, Sysno::futex, futex);
    let script = script.sleep(1_012_000, 0).on(1, 2_011_000, 0, wake).woken_by(1, 2_012_000);
    expect(&goes_on(script, Sysno::futex), SystemCall, "control", 1_000_000, "futex, until logger woke it");
}

#[test]
fn a_lock_that_is_handed_on_was_held_by_the_thread_that_had_it_longest() {
    let futex = |operation: u64, value| What::SysEnter {
        number: Sysno::futex.id().into(),
        arguments: [0xf00, 128 | operation, value],
    };
    // The logger releases it at 1.8 ms. The vision thread takes it, and its release wakes this one.
    let script = Script::released().switch_on(1, 1_006_000, OTHER, 0);
    let script = script.enter(1_010_000, Sysno::futex, [0xf00, 128, 2]).sleep(1_012_000, 0);
    let script = script.on(1, 1_800_000, 0, futex(1, 1)).switch_on(1, 1_850_000, THIRD, 1);
    let script = script.on(1, 2_011_000, 0, futex(1, 1)).woken_by(1, 2_012_000);
    let place =
        "held by logger (nice 10) for most of it, and by 1 other thread, of lower priority, without inheritance";
    expect(&goes_on(script, Sysno::futex), Lock, "logger", 1_000_000, place);
}

#[test]
fn a_thread_that_runs_instead_of_the_holder_makes_it_an_inversion() {
    let late = |between: i32| {
        Script::released()
            .priority(THIRD, between)
            .switch_on(1, 1_006_000, OTHER, 0)
            .enter(1_010_000, Sysno::futex, [0xf00, 128, 2])
            .sleep(1_012_000, 0)
            .switch_on(1, 1_100_000, THIRD, 0)
            .switch_on(1, 1_900_000, OTHER, 0)
            .woken_by(1, 2_012_000)
    };
    let script = goes_on(late(49), Sysno::futex);
    expect(
        &script,
        PriorityInversion,
        "logger",
        1_000_000,
        "held by logger (nice 10), while vision (priority 50) ran instead of it",
    );
    // A thread above both of them delays the holder, and would delay this one as well.
    let script = goes_on(late(9), Sysno::futex);
    expect(&script, Lock, "logger", 1_000_000, "held by logger (nice 10), of lower priority, without inheritance");
}

#[test]
fn a_lock_with_inheritance_can_be_waited_for_on_the_cpu() {
    let script = Script::released()
        .enter(1_010_000, Sysno::futex, [0xf00, 128 | 6, 0])
        .at(1_011_000, What::Inherit { pid: OTHER, priority: 19 })
        .exit(1_910_000, Sysno::futex, 0)
        .waits(1_950_000);
    expect(&script, Lock, "control", 900_000, "held by logger (nice 10); priority inheritance is on");
}

#[test]
fn other_calls_are_named_with_their_file_and_waker() {
    let script = woken(Sysno::recvfrom, [7, 0, 0], OTHER);
    expect(&script, SystemCall, "control", 1_000_000, "recvfrom(7) socket, until logger woke it");
    let script = woken(Sysno::write, [8, 0, 0], OTHER);
    expect(&script, SystemCall, "control", 1_000_000, "write(8) pipe, until logger woke it");
    let script = woken(Sysno::futex, [0xf00, 128 | 9, 0], OTHER);
    expect(
        &script,
        SystemCall,
        "control",
        1_000_000,
        "futex (condition variable, semaphore or rwlock), until logger woke it",
    );
    let asleep = asleep_in(Sysno::nanosleep, [0, 0, 0]).timer(1_012_500, TIMER + 8, 2_010_000);
    let script = goes_on(asleep.tick(2_011_000), Sysno::nanosleep);
    expect(&script, SystemCall, "control", 1_000_000, "it sleeps itself: nanosleep for a length of time");
    // Work in the call, without a sleep.
    let script = Script::released().enter(1_010_000, Sysno::ioctl, [7, 0, 0]).exit(1_410_000, Sysno::ioctl, 0);
    expect(&script.waits(1_450_000), SystemCall, "control", 400_000, "ioctl(7) socket");
}

#[test]
fn a_move_to_another_cpu_is_a_migration() {
    let mut script = Script::released().priority(400, 0);
    script.trace.names.insert(400, "migration/0".to_owned());
    let script = script
        .enter(1_010_000, Sysno::sched_setaffinity, [0, 8, 0])
        .switch(1_012_000, 400, 0)
        .switch(1_412_000, ME, 0)
        .exit(1_413_000, Sysno::sched_setaffinity, 0)
        .waits(1_450_000);
    expect(&script, Migration, "migration/0", 400_000, "");
}

#[test]
fn other_threads_on_the_cpu_are_named_by_their_priority() {
    for (priority, cause) in [(9, HigherPriority), (19, EqualPriority)] {
        let script = Script::released().priority(THIRD, priority).switch(1_020_000, THIRD, 0);
        expect(&script.switch(1_420_000, ME, 0).waits(1_450_000), cause, "vision", 400_000, "");
    }
    let stopped = Script::released().switch(1_020_000, 0, 4).tick(1_420_000).switch(1_424_000, ME, 0);
    expect(&stopped.waits(1_450_000), Stopped, "control", 401_000, "by a signal or a debugger");
}

#[test]
fn a_long_run_has_two_readings_where_a_hypervisor_may_take_the_cpu() {
    let hypervisor = |counts_stolen| Facts { taker: Taker::Hypervisor, counts_stolen, ..facts() };
    let of = |script: &Script, counts: bool| {
        let (cause, or, evidence, ..) = blamed(script, hypervisor(counts));
        (cause, or, evidence)
    };
    // The scheduler counts `ran_ns` from the switch in at 1.004 ms to the switch out 2 us after `end_ns`.
    let ends = |script: Script, end_ns: u64, ran_ns: u64| {
        let end = script.enter(end_ns, Sysno::clock_nanosleep, [1, 1, 0]);
        end.at(end_ns + 1_000, What::Ran { pid: ME, ran_ns }).sleep(end_ns + 2_000, 0)
    };
    let late = |ran_ns: u64| ends(Script::released(), 3_050_000, ran_ns);
    expect(&late(2_048_000), RanLonger, "control", 2_045_000, "usually 46 us");
    assert_eq!(of(&late(2_048_000), false), (RanLonger, Some(CpuStalled), Ambiguous));
    assert_eq!(of(&late(2_048_000), true), (RanLonger, None, Direct));
    assert_eq!(of(&late(48_000), true), (CpuStalled, None, Direct));
    // Most of it was taken, but not all that is unusual.
    assert_eq!(of(&late(348_000), true), (RanLonger, Some(CpuStalled), Ambiguous));
    // A short standstill may not have been counted.
    let short = ends(Script::released(), 2_850_000, 1_848_000);
    assert_eq!(of(&short, true), (RanLonger, Some(CpuStalled), Ambiguous));
    // A host does not count the time in which it works for its guest, as it does at some system calls.
    let calls = Script::released().enter(1_010_000, Sysno::write, [7, 0, 0]).exit(3_010_000, Sysno::write, 0);
    assert_eq!(of(&ends(calls, 3_050_000, 2_048_000), true), (SystemCall, Some(CpuStalled), Ambiguous));
}

#[test]
fn time_of_interrupts_is_no_long_run() {
    let softirq = Context::Softirq(3);
    let script = Script::released()
        .on(0, 1_010_000, flags::SOFTIRQ, What::Enter(softirq))
        .on(0, 1_410_000, flags::SOFTIRQ, What::Leave(softirq))
        .waits(1_450_000);
    expect(&script, Softirq, "softirq NET_RX", 400_000, "");
    let causes: Vec<_> = explained(&script, facts()).shares.iter().map(|share| share.cause).collect();
    assert!(!causes.contains(&RanLonger), "{causes:?}");
}

#[test]
fn a_trace_may_begin_while_the_thread_waits_for_the_cpu() {
    // The thread was woken for the activation before when the trace began: another one of its priority ran.
    let mut script = Script::released().waits(1_050_000);
    let one = script.activation(until_instant());
    script.trace.cpus[0].events.retain(|event| event.at_ns >= 999_000 && event.what != (What::Waking { pid: ME }));
    let own = super::super::thread_state::intervals(&script.trace, ME, 0, 999_000, one.end_ns);
    let states: Vec<_> = own.iter().map(|it| (it.to_ns, it.state)).collect();
    use super::super::thread_state::ThreadState::*;
    assert_eq!(states, [(1_004_000, Runnable(0)), (1_050_000, Running(0))]);
}
