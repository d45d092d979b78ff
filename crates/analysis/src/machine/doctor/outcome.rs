//! Outcome of a check.

use serde::Serialize;

/// Severity of a finding, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Makes wake-ups late in ordinary use.
    Will,
    /// Makes wake-ups late under some circumstances.
    May,
    /// Cannot be determined here.
    Unknown,
    /// As it should be.
    Ok,
    /// Does not exist on this machine.
    NotApplicable,
}

/// Finding of a check on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Outcome {
    /// Severity of the finding.
    pub severity: Severity,
    /// The finding, with the values it is based on.
    pub found: String,
    /// Remedy; `None` if none is needed or possible.
    pub remedy: Option<Remedy>,
}

/// Change that remedies a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Remedy {
    /// Command to run as root, or kernel parameter.
    pub change: String,
    /// Command that reverts the change.
    pub undo: String,
    /// Caution: a condition or side effect of the change.
    pub caution: Option<String>,
}

impl Outcome {
    fn new(severity: Severity, found: impl Into<String>) -> Outcome {
        Outcome { severity, found: found.into(), remedy: None }
    }

    pub(super) fn will(found: impl Into<String>) -> Outcome {
        Outcome::new(Severity::Will, found)
    }

    pub(super) fn may(found: impl Into<String>) -> Outcome {
        Outcome::new(Severity::May, found)
    }

    pub(super) fn unknown(found: impl Into<String>) -> Outcome {
        Outcome::new(Severity::Unknown, found)
    }

    pub(super) fn ok(found: impl Into<String>) -> Outcome {
        Outcome::new(Severity::Ok, found)
    }

    pub(super) fn not_here(found: impl Into<String>) -> Outcome {
        Outcome::new(Severity::NotApplicable, found)
    }

    /// Adds a remedy: a command or kernel parameter, and its undo.
    pub(super) fn change(mut self, change: impl Into<String>, undo: impl Into<String>) -> Outcome {
        self.remedy = Some(Remedy { change: change.into(), undo: undo.into(), caution: None });
        self
    }

    /// Adds a caution to the remedy.
    pub(super) fn caution(mut self, caution: impl Into<String>) -> Outcome {
        if let Some(remedy) = &mut self.remedy {
            remedy.caution = Some(caution.into());
        }
        self
    }

    /// Adds a remedy by sysctl(8); the undo restores the value found.
    pub(super) fn sysctl(self, name: &str, value: impl std::fmt::Display, before: impl std::fmt::Display) -> Outcome {
        self.change(format!("sysctl -w {name}={value}"), format!("sysctl -w {name}={before}"))
    }

    /// Adds a remedy that writes to a file below `/sys` or `/proc`; the undo restores the value found.
    pub(super) fn write(self, path: &str, value: impl std::fmt::Display, before: impl std::fmt::Display) -> Outcome {
        self.change(format!("echo {value} > {path}"), format!("echo {before} > {path}"))
    }

    /// Adds a remedy that writes to several files, given by a shell pattern.
    pub(super) fn write_all(self, paths: &str, value: &str, before: &str) -> Outcome {
        self.change(format!("echo {value} | tee {paths}"), format!("echo {before} | tee {paths}"))
    }

    /// Adds a kernel parameter as the remedy, effective from the next boot on.
    pub(super) fn boot_with(self, parameter: &str) -> Outcome {
        self.change(format!("kernel parameter {parameter}"), format!("boot without {parameter}"))
    }
}
