//! Arguments of `punctual frontier`.

use super::LoadArguments;
use super::heading;
use super::{DmaLatencyAsked, Format, dma_latency, prepare};
use clap::Args;
use punctual_model::{CpuSet, Period, Policy, Prepare, Span, Task};

const EXIT_STATUS: &str = "\
Exit status: 0 found and confirmed, 1 error, 3 not found, not confirmed, or
interrupted (the result so far is shown).";

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct FrontierArguments {
    /// How the thread waits; not relative, response or cost
    #[arg(value_name = "METHOD", default_value = "clock_nanosleep")]
    pub(in crate::cli) task: Task,
    /// Scheduling policy, e.g. fifo:80
    #[arg(long, default_value = "other")]
    pub(in crate::cli) policy: Policy,
    #[command(flatten)]
    pub(in crate::cli) load: LoadArguments,
    /// Shortest period to try, 10us at least
    #[arg(long, value_name = "TIME", default_value = "10us", allow_hyphen_values = true)]
    pub(in crate::cli) from: Period,
    /// Longest period to try, 100s at most
    #[arg(long, value_name = "TIME", default_value = "10ms", allow_hyphen_values = true)]
    pub(in crate::cli) to: Period,
    /// Measured time of each trial
    #[arg(long, value_name = "TIME", default_value = "2s", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Span,
    /// Warm-up time: cycles run but are not recorded
    #[arg(long, value_name = "TIME", default_value = "200ms", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(in crate::cli) warm_up: Span,
    /// Fresh trials that must confirm the period
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000), help_heading = heading::EXTENT)]
    pub(in crate::cli) confirm: u32,
    /// Resolution of the search in percent of the period: 1% to 100%
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = resolution, allow_hyphen_values = true, help_heading = heading::EXTENT)]
    pub(in crate::cli) resolution: f64,
    /// CPUs to measure, e.g. 0-3,5 [default: all usable ones]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(in crate::cli) cpus: Option<CpuSet>,
    /// Timer slack of a normal thread [default: the kernel's 50us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(in crate::cli) timer_slack: Option<Span>,
    /// Value held in /dev/cpu_dma_latency, which limits idle states, or `leave` [default: 0us]
    #[arg(long, value_name = "TIME", value_parser = dma_latency, help_heading = heading::MACHINE)]
    pub(in crate::cli) cpu_dma_latency: Option<DmaLatencyAsked>,
    /// System settings for the time of each trial, as for `measure`
    #[arg(long, value_name = "SETTINGS", value_parser = prepare, help_heading = heading::MACHINE)]
    pub(in crate::cli) prepare: Option<Prepare>,
    /// Wait for other measurements on this machine to end
    #[arg(long, help_heading = heading::MACHINE)]
    pub(in crate::cli) wait: bool,
    /// Allow `ping -f` to other hosts
    #[arg(long, help_heading = heading::MACHINE)]
    pub(in crate::cli) yes: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

/// `5%` as 0.05. Below 1 % the three digits of a period are too coarse.
fn resolution(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let in_range = percent.filter(|percent| (1.0..=100.0).contains(percent));
    in_range
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("invalid resolution `{text}`: expected 1% to 100%, like 5%"))
}
