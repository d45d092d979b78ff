//! Arguments of `punctual monitor`.

use super::explain::{Above, above};
use super::{Format, heading};
use clap::{Args, Subcommand};
use punctual_model::{CpuSet, Period, Policy, Span};
use std::net::SocketAddr;
use std::path::PathBuf;

const EXIT_STATUS: &str = "\
Exit status: 0 or, interrupted, 130 by SIGINT, 143 by SIGTERM, 129 by SIGHUP:
ended as requested; 1 error.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS, args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct MonitorArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<MonitorCommand>,
    /// CPUs to measure, e.g. 0-3,5 [default: all usable ones]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(in crate::cli) cpus: Option<CpuSet>,
    /// Scheduling policy of the measured threads
    #[arg(long, default_value = "fifo:80")]
    pub(in crate::cli) policy: Policy,
    /// Period of each measured thread
    #[arg(long, value_name = "TIME", default_value = "10ms", allow_hyphen_values = true)]
    pub(in crate::cli) period: Period,
    /// Length of a window, which gives one maximum for each CPU
    #[arg(long, value_name = "TIME", default_value = "5min", allow_hyphen_values = true)]
    pub(in crate::cli) window: Span,
    /// End after this time [default: at a signal]
    #[arg(long = "for", alias = "duration", value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Option<Span>,
    /// Directory of the history, 64 MiB at most
    #[arg(long, value_name = "DIR", default_value = "monitor")]
    pub(in crate::cli) dir: PathBuf,
    /// Threshold of explained wake-ups; auto: 2 x the p99 of the window before. The worst three of a window are kept
    #[arg(long, value_name = "TIME", default_value = "auto", value_parser = above, allow_hyphen_values = true, help_heading = heading::SPIKES)]
    pub(in crate::cli) above: Above,
    /// Do not trace the kernel: late wake-ups stay unexplained
    #[arg(long, help_heading = heading::SPIKES)]
    pub(in crate::cli) no_explain: bool,
    /// Write the metrics into this file each minute, for the textfile collector of the node exporter: NAME.prom
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub(in crate::cli) textfile: Option<PathBuf>,
    /// Serve http://ADDRESS/metrics to Prometheus on this machine, e.g. 127.0.0.1:9769
    #[arg(long, value_name = "ADDRESS", help_heading = heading::OUTPUT)]
    pub(in crate::cli) listen: Option<SocketAddr>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum MonitorCommand {
    /// Show the history: totals, days, the worst windows with their causes, gaps
    Show(MonitorShowArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct MonitorShowArguments {
    /// Directory of the history
    #[arg(default_value = "monitor")]
    pub(in crate::cli) dir: PathBuf,
    /// Only windows that ended within this time before now, e.g. 24h, 7d
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) last: Option<Span>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}
