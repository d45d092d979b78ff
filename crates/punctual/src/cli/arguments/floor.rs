//! Arguments of `punctual floor`.

use super::{EXIT_STATUS, Keep, RunFormat};
use clap::Args;
use punctual_model::{Policy, Span};

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct FloorArguments {
    /// Time of the whole measurement
    #[arg(long = "for", alias = "duration", value_name = "TIME", default_value = "3min", allow_hyphen_values = true)]
    pub(in crate::cli) time: Span,
    /// CPU to measure [default: the last usable one]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) cpu: Option<u32>,
    /// Policy of the loop that never waits; a real-time one leaves at least one housekeeping CPU alone
    #[arg(long, default_value = "other")]
    pub(in crate::cli) policy: Policy,
    #[command(flatten)]
    pub(in crate::cli) keep: Keep,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: RunFormat,
    /// Wait for other measurements on this machine to end
    #[arg(long)]
    pub(in crate::cli) wait: bool,
}
