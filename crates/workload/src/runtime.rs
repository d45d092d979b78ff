//! Sleep programs in several languages, started as a user would start them, that report the times of their sleeps.

mod find;
mod guest;
mod launch;
mod make;
mod protocol;
mod sleeper;

pub use find::{Installed, find};
pub use guest::{ForGuests, for_guests, ready};
pub(crate) use launch::held_command;
pub use launch::{Launch, command as launch_command, launch};
pub use make::SleepProgram;
pub use protocol::Sleep;
pub use sleeper::Sleeper;

use protocol::ProtocolError;
use punctual_model::Runtime;
use std::io;
use std::path::PathBuf;

/// The reason that the sleep of a language was not measured.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The language is not installed.
    #[error("{runtime} is not installed: no working {missing}; on Debian: apt-get install {packages}")]
    NotInstalled {
        /// The language.
        runtime: Runtime,
        /// The missing command.
        missing: String,
        /// The Debian packages that provide everything needed.
        packages: &'static str,
    },
    /// The sleep program cannot be stored.
    #[error("cannot write the program for {runtime} to {path}: {source}; set TMPDIR to a directory with room", path = path.display())]
    Keep {
        /// The language.
        runtime: Runtime,
        /// File or directory.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A compiler failed.
    #[error("{compiler} cannot compile the program for {runtime}: {said}", compiler = compiler.display())]
    Compile {
        /// The language.
        runtime: Runtime,
        /// Its compiler.
        compiler: PathBuf,
        /// Its error message.
        said: String,
    },
    /// The process cannot be started, or its pipes fail.
    #[error("CPU {cpu}: cannot run the program for {runtime}: {source}")]
    Process {
        /// Its CPU.
        cpu: u32,
        /// The language.
        runtime: Runtime,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The process ended, which it never does by itself.
    #[error("CPU {cpu}: the program for {runtime} exited: {said}")]
    Ended {
        /// Its CPU.
        cpu: u32,
        /// The language.
        runtime: Runtime,
        /// Its error message, or its exit status.
        said: String,
    },
    /// The process did not become ready.
    #[error("CPU {cpu}: timeout: {runtime} not ready after {seconds} s; stop what keeps the CPU busy")]
    NotReady {
        /// Its CPU.
        cpu: u32,
        /// The language.
        runtime: Runtime,
        /// The timeout.
        seconds: u64,
    },
    /// The process sent an invalid line.
    #[error("CPU {cpu}: {runtime} reports {source}")]
    Protocol {
        /// Its CPU.
        cpu: u32,
        /// The language.
        runtime: Runtime,
        /// The protocol error.
        source: ProtocolError,
    },
    /// One of its threads has another policy or other CPUs than the cell requires.
    #[error("CPU {cpu}: thread {tid} of {runtime} has {what} {found}, not {asked}")]
    Differs {
        /// Its CPU.
        cpu: u32,
        /// The language.
        runtime: Runtime,
        /// The thread ID.
        tid: u32,
        /// `policy` or `CPUs`.
        what: &'static str,
        /// The value that the cell requires.
        asked: String,
        /// The value that the kernel reports.
        found: String,
    },
}

/// The most informative line of a program's stderr: the first that names an error, else the first that is not empty;
/// `otherwise` when there is none.
fn telling_line(words: &str, otherwise: impl ToString) -> String {
    let mut lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let names_error =
        |line: &&str| ["error", "exception", "fatal"].iter().any(|sign| line.to_lowercase().contains(sign));
    let line = lines.clone().find(names_error).or_else(|| lines.next());
    // The line may be from this program's own launcher.
    line.map_or_else(|| otherwise.to_string(), |line| line.strip_prefix("punctual: ").unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_tells_why_a_program_ended() {
        for (words, line) in [
            ("", "exit status: 1"),
            ("\n  \n", "exit status: 1"),
            ("punctual: cannot run as fifo:1: x\n", "cannot run as fifo:1: x"),
            ("pyenv: python3: command not found\nhint\n", "pyenv: python3: command not found"),
            ("Traceback:\n  File x\nBrokenPipeError: [Errno 32]\n", "BrokenPipeError: [Errno 32]"),
            (
                "Exception in thread \"main\" java.io.IOException\n\tat Sleep.main\n",
                "Exception in thread \"main\" java.io.IOException",
            ),
            (
                "sleep.c: In function\nsleep.c:1:2: fatal error: stdio.h: No such file",
                "sleep.c:1:2: fatal error: stdio.h: No such file",
            ),
        ] {
            assert_eq!(telling_line(words, "exit status: 1"), line, "{words}");
        }
    }
}
