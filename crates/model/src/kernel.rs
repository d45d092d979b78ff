//! The kernels that cells run on.

use crate::UnknownWord;
use crate::word::as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kernel a cell runs on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum Kernel {
    /// The kernel of this machine, as booted.
    Running,
}

impl Kernel {
    /// Every kernel as it is typed.
    pub const KNOWN: &[&str] = &["running"];
}

impl FromStr for Kernel {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text {
            "running" => Ok(Kernel::Running),
            _ => Err(UnknownWord::new("kernel", text, Kernel::KNOWN)),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("running")
    }
}

as_text!(Kernel, UnknownWord);
