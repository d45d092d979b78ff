//! Arguments of `punctual verify`.

use super::EXIT_STATUS;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use punctual_model::{CpuSet, Promise};

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct VerifyArguments {
    /// Promises to test, e.g. timers [default: all, up to 20 s]
    #[arg(value_name = "PROMISE", value_parser = PossibleValuesParser::new(Promise::KNOWN).try_map(|name| name.parse::<Promise>()), hide_possible_values = true)]
    pub(in crate::cli) promises: Vec<Promise>,
    /// Show what was asked, and the documents that promise it
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// CPU of the experiments, and a second one, which real-time threads take for 50 ms at most [default: the last
    /// usable one and the one before, without isolated ones]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(in crate::cli) cpus: Option<CpuSet>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: VerifyFormat,
    /// Wait for other measurements on this machine to end
    #[arg(long)]
    pub(in crate::cli) wait: bool,
}

/// Format of verdicts without latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum VerifyFormat {
    /// For people
    Text,
    /// One document for programs
    Json,
    /// JUnit XML
    Junit,
    /// Test Anything Protocol
    Tap,
    /// Signals of LAVA
    Lava,
    /// Report of KCIDB
    Kcidb,
}
