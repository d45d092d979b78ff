//! Arguments of `punctual plan`.

use super::Format;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: PlanCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum PlanCommand {
    /// List the ready plans of this program, with their cells, time and needs
    List(PlanListArguments),
    /// Print a ready plan as TOML: a start for your own
    Show(PlanShowArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanListArguments {
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanShowArguments {
    /// Name of the plan, from `punctual plan list`
    #[arg(value_name = "NAME")]
    pub(in crate::cli) plan: String,
}
