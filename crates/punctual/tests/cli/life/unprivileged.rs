//! Without privileges: the possible part is measured, and the error for the rest has the command that permits it.

use crate::program::{
    PROGRAM, ProgramOutput, UNPRIVILEGED, a_cpu, command, is_installed, is_root, machine_and_scratch, run, skip_unless,
    wrapped,
};
use std::process::Command;

#[test]
fn root_nobody_measures_normal_threads_and_is_told_what_the_rest_needs() {
    skip_unless!(is_root() && is_installed("setpriv", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("nobody");
    let said = run(&mut wrapped(
        &scratch,
        UNPRIVILEGED,
        "run --wait --quick --duration 50ms --format json --require max=1h --out run",
    ));
    let json = said.json();
    let policies: Vec<_> =
        json["cells"].as_array().unwrap().iter().map(|cell| cell["cell"]["policy"].clone()).collect();
    assert_eq!(policies, ["other", "other"]);
    assert_eq!(said.status, 3, "a requirement on cells that were skipped cannot be judged");
    let program = scratch.path("punctual").display().to_string();
    let advice = format!(
        "fifo:80 needs CAP_SYS_NICE; run with sudo, or once: sudo setcap cap_sys_nice,cap_ipc_lock+ep {program} (any user may \
         then occupy CPUs; undo: sudo setcap -r {program})"
    );
    assert!(said.stderr.contains(&advice), "{}", said.stderr);

    let refused = run(&mut wrapped(&scratch, UNPRIVILEGED, "measure --wait --policy fifo:80 --duration 100ms"));
    refused.expect_error(&format!("cannot measure anything: {advice}"));
    let refused = run(&mut wrapped(&scratch, UNPRIVILEGED, "explain --wait --policy fifo:80 --duration 100ms"));
    assert!(refused.stderr.starts_with("punctual: cannot explain: tracing needs root"), "{}", refused.stderr);
}

#[test]
fn root_the_right_that_came_with_the_file_is_for_measured_threads_only() {
    skip_unless!(is_root() && is_installed("setpriv", "util-linux") && is_installed("setcap", "libcap2-bin"));
    let (_machine, scratch) = machine_and_scratch("setcap");
    // A separate user, which can gain capabilities from files.
    let user = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"];
    let of_user = |arguments: &str, more: &[&str]| run(wrapped(&scratch, &user, arguments).args(more));
    let refused = of_user("load cpu --policy fifo:1 --for 1s", &[]);
    let cannot = "punctual: load cpu: cannot run as fifo:1: Operation not permitted (os error 1)";
    assert_eq!(refused.stderr, format!("{cannot}\n"));
    let program = scratch.path("punctual");
    let set = Command::new("setcap").arg("cap_sys_nice,cap_ipc_lock+ep").arg(&program).output().unwrap();
    if !set.status.success() {
        eprintln!("skipped: needs a file system with capabilities of files ({set:?})");
        return;
    }
    let cpu = a_cpu();
    of_user(&format!("measure --wait --policy fifo:1 --duration 100ms --cpus {cpu} --format json"), &[])
        .expect_success();

    let advice = "; the capability from setcap is for measured threads only: run as root\n";
    assert_eq!(of_user("load cpu --policy fifo:1 --for 1s", &[]).stderr, format!("{cannot}{advice}"));
    let launch = |policy: &str| {
        let parent = std::process::id();
        let settings =
            format!("launch --parent {parent} --cpus {cpu} --policy {policy} --timer-slack 50us -- echo ran");
        of_user(&settings, &[])
    };
    for policy in ["fifo:99", "rr:1", "other:nice=-5"] {
        let refused = launch(policy);
        assert_eq!((refused.stdout.as_str(), refused.status), ("", 1), "{policy}: {refused:?}");
        let begin = format!("punctual: cannot run as {policy}: ");
        assert!(refused.stderr.starts_with(&begin) && refused.stderr.ends_with(advice), "{refused:?}");
    }
    assert_eq!(launch("batch").stdout, "ran\n");
}

/// Asserts an error of one line, but for one that says what was waited for.
#[track_caller]
fn expect_one_line(said: &ProgramOutput, words: &str) {
    let lines: Vec<_> = said.stderr.lines().filter(|line| !line.starts_with("punctual: waiting for ")).collect();
    assert_eq!((said.status, lines.len()), (1, 1), "{said:?}");
    assert!(lines[0].starts_with("punctual: ") && lines[0].contains(words), "{said:?}");
}

#[test]
fn root_limits_on_threads_are_one_line() {
    skip_unless!(is_root() && is_installed("setpriv", "util-linux") && is_installed("prlimit", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("threads");
    let arguments = format!("measure --wait --policy other --duration 100ms --cpus {} --format json", a_cpu());
    // A user without processes of other tests: the limit counts all processes of a user.
    let user =
        ["setpriv", "--reuid=54329", "--regid=54329", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"];
    let mut measured = 0;
    for limit in 1..=12 {
        let limit = format!("--nproc={limit}");
        let said = run(&mut wrapped(&scratch, &[&["prlimit", &limit], &user[..]].concat(), &arguments));
        if said.status == 0 {
            measured += 1;
            continue;
        }
        // The announcement may precede the error.
        let last = said.last_line();
        assert!(said.status == 1 && !said.stderr.contains("panicked"), "{limit}: {said:?}");
        let reason = "Resource temporarily unavailable (os error 11)";
        assert!(last.starts_with("punctual: ") && last.contains(reason), "{limit}: {said:?}");
    }
    assert!(measured > 0, "12 processes and threads are enough");
}

#[test]
fn root_limits_and_signals_of_the_parent_are_met_in_good_order() {
    skip_unless!(is_root() && is_installed("setpriv", "util-linux") && is_installed("prlimit", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("parent");
    let bare = |wrapper: &[&str], arguments: &str| {
        // Arguments and environment have to fit in a quarter of the stack (execve(2)).
        let mut command = wrapped(&scratch, wrapper, arguments);
        let path = std::env::var_os("PATH").unwrap_or_default();
        run(command.env_clear().env("PATH", path).env(crate::program::MARK, crate::program::mark()))
    };
    // The soft limit is raised up to the hard limit.
    let listed = bare(&["prlimit", "--stack=65536:"], "load --list");
    assert!(listed.status == 0 && listed.stdout.contains("messaging"), "{listed:?}");
    let refused = bare(&[&["prlimit", "--stack=65536:65536"], UNPRIVILEGED].concat(), "load --list");
    expect_one_line(
        &refused,
        "cannot grow the stack to 1024 KiB: Operation not permitted (os error 1); ulimit -s 1024",
    );

    let full = bare(&["prlimit", "--fsize=0"], "run --wait --quick --out run");
    expect_one_line(&full, "File too large (os error 27)");

    if Command::new("env").args(["--ignore-signal=CHLD", "true"]).status().is_ok_and(|status| status.success()) {
        let arguments = format!("measure --wait --duration 100ms --cpus {} --format json", a_cpu());
        bare(&["env", "--ignore-signal=CHLD"], &arguments).expect_success();
    }
    let said = run(Command::new(PROGRAM).args(["measure", "--load-policy", "batch", "--duration", "100ms"]));
    said.expect_error(
        "cannot run the load as batch: the load is none; name one, like --load cpu, or leave the policy out",
    );
}

#[test]
fn a_filter_of_system_calls_is_an_error_of_one_line() {
    let (_machine, scratch) = machine_and_scratch("filter");
    let denied = "Operation not permitted (os error 1)";
    let tied = format!("cannot end with the parent process (prctl): {denied}");
    let asleep = format!("cannot sleep (clock_nanosleep): {denied}");
    for (call, words, said) in [
        (libc::SYS_clock_nanosleep, "measure --wait --duration 50ms --no-keep", &asleep),
        (libc::SYS_clock_nanosleep, "measure sleep --wait --duration 50ms --targets 1ms --no-keep", &asleep),
        (libc::SYS_clock_nanosleep, "load cpu --for 1s", &asleep),
        (libc::SYS_clock_nanosleep, "run --wait --quick --on exec:env --out run", &asleep),
        (libc::SYS_prctl, "measure --wait --duration 50ms --no-keep", &tied),
        (libc::SYS_prctl, "load cpu --for 1s", &format!("load cpu: cannot start a process: prctl: {denied}")),
    ] {
        let mut command = command(words);
        punctual_sys::testing::deny(&mut command, call);
        let refused = run(command.current_dir(scratch.dir()));
        assert_eq!((refused.status, refused.last_line()), (1, &*format!("punctual: {said}")), "{words}: {refused:?}");
        assert!(!refused.stderr.contains("panicked"), "{refused:?}");
    }
}
