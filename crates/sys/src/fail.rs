//! Named places at which a test kills, stops or hinders the program.
//!
//! Without the feature `fail-points`, which only tests turn on, nothing of it is compiled.
//!
//! `PUNCTUAL_FAIL_AT=ACTION:NAME` acts at the first passage of the place NAME in each process that has the variable;
//! `ACTION:NAME@3` at the third. `list:FILE` appends each place that is passed to FILE, in the form that actions take,
//! with the process, for a test that visits all of them. Several actions are separated by commas. Where
//! `PUNCTUAL_FAIL_LOG` names a file, each action but `list` appends a line to it: itself and the process.

use std::io::{self, Write};

/// A place that is passed: `kill` ends the process there by SIGKILL, `stop` stops it by SIGSTOP, as a debugger would.
#[cfg_attr(not(feature = "fail-points"), inline(always))]
pub fn point(name: &str) {
    #[cfg(feature = "fail-points")]
    active::act(name);
    #[cfg(not(feature = "fail-points"))]
    let _ = name;
}

/// A write that can fail, besides what [`point`] does: `full` makes it fail with ENOSPC, `lost` with EPIPE. Errors:
/// what the action says.
#[cfg_attr(not(feature = "fail-points"), inline(always))]
pub fn write(name: &str) -> io::Result<()> {
    #[cfg(feature = "fail-points")]
    return active::act(name).map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)));
    #[cfg(not(feature = "fail-points"))]
    {
        let _ = name;
        Ok(())
    }
}

/// Writes `bytes`; with the feature in two halves, with the place of a [`write()`] between them. Errors: those of the
/// writer, and what the action says.
#[cfg_attr(not(feature = "fail-points"), inline(always))]
pub fn write_all(name: &str, to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let half = if cfg!(feature = "fail-points") { bytes.len() / 2 } else { bytes.len() };
    let (first, second) = bytes.split_at(half);
    to.write_all(first)?;
    write(name)?;
    to.write_all(second)
}

#[cfg(feature = "fail-points")]
mod active {
    use std::collections::HashMap;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::sync::{Mutex, PoisonError};

    /// Does what the environment asks for at this place; returns the errno of a write that is to fail.
    pub(super) fn act(name: &str) -> Option<i32> {
        static PASSED: Mutex<Option<HashMap<String, u32>>> = Mutex::new(None);
        let asked = std::env::var("PUNCTUAL_FAIL_AT").ok()?;
        let passed = {
            let mut all = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
            let passed = all.get_or_insert_default().entry(name.to_owned()).or_default();
            *passed += 1;
            *passed
        };
        let here = if passed == 1 { name.to_owned() } else { format!("{name}@{passed}") };
        let process = std::process::id();
        // The list is complete also where the process ends here.
        let actions = || asked.split(',').filter_map(|action| action.split_once(':'));
        actions()
            .filter(|(action, _)| *action == "list")
            .for_each(|(_, file)| append(file, &format!("{here} {process}")));
        let (action, _) = actions().find(|(action, place)| *action != "list" && *place == here)?;
        if let Ok(log) = std::env::var("PUNCTUAL_FAIL_LOG") {
            append(&log, &format!("{action}:{here} {process}"));
        }
        match action {
            "kill" => signal(libc::SIGKILL),
            "stop" => signal(libc::SIGSTOP),
            "full" => Some(libc::ENOSPC),
            "lost" => Some(libc::EPIPE),
            _ => None,
        }
    }

    fn signal(signal: i32) -> Option<i32> {
        let _ = crate::process::signal(std::process::id(), signal);
        None
    }

    /// One write, so that lines of several processes stay whole.
    fn append(file: &str, line: &str) {
        let file = OpenOptions::new().append(true).create(true).open(file);
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}
