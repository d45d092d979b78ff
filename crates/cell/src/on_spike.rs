//! The command that runs at spikes, outside the measured CPUs, one at a time.

use punctual_model::{CpuSet, Explanation, OnSpikeRecord, Policy, Span};
use punctual_sys::process::Leader;
use punctual_sys::storage;
use punctual_sys::waited::Waited;
use punctual_workload::runtime::{Launch, launch_command};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::process::Stdio;
use std::time::Duration;

/// Timeout for a command that still runs after the cell.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Largest stderr output that is kept, bytes; and the part of its first line that is repeated, characters.
const STDERR_BYTES: u64 = 64 << 10;
const MAX_QUOTED_CHARS: usize = 200;
/// The kernel's default (`PR_SET_TIMERSLACK(2const)`).
const SLACK: Span = Span(50_000);

/// The command, and its record so far. Dropping it kills a command that still runs.
#[derive(Debug)]
pub(super) struct OnSpike {
    command: String,
    /// The CPU that it runs on.
    cpu: u32,
    running: Option<Running>,
    record: OnSpikeRecord,
}

#[derive(Debug)]
struct Running {
    leader: Leader,
    /// Its stderr, a memory file.
    said: File,
}

impl OnSpike {
    /// The command, not started yet. `others` are the CPUs that are not measured; `None` without any.
    pub(super) fn new(command: String, others: &CpuSet) -> Option<OnSpike> {
        let cpu = others.iter().next()?;
        Some(OnSpike { command, cpu, running: None, record: OnSpikeRecord::default() })
    }

    /// Starts the command with this spike, unless it still runs for another one.
    pub(super) fn start_for(&mut self, spike: &Explanation) {
        self.reap();
        if self.running.is_some() {
            self.record.skipped += 1;
            return;
        }
        self.record.runs += 1;
        match self.start(spike) {
            Ok(running) => self.running = Some(running),
            Err(err) => self.failed(format!("cannot start it: {err}")),
        }
    }

    fn start(&self, spike: &Explanation) -> io::Result<Running> {
        let json = serde_json::to_vec(spike)?;
        // A file, not a pipe: a command that reads nothing must not block this thread.
        let mut stdin = storage::bounded_memory_file("spike", json.len() as u64)?;
        stdin.write_all(&json)?;
        stdin.rewind()?;
        let said = storage::bounded_memory_file("said", STDERR_BYTES)?;
        let settings = Launch { cpus: CpuSet::from_iter([self.cpu]), policy: Policy::OTHER, timer_slack: SLACK };
        let mut command = launch_command(Some(&settings), "sh");
        command.arg("-c").arg(&self.command);
        let command = command.stdin(stdin).stdout(Stdio::null()).stderr(said.try_clone()?);
        Ok(Running { leader: Leader::spawn(command)?, said })
    }

    /// Checks whether the command has ended.
    fn reap(&mut self) {
        let Some(running) = &mut self.running else { return };
        let ended = match running.leader.status() {
            Ok(None) => return,
            Ok(Some(status)) if status.success() => None,
            Ok(Some(status)) => Some(format!("{status}: {}", first_line(&running.said))),
            Err(err) => Some(err.to_string()),
        };
        // What it has started goes on.
        let _ = running.leader.reap();
        self.running = None;
        if let Some(reason) = ended {
            self.failed(reason);
        }
    }

    fn failed(&mut self, reason: String) {
        self.record.failed += 1;
        self.record.reason.get_or_insert(reason);
    }

    /// Waits until the command ends, at most `EXIT_TIMEOUT`, and returns its record.
    pub(super) fn finish(mut self) -> OnSpikeRecord {
        let mut waited = Waited::every(POLL_INTERVAL);
        self.reap();
        while self.running.is_some() && waited.look() < EXIT_TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
            self.reap();
        }
        if self.running.is_some() {
            self.failed(format!("timeout: still running {} s after the cell", EXIT_TIMEOUT.as_secs()));
        }
        self.record
    }
}

/// The first line of `said` that is not empty.
fn first_line(said: &File) -> String {
    let text = punctual_host::written(said).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message on stderr");
    line.chars().filter(|c| punctual_model::is_plain(*c)).take(MAX_QUOTED_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spike() -> Explanation {
        Explanation { cpu: 3, cycle: 7, due_ns: 7_000_000, latency: Span(412_000), ..Explanation::default() }
    }

    /// This test binary has no `launch` command, so that the settings are left to the tests of the whole program.
    fn told(command: &str) -> OnSpikeRecord {
        let mut on_spike = OnSpike::new(command.to_owned(), &[0].into_iter().collect()).unwrap();
        on_spike.start_for(&spike());
        on_spike.finish()
    }

    #[test]
    fn without_a_cpu_there_is_none_and_what_cannot_run_has_failed() {
        assert!(OnSpike::new("true".to_owned(), &CpuSet::default()).is_none());
        let told = told("true");
        assert_eq!((told.runs, told.skipped, told.failed), (1, 0, 1));
        assert!(told.reason.is_some());
    }

    #[test]
    fn the_first_line_that_says_something_is_repeated() {
        let said = |text: &str| {
            let mut file = storage::bounded_memory_file("said", 64).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            first_line(&file)
        };
        assert_eq!(said(""), "no message on stderr");
        assert_eq!(said("\n  sh: 1: \tx: not found \nmore"), "sh: 1: x: not found");
    }
}
