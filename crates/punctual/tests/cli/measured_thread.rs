//! What a measured thread does, seen from outside: its settings, and its system calls.

use crate::program::{
    MARK, PROGRAM, Scratch, a_cpu, cell, comes_true, command, is_installed, is_root, machine, record, running,
    start_cell,
};
use model::{Cell, Span};
use std::process::Command;

#[test]
fn a_normal_thread_has_what_was_asked() {
    let _machine = machine();
    let cpu = a_cpu();
    for (slack, ns) in [(None, 50_000), (Some(Span(1)), 1), (Some(Span(2_000_000)), 2_000_000)] {
        let asked = Cell { timer_slack: slack, ..cell("other", "none", &cpu.to_string(), "50ms") };
        let record = record(start_cell(command("cell"), &asked));
        let achieved = &record.threads[0].achieved;
        assert_eq!((achieved.policy, achieved.timer_slack_ns), (asked.policy, ns));
        assert_eq!(achieved.cpus.to_string(), cpu.to_string());
        assert_eq!((achieved.memory_locked_bytes, achieved.cpu_dma_latency_us), (0, None));
        assert_eq!((record.cell_id.clone(), record.cell), (asked.id(), asked));
    }
}

#[test]
fn root_a_real_time_thread_has_what_was_asked_and_faults_and_allocates_nothing() {
    if !is_root() {
        return;
    }
    let _machine = machine();
    let cpus = rt::sys::sched::affinity(0).unwrap().to_string();
    let dma = std::path::Path::new("/dev/cpu_dma_latency").exists().then_some(0);
    let asked = Cell { lock_memory: true, cpu_dma_latency_us: dma, ..cell("fifo:80", "messaging", &cpus, "1s") };
    let record = record(start_cell(command("cell"), &asked));
    for thread in &record.threads {
        assert_eq!((thread.achieved.policy, thread.achieved.cpu_dma_latency_us), (asked.policy, dma));
        assert!(thread.achieved.memory_locked_bytes > 1_000_000);
        let usage = thread.usage.expect("the thread came to its end");
        assert_eq!((usage.allocations, usage.minor_faults, usage.major_faults), (0, 0, 0));
        assert_eq!(thread.recorded + thread.missed, 1000);
    }
}

#[test]
fn between_barrier_and_end_a_measured_thread_makes_the_calls_of_its_method_and_no_others() {
    if !is_installed("strace", "strace") {
        return;
    }
    let _machine = machine();
    for (method, wait, rest_of_a_cycle) in [
        ("clock_nanosleep", "clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, {", None),
        ("timerfd", "timerfd_settime(", Some("read(")),
        // With a time-out, in braces: the thread parks at the barrier on a futex without one.
        ("futex", "FUTEX_WAIT_BITSET_PRIVATE, 0, {", None),
    ] {
        let (calls, recorded) = traced(method);
        let is_wait = |call: &String| call.contains(wait);
        let first = calls.iter().position(is_wait).expect("a wait");
        let last = calls.iter().rposition(is_wait).expect("a wait");
        let section = &calls[first..=last];
        let is_of_a_cycle = |call: &String| is_wait(call) || rest_of_a_cycle.is_some_and(|rest| call.starts_with(rest));
        let strangers: Vec<_> = section.iter().filter(|call| !is_of_a_cycle(call)).collect();
        assert!(strangers.is_empty(), "{method}: {strangers:?}");
        let waits = section.iter().filter(|call| is_wait(call)).count() as u64;
        assert_eq!(waits, recorded, "{method}: one wait a cycle");
    }
}

/// The system calls of the measured thread of a short cell, as strace writes them, and how many wake-ups it recorded.
fn traced(method: &str) -> (Vec<String>, u64) {
    let scratch = Scratch::new("strace");
    let trace = scratch.path("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o"]).arg(&trace).args([PROGRAM, "cell"]);
    let asked = Cell { method: method.parse().unwrap(), ..cell("other", "none", &a_cpu().to_string(), "300ms") };
    let record = record(start_cell(strace, &asked));
    let trace = std::fs::read_to_string(trace).unwrap();
    // The measured thread is the one that takes its name.
    let named = |line: &&str| line.contains("PR_SET_NAME, \"measured/");
    let thread = trace.lines().find(named).and_then(|line| line.split(' ').next()).expect("a measured thread");
    // "4711 read(5, ..." begins a call; "4711 <... read resumed>..." only ends it.
    let own = trace.lines().filter_map(|line| line.strip_prefix(thread)?.strip_prefix(' '));
    let calls = own.map(str::trim_start).filter(|call| !call.starts_with('<')).map(str::to_owned).collect();
    (calls, record.threads[0].recorded)
}

#[test]
fn root_every_policy_is_achieved_as_asked() {
    if !is_root() {
        return;
    }
    let _machine = machine();
    let cpu = a_cpu().to_string();
    for policy in ["other", "other:nice=-20", "other:nice=19", "batch", "idle", "fifo:1", "fifo:99", "rr:50"] {
        let record = record(start_cell(command("cell"), &cell(policy, "none", &cpu, "200ms")));
        let thread = &record.threads[0];
        assert_eq!(thread.achieved.policy.to_string(), policy);
        let slack = if thread.achieved.policy.is_realtime() { 0 } else { 50_000 };
        assert_eq!((thread.achieved.timer_slack_ns, thread.cycles_due), (slack, 200), "{policy}");
        assert!(thread.is_consistent(), "{policy}");
    }
}

#[test]
fn root_an_idle_thread_under_load_ends_in_time() {
    if !is_root() {
        return;
    }
    let _machine = machine();
    let begun = std::time::Instant::now();
    let record = record(start_cell(command("cell"), &cell("idle", "messaging", &a_cpu().to_string(), "1s")));
    let thread = &record.threads[0];
    assert!(thread.is_consistent() && thread.cycles_due == 1000, "{thread:?}");
    // A hundred processes of nice 0 leave an idle thread less than one part in a thousand: it cannot keep its times.
    assert!(thread.missed > 0 || thread.censored.is_some(), "{} recorded", thread.recorded);
    assert!(begun.elapsed() < std::time::Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn root_a_nice_start_is_not_handed_on_to_the_load() {
    if !is_root() {
        return;
    }
    let _machine = machine();
    let mut nice = Command::new("nice");
    nice.args(["-n", "19", PROGRAM, "cell"]).env(MARK, std::process::id().to_string());
    let child = start_cell(nice, &cell("other", "messaging:groups=1", &a_cpu().to_string(), "1s"));
    assert!(comes_true(|| running().len() > 40), "the load is there");
    let nice_of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Field 19, counted from behind the name, which is field 2 and may hold blanks (proc_pid_stat(5)).
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(16)).map(str::to_owned)
    };
    let found: Vec<_> = running().into_iter().filter_map(nice_of).collect();
    assert!(found.len() > 20 && found.iter().all(|nice| nice == "0"), "{found:?}");
    assert_eq!(record(child).threads[0].achieved.policy.to_string(), "other");
}
