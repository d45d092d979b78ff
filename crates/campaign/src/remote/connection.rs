//! A command on another machine behind a local one (`ssh`, `exec:`), with its output as events.
//!
//! The local command is a child of this process. When this process ends, for whatever reason, the pipe to its stdin
//! closes, and what runs on the other machine ends.

use cell::child;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Timeout of a start, from the last byte that was sent or received. A slow link may need much longer in all.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout until a command has ended: its load, then the connection.
const STOP_TIMEOUT: Duration = Duration::from_secs(25);
/// Interval of checking for a stop request, while nothing is measured.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes written at once; each write counts as progress.
const SENT_AT_ONCE: usize = 16 << 10;
/// Size limit of a line on stdout, bytes. A record has some hundred kB.
const LONGEST_LINE: u64 = 256 << 20;
/// Limits of the quoted stderr: lines, and characters of each line.
const MAX_ERROR_LINES: usize = 4;
const MAX_LINE_CHARS: usize = 300;

/// Events of a connection.
#[derive(Debug)]
pub(super) enum Event {
    /// A line on stdout.
    Output(String),
    /// A line on stderr.
    Message(String),
    /// Bytes were sent.
    Sent,
    /// End of stdout.
    Ended,
    /// End of stderr.
    Silent,
    /// Request to end the wait.
    Stop,
}

/// A started command. Dropping it closes its stdin, which ends it, and waits for it.
#[derive(Debug)]
pub(super) struct Connection {
    /// Name for messages: role and site.
    pub(super) name: String,
    child: Child,
    /// Sender of bytes for its stdin; dropping it closes stdin.
    stdin: Option<Sender<Arc<[u8]>>>,
    events: Receiver<Event>,
    /// Sender for [`Event::Stop`].
    stop: Sender<Event>,
    has_ended: Arc<AtomicBool>,
    /// Lines of stderr that nothing has used.
    messages: Vec<String>,
    is_silent: bool,
}

impl Connection {
    /// Starts `command`, whose stdio is piped; `on_end` is called when its stdout has ended.
    ///
    /// # Errors
    /// One line that begins with `name`.
    pub(super) fn open(
        name: String,
        mut command: Command,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Connection, String> {
        let failed = |err: &dyn std::fmt::Display| format!("{name}: {err}");
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|err| failed(&format!("cannot start {program}: {err}")))?;
        let missing = || failed(&"no pipe to it");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let (events_tx, events) = channel();
        let (stdin_tx, to_send) = channel();
        let has_ended = Arc::new(AtomicBool::new(false));
        let (ended, sent, messages, stop) =
            (Arc::clone(&has_ended), events_tx.clone(), events_tx.clone(), events_tx.clone());
        let read = move || {
            read_stdout(stdout, &events_tx);
            ended.store(true, Relaxed);
            let _ = events_tx.send(Event::Ended);
            on_end();
        };
        let threads = Builder::new()
            .spawn(move || send(stdin, &to_send, &sent))
            .and_then(|_| Builder::new().spawn(move || read_stderr(stderr, &messages)))
            .and_then(|_| Builder::new().spawn(read));
        if let Err(err) = threads {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(&host::no_thread(&err)));
        }
        let (stdin, messages) = (Some(stdin_tx), Vec::new());
        Ok(Connection { name, child, stdin, events, stop, has_ended, messages, is_silent: false })
    }

    /// Sends bytes to its stdin, later and in order. If it ends meanwhile, the next event reports that.
    pub(super) fn send(&self, bytes: Arc<[u8]>) {
        let _ = self.stdin.as_ref().map(|stdin| stdin.send(bytes));
    }

    /// Closes its stdin.
    pub(super) fn close(&mut self) {
        self.stdin = None;
    }

    /// Whether its stdout has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }

    /// Returns a function that sends [`Event::Stop`].
    pub(super) fn stopper(&self) -> impl Fn() + Send + use<> {
        let stop = self.stop.clone();
        move || drop(stop.send(Event::Stop))
    }

    /// The next event, without a timeout.
    pub(super) fn next(&mut self) -> Event {
        let event = self.events.recv().unwrap_or(Event::Ended);
        self.is_silent |= matches!(event, Event::Silent);
        event
    }

    /// The next event of a start. Bytes that are sent are events too.
    ///
    /// # Errors
    /// One line: a stop request, or nothing has moved for [`IDLE_TIMEOUT`].
    pub(super) fn next_of_start(&mut self, is_stop_requested: &AtomicBool) -> Result<Event, String> {
        let until = Instant::now() + IDLE_TIMEOUT;
        loop {
            // Read before the wait: the end of a role sends its event first and then requests a stop.
            let is_asked = is_stop_requested.load(Relaxed);
            match self.events.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(event) => {
                    self.is_silent |= matches!(event, Event::Silent);
                    return Ok(event);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Event::Ended),
            }
            if is_asked {
                return Err(format!("{}: interrupted before it was ready", self.name));
            }
            if Instant::now() >= until {
                let seconds = IDLE_TIMEOUT.as_secs();
                return Err(format!("{}: timeout: not ready, and nothing sent or received for {seconds} s", self.name));
            }
        }
    }

    /// Keeps a line of stderr for [`Connection::failure`].
    pub(super) fn keep(&mut self, message: String) {
        self.messages.push(message);
    }

    /// Closes its stdin, waits for its end, and returns its status.
    ///
    /// # Errors
    /// One line.
    pub(super) fn end(&mut self) -> Result<ExitStatus, String> {
        self.shut_down().map_err(|err| format!("{}: {err}", self.name))
    }

    /// The error of a command that has ended early, with the last lines of its stderr.
    pub(super) fn failure(&mut self) -> String {
        let status = self.shut_down();
        let until = Instant::now() + Duration::from_secs(1);
        // Its stderr may be read later than its stdout.
        while !self.is_silent
            && let Ok(event) = self.events.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            match event {
                Event::Message(line) => self.messages.push(line),
                Event::Silent => self.is_silent = true,
                _ => {}
            }
        }
        let last = self.messages.len().saturating_sub(MAX_ERROR_LINES);
        let reason = child::reason(self.messages.get(last..).unwrap_or_default()).unwrap_or_else(|| match status {
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

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.shut_down();
    }
}

/// Writes what it receives, until the channel or the pipe is closed.
fn send(mut stdin: ChildStdin, to_send: &Receiver<Arc<[u8]>>, events: &Sender<Event>) {
    for bytes in to_send {
        for part in bytes.chunks(SENT_AT_ONCE) {
            if stdin.write_all(part).is_err() {
                return;
            }
            let _ = events.send(Event::Sent);
        }
    }
}

/// Forwards every line of stderr.
fn read_stderr(stderr: ChildStderr, events: &Sender<Event>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let line: String = line.trim().chars().filter(|c| model::is_plain(*c)).take(MAX_LINE_CHARS).collect();
        if !line.is_empty() && events.send(Event::Message(line)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Silent);
}

/// Forwards every line of stdout, to its end or to a line that is too long.
fn read_stdout(stdout: ChildStdout, events: &Sender<Event>) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    while stdout.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        if line.len() as u64 >= LONGEST_LINE {
            let message = format!("more than {} MiB in one line on its stdout", LONGEST_LINE >> 20);
            let _ = events.send(Event::Message(message));
            return;
        }
        let text = String::from_utf8_lossy(&line).into_owned();
        line.clear();
        if events.send(Event::Output(text)).is_err() {
            return;
        }
    }
}
