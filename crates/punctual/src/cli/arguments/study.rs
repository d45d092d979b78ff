//! Arguments of `punctual study`.

use super::{Format, heading};
use clap::{Args, Subcommand, ValueEnum};
use punctual_model::{Setting, Study};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(in crate::cli) struct StudyArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: StudyCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum StudyCommand {
    /// List the published studies that this program repeats
    List(StudyListArguments),
    /// Show a study: its tables, its conclusions, and how this machine can repeat it
    Show(StudyShowArguments),
    /// Repeat a study: fill its tables and judge its conclusions
    #[command(after_help = EXIT_STATUS)]
    Run(StudyRunArguments),
}

const EXIT_STATUS: &str = "\
Exit status: 0 measured, whatever the conclusions; 1 error, or a way failed;
interrupted: 130 by SIGINT, 143 by SIGTERM, 129 by SIGHUP.";

#[derive(Debug, Args)]
pub(in crate::cli) struct StudyListArguments {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StudyShowArguments {
    /// Name of the study, from `punctual study list`
    #[arg(value_name = "NAME")]
    pub(in crate::cli) study: Study,
    /// Directories of runs whose values fill the tables
    #[arg(value_name = "RUN")]
    pub(in crate::cli) runs: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: StudyFormat,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StudyRunArguments {
    /// Name of the study, from `punctual study list`
    #[arg(value_name = "NAME")]
    pub(in crate::cli) study: Study,
    /// Only these ways, from `punctual study show NAME` [default: those that need nothing else]
    #[arg(long, value_name = "WAY", value_delimiter = ',')]
    pub(in crate::cli) way: Vec<String>,
    /// Trial run: few blocks, short cells
    #[arg(long)]
    pub(in crate::cli) quick: bool,
    /// Blocks: passes over all cells [default: the plan's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(in crate::cli) repetitions: Option<u32>,
    /// Replace the values of an axis or key of the way's plan, like kernel=/path/of/bzImage
    #[arg(long, value_name = "KEY=VALUE", requires = "way")]
    pub(in crate::cli) set: Vec<Setting>,
    /// Directory, with a run for each way [default: runs/NAME-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Resume the runs in --out: measure what is missing
    #[arg(long, requires = "out", conflicts_with_all = ["quick", "repetitions", "set"])]
    pub(in crate::cli) resume: bool,
    /// Wait for other measurements on this machine to end
    #[arg(long, help_heading = heading::MACHINE)]
    pub(in crate::cli) wait: bool,
    /// Allow `ping -f` to other hosts
    #[arg(long, help_heading = heading::MACHINE)]
    pub(in crate::cli) yes: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: StudyFormat,
}

/// Format of a study's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum StudyFormat {
    /// For people
    Text,
    /// One document for programs
    Json,
    /// The tables in the study's shape
    Csv,
}
