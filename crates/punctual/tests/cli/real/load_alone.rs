//! `punctual load`: a load without a measurement.

use crate::program::{
    PROGRAM, ProgramOutput, Start, command, finish, inconclusive, is_installed, machine, punctual, run, running,
    skip_unless,
};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::io::Read;
use std::process::{Command, Stdio};

#[test]
fn a_load_runs_for_as_long_as_asked_and_shows_its_rate() {
    let _machine = machine();
    let said = punctual("load messaging:groups=1+light --for 1500ms --format json");
    if has_stalled(&said) {
        return;
    }
    let said = said.expect_success();
    crate::pure::schema::assert_conforms("load", &said.json());
    let loads = said.json()["loads"].clone();
    assert_eq!((loads[0]["load"].as_str(), loads[1]["load"].as_str()), (Some("messaging:groups=1"), Some("light")));
    let operations =
        loads[0]["seconds"].as_array().unwrap().iter().map(|second| second["operations"].as_u64().unwrap());
    let operations = operations.sum::<u64>();
    assert!(said.json()["stopping_ns"].as_u64() > Some(0), "{said:?}");
    let summary = &said.json()["summary"];
    let has_rate = summary[0]["per_second"].as_f64() > Some(0.0);
    assert!(has_rate == (operations > 0) && summary[1]["load"] == "light", "{said:?}");
    if operations == 0 {
        inconclusive("the machine did nothing for 1.5 s");
    }
    assert!(comes_true(|| running().is_empty()));
    let said = punctual("load pipe --for 1s");
    if has_stalled(&said) {
        return;
    }
    let lines: Vec<_> = said.stdout.lines().collect();
    assert!(lines[0].starts_with("pipe: ") && lines[0].contains(" processes on CPU"), "{said:?}");
    // One whole second and the total.
    assert_eq!(lines.len(), 3, "{said:?}");
    assert!(lines.iter().skip(1).all(|line| line.contains(" round trips/s")), "{said:?}");
    assert!(lines[1].contains(" %"), "what the machine did: {said:?}");
    assert!(said.stderr.starts_with("stopped in "), "{said:?}");
}

/// Whether the machine has kept a load from working for so long that it was given up.
fn has_stalled(said: &ProgramOutput) -> bool {
    let has_stalled = said.status == 1 && said.last_line().ends_with(" workers stalled");
    if has_stalled {
        inconclusive(said.last_line());
    }
    has_stalled
}

#[test]
fn a_load_without_an_end_goes_on_until_it_is_told() {
    let _machine = machine();
    let child = command("load cpu:50").start_piped();
    // The supervisor and at least one worker.
    assert!(comes_true(|| running().len() > 2));
    process::signal(child.id(), libc::SIGINT).unwrap();
    let said = finish(child);
    if has_stalled(&said) {
        return;
    }
    assert!(said.status == 0 && comes_true(|| running().is_empty()), "{said:?}");
}

#[test]
fn on_a_terminal_it_is_one_block_that_is_gone_at_the_end() {
    skip_unless!(is_installed("script", "bsdutils"));
    let _machine = machine();
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{PROGRAM} load pipe+light --for 2s"), "/dev/null"]);
    let said = run(script.stdin(Stdio::null()).env("TERM", "xterm"));
    if said.stdout.contains(" workers stalled") {
        return inconclusive("the load has stalled");
    }
    let frames: Vec<_> = said.stdout.split("\x1b[J").collect();
    // The start lines, one frame per second, and the erasure.
    assert_eq!(frames.len(), 4, "{said:?}");
    for frame in &frames[1..3] {
        assert!(frame.contains(" s of 2s") && frame.contains("  pipe   ") && frame.contains("  light  "), "{said:?}");
        assert!(frame.lines().all(|line| line.len() < 80), "{said:?}");
    }
    let last: Vec<_> = frames[3].lines().collect();
    assert!(last[0].starts_with("pipe: ") && last[1].starts_with("light: "), "{said:?}");
}

#[test]
fn it_ends_when_nobody_reads_it_any_more() {
    let _machine = machine();
    let mut child = command("load pipe").start_piped();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    drop(stdout);
    let said = finish(child);
    assert!(said.status == 0 || has_stalled(&said), "{said:?}");
    assert!(comes_true(|| running().is_empty()));
}
