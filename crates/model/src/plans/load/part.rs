//! One part of a load: a built-in one, or an outside program.

use super::{LoadError, Program, WORDS};
use crate::UnknownWord;
use crate::words::word::words;
use serde::Serialize;
use std::fmt;

/// One kind of work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadPart {
    /// A process on each CPU that computes for a share of the time.
    Cpu {
        /// Share of each CPU, percent.
        percent: Percent,
    },
    /// hackbench's pattern: groups of 20 senders and 20 receivers over socket pairs.
    Messaging {
        /// Number of groups; `None` means 10, or one for each CPU where there are more than 10.
        groups: Option<u32>,
    },
    /// A process for each CPU that makes the same request of one part of the kernel in a loop.
    Kernel(KernelLoad),
    /// A process for each CPU that works on files in a directory.
    Files {
        /// The operations on them.
        work: FileLoad,
        /// The directory; `None` means `/var/tmp`.
        directory: Option<String>,
    },
    /// An outside program.
    Program(Program),
}

/// 1 to 100 percent.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "u32")]
pub struct Percent(u8);

impl Percent {
    /// The full share.
    pub const ALL: Percent = Percent(100);
    /// Half of it.
    pub const HALF: Percent = Percent(50);

    /// `None` outside 1..=100.
    pub fn new(value: u32) -> Option<Percent> {
        u8::try_from(value).ok().filter(|value| (1..=100).contains(value)).map(Percent)
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u32> for Percent {
    type Error = String;

    fn try_from(value: u32) -> Result<Percent, String> {
        Percent::new(value).ok_or_else(|| format!("invalid percentage `{value}`: expected 1 to 100"))
    }
}

words! {
    /// The part of the kernel that a load exercises, with one process for each CPU.
    KernelLoad {
        /// Sends a byte through a pipe to another process and back.
        Pipe = "pipe",
        /// Maps 4 MiB, touches every page, unmaps.
        Mmap = "mmap",
        /// Forks a process that exits at once.
        Fork = "fork",
        /// Forks a process that executes another program, which exits at once.
        Exec = "exec",
        /// Streams blocks to another process over a TCP connection through the loopback device.
        Tcp = "tcp",
        /// Sends datagrams to another process through the loopback device.
        Udp = "udp",
        /// Writes all dirty data to disk: `sync(2)`.
        Sync = "sync",
        /// Writes to memory in random order: misses caches and TLB.
        Memory = "memory",
        /// Keeps a thousand timers that all expire at the same instants.
        Timers = "timers",
        /// Sends signals to itself and handles them.
        Signals = "signals",
        /// Reads the files of every process in `/proc`.
        Proc = "proc",
        /// Raises timer interrupts at the highest rate possible from user space.
        Interrupts = "interrupts",
        /// Reads the state of all processes twice a second, as a system monitor does.
        Light = "light",
    }
}

words! {
    /// The operations of a load on files.
    FileLoad {
        /// Writes, reads, syncs and removes a file.
        Disk = "disk",
        /// Creates, stats and removes many empty files.
        Files = "files",
        /// All operations of the cost suite, some of which use files.
        Cost = "cost",
    }
}

impl LoadPart {
    /// Parses one part.
    pub(super) fn parse(text: &str) -> Result<LoadPart, LoadError> {
        let (word, option) = text.split_once(':').map_or((text, None), |(word, option)| (word, Some(option)));
        let kernel = KernelLoad::ALL.into_iter().find(|load| load.name() == word);
        match (word, option, kernel) {
            ("cpu", None, _) => Ok(LoadPart::Cpu { percent: Percent::ALL }),
            ("cpu", Some(percent), _) => {
                let percent = percent.parse().ok().and_then(Percent::new);
                percent.map(|percent| LoadPart::Cpu { percent }).ok_or_else(|| LoadError::Percent(text.to_owned()))
            }
            ("messaging", None, _) => Ok(LoadPart::Messaging { groups: None }),
            ("messaging", Some(option), _) => {
                let groups = option.strip_prefix("groups=").and_then(|n| n.parse().ok());
                let groups = groups.filter(|n| (1..=LoadPart::MAX_GROUPS).contains(n));
                groups
                    .map(|n| LoadPart::Messaging { groups: Some(n) })
                    .ok_or_else(|| LoadError::Groups(text.to_owned()))
            }
            ("disk" | "files" | "cost", _, _) => {
                let work = match word {
                    "disk" => FileLoad::Disk,
                    "files" => FileLoad::Files,
                    _ => FileLoad::Cost,
                };
                let is_absolute = option.is_none_or(|directory| directory.starts_with('/'));
                let directory = option.map(str::to_owned);
                is_absolute
                    .then_some(LoadPart::Files { work, directory })
                    .ok_or_else(|| LoadError::Directory(text.to_owned(), word.to_owned()))
            }
            (_, None, Some(kernel)) => Ok(LoadPart::Kernel(kernel)),
            _ => Program::parse(word, option)
                .map(|program| program.map(LoadPart::Program))
                .unwrap_or_else(|| Err(UnknownWord::new("load", text, WORDS).into())),
        }
    }

    /// The most groups: 1000 groups are 40 000 processes.
    pub const MAX_GROUPS: u32 = 1000;
}

impl fmt::Display for LoadPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadPart::Cpu { percent: Percent::ALL } => f.write_str("cpu"),
            LoadPart::Cpu { percent } => write!(f, "cpu:{}", percent.0),
            LoadPart::Messaging { groups: None } => f.write_str("messaging"),
            LoadPart::Messaging { groups: Some(n) } => write!(f, "messaging:groups={n}"),
            LoadPart::Kernel(load) => f.write_str(load.name()),
            LoadPart::Files { work, directory: None } => f.write_str(work.name()),
            LoadPart::Files { work, directory: Some(directory) } => write!(f, "{}:{directory}", work.name()),
            LoadPart::Program(program) => program.fmt(f),
        }
    }
}

/// Description of one load.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
pub struct AboutLoad {
    /// The typed form; options in brackets.
    pub load: &'static str,
    /// The work that it does.
    pub does: &'static str,
    /// Known effects on other threads.
    pub disturbs: &'static str,
    /// Resources that it uses: processes, memory, disk.
    pub costs: &'static str,
}
