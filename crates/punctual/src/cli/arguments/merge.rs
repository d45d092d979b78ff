//! Arguments of `punctual merge`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 complete, 1 error, 3 measurements are missing.")]
pub(in crate::cli) struct MergeArguments {
    /// Directories of the shards
    #[arg(required = true, value_name = "SHARD")]
    pub(in crate::cli) shards: Vec<PathBuf>,
    /// Directory of the whole run; a run that is there already gets what it lacks
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) out: PathBuf,
    /// Merge shards of machines that differ (recorded as a finding)
    #[arg(long)]
    pub(in crate::cli) force: bool,
    /// Trust shards that another user may have written
    #[arg(long)]
    pub(in crate::cli) yes: bool,
}
