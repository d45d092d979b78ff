//! Threads that do not run when they are due: whatever the machine does, every due time is accounted for.
//!
//! What exactly a stop, a starved thread and throttling leave in a record is tested in virtual time
//! (`guest/stalls.rs`).

use crate::program::{
    a_cpu, cell, command, inconclusive, is_root, is_stopped, machine, record, skip_unless, start_cell,
    wait_for_progress,
};
use punctual_model::{Bucket, Cell, Conditions, Ended, ThreadRecord};
use punctual_sys::testing::comes_true;
use punctual_sys::{process, sched};

#[test]
fn a_stopped_cell_accounts_for_every_due_time() {
    let _machine = machine();
    let mut child = start_cell(command("cell --progress"), &cell("other", "none", &a_cpu().to_string(), "2500ms"));
    wait_for_progress(&mut child);
    process::signal(child.id(), libc::SIGSTOP).unwrap();
    // The main thread passes the stop on when it gets to run. A cell that is over has no thread to stop.
    let mut has_ended = false;
    let stopped = comes_true(|| {
        has_ended = child.try_wait().unwrap().is_some();
        has_ended || is_stopped(child.id())
    });
    assert!(stopped, "it runs on");
    process::signal(child.id(), libc::SIGCONT).unwrap();
    if has_ended {
        inconclusive("the cell had ended before it was stopped");
    }
    let record = record(child);
    let thread = &record.threads[0];
    assert!(thread.is_consistent(), "{thread:?}");
    assert_eq!((thread.cycles_due, thread.lost, record.ended), (2500, 0, Ended::Completed));
    assert_missed_follow(thread);
    let Some(max_ns) = thread.histogram.max_ns else { return };
    assert_eq!(thread.worst[0].latency_ns, max_ns);
    let deadline = i64::try_from(record.cell.deadline().ns()).unwrap();
    let is_told = thread.episodes.first.iter().any(|episode| episode.worst_ns >= max_ns);
    let are_all_kept = thread.episodes.count == thread.episodes.first.len() as u64;
    assert!(is_told || max_ns <= deadline || !are_all_kept, "{max_ns}: {:?}", thread.episodes);
}

/// The due times that a wake-up so late missed: those more than a period (1 ms) before it.
pub(crate) fn missed_by(latency_ns: u64) -> u64 {
    latency_ns.saturating_sub(1_000_000).div_ceil(1_000_000)
}

/// Asserts that the samples account for the due times missed because of them, within the width of the histogram's
/// buckets. Due times missed before the first sample, and in an open wait, follow from no sample and are in no second.
#[track_caller]
pub(crate) fn assert_missed_follow(thread: &ThreadRecord) {
    let missed: u64 = thread.seconds.iter().map(|second| second.missed).sum();
    let of_all = |edge: fn(&Bucket) -> u64| -> u64 {
        thread.histogram.buckets().map(|bucket| bucket.count * missed_by(edge(&bucket))).sum()
    };
    let (fewest, most) = (of_all(|bucket| bucket.lower_ns), of_all(|bucket| bucket.upper_ns));
    // No due times follow the end: the last sample may have missed fewer than its latency says.
    let last = missed_by(u64::try_from(thread.histogram.max_ns.unwrap_or(0)).unwrap());
    assert!(fewest <= missed + last && missed <= most, "{missed} missed, {fewest} to {most} follow");
    assert!(missed <= thread.missed, "{missed} of {}", thread.missed);
    assert_eq!(thread.seconds.iter().map(|second| second.n).sum::<u64>(), thread.recorded);
}

#[test]
fn a_signal_ends_a_cell_early_with_what_was_measured() {
    let _machine = machine();
    let mut child = start_cell(command("cell --progress"), &cell("other", "none", &a_cpu().to_string(), "1h"));
    wait_for_progress(&mut child);
    process::signal(child.id(), libc::SIGINT).unwrap();
    let record = record(child);
    let thread = &record.threads[0];
    assert_eq!(record.ended, Ended::Interrupted);
    assert!(thread.is_consistent(), "{thread:?}");
    assert_eq!(record.measured.ns(), thread.cycles_due * 1_000_000);
    assert!((1..3_600_000).contains(&thread.cycles_due), "{}", thread.cycles_due);
}

/// The measured thread gets what throttling leaves to normal threads.
#[test]
fn root_a_thread_beside_a_real_time_load_accounts_for_every_due_time() {
    let cpu = a_cpu().to_string();
    skip_unless!(is_root() && sched::affinity(0).unwrap().len() > 1);
    if std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").is_ok_and(|us| us.trim() == "-1") {
        eprintln!("skipped: needs real-time throttling (sysctl kernel.sched_rt_runtime_us)");
        return;
    }
    let _machine = machine();
    let starved = Cell {
        load_cpus: Some(cpu.parse().unwrap()),
        conditions: Conditions { load_policy: Some("fifo:99".parse().unwrap()), ..Conditions::default() },
        ..cell("other", "cpu", &cpu, "2s")
    };
    let record = record(start_cell(command("cell"), &starved));
    let thread = &record.threads[0];
    assert!(thread.is_consistent() && thread.cycles_due == 2000, "{thread:?}");
    assert_missed_follow(thread);
    assert_eq!(record.ended, Ended::Completed);
}
