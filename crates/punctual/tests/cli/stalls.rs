//! Stalls of known size: what is seen of a thread that was stopped, and of one that never ran.

use crate::program::{a_cpu, cell, comes_true, command, is_root, machine, record, start_cell};
use model::{Ended, Policy};
use rt::sys::{process, sched, thread};
use std::time::{Duration, Instant};

const SIGINT: i32 = 2;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

#[test]
fn a_stop_of_200_ms_shows_as_one_late_wake_up_and_about_199_missed_cycles() {
    let _machine = machine();
    let child = start_cell(command("cell"), &cell("other", "none", &a_cpu().to_string(), "1500ms"));
    std::thread::sleep(Duration::from_millis(500));
    process::signal(child.id(), SIGSTOP).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    process::signal(child.id(), SIGCONT).unwrap();
    let record = record(child);
    let thread = &record.threads[0];
    let max_ns = thread.histogram.max_ns.unwrap();
    assert!(max_ns >= 199_000_000, "{max_ns}");
    // What follows from the latencies: a due time is missed when the thread woke more than a period after it.
    let missed = |latency_ns: i64| u64::try_from(latency_ns - 1_000_000).unwrap_or(0).div_ceil(1_000_000);
    assert!(thread.missed >= missed(max_ns) && missed(max_ns) >= 198, "{} missed, {max_ns} ns", thread.missed);
    let of_all_stalls: u64 = thread.worst.iter().map(|worst| missed(worst.latency_ns)).sum();
    assert!(thread.missed <= of_all_stalls, "{} missed, {of_all_stalls} follow from the samples", thread.missed);
    assert_eq!(thread.recorded + thread.missed, thread.cycles_due);
    assert_eq!((thread.cycles_due, thread.lost, thread.censored), (1500, 0, None));
    assert_eq!(thread.worst[0].latency_ns, max_ns);
    assert!(thread.episodes.first.iter().any(|episode| episode.worst_ns == max_ns));
}

#[test]
fn root_a_thread_that_never_runs_ends_in_time_with_a_censored_sample() {
    let cpu = a_cpu();
    let alone = sched::affinity(0).unwrap().len() == 1;
    if !is_root() || alone {
        return;
    }
    let _machine = machine();
    // 1.3 s at the highest priority on one CPU; the throttling of real-time threads stays on (it sets in after 0.95 s).
    let spinner = std::thread::spawn(move || {
        sched::set_affinity(thread::id(), &[cpu].into_iter().collect()).unwrap();
        sched::set_policy(thread::id(), "fifo:99".parse::<Policy>().unwrap()).unwrap();
        let end = Instant::now() + Duration::from_millis(1300);
        while Instant::now() < end {}
    });
    std::thread::sleep(Duration::from_millis(20));
    let begun = Instant::now();
    let record = record(start_cell(command("cell"), &cell("other", "none", &cpu.to_string(), "500ms")));
    let took = begun.elapsed();
    spinner.join().unwrap();
    let thread = &record.threads[0];
    let censored = thread.censored.expect("the wait was still open at the end");
    assert!(censored.at_least_ns >= 200_000_000, "{censored:?}");
    assert_eq!(thread.recorded + thread.missed + 1, thread.cycles_due, "the open wait is the one cycle left");
    assert_eq!((thread.usage, record.ended), (None, Ended::Completed));
    assert!(took < Duration::from_secs(10), "it ended by the wall clock: {took:?}");
}

#[test]
fn a_signal_ends_a_cell_early_with_what_was_measured() {
    let _machine = machine();
    let child = start_cell(command("cell"), &cell("other", "none", &a_cpu().to_string(), "60s"));
    std::thread::sleep(Duration::from_millis(1500));
    process::signal(child.id(), SIGINT).unwrap();
    let record = record(child);
    let thread = &record.threads[0];
    assert_eq!(record.ended, Ended::Interrupted);
    assert_eq!(thread.recorded + thread.missed, thread.cycles_due);
    assert_eq!(record.measured.ns(), thread.cycles_due * 1_000_000);
    assert!((100..60_000).contains(&thread.cycles_due), "{}", thread.cycles_due);
}

#[test]
fn a_load_that_loses_a_process_fails_the_cell() {
    let _machine = machine();
    let child = start_cell(command("cell"), &cell("other", "messaging:groups=1", &a_cpu().to_string(), "10s"));
    let pid = child.id();
    let worker = || crate::program::running().into_iter().filter(|other| *other > pid).max();
    assert!(comes_true(|| crate::program::running().len() > 40), "the load is there");
    std::thread::sleep(Duration::from_millis(300));
    process::signal(worker().unwrap(), 9).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("punctual: load messaging:groups=1: process ") && said.contains(" ended"), "{said}");
    assert!(output.stdout.is_empty());
    assert!(comes_true(|| crate::program::running().is_empty()), "the rest of the load is gone");
}
