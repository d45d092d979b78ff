//! Programs of ours in several languages, started as a user would start them, that sleep and tell how long it took.

mod find;
mod launch;
mod make;
mod protocol;
mod sleeper;

pub use find::{Installed, find};
pub use launch::{Launch, command as launch_command, launch};
pub use make::{SleepProgram, make};
pub use protocol::Sleep;
pub use sleeper::Sleeper;

use model::Runtime;
use protocol::ProtocolError;
use std::io;
use std::path::PathBuf;

/// Why the sleep of a language was not measured.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The machine has no such language.
    #[error("{runtime} is not installed: no working {missing}; on Debian: apt-get install {packages}")]
    NotInstalled {
        /// Which.
        runtime: Runtime,
        /// The command that was looked for.
        missing: String,
        /// The Debian packages that have all it takes.
        packages: &'static str,
    },
    /// The program of ours has no place to be in.
    #[error("cannot keep the program for {runtime} in {path}: {source}; set TMPDIR to a directory with room", path = path.display())]
    Keep {
        /// Which.
        runtime: Runtime,
        /// File or directory.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A compiler refused.
    #[error("{compiler} cannot compile the program for {runtime}: {said}", compiler = compiler.display())]
    Compile {
        /// Which.
        runtime: Runtime,
        /// Its compiler.
        compiler: PathBuf,
        /// What it said.
        said: String,
    },
    /// No process, or it cannot be talked to.
    #[error("CPU {cpu}: cannot run the program for {runtime}: {source}")]
    Process {
        /// Where.
        cpu: u32,
        /// Which.
        runtime: Runtime,
        /// The kernel's reason.
        source: io::Error,
    },
    /// It ended, which it never does by itself.
    #[error("CPU {cpu}: the program for {runtime} ended: {said}")]
    Ended {
        /// Where.
        cpu: u32,
        /// Which.
        runtime: Runtime,
        /// What it said last, or how it ended.
        said: String,
    },
    /// It never got as far as to sleep.
    #[error("CPU {cpu}: {runtime} was not ready to sleep after {seconds} s; end what keeps the CPU busy")]
    NotReady {
        /// Where.
        cpu: u32,
        /// Which.
        runtime: Runtime,
        /// How long it was waited for.
        seconds: u64,
    },
    /// It said something that cannot be true.
    #[error("CPU {cpu}: {runtime} says {source}")]
    Protocol {
        /// Where.
        cpu: u32,
        /// Which.
        runtime: Runtime,
        /// What.
        source: ProtocolError,
    },
    /// A thread of it has another policy than the cell asks for, or other CPUs.
    #[error("CPU {cpu}: thread {tid} of {runtime} has {what} {found}, not {asked}")]
    Differs {
        /// Where.
        cpu: u32,
        /// Which.
        runtime: Runtime,
        /// The kernel's id of the thread.
        tid: u32,
        /// `policy` or `CPUs`.
        what: &'static str,
        /// What the cell asks for.
        asked: String,
        /// What the kernel reports.
        found: String,
    },
}

/// The line of a program's words on stderr that says most: the first that names an error, else the first that says
/// anything; `otherwise` when it was silent.
fn telling_line(words: &str, otherwise: impl ToString) -> String {
    let mut lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let names_error =
        |line: &&str| ["error", "exception", "fatal"].iter().any(|sign| line.to_lowercase().contains(sign));
    let line = lines.clone().find(names_error).or_else(|| lines.next());
    // Our own launcher may have said it.
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
