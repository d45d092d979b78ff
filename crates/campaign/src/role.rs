//! A command of this program on another machine, which ends when its stdin is closed.
//!
//! `ssh`, or another command that reaches the machine, is a child of this process. When this process ends, for whatever
//! reason, the pipe closes and `punctual supervise-role` on the other machine ends the command.

mod transport;

use cell::child;
use model::{Site, Span};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Timeout until a role is ready: connecting, sending this program, starting a load.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout until a role has ended: its load, then the connection.
const STOP_TIMEOUT: Duration = Duration::from_secs(25);
/// Interval of checking for a stop request, while nothing is measured.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Limits of the quoted stderr of a role: lines, and characters of each line.
const MAX_ERROR_LINES: usize = 4;
const MAX_LINE_CHARS: usize = 300;

/// Suffix of the line that a role command prints when it is ready.
const READY: &str = "; Ctrl-C ends it";

/// Description of a role to start.
#[derive(Debug)]
pub(crate) struct RoleCommand<'a> {
    /// Name for messages: `target`.
    pub(crate) role: &'static str,
    pub(crate) site: &'a Site,
    /// Arguments for this program.
    pub(crate) command: Vec<String>,
    /// Input for its stdin.
    pub(crate) input: Option<String>,
    /// Timeout after which it ends by itself: the connection may be lost without notice.
    pub(crate) at_most: Span,
}

/// Events of a role.
#[derive(Debug)]
enum Event {
    /// Handshake line: whether this program is installed there.
    Handshake(String),
    /// A line on stderr.
    Line(String),
    /// End of stdout, with its content.
    Ended(Vec<u8>),
    /// Request to end the wait.
    Stop,
}

/// A running role. Dropping it ends the command and waits for it.
#[derive(Debug)]
pub(crate) struct RunningRole {
    /// Role and site.
    name: String,
    child: Child,
    /// Sender of files for its stdin; dropping it closes stdin.
    stdin: Option<Sender<File>>,
    events: Receiver<Event>,
    /// Sender for [`Event::Stop`].
    stop: Sender<Event>,
    has_exited: Arc<AtomicBool>,
}

impl RunningRole {
    /// Starts a role; `on_exit` is called when it has ended.
    ///
    /// # Errors
    /// One line: the role and the reason why it cannot be started; also if `is_stop_requested` is set.
    pub(crate) fn start(
        command: &RoleCommand<'_>,
        is_stop_requested: &AtomicBool,
        on_exit: impl FnOnce() + Send + 'static,
    ) -> Result<RunningRole, String> {
        let name = format!("{} {}", command.role, command.site);
        let failed = |err: &dyn std::fmt::Display| format!("{name}: {err}");
        let (mut process, has_handshake) = transport::command(command).map_err(|err| failed(&err))?;
        let program = process.get_program().to_string_lossy().into_owned();
        let mut child = process.spawn().map_err(|err| failed(&format!("cannot start {program}: {err}")))?;
        let missing = || failed(&"no pipe to it");
        let mut stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let (sender, events) = channel();
        let (files, to_send) = channel::<File>();
        let send = move || while to_send.recv().is_ok_and(|mut file| io::copy(&mut file, &mut stdin).is_ok()) {};
        let (lines, stop, has_exited) = (sender.clone(), sender.clone(), Arc::new(AtomicBool::new(false)));
        let gone = Arc::clone(&has_exited);
        let listen = move || {
            let text = read_stdout(stdout, has_handshake, &sender);
            gone.store(true, Relaxed);
            let _ = sender.send(Event::Ended(text));
            on_exit();
        };
        let threads = Builder::new()
            .spawn(send)
            .and_then(|_| Builder::new().spawn(move || read_stderr(stderr, &lines)))
            .and_then(|_| Builder::new().spawn(listen));
        if let Err(err) = threads {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(&host::no_thread(&err)));
        }
        let mut running = RunningRole { name, child, stdin: Some(files), events, stop, has_exited };
        if has_handshake {
            running.provide(is_stop_requested)?;
        }
        Ok(running)
    }

    /// Waits until the role reports that it is ready.
    ///
    /// # Errors
    /// One line: the reason why it is not ready.
    pub(crate) fn wait_until_ready(&mut self, is_stop_requested: &AtomicBool) -> Result<(), String> {
        let mut lines = Vec::new();
        let until = Instant::now() + READY_TIMEOUT;
        loop {
            match self.next(is_stop_requested, until)? {
                Event::Line(line) if line.ends_with(READY) => return Ok(()),
                Event::Line(line) => lines.push(line),
                Event::Ended(_) => return Err(self.failure(lines)),
                Event::Handshake(_) | Event::Stop => {}
            }
        }
    }

    /// Sends this program if it is missing there.
    fn provide(&mut self, is_stop_requested: &AtomicBool) -> Result<(), String> {
        let mut lines = Vec::new();
        let until = Instant::now() + READY_TIMEOUT;
        loop {
            match self.next(is_stop_requested, until)? {
                Event::Handshake(handshake) => {
                    let Some(lacks) = handshake.strip_prefix(transport::LACKS) else { return Ok(()) };
                    let failed = |reason: String| format!("{}: {reason}", self.name);
                    transport::can_send(lacks).map_err(failed)?;
                    let program = File::open(host::THIS_PROGRAM).map_err(|err| failed(err.to_string()))?;
                    // If the role has ended meanwhile, the next event reports it.
                    let _ = self.stdin.as_ref().map(|stdin| stdin.send(program));
                    return Ok(());
                }
                Event::Line(line) => lines.push(line),
                Event::Ended(_) => return Err(self.failure(lines)),
                Event::Stop => {}
            }
        }
    }

    fn next(&self, is_stop_requested: &AtomicBool, until: Instant) -> Result<Event, String> {
        loop {
            // Read before the wait: the end of the role sends its event first and then requests a stop.
            let is_asked = is_stop_requested.load(Relaxed);
            match self.events.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Event::Ended(Vec::new())),
            }
            if is_asked {
                return Err(format!("{}: interrupted before it was ready", self.name));
            }
            if Instant::now() >= until {
                return Err(format!("{}: timeout: not ready after {} s", self.name, READY_TIMEOUT.as_secs()));
            }
        }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_exited(&self) -> bool {
        self.has_exited.load(Relaxed)
    }

    /// The error of a role that has ended by itself.
    pub(crate) fn exit_error(mut self) -> String {
        self.failure(Vec::new())
    }

    /// Returns a function that ends the wait in [`RunningRole::listen`].
    pub(crate) fn stopper(&self) -> impl Fn() + Send + use<> {
        let stop = self.stop.clone();
        move || drop(stop.send(Event::Stop))
    }

    /// Passes every line of stderr to `hear` until the role has ended; returns its output.
    ///
    /// # Errors
    /// One line: the reason of its failure.
    pub(crate) fn listen(mut self, mut hear: impl FnMut(&str) -> bool) -> Result<Vec<u8>, String> {
        let mut lines = Vec::new();
        loop {
            match self.events.recv() {
                Ok(Event::Line(line)) if hear(&line) => {}
                Ok(Event::Line(line)) => lines.push(line),
                Ok(Event::Stop) => self.stdin = None,
                Ok(Event::Handshake(_)) => {}
                Ok(Event::Ended(text)) => return self.outcome(text, lines),
                Err(_) => return self.outcome(Vec::new(), lines),
            }
        }
    }

    /// Closes stdin, waits for the end, and returns the output.
    ///
    /// # Errors
    /// One line: the reason of its failure.
    pub(crate) fn end(mut self) -> Result<Vec<u8>, String> {
        self.stdin = None;
        self.listen(|_| false)
    }

    fn outcome(&mut self, text: Vec<u8>, lines: Vec<String>) -> Result<Vec<u8>, String> {
        let status = self.shut_down().map_err(|err| format!("{}: {err}", self.name))?;
        if status.success() { Ok(text) } else { Err(self.failure(lines)) }
    }

    /// The error for a role that ended early, with the last lines of its stderr.
    fn failure(&mut self, mut lines: Vec<String>) -> String {
        let status = self.shut_down();
        let until = Instant::now() + Duration::from_secs(1);
        // Its stderr may be read later than its stdout.
        while let Ok(event) = self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Event::Line(line) = event {
                lines.push(line);
            }
        }
        let last = lines.len().saturating_sub(MAX_ERROR_LINES);
        let reason = child::reason(lines.get(last..).unwrap_or_default()).unwrap_or_else(|| match status {
            Ok(status) => format!("exited ({status}) without a message"),
            Err(err) => err.to_string(),
        });
        format!("{}: {reason}", self.name)
    }

    /// Closes its stdin and waits until it has ended; it is killed after the timeout, which closes the connection.
    fn shut_down(&mut self) -> io::Result<ExitStatus> {
        self.stdin = None;
        let until = Instant::now() + STOP_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= until {
                self.child.kill()?;
                return self.child.wait();
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for RunningRole {
    fn drop(&mut self) {
        let _ = self.shut_down();
    }
}

/// Forwards every line as an event.
fn read_stderr(stderr: ChildStderr, events: &Sender<Event>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let line: String = line.trim().chars().filter(|c| model::is_plain(*c)).take(MAX_LINE_CHARS).collect();
        let is_over = !line.is_empty() && events.send(Event::Line(line)).is_err();
        if is_over {
            return;
        }
    }
}

/// Reads stdout to its end; output before the handshake, for example of a login shell, is skipped.
fn read_stdout(stdout: ChildStdout, has_handshake: bool, events: &Sender<Event>) -> Vec<u8> {
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    while has_handshake && stdout.read_line(&mut line).is_ok_and(|n| n > 0) {
        if let Some(handshake) = line.trim_end().strip_prefix(transport::HANDSHAKE) {
            let _ = events.send(Event::Handshake(handshake.to_owned()));
            break;
        }
        line.clear();
    }
    let mut text = Vec::new();
    let _ = stdout.read_to_end(&mut text);
    text
}
