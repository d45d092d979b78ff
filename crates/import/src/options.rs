//! What the user states of files that lack it.

use punctual_model::{ImportedLoad, Period, Policy};

/// Properties of an imported file stated by the user, where the file lacks them.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Unit of the values.
    pub unit: Option<Unit>,
    /// Period of the thread.
    pub period: Option<Period>,
    /// Scheduling policy of the thread.
    pub policy: Option<Policy>,
    /// Background work.
    pub load: Option<ImportedLoad>,
}

/// Unit of the values of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Unit {
    /// One unit, ns.
    pub(super) fn ns(self) -> u64 {
        match self {
            Unit::Ns => 1,
            Unit::Us => 1_000,
            Unit::Ms => 1_000_000,
            Unit::S => 1_000_000_000,
        }
    }
}
