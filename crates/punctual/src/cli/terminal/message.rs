//! Lines for people on stderr, and how a command ends.

use crate::cli::arguments::wrapped_to;
use punctual_model::plain;
use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};

/// Result of a command: an exit status, or a one-line error message.
pub(in crate::cli) type Outcome = Result<u8, Box<dyn Error>>;

/// Exit status of an error: nothing was measured, or not as requested. The other statuses are verdicts.
pub(in crate::cli) const ERROR: u8 = 1;

/// Directory of the runs without a named one, below the current directory.
pub(in crate::cli) const RUNS: &str = "runs";

/// Writes a line to stderr and ignores a failure.
pub(in crate::cli) fn note(line: impl Display) {
    let _ = io::stderr().write_all((shown(&line.to_string()) + "\n").as_bytes());
}

/// Writes a sentence to stderr, on a terminal wrapped between words: not for commands, which have to be pasted whole.
pub(in crate::cli) fn sentence(text: impl Display) {
    let text = text.to_string();
    match punctual_sys::terminal::size(&io::stderr()) {
        Some(size) => wrapped_to(&text, size.columns).lines().for_each(note),
        None => note(text),
    }
}

/// The line without terminal control characters, and without the middle of a very long word. Quoted parts may come from
/// another user.
fn shown(line: &str) -> String {
    /// Length in characters up to which a line is kept: two paths of `PATH_MAX` (limits.h) fit.
    const MAX_LENGTH: usize = 10_000;
    /// Length that remains at the beginning and at the end of a longer line; the end has the hint.
    const END_LENGTH: usize = 1_000;
    let line = plain(line);
    let n = line.chars().count();
    if n <= MAX_LENGTH {
        return line.into_owned();
    }
    let part = |from: usize| line.chars().skip(from).take(END_LENGTH).collect::<String>();
    format!("{} ... ({} characters omitted) ... {}", part(0), n - 2 * END_LENGTH, part(n - END_LENGTH))
}

/// The text of an error on one line.
pub(in crate::cli) fn one_line(err: &dyn Error) -> String {
    err.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_is_quoted_in_it() {
        for (line, expected) in [
            ("", ""),
            ("cannot read /\u{b5}/run.jsonl", "cannot read /\u{b5}/run.jsonl"),
            ("unknown key `\x1b]0;x\x07\x1b[2J`\r\nroot# ", "unknown key `\u{fffd}]0;x\u{fffd}\u{fffd}[2J`  root# "),
        ] {
            assert_eq!(shown(line), expected);
        }
        let long = |n: usize| format!("unknown `{}`; see --help", "x".repeat(n));
        assert_eq!(shown(&long(9_976)), long(9_976));
        let cut = shown(&long(1_000_000));
        assert!(cut.len() < 2_100 && cut.starts_with("unknown `xxx") && cut.ends_with("xxx`; see --help"), "{cut}");
        assert!(cut.contains("x ... (998022 characters omitted) ... x"), "{cut}");
    }
}
