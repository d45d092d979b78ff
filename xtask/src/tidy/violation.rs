//! What a rule of `tidy` reports.

use std::fmt;

/// A violation of a rule: position, problem and remedy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Violation {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) what: String,
    pub(super) remedy: String,
}

impl Violation {
    pub(super) fn new(path: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Violation {
        Violation { path: path.to_owned(), line, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.remedy)
    }
}
