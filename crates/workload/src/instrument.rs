//! Outside programs that measure: started with the settings of a cell, always ended, and everything they wrote kept.

mod files;

use super::runtime::{Launch, launch_command};
use files::sent_files;
use punctual_host::PrivateDirectory;
use punctual_model::Span;
use punctual_sys::process::Leader;
use punctual_sys::{pipe, sched, storage};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use files::{
    expect_sent_files, find, find_or_expect, for_guests, program_for_guests, use_sent_files, variable_of_sent_files,
};

/// Reason that an outside program gave no result.
#[derive(Debug, thiserror::Error)]
pub enum InstrumentError {
    /// It is not installed.
    #[error("{0} is not installed (searched in PATH); install it, or name its path")]
    NotInstalled(String),
    /// It cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Its name.
        program: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// It exited with a failure.
    #[error("{program} exited ({status}): {said}")]
    Failed {
        /// Its name.
        program: String,
        /// The exit status.
        status: ExitStatus,
        /// Its own words.
        said: String,
    },
    /// It did not end in time.
    #[error(
        "{program} has not ended after {limit}; give it a duration, like {{duration_s}}, or stop = \"SIGINT\"{said}"
    )]
    Endless {
        /// Its name.
        program: String,
        /// The timeout.
        limit: Span,
        /// Its own words, after a semicolon; or empty.
        said: String,
    },
    /// It wrote too much.
    #[error("{program} wrote more than {limit} MiB; choose options with less output")]
    TooMuch {
        /// Its name.
        program: String,
        /// The limit, MiB.
        limit: u64,
    },
    /// Its result cannot be read.
    #[error("cannot read {file} of {program}: {source}")]
    Output {
        /// Its name.
        program: String,
        /// The file.
        file: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Its result is not understood.
    #[error("{program}: {reason}{said}")]
    Result {
        /// Its name.
        program: String,
        /// The parser's reason.
        reason: String,
        /// Its own words, after a semicolon; or empty.
        said: String,
    },
}

/// Most bytes of a result.
const MAX_RESULT: u64 = 64 << 20;
/// Size of the pipe of its stdout, bytes: the largest that every user may have.
const PIPE_BYTES: i32 = 1 << 20;
/// Most bytes of its stderr.
const STDERR_BYTES: u64 = 64 * 1024;
/// Most characters of its words that are repeated.
const MAX_QUOTED_CHARS: usize = 200;
/// Time after SIGINT and after SIGTERM until the next, harder signal.
const SIGNAL_GRACE: Duration = Duration::from_secs(2);

/// A running program. Dropping it kills everything that it has started.
#[derive(Debug)]
pub struct RunningProgram {
    name: String,
    leader: Leader,
    stdout: ChildStdout,
    written: Vec<u8>,
    stderr: File,
    directory: PrivateDirectory,
    mark: String,
    status: Option<ExitStatus>,
}

/// Scheduling of one of its threads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenThread {
    /// Name of the thread.
    pub name: String,
    /// Policy that the kernel reports.
    pub policy: punctual_model::Policy,
    /// CPUs that it may use.
    pub cpus: punctual_model::CpuSet,
}

impl RunningProgram {
    /// Starts the program of the first of `words` with these settings, in a new private directory. Errors: when it is
    /// not installed or cannot be started.
    pub fn start(words: &[String], settings: &Launch) -> Result<RunningProgram, InstrumentError> {
        let (program, arguments) =
            words.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
        let path = find(program)?;
        let name = program.rsplit('/').next().unwrap_or_default().to_owned();
        let failed = |source| InstrumentError::Start { program: name.clone(), source };
        // It works in a directory of its own.
        let path = path.canonicalize().map_err(failed)?;
        let mark = punctual_host::named("punctual-program", std::process::id());
        let directory = PrivateDirectory::new(&std::env::temp_dir(), &mark).map_err(failed)?;
        let stderr = storage::bounded_memory_file("program-said", STDERR_BYTES).map_err(failed)?;
        let mut command = launch_command(Some(settings), &path);
        let command = command
            .args(arguments)
            .env(punctual_host::MARK, &mark)
            .envs(sent_files().map(|directory| ("LD_LIBRARY_PATH", directory)))
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr.try_clone().map_err(failed)?);
        let mut leader = Leader::spawn(command).map_err(failed)?;
        let (_, Some(stdout), _) = leader.pipes() else { return Err(failed(io::Error::other("no pipe to it"))) };
        // A smaller one serves as well, but for tools that write much in a second.
        let _ = pipe::resize(stdout.as_fd(), PIPE_BYTES);
        Ok(RunningProgram { name, leader, stdout, written: Vec::new(), stderr, directory, mark, status: None })
    }

    /// Process id of the program.
    pub fn pid(&self) -> u32 {
        self.leader.id()
    }

    /// Waits until the program has ended, at most `timeout`; returns whether it has. Its output does not wake this
    /// thread. Errors: when the kernel refuses, or it wrote too much.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, InstrumentError> {
        // A process that it has left behind may hold the pipe open.
        let rest = timeout.saturating_sub(Duration::from_millis(1));
        if self.status.is_none() && !pipe::wait_closed(self.stdout.as_fd(), rest).unwrap_or(false) {
            // Ended by a signal of this process, or still running.
            self.read()?;
        }
        if self.status.is_none() {
            let failed = |source| InstrumentError::Start { program: self.name.clone(), source };
            self.status = self.leader.status().map_err(failed)?;
            if self.status.is_none() && pipe::wait_closed(self.stdout.as_fd(), Duration::ZERO).unwrap_or(false) {
                // It closed its output, and works on.
                std::thread::sleep(timeout.min(Duration::from_millis(10)));
            }
        }
        Ok(self.status.is_some())
    }

    /// Reads what it has written so far, without waiting. Errors: when it wrote too much, or the pipe fails.
    pub fn read(&mut self) -> Result<(), InstrumentError> {
        let mut buffer = vec![0; 64 * 1024];
        while pipe::wait_readable(self.stdout.as_fd(), Duration::ZERO).unwrap_or(false) {
            let n = self.stdout.read(&mut buffer).map_err(|source| self.unreadable("stdout", source))?;
            if n == 0 {
                break;
            }
            self.written.extend_from_slice(&buffer[..n]);
            if self.written.len() as u64 > MAX_RESULT {
                return Err(InstrumentError::TooMuch { program: self.name.clone(), limit: MAX_RESULT >> 20 });
            }
        }
        Ok(())
    }

    /// Asks it to end (`SIGINT`), as Ctrl-C does.
    pub fn interrupt(&self) {
        if self.status.is_none() {
            // The group may be gone already.
            let _ = self.leader.signal(libc::SIGINT);
        }
    }

    /// Policies and CPUs of its threads, and of those of its children.
    pub fn threads(&self) -> BTreeSet<SeenThread> {
        let thread = |pid: u32, tid: u32| {
            let name = punctual_host::name_of_thread(pid, tid)?;
            Some(SeenThread { name, policy: sched::policy(tid).ok()?.known()?, cpus: sched::affinity(tid).ok()? })
        };
        let of_pid = |pid: u32| punctual_host::threads_of(pid).into_iter().filter_map(move |tid| thread(pid, tid));
        punctual_host::with_descendants(self.leader.id()).into_iter().flat_map(of_pid).collect()
    }

    /// The result of the program, which must have ended: the content of `output` in its directory, or of its stdout.
    /// `is_interrupted`: it was asked to end. Errors: when it failed, has not ended, or there is no such file.
    pub fn result(
        &mut self,
        output: Option<&str>,
        is_interrupted: bool,
        limit: Span,
    ) -> Result<Vec<u8>, InstrumentError> {
        let program = self.name.clone();
        let Some(status) = self.status else {
            self.end();
            self.read()?;
            return Err(InstrumentError::Endless { program, limit, said: self.quoted() });
        };
        self.read()?;
        // What it has left behind must not write any more.
        self.end();
        let ended_as_asked = is_interrupted && status.signal() == Some(libc::SIGINT);
        if !status.success() && !ended_as_asked {
            let said = self.said().unwrap_or_else(|| "no message; try it by hand".to_owned());
            return Err(InstrumentError::Failed { program, status, said });
        }
        let Some(name) = output else { return Ok(std::mem::take(&mut self.written)) };
        let unreadable = |source| InstrumentError::Output { program: program.clone(), file: name.to_owned(), source };
        let path = self.directory.path().join(name);
        // A link may lead to a file that is no result.
        if path.is_symlink() {
            return Err(unreadable(io::Error::other("expected a regular file, found a link")));
        }
        let file = punctual_host::file::open(&path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(MAX_RESULT + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_RESULT {
            return Err(InstrumentError::TooMuch { program, limit: MAX_RESULT >> 20 });
        }
        Ok(bytes)
    }

    /// Exit status, once it has ended: `exit status: 0`, `signal: 2 (SIGINT)`.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// Its words on stderr, after a semicolon, for an error; or empty.
    pub fn quoted(&self) -> String {
        self.said().map_or_else(String::new, |said| format!("; it says: {said}"))
    }

    /// The first line of its stderr, or else the last of its stdout.
    fn said(&self) -> Option<String> {
        let bytes = punctual_host::written(&self.stderr).ok()?;
        let (stderr, stdout) = (String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&self.written));
        let is_word = |line: &&str| !line.trim().is_empty();
        let line = stderr.lines().find(is_word).or_else(|| stdout.lines().rfind(is_word))?.trim();
        let line = line.strip_prefix("punctual: ").unwrap_or(line);
        Some(line.chars().filter(|c| punctual_model::is_plain(*c)).take(MAX_QUOTED_CHARS).collect())
    }

    /// Ends the program and everything that it has started: SIGTERM, then SIGKILL.
    fn end(&mut self) {
        end_group(&mut self.leader, &self.mark, &mut self.status);
    }

    fn unreadable(&self, file: &str, source: io::Error) -> InstrumentError {
        InstrumentError::Output { program: self.name.clone(), file: file.to_owned(), source }
    }
}

/// Ends a program that leads a process group, and everything that it has started: SIGTERM, then SIGKILL.
pub(crate) fn end_group(leader: &mut Leader, own_mark: &str, status: &mut Option<ExitStatus>) {
    if status.is_none() {
        let _ = leader.signal(libc::SIGTERM);
        let until = Instant::now() + SIGNAL_GRACE;
        while status.is_none() && Instant::now() < until {
            *status = leader.status().ok().flatten();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let ended = leader.end().ok();
    *status = status.or(ended);
    // Those that have left the group.
    punctual_host::kill_marked(|mark| mark == own_mark);
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether the program of these words can be found; the reason if not.
pub fn why_none(program: &str) -> Option<String> {
    find(program).err().map(|err| err.to_string())
}

/// Path of a program for the record.
pub fn path_of(program: &str) -> Option<String> {
    find(program)
        .ok()
        .and_then(|path| path.canonicalize().ok())
        .map(|path: PathBuf| Path::new(&path).display().to_string())
}
