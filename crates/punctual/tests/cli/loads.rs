//! Every built-in load: operations in every second, and no remains.

use crate::program::{a_cpu, cell, comes_true, command, finish, machine, record, running, start_cell, traces};
use model::{Cell, Conditions, Load, LoadRecord, Percent, Record};
use sys::process;

/// Asserts operations in each whole second; the last reading may follow the previous one shortly.
#[track_caller]
fn worked_in_every_second(load: &LoadRecord) {
    let whole = load.seconds.iter().filter(|second| second.elapsed.ns() > 900_000_000);
    assert!(load.workers > 0 && whole.clone().count() > 0, "{load:?}");
    assert!(whole.clone().all(|second| second.operations > Some(0)), "{load:?}");
    assert_eq!(load.failure, None, "{load:?}");
}

#[test]
fn every_load_works_beside_a_measurement_and_nothing_of_it_stays() {
    let _machine = machine();
    let built_in =
        Load::KNOWN.iter().filter(|form| !form.starts_with("stress-ng") && (!form.contains(':') || form.contains('[')));
    let words = built_in.map(|form| form.split('[').next().unwrap_or(form));
    for load in words.chain(["cpu:50", "messaging:groups=1+disk"]).filter(|load| *load != "none") {
        let record = record(start_cell(command("cell"), &cell("other", load, &a_cpu().to_string(), "1500ms")));
        assert_eq!(record.loads.len(), record.cell.load.parts().len(), "{load}");
        record.loads.iter().for_each(worked_in_every_second);
        assert!(comes_true(|| running().is_empty()), "{load}: processes stay");
        assert!(comes_true(|| traces().is_empty()), "{load}: {:?}", traces());
    }
}

/// A cell under `messaging:groups=1` that loses a process after its threads were released.
fn cell_that_loses_a_process(must_hold: Option<Percent>) -> std::process::Child {
    let cell = Cell {
        conditions: Conditions { load_must_hold: must_hold, ..Conditions::default() },
        ..cell("other", "messaging:groups=1", &a_cpu().to_string(), "3s")
    };
    let mut child = start_cell(command("cell --progress"), &cell);
    crate::program::wait_for_progress(&mut child);
    let worker = running().into_iter().max().expect("the load is there");
    process::signal(worker, libc::SIGKILL).unwrap();
    child
}

#[test]
fn a_load_that_loses_a_process_is_recorded_as_such() {
    let _machine = machine();
    let record: Record = record(cell_that_loses_a_process(None));
    let failure = record.loads[0].failure.clone().expect("it is less than it was");
    assert!(failure.reason.starts_with("process ") && failure.reason.contains("signal: 9"), "{failure:?}");
    assert!(failure.at.ns() > 0 && record.threads[0].is_consistent(), "{failure:?}");
}

#[test]
fn a_load_that_must_hold_and_loses_a_process_fails_the_cell() {
    let _machine = machine();
    let output = finish(cell_that_loses_a_process(Some(Percent::HALF)));
    let said = output.stderr.lines().find(|line| line.starts_with("punctual:")).unwrap_or(&output.stderr);
    assert_eq!(output.status, 4, "another time it may hold: {said}");
    assert!(said.starts_with("punctual: load messaging:groups=1: process ") && said.contains(" exited"), "{said}");
    assert!(output.stdout.is_empty());
    assert!(comes_true(|| running().is_empty()), "the rest of the load is gone");
}

#[test]
fn a_load_of_which_a_part_stalls_is_recorded_as_such() {
    let _machine = machine();
    let child = start_cell(command("cell"), &cell("other", "messaging:groups=2", &a_cpu().to_string(), "12s"));
    let pid = child.id();
    assert!(comes_true(|| running().len() > 81), "the load is there");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let mut workers: Vec<u32> = running().into_iter().filter(|other| *other != pid).collect();
    workers.sort_unstable();
    // The supervisor starts first, then the first group.
    workers.iter().skip(1).take(40).for_each(|worker| process::signal(*worker, libc::SIGSTOP).unwrap());
    let record = record(child);
    let reason = record.loads[0].failure.clone().expect("a part has stalled").reason;
    // All 20 of the group are stalled, but not all long enough at the time of the reading.
    assert!(reason.contains(" of 40 workers stalled"), "{reason}");
    assert!(comes_true(|| running().is_empty()), "stopped processes are gone, too");
}
