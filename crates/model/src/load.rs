//! Background work while measuring.

use crate::UnknownWord;
use crate::word::as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Background work while measuring.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum Load {
    /// Nothing is started; whatever else the machine does goes on.
    None,
    /// A process on each CPU that computes for a part of its time.
    Cpu {
        /// Percent of each CPU, 1 to 100.
        percent: Percent,
    },
    /// hackbench's pattern: groups of 20 senders and 20 receivers over socket pairs.
    Messaging {
        /// Number of groups; `None` means 10, or one for each CPU where there are more than 10.
        groups: Option<u32>,
    },
    /// A process for each CPU that asks one part of the kernel for the same again and again.
    Kernel(KernelLoad),
}

/// 1 to 100 percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

impl Percent {
    /// All of it.
    pub const ALL: Percent = Percent(100);

    /// `None` outside 1..=100.
    #[must_use]
    pub fn new(value: u32) -> Option<Percent> {
        u8::try_from(value).ok().filter(|value| (1..=100).contains(value)).map(Percent)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

/// Which part of the kernel a load works on, one process for each CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelLoad {
    /// A byte through a pipe to another process and back.
    Pipe,
    /// Map 4 MiB, touch every page, unmap.
    Mmap,
    /// Make a process that ends at once.
    Fork,
    /// Make a process that becomes another program, which ends at once.
    Exec,
    /// Stream blocks to another process over a TCP connection through the loopback device.
    Tcp,
    /// Send datagrams to another process through the loopback device.
    Udp,
    /// Write a file, read it, sync it, remove it.
    Disk,
    /// Have everything written to disk that is not yet.
    Sync,
    /// Write to memory in random order: misses caches and TLB.
    Memory,
    /// Keep a thousand timers that all expire at the same instants.
    Timers,
    /// Send oneself a signal and handle it.
    Signals,
    /// Read the files of every process.
    Proc,
    /// Have a timer interrupt as often as user space can.
    Interrupts,
    /// Look at all processes once a second, as a system monitor does.
    Light,
}

impl KernelLoad {
    /// All of them, in the order in which they are listed.
    pub const ALL: [KernelLoad; 14] = [
        KernelLoad::Pipe,
        KernelLoad::Mmap,
        KernelLoad::Fork,
        KernelLoad::Exec,
        KernelLoad::Tcp,
        KernelLoad::Udp,
        KernelLoad::Disk,
        KernelLoad::Sync,
        KernelLoad::Memory,
        KernelLoad::Timers,
        KernelLoad::Signals,
        KernelLoad::Proc,
        KernelLoad::Interrupts,
        KernelLoad::Light,
    ];

    /// As it is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KernelLoad::Pipe => "pipe",
            KernelLoad::Mmap => "mmap",
            KernelLoad::Fork => "fork",
            KernelLoad::Exec => "exec",
            KernelLoad::Tcp => "tcp",
            KernelLoad::Udp => "udp",
            KernelLoad::Disk => "disk",
            KernelLoad::Sync => "sync",
            KernelLoad::Memory => "memory",
            KernelLoad::Timers => "timers",
            KernelLoad::Signals => "signals",
            KernelLoad::Proc => "proc",
            KernelLoad::Interrupts => "interrupts",
            KernelLoad::Light => "light",
        }
    }
}

/// Why a text names no load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No such load.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// An option that the load does not take.
    #[error("`{0}` is no share of a CPU; write cpu:1 to cpu:100, in percent")]
    Percent(String),
    /// Another number of groups than can be.
    #[error("`{0}` has no number of groups from 1 to 1000; write messaging:groups=10")]
    Groups(String),
}

impl Load {
    /// Every load as it is typed.
    pub const KNOWN: &[&str] = &[
        "none",
        "cpu[:PERCENT]",
        "messaging[:groups=N]",
        "pipe",
        "mmap",
        "fork",
        "exec",
        "tcp",
        "udp",
        "disk",
        "sync",
        "memory",
        "timers",
        "signals",
        "proc",
        "interrupts",
        "light",
    ];
    /// The most groups: 1000 groups are 40 000 processes.
    pub const MAX_GROUPS: u32 = 1000;
}

impl FromStr for Load {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        let (word, option) = text.split_once(':').map_or((text, None), |(word, option)| (word, Some(option)));
        match (word, option) {
            ("none", None) => Ok(Load::None),
            ("cpu", None) => Ok(Load::Cpu { percent: Percent::ALL }),
            ("cpu", Some(percent)) => {
                let percent = percent.parse().ok().and_then(Percent::new);
                percent.map(|percent| Load::Cpu { percent }).ok_or_else(|| LoadError::Percent(text.to_owned()))
            }
            ("messaging", None) => Ok(Load::Messaging { groups: None }),
            ("messaging", Some(option)) => {
                let groups = option.strip_prefix("groups=").and_then(|n| n.parse().ok());
                let groups = groups.filter(|n| (1..=Load::MAX_GROUPS).contains(n));
                groups.map(|n| Load::Messaging { groups: Some(n) }).ok_or_else(|| LoadError::Groups(text.to_owned()))
            }
            (word, option) => {
                let known = KernelLoad::ALL.into_iter().find(|load| load.name() == word && option.is_none());
                known.map(Load::Kernel).ok_or_else(|| UnknownWord::new("load", text, Load::KNOWN).into())
            }
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::None => f.pad("none"),
            Load::Cpu { percent: Percent::ALL } => f.pad("cpu"),
            Load::Cpu { percent } => f.pad(&format!("cpu:{}", percent.0)),
            Load::Messaging { groups: None } => f.pad("messaging"),
            Load::Messaging { groups: Some(n) } => f.pad(&format!("messaging:groups={n}")),
            Load::Kernel(load) => f.pad(load.name()),
        }
    }
}

as_text!(Load, LoadError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_print_as_they_are_typed() {
        let with_options = ["cpu:1", "cpu:99", "messaging:groups=1", "messaging:groups=1000"];
        let words = Load::KNOWN.iter().map(|form| form.split(['[', ':']).next().unwrap_or(form));
        for text in words.chain(with_options) {
            assert_eq!(text.parse::<Load>().map(|load| load.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("cpu:100".parse::<Load>().map(|load| load.to_string()), Ok("cpu".to_owned()));
    }

    #[test]
    fn what_is_no_load_is_one_line_that_says_what_to_write() {
        let percent = |text| format!("`{text}` is no share of a CPU; write cpu:1 to cpu:100, in percent");
        let groups = |text| format!("`{text}` has no number of groups from 1 to 1000; write messaging:groups=10");
        for (text, message) in [
            ("cpu:0", percent("cpu:0")),
            ("cpu:101", percent("cpu:101")),
            ("cpu:", percent("cpu:")),
            ("cpu:half", percent("cpu:half")),
            ("messaging:groups=0", groups("messaging:groups=0")),
            ("messaging:groups=1001", groups("messaging:groups=1001")),
            ("messaging:loops=5", groups("messaging:loops=5")),
        ] {
            assert_eq!(text.parse::<Load>().map_err(|err| err.to_string()), Err(message));
        }
        for (text, nearest) in [("mesaging", Some("messaging")), ("disc", Some("disk")), ("", None), ("none:1", None)] {
            let Err(LoadError::Unknown(unknown)) = text.parse::<Load>() else { panic!("{text}") };
            assert_eq!(unknown.nearest().as_deref(), nearest, "{text}");
        }
    }
}
