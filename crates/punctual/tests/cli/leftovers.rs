//! Nothing stays behind: no process of a load, however the cell or the campaign ended.

use crate::program::{a_cpu, cell, comes_true, command, machine, record, running, start_cell};
use rt::sys::process;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_load_works_in_every_second_and_is_gone_with_its_cell() {
    let _machine = machine();
    let record = record(start_cell(command("cell"), &cell("other", "messaging:groups=2", &a_cpu().to_string(), "2s")));
    assert!(running().is_empty(), "{:?}", running());
    let [load] = &record.loads[..] else { panic!("one load") };
    assert_eq!((load.operation.as_str(), load.workers), ("message", 80));
    assert!(load.seconds.len() >= 2 && load.seconds.iter().all(|second| second.operations > Some(0)), "{load:?}");
}

#[test]
fn a_cell_killed_at_any_instant_takes_its_load_along() {
    let _machine = machine();
    for ms in [1, 5, 10, 20, 40, 80, 160, 320, 640] {
        let mut child = start_cell(command("cell"), &cell("other", "messaging", &a_cpu().to_string(), "5s"));
        std::thread::sleep(Duration::from_millis(ms));
        process::signal(child.id(), libc::SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(comes_true(|| running().is_empty()), "killed after {ms} ms: {:?} left", running());
    }
}

#[test]
fn a_cell_does_not_outlive_a_parent_killed_just_after_starting_it() {
    let _machine = machine();
    for ms in 0..8 {
        let mut measure = command("measure --wait --load messaging:groups=1 --duration 20s");
        let mut parent = measure.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert!(comes_true(|| running().len() > 1), "the cell is there");
        std::thread::sleep(Duration::from_millis(ms));
        process::signal(parent.id(), libc::SIGKILL).unwrap();
        parent.wait().unwrap();
        let killed = Instant::now();
        assert!(comes_true(|| running().is_empty()), "killed after {ms} ms: {:?} left", running());
        assert!(killed.elapsed() < Duration::from_secs(10), "long before the cell would have ended");
    }
}
