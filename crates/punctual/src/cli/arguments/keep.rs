//! Arguments of commands that keep their run.

use super::heading;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct Keep {
    /// Directory of the run [default: runs/DATE-TIME]
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Print the result only; keep no run
    #[arg(long, conflicts_with = "out", help_heading = heading::OUTPUT)]
    pub(in crate::cli) no_keep: bool,
}
