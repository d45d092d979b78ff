//! Explanations of real late wake-ups beside known culprits: how often each is named, and whether another one is.

use crate::host::captures::save;
use crate::host::spinner::Spinner;
use crate::program::{
    Scratch, a_cpu, command, is_installed, machine, machine_and_scratch, punctual, read_json, record, skip_unless,
    start_cell, wait_for_progress,
};
use crate::real::explain::{Group, asked, explained, instances};
use crate::series::{Round, series};
use crate::servo::group_with_quota;
use punctual_model::{Cause, Cell, Conditions, Evidence, Explain, ExplainRecord, Explanation, Share, Span};
use punctual_sys::process;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Causes that a real-time thread with locked memory has only if a test brings them.
const OF_TESTS: [Cause; 6] = [
    Cause::EqualPriority,
    Cause::FairScheduling,
    Cause::Throttling,
    Cause::TimerSlack,
    Cause::PageFault,
    Cause::Stopped,
];

/// On the measured CPU, for 4 s.
fn spinner(policy: &str, burst: Duration, pause: Duration) -> Spinner {
    Spinner::on(a_cpu(), Duration::from_secs(4), policy, burst, pause)
}

/// In 2.5 of 22.5 ms.
fn bursts(policy: &str) -> Spinner {
    spinner(policy, Duration::from_micros(2500), Duration::from_millis(20))
}

/// Whether most of the spikes are blamed on the culprit, and none on a cause that is not there.
fn most(explained: &ExplainRecord, not_there: &[Cause], is_meant: impl Fn(&Share) -> bool) -> Round {
    let blames: Vec<&Share> = explained.worst.iter().filter_map(Explanation::blame).collect();
    let is_wrong = |share: &&&Share| {
        let is_named = not_there.contains(&share.cause) || share.owner.name == "culprit";
        share.or.is_none() && is_named && !is_meant(share)
    };
    if let Some(wrong) = blames.iter().find(is_wrong) {
        return Round::Wrong(format!("{wrong:?}"));
    }
    let meant = blames.iter().filter(|share| is_meant(share)).count();
    Round::right_if(meant > 0 && meant * 2 > explained.worst.len(), || {
        format!("{meant} of {}: {:#?}", explained.worst.len(), explained.causes)
    })
}

/// A series beside bursts of a thread with this policy.
fn beside_bursts(name: &str, policy: &str, cause: Cause) {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series(name, || {
        let spinner = bursts(policy);
        let record = record(start_cell(command("cell"), &asked("fifo:80", "800us", "1500ms")));
        drop(spinner);
        let explained = explained(&record);
        save(name, explained);
        let not_there: Vec<Cause> = OF_TESTS.into_iter().filter(|one| *one != cause).collect();
        let named = most(explained, &not_there, |share| share.cause == cause && share.owner.name == "culprit");
        let direct = explained.evidence_ns[Evidence::Direct.index()];
        match named {
            Round::Right => Round::right_if(direct * 2 > explained.late.ns(), || format!("{explained:#?}")),
            other => other,
        }
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_a_thread_of_higher_priority_is_named() {
    beside_bursts("explain higher priority", "fifo:95", Cause::HigherPriority);
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_a_thread_of_equal_priority_is_named() {
    beside_bursts("explain equal priority", "fifo:80", Cause::EqualPriority);
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_fair_competition_is_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("explain fair competition", || {
        let spinner = spinner("other", Duration::from_secs(4), Duration::ZERO);
        // A normal thread that sleeps most of the time may run at once; a batch thread waits for the other's slice to
        // end (sched(7)).
        let record = record(start_cell(command("cell"), &asked("batch", "900us", "1500ms")));
        drop(spinner);
        let not_there = [Cause::EqualPriority, Cause::PageFault, Cause::Stopped];
        save("explain fair competition", explained(&record));
        most(explained(&record), &not_there, |share| share.cause == Cause::FairScheduling)
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_timer_slack_is_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("explain timer slack", || {
        let asked = asked("other", "1ms", "1s");
        let cell = Cell {
            period: "10ms".parse().unwrap(),
            conditions: Conditions { timer_slack: Some(Span(3_000_000)), ..asked.conditions },
            ..asked
        };
        let record = record(start_cell(command("cell"), &cell));
        // A latency beyond the slack has another cause besides.
        let mut explained = explained(&record).clone();
        explained.worst.retain(|one| one.latency < Span(3_500_000));
        save("explain timer slack", &explained);
        let not_there = [Cause::EqualPriority, Cause::PageFault, Cause::Stopped];
        most(&explained, &not_there, |share| share.cause == Cause::TimerSlack)
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_a_stopped_process_is_said_to_be_stopped() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("explain SIGSTOP", || {
        let mut command = command("cell");
        command.arg("--progress");
        let mut child = start_cell(command, &asked("fifo:80", "30ms", "3s"));
        wait_for_progress(&mut child);
        // Longer than any other cause here.
        for _ in 0..5 {
            process::signal(child.id(), libc::SIGSTOP).unwrap();
            sleep(Duration::from_millis(40));
            process::signal(child.id(), libc::SIGCONT).unwrap();
            sleep(Duration::from_millis(100));
        }
        let record = record(child);
        save("explain SIGSTOP", explained(&record));
        most(explained(&record), &OF_TESTS, |share| share.cause == Cause::Stopped)
    });
}

/// The cell with kernel stacks: of the thawing of a control group, too.
fn with_stacks(cell: Cell) -> Cell {
    let explain = cell.conditions.explain.clone().map(|explain| Explain { stacks: true, ..explain });
    Cell { conditions: Conditions { explain, ..cell.conditions }, ..cell }
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_a_frozen_control_group_is_named() {
    skip_unless!(instances().is_some());
    let Some(group) = Group::make("freezer", &[], &[]) else { return };
    let files = [("freezer.state", "FROZEN", "THAWED"), ("cgroup.freeze", "1", "0")];
    let Some((file, frozen, thawed)) = files.into_iter().find(|(file, ..)| group.0.join(file).exists()) else { return };
    let _machine = machine();
    series("explain frozen group", || {
        let cell = with_stacks(asked("fifo:80", "30ms", "3s"));
        let mut child = start_cell(group.command(crate::program::PROGRAM.as_ref()), &cell);
        wait_for_progress(&mut child);
        for state in [frozen, thawed].into_iter().cycle().take(10) {
            std::fs::write(group.0.join(file), state).unwrap();
            sleep(Duration::from_millis(if state == frozen { 60 } else { 100 }));
        }
        let record = record(child);
        save("explain frozen group", explained(&record));
        most(explained(&record), &OF_TESTS, |share| share.cause == Cause::Stopped)
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_a_priority_that_is_lowered_is_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("explain demotion", || {
        let mut command = command("cell");
        command.arg("--progress");
        let mut child = start_cell(command, &with_stacks(asked("fifo:80", "1ms", "3s")));
        wait_for_progress(&mut child);
        let spinner = spinner("other", Duration::from_secs(4), Duration::ZERO);
        let is_measured = |tid: &u32| {
            punctual_host::name_of_thread(child.id(), *tid).is_some_and(|name| name.starts_with("measured/"))
        };
        let measured = punctual_host::threads_of(child.id()).into_iter().filter(is_measured);
        measured.for_each(|tid| punctual_sys::sched::set_policy(tid, punctual_model::Policy::Idle).unwrap());
        let record = record(child);
        drop(spinner);
        save("explain demotion", explained(&record));
        most(explained(&record), &OF_TESTS, |share| share.cause == Cause::Demoted)
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_throttling_of_real_time_threads_is_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("explain real-time throttling", || {
        // Below the measured thread, and so busy that the kernel throttles it in favor of a normal thread, which is
        // ready.
        let normal = spinner("other", Duration::from_secs(4), Duration::ZERO);
        let busy = spinner("fifo:50", Duration::from_millis(3500), Duration::ZERO);
        let record = record(start_cell(command("cell"), &asked("fifo:80", "20ms", "2500ms")));
        drop((busy, normal));
        save("explain real-time throttling", explained(&record));
        // While it is throttled, a normal culprit runs.
        most(explained(&record), &OF_TESTS, |share| share.cause == Cause::Throttling)
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_a_limit_of_the_control_group_is_named() {
    skip_unless!(instances().is_some());
    let Some(group) = group_with_quota() else { return };
    let _machine = machine();
    // The load is in the group as well and uses up the quota.
    let cell = Cell {
        load: "cpu".parse().unwrap(),
        load_cpus: Some([a_cpu()].into_iter().collect()),
        ..asked("other", "20ms", "2s")
    };
    series("explain limit of a control group", || {
        let record = record(start_cell(group.command(crate::program::PROGRAM.as_ref()), &cell));
        save("explain limit of a control group", explained(&record));
        let not_there = [Cause::EqualPriority, Cause::PageFault, Cause::Stopped];
        // If other threads are ready, no event separates the quota from their slices.
        let is_meant = |share: &Share| [Some(share.cause), share.or].contains(&Some(Cause::Throttling));
        most(explained(&record), &not_there, is_meant)
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_page_faults_of_memory_that_is_not_locked_are_named() {
    skip_unless!(instances().is_some());
    let Some(group) = Group::make("memory", &[], &[("memory.high", "max")]) else { return };
    let (_machine, scratch) = machine_and_scratch("explain-faults");
    series("explain page faults", || page_faults(&group, &scratch));
}

fn page_faults(group: &Group, scratch: &Scratch) -> Round {
    // A copy of the program, whose page cache is charged to the group.
    let program = scratch.path("punctual");
    crate::program::install(crate::program::PROGRAM, &program);
    std::fs::File::open(&program).unwrap().sync_all().unwrap();
    // Cached pages would stay charged to the group that wrote them.
    let mut dd = Command::new("dd");
    let _ =
        dd.arg(format!("if={}", program.display())).args(["iflag=nocache", "count=0"]).stderr(Stdio::null()).status();
    let cell = Cell { lock_memory: false, period: "10ms".parse().unwrap(), ..asked("fifo:80", "100us", "4s") };
    let mut child = start_cell(group.command(&program), &cell);
    wait_for_progress(&mut child);
    // The kernel reclaims pages of the program, which it can read again.
    let reclaim =
        [("memory.force_empty", "0"), ("memory.reclaim", "1G")].map(|(file, text)| (group.0.join(file), text));
    let reclaim = reclaim.into_iter().find(|(file, _)| file.exists());
    for (file, text) in reclaim.iter().cycle().take(20) {
        // The write fails if not everything could be reclaimed.
        let _ = std::fs::write(file, text);
        sleep(Duration::from_millis(50));
    }
    let record = record(child);
    let explained = explained(&record);
    let usage = record.threads[0].usage.unwrap();
    if usage.minor_faults + usage.major_faults == 0 {
        return match explained.causes.iter().find(|cause| cause.cause == Cause::PageFault && cause.blamed > 0) {
            Some(wrong) => Round::Wrong(format!("{usage:?}: {wrong:?}")),
            None => Round::Nothing("nothing was taken from the thread".to_owned()),
        };
    }
    let faults = explained.causes.iter().find(|cause| cause.cause == Cause::PageFault);
    save("explain page faults", explained);
    let named = faults.is_some_and(|faults| {
        faults.blamed > 0 && faults.owners.len() == 1 && faults.owners[0].name == format!("measured/{}", a_cpu())
    });
    Round::right_if(named, || format!("{usage:?}: {:#?}", explained.causes))
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_a_witness_ticks_also_while_a_thread_of_higher_priority_runs() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("explain witness", || {
        let spinner = bursts("fifo:95");
        let asked = asked("fifo:80", "1500us", "1500ms");
        let explain = Explain { witness: Some(Span(100_000)), ..asked.conditions.explain.clone().unwrap() };
        let cell = Cell { conditions: Conditions { explain: Some(explain), ..asked.conditions.clone() }, ..asked };
        let record = record(start_cell(command("cell"), &cell));
        drop(spinner);
        let explained = explained(&record);
        let is_meant = |share: &Share| share.cause == Cause::HigherPriority && share.owner.name == "culprit";
        match most(explained, &OF_TESTS, is_meant) {
            Round::Right => {}
            other => return other,
        }
        // The local timer tick alone comes every millisecond at most.
        let ticks = |one: &Explanation| {
            let of = one.shares.iter().filter(|share| share.owner.name.starts_with("interrupt local_timer"));
            of.map(|share| share.pieces).sum::<u32>()
        };
        let ticking = explained.worst.iter().filter(|one| ticks(one) >= 8).count();
        Round::right_if(ticking * 2 > explained.worst.len(), || format!("{ticking} of {}", explained.worst.len()))
    });
}

/// The causes of spikes blamed on `owner` while a kind of `culprit_threads.c` runs, and a summary of all causes.
fn blamed_beside(culprit: &Path, kind: &str, owner: &str) -> (Vec<(Cause, Option<Cause>)>, String) {
    let mut child = Command::new(culprit).arg(kind).arg(a_cpu().to_string()).spawn().unwrap();
    sleep(Duration::from_millis(500));
    let record = record(start_cell(command("cell"), &asked("fifo:80", "400us", "2s")));
    let ended = child.try_wait().unwrap();
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().unwrap();
    let explained = explained(&record);
    let blames = explained.worst.iter().filter_map(Explanation::blame);
    let of_it = blames.filter(|blame| blame.owner.name.starts_with(owner) && blame.total > Span(400_000));
    let causes = of_it.map(|blame| (blame.cause, blame.or)).collect();
    (causes, format!("{} spikes, {kind} ended: {ended:?}, {:#?}", explained.spikes, explained.causes))
}

/// A series beside threads of `culprit_threads.c`, whose time is to have these causes and is not to be a halted CPU.
fn beside_threads(name: &str, kind: &str, owner: &str, causes: &[(Cause, Option<Cause>)]) {
    skip_unless!(instances().is_some() && is_installed("cc", "gcc"));
    let (_machine, scratch) = machine_and_scratch("explain-threads");
    let source = scratch.file("culprit.c", include_str!("../../culprits/culprit_threads.c"));
    let culprit = scratch.path("culprit");
    let compiled = Command::new("cc").args(["-O1", "-pthread", "-o"]).args([&culprit, &source]).status();
    assert!(compiled.unwrap().success());
    series(name, || {
        let (blamed, all) = blamed_beside(&culprit, kind, owner);
        let right = blamed.iter().filter(|blame| causes.contains(blame)).count();
        let said = format!("{blamed:?} of {all}");
        match () {
            () if right >= 3 && right * 2 > blamed.len() => Round::Right,
            // A hypervisor may preempt the vCPU meanwhile, but not most of the time.
            () if blamed.len() >= 3 && right * 2 <= blamed.len() => Round::Wrong(said),
            () => Round::Nothing(said),
        }
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_an_inherited_priority_is_not_a_halted_cpu() {
    beside_threads("explain inherited priority", "inherit", "culprit", &[(Cause::HigherPriority, None)]);
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_a_raised_priority_is_not_a_halted_cpu() {
    let causes = [(Cause::HigherPriority, None), (Cause::HigherPriority, Some(Cause::Throttling))];
    beside_threads("explain raised priority", "raise", "culprit", &causes);
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_a_function_of_a_timer_is_not_a_halted_cpu() {
    // kernel.kptr_restrict may hide the addresses of kernel functions.
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let are_named =
        symbols.lines().any(|line| line.ends_with(" timerfd_tmrproc") && !line.starts_with("0000000000000000"));
    let owner = if are_named { "interrupt local_timer (timerfd_tmrproc)" } else { "interrupt local_timer" };
    let causes = [(Cause::Interrupt, None), (Cause::Interrupt, Some(Cause::CpuStalled))];
    beside_threads("explain function of a timer", "herd", owner, &causes);
}

#[test]
#[ignore = "host: latencies and their interrupts"]
fn root_the_interrupt_of_most_wake_ups_is_seen_while_spikes_stop_the_trace() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("explain irq stage", || {
        let spinner = spinner("fifo:95", Duration::from_micros(2500), Duration::from_millis(50));
        let explain = Explain { keep: 3, ..Explain::default() };
        let asked = asked("fifo:80", "1ms", "3500ms");
        let cell = Cell { conditions: Conditions { explain: Some(explain), ..asked.conditions.clone() }, ..asked };
        let record = record(start_cell(command("cell"), &cell));
        drop(spinner);
        let explained = explained(&record);
        let ([irq], [thread]) = (&explained.irq[..], &record.threads[..]) else { panic!("{:?}", explained.irq) };
        let (irq, thread) = (&irq.histogram, &thread.histogram);
        // Each wake-up, late or not, begins with an interrupt; a snapshot of the trace hides some.
        let is_seen = irq.n * 2 > thread.n && irq.mean_ns() < thread.mean_ns() && irq.max_ns <= thread.max_ns;
        Round::right_if(is_seen && explained.above.is_some(), || {
            format!("{} of {}, {:?} and {:?}", irq.n, thread.n, irq.max_ns, thread.max_ns)
        })
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_the_culprit_is_named_in_the_report_and_in_exported_files() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("explain-told");
    let dir = scratch.path("spikes");
    let arguments = format!(
        "explain --wait --no-keep --policy fifo:80 --cpus {} --duration 1s --above 800us --keep 9 --export {}",
        a_cpu(),
        dir.display()
    );
    series("explain told", || {
        let _ = std::fs::remove_dir_all(&dir);
        let spinner = bursts("fifo:95");
        let said = punctual(&arguments).expect_success();
        drop(spinner);
        let files = std::fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.path());
        let stories: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
        let blame = |path: &PathBuf| {
            let story: serde_json::Value = read_json(path);
            story["otherData"]["spikes"][0]["blame"].as_str().unwrap().to_owned()
        };
        let named = stories.iter().filter(|path| blame(path).contains("culprit")).count();
        let parts = ["culprit, of higher priority, ran", "doctor:\n    other-realtime-tasks"];
        let is_told = parts.iter().all(|part| said.stdout.contains(part));
        Round::right_if(stories.len() == 9 && named >= 5 && is_told, || {
            format!("{named} of {}: {}", stories.len(), said.stdout)
        })
    });
}
