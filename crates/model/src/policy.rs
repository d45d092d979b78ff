//! Scheduling policies of a measured thread.

use crate::UnknownWord;
use crate::word::as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A static priority of a real-time policy: 1 (lowest) to 99, sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RtPriority(u8);

impl RtPriority {
    /// `None` outside 1..=99.
    #[must_use]
    pub fn new(value: u32) -> Option<Self> {
        u8::try_from(value).ok().filter(|value| (1..=99).contains(value)).map(Self)
    }

    /// The priority as the kernel takes it.
    #[must_use]
    pub fn get(self) -> u32 {
        u32::from(self.0)
    }
}

/// How the kernel schedules the measured thread, sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// `SCHED_OTHER` at nice 0: what every program gets.
    Other,
    /// `SCHED_FIFO` at the given priority.
    Fifo(RtPriority),
}

/// Why a text names no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No such policy; it never falls back to another one.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// A priority outside 1..=99.
    #[error("`fifo:{0}` has no priority from 1 to 99; write fifo:80")]
    Priority(String),
    /// `fifo` alone.
    #[error("`{0}` needs a priority from 1 to 99; write {0}:80")]
    NoPriority(String),
}

impl Policy {
    /// Every policy as it is typed.
    pub const KNOWN: &[&str] = &["other", "fifo:PRIORITY"];

    /// Whether it is a real-time policy, which needs a privilege and has no timer slack.
    #[must_use]
    pub fn is_realtime(self) -> bool {
        matches!(self, Policy::Fifo(_))
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("other", "") if !text.contains(':') => Ok(Policy::Other),
            ("fifo", "") => Err(PolicyError::NoPriority("fifo".to_owned())),
            ("fifo", priority) => (priority.parse().ok().and_then(RtPriority::new))
                .map(Policy::Fifo)
                .ok_or_else(|| PolicyError::Priority(priority.to_owned())),
            _ => Err(UnknownWord::new("scheduling policy", text, Policy::KNOWN).into()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Other => f.pad("other"),
            Policy::Fifo(priority) => f.pad(&format!("fifo:{}", priority.0)),
        }
    }
}

as_text!(Policy, PolicyError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_1_to_99_and_unknown_policies_are_refused() {
        let fifo = |n| RtPriority::new(n).map(Policy::Fifo).ok_or(());
        for n in [1, 80, 99] {
            assert_eq!(format!("fifo:{n}").parse::<Policy>().map_err(|_| ()), fifo(n));
        }
        assert_eq!("other".parse(), Ok(Policy::Other));
        for (text, message) in [
            ("fifo:0", "`fifo:0` has no priority from 1 to 99; write fifo:80"),
            ("fifo:100", "`fifo:100` has no priority from 1 to 99; write fifo:80"),
            ("fifo:-1", "`fifo:-1` has no priority from 1 to 99; write fifo:80"),
            ("fifo", "`fifo` needs a priority from 1 to 99; write fifo:80"),
            ("fifoo:80", "unknown scheduling policy `fifoo:80` (did you mean `fifo:80`? known: other fifo:PRIORITY)"),
            ("other:5", "unknown scheduling policy `other:5` (known: other fifo:PRIORITY)"),
        ] {
            assert_eq!(text.parse::<Policy>().map_err(|e| e.to_string()), Err(message.to_owned()));
        }
    }
}
