//! The arguments of `punctual explain`.

use super::{EXIT_STATUS, HowToWait, OneCell};
use clap::Args;
use model::Span;
use std::path::PathBuf;

/// A threshold: a length of time, or `None` for what is usual.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Above(pub(crate) Option<Span>);

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct ExplainArguments {
    /// A wake-up later than this is explained; auto: twice the p99 of the first second in which it is known
    #[arg(long, value_name = "TIME", default_value = "auto", value_parser = above, allow_hyphen_values = true)]
    pub(crate) above: Above,
    /// Keep the worst so many; the threshold rises when there are as many
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) keep: u32,
    /// Trace the kernel's stack at each waking of a measured thread and switch to it: says where interrupts were off and who
    /// let go where; costs some microseconds each
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Have an interrupt every so often, like 100us, on each measured CPU, which shows whether it ran; changes what is
    /// measured
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) witness: Option<Span>,
    /// Write each kept spike into this directory: .json for Perfetto or chrome://tracing, .dat for KernelShark and trace-cmd
    #[arg(long, value_name = "DIR")]
    pub(crate) export: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) waiting: HowToWait,
    #[command(flatten)]
    pub(crate) cell: OneCell,
}

fn above(text: &str) -> Result<Above, String> {
    if text == "auto" {
        return Ok(Above(None));
    }
    text.parse().map(|span| Above(Some(span))).map_err(|err: model::SpanError| format!("{err}, or auto"))
}
