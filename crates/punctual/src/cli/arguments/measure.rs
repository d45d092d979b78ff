//! Arguments of `punctual measure` and its subcommands, and of `punctual respond`.

use super::{Common, EXIT_STATUS, Format, LoadArguments, OneCell, heading};
use clap::{Args, Subcommand};
use punctual_model::{CostScope, Link, Load, Period, Policy, Runtime, Span};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(in crate::cli) enum MeasureCommand {
    /// Measure the error of sleeps in C, Python, Node.js, Go, Java
    Sleep(Box<SleepArguments>),
    /// Measure the response time of a peer or an interrupt
    Response(Box<ResponseArguments>),
    /// Measure the time that a CPU is taken from a thread that never waits
    Noise(Box<NoiseArguments>),
    /// Measure the cost of system calls, switches, files ...
    Cost(Box<CostArguments>),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct SleepArguments {
    /// Languages; those not installed are skipped
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "c,python3,node,go,java")]
    pub(in crate::cli) runtime: Vec<Runtime>,
    /// Sleep times, 10us to 100s
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "100us,1ms,10ms,100ms,1s,10s")]
    pub(in crate::cli) targets: Vec<Period>,
    /// Scheduling policies of the whole program
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "other")]
    pub(in crate::cli) policy: Vec<Policy>,
    /// Background loads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "none")]
    pub(in crate::cli) load: Vec<Load>,
    /// Measured time of each target [default: 2s, at least 5 sleeps]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Option<Span>,
    /// Timer slack of the program's normal threads [default: the kernel's 50us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(in crate::cli) timer_slack: Option<Span>,
    #[command(flatten)]
    pub(in crate::cli) keep: Keep,
    /// Keep every error: a Parquet file for each target, in samples/ of the run
    #[arg(long, conflicts_with = "no_keep", help_heading = heading::OUTPUT)]
    pub(in crate::cli) samples: bool,
    #[command(flatten)]
    pub(in crate::cli) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct CostArguments {
    /// A group (syscall, signal, process, switch, ipc, net, memory, file, sched), an operation like syscall/read, or
    /// total: the time of a fixed amount of work [default: all]
    #[arg(long, value_name = "GROUP")]
    pub(in crate::cli) only: Option<CostScope>,
    /// Measure a tenth of the batches: a trial run
    #[arg(long, conflicts_with = "duration")]
    pub(in crate::cli) quick: bool,
    /// Describe each operation and how it is measured
    #[arg(long, conflicts_with_all = ["quick", "duration", "policy", "load", "out"])]
    pub(in crate::cli) list: bool,
    /// Time limit of all batches together [default: 40s, with --quick 4s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Option<Span>,
    /// Scheduling policy of the processes, e.g. fifo:80
    #[arg(long, default_value = "other")]
    pub(in crate::cli) policy: Policy,
    #[command(flatten)]
    pub(in crate::cli) load: LoadArguments,
    #[command(flatten)]
    pub(in crate::cli) keep: Keep,
    #[command(flatten)]
    pub(in crate::cli) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct NoiseArguments {
    /// Shortest gap that is reported [default: 1us, or 8 readings where that is longer]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) threshold: Option<Span>,
    /// Measured time
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Span,
    /// Scheduling policy, e.g. fifo:80; a real-time one leaves at least one housekeeping CPU alone
    #[arg(long, default_value = "other")]
    pub(in crate::cli) policy: Policy,
    /// Trace the kernel, and find what took the time of each gap (root; adds some microseconds to a gap)
    #[arg(long, help_heading = heading::SPIKES)]
    pub(in crate::cli) explain: bool,
    /// Stop at the first gap longer than this
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = heading::SPIKES)]
    pub(in crate::cli) stop_above: Option<Span>,
    #[command(flatten)]
    pub(in crate::cli) load: LoadArguments,
    #[command(flatten)]
    pub(in crate::cli) keep: Keep,
    #[command(flatten)]
    pub(in crate::cli) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct ResponseArguments {
    /// Link to the responder, e.g. udp:HOST:PORT
    #[arg(long, value_name = "LINK")]
    pub(in crate::cli) to: Link,
    #[command(flatten)]
    pub(in crate::cli) cell: OneCell,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RespondArguments {
    /// Link to answer on, e.g. udp:HOST:PORT with an address of this machine
    #[arg(long, value_name = "LINK")]
    pub(in crate::cli) on: Link,
    /// Answer only this host [default: the first that sends a trigger]
    #[arg(long, value_name = "HOST")]
    pub(in crate::cli) peer: Option<String>,
    /// Scheduling policy, e.g. fifo:80
    #[arg(long, default_value = "other")]
    pub(in crate::cli) policy: Policy,
    /// CPU to run on [default: the last usable one]
    #[arg(long, value_name = "CPU")]
    pub(in crate::cli) cpu: Option<u32>,
    /// Background load on this machine
    #[arg(long, default_value = "none")]
    pub(in crate::cli) load: Load,
    /// Exit when no trigger has come for this long, after the first
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) until_silent: Option<Span>,
    /// Allow `ping -f` to other hosts
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Time to answer [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Option<Span>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
    /// Process that it ends with
    #[arg(long, value_name = "PID", hide = true)]
    pub(in crate::cli) parent: Option<u32>,
}

#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct Keep {
    /// Directory of the run [default: runs/DATE-TIME]
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Print the result only; keep no run
    #[arg(long, conflicts_with = "out", help_heading = heading::OUTPUT)]
    pub(in crate::cli) no_keep: bool,
}
