//! Stalls of known length: the record of a stopped thread, and of one that never ran.

use crate::program::{
    a_cpu, cell, comes_true, command, is_root, is_stopped, machine, record, skip_unless, start_cell, wait_for_progress,
};
use model::{Bucket, Ended, Policy, Record, ThreadRecord};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::{process, sched, thread};

#[test]
fn a_stop_of_200_ms_is_one_late_wake_up_and_199_missed_cycles() {
    let _machine = machine();
    let mut child = start_cell(command("cell --progress"), &cell("other", "none", &a_cpu().to_string(), "2500ms"));
    wait_for_progress(&mut child);
    process::signal(child.id(), libc::SIGSTOP).unwrap();
    assert!(comes_true(|| is_stopped(child.id())), "the main thread passes the stop on when it gets to run");
    std::thread::sleep(Duration::from_millis(200));
    process::signal(child.id(), libc::SIGCONT).unwrap();
    let record = record(child);
    let thread = &record.threads[0];
    let max_ns = thread.histogram.max_ns.unwrap();
    assert!(max_ns >= 199_000_000, "{max_ns}");
    let missed_by_max = missed_by(u64::try_from(max_ns).unwrap());
    assert!(thread.missed >= missed_by_max && missed_by_max >= 198, "{} missed, {max_ns} ns", thread.missed);
    assert_missed_follow(thread);
    assert_eq!(thread.recorded + thread.missed, thread.cycles_due);
    assert_eq!((thread.cycles_due, thread.lost, thread.censored), (2500, 0, None));
    assert_eq!(thread.worst[0].latency_ns, max_ns);
    assert!(thread.episodes.first.iter().any(|episode| episode.worst_ns == max_ns));
}

#[test]
fn root_a_thread_that_never_runs_ends_in_time_with_a_censored_sample() {
    let cpu = a_cpu();
    skip_unless!(is_root() && sched::affinity(0).unwrap().len() > 1);
    let _machine = machine();
    // A slow machine may start the cell only when the spinner ends; such a cell is repeated.
    let starved = (0..5).find_map(|_| starved_cell(cpu)).expect("a cell within the time of a spinner");
    let thread = &starved.threads[0];
    let censored = thread.censored.expect("the wait was still open at the end");
    assert!(censored.at_least_ns >= 200_000_000, "{censored:?}");
    assert_eq!(thread.recorded + thread.missed + 1, thread.cycles_due, "the open wait is the one cycle left");
    assert_eq!((thread.usage, starved.ended), (None, Ended::Completed));
}

/// The due times that a wake-up so late missed: those more than a period (1 ms) before it.
fn missed_by(latency_ns: u64) -> u64 {
    latency_ns.saturating_sub(1_000_000).div_ceil(1_000_000)
}

/// Asserts that the samples account for the due times missed because of them, within the width of the histogram's
/// buckets. Due times missed before the first sample, and in an open wait, follow from no sample and are in no second.
fn assert_missed_follow(thread: &ThreadRecord) {
    let missed: u64 = thread.seconds.iter().map(|second| second.missed).sum();
    let of_all = |edge: fn(&Bucket) -> u64| -> u64 {
        thread.histogram.buckets().map(|bucket| bucket.count * missed_by(edge(&bucket))).sum()
    };
    let (fewest, most) = (of_all(|bucket| bucket.lower_ns), of_all(|bucket| bucket.upper_ns));
    // No due times follow the end: the last sample may have missed fewer than its latency says.
    let last = missed_by(u64::try_from(thread.histogram.max_ns.unwrap()).unwrap());
    assert!(fewest <= missed + last && missed <= most, "{missed} missed, {fewest} to {most} follow");
    assert!(missed <= thread.missed, "{missed} of {}", thread.missed);
}

/// A thread that spins on `cpu` at the highest priority for `length`.
fn spin(cpu: u32, length: Duration) -> JoinHandle<()> {
    std::thread::spawn(move || {
        sched::set_affinity(thread::id(), &[cpu].into_iter().collect()).unwrap();
        sched::set_policy(thread::id(), "fifo:99".parse::<Policy>().unwrap()).unwrap();
        let end = Instant::now() + length;
        while Instant::now() < end {}
    })
}

/// A cell of 500 ms on `cpu` while another thread spins there at the highest priority, for 1.3 s at most. Real-time
/// throttling (the fair server) stays on and lets normal threads run after 0.95 s; `None` if the cell did not end
/// before.
fn starved_cell(cpu: u32) -> Option<Record> {
    let spun_since = sys::clock::monotonic();
    let spinner = spin(cpu, Duration::from_millis(1300));
    std::thread::sleep(Duration::from_millis(20));
    let begun = Instant::now();
    let record = record(start_cell(command("cell"), &cell("other", "none", &cpu.to_string(), "500ms")));
    assert!(begun.elapsed() < Duration::from_secs(10), "it ended by the wall clock: {:?}", begun.elapsed());
    spinner.join().unwrap();
    // The cell waits until 250 ms after its end.
    let cut = record.started.since(spun_since).0 + 750_000_000;
    (cut < 930_000_000).then_some(record)
}

#[test]
fn a_signal_ends_a_cell_early_with_what_was_measured() {
    let _machine = machine();
    let mut child = start_cell(command("cell --progress"), &cell("other", "none", &a_cpu().to_string(), "60s"));
    wait_for_progress(&mut child);
    process::signal(child.id(), libc::SIGINT).unwrap();
    let record = record(child);
    let thread = &record.threads[0];
    assert_eq!(record.ended, Ended::Interrupted);
    assert_eq!(thread.recorded + thread.missed, thread.cycles_due);
    assert_eq!(record.measured.ns(), thread.cycles_due * 1_000_000);
    assert!((100..60_000).contains(&thread.cycles_due), "{}", thread.cycles_due);
}

/// The measured thread gets the 50 ms of each second that real-time throttling leaves to normal threads.
#[test]
fn root_a_thread_under_throttling_accounts_for_every_due_time() {
    let cpu = a_cpu();
    skip_unless!(is_root() && sched::affinity(0).unwrap().len() > 1);
    let _machine = machine();
    let mut child = start_cell(command("cell --progress"), &cell("other", "none", &cpu.to_string(), "4s"));
    wait_for_progress(&mut child);
    let spinner = spin(cpu, Duration::from_millis(2500));
    let record = record(child);
    spinner.join().unwrap();
    let thread = &record.threads[0];
    assert!(thread.is_consistent() && thread.cycles_due == 4000, "{} due", thread.cycles_due);
    assert_missed_follow(thread);
    // 2.5 s less the share of normal threads, of which this is only one.
    assert!(thread.missed > 1000, "{} missed", thread.missed);
    assert_eq!(thread.seconds.iter().map(|second| second.n).sum::<u64>(), thread.recorded);
}
