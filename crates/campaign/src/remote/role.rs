//! A role of a plan on another machine: a command of this program, which ends when its stdin is closed.
//!
//! `punctual supervise-role` on the other machine ends the command.

use super::Deliveries;
use super::connection::{Connection, Event};
use punctual_model::{Site, Span};
use std::sync::atomic::AtomicBool;

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

/// A running role. Dropping it ends the command and waits for it.
#[derive(Debug)]
pub(crate) struct RunningRole {
    connection: Connection,
    /// Its stdout so far.
    output: String,
}

impl RunningRole {
    /// Starts a role; `on_exit` is called when it has ended. Errors: one line: the role and the reason why it cannot be
    /// started; also if `is_stop_requested` is set.
    pub(crate) fn start(
        role: &RoleCommand<'_>,
        deliveries: &mut Deliveries,
        is_stop_requested: &AtomicBool,
        on_exit: impl FnOnce() + Send + 'static,
    ) -> Result<RunningRole, String> {
        let name = format!("{} {}", role.role, role.site);
        let mut words = vec!["supervise-role".to_owned(), "--for".to_owned(), role.at_most.to_string()];
        words.extend(role.input.iter().flat_map(|input| ["--input".to_owned(), input.clone()]));
        words.push("--".to_owned());
        words.extend(role.command.iter().cloned());
        let command = deliveries.command(&name, role.site, &words, is_stop_requested)?;
        Ok(RunningRole { connection: Connection::open(name, command, on_exit)?, output: String::new() })
    }

    /// Waits until the role reports that it is ready. Errors: one line: the reason why it is not ready.
    pub(crate) fn wait_until_ready(&mut self, is_stop_requested: &AtomicBool) -> Result<(), String> {
        loop {
            match self.connection.next_of_start(is_stop_requested)? {
                Event::Message(line) if line.ends_with(READY) => return Ok(()),
                Event::Message(line) => self.connection.keep(line),
                Event::Output(line) => self.output.push_str(&line),
                Event::Ended => return Err(self.connection.failure()),
                Event::Sent | Event::Silent | Event::Stop => {}
            }
        }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_exited(&self) -> bool {
        self.connection.has_ended()
    }

    /// The error of a role that has ended by itself.
    pub(crate) fn exit_error(mut self) -> String {
        self.connection.failure()
    }

    /// Returns a function that ends the wait in [`RunningRole::listen`].
    pub(crate) fn stopper(&self) -> impl Fn() + Send + use<> {
        self.connection.stopper()
    }

    /// Passes every line of stderr to `hear` until the role has ended; returns its output. Errors: one line: the reason
    /// of its failure.
    pub(crate) fn listen(mut self, mut hear: impl FnMut(&str) -> bool) -> Result<String, String> {
        self.connection.allow_answer();
        loop {
            match self.connection.next(None)? {
                Event::Message(line) if hear(&line) => self.connection.give_back(&line),
                Event::Message(line) => self.connection.keep(line),
                Event::Output(line) => self.output.push_str(&line),
                Event::Stop => self.connection.close(),
                Event::Sent | Event::Silent => {}
                Event::Ended => break,
            }
        }
        if self.connection.end()?.success() { Ok(self.output) } else { Err(self.connection.failure()) }
    }

    /// Closes stdin, waits for the end, and returns the output. Errors: one line: the reason of its failure.
    pub(crate) fn end(mut self) -> Result<String, String> {
        self.connection.close();
        self.listen(|_| false)
    }
}
