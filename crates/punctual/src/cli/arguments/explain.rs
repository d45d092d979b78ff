//! The arguments of `punctual explain`.

use super::heading;
use super::{EXIT_STATUS, HowToWait, OneCell};
use clap::Args;
use model::Span;
use std::path::PathBuf;

/// Threshold; `None`: derived from the first second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Above(pub(crate) Option<Span>);

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct ExplainArguments {
    /// Show all kept spikes, not only the worst three, and every finding
    #[arg(long)]
    pub(crate) all: bool,
    /// Threshold of explained wake-ups; auto: 2 x the first p99
    #[arg(long, value_name = "TIME", default_value = "auto", value_parser = above, allow_hyphen_values = true)]
    pub(crate) above: Above,
    /// Keep the worst N (raises --above)
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) keep: u32,
    /// Trace the kernel stack at each wake-up of and switch to a measured thread: shows where interrupts were off;
    /// costs some microseconds each
    #[arg(long, help_heading = heading::SPIKES)]
    pub(crate) stacks: bool,
    /// Interval of an interrupt on each measured CPU, e.g. 100us, that shows whether the CPU ran; changes the latencies
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = heading::SPIKES)]
    pub(crate) witness: Option<Span>,
    /// Write each kept spike into this directory: .json for Perfetto, .dat for KernelShark and trace-cmd
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub(crate) export: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) waiting: HowToWait,
    #[command(flatten)]
    pub(crate) cell: OneCell,
}

/// Parses a threshold.
pub(super) fn above(text: &str) -> Result<Above, String> {
    if text == "auto" {
        return Ok(Above(None));
    }
    text.parse().map(|span| Above(Some(span))).map_err(|err: model::SpanError| format!("{err}, or auto"))
}
