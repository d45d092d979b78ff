//! The axes that are words: kernel and load.

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

/// Background work while measuring.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum Load {
    /// Nothing is started; whatever else the machine does goes on.
    None,
    /// A process for each CPU that only computes.
    Cpu,
    /// hackbench's pattern: groups of 20 senders and 20 receivers over socket pairs.
    Messaging {
        /// Number of groups; `None` means 10, or one for each CPU where there are more than 10.
        groups: Option<u32>,
    },
}

impl Load {
    /// Every load as it is typed.
    pub const KNOWN: &[&str] = &["none", "cpu", "messaging", "messaging:groups=N"];
    /// The most groups: 1000 groups are 40 000 processes.
    pub const MAX_GROUPS: u32 = 1000;
}

impl FromStr for Load {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let unknown = || UnknownWord::new("load", text, Load::KNOWN);
        match text.split_once(':') {
            None if text == "none" => Ok(Load::None),
            None if text == "cpu" => Ok(Load::Cpu),
            None if text == "messaging" => Ok(Load::Messaging { groups: None }),
            Some(("messaging", option)) => {
                let groups = option.strip_prefix("groups=").and_then(|n| n.parse().ok());
                let groups = groups.filter(|n| (1..=Load::MAX_GROUPS).contains(n)).ok_or_else(unknown)?;
                Ok(Load::Messaging { groups: Some(groups) })
            }
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::None => f.pad("none"),
            Load::Cpu => f.pad("cpu"),
            Load::Messaging { groups: None } => f.pad("messaging"),
            Load::Messaging { groups: Some(n) } => f.pad(&format!("messaging:groups={n}")),
        }
    }
}

as_text!(Load, UnknownWord);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_print_as_they_are_typed() {
        for text in ["none", "cpu", "messaging", "messaging:groups=1", "messaging:groups=1000"] {
            assert_eq!(text.parse::<Load>().map(|load| load.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["messaging:groups=0", "messaging:groups=1001", "messaging:loops=5", "mesaging", "", "none:1", "cpu:"]
        {
            assert!(text.parse::<Load>().is_err(), "{text}");
        }
        assert_eq!("mesaging".parse::<Load>().unwrap_err().nearest().as_deref(), Some("messaging"));
    }
}
