//! The measured thread from outside: its settings and its system calls.

use crate::program::{
    MARK, PROGRAM, Scratch, a_cpu, cell, command, finish, inconclusive, is_installed, is_root, machine, mark, record,
    running, skip_unless, start_cell, wait_for_progress,
};
use punctual_model::{Cell, Conditions, Record, Span, ThreadRecord};
use punctual_sys::sched;
use punctual_sys::testing::comes_true;
use std::process::Command;

#[test]
fn a_normal_thread_has_what_was_asked() {
    let _machine = machine();
    let cpu = a_cpu();
    for (slack, ns) in [(None, 50_000), (Some(Span(1)), 1), (Some(Span(2_000_000)), 2_000_000)] {
        let asked = Cell {
            conditions: Conditions { timer_slack: slack, ..Conditions::default() },
            ..cell("other", "none", &cpu.to_string(), "50ms")
        };
        let record = record(start_cell(command("cell"), &asked));
        let achieved = &record.threads[0].achieved;
        assert_eq!((achieved.policy, achieved.timer_slack_ns), (asked.policy, ns));
        assert_eq!(achieved.cpus.to_string(), cpu.to_string());
        assert_eq!((achieved.memory_locked_bytes, achieved.cpu_dma_latency_us), (0, None));
        assert_eq!((record.cell_id.clone(), record.cell), (asked.id(), asked));
    }
}

#[test]
fn root_a_real_time_thread_has_its_settings_and_never_faults_or_allocates() {
    skip_unless!(is_root());
    let _machine = machine();
    let cpus = punctual_sys::sched::affinity(0).unwrap().to_string();
    let dma = std::path::Path::new("/dev/cpu_dma_latency").exists().then_some(0);
    let asked = Cell {
        lock_memory: true,
        conditions: Conditions { cpu_dma_latency_us: dma, ..Conditions::default() },
        ..cell("fifo:80", "messaging", &cpus, "1s")
    };
    let moved = pages_moved();
    let record = record(start_cell(command("cell"), &asked));
    let are_pages_in_place = pages_moved() == moved;
    for thread in &record.threads {
        assert_eq!((thread.achieved.policy, thread.achieved.cpu_dma_latency_us), (asked.policy, dma));
        assert!(thread.achieved.memory_locked_bytes > 1_000_000);
        assert!(thread.is_consistent() && thread.cycles_due == 1000, "{thread:?}");
        let Some(usage) = thread.usage else { return inconclusive("a thread did not come to its end") };
        assert_eq!((usage.allocations, usage.major_faults), (0, 0));
        match usage.minor_faults {
            0 => {}
            n if are_pages_in_place => panic!("{n} faults"),
            _ => inconclusive("the kernel has moved pages of memory, locked ones too"),
        }
    }
}

/// Pages that the kernel has moved so far, proc_vmstat(5).
fn pages_moved() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap();
    let of = |line: &str| match line.split_once(' ')? {
        ("pgmigrate_success" | "thp_collapse_alloc" | "thp_split_page", n) => n.parse::<u64>().ok(),
        _ => None,
    };
    text.lines().filter_map(of).sum()
}

/// For each method: policy, the call that waits, and the other calls of a cycle.
const CALLS: [(&str, &str, &str, &[&str]); 18] = [
    ("clock_nanosleep", "other", "clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, {", &[]),
    ("clock_nanosleep:relative", "other", "clock_nanosleep(CLOCK_MONOTONIC, 0, {", &[]),
    ("clock_nanosleep:realtime", "other", "clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, {", &[]),
    ("clock_nanosleep:boottime", "other", "clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, {", &[]),
    ("clock_nanosleep:tai", "other", "clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, {", &[]),
    ("nanosleep", "other", "nanosleep({", &[]),
    ("timerfd", "other", "timerfd_settime(", &["read("]),
    ("itimer", "other", "rt_sigtimedwait([ALRM], ", &["setitimer(ITIMER_REAL, "]),
    ("posix_timer", "other", "rt_sigtimedwait([RT_", &["timer_settime(", "timer_getoverrun("]),
    // With a timeout, in braces: the thread parks at the barrier on a futex without one.
    ("futex", "other", "FUTEX_WAIT_BITSET_PRIVATE, 0, {", &[]),
    ("futex:realtime", "other", "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 0, {", &[]),
    ("poll", "other", "ppoll(NULL, 0, {", &[]),
    ("deadline", "deadline:300us/1ms/1ms", "sched_yield(", &[]),
    ("handoff:eventfd", "other", "read(", &[]),
    // Or epoll_pwait, and semtimedop, by the C library.
    ("handoff:epoll", "other", "wait(", &["read("]),
    ("handoff:mq", "other", "mq_timedreceive(", &[]),
    ("handoff:sysv-sem", "other", "op(", &[]),
    ("handoff:signal", "other", "rt_sigtimedwait([RT_", &[]),
];

#[test]
fn a_measured_thread_makes_only_the_calls_of_its_method() {
    skip_unless!(is_installed("strace", "strace"));
    let _machine = machine();
    for (method, policy, wait, others) in CALLS {
        if policy != "other" && !is_root() {
            continue;
        }
        let (calls, thread) = traced(method, policy);
        // Only of a thread that came to its end, after at least one wake-up, is known how often it waited.
        let recorded = thread.recorded;
        if recorded == 0 || thread.usage.is_none() {
            inconclusive(&format!("{method}: {recorded} wake-ups, {:?}", thread.censored));
            continue;
        }
        let is_wait = |call: &String| call.contains(wait);
        let first =
            calls.iter().position(is_wait).unwrap_or_else(|| panic!("{method}: no `{wait}` in {} calls", calls.len()));
        let last = calls.iter().rposition(is_wait).expect("a wait");
        let section = &calls[first..=last];
        let is_own = |call: &String| is_wait(call) || others.iter().any(|other| call.starts_with(other));
        let strangers: Vec<_> = section.iter().filter(|call| !is_own(call)).collect();
        assert!(strangers.is_empty(), "{method}: {strangers:?}");
        let waits = section.iter().filter(|call| is_wait(call)).count() as u64;
        // A periodic timer may have expired for a due time that was already past and counts as missed.
        let is_periodic =
            others.iter().any(|other| other.contains("timer_settime(") && !other.contains("fd")) || method == "itimer";
        // A hand-off may have been made for such a due time, too.
        let is_periodic = is_periodic || method.starts_with("handoff:");
        assert!(waits == recorded || is_periodic && waits > recorded, "{method}: {waits} waits, {recorded} wake-ups");
    }
}

/// System calls of the measured thread of a short cell, as strace(1) prints them, and its record.
fn traced(method: &str, policy: &str) -> (Vec<String>, ThreadRecord) {
    let scratch = Scratch::new("strace");
    let trace = scratch.path("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o"]).arg(&trace).args([PROGRAM, "cell"]);
    let asked = Cell { task: method.parse().unwrap(), ..cell(policy, "none", &a_cpu().to_string(), "300ms") };
    let mut record = record(start_cell(strace, &asked));
    let trace = std::fs::read_to_string(trace).unwrap();
    // The measured thread is identified by the name it sets.
    let named = |line: &&str| line.contains("PR_SET_NAME, \"measured/");
    let thread = trace.lines().find(named).and_then(|line| line.split(' ').next()).expect("a measured thread");
    // "4711 read(5, ..." begins a call; "4711 <... read resumed>..." only ends it.
    let own = trace.lines().filter_map(|line| line.strip_prefix(thread)?.strip_prefix(' '));
    let calls = own.map(str::trim_start).filter(|call| !call.starts_with('<')).map(str::to_owned).collect();
    (calls, record.threads.remove(0))
}

#[test]
fn root_every_method_runs_under_every_policy_and_is_recorded() {
    skip_unless!(is_root());
    let _machine = machine();
    let cpu = a_cpu().to_string();
    let deadline = "deadline:300us/1ms/1ms";
    let policies =
        ["other", "other:nice=-20", "other:nice=19", "batch", "idle", "fifo:1", "fifo:99", "rr:50", deadline];
    let methods = CALLS.map(|(method, ..)| method);
    let all = policies.into_iter().flat_map(|policy| methods.map(|method| (method, policy)));
    let fits = |method: &str, policy: &str| match method {
        "deadline" => policy == deadline,
        _ => policy != deadline || !method.starts_with("handoff:"),
    };
    for (method, policy) in all.filter(|(method, policy)| fits(method, policy)) {
        let asked = Cell { task: method.parse().unwrap(), ..cell(policy, "none", &cpu, "100ms") };
        let record = record(start_cell(command("cell"), &asked));
        let thread = &record.threads[0];
        let achieved = &thread.achieved;
        assert_eq!((achieved.policy.to_string().as_str(), record.cell.task), (policy, asked.task));
        let slack = if achieved.policy.is_realtime() { 0 } else { 50_000 };
        assert_eq!(achieved.timer_slack_ns, slack, "{method} {policy}");
        // After a clock was set back, later due times are outside the window.
        let is_set = !record.clock_steps.is_empty();
        assert!(thread.cycles_due == 100 || is_set, "{method} {policy}: {:?}", record.clock_steps);
        let cpus = if policy == deadline { sched::affinity(0).unwrap().to_string() } else { cpu.clone() };
        assert_eq!(achieved.cpus.to_string(), cpus, "{method} {policy}");
        assert!(thread.is_consistent() && thread.lost == 0, "{method} {policy}: {thread:?}");
        // An idle thread may not run within 100 ms.
        if thread.recorded == 0 && policy != "idle" {
            inconclusive(&format!("{method} {policy}: {:?}", thread.censored));
        }
        // After a stall the kernel may shift the periods of a deadline thread.
        let early = if method == "deadline" && thread.missed > 0 { 0 } else { thread.early };
        assert!(early == 0 || !record.clock_steps.is_empty(), "{method} {policy}: {early} early");
        // Only a thread that came to its end can tell.
        if thread.usage.is_some() {
            assert_eq!(thread.timer_overruns.is_some(), method == "posix_timer", "{method} {policy}");
            let from_inside_a_call = ["itimer", "deadline"].contains(&method);
            assert_eq!(thread.origin_uncertainty.is_some(), from_inside_a_call, "{method} {policy}");
        }
    }
}

#[test]
fn root_a_deadline_policy_that_does_not_fit_is_refused_with_a_reason() {
    skip_unless!(is_root());
    let _machine = machine();
    // One thread per CPU would take all CPU time, of which the kernel reserves a part.
    let cpus = sched::affinity(0).unwrap().to_string();
    let refused = |policy: &str| {
        let said = finish(start_cell(command("cell"), &cell(policy, "none", &cpus, "100ms")));
        assert_eq!((said.status, said.stdout.len()), (1, 0));
        said.stderr
    };
    let said = refused("deadline:1ms/1ms/1ms");
    assert!(said.contains("cannot set deadline:1ms/1ms/1ms: ") && said.contains("lack the bandwidth"), "{said}");
    let said = refused("deadline:1us/10us/10us");
    assert!(said.contains("sched_deadline_period_min_us"), "{said}");
}

#[test]
fn a_process_has_one_itimer_so_each_cpu_gets_a_process() {
    let cpus = sched::affinity(0).unwrap();
    if cpus.len() < 2 {
        eprintln!("skipped: needs 2 CPUs");
        return;
    }
    let _machine = machine();
    let asked = itimers_apart();
    let record = record(start_cell(command("cell"), &asked));
    assert_eq!(record.cell, asked);
    assert_eq!(record.threads.iter().map(|thread| thread.cpu).collect::<Vec<_>>(), cpus.iter().collect::<Vec<_>>());
    for thread in &record.threads {
        assert!(thread.is_consistent() && thread.cycles_due == 1000, "{} due", thread.cycles_due);
        assert_eq!(thread.achieved.cpus.to_string(), thread.cpu.to_string());
    }
    assert!(record.loads.iter().all(|load| load.workers == 40) && record.loads.len() == 1, "the load is one for all");
    assert!(comes_true(|| running().is_empty()), "nothing stays");
}

/// A cell of a process for each CPU, 250 us apart.
pub(crate) fn itimers_apart() -> Cell {
    Cell {
        task: punctual_model::Task::Cyclic(punctual_model::Method::Itimer),
        conditions: Conditions { distance: Some(Span(250_000)), ..Conditions::default() },
        ..cell("other", "messaging:groups=1", &sched::affinity(0).unwrap().to_string(), "1s")
    }
}

#[test]
fn threads_of_different_periods_run_at_the_same_time() {
    let cpus = sched::affinity(0).unwrap();
    if cpus.len() < 2 {
        eprintln!("skipped: needs 2 CPUs");
        return;
    }
    let _machine = machine();
    let two: punctual_model::CpuSet = cpus.iter().take(2).collect();
    let step = |method: &str| Cell {
        task: method.parse().unwrap(),
        conditions: Conditions { period_step: Some(Span(500_000)), warm_up: Span(5_000_000), ..Conditions::default() },
        ..cell("other", "none", &two.to_string(), "1500ms")
    };
    for method in ["clock_nanosleep", "timerfd", "posix_timer", "clock_nanosleep:relative", "itimer"] {
        let asked = step(method);
        let record = record(start_cell(command("cell"), &asked));
        let [first, second] = &record.threads[..] else { panic!("{method}: two threads") };
        assert!(first.is_consistent() && second.is_consistent(), "{method}: {record:?}");
        assert_eq!((first.cycles_due, second.cycles_due), (1_500, 1_000), "{method}: 3:2");
        assert_eq!((first.period, second.period.map(punctual_model::Period::ns)), (None, Some(1_500_000)), "{method}");
        assert_eq!((&record.cell, record.measured), (&asked, Span(1_500_000_000)), "{method}");
        if method == "itimer" {
            assert_eq!((first.stretch, second.stretch), (None, None), "each process cuts its own slices");
        } else {
            // The warm-up of 5 cycles ends 1 ms before the fifth due time of the slower thread.
            assert_eq!((first.offset, second.offset), (Span(0), Span(1_000_000)), "{method}");
            // 20 cycles of the slower thread, each of two periods of the faster.
            assert_eq!((first.stretch, second.stretch), (Some(Span(40_000_000)), first.stretch), "{method}");
        }
    }
    // A wake-up later than 1 ns ends both, whichever it was.
    let asked = step("clock_nanosleep");
    let stopped = Cell { conditions: Conditions { stop_above: Some(Span(1)), ..asked.conditions.clone() }, ..asked };
    let record = record(start_cell(command("cell"), &stopped));
    if record.threads.iter().all(|thread| thread.recorded == 0) {
        return inconclusive("no thread has woken up");
    }
    assert_eq!(record.ended, punctual_model::Ended::Stopped);
    for thread in &record.threads {
        assert!(thread.is_consistent(), "{thread:?}");
        // It ends with its last wake-up.
        let last = thread.worst.iter().map(|worst| worst.cycle + 1).max();
        assert!(thread.recorded > 100 || thread.cycles_due == last.unwrap_or(0), "{thread:?}");
    }
}

#[test]
fn cycles_begin_at_a_full_second_and_cpus_are_apart_as_asked() {
    let _machine = machine();
    for clock in ["realtime", "monotonic"] {
        let record = aligned(clock);
        for (n, thread) in record.threads.iter().enumerate() {
            assert_eq!(thread.offset.ns(), n as u64 * 200_000);
        }
        if clock == "monotonic" {
            assert_eq!(record.started.0 % 1_000_000_000, 300_000_000);
        }
    }
}

/// The record of a cell that begins 300 ms after a full second of this clock.
pub(crate) fn aligned(clock: &str) -> Record {
    let (align, distance) = (Some(Span(300_000_000)), Some(Span(200_000)));
    let asked = Cell {
        task: format!("clock_nanosleep:{clock}").parse().unwrap(),
        conditions: Conditions { align, distance, ..Conditions::default() },
        ..cell("other", "none", &sched::affinity(0).unwrap().to_string(), "50ms")
    };
    record(start_cell(command("cell"), &asked))
}

/// Each of these cells ends although its thread may get no CPU time at all.
#[test]
fn root_threads_that_get_little_cpu_time_end_and_it_shows() {
    skip_unless!(is_root());
    let _machine = machine();
    let (all, one) = (sched::affinity(0).unwrap().to_string(), a_cpu().to_string());
    for (policy, load, cpus) in [("idle", "cpu", &all), ("other:nice=19", "cpu", &all), ("idle", "messaging", &one)] {
        let record = record(start_cell(command("cell"), &cell(policy, load, cpus, "1s")));
        for thread in &record.threads {
            assert!(thread.is_consistent() && thread.cycles_due == 1000, "{policy}: {thread:?}");
            assert_eq!(thread.achieved.policy.to_string(), policy);
        }
        assert_eq!(record.loads.len(), 1);
    }
}

#[test]
fn root_a_nice_start_is_not_handed_on_to_the_load() {
    skip_unless!(is_root());
    let _machine = machine();
    let mut nice = Command::new("nice");
    nice.args(["-n", "19", PROGRAM, "cell", "--progress"]).env(MARK, mark());
    let mut child = start_cell(nice, &cell("other", "messaging:groups=1", &a_cpu().to_string(), "1h"));
    wait_for_progress(&mut child);
    let nice_of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Field 19 (proc_pid_stat(5)), counted from the name, field 2, which may contain blanks.
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(16)).map(str::to_owned)
    };
    let found: Vec<_> = running().into_iter().filter_map(nice_of).collect();
    assert!(found.len() > 40 && found.iter().all(|nice| nice == "0"), "{found:?}");
    punctual_sys::process::signal(child.id(), libc::SIGINT).unwrap();
    assert_eq!(record(child).threads[0].achieved.policy.to_string(), "other");
}
