//! A program that is watched: started as a user would, its output kept out of the way, always ended.

use crate::instrument::{InstrumentError, end_group, find};
use crate::runtime::{Launch, held_command};
use punctual_sys::process::Leader;
use punctual_sys::waited::Waited;
use std::io::Read;
use std::process::{ChildStderr, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most bytes of its stderr that are kept for an error.
const MOST_SAID: usize = 4096;
/// Timeout of the end of its stderr: a process that has left its group and its environment may keep it open.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout of a program that gets ready to run.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A running program in the working directory of this process. Dropping it ends everything that it has started.
#[derive(Debug)]
pub struct WatchedProgram {
    name: String,
    leader: Leader,
    mark: String,
    status: Option<ExitStatus>,
    stderr: Stderr,
}

/// The stderr of a program, read to its end, so that the program never waits for a reader.
#[derive(Debug)]
struct Stderr {
    /// Its beginning.
    said: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Stderr {
    fn of(pipe: Option<ChildStderr>) -> Stderr {
        let said: Arc<Mutex<Vec<u8>>> = Arc::default();
        let reader = pipe.and_then(|mut pipe| {
            let said = Arc::clone(&said);
            let read = move || {
                let mut buffer = [0; 4096];
                while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = MOST_SAID.saturating_sub(said.len()).min(n);
                    said.extend_from_slice(&buffer[..room]);
                }
            };
            std::thread::Builder::new().name("program-output".to_owned()).spawn(read).ok()
        });
        Stderr { said, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Waits for its end. A reader that goes on ends with the last process that has the pipe, or with this one.
    fn end(&mut self) {
        let (reader, mut waited) = (self.reader.take(), Waited::begin());
        while reader.as_ref().is_some_and(|reader| !reader.is_finished()) && waited.look() < STDERR_TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl WatchedProgram {
    /// Starts the program of the first of `words`, which waits for [`WatchedProgram::proceed`] before its first
    /// instruction: its first calls may be those that matter. What it writes to stdout is discarded, and to stderr too,
    /// but for its beginning. Errors: when it is not installed or cannot be started.
    pub fn start(words: &[String], settings: &Launch) -> Result<WatchedProgram, InstrumentError> {
        let (program, arguments) =
            words.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
        let path = find(program)?;
        let name = program.rsplit('/').next().unwrap_or_default().to_owned();
        let failed = |source| InstrumentError::Start { program: name.clone(), source };
        let mark = punctual_host::named("punctual-program", std::process::id());
        let mut command = held_command(Some(settings), true, path.as_ref());
        let command = command
            .args(arguments)
            .env(punctual_host::MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut leader = Leader::spawn(command).map_err(failed)?;
        let (.., stderr) = leader.pipes();
        let stderr = Stderr::of(stderr);
        let mut program = WatchedProgram { name, leader, mark, status: None, stderr };
        let mut waited = Waited::begin();
        let is_held = |pid: u32| punctual_host::state_of_thread(pid) == Some('T');
        while !program.has_ended() && !is_held(program.pid()) && waited.look() < START_TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(program)
    }

    /// Lets the program run.
    pub fn proceed(&self) {
        let _ = punctual_sys::process::signal(self.pid(), libc::SIGCONT);
    }

    /// Process id of the program.
    pub fn pid(&self) -> u32 {
        self.leader.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.leader.status().ok().flatten();
        }
        self.status.is_some()
    }

    /// Whether it has ended by itself with a failure.
    pub fn has_failed(&self) -> bool {
        self.status.is_some_and(|status| !status.success())
    }

    /// How it ended by itself, as text; `None` while it runs.
    pub fn status(&self) -> Option<String> {
        self.status.map(|status| status.to_string())
    }

    /// The error of a program that has failed, or has ended before anything was watched.
    pub fn ended_early(&self) -> InstrumentError {
        let text = self.stderr.text();
        let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message; try it by hand");
        let said = line.chars().filter(|c| punctual_model::is_plain(*c)).take(200).collect();
        InstrumentError::Failed { program: self.name.clone(), status: self.status.unwrap_or_default(), said }
    }

    /// Ends the program and everything that it has started.
    pub fn end(&mut self) {
        end_group(&mut self.leader, &self.mark, &mut self.status);
        self.stderr.end();
    }
}

impl Drop for WatchedProgram {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_descendant_that_escapes_with_stderr_is_not_waited_for() {
        // Another session and another environment, but the same stderr.
        let escape = "echo begun >&2; exec env -i setsid -f sh -c 'echo $$; exec sleep 600'";
        let mut command = Command::new("sh");
        command.args(["-c", escape]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = Stderr::of(child.stderr.take());
        let mut pid = [0; 16];
        let length = child.stdout.take().unwrap().read(&mut pid).unwrap();
        let escaped: u32 = str::from_utf8(&pid[..length]).unwrap().trim().parse().unwrap();
        assert!(child.wait().unwrap().success());
        stderr.end();
        assert_eq!(stderr.text(), "begun\n");
        // Fails if it has ended, so that there was nothing to wait for.
        punctual_sys::process::signal(escaped, libc::SIGKILL).unwrap();
    }
}
