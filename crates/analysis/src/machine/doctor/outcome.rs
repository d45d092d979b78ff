//! What a check comes to.

use serde::Serialize;

/// How much what was found matters, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It makes wake-ups late in ordinary use.
    Will,
    /// It makes them late under circumstances.
    May,
    /// It cannot be told here.
    Unknown,
    /// As it should be.
    Ok,
    /// There is no such thing on this machine.
    DoesNotApply,
}

/// What a check found on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// How much it matters.
    pub severity: Severity,
    /// What was found, with the values that say so.
    pub found: String,
    /// What changes it; `None` when nothing has to be changed, or nothing can be.
    pub remedy: Option<Remedy>,
}

/// How to change what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remedy {
    /// The command, as root, or the kernel parameter.
    pub change: String,
    /// How to undo that.
    pub undo: String,
    /// What to know before.
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
        Outcome::new(Severity::DoesNotApply, found)
    }

    /// With a command or kernel parameter that changes it, and what undoes that.
    pub(super) fn change(mut self, change: impl Into<String>, undo: impl Into<String>) -> Outcome {
        self.remedy = Some(Remedy { change: change.into(), undo: undo.into(), caution: None });
        self
    }

    /// With what to know before changing it.
    pub(super) fn caution(mut self, caution: impl Into<String>) -> Outcome {
        if let Some(remedy) = &mut self.remedy {
            remedy.caution = Some(caution.into());
        }
        self
    }

    /// With a setting of sysctl(8) that changes it, and the one that was found.
    pub(super) fn sysctl(self, name: &str, value: impl std::fmt::Display, before: impl std::fmt::Display) -> Outcome {
        self.change(format!("sysctl -w {name}={value}"), format!("sysctl -w {name}={before}"))
    }

    /// With a file below `/sys` or `/proc` that changes it when written to, and the value that was found.
    pub(super) fn write(self, path: &str, value: impl std::fmt::Display, before: impl std::fmt::Display) -> Outcome {
        self.change(format!("echo {value} > {path}"), format!("echo {before} > {path}"))
    }

    /// The same for several files, named by a pattern of the shell.
    pub(super) fn write_all(self, paths: &str, value: &str, before: &str) -> Outcome {
        self.change(format!("echo {value} | tee {paths}"), format!("echo {before} | tee {paths}"))
    }

    /// With a kernel parameter that changes it from the next boot on.
    pub(super) fn boot_with(self, parameter: &str) -> Outcome {
        self.change(format!("kernel parameter {parameter}"), format!("boot without {parameter}"))
    }
}
