//! Child processes that run `punctual cell`: start, input of the cell, output, stop, reaping.
//!
//! These processes read one cell as JSON and write one record. The others differ for a reason:
//! - a role (`role`) is a command behind a connection, to which this program may have to be copied first; signals do
//!   not reach it, and it ends when its stdin closes or its time is over;
//! - a language (`runtime`) is a foreign program with a protocol of its own; it ends only when its process group is
//!   killed, and is read without a thread, which would wake up beside the measured ones;
//! - the cost suite (`cost`) is a fork of the cell that starts no program, and is stopped by a counter in shared
//!   memory.
use punctual_host::{ANSWER_BYTES, Lines, OutputLimit};
use punctual_model::{Cell, Progress, Record};
use punctual_sys::process;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// Limit of the stderr of a process besides progress, bytes.
const NOTE_BYTES: u64 = 1 << 20;

/// A process that runs one cell. Dropping it kills and reaps the process, if that has not been done.
#[derive(Debug)]
pub struct CellProcess {
    child: Child,
    limit: OutputLimit,
    /// Lines of stderr that are not progress: notes, and the reason of a failure.
    lines: Vec<String>,
}

/// The reason that a process returned no record.
#[derive(Debug)]
pub enum CellFailure {
    /// The process cannot be waited for or read from.
    Io(io::Error),
    /// The process failed; the reason, if it wrote one.
    Exit(ExitStatus, Option<String>),
    /// The output is not a record.
    NoRecord(serde_json::Error),
}

/// The stdout of the process, to which it writes the record.
#[derive(Debug)]
pub struct Output(ChildStdout);

impl CellProcess {
    /// Starts a process that reads a cell from its stdin, writes the record to its stdout, and its progress to stderr.
    /// Its samples go to the new file `samples`, if given. It ends with this process. Errors: when the process cannot
    /// be started.
    pub fn start(samples: Option<&Path>) -> io::Result<CellProcess> {
        let mut command = Command::new(punctual_host::THIS_PROGRAM);
        command
            .args(["cell", "--progress", "--parent", &std::process::id().to_string()])
            .args(samples.into_iter().flat_map(|path| [OsStr::new("--samples"), path.as_os_str()]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A process group of its own: Ctrl-C reaches this process only, which then interrupts the cell.
            .process_group(0);
        command.envs(punctual_workload::instrument::variable_of_sent_files());
        // The lock on the machine is held until the cell has ended, even when this process is killed first.
        punctual_host::pass_lock(&mut command);
        Ok(CellProcess { child: command.spawn()?, limit: OutputLimit::new(NOTE_BYTES), lines: Vec::new() })
    }

    /// The process ID, which stays valid until [`CellProcess::record`] reaps the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes the cell to the process, which then starts. Of a process that has ended, its status tells why.
    pub fn give(&mut self, cell: &Cell) -> io::Result<()> {
        let text = serde_json::to_vec(cell)?;
        let given = self.child.stdin.take().ok_or_else(pipe_is_missing)?.write_all(&text);
        given.or_else(|err| if err.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(err) })
    }

    /// The stream of the record, and the stderr lines for [`CellProcess::take`]. Both must be read at the same time, so
    /// that the process never blocks on a full pipe. Errors: when they have been taken before.
    pub fn streams(&mut self) -> io::Result<(Output, impl Iterator<Item = String> + Send + use<>)> {
        let output = self.child.stdout.take().ok_or_else(pipe_is_missing)?;
        let stderr = self.child.stderr.take().ok_or_else(pipe_is_missing)?;
        let lines = Lines::new(stderr, &self.limit);
        Ok((Output(output), lines.map(|line| line.unwrap_or_else(|err| format!("punctual: {err}")))))
    }

    /// Parses a line of stderr: returns progress, and keeps any other line.
    pub fn take(&mut self, line: String) -> Option<Progress> {
        let progress = punctual_model::json::progress(line.as_bytes()).ok();
        match progress {
            Some(_) => self.limit.give_back(&line),
            None => self.lines.push(line),
        }
        progress
    }

    /// Waits until the process has ended, and reaps it. Errors: when it cannot be waited for.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// The record, parsed from `output`. Waits until the process has ended. Errors: when the process failed, or
    /// `output` is not a record.
    pub fn record(&mut self, output: io::Result<Vec<u8>>) -> Result<Record, CellFailure> {
        let status = self.wait().map_err(CellFailure::Io)?;
        if !status.success() {
            return Err(CellFailure::Exit(status, reason(&self.lines)));
        }
        punctual_model::json::record(&output.map_err(CellFailure::Io)?).map_err(CellFailure::NoRecord)
    }

    /// Lines of stderr that are not progress. If the process returned a record, they are notes for the user.
    pub fn notes(&self) -> &[String] {
        &self.lines
    }

    /// Kills and reaps the process.
    pub(crate) fn kill(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for CellProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Output {
    /// Reads to the end; a record that is longer than [`ANSWER_BYTES`] is cut, and not valid.
    pub fn read(self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.0.take(ANSWER_BYTES).read_to_end(&mut text).map(|_| text)
    }
}

/// Interrupts the process `id`, which is not reaped yet: it ends early and still writes its record. Call it once only:
/// a second signal would end the process at once.
pub fn interrupt(id: u32) {
    let _ = process::signal(id, libc::SIGTERM);
}

fn pipe_is_missing() -> io::Error {
    io::Error::other("no pipe to it")
}

/// The reason of a failure, from the stderr lines that are not progress; `None` without any.
pub fn reason(said: &[String]) -> Option<String> {
    let lines = said.iter().map(|line| line.strip_prefix("punctual: ").unwrap_or(line));
    let reason = lines.collect::<Vec<_>>().join("; ");
    (!reason.is_empty()).then_some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_tells_why_a_process_did_not_take_its_cell() {
        let mut cell = CellProcess::start(None).unwrap();
        let _ = process::signal(cell.id(), libc::SIGKILL);
        // Unlike `wait`, it leaves the pipe open.
        assert!(punctual_sys::testing::comes_true(|| cell.child.try_wait().unwrap().is_some()));
        cell.give(&punctual_analysis::testing::cell("none", "other")).unwrap();
        assert!(matches!(cell.record(Ok(Vec::new())), Err(CellFailure::Exit(..))));
    }

    #[test]
    fn the_reason_is_what_was_said_without_the_programs_name() {
        let reason = |lines: &[&str]| reason(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(reason(&[]), None);
        assert_eq!(reason(&[""]), None);
        assert_eq!(reason(&["punctual: no CPU"]).as_deref(), Some("no CPU"));
        assert_eq!(reason(&["a note", "punctual: no CPU"]).as_deref(), Some("a note; no CPU"));
    }
}
