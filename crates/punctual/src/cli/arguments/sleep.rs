//! What can be typed after `measure sleep`.

use super::{Common, CostArguments, EXIT_STATUS, Keep, ResponseArguments};
use clap::{Args, Subcommand};
use model::{Load, Period, Policy, Runtime, Span};

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(in crate::cli) enum MeasureCommand {
    /// Measure how much longer programs in other languages sleep than they ask for
    Sleep(Box<SleepArguments>),
    /// Measure how soon a responder, or an interrupt of this machine, is answered
    Response(Box<ResponseArguments>),
    /// Measure what the kernel's operations cost: system calls, signals, processes, switches, files ...
    Cost(Box<CostArguments>),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct SleepArguments {
    /// Languages, those that are installed: c, python3, node, go, java
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "c,python3,node,go,java")]
    pub(in crate::cli) runtime: Vec<Runtime>,
    /// How long to sleep, 10us to 100s
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "100us,1ms,10ms,100ms,1s,10s")]
    pub(in crate::cli) targets: Vec<Period>,
    /// How all threads of the program are scheduled: other, other:nice=N, batch, idle, fifo:PRIORITY, rr:PRIORITY
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "other")]
    pub(in crate::cli) policy: Vec<Policy>,
    /// Background work, as for `measure`
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "none")]
    pub(in crate::cli) load: Vec<Load>,
    /// Measured time of each target [default: 2s, and 5 times the target at least]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Option<Span>,
    /// Timer slack of the program's normal threads [default: the kernel's 50us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) timer_slack: Option<Span>,
    #[command(flatten)]
    pub(in crate::cli) keep: Keep,
    /// Keep every error, too: a Parquet file for each target, in samples/ of the run
    #[arg(long, conflicts_with = "no_keep")]
    pub(in crate::cli) samples: bool,
    #[command(flatten)]
    pub(in crate::cli) common: Common,
}
