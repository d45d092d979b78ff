//! What can be typed for `punctual frontier`.

use super::LoadArguments;
use super::{DmaLatencyAsked, Format, dma_latency, prepare};
use clap::Args;
use model::{CpuSet, Period, Policy, Prepare, Span, Task};

const EXIT_STATUS: &str = "Exit status: 0 found and confirmed, 1 error, 3 not found, not confirmed, or interrupted (what was found is shown).";

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in super::super) struct FrontierArguments {
    /// How the thread waits: clock_nanosleep, timerfd, itimer, posix_timer, futex, poll; most take a clock, like
    /// timerfd:realtime (monotonic, realtime, boottime, tai)
    #[arg(value_name = "METHOD", default_value = "clock_nanosleep")]
    pub(in super::super) task: Task,
    /// How the thread is scheduled: other, other:nice=N, batch, idle, fifo:PRIORITY, rr:PRIORITY,
    /// deadline:RUNTIME/DEADLINE/PERIOD
    #[arg(long, default_value = "other")]
    pub(in super::super) policy: Policy,
    #[command(flatten)]
    pub(in super::super) load: LoadArguments,
    /// Shortest period to try, 10us at least
    #[arg(long, value_name = "TIME", default_value = "10us", allow_hyphen_values = true)]
    pub(in super::super) from: Period,
    /// Longest period to try, 100s at most
    #[arg(long, value_name = "TIME", default_value = "10ms", allow_hyphen_values = true)]
    pub(in super::super) to: Period,
    /// Measured time of each trial
    #[arg(long, value_name = "TIME", default_value = "2s", allow_hyphen_values = true)]
    pub(in super::super) duration: Span,
    /// Time before it that is not recorded
    #[arg(long, value_name = "TIME", default_value = "200ms", allow_hyphen_values = true)]
    pub(in super::super) warm_up: Span,
    /// Fresh trials that have to keep the period found
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(in super::super) confirm: u32,
    /// How close the period found and the next shorter one, which is missed, shall be: 1% to 100%
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = resolution, allow_hyphen_values = true)]
    pub(in super::super) resolution: f64,
    /// CPUs to measure on, like 0-3,5 [default: every CPU that may be used]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(in super::super) cpus: Option<CpuSet>,
    /// Timer slack of a normal thread [default: the kernel's 50us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in super::super) timer_slack: Option<Span>,
    /// Time to hold in /dev/cpu_dma_latency, which limits idle states, or `leave` [default: 0us]
    #[arg(long, value_name = "TIME", value_parser = dma_latency)]
    pub(in super::super) cpu_dma_latency: Option<DmaLatencyAsked>,
    /// Settings to change for as long as each trial lasts, like governor=performance,timer_migration=off: as for `measure`
    #[arg(long, value_name = "SETTINGS", value_parser = prepare)]
    pub(in super::super) prepare: Option<Prepare>,
    /// Wait until nobody else measures this machine
    #[arg(long)]
    pub(in super::super) wait: bool,
    /// Let ping flood another machine
    #[arg(long)]
    pub(in super::super) yes: bool,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in super::super) format: Format,
}

/// `5%` as 0.05. Below 1 % the three digits of a period are too coarse.
fn resolution(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let in_range = percent.filter(|percent| (1.0..=100.0).contains(percent));
    in_range
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("`{text}` is no resolution; write 1% to 100%, like 5%"))
}
