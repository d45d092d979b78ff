//! Containers and background jobs: user namespaces, mount namespaces without /tmp, signals that the parent ignores.

use crate::places::{Places, go_on};
use crate::program::{
    PROGRAM, ProgramOutput, Scratch, Start, a_cpu, command, finish, is_installed, machine, machine_and_scratch,
    may_mount, run, running, skip_unless, wrapped,
};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::process::{Command, Stdio};

/// Words of a short measurement.
fn short() -> String {
    format!("measure --wait --no-keep --cpus {} --duration 100ms --format json", a_cpu())
}

/// Starts `sh -c 'punctual measure ... &'`, whose SIGINT is ignored, and sends `signal` to it while it measures.
fn interrupted_in_background(signal: i32) -> ProgramOutput {
    let places = Places::new();
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" & echo $! >&2; wait $!", "sh", PROGRAM]);
    shell.args("measure --wait --no-keep --duration 10min --format json".split(' '));
    shell.env(crate::program::MARK, crate::program::mark()).stdin(Stdio::null());
    // A second after the first due time.
    let mut child = places.act(&mut shell, "stop:cell-looked@2").start_piped();
    let mut stderr = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).expect("the process ID");
    let cell = places.stopped(&mut child, "cell-looked@2");
    process::signal(line.trim().parse().expect("a process ID"), signal).expect("it runs");
    go_on(cell);
    finish(child)
}

#[test]
fn signals_end_a_background_job_with_their_status_and_what_was_measured() {
    let _machine = machine();
    for (signal, status) in [(libc::SIGTERM, 143), (libc::SIGINT, 130), (libc::SIGHUP, 129)] {
        let said = interrupted_in_background(signal);
        assert_eq!(said.status, status, "{said:?}");
        let json = said.json();
        let summary = &json["cells"][0]["summary"];
        assert!(summary["samples"].as_u64().unwrap() + summary["missed"].as_u64().unwrap() > 0, "{signal}: {summary}");
        assert!(json["run"]["findings"].to_string().contains("interrupted"), "{signal}");
        assert!(comes_true(|| running().is_empty()), "{:?} left", running());
    }
}

#[test]
fn a_wait_for_the_machine_ends_at_once() {
    let (_machine, scratch) = machine_and_scratch("wait-ends");
    let lock = scratch.file("lock", "");
    let holder = std::fs::File::open(&lock).unwrap();
    holder.lock().unwrap();
    let child = command(&short()).env("PUNCTUAL_LOCK", &lock).start_piped();
    // In flock(2): the signal handler restarts the call.
    let wchan = format!("/proc/{}/syscall", child.id());
    let flock = format!("{} ", libc::SYS_flock);
    assert!(comes_true(|| std::fs::read_to_string(&wchan).is_ok_and(|call| call.starts_with(&flock))));
    process::signal(child.id(), libc::SIGTERM).unwrap();
    assert_eq!(finish(child).status, 143);
}

#[test]
fn root_a_user_namespace_measures_without_locked_memory() {
    skip_unless!(may_mount() && is_installed("setpriv", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("userns");
    let wrapper = [
        &["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"][..],
        &[
            "prlimit",
            "--memlock=65536:65536",
            "unshare",
            "--user",
            "--map-root-user",
            "--pid",
            "--fork",
            "--mount-proc",
        ],
        // A container has a /run of its own.
        &["sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh"],
    ]
    .concat();
    let said = run(&mut wrapped(&scratch, &wrapper, &short()));
    if said.stderr.starts_with("unshare:") {
        eprintln!("skipped: needs user namespaces of other users");
        return;
    }
    let json = said.expect_success().json();
    assert!(json["cells"][0].to_string().contains("memory not locked"), "{}", json["cells"][0]);
}

/// `punctual ARGUMENTS` in a mount namespace prepared by the shell commands `mounts`.
fn in_namespace(scratch: &Scratch, mounts: &str, arguments: &str) -> ProgramOutput {
    let script = format!("{mounts} && exec \"$@\"");
    run(&mut wrapped(scratch, &["unshare", "--mount", "sh", "-c", &script, "sh"], arguments))
}

#[test]
fn root_without_tmp_the_lock_is_elsewhere_and_reaches_other_mount_namespaces() {
    skip_unless!(may_mount());
    let (_machine, scratch) = machine_and_scratch("no-tmp");
    // The scratch directory is below /tmp.
    let elsewhere = "mkdir -p /dev/shm/punctual-test && cp \"$1\" /dev/shm/punctual-test/p && shift && \
                     set -- /dev/shm/punctual-test/p \"$@\" && cd / && mount -t tmpfs -o ro none /tmp";
    let measured = in_namespace(&scratch, elsewhere, &short());
    assert_eq!(measured.expect_success().json()["cells"][0]["cell"]["cpus"], a_cpu().to_string());
    let holder = command("measure --wait --no-keep --duration 10min").start_silent();
    assert!(comes_true(|| running().len() >= 2));
    let refused = in_namespace(&scratch, elsewhere, "measure --no-keep --duration 200ms");
    let _ = std::fs::remove_dir_all("/dev/shm/punctual-test");
    let told = format!(" by process {} (punctual); wait for it", holder.id());
    process::signal(holder.id(), libc::SIGTERM).unwrap();
    finish(holder);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.last_line().contains(&told), "{refused:?}");
}

#[test]
fn root_without_proc_one_line_names_the_mount() {
    skip_unless!(may_mount());
    let (_machine, scratch) = machine_and_scratch("no-proc");
    for arguments in ["doctor", "measure --no-keep --duration 100ms"] {
        let said = in_namespace(&scratch, "umount -l /proc", arguments);
        said.expect_error("/proc is not mounted; mount -t proc proc /proc");
    }
}

#[test]
fn root_pid_1_named_init_is_not_a_guest_without_the_word_of_the_lab() {
    skip_unless!(may_mount());
    let _machine = machine();
    let script = format!("exec -a /init {PROGRAM} load --list");
    let words = ["--pid", "--fork", "--mount-proc", "bash", "-c", &script];
    let said = run(Command::new("unshare").args(words));
    assert!(said.status == 0 && said.stdout.contains("messaging"), "{said:?}");
}
