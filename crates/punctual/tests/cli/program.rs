//! Running the program in tests, one measurement at a time.

use model::{Cell, CpuSet, Record};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_punctual");

/// Environment variable by which the processes of this test run are told from anybody else's.
pub(crate) const MARK: &str = "PUNCTUAL_TEST_RUN";

/// Held by every test that measures: two measurements at a time would measure each other.
pub(crate) fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the program said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    fn of(output: Output) -> Said {
        Said {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    /// An error: nothing on stdout, exactly this line on stderr, exit status 1.
    #[track_caller]
    pub(crate) fn expect_error(&self, line: &str) {
        assert_eq!((self.stderr.as_str(), self.status), (format!("punctual: {line}\n").as_str(), 1));
        assert_eq!(self.stdout, "");
    }

    /// The result as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|err| panic!("{err}: {self:?}"))
    }
}

/// The command `punctual ARGUMENTS`, arguments split at blanks.
pub(crate) fn command(arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split_whitespace()).stdin(Stdio::null()).env(MARK, std::process::id().to_string());
    command
}

/// Runs `punctual ARGUMENTS` to its end.
pub(crate) fn punctual(arguments: &str) -> Said {
    Said::of(command(arguments).output().expect("the program starts"))
}

/// Runs `command` to its end.
pub(crate) fn run(command: &mut Command) -> Said {
    Said::of(command.output().expect("the program starts"))
}

/// Wrapped around a command: it, and all that it makes, runs as a user of its own without any privilege.
pub(crate) const UNPRIVILEGED: &[&str] =
    &["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"];

/// The command `WRAPPER punctual ARGUMENTS`, in a place that every user can reach.
pub(crate) fn wrapped(scratch: &Scratch, wrapper: &[&str], arguments: &str) -> Command {
    let program = scratch.path("punctual");
    if !program.exists() {
        std::fs::copy(PROGRAM, &program).expect("a copy of the program");
        std::fs::set_permissions(scratch.dir(), PermissionsExt::from_mode(0o777)).expect("own directory");
    }
    let (first, rest) = wrapper.split_first().expect("a wrapper");
    let mut command = Command::new(first);
    command.args(rest).arg(program).args(arguments.split_whitespace()).current_dir(scratch.dir());
    command.stdin(Stdio::null()).env(MARK, std::process::id().to_string());
    command
}

/// A directory of its own for one test, removed afterwards.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("punctual-test-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a scratch directory");
        Scratch(dir)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), contents).expect("a scratch file");
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

/// A cell on `cpus` that needs no privilege unless `policy` does.
pub(crate) fn cell(policy: &str, load: &str, cpus: &str, duration: &str) -> Cell {
    Cell {
        kernel: model::Kernel::Running,
        load: load.parse().expect("a load"),
        policy: policy.parse().expect("a policy"),
        period: "1ms".parse().expect("a period"),
        method: model::Method::CLOCK_NANOSLEEP,
        cpus: cpus.parse().expect("CPUs"),
        duration: duration.parse().expect("a duration"),
        warm_up: model::Span(0),
        deadline: None,
        timer_slack: None,
        align: None,
        distance: None,
        lock_memory: false,
        cpu_dma_latency_us: None,
        load_cpus: None,
        load_policy: None,
        load_must_hold: None,
        prepare: model::Prepare::default(),
        explain: None,
        stop_above: None,
        on_spike: None,
        tracers: false,
        roles: model::Roles::default(),
    }
}

/// `punctual cell` with `cell` on its stdin, started by `command`.
pub(crate) fn start_cell(mut command: Command, cell: &Cell) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let json = serde_json::to_vec(cell).expect("a cell is JSON");
    child.stdin.take().expect("a pipe").write_all(&json).expect("the program reads its cell");
    child
}

/// Waits until a cell that was started with `--progress` says for the first time how it goes: about a second after its
/// threads were released.
pub(crate) fn wait_for_progress(child: &mut Child) {
    let words = child.stderr.as_mut().expect("a pipe");
    let mut byte = [0];
    while byte != *b"\n" {
        words.read_exact(&mut byte).expect("a line of progress");
    }
}

/// The record of a cell that was started.
#[track_caller]
pub(crate) fn record(mut child: Child) -> Record {
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("a record is UTF-8");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("words are UTF-8");
    let status = child.wait().expect("the program ends");
    assert!(status.success(), "{status}: {said}");
    serde_json::from_str(&text).unwrap_or_else(|err| panic!("{err}: {text}"))
}

/// A CPU that this process may use: the last one, which is the least busy on most machines.
pub(crate) fn a_cpu() -> u32 {
    rt::sys::sched::affinity(0).expect("own affinity").iter().last().expect("a CPU")
}

/// [`a_cpu`], and all others that this process may use; `None`, and the test says that it is skipped, where there are none.
pub(crate) fn a_cpu_and_the_others() -> Option<(CpuSet, CpuSet)> {
    let measured: CpuSet = [a_cpu()].into_iter().collect();
    let others = rt::sys::sched::affinity(0).expect("own affinity").minus(&measured);
    if others.is_empty() {
        eprintln!("skipped: needs two CPUs");
        return None;
    }
    Some((measured, others))
}

/// Whether this test may do what needs root; otherwise it says that it is skipped.
pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("own status");
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).and_then(|ids| ids.split_whitespace().nth(1));
    let is_root = uid == Some("0");
    if !is_root {
        eprintln!("skipped: needs root");
    }
    is_root
}

/// Whether `program` is installed; otherwise the test says that it is skipped.
pub(crate) fn is_installed(program: &str, package: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: needs {program} (apt-get install {package})");
    }
    found
}

/// Ids of the processes that tests of this run have started, their descendants included.
pub(crate) fn running() -> Vec<u32> {
    let mark = format!("{MARK}={}", std::process::id()).into_bytes();
    let is_ours = |entry: &std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark)
    };
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes.filter(is_ours).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The names of what this program makes for loads: directories in `/var/tmp`, control groups.
pub(crate) fn traces() -> Vec<String> {
    let directories = ["/var/tmp", "/tmp", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let entries = directories.iter().flat_map(std::fs::read_dir).flatten().flatten();
    let paths = entries.map(|entry| entry.path().display().to_string());
    paths.filter(|path| path.contains("punctual-load-")).collect()
}

/// Waits until `condition` holds, 10 s at most; says whether it came to hold.
pub(crate) fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    (0..1000).any(|_| {
        condition() || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            false
        }
    })
}

/// Whether every thread of the process is stopped: state T in field 3, behind the name (proc_pid_stat(5)).
pub(crate) fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut stats = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    stats.all(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
}
