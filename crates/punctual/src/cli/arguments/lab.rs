//! What can be typed for `punctual lab`.

use super::Format;
use clap::{Args, Subcommand};
use model::{CostScope, Kernel, Load, Period, Policy, Span};

#[derive(Debug, Args)]
pub(in super::super) struct LabArguments {
    #[command(subcommand)]
    pub(in super::super) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(in super::super) enum LabCommand {
    /// List the kernels that the package manager knows and those that were fetched
    List(LabListArguments),
    /// Fetch kernels now, so that a plan finds them without a network; nothing is installed
    Fetch(LabFetchArguments),
    /// Measure one short cell twice, the second time beside a load on every CPU, and compare all of both records
    Check(LabCheckArguments),
    /// Say whether a kernel keeps a limit, as a step of `git bisect run`
    BisectStep(LabBisectArguments),
}

#[derive(Debug, Args)]
pub(in super::super) struct LabListArguments {
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in super::super) format: Format,
}

#[derive(Debug, Args)]
pub(in super::super) struct LabFetchArguments {
    /// Kernels as plans name them, like debian:6.1-rt; a .deb is unpacked, another file is only looked at
    #[arg(required = true, value_name = "KERNEL")]
    pub(in super::super) kernels: Vec<Kernel>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 both records are identical, 1 they differ, or there is none.")]
pub(in super::super) struct LabCheckArguments {
    /// A kernel as plans name it, like "debian:6.1 preempt=none"
    pub(in super::super) kernel: Kernel,
    /// Wait until nobody else measures this machine
    #[arg(long)]
    pub(in super::super) wait: bool,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in super::super) format: Format,
}

const BISECT_STATUS: &str = "\
Exit status, as git bisect run wants it: 0 every limit is kept, 1 one is not, 125 this kernel cannot be tested (it does not boot,
there is no such file, its load fails), 128 nothing can be tested, and git ends the bisection (a wrong option, no QEMU, Ctrl-C).";

#[derive(Debug, Args)]
#[command(after_help = BISECT_STATUS)]
pub(in super::super) struct LabBisectArguments {
    /// The kernel as plans name it, like arch/x86/boot/bzImage or "arch/x86/boot/bzImage preempt=full"
    #[arg(long)]
    pub(in super::super) kernel: Kernel,
    /// Look at what this operation of `measure cost` costs, like syscall/read, in place of wake-ups
    #[arg(long, value_name = "OPERATION", requires = "max", conflicts_with_all = ["p99", "period"])]
    pub(in super::super) cost: Option<CostScope>,
    /// Background work [default: exec, with --cost none]
    #[arg(long)]
    pub(in super::super) load: Option<Load>,
    /// No wake-up may be later, like 30us; with --cost, the median cost may not be larger, like 900ns
    #[arg(long, value_name = "TIME", required_unless_present = "p99", value_parser = limit)]
    pub(in super::super) max: Option<Span>,
    /// 99 % of the wake-ups of all phases together may not be later
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub(in super::super) p99: Option<Span>,
    /// How the measured thread is scheduled [default: fifo:90, with --cost other]
    #[arg(long)]
    pub(in super::super) policy: Option<Policy>,
    /// Time between two due times, 10us to 100s
    #[arg(long, value_name = "TIME", default_value = "1ms", allow_hyphen_values = true)]
    pub(in super::super) period: Period,
    /// Measured virtual time of each phase
    #[arg(long, value_name = "TIME", default_value = "300ms", allow_hyphen_values = true)]
    pub(in super::super) duration: Span,
    /// How many times it is booted, each with other moments relative to the kernel's clock ticks
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(in super::super) phases: u32,
}

fn limit(text: &str) -> Result<Span, String> {
    let limit: Span = text.parse().map_err(|err: model::SpanError| err.to_string())?;
    if limit == Span(0) { Err("a limit of 0 can never be kept; write one like 30us".to_owned()) } else { Ok(limit) }
}
