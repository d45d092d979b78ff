//! Arguments of `punctual stick`.

use clap::Args;
use punctual_model::Kernel;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(in crate::cli) struct StickArguments {
    /// Kernels of its menu, the first one is the default, e.g. debian:6.12-rt or "debian:6.12 preempt=full"
    #[arg(long, value_name = "KERNEL", required = true)]
    pub(in crate::cli) kernel: Vec<Kernel>,
    /// Image to write, e.g. stick.img
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: PathBuf,
}
