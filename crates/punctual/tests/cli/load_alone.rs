//! `punctual load`: one load alone.

use crate::program::{comes_true, command, machine, punctual, run, running};
use rt::sys::process;
use std::process::Stdio;

#[test]
fn a_load_runs_for_as_long_as_asked_and_shows_its_rate() {
    let _machine = machine();
    let said = punctual("load messaging:groups=1+light --for 1500ms --format json");
    assert_eq!(said.status, 0, "{said:?}");
    let loads = said.json()["loads"].clone();
    assert_eq!((loads[0]["load"].as_str(), loads[1]["load"].as_str()), (Some("messaging:groups=1"), Some("light")));
    let operations =
        loads[0]["seconds"].as_array().unwrap().iter().map(|second| second["operations"].as_u64().unwrap());
    assert!(operations.sum::<u64>() > 0 && said.json()["stopping_ns"].as_u64() > Some(0));
    assert!(comes_true(|| running().is_empty()));
    let said = punctual("load pipe --for 1s");
    let lines: Vec<_> = said.stdout.lines().collect();
    assert!(lines[0].starts_with("pipe: ") && lines[0].contains(" processes on CPU "), "{said:?}");
    assert!(lines.iter().skip(1).all(|line| line.contains(" round trips/s")), "{said:?}");
    assert!(said.stderr.starts_with("stopped in "), "{said:?}");
}

#[test]
fn a_load_without_an_end_goes_on_until_it_is_told() {
    let _machine = machine();
    let child = command("load cpu:50").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The keeper and at least one worker.
    assert!(comes_true(|| running().len() > 2));
    process::signal(child.id(), libc::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && comes_true(|| running().is_empty()), "{output:?}");
}

#[test]
fn what_cannot_run_is_one_line() {
    let _machine = machine();
    punctual("load none").expect_error("none is no load; punctual load --list says which there are");
    punctual("load cpu --policy fifo:1")
        .expect_error("a real-time load can take a CPU from everything else; say how long it may, like --for 10s");
    let absent = punctual("load cpu --for 1s --cpus 4095");
    assert!(absent.stderr.starts_with("punctual: CPU 4095 cannot be used here"), "{absent:?}");
    let failing = run(command("load --for 5s").arg("cmd:echo it is broken >&2; exit 7"));
    failing.expect_error("load cmd:echo it is broken >&2; exit 7: sh ended (exit status: 7): it is broken");
}

#[test]
fn the_list_names_every_load() {
    let said = punctual("load --list");
    assert!(model::Load::KNOWN.iter().all(|load| said.stdout.lines().any(|line| line == *load)), "{said:?}");
    let json = punctual("load --list --format json").json();
    assert_eq!(json.as_array().unwrap().len(), model::Load::KNOWN.len());
}
