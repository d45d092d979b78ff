//! Processes that execute another program, and waiting for them.

use crate::check;
use std::ffi::{CStr, CString};
use std::io;

/// A program and its arguments, prepared for repeated starts.
#[derive(Debug)]
pub struct Program {
    path: CString,
    /// Memory behind the pointers.
    _arguments: Vec<CString>,
    /// The arguments as `execve(2)` takes them, with a final null pointer.
    pointers: Vec<*const libc::c_char>,
}

impl Program {
    /// A program at `path`; `arguments` begin with its name. Errors: when one of the strings contains a NUL.
    pub fn new(path: &str, arguments: &[&str]) -> io::Result<Program> {
        let arguments = arguments.iter().map(|word| CString::new(*word)).collect::<Result<Vec<_>, _>>()?;
        let end = std::iter::once(std::ptr::null());
        let pointers = arguments.iter().map(|argument| argument.as_ptr()).chain(end).collect();
        Ok(Program { path: CString::new(path)?, _arguments: arguments, pointers })
    }

    /// Starts the program without an environment and waits until it has ended: `fork(2)`, `execve(2)`, `waitpid(2)`.
    /// Errors: when no process can be created, or the program did not exit with status 0.
    pub fn run(&self) -> io::Result<()> {
        let none: [*const libc::c_char; 1] = [std::ptr::null()];
        // SAFETY: the child makes async-signal-safe calls only, and never returns into the caller's code.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: path and arguments end with NUL, both lists with a null pointer; all of them outlive the call.
            unsafe { libc::execve(self.path.as_ptr(), self.pointers.as_ptr(), none.as_ptr()) };
            // SAFETY: `_exit` takes an integer and does not return.
            unsafe { libc::_exit(127) };
        }
        check(pid.into())?;
        match wait_for(pid.cast_unsigned())? {
            0 => Ok(()),
            status => Err(io::Error::other(format_status(&self.path, status))),
        }
    }
}

fn format_status(path: &CStr, status: i32) -> String {
    format!("{} ended with status {status}", path.to_string_lossy())
}

/// Waits until child `pid` has ended. Returns its status as encoded by `waitpid(2)`, 0 for success. Errors: when there
/// is no such child.
pub fn wait_for(pid: u32) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is memory for the status.
        match check(unsafe { libc::waitpid(pid.cast_signed(), &raw mut status, 0) }.into()) {
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(|_| status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_to_its_end_and_a_failure_is_told() {
        let run = |path, arguments: &[&str]| Program::new(path, arguments).unwrap().run();
        assert!(run("/bin/sh", &["sh", "-c", ":"]).is_ok());
        assert!(run("/bin/sh", &["sh", "-c", "exit 3"]).is_err());
        assert!(run("/does/not/exist", &["x"]).is_err());
    }
}
