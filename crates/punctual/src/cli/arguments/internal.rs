//! Arguments of hidden commands, which this program calls itself.

use clap::{Args, ValueEnum};
use punctual_model::{CostScope, CpuSet, Policy, Span};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(in crate::cli) struct CompleteArguments {
    pub(in crate::cli) shell: Shell,
    /// Words of the line up to the cursor, the last of them partial
    #[arg(last = true)]
    pub(in crate::cli) words: Vec<String>,
}

/// A shell with a completion script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CellArguments {
    /// Write the progress to stderr once a second, as a line of JSON
    #[arg(long)]
    pub(in crate::cli) progress: bool,
    /// Process that the cell ends with [default: the parent process]
    #[arg(long, value_name = "PID")]
    pub(in crate::cli) parent: Option<u32>,
    /// Open descriptor of the machine's lock, held until the cell has ended
    #[arg(long, value_name = "FD")]
    pub(in crate::cli) lock: Option<i32>,
    /// Keep the raw samples in this new Parquet file
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) samples: Option<PathBuf>,
    /// Run load and trace of this machine beside a guest that measures
    #[arg(long, conflicts_with_all = ["progress", "samples"])]
    pub(in crate::cli) beside_guest: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LaunchArguments {
    /// Process that the program ends with
    #[arg(long, value_name = "PID")]
    pub(in crate::cli) parent: u32,
    /// CPUs that it may use
    #[arg(long, requires_all = ["policy", "timer_slack"])]
    pub(in crate::cli) cpus: Option<CpuSet>,
    /// Scheduling policy of its threads
    #[arg(long, requires = "cpus")]
    pub(in crate::cli) policy: Option<Policy>,
    /// Timer slack of its threads
    #[arg(long, value_name = "TIME", requires = "cpus")]
    pub(in crate::cli) timer_slack: Option<Span>,
    /// Stop before the program, until SIGCONT
    #[arg(long)]
    pub(in crate::cli) held: bool,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    pub(in crate::cli) program: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct OperationArguments {
    /// One operation, like syscall/read
    pub(in crate::cli) operation: CostScope,
    /// Repetitions: a multiple of the size of a batch
    pub(in crate::cli) count: u64,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SuperviseArguments {
    /// Time limit
    #[arg(long = "for", value_name = "TIME")]
    pub(in crate::cli) at_most: Option<Span>,
    /// Text on the stdin of the command
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) input: Option<String>,
    /// The command and its arguments
    #[arg(required = true, last = true)]
    pub(in crate::cli) command: Vec<String>,
}
