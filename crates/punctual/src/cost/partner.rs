//! Another process of an operation, on the same CPU.

use rt::sys::{process, spawn};
use std::io;

/// Works until it is dropped, or until whoever made it ends.
#[derive(Debug)]
pub(super) struct Partner(u32);

impl Partner {
    /// Has a new process do `work`, which goes on for ever unless something fails.
    ///
    /// # Errors
    /// When there can be no process.
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
