//! Arguments of `punctual lab`.

use super::Format;
use clap::{Args, Subcommand};
use punctual_model::{CostScope, Kernel, KernelError, Load, Period, Policy, Span, Witness};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(in crate::cli) struct LabArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum LabCommand {
    /// List available and fetched kernels
    List(LabListArguments),
    /// Fetch kernels for use without a network; install nothing
    Fetch(LabFetchArguments),
    /// Check that virtual time is deterministic under a load of this machine
    Check(LabCheckArguments),
    /// Compare the configurations of two kernels
    CheckConfig(LabCheckConfigArguments),
    /// Search the longest delays of wake-ups, in virtual time
    Worst(LabWorstArguments),
    /// Show the execution of a late wake-up of a run or of `lab worst`
    Film(LabFilmArguments),
    /// Test a kernel against a limit, as a step of `git bisect run`
    BisectStep(LabBisectArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LabListArguments {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LabFetchArguments {
    /// Kernels, e.g. debian:6.1-rt; a .deb is unpacked, any other file is only inspected
    #[arg(required = true, value_name = "KERNEL")]
    pub(in crate::cli) kernels: Vec<Kernel>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 both records are identical, 1 they differ, or an error.")]
pub(in crate::cli) struct LabCheckArguments {
    /// Kernel, e.g. "debian:6.1 preempt=none"
    pub(in crate::cli) kernel: Kernel,
    /// Wait for other measurements on this machine to end
    #[arg(long)]
    pub(in crate::cli) wait: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

const CONFIG_STATUS: &str = "\
A kernel: a name of the lab (debian:6.12), the file of a kernel, a .config file,
or `running`.

Exit status: 0 like for like, apart from preemption model and co-kernel, 2 not,
3 a configuration is unknown, 1 an error.";

#[derive(Debug, Args)]
#[command(after_help = CONFIG_STATUS)]
pub(in crate::cli) struct LabCheckConfigArguments {
    /// First kernel, e.g. debian:6.12 or /path/of/bzImage
    #[arg(value_parser = kernel_or_file)]
    pub(in crate::cli) a: Kernel,
    /// Second kernel, e.g. debian:6.12-rt or a .config file
    #[arg(value_parser = kernel_or_file)]
    pub(in crate::cli) b: Kernel,
    /// Show all options that differ
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

/// Parses a kernel; a file of this directory needs no `./`.
fn kernel_or_file(text: &str) -> Result<Kernel, KernelError> {
    text.parse().or_else(|err| {
        let name = text.split_whitespace().next().unwrap_or_default();
        let is_file = !name.is_empty() && name != "running" && Path::new(name).is_file();
        if is_file { format!("./{}", text.trim()).parse() } else { Err(err) }
    })
}

/// Load and policy of a guest, if no others are given.
pub(in crate::cli) const GUEST_LOAD: &str = "exec";
pub(in crate::cli) const GUEST_POLICY: &str = "fifo:90";

const SEARCH_CELL: &str = "\
The wake-ups of one thread every 50 us, in guests that start at different
phases. Each late one is repeated with its due time moved earlier, to the first
instruction of what delayed it. One second of budget takes about ten seconds of
CPU time. The same arguments give the same result.";

/// The cell of a search.
#[derive(Debug, Args)]
pub(in crate::cli) struct LabSearchCell {
    /// Kernel, e.g. "debian:6.1 preempt=none"
    pub(in crate::cli) kernel: Kernel,
    /// Background load
    #[arg(long, default_value = GUEST_LOAD)]
    pub(in crate::cli) load: Load,
    /// Scheduling policy of the thread that wakes up
    #[arg(long, default_value = GUEST_POLICY)]
    pub(in crate::cli) policy: Policy,
}

#[derive(Debug, Args)]
#[command(after_help = SEARCH_CELL)]
pub(in crate::cli) struct LabWorstArguments {
    #[command(flatten)]
    pub(in crate::cli) cell: LabSearchCell,
    /// Virtual time of all guests
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(in crate::cli) budget: Span,
    /// Number of delays to list
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(in crate::cli) top: u16,
    /// Chooses the phases of the guests
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(in crate::cli) seed: u32,
    /// File of an interrupted search, from which it goes on
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) state: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

const FILM: &str = "\
Of a run, the cell is measured again with execution logged around the wake-up;
its record has to be the same to the byte. With --witness, give the kernel, load
and policy of `lab worst`.";

#[derive(Debug, Args)]
#[command(after_help = FILM)]
pub(in crate::cli) struct LabFilmArguments {
    /// Run directory, or with --witness a kernel
    #[arg(value_name = "RUN|KERNEL")]
    pub(in crate::cli) what: String,
    /// Cell of the run, as `show` prints it, or a part of its name
    #[arg(required_unless_present = "witness", conflicts_with = "witness")]
    pub(in crate::cli) cell: Option<String>,
    /// Its latest wake-up (1), the second latest (2), ...
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(in crate::cli) nth: u16,
    /// Wake-up, as `lab worst` prints it: BLOCK/CYCLE/EARLIER
    #[arg(long)]
    pub(in crate::cli) witness: Option<Witness>,
    /// Background load of the search
    #[arg(long, default_value = GUEST_LOAD, requires = "witness")]
    pub(in crate::cli) load: Load,
    /// Scheduling policy of the search
    #[arg(long, default_value = GUEST_POLICY, requires = "witness")]
    pub(in crate::cli) policy: Policy,
    /// Directory for film.svg and film.perfetto.json
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
}

const BISECT_STATUS: &str = "\
Exit status for git bisect run: 0 all limits kept, 1 a limit exceeded, 125 this
kernel cannot be tested (no such file, no boot, load failed, wake-ups lost), 128
nothing can be tested and git stops (invalid option, no QEMU, Ctrl-C).";

#[derive(Debug, Args)]
#[command(after_help = BISECT_STATUS)]
pub(in crate::cli) struct LabBisectArguments {
    /// Kernel, e.g. "arch/x86/boot/bzImage preempt=full"
    #[arg(long)]
    pub(in crate::cli) kernel: Kernel,
    /// Test the cost of an operation of `measure cost`, e.g. syscall/read, instead of wake-ups
    #[arg(long, value_name = "OPERATION", requires = "max", conflicts_with_all = ["p99", "period"])]
    pub(in crate::cli) cost: Option<CostScope>,
    /// Background load [default: exec, with --cost none]
    #[arg(long)]
    pub(in crate::cli) load: Option<Load>,
    /// Search delays in this kernel function instead; one longer than --max is bad
    #[arg(long, value_name = "FUNCTION", requires = "max", conflicts_with_all = ["cost", "p99", "period", "duration", "phases"])]
    pub(in crate::cli) stretch: Option<String>,
    /// Virtual time of that search
    #[arg(long, value_name = "TIME", default_value = "4s", requires = "stretch")]
    pub(in crate::cli) budget: Span,
    /// Limit of every wake-up, e.g. 30us; with --cost of the median, e.g. 900ns
    #[arg(long, value_name = "TIME", required_unless_present = "p99", value_parser = limit)]
    pub(in crate::cli) max: Option<Span>,
    /// Limit of 99 % of the wake-ups of all phases
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub(in crate::cli) p99: Option<Span>,
    /// Scheduling policy [default: fifo:90, with --cost other]
    #[arg(long)]
    pub(in crate::cli) policy: Option<Policy>,
    /// Period, 10us to 100s
    #[arg(long, value_name = "TIME", default_value = "1ms", allow_hyphen_values = true)]
    pub(in crate::cli) period: Period,
    /// Measured virtual time of each phase
    #[arg(long, value_name = "TIME", default_value = "300ms", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Span,
    /// Boots, each at another phase of the kernel's tick
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(in crate::cli) phases: u32,
}

fn limit(text: &str) -> Result<Span, String> {
    let limit: Span = text.parse().map_err(|err: punctual_model::SpanError| err.to_string())?;
    if limit == Span(0) { Err("invalid limit `0`: expected a time above 0, like 30us".to_owned()) } else { Ok(limit) }
}
