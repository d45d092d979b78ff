//! Measurements that wait for the machine (`--wait`): its state is recorded after the wait.

use crate::program::{Scratch, Start, a_cpu, command, machine, machine_and_scratch, punctual};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr};

/// Starts a measurement that holds the lock of the machine until it is interrupted.
fn holder() -> Child {
    let holder = command("measure --wait --duration 1h").start_silent();
    let pid = format!("pid {} ", holder.id());
    let has_lock = || std::fs::read_to_string("/tmp/punctual.lock").is_ok_and(|text| text.starts_with(&pid));
    assert!(comes_true(has_lock), "the lock file does not name {pid}");
    holder
}

/// Reads stderr up to the line that announces the wait.
fn read_until_waiting(stderr: &mut BufReader<ChildStderr>, arguments: &str) {
    let mut line = String::new();
    while !line.starts_with("punctual: waiting for ") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "{arguments}: ended without waiting");
    }
}

/// The result of `punctual ARGUMENTS` on a machine whose timer migration is switched off during the wait for the lock.
fn changed_while_waiting(scratch: &Scratch, arguments: &str) -> serde_json::Value {
    let setting = scratch.file("proc/sys/kernel/timer_migration", "1\n");
    let mut holder = holder();
    let mut waiter = command(arguments).env("PUNCTUAL_ROOT", scratch.dir()).start_piped();
    let mut stderr = BufReader::new(waiter.stderr.take().unwrap());
    read_until_waiting(&mut stderr, arguments);
    std::fs::write(&setting, "0\n").unwrap();
    process::signal(holder.id(), libc::SIGINT).unwrap();
    holder.wait().unwrap();
    // Read to its end, so that the pipe never fills up.
    let notes = std::io::read_to_string(stderr).unwrap();
    let output = waiter.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{arguments}: {err}: {notes}"))
}

#[test]
fn the_machine_is_recorded_as_it_is_after_the_wait() {
    const PLAN: &str = "title = \"waits\"\nrepetitions = 1\nduration = \"100ms\"\n[axes]\npolicy = [\"other\"]\n";
    let (_machine, scratch) = machine_and_scratch("waiting");
    let (plan, out) = (scratch.file("plan.toml", PLAN), scratch.path("run"));
    let mut stale = Vec::new();
    for arguments in [
        "measure --duration 100ms".to_owned(),
        "measure cost --only syscall/null --quick".to_owned(),
        "frontier --from 100ms --to 100ms --duration 100ms --confirm 1".to_owned(),
        format!("run {} --out {}", plan.display(), out.display()),
    ] {
        let arguments = format!("{arguments} --wait --cpus {} --format json", a_cpu());
        let json = changed_while_waiting(&scratch, &arguments);
        let host = if json["host"].is_object() { &json["host"] } else { &json["run"]["host"] };
        let timer_migration = &host["scheduling"]["timer_migration"];
        assert!(timer_migration.is_boolean(), "{arguments}: {host}");
        if timer_migration == true {
            stale.push(arguments);
        }
    }
    assert_eq!(stale, Vec::<String>::new(), "these looked at the machine before they had it");
}

#[test]
fn a_second_measurement_is_refused_and_told_who_measures() {
    let _machine = machine();
    let mut first = holder();
    let said = punctual("measure --duration 100ms");
    let who = format!("pid {} ", first.id());
    assert!(said.status == 1 && said.stderr.contains(&who), "refused, by a line that names {who}: {said:?}");
    process::signal(first.id(), libc::SIGINT).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
}
