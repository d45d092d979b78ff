//! Streams and files of a result.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// Output streams of a run.
#[expect(missing_debug_implementations, reason = "a writer has nothing to show")]
pub struct Console<'a> {
    /// Stream of the result.
    pub out: &'a mut dyn Write,
    /// Stream of notes and of the status.
    pub err: &'a mut dyn Write,
    /// Whether the reader of the result has closed its pipe.
    pub is_closed: bool,
}

impl Console<'_> {
    /// Prints whole lines and flushes.
    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.is_closed |= written.as_ref().is_err_and(|err| err.kind() == io::ErrorKind::BrokenPipe);
        written
    }

    /// Prints a note; a closed stderr does not end the run.
    pub(super) fn say(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes());
    }
}

/// Output file of a result.
#[derive(Debug)]
pub(super) struct Sink {
    option: &'static str,
    path: String,
    /// The file; `None`: stdout.
    file: Option<File>,
}

impl Sink {
    /// Opens `path` without truncating it, so that a failed run keeps the previous result.
    pub(super) fn open(option: &'static str, path: &str, may_be_stdout: bool) -> Result<Sink, String> {
        let open = || OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = if may_be_stdout && path == "-" { None } else { Some(open()) };
        let file = file.transpose().map_err(|err| format!("{option} {path}: {err}"))?;
        Ok(Sink { option, path: path.to_owned(), file })
    }

    pub(super) fn write(self, text: &str, console: &mut Console<'_>) -> Result<(), String> {
        let Sink { option, path, file } = self;
        let written = match file {
            None => console.print(text),
            // Devices and pipes cannot be truncated, and need not be.
            Some(mut file) => {
                if file.metadata().is_ok_and(|found| found.is_file()) {
                    file.set_len(0).and_then(|()| file.write_all(text.as_bytes()))
                } else {
                    file.write_all(text.as_bytes())
                }
            }
        };
        written.map_err(|err| format!("{option} {path}: {err}"))
    }
}
