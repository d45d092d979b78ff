//! A program that is watched: started as a user would, its output kept out of the way, always ended.

use crate::instrument::{InstrumentError, end_group, find};
use crate::runtime::{Launch, launch_command};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Most bytes of its stderr that are kept for an error.
const MOST_SAID: usize = 4096;

/// A running program in the working directory of this process. Dropping it ends everything that it has started.
#[derive(Debug)]
pub struct WatchedProgram {
    name: String,
    child: Child,
    mark: String,
    status: Option<ExitStatus>,
    /// The beginning of its stderr.
    said: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl WatchedProgram {
    /// Starts the program of the first of `words`. What it writes to stdout is discarded, and to stderr too, but for
    /// its beginning.
    ///
    /// # Errors
    /// When it is not installed or cannot be started.
    pub fn start(words: &[String], settings: &Launch) -> Result<WatchedProgram, InstrumentError> {
        let (program, arguments) =
            words.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
        let path = find(program)?;
        let name = program.rsplit('/').next().unwrap_or_default().to_owned();
        let failed = |source| InstrumentError::Start { program: name.clone(), source };
        let mark = host::named("punctual-program", std::process::id());
        let mut child = launch_command(Some(settings), &path)
            .args(arguments)
            .env(host::MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let said: Arc<Mutex<Vec<u8>>> = Arc::default();
        let reader = child.stderr.take().and_then(|mut stderr| {
            let said = Arc::clone(&said);
            let read = move || {
                let mut buffer = [0; 4096];
                // To its end, so that the program never waits for a reader.
                while let Ok(n @ 1..) = stderr.read(&mut buffer) {
                    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = MOST_SAID.saturating_sub(said.len()).min(n);
                    said.extend_from_slice(&buffer[..room]);
                }
            };
            std::thread::Builder::new().name("program-output".to_owned()).spawn(read).ok()
        });
        Ok(WatchedProgram { name, child, mark, status: None, said, reader })
    }

    /// Process id of the program.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Whether it has ended by itself with a failure.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.status.is_some_and(|status| !status.success())
    }

    /// How it ended by itself, as text; `None` while it runs.
    #[must_use]
    pub fn status(&self) -> Option<String> {
        self.status.map(|status| status.to_string())
    }

    /// The error of a program that has failed, or has ended before anything was watched.
    #[must_use]
    pub fn ended_early(&self) -> InstrumentError {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&said).into_owned();
        let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message; try it by hand");
        let said = line.chars().filter(|c| model::is_plain(*c)).take(200).collect();
        InstrumentError::Failed { program: self.name.clone(), status: self.status.unwrap_or_default(), said }
    }

    /// Ends the program and everything that it has started.
    pub fn end(&mut self) {
        end_group(&mut self.child, &self.mark, &mut self.status);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for WatchedProgram {
    fn drop(&mut self) {
        self.end();
    }
}
