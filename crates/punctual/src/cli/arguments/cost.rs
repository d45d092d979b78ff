//! What can be typed after `measure cost`.

use super::{Common, EXIT_STATUS, Keep, LoadArguments};
use clap::Args;
use model::{CostScope, Policy, Span};

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct CostArguments {
    /// Only these: a group (syscall, signal, process, switch, ipc, net, memory, file, sched), one operation, like
    /// syscall/read, or total, which is the time of a fixed amount of work
    #[arg(long, value_name = "GROUP")]
    pub(in crate::cli) only: Option<CostScope>,
    /// A tenth of the batches: shows that it works
    #[arg(long, conflicts_with = "duration")]
    pub(in crate::cli) quick: bool,
    /// Say what each operation is and how it is measured
    #[arg(long, conflicts_with_all = ["quick", "duration", "policy", "load", "out"])]
    pub(in crate::cli) list: bool,
    /// Longest time for the batches of all operations together; there are 500 of each at most [default: 40s, with --quick 4s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Option<Span>,
    /// How the processes are scheduled: other, other:nice=N, batch, idle, fifo:PRIORITY, rr:PRIORITY
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
pub(in crate::cli) struct OperationArguments {
    /// One operation, like syscall/read
    pub(in crate::cli) operation: CostScope,
    /// How many times; a multiple of what makes a batch of it
    pub(in crate::cli) count: u64,
}
