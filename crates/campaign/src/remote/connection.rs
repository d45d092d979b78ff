//! A command on another machine behind a local one (`ssh`, `exec:`), with its output as events.
//!
//! The local command is a child of this process. When this process ends, for whatever reason, the pipe to its stdin
//! closes, and what runs on the other machine ends.

use punctual_cell::child;
use punctual_host::{ANSWER_BYTES, Lines, OutputLimit};
use punctual_sys::waited::Waited;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

/// Timeout of a start, from the last bytes that were sent: what is received does not prolong it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a whole start: a slow link may take as long for this program.
const START_TIMEOUT: Duration = Duration::from_secs(1800);
/// Limit of the output of a start, bytes: what login shells print; and of that after its end.
const START_BYTES: u64 = 1 << 20;
/// Timeout of the rest of stderr, which may be read later than stdout.
pub(super) const STDERR_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout until a command has ended: its load, then the connection.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(25);
/// Interval of checking for a stop request, while nothing is measured.
pub(super) const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes written at once; each write counts as progress.
const SENT_AT_ONCE: usize = 16 << 10;
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
    limit: OutputLimit,
    /// The time waited since the start or the last request, and until bytes were last sent.
    waited: Waited,
    moved: Duration,
    /// The last lines of stderr that nothing has used, at most [`MAX_ERROR_LINES`].
    messages: Vec<String>,
    is_silent: bool,
}

impl Connection {
    /// Starts `command`, whose stdio is piped; `on_end` is called when its stdout has ended. Errors: one line that
    /// begins with `name`.
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
        let limit = OutputLimit::new(START_BYTES);
        let (lines, messages) = (Lines::new(stdout, &limit), Lines::new(stderr, &limit));
        let (sent, stop) = (events_tx.clone(), events_tx.clone());
        let [of_stdout, of_stderr] = [(); 2].map(|()| (events_tx.clone(), Arc::clone(&has_ended)));
        let read_stdout = move || {
            forward(lines, &of_stdout, Event::Output);
            end(&of_stdout);
            on_end();
        };
        let read_stderr = move || {
            let printable = |line: String| {
                line.trim().chars().filter(|c| punctual_model::is_plain(*c)).take(MAX_LINE_CHARS).collect()
            };
            forward(messages, &of_stderr, |line| Event::Message(printable(line)));
            let _ = of_stderr.0.send(Event::Silent);
        };
        let threads = Builder::new()
            .spawn(move || send(stdin, &to_send, &sent))
            .and_then(|_| Builder::new().spawn(read_stderr))
            .and_then(|_| Builder::new().spawn(read_stdout));
        if let Err(err) = threads {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(&punctual_host::no_thread(&err)));
        }
        let (stdin, waited, moved) = (Some(stdin_tx), Waited::begin(), Duration::ZERO);
        let (messages, is_silent) = (Vec::new(), false);
        Ok(Connection { name, child, stdin, events, stop, has_ended, limit, waited, moved, messages, is_silent })
    }

    /// Sends bytes to its stdin, later and in order. If it ends meanwhile, the next event reports that.
    pub(super) fn send(&mut self, bytes: Arc<[u8]>) {
        self.moved = self.waited.look();
        let _ = self.stdin.as_ref().map(|stdin| stdin.send(bytes));
    }

    /// Sends a request, and allows an answer of [`ANSWER_BYTES`]. What came before is none.
    pub(super) fn ask(&mut self, bytes: Arc<[u8]>) {
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Message(line) => self.keep(line),
                Event::Stop => self.close(),
                Event::Silent => self.is_silent = true,
                Event::Output(_) | Event::Sent | Event::Ended => {}
            }
        }
        self.allow_answer();
        self.waited = Waited::begin();
        self.send(bytes);
    }

    /// Allows output of [`ANSWER_BYTES`] from now on.
    pub(super) fn allow_answer(&self) {
        self.limit.allow(ANSWER_BYTES);
    }

    /// Allows as much output again as `line` was, which has been used.
    pub(super) fn give_back(&self, line: &str) {
        self.limit.give_back(line);
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

    /// The next event, if it comes soon.
    fn next_soon(&mut self) -> Option<Event> {
        let event = match self.events.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(event) => event,
            // Its event may have been taken as one before a request.
            Err(RecvTimeoutError::Timeout) if !self.has_ended() => return None,
            Err(_) => Event::Ended,
        };
        self.is_silent |= matches!(event, Event::Silent);
        Some(event)
    }

    /// The next event, within `timeout` of the last request, or without one. Errors: one line after the timeout.
    pub(super) fn next(&mut self, timeout: Option<Duration>) -> Result<Event, String> {
        loop {
            let waited = self.waited.look();
            if let Some(timeout) = timeout.filter(|timeout| waited >= *timeout) {
                return Err(format!("{}: timeout: no answer within {} s", self.name, timeout.as_secs()));
            }
            if let Some(event) = self.next_soon() {
                return Ok(event);
            }
        }
    }

    /// The next event of a start. Bytes that are sent are events too. Errors: one line: a stop request, or a timeout.
    pub(super) fn next_of_start(&mut self, is_stop_requested: &AtomicBool) -> Result<Event, String> {
        loop {
            let waited = self.waited.look();
            let limits = [(IDLE_TIMEOUT, waited.saturating_sub(self.moved)), (START_TIMEOUT, waited)];
            if let Some((limit, _)) = limits.into_iter().find(|(limit, waited)| waited >= limit) {
                return Err(format!("{}: timeout: not ready after {} s", self.name, limit.as_secs()));
            }
            // Read before the wait: the end of a role sends its event first and then requests a stop.
            let is_asked = is_stop_requested.load(Relaxed);
            if let Some(event) = self.next_soon() {
                if matches!(event, Event::Sent) {
                    self.moved = self.waited.look();
                }
                return Ok(event);
            }
            if is_asked {
                return Err(format!("{}: interrupted before it was ready", self.name));
            }
        }
    }

    /// Keeps a line of stderr for [`Connection::failure`].
    pub(super) fn keep(&mut self, message: String) {
        if !message.is_empty() {
            self.messages.push(message);
        }
        let surplus = self.messages.len().saturating_sub(MAX_ERROR_LINES);
        self.messages.drain(..surplus);
    }

    /// Closes its stdin, waits for its end, and returns its status.
    pub(super) fn end(&mut self) -> Result<ExitStatus, String> {
        self.shut_down().map_err(|err| format!("{}: {err}", self.name))
    }

    /// The error of a command that has ended early, with the last lines of its stderr.
    pub(super) fn failure(&mut self) -> String {
        self.limit.allow(START_BYTES);
        let status = self.shut_down();
        let mut waited = Waited::begin();
        while !self.is_silent && waited.look() < STDERR_TIMEOUT {
            match self.events.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(Event::Message(line)) => self.keep(line),
                Ok(Event::Silent) => self.is_silent = true,
                _ => {}
            }
        }
        let reason = child::reason(&self.messages).unwrap_or_else(|| match status {
            Ok(status) => format!("exited ({status}) without a message"),
            Err(err) => err.to_string(),
        });
        format!("{}: {reason}", self.name)
    }

    /// Closes its stdin and waits until it has ended; it is killed after the timeout, which closes the connection.
    fn shut_down(&mut self) -> io::Result<ExitStatus> {
        self.stdin = None;
        punctual_host::end_within(&mut self.child, STOP_TIMEOUT)
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

/// Forwards the lines of an output, to its end or to the limit, which ends the connection.
fn forward<R: io::Read>(lines: Lines<R>, to: &(Sender<Event>, Arc<AtomicBool>), event: impl Fn(String) -> Event) {
    for line in lines {
        let is_last = line.is_err();
        let next = line.map_or_else(|err| Event::Message(err.to_string()), &event);
        if to.0.send(next).is_err() {
            return;
        }
        if is_last {
            end(to);
        }
    }
}

/// Reports the end of a connection.
fn end((events, has_ended): &(Sender<Event>, Arc<AtomicBool>)) {
    has_ended.store(true, Relaxed);
    let _ = events.send(Event::Ended);
}
