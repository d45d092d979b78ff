//! Arguments of `punctual measure sleep`.

use super::heading;
use super::{Common, CostArguments, EXIT_STATUS, Keep, ResponseArguments};
use clap::{Args, Subcommand};
use model::{Load, Period, Policy, Runtime, Span};

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(in crate::cli) enum MeasureCommand {
    /// Measure the error of sleeps in C, Python, Node.js, Go, Java
    Sleep(Box<SleepArguments>),
    /// Measure the response time of a peer or an interrupt
    Response(Box<ResponseArguments>),
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
