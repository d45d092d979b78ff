//! Errors of files that cannot be imported.

use std::path::{Path, PathBuf};

/// Reason why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The content is invalid.
    #[error("{path}{place}: {reason}", path = path.display())]
    ParseError {
        /// The file.
        path: PathBuf,
        /// `:LINE`, or empty.
        place: String,
        /// Reason and advice.
        reason: String,
    },
}

/// An error in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParseError {
    /// Line, from 1; `None` for the file as a whole.
    pub(super) line: Option<usize>,
    pub(super) reason: String,
}

/// Limit of the characters of a reason, far more than those that quote nothing have.
pub(super) const MAX_REASON: usize = 400;

impl ParseError {
    pub(super) fn at(line: usize, reason: impl Into<String>) -> ParseError {
        ParseError { line: Some(line), ..ParseError::of_file(reason) }
    }

    /// A reason may quote any length of the file.
    pub(super) fn of_file(reason: impl Into<String>) -> ParseError {
        ParseError { line: None, reason: cut(&reason.into(), MAX_REASON) }
    }

    /// A second result begins at this line: the counts of both would be mixed.
    pub(super) fn several(line: usize) -> ParseError {
        ParseError::at(line, "several results in one file; import them one by one")
    }

    /// The error in this file.
    pub(super) fn of(self, path: &Path) -> ImportError {
        ImportError::ParseError {
            path: path.to_owned(),
            place: self.line.map(|line| format!(":{line}")).unwrap_or_default(),
            reason: self.reason,
        }
    }
}

/// At most `long` characters of a text and a mark of the cut, without control characters.
pub(super) fn cut(text: &str, long: usize) -> String {
    let mut rest = text.chars().map(|c| if punctual_model::is_plain(c) { c } else { '?' });
    let mut cut: String = rest.by_ref().take(long).collect();
    if rest.next().is_some() {
        cut.push_str("...");
    }
    cut
}
