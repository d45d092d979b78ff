//! QEMU as a child process, controlled with the QEMU Machine Protocol (QMP).

use super::platform::Platform;
use super::{LabError, Monitor};
use punctual_host::{Lines, OutputLimit, TooMuchOutput, output_of};
use punctual_model::{ClockId, GuestStop, LabClock, Policy, RtPriority};
use punctual_sys::storage::bounded_memory_file;
use punctual_sys::usage;
use punctual_sys::waited::Waited;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Machine of every guest: no default devices. A guest that restarts, as after a panic, ends.
const MACHINE: &[&str] = &[
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-no-reboot",
    "-chardev",
    "stdio,id=control,signal=off",
    "-mon",
    "chardev=control,mode=control",
];

/// Limit of what QEMU says in QMP, bytes. A guest has some ten events.
const QMP_BYTES: u64 = 16 << 20;
/// Limit of its stderr, bytes.
const STDERR_BYTES: u64 = 64 << 10;
/// Timeout of the end of a QEMU that has closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a QEMU without a guest: for its version, which takes 0.1 s, and for the KVM check, which takes 0.2 s.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval of checking for a stop request and the limits.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Limits of a guest.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    /// The stop flag and the messages of the caller.
    pub(super) monitor: Monitor<'a>,
    /// CPU time limit: independent of the load of the host.
    pub(super) cpu: Duration,
    /// Timeout without any CPU time used: the guest then waits for an event that does not come. Elapsed wall-clock time
    /// is no criterion, because the host may be arbitrarily busy.
    pub(super) stall: Duration,
    /// Console of a guest that boots: it ends sooner while its kernel has printed nothing.
    pub(super) console: Option<&'a Path>,
}

/// CPU time limit of a guest whose kernel has printed nothing, in which kernels boot as a whole.
const SILENT_CPU: Duration = Duration::from_secs(30);
/// Its timeout without any CPU time used.
const SILENT_STALL: Duration = Duration::from_secs(60);

impl<'a> Limits<'a> {
    /// The limits until the guest with this console is at rest.
    pub(super) fn booting(self, console: &'a Path) -> Limits<'a> {
        Limits { console: Some(console), ..self }
    }

    /// Whether the kernel has printed nothing since the guest began to boot.
    fn is_silent(self) -> bool {
        self.console.is_some_and(|console| console.metadata().is_ok_and(|console| console.len() == 0))
    }
}

/// Progress of a QEMU process, measured by its CPU time.
#[derive(Debug)]
struct Progress {
    cpu: Duration,
    /// The time waited when it was first seen.
    since: Duration,
}

impl Progress {
    /// The error if a limit is exceeded, given `cpu` time used and the time waited.
    fn check_limits(&mut self, cpu: Duration, waited: Duration, limits: Limits<'_>) -> Option<QemuError> {
        if cpu > self.cpu {
            *self = Progress { cpu, since: waited };
        }
        let stalled = waited.saturating_sub(self.since);
        let used = |cpu: Duration| format!("{} s of CPU time", cpu.as_secs());
        let unused = |stall: Duration| format!("{} s without using CPU time", stall.as_secs());
        match () {
            () if cpu > SILENT_CPU && limits.is_silent() => Some(QemuError::Silent(used(SILENT_CPU))),
            () if stalled > SILENT_STALL && limits.is_silent() => Some(QemuError::Silent(unused(SILENT_STALL))),
            () if cpu > limits.cpu => Some(QemuError::TimedOut(used(limits.cpu))),
            () if stalled > limits.stall => Some(QemuError::TimedOut(unused(limits.stall))),
            () => None,
        }
    }
}

/// Reason why a guest ended or must be ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum QemuError {
    /// QEMU exited.
    #[error("{program} exited ({status}): {said}")]
    Exited {
        /// Name of the program.
        program: &'static str,
        /// Exit status.
        status: ExitStatus,
        /// Its last line on stderr.
        said: String,
    },
    /// A stop was requested.
    #[error("interrupted")]
    Stopped,
    /// QEMU says too much.
    #[error("QEMU: {0}; killed")]
    TooMuch(#[from] TooMuchOutput),
    /// A limit was exceeded.
    #[error("timeout: no record after {0}; killed")]
    TimedOut(String),
    /// The kernel did not begin to boot.
    #[error(
        "timeout: the kernel printed nothing in {0}; killed; check its memory (mem=), its architecture, and that it has \
         a serial console"
    )]
    Silent(String),
    /// QEMU rejected a command.
    #[error("QEMU reports: {0}")]
    Refused(String),
    /// QEMU cannot be started, or its state cannot be read.
    #[error("cannot control QEMU: {0}")]
    Process(#[from] std::io::Error),
}

impl QemuError {
    /// This error, unless it is that the guest has ended QEMU.
    pub(super) fn unless_ended_by_guest(self) -> Result<(), QemuError> {
        match self {
            QemuError::Exited { status, .. } if matches!(status.code(), Some(0 | 1)) => Ok(()),
            gone => Err(gone),
        }
    }
}

/// Longest version, characters.
const LONGEST_VERSION: usize = 200;

/// The version of QEMU, the first line of `program --version`; queried once. `None` when it cannot be started.
pub(super) fn version(program: &'static str) -> Option<String> {
    static VERSIONS: Mutex<BTreeMap<&str, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut versions = VERSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let query = || {
        let output = output_of(Command::new(program).arg("--version").stdin(Stdio::null()), CHECK_TIMEOUT).ok()?;
        let line = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
        Some(punctual_model::plain(&line).chars().take(LONGEST_VERSION).collect())
    };
    versions.entry(program).or_insert_with(query).clone()
}

/// An event of QEMU.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    name: String,
    /// Time by the host's real-time clock, us.
    at_us: u64,
}

impl Event {
    fn of(value: &Value) -> Option<Event> {
        let time = |part: &str| value["timestamp"][part].as_u64().unwrap_or_default();
        let at_us = time("seconds").saturating_mul(1_000_000).saturating_add(time("microseconds"));
        Some(Event { name: value["event"].as_str()?.to_owned(), at_us })
    }
}

/// The stops among `events` after the first start; the clock of these is `ahead_us` of `CLOCK_MONOTONIC`.
fn stops(events: &[Event], ahead_us: i64) -> Vec<GuestStop> {
    let monotonic_ns = |event: &Event| event.at_us.saturating_add_signed(-ahead_us).saturating_mul(1000);
    let mut stops = Vec::new();
    let mut since = None;
    for event in events.iter().skip_while(|event| event.name != "RESUME") {
        match event.name.as_str() {
            "STOP" => since = Some(monotonic_ns(event)),
            "RESUME" => stops.extend(since.take().map(|from_ns| GuestStop { from_ns, to_ns: monotonic_ns(event) })),
            _ => {}
        }
    }
    stops
}

/// A QEMU process; it is killed when this value is dropped.
#[derive(Debug)]
pub(super) struct Qemu {
    program: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    /// Its responses and events, one JSON value a line (QMP).
    said: Receiver<Result<Value, TooMuchOutput>>,
    stderr: File,
    events: Vec<Event>,
    progress: Progress,
    waited: Waited,
}

impl Qemu {
    /// Starts QEMU's `program` with these arguments, in addition to those of every guest.
    pub(super) fn start(program: &'static str, arguments: Vec<OsString>) -> Result<Qemu, LabError> {
        let mut command = Command::new(punctual_host::THIS_PROGRAM);
        command.args(["launch", "--parent", &std::process::id().to_string(), "--", program]);
        command.args(MACHINE);
        let failed = |err: io::Error| LabError::program(program, err);
        let stderr = bounded_memory_file("qemu", STDERR_BYTES).map_err(failed)?;
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(stderr.try_clone().map_err(failed)?).spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let progress = Progress { cpu: Duration::ZERO, since: Duration::ZERO };
        let (tell, said) = channel();
        let listening = std::thread::Builder::new().spawn(move || {
            let limit = OutputLimit::new(QMP_BYTES);
            let lines = output.into_iter().flat_map(|output| Lines::new(output, &limit));
            let value =
                |line: Result<String, _>| line.map(|line| serde_json::from_slice(line.as_bytes()).ok()).transpose();
            lines.filter_map(value).try_for_each(|value| tell.send(value))
        });
        if let Err(err) = listening {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(err));
        }
        Ok(Qemu { program, child, input, said, stderr, events: Vec::new(), progress, waited: Waited::begin() })
    }

    /// Its process ID, which stays valid while this value exists.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Enters command mode of QMP; the first command of a connection.
    pub(super) fn negotiate(&mut self, limits: Limits<'_>) -> Result<(), QemuError> {
        self.execute("qmp_capabilities", json!({}), limits).map(drop)
    }

    /// Gives QEMU's main loop, which its first thread runs, priority over the vCPU thread. Both share one host CPU
    /// ([`super::one_cpu`]), so the main loop is never halfway done when a vCPU halts. It sleeps when idle; its work
    /// comes from the guest, which has limits. Without the privilege the policy stays as it is.
    pub(super) fn raise_main_loop_priority(&self) {
        let first = RtPriority::new(1).map(Policy::Fifo);
        let _ = first.map(|first| punctual_sys::sched::set_policy(self.child.id(), first));
    }

    /// Sends a command and returns the response.
    pub(super) fn execute(&mut self, command: &str, arguments: Value, limits: Limits<'_>) -> Result<Value, QemuError> {
        let line = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        // The write fails if QEMU has just ended; the reason is found below.
        let _ = self.input.as_mut().map(|input| input.write_all(line.as_bytes()));
        loop {
            let mut value = self.receive(limits)?;
            match (value.get_mut("return").map(Value::take), &value["error"]["desc"]) {
                (Some(answer), _) => return Ok(answer),
                (None, Value::String(reason)) => return Err(QemuError::Refused(format!("{command}: {reason}"))),
                _ => {}
            }
        }
    }

    /// Carries out a command of QEMU's monitor for people; returns what it prints.
    pub(super) fn monitor(&mut self, command: &str, limits: Limits<'_>) -> Result<String, QemuError> {
        let answer = self.execute("human-monitor-command", json!({ "command-line": command }), limits)?;
        Ok(answer.as_str().unwrap_or_default().trim().to_owned())
    }

    /// Waits for an event of QEMU, unless it was received before.
    pub(super) fn wait_for(&mut self, event: &str, limits: Limits<'_>) -> Result<(), QemuError> {
        while !self.events.iter().any(|before| before.name == event) {
            self.receive(limits)?;
        }
        Ok(())
    }

    /// Times for which the guest was stopped on request since it went on from its rest.
    pub(super) fn stops(&self) -> Vec<GuestStop> {
        stops(&self.events, punctual_host::offset_from_monotonic_ns(ClockId::Realtime) / 1000)
    }

    /// Waits until QEMU has exited on request of its guest.
    pub(super) fn wait(&mut self, limits: Limits<'_>) -> Result<(), QemuError> {
        loop {
            if let Err(gone) = self.receive(limits) {
                return gone.unless_ended_by_guest();
            }
        }
    }

    /// Lets the paused guest go on. On a busy machine a short job may be over before QEMU answers.
    pub(super) fn go_on(&mut self, limits: Limits<'_>) -> Result<(), QemuError> {
        self.execute("cont", json!({}), limits).map(drop).or_else(QemuError::unless_ended_by_guest)
    }

    /// The next response or event.
    fn receive(&mut self, limits: Limits<'_>) -> Result<Value, QemuError> {
        loop {
            match self.said.recv_timeout(POLL_INTERVAL) {
                Ok(value) => {
                    let value = value?;
                    self.events.extend(Event::of(&value));
                    return Ok(value);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
            if let Some(gone) = self.limit_exceeded(limits) {
                return Err(gone);
            }
        }
    }

    fn limit_exceeded(&mut self, limits: Limits<'_>) -> Option<QemuError> {
        if (limits.monitor.is_stopped)() {
            return Some(QemuError::Stopped);
        }
        let cpu = usage::cpu_time_of(self.child.id()).map_or(Duration::ZERO, |used| Duration::from_nanos(used.ns()));
        self.progress.check_limits(cpu, self.waited.look(), limits)
    }

    /// The error if QEMU has exited or exceeds a limit; `None` when it still runs after `interval`.
    pub(super) fn has_exited(&mut self, limits: Limits<'_>, interval: Duration) -> Option<QemuError> {
        std::thread::sleep(interval);
        match self.child.try_wait() {
            Ok(None) => self.limit_exceeded(limits),
            _ => Some(self.ended()),
        }
    }

    /// The error for a QEMU that has closed its output.
    fn ended(&mut self) -> QemuError {
        let status = match punctual_host::end_within(&mut self.child, EXIT_TIMEOUT) {
            Ok(status) => status,
            Err(err) => return QemuError::Process(err),
        };
        let by_signal = status.signal().map(|_| "killed").unwrap_or("no message");
        let (program, said) = (self.program, punctual_host::written(&self.stderr).unwrap_or_default());
        let said = String::from_utf8_lossy(&said);
        QemuError::Exited { program, status, said: said.lines().last().unwrap_or(by_signal).to_owned() }
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // Fails if it has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const QMP_QUIT: &[u8] = b"{\"execute\":\"qmp_capabilities\"}\n{\"execute\":\"quit\"}\n";

/// QEMU's error message if KVM is not available; `None` where a machine can be created. Checked once.
pub(super) fn why_no_kvm(platform: &Platform) -> Option<&'static str> {
    static ERROR: OnceLock<Option<String>> = OnceLock::new();
    ERROR.get_or_init(|| check_kvm(platform).err()).as_deref()
}

fn check_kvm(platform: &Platform) -> Result<(), String> {
    let program = platform.qemu;
    let mut command = Command::new(program);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-S"]);
    command.args(platform.machine).args(platform.processor(LabClock::Kvm)).args(["-qmp", "stdio"]);
    let failed = |err: io::Error| err.to_string();
    let (stdin, mut commands) = io::pipe().map_err(failed)?;
    commands.write_all(QMP_QUIT).map_err(failed)?;
    let output = output_of(command.stdin(stdin), CHECK_TIMEOUT).map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let mut lines = message
        .lines()
        .map(|line| line.trim_start_matches(program).trim_start_matches(": ").trim_start_matches("error: "));
    // The first line is the reason, the following ones are its consequences.
    let timeout = CHECK_TIMEOUT.as_secs();
    Err(lines.next().map_or_else(|| format!("timeout: no virtual machine after {timeout} s"), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;

    #[test]
    fn stops_of_a_guest_are_those_after_its_rest() {
        let event = |name: &str, us: u64| {
            let time = json!({ "seconds": 1_700_000_000_u64 + us / 1_000_000, "microseconds": us % 1_000_000 });
            Event::of(&json!({ "event": name, "timestamp": time })).unwrap()
        };
        let ahead_us = 1_699_999_999_000_000;
        let mut events = vec![event("GUEST_PANICKED", 1), event("STOP", 2), event("RESUME", 500_000)];
        assert_eq!(stops(&events, ahead_us), []);
        events.extend([event("STOP", 999_990), event("NIC_RX_FILTER_CHANGED", 999_995), event("RESUME", 1_019_990)]);
        let one = GuestStop { from_ns: 1_999_990_000, to_ns: 2_019_990_000 };
        assert_eq!(stops(&events, ahead_us), [one]);
        events.push(event("STOP", 3_000_000));
        assert_eq!(stops(&events, ahead_us), [one], "it never went on");
        assert_eq!(Event::of(&json!({ "return": {} })), None);
    }

    #[test]
    fn the_timeout_of_a_guest_follows_its_cpu_time() {
        let monitor = Monitor { is_stopped: &|| false, say: &|_| () };
        let limits = Limits { monitor, cpu: Duration::new(60, 0), stall: Duration::new(300, 0), console: None };
        let seconds = |s: u64| Duration::new(s, 0);
        let mut progress = Progress { cpu: Duration::ZERO, since: Duration::ZERO };
        // A hundred hours on a machine that gives it a millisecond in five minutes.
        let ms = |n: u32| Duration::new(0, 1_000_000) * n;
        for n in 1..1200 {
            assert!(progress.check_limits(ms(n), seconds(300) * n, limits).is_none(), "{n}");
        }
        let last = seconds(300) * 1199;
        let said = |gone: Option<QemuError>| gone.map(|gone| gone.to_string());
        assert_eq!(said(progress.check_limits(ms(1199), last + seconds(300), limits)), None);
        assert_eq!(
            said(progress.check_limits(ms(1199), last + seconds(301), limits)).as_deref(),
            Some("timeout: no record after 300 s without using CPU time; killed")
        );
        assert_eq!(
            said(progress.check_limits(seconds(61), last, limits)).as_deref(),
            Some("timeout: no record after 60 s of CPU time; killed")
        );
    }

    #[test]
    fn a_kernel_that_prints_nothing_ends_sooner() {
        let scratch = Scratch::make();
        let (silent, speaking) = (scratch.path("silent"), scratch.path("speaking"));
        std::fs::write(&silent, "").unwrap();
        std::fs::write(&speaking, "L").unwrap();
        let monitor = Monitor { is_stopped: &|| false, say: &|_| () };
        let seconds = |s: u64| Duration::new(s, 0);
        let limits = Limits { monitor, cpu: seconds(1_000), stall: seconds(600), console: None };
        let advice = "; killed; check its memory (mem=), its architecture, and that it has a serial console";
        for (cpu, waited, said) in [
            (30, 30, None),
            (31, 31, Some("30 s of CPU time")),
            (0, 60, None),
            (0, 61, Some("60 s without using CPU time")),
        ] {
            let gone = |limits: Limits<'_>| {
                let mut progress = Progress { cpu: Duration::ZERO, since: Duration::ZERO };
                progress.check_limits(seconds(cpu), seconds(waited), limits).map(|gone| gone.to_string())
            };
            let expected = said.map(|said| format!("timeout: the kernel printed nothing in {said}{advice}"));
            assert_eq!(gone(limits.booting(&silent)), expected);
            assert_eq!((gone(limits.booting(&speaking)), gone(limits)), (None, None), "{cpu} {waited}");
        }
    }
}
