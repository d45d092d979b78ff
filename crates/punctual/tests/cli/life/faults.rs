//! Faults under a load: each is an error or on record and leaves nothing behind.

use crate::places::{Places, go_on};
use crate::program::{
    MARK, PROGRAM, UNPRIVILEGED, a_cpu, cell, command, ended, entries, finish, is_installed, is_root,
    machine_and_scratch, mark, may_mount, record, running, skip_unless, start_cell, traces, wrapped,
};
use punctual_model::{Cell, CpuSet};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::Command;

/// `punctual cell` in a mount namespace with a tmpfs made with `options` at `directory`. The tmpfs exists until the
/// last process of the namespace exits.
fn with_tmpfs(directory: &Path, options: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs -o {options} none {} && exec \"$0\" cell --progress", directory.display());
    command.args(["--mount", "sh", "-c", &script, PROGRAM]).env(MARK, mark());
    command
}

/// Exit status and the one error line of `command` with a cell of `load`, which has no thread until its load
/// has failed.
#[track_caller]
pub(crate) fn error_of(mut command: Command, load: &str) -> (i32, String) {
    let places = Places::new();
    places.act(&mut command, "stop:loads-started");
    let mut child = start_cell(command, &cell("other", load, &a_cpu().to_string(), "100ms"));
    let mut has_ended = false;
    let is_known = comes_true(|| {
        has_ended = child.try_wait().unwrap().is_some();
        has_ended || places.has("load-failed") && !places.acted("stop:loads-started").is_empty()
    });
    assert!(is_known, "{load}: {:?}", places.passed(None));
    if !has_ended {
        go_on(places.stopped(&mut child, "loads-started"));
    }
    let output = finish(child);
    let said: Vec<&str> = output.stderr.lines().filter(|line| !line.starts_with('{')).collect();
    assert_eq!((said.len(), output.stdout.len()), (1, 0), "{load}: {said:?}");
    assert!(comes_true(|| running().is_empty() && traces().is_empty()), "{load}: {:?} {:?}", running(), traces());
    (output.status, said[0].to_owned())
}

/// Exit status of `cell --progress` for a transient error.
const TRANSIENT_ERROR: i32 = 4;
const ERROR: i32 = 1;

#[test]
fn root_a_full_or_read_only_directory_is_an_error_that_names_it() {
    skip_unless!(may_mount());
    let (_machine, scratch) = machine_and_scratch("no-room");
    let dir = scratch.dir().display();
    for (work, options, reason) in [
        (
            "disk",
            "ro",
            format!("cannot create a directory in {dir}: Read-only file system (os error 30); name another"),
        ),
        (
            "files",
            "ro",
            format!("cannot create a directory in {dir}: Read-only file system (os error 30); name another"),
        ),
        ("files", "nr_inodes=20", format!("in {dir}: No space left on device (os error 28); name another directory")),
    ] {
        let load = format!("{work}:{dir}");
        let said = error_of(with_tmpfs(scratch.dir(), options), &load);
        assert_eq!(said, (TRANSIENT_ERROR, format!("punctual: load {load}: {reason}")));
    }
    let load = format!("disk:{dir}");
    let (_, said) = error_of(with_tmpfs(scratch.dir(), "size=1m"), &load);
    assert!(said.contains(&format!("more than a tenth of the 1 MiB free in {dir}; name another directory")), "{said}");
    let load = "disk:/no/such/place";
    let (status, said) = error_of(command("cell"), load);
    assert!(status == ERROR && said.contains("/no/such/place: No such file or directory"), "{status} {said}");
}

#[test]
fn root_a_disk_that_fills_up_under_a_load_is_on_record() {
    skip_unless!(may_mount());
    let (_machine, scratch) = machine_and_scratch("fills-up");
    let load_cpus: Option<CpuSet> = Some([a_cpu()].into_iter().collect());
    let load = format!("disk:{}", scratch.dir().display());
    let cell = Cell { load_cpus, ..cell("other", &load, &a_cpu().to_string(), "10min") };
    let places = Places::new();
    let mut command = with_tmpfs(scratch.dir(), "size=20m");
    places.act(&mut command, "");
    let mut child = start_cell(command, &cell);
    crate::program::wait_for_progress(&mut child);
    // The directory in the mount namespace of the cell; the shell that mounted it has become the cell.
    let inside = format!("/proc/{}/root{}", child.id(), scratch.dir().display());
    let mut filler = std::fs::File::create(Path::new(&inside).join("filler")).unwrap();
    let full = (0..30).find_map(|_| filler.write_all(&[1; 1 << 20]).err()).expect("20 MiB are not room for 30");
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    // Takes the space that the load frees.
    let has_failed = || {
        (0..1000).for_each(|_| drop(filler.write_all(&[1; 4096])));
        places.has("load-failed")
    };
    assert!(comes_true(has_failed), "a load without room: {:?}", places.passed(None));
    process::signal(child.id(), libc::SIGINT).unwrap();
    let record = record(child);
    let reason = record.loads[0].failure.clone().expect("it failed").reason;
    let place = scratch.dir().display();
    assert_eq!(reason, format!("in {place}: No space left on device (os error 28); name another directory"));
    assert!(record.threads[0].is_consistent());
    assert!(comes_true(|| running().is_empty()), "processes stay");
}

#[test]
fn root_a_limit_that_is_reached_is_an_error_that_says_what_to_raise() {
    skip_unless!(is_root() && is_installed("prlimit", "util-linux") && is_installed("setpriv", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("limits");
    let n_cpus = punctual_sys::sched::affinity(0).unwrap().len();
    let again = "Resource temporarily unavailable (os error 11)";
    let raise = "raise `ulimit -u` or `ulimit -n`, or reduce the load, like messaging:groups=1";
    // The cell and the supervisor count as well.
    for (limit, load, reason) in [
        ("--nproc=1".to_owned(), "pipe", format!("cannot start a process: {again}; raise `ulimit -u`")),
        ("--nproc=2".to_owned(), "messaging", format!("cannot start process 1 of 400: {again}; {raise}")),
        ("--nproc=30".to_owned(), "messaging", format!("cannot start process 29 of 400: {again}; {raise}")),
        (format!("--nproc={}", 2 + n_cpus), "fork", format!("{again}; raise `ulimit -u`")),
        (format!("--nproc={}", 2 + n_cpus), "exec", format!("{again}; raise `ulimit -u`")),
        ("--nproc=3".to_owned(), "cmd:sleep 1 & sleep 1", "sh exited (exit status: 2): sh: 0: Cannot fork".to_owned()),
    ] {
        let wrapper = [&["prlimit", &limit], UNPRIVILEGED].concat();
        let (status, said) = error_of(wrapped(&scratch, &wrapper, "cell"), load);
        let messaging = said.replace(&format!("of {} ", 40 * n_cpus.max(10)), "of 400: ");
        // The first worker of fork and exec may start a process before the last worker exists.
        let early = format!("cannot start process {n_cpus} of {n_cpus}: {again}; {raise}");
        let reasons = [reason.as_str(), &early].map(|reason| format!("punctual: load {load}: {reason}"));
        assert!(status == ERROR && [&said, &messaging].iter().any(|said| reasons.contains(said)), "{status} {said}");
    }
    let (_, said) = error_of(wrapped(&scratch, &["prlimit", "--nofile=16"], "cell"), "messaging");
    assert!(said.contains(": Too many open files (os error 24); raise ") && said.contains("ulimit -n"), "{said}");
}

/// Script whose processes leave their process group: a tree of 2^8 - 1 that stay and a chain of 1000, each of which
/// exits once the next has started. The number is bounded, whatever this program does.
const FORKS_LIKE_MAD: &str = r#"#!/bin/sh
case $1 in
tree) [ "$2" -eq 0 ] || { setsid "$0" tree $(($2 - 1)) & setsid "$0" tree $(($2 - 1)) & }; exec sleep 60 ;;
chain) [ "$2" -eq 0 ] || setsid "$0" chain $(($2 - 1)) & ;;
*) setsid "$0" chain 1000 & exec "$0" tree 7 ;;
esac
"#;

#[test]
fn root_a_load_that_forks_like_mad_is_gone_with_its_cell() {
    skip_unless!(is_root() && is_installed("setpriv", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("forks");
    let script = scratch.executable("forks", FORKS_LIKE_MAD);
    let load = format!("cmd:{}", script.display());
    // With a control group, and without.
    for wrapper in [&["env"][..], UNPRIVILEGED] {
        let cell = cell("other", &load, &a_cpu().to_string(), "10min");
        let child = start_cell(wrapped(&scratch, wrapper, "cell"), &cell);
        assert!(comes_true(|| running().len() > 30), "it forks");
        process::signal(child.id(), libc::SIGINT).unwrap();
        let record = record(child);
        assert_eq!(record.loads[0].failure, None);
        assert!(comes_true(|| running().is_empty()), "{wrapper:?}: {:?} left", running());
        assert!(comes_true(|| traces().is_empty()), "{wrapper:?}: {:?}", traces());
    }
}

#[test]
fn a_stopped_cell_is_named_and_killed_and_the_campaign_goes_on() {
    let (_machine, scratch) = machine_and_scratch("stopped-cell");
    // The parent of a load is its supervisor, whose parent is the cell.
    let of_cell = "read -r _ _ _ cell _ </proc/$PPID/stat; kill -STOP $cell";
    for (load, stopped) in [(of_cell, 1), ("sleep 0.2; kill -STOP $PPID", 0)] {
        let once = scratch.path("once");
        let script = format!("[ -e {0} ] || {{ : >{0}; {load}; }}; exec sleep 1000\n", once.display());
        let script = scratch.file("load.sh", script);
        let plan = format!(
            "repetitions = 1\nduration = \"600ms\"\ncpus = \"{}\"\n[axes]\nload = [\"cmd:exec sh {}\"]\n\
             policy = [\"other\"]\nperiod = [\"1ms\"]\n",
            a_cpu(),
            script.display()
        );
        let (plan, out) = (scratch.file("plan.toml", plan), scratch.path("run"));
        let said = ended(command("run --wait").arg(&plan).arg("--out").arg(&out)).expect_success();
        let named = said.stderr.lines().filter(|line| line.contains("killed: the measuring process "));
        let named: Vec<_> = named.filter(|line| line.contains(" was stopped (SIGSTOP, ")).collect();
        assert_eq!((named.len(), entries(&out).len()), (stopped, 1), "{said:?}");
        assert!(comes_true(|| running().is_empty()), "{load}: {:?}", running());
        std::fs::remove_file(once).unwrap();
        std::fs::remove_dir_all(out).unwrap();
    }
}
