//! The arguments of `punctual explain`.

use super::heading;
use super::{EXIT_STATUS, OneCell};
use clap::Args;
use punctual_model::{Captures, Span, Task};
use std::path::PathBuf;

/// Threshold; `None`: derived from the first second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Above(pub(crate) Option<Span>);

/// What is explained: the wake-ups of a method, or those of a run that is there.
#[derive(Debug, Clone)]
pub(crate) enum MethodOrRun {
    Method(Task),
    Run(PathBuf),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct ExplainArguments {
    /// How the thread waits; or a recorded trace; or the run for --again
    #[arg(value_name = "METHOD", default_value = "clock_nanosleep", value_parser = method_or_run)]
    pub(crate) what: MethodOrRun,
    /// Measure nothing: explain the kept spikes of a run, or of one capture, by the rules of this version
    #[arg(long, help_heading = heading::SPIKES)]
    pub(crate) again: bool,
    /// Only threads of this name in a recorded trace; * and ? are wildcards [default: all that look periodic]
    #[arg(long, value_name = "NAME", help_heading = heading::SPIKES)]
    pub(crate) thread: Option<String>,
    /// Whether a period is given.
    #[arg(skip)]
    pub(crate) has_period: bool,
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
    pub(crate) captures: CapturesArgument,
    #[command(flatten)]
    pub(crate) cell: OneCell,
}

/// Which events are kept.
#[derive(Debug, Args)]
pub(crate) struct CapturesArgument {
    /// Keep the events of these spikes in the run (20 MB at most), to explain them again: none, spikes (those that are
    /// kept), all
    #[arg(long, value_name = "WHICH", default_value = "spikes", help_heading = heading::SPIKES)]
    pub(crate) captures: Captures,
}

/// Parses a method, or the path of something that exists.
fn method_or_run(text: &str) -> Result<MethodOrRun, punctual_model::TaskError> {
    match text.parse() {
        Ok(task) => Ok(MethodOrRun::Method(task)),
        // Also a link that leads nowhere: an error of its own.
        Err(_) if std::fs::symlink_metadata(text).is_ok() => Ok(MethodOrRun::Run(text.into())),
        Err(err) => Err(err),
    }
}

/// Parses a threshold.
pub(super) fn above(text: &str) -> Result<Above, String> {
    if text == "auto" {
        return Ok(Above(None));
    }
    text.parse().map(|span| Above(Some(span))).map_err(|err: punctual_model::SpanError| format!("{err}, or auto"))
}
