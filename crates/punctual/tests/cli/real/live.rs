//! The live view of a measurement: on a terminal, without one, and the CPU of its process.
//!
//! How often it is drawn is a series (`host/live.rs`).

use crate::program::{
    MARK, PROGRAM, Start, a_cpu, a_cpu_and_the_others, command, finish, inconclusive, is_installed, machine, mark, run,
    skip_unless, wait_for_line,
};
use punctual_sys::testing::comes_true;
use punctual_sys::{process, sched};
use std::process::{Command, Stdio};

/// Output of `punctual measure` for 2.5 s on its own terminal, by script(1).
pub(crate) fn on_a_terminal(variables: &[(&str, &str)]) -> String {
    let measure = format!("{PROGRAM} measure --wait --duration 2500ms --cpus {}", a_cpu());
    let mut script = Command::new("script");
    script
        .args(["-qec", &measure, "/dev/null"])
        .current_dir(crate::program::DIRECTORY)
        .stdin(Stdio::null())
        .env("TERM", "xterm")
        .env("LC_ALL", "C")
        .env(MARK, mark());
    let said = run(script.envs(variables.iter().copied())).expect_success();
    said.stdout
}

/// What a terminal was sent, cut at each erasure: before the first frame, each frame, and after the last erasure.
pub(crate) fn frames(text: &str) -> Vec<&str> {
    text.split("\x1b[J").collect()
}

/// The lines of progress without a terminal.
pub(crate) fn lines(text: &str) -> usize {
    text.lines().filter(|line| line.contains(" s  max ")).count()
}

#[test]
fn on_a_terminal_the_view_is_redrawn_in_place_and_gone_at_the_end() {
    skip_unless!(is_installed("script", "bsdutils"));
    let _machine = machine();
    let text = on_a_terminal(&[]);
    let frames = frames(&text);
    // At least one, and the final erasure.
    assert!(frames.len() >= 3, "{} frames: {text}", frames.len());
    let views = &frames[1..frames.len() - 1];
    for view in views {
        assert!(view.contains(&format!(" CPU {}", a_cpu())) && view.is_ascii(), "{view}");
        assert!(view.lines().all(|line| line.len() < 80), "no line fills the terminal: {view}");
    }
    // Each view is followed by a cursor movement of as many rows as it has.
    for view in views {
        let (rows, up) = view.rsplit_once('\n').unwrap();
        assert_eq!(up.trim_end_matches('\r'), format!("\x1b[{}A", rows.lines().count()), "{view:?}");
    }
    let left = frames.last().unwrap();
    // Its first sentence is the answer.
    assert!(
        left.contains("\npunctual ") && !left.contains("both on a log scale"),
        "the report is all that is left: {left}"
    );
    let unicode = on_a_terminal(&[("LC_ALL", "C.UTF-8")]);
    let last = views.last().unwrap();
    if !last.contains("both on a log scale") || !unicode.contains("both on a log scale") {
        return inconclusive("no wake-up was shown");
    }
    assert!(last.contains('#') && unicode.contains('\u{2588}'), "{last} {unicode}");
}

#[test]
fn a_terminal_that_cannot_redraw_gets_lines() {
    skip_unless!(is_installed("script", "bsdutils"));
    let _machine = machine();
    let text = on_a_terminal(&[("TERM", "dumb"), ("NO_COLOR", "1")]);
    assert!(!text.contains('\x1b') && lines(&text) >= 1, "{text:?}");
}

#[test]
fn without_a_terminal_there_are_plain_lines() {
    let _machine = machine();
    let said = run(&mut command(&format!("measure --wait --duration 2500ms --cpus {}", a_cpu())));
    assert!(!said.stderr.contains('\x1b'), "{:?}", said.stderr);
    let lines = lines(&said.stderr);
    // Before them the outlook and the cell, after them the run and its page.
    let all = said.stderr.lines().filter(|line| !line.starts_with("punctual: waiting for ")).count();
    assert!(lines >= 1 && all == lines + 4, "{}", said.stderr);
}

#[test]
fn the_process_that_draws_keeps_off_the_measured_cpu() {
    let Some((measured, others)) = a_cpu_and_the_others() else { return };
    let _machine = machine();
    let mut child = command(&format!("measure --wait --duration 1h --cpus {measured}")).start_piped();
    wait_for_line(&mut child, " s  max ");
    let threads = || std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    let cpus = |tid: &str| sched::affinity(tid.parse().unwrap()).unwrap_or_default();
    let all_aside = comes_true(|| threads().all(|task| cpus(task.file_name().to_str().unwrap()) == others));
    assert!(all_aside, "every thread on CPU {others}");
    process::signal(child.id(), libc::SIGINT).unwrap();
    let said = finish(child);
    assert!(said.status == 130 && said.stdout.contains(&format!("CPU {measured}")), "the cell had its CPU: {said:?}");
}
