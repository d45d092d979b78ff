//! The suite's process, as seen from the cell: start, release, messages, end.

use super::worker::{self, ChildEnds, SuiteMessage, SuiteRequest};
use super::{Directory, NOT_REACHED};
use punctual_model::{COST_OPERATIONS, CostScope, OperationRecord, SkippedOperation};
use punctual_sys::memory::SharedCounters;
use punctual_sys::waited::Waited;
use punctual_sys::{pipe, process, spawn};
use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The reason that operations were not measured.
#[derive(Debug, thiserror::Error)]
#[error("cost: {0}")]
pub struct CostError(String);

/// Timeout until the process has prepared everything.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout until it has ended after a stop request.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Result of a read from the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteEvent {
    /// Messages arrived.
    Something,
    /// The process has ended and closed its pipe.
    Everything,
    /// Nothing arrived within the timeout.
    Nothing,
    /// A signal came first.
    Signal,
}

/// The process, and its messages so far. Dropping it ends the process, with all its children.
#[derive(Debug)]
pub struct Suite {
    pid: u32,
    words: PipeReader,
    gate: PipeWriter,
    stop: SharedCounters,
    /// The beginning of an incomplete line.
    unread: Vec<u8>,
    has_ended: bool,
    /// Whether it was waited for: its ID may belong to another process now.
    is_reaped: bool,
    /// Time of reading the clock, ns.
    clock_ns: Option<u64>,
    measured: BTreeMap<u8, (u64, Vec<u64>)>,
    skipped: BTreeMap<u8, String>,
    /// Removed when the process has ended.
    _directory: Directory,
}

impl Suite {
    /// Starts the process and waits until every operation is known to work. Call it before any thread is started.
    /// Errors: when an operation fails for another reason than a missing kernel feature.
    pub fn start(request: &SuiteRequest) -> Result<Suite, CostError> {
        let failed = |err: io::Error| CostError(format!("cannot start its process: {err}"));
        let directory = Directory::new().map_err(CostError)?;
        let stop = SharedCounters::new(1).map_err(failed)?;
        let (words, words_tx) = io::pipe().map_err(failed)?;
        let (gate_end, gate) = io::pipe().map_err(failed)?;
        let ends = ChildEnds { words: words_tx, gate: gate_end, stop: &stop };
        let pid =
            process::fork_tied(None, libc::SIGKILL, || worker::work(request, &directory, ends)).map_err(failed)?;
        let mut suite = Suite {
            pid,
            words,
            gate,
            stop,
            unread: Vec::new(),
            has_ended: false,
            is_reaped: false,
            clock_ns: None,
            measured: BTreeMap::new(),
            skipped: BTreeMap::new(),
            _directory: directory,
        };
        let mut waited = Waited::begin();
        while suite.clock_ns.is_none() {
            if waited.look() >= READY_TIMEOUT {
                return Err(CostError(format!(
                    "timeout: its process was not ready after {} s",
                    READY_TIMEOUT.as_secs()
                )));
            }
            if suite.listen(Waited::STEP)? == SuiteEvent::Everything && suite.clock_ns.is_none() {
                return Err(CostError("its process exited early".to_owned()));
            }
        }
        Ok(suite)
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Releases the process. Errors: when the process has ended.
    pub fn release(&mut self) -> Result<(), CostError> {
        self.gate.write_all(&[1]).map_err(|err| CostError(format!("its process has exited: {err}")))
    }

    /// Reads the next messages of the process; waits for at most `timeout`. Errors: the failure of the process, also
    /// one that it could not report because it was killed.
    pub fn listen(&mut self, timeout: Duration) -> Result<SuiteEvent, CostError> {
        let failed = |err: io::Error| CostError(format!("cannot read from its process: {err}"));
        if self.has_ended {
            return Ok(SuiteEvent::Everything);
        }
        match pipe::wait_readable(self.words.as_fd(), timeout) {
            Ok(true) => {}
            Ok(false) => return Ok(SuiteEvent::Nothing),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => return Ok(SuiteEvent::Signal),
            Err(err) => return Err(failed(err)),
        }
        let mut bytes = [0; 64 * 1024];
        let n = self.words.read(&mut bytes).map_err(failed)?;
        self.has_ended = n == 0;
        self.unread.extend(bytes.iter().take(n));
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let word = serde_json::from_slice(&line)
                .map_err(|err| CostError(format!("invalid message from its process: {err}")))?;
            self.take(word)?;
        }
        if !self.has_ended {
            return Ok(SuiteEvent::Something);
        }
        if self.stop.get(0).is_none_or(|stop| stop.load(Relaxed) == 0) {
            self.reap()?;
        }
        Ok(SuiteEvent::Everything)
    }

    /// Waits for the process, which has closed its pipe. Errors: it did not exit with status 0.
    fn reap(&mut self) -> Result<(), CostError> {
        let status =
            spawn::wait_for(self.pid).map_err(|err| CostError(format!("cannot wait for its process: {err}")))?;
        self.is_reaped = true;
        let status = ExitStatus::from_raw(status);
        if status.success() { Ok(()) } else { Err(CostError(format!("its process ended before its time: {status}"))) }
    }

    fn take(&mut self, word: SuiteMessage) -> Result<(), CostError> {
        match word {
            SuiteMessage::Ready { clock_ns } => self.clock_ns = Some(clock_ns),
            SuiteMessage::Skipped { place, reason } => drop(self.skipped.insert(place, reason)),
            SuiteMessage::Batches { place, per_batch, batches_ns } => {
                let known = self.measured.entry(place).or_insert_with(|| (per_batch, Vec::new()));
                known.1.extend(batches_ns);
            }
            SuiteMessage::Failed { reason } => return Err(CostError(reason)),
        }
        Ok(())
    }

    /// Stops the process after its current batch, and reads its last messages.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.get(0) {
            stop.store(1, Relaxed);
        }
        punctual_sys::fail::point("suite-stopped");
        let mut waited = Waited::begin();
        while !matches!(self.listen(Waited::STEP), Ok(SuiteEvent::Everything) | Err(_)) {
            if waited.look() >= STOP_TIMEOUT {
                return;
            }
        }
    }

    /// Time of reading the clock, ns.
    pub fn clock_ns(&self) -> u64 {
        self.clock_ns.unwrap_or(0)
    }

    /// Results so far, and skipped operations; the latter include those of `scope` that were never reached.
    pub fn results(&self, scope: CostScope) -> (Vec<OperationRecord>, Vec<SkippedOperation>) {
        let (mut operations, mut skipped) = (Vec::new(), Vec::new());
        for (place, operation) in (0..).zip(COST_OPERATIONS) {
            let name = operation.name.to_owned();
            match (self.measured.get(&place), self.skipped.get(&place)) {
                (Some((per_batch, batches_ns)), _) if !batches_ns.is_empty() => {
                    let mut batches_ns = batches_ns.clone();
                    batches_ns.sort_unstable();
                    operations.push(OperationRecord { name, per_batch: *per_batch, batches_ns, all: None });
                }
                (_, Some(reason)) => skipped.push(SkippedOperation { name, reason: reason.clone() }),
                _ if scope.operations().any(|meant| meant == operation) => {
                    skipped.push(SkippedOperation { name, reason: NOT_REACHED.to_owned() });
                }
                _ => {}
            }
        }
        (operations, skipped)
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        if !self.is_reaped {
            let _ = process::signal(self.pid, libc::SIGKILL);
            let _ = spawn::wait_for(self.pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    #[expect(clippy::zombie_processes, reason = "the suite waits for it")]
    fn a_process_that_fails_without_a_message_is_no_complete_suite() {
        for (script, is_stopped, failure) in [
            ("exit 0", false, None),
            ("exit 3", false, Some("exit status: 3")),
            ("kill -9 $$", false, Some("signal: 9 (SIGKILL)")),
            ("exit 3", true, None),
        ] {
            let (words, words_tx) = io::pipe().unwrap();
            let child = Command::new("sh").args(["-c", script]).stdout(words_tx).spawn().unwrap();
            let mut suite = Suite {
                pid: child.id(),
                words,
                gate: io::pipe().unwrap().1,
                stop: SharedCounters::new(1).unwrap(),
                unread: Vec::new(),
                has_ended: false,
                is_reaped: false,
                clock_ns: None,
                measured: BTreeMap::new(),
                skipped: BTreeMap::new(),
                _directory: Directory::new().unwrap(),
            };
            suite.stop.get(0).unwrap().store(u64::from(is_stopped), Relaxed);
            let seen = loop {
                match suite.listen(Waited::STEP) {
                    Ok(SuiteEvent::Everything) => break None,
                    Ok(_) => {}
                    Err(CostError(reason)) => break Some(reason),
                }
            };
            let failure = failure.map(|status| format!("its process ended before its time: {status}"));
            assert_eq!((seen, suite.is_reaped), (failure, !is_stopped), "{script}");
        }
    }
}
