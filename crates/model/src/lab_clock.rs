//! What the time of a guest is.

use crate::UnknownWord;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What the times of a guest are. Times of different clocks are never compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LabClock {
    /// Instructions: each counts as a nanosecond, and nothing else takes time (QEMU, "TCG Instruction Counting"). One CPU.
    #[default]
    Virtual,
    /// This machine's time, while QEMU translates the guest's instructions: tens of times slower than hardware.
    Emulated,
    /// This machine's time, while its processor runs the guest's instructions (KVM).
    Kvm,
}

impl LabClock {
    const ALL: [(LabClock, &str); 3] =
        [(LabClock::Virtual, "virtual"), (LabClock::Emulated, "emulated"), (LabClock::Kvm, "kvm")];
    /// Every clock as it is typed.
    pub const KNOWN: &[&str] = &["virtual", "emulated", "kvm"];

    /// As it is typed.
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
