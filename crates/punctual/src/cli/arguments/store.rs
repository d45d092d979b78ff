//! Arguments of `punctual store`.

use super::compare::margin;
use super::heading;
use clap::{Args, Subcommand, ValueEnum};
use punctual_model::Span;
use std::path::PathBuf;

const EXIT_STATUS: &str = "\
A store is a file of SQLite, or a database of PostgreSQL by URL, e.g.
postgresql://lab@db.example/lab; default: the variable PUNCTUAL_STORE, or
punctual/store.sqlite in $XDG_DATA_HOME or ~/.local/share. Its tables: punctual
help guide history.

Exit status: 0 done, 1 error.";

#[derive(Debug, Args)]
pub(in crate::cli) struct StoreArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum StoreCommand {
    /// Add runs to the store; a known run with more measurements is replaced
    #[command(after_help = EXIT_STATUS)]
    Add(StoreAddArguments),
    /// List the runs in the store
    #[command(after_help = EXIT_STATUS)]
    List(StoreListArguments),
    /// Answer a question in SQL; nothing is changed
    #[command(after_help = EXIT_STATUS)]
    Query(StoreQueryArguments),
    /// Detect latency changes over the runs in the store
    History(HistoryArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StoreAddArguments {
    /// Directories of runs, or directories with runs below them
    #[arg(required = true, value_name = "RUN")]
    pub(in crate::cli) runs: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) store: StoreName,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StoreListArguments {
    #[command(flatten)]
    pub(in crate::cli) store: StoreName,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: QueryFormat,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StoreQueryArguments {
    /// One SQL statement
    #[arg(value_name = "SQL")]
    pub(in crate::cli) sql: String,
    #[command(flatten)]
    pub(in crate::cli) store: StoreName,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: QueryFormat,
}

/// The store of a command.
#[derive(Debug, Args)]
pub(in crate::cli) struct StoreName {
    /// File or directory of SQLite, or URL of PostgreSQL
    #[arg(long = "store", value_name = "STORE")]
    pub(in crate::cli) named: Option<String>,
}

/// Format of a table of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum QueryFormat {
    /// For people
    Text,
    /// A line for each row
    Csv,
    /// One document for programs
    Json,
}

const HISTORY_STATUS: &str = "\
Exit status: 0 no series became later lately, 1 error, 2 one did (--recent,
--margin). `punctual store add` fills the store.";

#[derive(Debug, Args)]
#[command(after_help = HISTORY_STATUS)]
pub(in crate::cli) struct HistoryArguments {
    /// Only machines with this in their node name, model or identity
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) machine: Option<String>,
    /// Only cells with this in their name, e.g. fifo:80
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) cell: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) store: StoreName,
    /// Changes found within this time before the last run of a series decide the exit status
    #[arg(long, value_name = "TIME", default_value = "30d", allow_hyphen_values = true)]
    pub(in crate::cli) recent: Span,
    /// Ratio below which a change does not matter, e.g. 1.1 or 10%
    #[arg(long, value_name = "RATIO", default_value = "1.1", value_parser = margin)]
    pub(in crate::cli) margin: f64,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: HistoryFormat,
    /// File to write [default: stdout; of a page, history.html]
    #[arg(short, long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub(in crate::cli) output: Option<PathBuf>,
}

/// Format of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum HistoryFormat {
    /// For people
    Text,
    /// One document for programs
    Json,
    /// JUnit XML: a test for each series
    Junit,
    /// A page for a browser: latencies over the runs, changes and marks
    Html,
}
