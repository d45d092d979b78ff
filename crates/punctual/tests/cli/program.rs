//! Running the program in tests, one measurement at a time.

use punctual_analysis::testing::RunBuilder;
use punctual_model::{Cell, Conditions, CpuSet, Entry, Header, Record};
pub(crate) use punctual_sys::testing::{MARK, mark, running};
use punctual_sys::testing::{comes_true, marked, variable_of};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_punctual");

/// The machine, held by a measuring test: concurrent measurements would exclude or disturb each other. A lock of a
/// file, because tests may run in processes of their own; one of all checkouts of a user.
#[derive(Debug)]
pub(crate) struct Machine(#[expect(dead_code, reason = "held, not used")] File);

pub(crate) fn machine() -> Machine {
    let beside = std::thread::current().name().is_some_and(runs_beside_others);
    assert!(!beside, "a test that holds the machine is in life, real, host or field");
    let name = format!("punctual-tests-{}.lock", punctual_sys::process::user_id());
    let lock = File::create(std::env::temp_dir().join(name)).expect("the directory of temporary files");
    lock.lock().expect("a local file can be locked");
    Machine(lock)
}

impl Drop for Machine {
    /// Kills the processes of a failed test: they hold the machine, and the next test would wait for it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            comes_true(|| {
                let left = running();
                left.iter().for_each(|pid| drop(punctual_sys::process::signal(*pid, libc::SIGKILL)));
                left.is_empty()
            });
            // Removes their files.
            let _ = command("recover --wait").output();
        }
    }
}

/// Output and exit status of the program.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Without what is said of the killed guest of another test: any command removes what it has left.
fn of_this_test(said: &str) -> String {
    let is_of_others =
        |line: &&str| line.contains(", left behind by a killed process: ") && line.contains("/punctual-guest-");
    said.split_inclusive('\n').filter(|line| !is_of_others(line)).collect()
}

impl ProgramOutput {
    pub(crate) fn of(output: Output) -> ProgramOutput {
        ProgramOutput {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: of_this_test(std::str::from_utf8(&output.stderr).expect("stderr is UTF-8")),
        }
    }

    /// Asserts an error: nothing on stdout, exactly this line on stderr, exit status 1.
    #[track_caller]
    pub(crate) fn expect_error(&self, line: &str) {
        assert_eq!((self.stderr.as_str(), self.status), (format!("punctual: {line}\n").as_str(), 1));
        assert_eq!(self.stdout, "");
    }

    /// Asserts exit status 0.
    #[track_caller]
    pub(crate) fn expect_success(self) -> ProgramOutput {
        assert_eq!(self.status, 0, "{self:?}");
        self
    }

    /// The last line on stderr, or an empty string.
    pub(crate) fn last_line(&self) -> &str {
        self.stderr.lines().last().unwrap_or_default()
    }

    /// The result as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|err| panic!("{err}: {self:?}"))
    }
}

/// The current directory of the commands: runs without `--out` are kept below it.
pub(crate) const DIRECTORY: &str = env!("CARGO_TARGET_TMPDIR");

/// The command `punctual ARGUMENTS`; arguments are split at blanks.
pub(crate) fn command(arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    in_test(command.current_dir(DIRECTORY).args(arguments.split_whitespace()));
    command
}

/// The command as one of this test: without input, and without the machine where others may measure.
pub(crate) fn in_test(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).env(MARK, mark());
    if std::thread::current().name().is_some_and(runs_beside_others) {
        // It would find the machine taken by chance: always, then.
        command.env("PUNCTUAL_LOCK", "/dev/null/needs-the-machine-alone");
    }
    command
}

/// Whether a test of this name may run while another one measures, as `.config/nextest.toml` groups them.
fn runs_beside_others(test: &str) -> bool {
    let is_guest = test.starts_with("guest::") && !test.starts_with("guest::machine_time::");
    test.starts_with("pure::") || is_guest && !test.starts_with("guest::lab_host::")
}

/// Runs `punctual ARGUMENTS` to its end.
pub(crate) fn punctual(arguments: &str) -> ProgramOutput {
    ProgramOutput::of(command(arguments).output().expect("the program starts"))
}

/// Prints that the machine has not let the test find out what it asks, for example because it stood still. The test
/// passes, is counted and listed.
pub(crate) fn inconclusive(reason: &str) {
    eprintln!("inconclusive: {reason}");
}

/// Returns from the test unless the condition holds; the condition prints the reason.
macro_rules! skip_unless {
    ($needed:expr) => {
        if !($needed) {
            return;
        }
    };
}
pub(crate) use skip_unless;

/// Commands started in the background.
pub(crate) trait Start {
    /// Starts the command and discards its output.
    fn start_silent(&mut self) -> Child;

    /// Starts the command with its output in pipes.
    fn start_piped(&mut self) -> Child;
}

impl Start for Command {
    fn start_silent(&mut self) -> Child {
        self.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    }

    fn start_piped(&mut self) -> Child {
        self.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }
}

/// Waits for the end of a started program and returns its output.
pub(crate) fn finish(child: Child) -> ProgramOutput {
    ProgramOutput::of(child.wait_with_output().expect("the program ends"))
}

/// Runs a program that must come to an end by itself: one that stands still, or uses much CPU time, is killed.
#[track_caller]
pub(crate) fn ended(command: &mut Command) -> ProgramOutput {
    let child = command.stdin(Stdio::null()).env(MARK, mark()).start_piped();
    let pid = child.id();
    let output = std::thread::spawn(move || finish(child));
    if !comes_true(|| output.is_finished()) {
        let _ = punctual_sys::process::signal(pid, libc::SIGKILL);
        panic!("{command:?} does not end");
    }
    output.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Kills a program with SIGKILL and reaps it.
pub(crate) fn kill_and_wait(child: &mut Child) {
    child.kill().expect("it was not reaped");
    child.wait().expect("it ends");
}

/// Runs `command` to its end.
pub(crate) fn run(command: &mut Command) -> ProgramOutput {
    ProgramOutput::of(command.output().expect("the program starts"))
}

/// Wrapper that runs a command and its descendants as an otherwise unused user without privileges.
pub(crate) const UNPRIVILEGED: &[&str] =
    &["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"];

/// The command `WRAPPER punctual ARGUMENTS` in a directory that every user can access.
pub(crate) fn wrapped(scratch: &Scratch, wrapper: &[&str], arguments: &str) -> Command {
    let program = scratch.path("punctual");
    if !program.exists() {
        install(PROGRAM, &program);
        set_mode(scratch.dir(), 0o777);
    }
    let (first, rest) = wrapper.split_first().expect("a wrapper");
    let mut command = Command::new(first);
    command.args(rest).arg(program).args(arguments.split_whitespace()).current_dir(scratch.dir());
    command.stdin(Stdio::null()).env(MARK, mark());
    command
}

/// Copies an executable file with mode 755, in another process: what other tests start meanwhile inherits files of this
/// one that are open for writing, and until it has executed its program, execve(2) of the copy fails with ETXTBSY.
pub(crate) fn install(source: impl AsRef<Path>, path: impl AsRef<Path>) {
    let status = Command::new("install").args(["-m", "755"]).arg(source.as_ref()).arg(path.as_ref()).status();
    assert!(status.expect("install starts").success(), "a copy of {}", source.as_ref().display());
}

/// The directory of one test, removed afterwards.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        // Tests run at the same time, and two of them can choose the same name.
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("punctual-test-{name}-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a scratch directory");
        Scratch(dir)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, creates its parent directories and returns its path.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("below the directory")).expect("a scratch directory");
        std::fs::write(&path, contents).expect("a scratch file");
        path
    }

    /// Writes an executable file, replacing a link, and returns its path.
    pub(crate) fn executable(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let source = self.file(&format!("{name}.source"), contents);
        let path = self.path(name);
        install(&source, &path);
        std::fs::remove_file(source).expect("own file");
        path
    }

    /// Writes a run into the directory `name` and returns its path.
    pub(crate) fn run(&self, name: &str, run: &RunBuilder) -> PathBuf {
        let header = serde_json::to_string(&run.header).expect("a header is JSON");
        let entries = run.entries.iter().map(|entry| serde_json::to_string(entry).expect("a measurement is JSON"));
        let lines: String = std::iter::once(header).chain(entries).map(|line| line + "\n").collect();
        self.file(&format!("{name}/run.jsonl"), lines);
        self.path(name)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Sets the mode of a file.
pub(crate) fn set_mode(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("own file");
}

/// The JSON in a file.
#[track_caller]
pub(crate) fn read_json<T: DeserializeOwned>(path: impl AsRef<Path>) -> T {
    let text = std::fs::read_to_string(path).expect("a file of text");
    serde_json::from_str(&text).unwrap_or_else(|err| panic!("{err}: {text}"))
}

/// The header of the run in `dir`.
#[track_caller]
pub(crate) fn header(dir: &Path) -> Header {
    let text = std::fs::read_to_string(dir.join("run.jsonl")).expect("a run");
    serde_json::from_str(text.lines().next().expect("a header")).expect("a header")
}

/// The measurements of the run in `dir`, in the order of the plan and not in the random one in which they were made.
/// All must be complete.
#[track_caller]
pub(crate) fn entries(dir: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(dir.join("run.jsonl")).expect("a run");
    let entries = text.lines().skip(1).map(|line| serde_json::from_str::<Entry>(line).expect("a measurement"));
    let mut entries: Vec<Entry> = entries.collect();
    entries.sort_by_key(|entry| (entry.planned.block, entry.planned.cell_index));
    entries
}

/// Runs `plan` into the directory `out`, always with the same seed.
#[track_caller]
pub(crate) fn run_seeded(plan: &str, out: &Path) -> ProgramOutput {
    punctual(&format!("run {plan} --seed 1 --wait --out {}", out.display())).expect_success()
}

/// A file of another tool, from the tests of `import`.
pub(crate) fn import_fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("import").join("tests/files").join(name)
}

/// The machine, and the directory of one measuring test.
pub(crate) fn machine_and_scratch(name: &str) -> (Machine, Scratch) {
    (machine(), Scratch::new(name))
}

/// The program sshd, with the keys `host` and `key` in `scratch`; prints that the test is skipped and returns `None`
/// where it is not installed.
pub(crate) fn sshd_with_keys(scratch: &Scratch) -> Option<&'static str> {
    let sshd = ["/usr/sbin/sshd", "/usr/bin/sshd"].into_iter().find(|path| Path::new(path).exists());
    let Some(sshd) = sshd.filter(|_| is_installed("ssh-keygen", "openssh-client")) else {
        eprintln!("skipped: needs sshd (apt-get install openssh-server)");
        return None;
    };
    // Privilege separation directory, which a service manager creates otherwise.
    std::fs::create_dir_all("/run/sshd").unwrap();
    for key in ["host", "key"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(scratch.path(key));
        assert!(keygen.status().unwrap().success());
    }
    Some(sshd)
}

/// Runs `work` while a thread spins on every CPU. A load of ours would be seen by tests of what loads leave behind.
pub(crate) fn beside_a_load<T>(work: impl FnOnce() -> T) -> T {
    let spins = Arc::new(());
    for _ in 0..punctual_sys::sched::affinity(0).expect("own affinity").len() {
        let spins = Arc::downgrade(&spins);
        std::thread::spawn(move || while spins.strong_count() > 0 {});
    }
    work()
}

/// A cell on `cpus` that needs no privilege unless `policy` does.
pub(crate) fn cell(policy: &str, load: &str, cpus: &str, duration: &str) -> Cell {
    Cell {
        kernel: punctual_model::Kernel::Running,
        load: load.parse().expect("a load"),
        policy: policy.parse().expect("a policy"),
        period: "1ms".parse().expect("a period"),
        task: punctual_model::Task::CLOCK_NANOSLEEP,
        cpus: cpus.parse().expect("CPUs"),
        duration: duration.parse().expect("a duration"),
        deadline: None,
        lock_memory: false,
        load_cpus: None,
        conditions: Conditions::default(),
    }
}

/// Starts `punctual cell` by `command`, with `cell` on its stdin.
pub(crate) fn start_cell(mut command: Command, cell: &Cell) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let json = serde_json::to_vec(cell).expect("a cell is JSON");
    child.stdin.take().expect("a pipe").write_all(&json).expect("the program reads its cell");
    child
}

/// Waits for the first progress line of a cell that was started with `--progress`, about a second after the release of
/// its threads.
#[track_caller]
pub(crate) fn wait_for_progress(child: &mut Child) {
    progress(child).unwrap_or_else(|said| panic!("no progress: {said}"));
}

/// As [`wait_for_progress`]; the error is what the cell said instead.
pub(crate) fn progress(child: &mut Child) -> Result<(), String> {
    let line = said_line(child).map_err(|err| err.to_string())?;
    if line.starts_with('{') { Ok(()) } else { Err(line) }
}

/// Reads the next line of a program's stderr, and nothing after it.
fn said_line(child: &mut Child) -> std::io::Result<String> {
    let words = child.stderr.as_mut().expect("a pipe");
    let (mut line, mut byte) = (Vec::new(), [0]);
    while byte != *b"\n" {
        words.read_exact(&mut byte)?;
        line.extend(byte);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Reads what a program writes to stderr, up to a line that contains `text`.
pub(crate) fn wait_for_line(child: &mut Child, text: &str) {
    while !said_line(child).unwrap_or_else(|err| panic!("no line `{text}`: {err}")).contains(text) {}
}

/// The record of a started cell.
#[track_caller]
pub(crate) fn record(child: Child) -> Record {
    record_of(finish(child))
}

/// The record that a cell has printed.
pub(crate) fn record_of(said: ProgramOutput) -> Record {
    let said = said.expect_success();
    serde_json::from_str(&said.stdout).unwrap_or_else(|err| panic!("{err}: {said:?}"))
}

/// The due times of a cell's summary, each of which is in its ledger once.
#[track_caller]
pub(crate) fn due_times(summary: &serde_json::Value) -> u64 {
    let ledger: HashMap<String, u64> = serde_json::from_value(summary["ledger"].clone()).expect("a ledger");
    let parts: u64 = ledger.iter().filter(|(name, _)| *name != "due").map(|(_, n)| n).sum();
    assert_eq!(parts, ledger["due"], "{summary:#}");
    parts
}

/// A CPU in this process's affinity mask: the last one, which is the least busy on most machines.
pub(crate) fn a_cpu() -> u32 {
    punctual_sys::sched::affinity(0).expect("own affinity").iter().last().expect("a CPU")
}

/// [`a_cpu`] and the other CPUs of this process; prints that the test is skipped and returns `None` without others.
pub(crate) fn a_cpu_and_the_others() -> Option<(CpuSet, CpuSet)> {
    let measured: CpuSet = [a_cpu()].into_iter().collect();
    let others = punctual_sys::sched::affinity(0).expect("own affinity").minus(&measured);
    if others.is_empty() {
        eprintln!("skipped: needs two CPUs");
        return None;
    }
    Some((measured, others))
}

/// Whether this test runs as root; otherwise prints that it is skipped.
pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("own status");
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).and_then(|ids| ids.split_whitespace().nth(1));
    let is_root = uid == Some("0");
    if !is_root {
        eprintln!("skipped: needs root");
    }
    is_root
}

/// Whether `program` is installed; otherwise prints that the test is skipped.
pub(crate) fn is_installed(program: &str, package: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: needs {program} (apt-get install {package})");
    }
    found
}

/// Whether this test can have a mount namespace; otherwise prints that it is skipped. In a chroot `/` is not a mount
/// point, and many containers deny mounts.
pub(crate) fn may_mount() -> bool {
    let made = Command::new("unshare").args(["--mount", "true"]).output();
    let may = is_root() && made.is_ok_and(|made| made.status.success());
    if !may {
        eprintln!("skipped: needs mounts of its own (unshare --mount, from util-linux)");
    }
    may
}

/// Names of the files that this program creates for loads: directories in `/var/tmp`, control groups. Those of a load
/// that another test runs at the same time, in virtual time, are not of this one.
pub(crate) fn traces() -> Vec<String> {
    let is_of_another = |path: &String| {
        let name = path.rsplit("punctual-load-").next().unwrap_or_default();
        let pid = name.split(|character: char| !character.is_ascii_digit()).next().unwrap_or_default();
        let of = pid.parse().ok().and_then(|pid| variable_of(pid, MARK));
        of.is_some_and(|other| other != mark())
    };
    let directories = ["/var/tmp", "/tmp", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let entries = directories.iter().flat_map(std::fs::read_dir).flatten().flatten();
    let paths = entries.map(|entry| entry.path().display().to_string());
    paths.filter(|path| path.contains("punctual-load-")).filter(|path| !is_of_another(path)).collect()
}

/// Whether every thread of the process is stopped: state T in field 3, after the name (proc_pid_stat(5)).
pub(crate) fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut stats = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok()).peekable();
    stats.peek().is_some() && stats.all(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
}

#[test]
fn what_a_test_that_fails_has_started_ends_with_it() {
    let failing = std::thread::spawn(|| {
        let _machine = machine();
        let mut load = command("load messaging:groups=1 --for 1min").stdout(Stdio::null()).spawn().unwrap();
        let mark = mark();
        assert!(comes_true(|| marked(&mark).len() > 20), "the load works");
        assert!(load.try_wait().unwrap().is_some(), "fails on purpose: {mark}");
    });
    let said = failing.join().unwrap_err();
    let mark = said.downcast_ref::<String>().unwrap().rsplit(' ').next().unwrap();
    assert!(mark.parse::<u32>().is_ok() && marked(mark).is_empty(), "{mark}");
    let _machine = machine();
    assert_eq!(traces(), <[String; 0]>::default());
}
