//! Group `process`: making processes, and having them become another program.

use super::{NotReady, Ready, unknown};
use crate::host;
use rt::sys::spawn::Program;
use rt::sys::work;
use std::path::Path;

/// What this program is called when all it has to do is to end.
const NOTHING: &str = "punctual-nothing";

/// Whether this process was started to end at once, as the smallest program that is there in any guest.
pub(crate) fn is_nothing() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NOTHING)
}

const SHELL: &str = "/bin/sh";

pub(super) fn make(name: &str) -> Result<Ready, NotReady> {
    match name {
        "fork" => Ok(Ready::each(work::fork_and_wait)),
        "exec" => {
            let program = Program::new(host::THIS_PROGRAM, &[NOTHING])?;
            Ok(Ready::each(move || program.run()))
        }
        "shell" if !Path::new(SHELL).exists() => Err(NotReady::Missing(format!("no {SHELL}"))),
        "shell" => {
            let program = Program::new(SHELL, &["sh", "-c", ":"])?;
            Ok(Ready::each(move || program.run()))
        }
        other => Err(unknown(other)),
    }
}
