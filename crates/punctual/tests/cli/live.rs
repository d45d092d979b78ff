//! The live view of a measurement: on a terminal, without one, and the CPU of its process.

use crate::program::{
    PROGRAM, a_cpu, a_cpu_and_the_others, comes_true, command, is_installed, machine, run, running, skip_unless,
};
use std::process::{Command, Stdio};
use sys::sched;

/// Output of `punctual measure` for 2.5 s on its own terminal, by script(1).
fn on_a_terminal(variables: &[(&str, &str)]) -> String {
    let measure = format!("{PROGRAM} measure --wait --duration 2500ms --cpus {}", a_cpu());
    let mut script = Command::new("script");
    script
        .args(["-qec", &measure, "/dev/null"])
        .current_dir(crate::program::DIRECTORY)
        .stdin(Stdio::null())
        .env("TERM", "xterm")
        .env("LC_ALL", "C");
    let said = run(script.envs(variables.iter().copied())).expect_success();
    said.stdout
}

#[test]
fn on_a_terminal_the_view_is_redrawn_in_place_and_gone_at_the_end() {
    skip_unless!(is_installed("script", "bsdutils"));
    let _machine = machine();
    let text = on_a_terminal(&[]);
    let frames: Vec<_> = text.split("\x1b[J").collect();
    // The first frame, one per second, the last one, and the final erasure.
    assert!(frames.len() >= 4, "{} frames: {text}", frames.len());
    let views = &frames[1..frames.len() - 1];
    for view in views {
        assert!(view.contains(&format!(" CPU {}", a_cpu())) && view.is_ascii(), "{view}");
        assert!(view.lines().all(|line| line.len() < 80), "no line fills the terminal: {view}");
    }
    let last = views.last().unwrap();
    assert!(last.contains("both on a log scale") && last.contains('#'), "{last}");
    // Each view is followed by a cursor movement of as many rows as it has.
    for view in views {
        let (rows, up) = view.rsplit_once('\n').unwrap();
        assert_eq!(up.trim_end_matches('\r'), format!("\x1b[{}A", rows.lines().count()), "{view:?}");
    }
    assert!(frames.last().unwrap().starts_with("punctual "), "the report is all that is left");
    let unicode = on_a_terminal(&[("LC_ALL", "C.UTF-8")]);
    assert!(unicode.contains('\u{2588}'), "{unicode}");
}

#[test]
fn a_terminal_that_cannot_redraw_gets_lines() {
    skip_unless!(is_installed("script", "bsdutils"));
    let _machine = machine();
    let text = on_a_terminal(&[("TERM", "dumb"), ("NO_COLOR", "1")]);
    assert!(!text.contains('\x1b'), "{text:?}");
    assert!(text.lines().filter(|line| line.contains(" s  max ")).count() >= 3, "{text}");
}

#[test]
fn without_a_terminal_there_are_plain_lines() {
    let _machine = machine();
    let said = run(&mut command(&format!("measure --wait --duration 2500ms --cpus {}", a_cpu())));
    assert!(!said.stderr.contains('\x1b'), "{:?}", said.stderr);
    let lines = said.stderr.lines().filter(|line| line.contains(" s  max ")).count();
    // Before them the outlook and the cell, after them the run and its page.
    assert!(lines >= 3 && said.stderr.lines().count() == lines + 4, "{}", said.stderr);
}

#[test]
fn the_process_that_draws_keeps_off_the_measured_cpu() {
    let Some((measured, others)) = a_cpu_and_the_others() else { return };
    let _machine = machine();
    let mut child = command(&format!("measure --wait --duration 1s --cpus {measured}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(comes_true(|| running().len() >= 2), "it has started its cell");
    let threads = || std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    let cpus = |tid: &str| sched::affinity(tid.parse().unwrap()).unwrap_or_default();
    let all_aside = comes_true(|| threads().all(|task| cpus(task.file_name().to_str().unwrap()) == others));
    assert!(all_aside, "every thread on CPU {others}");
    assert!(child.wait().unwrap().success(), "the cell still had CPU {measured}");
}
