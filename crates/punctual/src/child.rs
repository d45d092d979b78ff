//! This program again, as `punctual cell`: how it is started, and what it says when it fails.

use crate::host;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Starts a process that reads a cell from its stdin, writes the record to its stdout, and says on stderr how it goes. Its
/// samples go to the new file `samples`, if it is named. It ends with this process.
///
/// # Errors
/// When there can be no process.
pub(crate) fn start(samples: Option<&Path>) -> io::Result<Child> {
    Command::new(host::THIS_PROGRAM)
        .args(["cell", "--progress", "--parent", &std::process::id().to_string()])
        .args(samples.into_iter().flat_map(|path| [OsStr::new("--samples"), path.as_os_str()]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own: Ctrl-C reaches this process only, which then tells the cell to stop.
        .process_group(0)
        .spawn()
}

/// Why a process failed, out of the lines that it said besides its progress; `None` when it said nothing.
pub(crate) fn reason(said: &[String]) -> Option<String> {
    let said = said.join("; ");
    let reason = said.strip_prefix("punctual: ").unwrap_or(&said);
    (!reason.is_empty()).then(|| reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_what_was_said_without_the_programs_name() {
        let reason = |lines: &[&str]| reason(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(reason(&[]), None);
        assert_eq!(reason(&[""]), None);
        assert_eq!(reason(&["punctual: no CPU"]).as_deref(), Some("no CPU"));
        assert_eq!(reason(&["a note", "punctual: no CPU"]).as_deref(), Some("a note; punctual: no CPU"));
    }
}
