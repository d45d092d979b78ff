//! Arguments of `punctual tune`.

use super::heading;
use super::{Format, LoadArguments};
use clap::Args;
use punctual_analysis::comparison::Metric;
use punctual_model::{CpuSet, Knob, Level, Period, Policy, Span};
use std::path::PathBuf;

const EXIT_STATUS: &str = "\
Exit status: 0 each knob has an answer, 1 error, 3 a knob is undecided.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct TuneArguments {
    /// Plan with a table `knobs` and one cell [default: the options below]
    #[arg(conflicts_with_all = ["knob", "policy", "period", "load", "load_cpus", "load_policy", "load_must_hold"])]
    pub(in crate::cli) plan: Option<PathBuf>,
    /// Setting and the values to try, the current one first [default: what this machine can change]
    #[arg(long, value_name = "KEY=A,B[,C...]", value_parser = knob)]
    pub(in crate::cli) knob: Vec<Knob>,
    /// Number to improve: p50, p99, p99.9, max or misses
    #[arg(long, value_name = "NUMBER", default_value = "p99", value_parser = metric)]
    pub(in crate::cli) response: Metric,
    /// First answer in about 5 minutes: 1 s a measurement, or as long as the number needs, 2 blocks, 8 to confirm
    #[arg(long)]
    pub(in crate::cli) quick: bool,
    /// Scheduling policy, e.g. fifo:80
    #[arg(long, default_value = "other")]
    pub(in crate::cli) policy: Policy,
    /// Period or frequency, e.g. 200us, 1kHz
    #[arg(long, value_name = "TIME", default_value = "1ms", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(in crate::cli) period: Period,
    #[command(flatten)]
    pub(in crate::cli) load: LoadArguments,
    /// Measured time of one measurement [default: 5s, or the plan's]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(in crate::cli) duration: Option<Span>,
    /// CPUs to measure, e.g. 0-3,5 [default: all usable ones]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(in crate::cli) cpus: Option<CpuSet>,
    /// Blocks of the screening [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000), help_heading = heading::EXTENT)]
    pub(in crate::cli) blocks: Option<u32>,
    /// Blocks of the confirmation; more if an effect could not be shown with them [default: 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(6..=10_000), help_heading = heading::EXTENT)]
    pub(in crate::cli) confirm: Option<u32>,
    /// Continue the confirmation, up to four times its blocks, until each knob has an answer or this time is over
    #[arg(long, value_name = "TIME", help_heading = heading::EXTENT)]
    pub(in crate::cli) at_most: Option<Span>,
    /// Seed of the order of the measurements
    #[arg(long, value_name = "N", help_heading = heading::EXTENT)]
    pub(in crate::cli) seed: Option<u64>,
    /// Continue the interrupted experiment in this directory, with the same other options
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["plan", "knob", "out", "seed", "cpus", "duration"],
        help_heading = heading::OUTPUT
    )]
    pub(in crate::cli) resume: Option<PathBuf>,
    /// Directory of both runs [default: runs/DATE-TIME]
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Write what makes the confirmed settings permanent, and what undoes it, into this new directory
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub(in crate::cli) keep: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
    /// Wait for other measurements on this machine to end
    #[arg(long, help_heading = heading::MACHINE)]
    pub(in crate::cli) wait: bool,
    /// Boot the kernels of boot.WORD by itself, as in run
    #[arg(long, help_heading = heading::MACHINE)]
    pub(in crate::cli) reboot: bool,
    /// Trust a plan owned by another user (its commands and system settings), and allow `ping -f` to other hosts
    #[arg(long, help_heading = heading::MACHINE)]
    pub(in crate::cli) yes: bool,
}

/// `prepare.timer_migration=leave,off` or more values. The key may contain dots, the values no commas.
fn knob(text: &str) -> Result<Knob, String> {
    let parts = text.split_once('=').map(|(key, values)| (key, values.split(',').map(str::to_owned).collect()));
    let (key, values): (&str, Vec<String>) = parts
        .filter(|(_, values): &(&str, Vec<String>)| values.len() > 1 && values.iter().all(|value| !value.is_empty()))
        .ok_or_else(|| format!("invalid knob `{text}`: expected KEY=A,B, like prepare.timer_migration=leave,off"))?;
    Knob::of(key.to_owned(), values)
}

fn metric(text: &str) -> Result<Metric, String> {
    match text {
        "max" => Ok(Metric::Max),
        "misses" => Ok(Metric::Misses),
        _ => match text.parse() {
            Ok(level @ (Level::P50 | Level::P99 | Level::P999)) => Ok(Metric::Quantile(level)),
            _ => Err(format!("invalid number `{text}`: expected p50, p99, p99.9, max or misses")),
        },
    }
}
