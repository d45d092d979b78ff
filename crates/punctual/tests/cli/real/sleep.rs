//! Sleep error of languages: real programs of each installed language, and programs that violate the protocol.

use crate::life::samples::assert_agree;
use crate::places::Places;
use crate::program::{
    Scratch, a_cpu, cell, command, finish, inconclusive, is_installed, is_root, kill_and_wait, machine_and_scratch,
    record, run, running, skip_unless, start_cell, wait_for_progress,
};
use punctual_model::{Cell, Ended, Record};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::process::{Child, Command, Stdio};

/// Each language, a program that it needs, and the Debian package of that program.
pub(crate) const LANGUAGES: [(&str, &str, &str); 5] = [
    ("c", "cc", "gcc"),
    ("python3", "python3", "python3"),
    ("node", "node", "nodejs"),
    ("go", "go", "golang-go"),
    ("java", "javac", "default-jdk-headless"),
];

/// A cell of a language that sleeps for `target` at a time.
pub(crate) fn sleeps(language: &str, target: &str, policy: &str, duration: &str) -> Cell {
    Cell {
        task: format!("sleep:{language}").parse().unwrap(),
        period: target.parse().unwrap(),
        ..cell(policy, "none", &a_cpu().to_string(), duration)
    }
}

/// Starts a cell with its temporary files in `scratch`.
fn start(scratch: &Scratch, cell: &Cell) -> Child {
    let mut command = command("cell --progress");
    command.env("TMPDIR", scratch.dir());
    start_cell(command, cell)
}

#[track_caller]
pub(crate) fn nothing_is_left(scratch: &Scratch) {
    assert!(running().is_empty(), "{:?} left", running());
    assert_eq!(std::fs::read_dir(scratch.dir()).unwrap().count(), 0, "files left");
}

#[track_caller]
fn expect_sleeps(record: &Record, language: &str) {
    let thread = &record.threads[0];
    assert!(thread.is_consistent(), "{language}: {thread:?}");
    // A sleep does not end before it begins.
    let asked = i64::try_from(record.cell.period.ns()).unwrap();
    match thread.histogram.min_ns {
        Some(min_ns) => assert!(min_ns > -asked, "{language}: {:?}", thread.histogram),
        None => inconclusive(&format!("{language} did not sleep once")),
    }
    assert_eq!((thread.achieved.policy, thread.achieved.cpus.len()), (record.cell.policy, 1));
    let runtime = record.runtime.as_ref().expect("the language is recorded");
    assert!(!runtime.version.is_empty() && runtime.program.starts_with('/'), "{runtime:?}");
}

#[test]
fn root_the_sleeps_of_a_starved_idle_program_are_all_accounted_for() {
    skip_unless!(is_root() && is_installed("python3", "python3-minimal"));
    let (_machine, scratch) = machine_and_scratch("sleeps-idle");
    // The spinner leaves an idle process about 30 us of each second, and any other too little to start up in time: it
    // starts when Python is ready.
    let places = Places::new();
    let mut idle = command("cell");
    places.act(idle.env("TMPDIR", scratch.dir()), "stop:sleep-ready");
    let mut child = start_cell(idle, &sleeps("python3", "10ms", "idle", "1s"));
    let stopped = places.stopped(&mut child, "sleep-ready");
    let spin = format!("ulimit -t 100; exec taskset -c {} nice -n -20 sh -c 'while :; do :; done'", a_cpu());
    let mut hog = Command::new("sh").args(["-c", &spin]).stdin(Stdio::null()).spawn().unwrap();
    process::signal(stopped, libc::SIGCONT).unwrap();
    let record = record(child);
    kill_and_wait(&mut hog);
    let thread = &record.threads[0];
    assert_eq!((thread.achieved.policy, record.ended), (record.cell.policy, Ended::Completed));
    // It may sleep, be in a sleep to the end, or get the CPU for its first sleep only after the window: then all are
    // missed. None is left out.
    assert!(thread.is_consistent() && thread.cycles_due > 0 && thread.lost == 0, "{thread:?}");
    nothing_is_left(&scratch);
}

#[test]
fn every_installed_language_sleeps_and_leaves_nothing() {
    let (_machine, scratch) = machine_and_scratch("sleeps");
    for (language, program, package) in LANGUAGES {
        if is_installed(program, package) {
            let record = record(start(&scratch, &sleeps(language, "1ms", "other", "300ms")));
            assert_eq!(record.ended, Ended::Completed);
            expect_sleeps(&record, language);
            assert_eq!(record.threads[0].achieved.timer_slack_ns, 50_000);
            nothing_is_left(&scratch);
        }
    }
}

#[test]
fn root_every_thread_of_a_language_has_the_policy_of_its_cell() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("policies");
    for (language, program, package) in LANGUAGES {
        for policy in ["fifo:80", "other:nice=-20"] {
            if is_installed(program, package) {
                // The cell reads back the policy of each thread, when the program is ready and again at its end.
                expect_sleeps(&record(start(&scratch, &sleeps(language, "1ms", policy, "50ms"))), language);
            }
        }
    }
    nothing_is_left(&scratch);
}

#[test]
fn every_sleep_is_in_the_file_of_samples() {
    skip_unless!(is_installed("python3", "python3"));
    let (_machine, scratch) = machine_and_scratch("sleep-samples");
    let path = scratch.path("sleeps.parquet");
    let mut command = command("cell --samples");
    command.arg(&path);
    // Longer than a second, so that samples are written while others arrive.
    let record = record(start_cell(command, &sleeps("python3", "100us", "other", "1500ms")));
    assert_agree(&path, &record);
}

#[test]
fn a_stop_ends_a_long_sleep_at_once_and_keeps_whole_samples() {
    let (_machine, scratch) = machine_and_scratch("stopped");
    skip_unless!(is_installed("python3", "python3"));
    let mut long = start(&scratch, &sleeps("python3", "100s", "other", "100s"));
    wait_for_progress(&mut long);
    process::signal(long.id(), libc::SIGINT).unwrap();
    let said = finish(long);
    // A sleep that had come to its end would be in a record.
    match said.status {
        0 => inconclusive("the sleep was over before the signal"),
        _ => assert_eq!(said.last_line(), "punctual: interrupted before the first measured cycle"),
    }
    nothing_is_left(&scratch);

    let mut short = start(&scratch, &sleeps("python3", "100us", "other", "1h"));
    // The first progress line comes with the first sleep.
    (0..2).for_each(|_| wait_for_progress(&mut short));
    process::signal(short.id(), libc::SIGINT).unwrap();
    let record = record(short);
    assert_eq!(record.ended, Ended::Interrupted);
    assert!(record.measured < record.cell.duration);
    expect_sleeps(&record, "python3");
    nothing_is_left(&scratch);
}

/// `punctual ARGUMENTS` with a shell script as `python3`, which prints its path when called with `-c`.
fn with_python(scratch: &Scratch, script: &str, arguments: &str) -> Command {
    scratch.executable("python3", format!("#!/bin/sh\n[ \"$1\" = -c ] && echo \"$0\" && exit\n{script}\n"));
    let mut command = command(arguments);
    let others = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::iter::once(scratch.dir().to_owned()).chain(std::env::split_paths(&others));
    command.env("PATH", std::env::join_paths(directories).unwrap());
    command
}

#[test]
fn a_program_that_says_what_cannot_be_true_is_no_measurement() {
    let (_machine, scratch) = machine_and_scratch("liars");
    let cpu = a_cpu();
    let other_clock = "its clock is not CLOCK_MONOTONIC";
    for (script, error) in [
        ("exit 3", "the program for python3 exited: exit status: 3"),
        ("echo 'SyntaxError: x' >&2; exit 1", "the program for python3 exited: SyntaxError: x"),
        ("echo hello; sleep 1h", "python3 reports an invalid line `hello`; is another program of that name started?"),
        ("echo ready $$ x; read go; exit 0", "the program for python3 exited: exit status: 0"),
        (
            "echo ready $$ x; read go; echo 7 6; sleep 1h",
            &format!("python3 reports a sleep that ended 1 ns before it began; {other_clock}"),
        ),
    ] {
        let child = start_cell(with_python(&scratch, script, "cell"), &sleeps("python3", "1ms", "other", "1h"));
        let said = finish(child);
        assert_eq!((said.status, said.stderr), (1, format!("punctual: CPU {cpu}: {error}\n")), "{script}");
        assert!(comes_true(|| running().is_empty()), "{script}: {:?} left", running());
    }
    let script = "echo ready $$ x; read go; echo 7 8; sleep 1h";
    let said =
        finish(start_cell(with_python(&scratch, script, "cell"), &sleeps("python3", "1ms", "other", "1h"))).stderr;
    assert!(said.contains(" ns too early; its clock is not CLOCK_MONOTONIC"), "{said}");
}

#[test]
fn a_program_that_changes_its_policy_is_found_out() {
    skip_unless!(is_installed("chrt", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("policy-changed");
    let script = "chrt --other --pid 0 $$; echo ready $$ x; read go; sleep 1h";
    let said =
        finish(start_cell(with_python(&scratch, script, "cell"), &sleeps("python3", "1ms", "batch", "1h"))).stderr;
    assert!(said.contains(" of python3 has policy other, not batch"), "{said}");
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
}

#[test]
fn languages_and_targets_become_a_table_with_missing_ones_named() {
    let (_machine, scratch) = machine_and_scratch("table");
    skip_unless!(is_installed("python3", "python3"));
    let python = run(Command::new("python3").args(["-c", "import sys; print(sys.executable)"])).stdout;
    std::os::unix::fs::symlink(python.trim(), scratch.path("python3")).unwrap();
    let measure = |arguments: &str| {
        let mut command = command(&format!("measure sleep --wait --runtime python3,java {arguments}"));
        run(command.env("PATH", scratch.dir()).current_dir(scratch.dir()))
    };
    let said = measure("--targets 100us,1ms --duration 200ms --format json --out kept");
    let json = said.json();
    let shown: Vec<_> = json["cells"].as_array().unwrap().iter().map(|cell| cell["cell"]["method"].clone()).collect();
    assert_eq!((said.status, shown.len()), (0, 2), "{said:?}");
    for cell in json["cells"].as_array().unwrap() {
        let summary = &cell["summary"];
        assert_eq!(cell["cell"]["method"], "sleep:python3");
        match summary["samples"].as_u64() {
            Some(0) => inconclusive("no sleep has ended"),
            _ => assert!(["mean_ns", "stddev_ns", "max_ns"].iter().all(|key| summary[key].is_number()), "{summary}"),
        }
        assert!(summary["runtime"]["version"].as_str().unwrap().starts_with("CPython 3"), "{summary}");
    }
    let advice = "java is not installed: no working `java`; on Debian: apt-get install default-jdk-headless";
    assert!(said.stderr.contains(advice), "{}", said.stderr);

    let again = run(command("show kept").current_dir(scratch.dir()));
    assert!(again.stdout.contains("\n  python3  other   100us"), "{}", again.stdout);
    assert!(again.stdout.contains("python3: CPython 3"), "{}", again.stdout);

    std::fs::remove_file(scratch.path("python3")).unwrap();
    let nothing =
        "cannot measure anything: python3 is not installed: no working `python3`; on Debian: apt-get install python3";
    measure("--targets 1ms").expect_error(nothing);
}
