//! Every built-in load: it runs beside a measurement, its failures are recorded, and nothing of it stays.
//!
//! That it works all the time is tested in virtual time (`guest/loads.rs`) and as a series (`host/loads.rs`).

use crate::program::{
    a_cpu, cell, command, finish, inconclusive, machine, record, record_of, running, start_cell, traces,
    wait_for_progress,
};
use crate::real::placement::load_of;
use punctual_model::{Cell, Conditions, Load, Percent};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::process::Child;

/// Every load of this program that needs no other one.
pub(crate) fn built_in() -> impl Iterator<Item = &'static str> + Clone {
    let built_in =
        Load::KNOWN.iter().filter(|form| !form.starts_with("stress-ng") && (!form.contains(':') || form.contains('[')));
    let words = built_in.map(|form| form.split('[').next().unwrap_or(form));
    words.chain(["cpu:50", "messaging:groups=1+disk"]).filter(|load| *load != "none")
}

#[test]
fn every_load_runs_beside_a_measurement_and_nothing_of_it_stays() {
    let _machine = machine();
    // What a killed process of another test has left is not of these.
    let before = traces();
    let left = || traces().into_iter().filter(|trace| !before.contains(trace)).collect::<Vec<_>>();
    for load in built_in() {
        let waited = disk_waits_us();
        let said = finish(start_cell(command("cell"), &cell("other", load, &a_cpu().to_string(), "500ms")));
        if said.stderr.contains(": timeout: ") && disk_waits_us() > waited.saturating_add(9_000_000) {
            inconclusive(&format!("the disk stood still for {load}: {}", said.last_line()));
            continue;
        }
        let record = record_of(said);
        assert_eq!(record.loads.len(), record.cell.load.parts().len(), "{load}");
        for part in &record.loads {
            assert!(part.workers > 0, "{part:?}");
            // Nothing of it ended; a machine may keep it from working.
            assert!(part.failure.as_ref().is_none_or(|failure| failure.reason.ends_with(" stalled")), "{part:?}");
        }
        assert!(comes_true(|| running().is_empty()), "{load}: processes stay");
        assert!(comes_true(|| left().is_empty()), "{load}: {:?}", left());
    }
}

/// The time in which processes have waited for disks, us: `/proc/pressure/io`. The disk of a machine
/// that others use may stand still for longer than a load waits.
fn disk_waits_us() -> u64 {
    let text = std::fs::read_to_string("/proc/pressure/io").unwrap_or_default();
    let some = text.lines().find(|line| line.starts_with("some"));
    some.and_then(|line| line.rsplit_once('=')?.1.parse().ok()).unwrap_or(0)
}

/// A cell under this load that does not end by itself, after the release of its threads.
fn cell_under(load: &str, must_hold: Option<Percent>) -> Child {
    let cell = Cell {
        conditions: Conditions { load_must_hold: must_hold, ..Conditions::default() },
        ..cell("other", load, &a_cpu().to_string(), "1h")
    };
    let mut child = start_cell(command("cell --progress"), &cell);
    wait_for_progress(&mut child);
    child
}

/// Kills a process of the load of a cell, and waits until its supervisor has seen and told that.
fn lose_a_process(cell: u32) {
    let (supervisors, workers) = load_of(cell);
    let worker = workers[0].pid;
    process::signal(worker, libc::SIGKILL).unwrap();
    assert!(comes_true(|| std::fs::read_dir(format!("/proc/{worker}")).is_err()), "{worker} is reaped");
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", supervisors[0])).unwrap_or_default();
    let waits = || stat().rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('S'));
    assert!(comes_true(waits), "the supervisor waits for the next: {}", stat());
}

#[test]
fn a_load_that_loses_a_process_is_recorded_as_such() {
    let _machine = machine();
    let child = cell_under("messaging:groups=1", None);
    lose_a_process(child.id());
    process::signal(child.id(), libc::SIGINT).unwrap();
    let record = record(child);
    let failure = record.loads[0].failure.clone().expect("it is less than it was");
    if failure.reason.ends_with(" stalled") {
        return inconclusive("the load had stalled before");
    }
    assert!(failure.reason.starts_with("process ") && failure.reason.contains("signal: 9"), "{failure:?}");
    assert!(failure.at.ns() > 0 && record.threads[0].is_consistent(), "{failure:?}");
}

#[test]
fn a_load_that_must_hold_and_loses_a_process_fails_the_cell() {
    let _machine = machine();
    let child = cell_under("messaging:groups=1", Percent::new(1));
    let workers = load_of(child.id()).1;
    // It may have failed already.
    workers.first().map(|worker| process::signal(worker.pid, libc::SIGKILL));
    let output = finish(child);
    let said = output.stderr.lines().find(|line| line.starts_with("punctual:")).unwrap_or(&output.stderr);
    assert_eq!(output.status, 4, "another time it may hold: {said}");
    assert!(output.stdout.is_empty());
    assert!(comes_true(|| running().is_empty()), "the rest of the load is gone");
    if said.contains(" fell to ") || said.contains(" stalled") {
        return inconclusive("the machine kept the load from working");
    }
    assert!(said.starts_with("punctual: load messaging:groups=1: process ") && said.contains(" exited"), "{said}");
}

#[test]
fn a_load_that_must_hold_and_of_which_a_part_stalls_fails_the_cell() {
    let _machine = machine();
    let child = cell_under("messaging:groups=2", Percent::new(1));
    let (supervisors, mut workers) = load_of(child.id());
    // The supervisor starts first, then the first group; numbers of processes begin again after the largest.
    let largest: u32 = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap().trim().parse().unwrap();
    let first = supervisors.first().copied().unwrap_or(0);
    workers.sort_unstable_by_key(|worker| (worker.pid + largest - first) % largest);
    workers.iter().take(40).for_each(|worker| process::signal(worker.pid, libc::SIGSTOP).unwrap());
    // Until the others have done enough.
    let output = finish(child);
    assert_eq!((output.status, output.stdout.as_str()), (4, ""), "{output:?}");
    assert!(comes_true(|| running().is_empty()), "stopped processes are gone, too");
    let said = output.last_line();
    if said.contains(" fell to ") {
        return inconclusive("the machine kept the load from working");
    }
    // All 20 of the group are stalled, but not all long enough at the time of the reading.
    assert!(said.contains(" of 40 workers stalled; the load must hold"), "{said}");
}
