//! Arguments of `punctual doctor`.

use super::Format;
use clap::Args;

const EXIT_STATUS: &str = "Exit status: 0 no cause of latency found, 1 error, 2 causes found.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct DoctorArguments {
    /// Checks to explain in full [default: all, in brief]
    pub(in crate::cli) checks: Vec<String>,
    /// Show every check, also those that passed
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}
