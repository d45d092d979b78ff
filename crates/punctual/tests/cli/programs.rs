//! External programs as loads: each runs beside a measurement, is reported if it does not, and leaves nothing behind.

use crate::program::{
    ProgramOutput, Scratch, a_cpu, cell, comes_true, command, finish, is_installed, is_root, machine,
    machine_and_scratch, record, run, running, skip_unless, start_cell, traces,
};
use model::{Cell, Conditions, LoadRecord, Record, Span};
use std::path::Path;
use std::process::Command;

/// The load of a cell that is long enough for two readings, one second apart.
fn load_of(load: &str) -> LoadRecord {
    let record = record(start_cell(command("cell"), &cell("other", load, &a_cpu().to_string(), "2100ms")));
    let [load] = &record.loads[..] else { panic!("one load: {record:?}") };
    load.clone()
}

/// A fio job that outlasts any test.
fn fio_job(scratch: &Scratch) -> String {
    let job = scratch.file("job.fio", "[j]\nfilename=laid-out\nsize=4m\nrw=randwrite\ntime_based\nruntime=3600\n");
    format!("fio:{}", job.display())
}

#[test]
fn every_program_works_in_every_second_and_leaves_nothing() {
    let (_machine, scratch) = machine_and_scratch("programs");
    for (load, program, package) in [
        ("stress-ng:--cpu 1", "stress-ng", "stress-ng"),
        ("hackbench:-g 2", "hackbench", "rt-tests"),
        ("ping:127.0.0.1", "ping", "iputils-ping"),
        (&fio_job(&scratch), "fio", "fio"),
        ("cmd:while :; do :; done", "sh", "dash"),
    ] {
        if !is_installed(program, package) || program == "ping" && !is_root() {
            continue;
        }
        let load = load_of(load);
        let whole: Vec<_> = load.seconds.iter().filter(|second| second.elapsed.ns() > 900_000_000).collect();
        assert!(whole.len() >= 2 && load.failure.is_none(), "{load:?}");
        // Without a control group the CPU time of a program's descendants is unknown.
        assert!(whole.iter().all(|second| second.cpu_us != Some(0)), "{load:?}");
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
        // Time to fail before the first measured cycle, even on a busy machine.
        let cell = Cell {
            conditions: Conditions { warm_up: Span::SECOND, ..Conditions::default() },
            ..cell("other", load, &a_cpu().to_string(), "100ms")
        };
        let ProgramOutput { status, stderr: said, .. } = finish(start_cell(command("cell"), &cell));
        assert_eq!((status, said.lines().count()), (1, 1), "{said}");
        assert!(said.starts_with(&format!("punctual: load {load}: ")) && said.contains(words), "{said}");
        assert!(comes_true(|| running().is_empty() && traces().is_empty()), "{load}: something stays");
    }
}

#[test]
fn the_directory_of_a_program_is_removed_with_its_files() {
    skip_unless!(is_installed("fio", "fio"));
    let (_machine, scratch) = machine_and_scratch("left-files");
    let child = start_cell(command("cell"), &cell("other", &fio_job(&scratch), &a_cpu().to_string(), "1s"));
    let is_there = |path: String| Path::new(&path).join("laid-out").exists();
    assert!(comes_true(|| traces().into_iter().any(is_there)), "its file lies in the directory made for it");
    let _: Record = record(child);
    assert_eq!(traces(), <[String; 0]>::default());
}

#[test]
fn a_command_works_where_the_user_is() {
    let (_machine, scratch) = machine_and_scratch("command");
    let mut command = command("cell");
    command.current_dir(scratch.dir());
    record(start_cell(command, &cell("other", "cmd:pwd > here; exec sleep 60", &a_cpu().to_string(), "500ms")));
    let here = std::fs::read_to_string(scratch.path("here")).unwrap();
    assert_eq!(Path::new(here.trim()), scratch.dir().canonicalize().unwrap());
}

#[test]
fn a_program_that_ends_at_once_rests_before_it_is_started_again() {
    let _machine = machine();
    for load in ["cmd:true", "cmd:setsid sleep 60 & true"] {
        let child = start_cell(command("cell"), &cell("other", load, &a_cpu().to_string(), "2100ms"));
        std::thread::sleep(std::time::Duration::from_millis(1500));
        // The cell, the supervisor and one run; processes of earlier runs are gone.
        assert!(running().len() <= 5, "{load}: {:?}", running());
        let record = record(child);
        let load = &record.loads[0];
        for second in &load.seconds {
            let most = second.elapsed.ns() / 100_000_000 + 1;
            assert!(second.operations.is_some_and(|runs| runs <= most), "at most ten runs a second: {load:?}");
        }
        assert!(load.seconds.iter().any(|second| second.operations > Some(0)) && load.failure.is_none(), "{load:?}");
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
    let mut command = without_programs("run --wait --quick --format json --out run", &[]);
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
