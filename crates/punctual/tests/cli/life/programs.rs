//! External programs as loads: each runs beside a measurement, is reported if it does not, and leaves nothing behind.
//! That they work all the time is a series (`host/programs.rs`).

use crate::life::faults::error_of;
use crate::places::Places;
use crate::program::{
    Scratch, a_cpu, cell, command, is_installed, is_root, kill_and_wait, machine, machine_and_scratch, record, run,
    running, skip_unless, start_cell, traces, wait_for_progress,
};
use punctual_model::LoadRecord;
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::path::Path;
use std::process::Command;

/// The load of a cell.
fn load_of(load: &str) -> LoadRecord {
    let record = record(start_cell(command("cell"), &cell("other", load, &a_cpu().to_string(), "300ms")));
    let [load] = &record.loads[..] else { panic!("one load: {record:?}") };
    load.clone()
}

/// A fio job that outlasts any test.
fn fio_job(scratch: &Scratch) -> String {
    let job = scratch.file("job.fio", "[j]\nfilename=laid-out\nsize=4m\nrw=randwrite\ntime_based\nruntime=3600\n");
    format!("fio:{}", job.display())
}

/// Every program, as a load, with the program's name and its package, where it is installed.
pub(crate) fn all_programs(scratch: &Scratch) -> Vec<(String, &'static str)> {
    let all = [
        ("stress-ng:--cpu 1".to_owned(), "stress-ng", "stress-ng"),
        ("hackbench:-g 2".to_owned(), "hackbench", "rt-tests"),
        ("ping:127.0.0.1".to_owned(), "ping", "iputils-ping"),
        (fio_job(scratch), "fio", "fio"),
        ("cmd:while :; do :; done".to_owned(), "sh", "dash"),
    ];
    let may_run = |program: &str, package: &str| is_installed(program, package) && (program != "ping" || is_root());
    let there = all.into_iter().filter(|(_, program, package)| may_run(program, package));
    there.map(|(load, program, _)| (load, program)).collect()
}

#[test]
fn every_program_runs_and_leaves_nothing() {
    let (_machine, scratch) = machine_and_scratch("programs");
    for (load, program) in all_programs(&scratch) {
        let load = load_of(&load);
        assert!(load.failure.is_none(), "{load:?}");
        let found = load.program.expect("a program");
        assert_eq!(Path::new(&found.path).file_name().unwrap(), program);
        let has_version = found.version.as_deref().is_some_and(|version| version.starts_with(program));
        assert_eq!(has_version, program != "sh", "{found:?}");
        assert!(comes_true(|| running().is_empty()), "{program}: processes stay");
        assert!(comes_true(|| traces().is_empty()), "{program}: {:?}", traces());
    }
}

#[test]
fn a_program_with_wrong_options_is_an_error_in_its_own_words() {
    let (_machine, scratch) = machine_and_scratch("wrong-options");
    let job = scratch.file("bad.fio", "[j]\nrw=bogus\n");
    let absent = scratch.path("absent.fio");
    for (load, program, package, words) in [
        (
            "stress-ng:--foo",
            "stress-ng",
            "stress-ng",
            "exited (exit status: 1): stress-ng: unrecognized option '--foo'",
        ),
        // The error follows two informational lines.
        ("stress-ng:--hdd 1 --temp-path /proc", "stress-ng", "stress-ng", "): stress-ng: fail: "),
        ("hackbench:-g x", "hackbench", "rt-tests", "exited (exit status: 1): hackbench: --groups"),
        (&format!("fio:{}", job.display()), "fio", "fio", "exited (exit status: 1): fio: failed parsing rw=bogus"),
        (&format!("fio:{}", absent.display()), "fio", "fio", "absent.fio: No such file or directory"),
        ("cmd:echo no such thing >&2; exit 7", "sh", "dash", "sh exited (exit status: 7): no such thing"),
        ("cmd:exit 7", "sh", "dash", "sh exited (exit status: 7): no message; try it by hand"),
    ] {
        if !is_installed(program, package) {
            continue;
        }
        let (status, said) = error_of(command("cell"), load);
        assert!(status == 1 && said.starts_with(&format!("punctual: load {load}: ")) && said.contains(words), "{said}");
    }
}

#[test]
fn the_directory_of_a_program_is_removed_with_its_files() {
    skip_unless!(is_installed("fio", "fio"));
    let (_machine, scratch) = machine_and_scratch("left-files");
    let child = start_cell(command("cell"), &cell("other", &fio_job(&scratch), &a_cpu().to_string(), "10min"));
    let is_there = |path: String| Path::new(&path).join("laid-out").exists();
    assert!(comes_true(|| traces().into_iter().any(is_there)), "its file lies in the directory made for it");
    process::signal(child.id(), libc::SIGINT).unwrap();
    // Interrupted before or after its first due time.
    child.wait_with_output().unwrap();
    assert_eq!(traces(), <[String; 0]>::default());
}

#[test]
fn a_command_works_where_the_user_is() {
    let (_machine, scratch) = machine_and_scratch("command");
    let mut command = command("cell");
    command.current_dir(scratch.dir());
    let load = "cmd:pwd > here; exec sleep 60";
    let mut child = start_cell(command, &cell("other", load, &a_cpu().to_string(), "10min"));
    let here = || std::fs::read_to_string(scratch.path("here")).unwrap_or_default();
    assert!(comes_true(|| here().ends_with('\n')));
    assert_eq!(Path::new(here().trim()), scratch.dir().canonicalize().unwrap());
    kill_and_wait(&mut child);
    assert!(comes_true(|| running().is_empty()), "processes stay");
}

#[test]
fn a_program_that_ends_at_once_is_started_again_without_what_it_left() {
    let (_machine, places) = (machine(), Places::new());
    for load in ["cmd:true", "cmd:setsid sleep 60 & true"] {
        let mut command = command("cell --progress");
        places.act(&mut command, "");
        let mut child = start_cell(command, &cell("other", load, &a_cpu().to_string(), "10min"));
        wait_for_progress(&mut child);
        assert!(comes_true(|| places.has("load-restarts@3")), "{load}: {:?}", places.passed(None));
        // The cell, the supervisor and one run; processes of earlier runs are gone.
        assert!(running().len() <= 5, "{load}: {:?}", running());
        process::signal(child.id(), libc::SIGINT).unwrap();
        let record = record(child);
        assert!(record.loads[0].failure.is_none(), "{load}: {:?}", record.loads);
        assert!(comes_true(|| running().is_empty()), "processes stay");
    }
}

#[test]
fn a_missing_program_is_skipped_in_a_plan_and_an_error_alone() {
    let (_machine, scratch) = machine_and_scratch("missing");
    let plan = scratch.file("plan.toml", "[axes]\nload = [\"none\", \"stress-ng:--cpu 1\"]\npolicy = [\"other\"]\n");
    let without_programs = |arguments: &str, rest: &[&str]| -> Command {
        let mut command = command(arguments);
        command.args(rest).env("PATH", scratch.dir()).current_dir(scratch.dir());
        command
    };
    let mut command = without_programs("run --wait --duration 50ms --format json --out run", &[]);
    let said = run(command.arg(&plan));
    let reason = "stress-ng is not installed; on Debian: apt-get install stress-ng";
    let json = said.json();
    assert_eq!(json["cells"].as_array().unwrap().len(), 1, "{said:?}");
    let findings = json["run"]["findings"].as_array().unwrap();
    let skipped: Vec<_> = findings.iter().filter(|finding| finding["kind"] == "skipped").collect();
    assert_eq!((skipped.len(), &skipped[0]["reason"]), (1, &reason.into()));
    assert!(said.stderr.contains(&format!("skipped stress-ng:--cpu 1/other: {reason}\n")), "{}", said.stderr);
    let said = run(&mut without_programs("measure --wait --duration 100ms --load", &["stress-ng:--cpu 1"]));
    said.expect_error(&format!("cannot measure anything: {reason}"));
}
