//! What can be typed for `punctual doctor`.

use super::Format;
use clap::Args;

const EXIT_STATUS: &str = "Exit status: 0 nothing will make it late, 1 error, 2 something will.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in super::super) struct DoctorArguments {
    /// Checks to explain in full [default: all of them, in brief]
    pub(in super::super) checks: Vec<String>,
    /// Every check, not only those that found something
    #[arg(long)]
    pub(in super::super) all: bool,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in super::super) format: Format,
}
