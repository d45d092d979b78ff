//! QEMU as a process that is talked to and that ends with this one.

use super::LabError;
use super::guest::END;
use model::{Policy, RtPriority};
use rt::sys::usage;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

pub(super) const QEMU: &str = "qemu-system-x86_64";

/// Devices of every guest: none but those named here. A guest that starts again, as it does when
/// it panics, ends.
const MACHINE: &[&str] = &[
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-no-reboot",
    "-M",
    "pc",
    "-chardev",
    "stdio,id=control,signal=off",
    "-mon",
    "chardev=control,mode=control",
];

/// How often to look whether a guest is still wanted.
const LOOK: Duration = Duration::from_millis(20);

/// When to give up on a guest.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    /// Whether nobody wants its result any more.
    pub(super) is_asked: &'a dyn Fn() -> bool,
    /// How much CPU time it may take: this machine may be busy, a guest is not.
    pub(super) cpu: Duration,
    /// How long it may take, for one that has nothing to do and does not end.
    pub(super) wall: Duration,
}

/// Why a guest is no more, or must not go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Gone {
    /// QEMU ended.
    #[error("ended with {QEMU} ({status}), which said: {said}")]
    Ended {
        /// How.
        status: ExitStatus,
        /// Its last line on stderr.
        said: String,
    },
    /// It is no more wanted.
    #[error("was ended by a signal")]
    Asked,
    /// It took too long.
    #[error("gave no record within {0}; ended")]
    TooLong(String),
    /// It refused a command.
    #[error("cannot go on: {QEMU} says: {0}")]
    Refused(String),
    /// It cannot be started or looked at.
    #[error("cannot be talked to: {0}")]
    Process(#[from] std::io::Error),
}

/// The version that QEMU gives itself, the first line of what it says; asked once. `None` when it cannot be started.
pub(super) fn version() -> Option<&'static str> {
    static SAID: LazyLock<Option<String>> = LazyLock::new(|| {
        let output = Command::new(QEMU).arg("--version").stdin(Stdio::null()).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
    });
    SAID.as_deref()
}

/// A QEMU; it ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Qemu {
    child: Child,
    input: Option<ChildStdin>,
    /// What it says: answers and events, one JSON value a line (QEMU Machine Protocol).
    said: Receiver<Value>,
    events: Vec<String>,
    began: Instant,
}

impl Qemu {
    /// Starts QEMU with these arguments, beside those that every guest has.
    pub(super) fn start(arguments: Vec<OsString>) -> Result<Qemu, LabError> {
        let mut command = Command::new(crate::host::THIS_PROGRAM);
        command.args(["launch", "--parent", &std::process::id().to_string(), "--", QEMU]).args(MACHINE);
        command.args(["-device", &format!("isa-debug-exit,iobase={END},iosize=1")]);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|err| LabError::program(QEMU, err))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (tell, said) = channel();
        std::thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok));
            lines.filter_map(|line| serde_json::from_str(&line).ok()).try_for_each(|value| tell.send(value))
        });
        Ok(Qemu { child, input, said, events: Vec::new(), began: Instant::now() })
    }

    /// Allows commands; the first that has to be said.
    pub(super) fn greet(&mut self, limits: Limits<'_>) -> Result<(), Gone> {
        self.ask("qmp_capabilities", json!({}), limits).map(drop)
    }

    /// Has QEMU's main loop, which its first thread runs, go before that of the guest's CPU whenever it has something to do. Both
    /// have one CPU of this machine ([`super::one_cpu`]): so the main loop is never found half way when a CPU of the guest halts.
    /// It sleeps when it has nothing to do; what it has to comes from the guest, which has limits. Without the right to, it stays as it is.
    pub(super) fn let_main_loop_go_first(&self) {
        let first = RtPriority::new(1).map(Policy::Fifo);
        let _ = first.map(|first| rt::sys::sched::set_policy(self.child.id(), first));
    }

    /// What QEMU answers to a command.
    pub(super) fn ask(&mut self, command: &str, arguments: Value, limits: Limits<'_>) -> Result<Value, Gone> {
        let line = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        // One that has just ended does not listen; why it ended is found below.
        let _ = self.input.as_mut().map(|input| input.write_all(line.as_bytes()));
        loop {
            let mut value = self.hear(limits)?;
            match (value.get_mut("return").map(Value::take), &value["error"]["desc"], &value["event"]) {
                (Some(answer), ..) => return Ok(answer),
                (None, Value::String(reason), _) => return Err(Gone::Refused(format!("{command}: {reason}"))),
                (None, _, Value::String(event)) => self.events.push(event.clone()),
                _ => {}
            }
        }
    }

    /// Waits until the guest tells that something has happened, if it has not before.
    pub(super) fn wait_for(&mut self, event: &str, limits: Limits<'_>) -> Result<(), Gone> {
        while !self.events.iter().any(|before| before == event) {
            let value = self.hear(limits)?;
            self.events.extend(value["event"].as_str().map(str::to_owned));
        }
        Ok(())
    }

    /// Waits until QEMU has ended, as its guest tells it to.
    pub(super) fn wait(&mut self, limits: Limits<'_>) -> Result<(), Gone> {
        loop {
            match self.hear(limits) {
                Err(Gone::Ended { status, .. }) if matches!(status.code(), Some(0 | 1)) => return Ok(()),
                Err(gone) => return Err(gone),
                Ok(_) => {}
            }
        }
    }

    /// The next thing that it says.
    fn hear(&mut self, limits: Limits<'_>) -> Result<Value, Gone> {
        loop {
            match self.said.recv_timeout(LOOK) {
                Ok(value) => return Ok(value),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
            let cpu =
                usage::cpu_time_of(self.child.id()).map_or(Duration::ZERO, |used| Duration::from_nanos(used.ns()));
            match () {
                () if (limits.is_asked)() => return Err(Gone::Asked),
                () if cpu > limits.cpu => return Err(Gone::TooLong(format!("{} s of CPU time", limits.cpu.as_secs()))),
                () if self.began.elapsed() > limits.wall => {
                    return Err(Gone::TooLong(format!("{} s", limits.wall.as_secs())));
                }
                () => {}
            }
        }
    }

    /// Why it is no more, or must not go on; `None` when it still runs after `a_while`.
    pub(super) fn has_gone(&mut self, limits: Limits<'_>, a_while: Duration) -> Option<Gone> {
        std::thread::sleep(a_while);
        match (self.child.try_wait(), (limits.is_asked)(), self.began.elapsed() > limits.wall) {
            (Ok(None), false, false) => None,
            (Ok(None), true, _) => Some(Gone::Asked),
            (Ok(None), false, true) => Some(Gone::TooLong(format!("{} s", limits.wall.as_secs()))),
            _ => Some(self.ended()),
        }
    }

    /// How it ended; it has closed its output.
    fn ended(&mut self) -> Gone {
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        let status = match self.child.wait() {
            Ok(status) => status,
            Err(err) => return Gone::Process(err),
        };
        let by_signal = status.signal().map(|_| "nothing; it was killed").unwrap_or("nothing");
        Gone::Ended { status, said: said.lines().last().unwrap_or(by_signal).to_owned() }
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // Fails for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
