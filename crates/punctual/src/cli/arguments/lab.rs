//! What can be typed for `punctual lab`.

use super::Format;
use clap::{Args, Subcommand};
use model::Kernel;

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
