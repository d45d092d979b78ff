//! Arguments of `punctual measure cost`.

use super::{Common, EXIT_STATUS, Keep, LoadArguments};
use clap::Args;
use model::{CostScope, Policy, Span};

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
