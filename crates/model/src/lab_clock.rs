//! The clock of a guest.

use crate::UnknownWord;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The clock of the times of a guest. Times of different clocks are never compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LabClock {
    /// Virtual time: each instruction counts as one nanosecond, and nothing else takes time (QEMU, "TCG Instruction
    /// Counting"). One CPU.
    #[default]
    Virtual,
    /// Host time, with instructions translated by QEMU: tens of times slower than hardware.
    Emulated,
    /// Host time, with instructions run by the host's processor (KVM).
    Kvm,
}

impl LabClock {
    const ALL: [(LabClock, &str); 3] =
        [(LabClock::Virtual, "virtual"), (LabClock::Emulated, "emulated"), (LabClock::Kvm, "kvm")];
    /// Every clock in its typed form.
    pub const KNOWN: &[&str] = &["virtual", "emulated", "kvm"];

    /// The word as typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        LabClock::ALL.into_iter().find(|(clock, _)| *clock == self).map_or("", |(_, name)| name)
    }
}

impl FromStr for LabClock {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let known = LabClock::ALL.into_iter().find(|(_, name)| *name == text);
        known.map(|(clock, _)| clock).ok_or_else(|| UnknownWord::new("clock", text, LabClock::KNOWN))
    }
}

impl fmt::Display for LabClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
