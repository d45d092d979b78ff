//! Processes: the operations of group `process`, and the partner on the same CPU that other operations need.

use super::{NotReady, ReadyOperation, unknown};
use punctual_sys::spawn::Program;
use punctual_sys::{process, spawn, work};
use std::io;
use std::path::Path;

/// Program name (`argv[0]`) with which this program ends at once.
const NOTHING: &str = "punctual-nothing";

/// Whether this process was started to end at once, as the smallest program that exists in any guest.
pub fn is_nothing() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NOTHING)
}

const SHELL: &str = "/bin/sh";

pub(crate) fn make(name: &str) -> Result<ReadyOperation, NotReady> {
    match name {
        "fork" => Ok(ReadyOperation::each(work::fork_and_wait)),
        "exec" => {
            let program = Program::new(punctual_host::THIS_PROGRAM, &[NOTHING])?;
            Ok(ReadyOperation::each(move || program.run()))
        }
        "shell" if !Path::new(SHELL).exists() => Err(NotReady::Missing(format!("no {SHELL}"))),
        "shell" => {
            let program = Program::new(SHELL, &["sh", "-c", ":"])?;
            Ok(ReadyOperation::each(move || program.run()))
        }
        other => Err(unknown(other)),
    }
}

/// A process that works until this is dropped, or until its creator ends.
#[derive(Debug)]
pub(super) struct Partner(u32);

impl Partner {
    /// Starts a process that runs `work`, which goes on forever unless something fails. Errors: when the process cannot
    /// be started.
    pub(super) fn start(work: impl FnOnce() -> io::Result<()>) -> io::Result<Partner> {
        process::fork_tied(None, libc::SIGKILL, || i32::from(work().is_err())).map(Partner)
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = process::signal(self.0, libc::SIGKILL);
        let _ = spawn::wait_for(self.0);
    }
}
