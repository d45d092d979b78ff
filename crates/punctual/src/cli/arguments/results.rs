//! Arguments of commands that read results: show, check, merge, import, list.

use super::compare::{margin, metric};
use super::heading;
use super::{EXIT_STATUS, Format, requirement};
use clap::{Args, ValueEnum};
use punctual_analysis::Level;
use punctual_model::{ImportedLoad, Period, Policy, Requirement};
use punctual_report::Columns;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 shown, 1 not readable; `punctual check` judges.")]
pub(in crate::cli) struct ShowArguments {
    /// Directory of a run [default: the latest below runs/]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Print everything: all findings and spikes, load rates
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Only this cell, by its printed name or a part, e.g. fifo:80
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) cell: Option<String>,
    /// Columns of the text table, in full, e.g. min,mean,sd,max
    #[arg(long, value_name = "NAMES")]
    pub(in crate::cli) columns: Option<Columns>,
    /// Output format, e.g. json, md
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub(in crate::cli) format: RunFormat,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct CheckArguments {
    /// Directory of a run or an import [default: the latest in runs/]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Only this cell, by its printed name or a part, e.g. fifo:80
    #[arg(long, value_name = "NAME", conflicts_with = "baseline")]
    pub(in crate::cli) cell: Option<String>,
    /// Latency limits, e.g. max=1ms,p99.9=200us [default: those of the run]
    #[arg(long, value_name = "LIMITS", value_parser = requirement)]
    pub(in crate::cli) require: Option<Requirement>,
    /// Older run, or store:STORE for all earlier runs in a store: fail if a cell is later than there
    #[arg(long, value_name = "RUN")]
    pub(in crate::cli) baseline: Option<PathBuf>,
    /// Metric: p50, p99 or p99.9 [default: as in compare]
    #[arg(long, requires = "baseline", value_parser = metric, help_heading = heading::BASELINE)]
    pub(in crate::cli) metric: Option<Level>,
    /// Compare although runs differ in time or machine
    #[arg(long, requires = "baseline", help_heading = heading::BASELINE)]
    pub(in crate::cli) force: bool,
    /// Ratio below which a difference does not matter [default: p50 1.10, else 1.25]
    #[arg(long, value_name = "RATIO", requires = "baseline", value_parser = margin, help_heading = heading::BASELINE)]
    pub(in crate::cli) margin: Option<f64>,
    /// Output format, e.g. json, md
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub(in crate::cli) format: RunFormat,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct ImportArguments {
    /// Output of cyclictest (text, JSON), jitterdebugger (results.json, samples.raw), rtla, rteval (summary.xml),
    /// oslat, latency, latmus, rttest, performance_test; HdrHistogram logs; latencies, one a line or with counts
    #[arg(required = true, value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Directory of the result [default: runs/DATE-TIME]
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Title of the result
    #[arg(long)]
    pub(in crate::cli) title: Option<String>,
    /// Unit of the values, if the file has none; states that a table without a head has latencies and counts
    #[arg(long, value_enum)]
    pub(in crate::cli) unit: Option<ImportUnit>,
    /// Period, if the file has none
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) period: Option<Period>,
    /// Scheduling policy, if the file has none
    #[arg(long)]
    pub(in crate::cli) policy: Option<Policy>,
    /// Background load, or a description of it, e.g. idle
    #[arg(long)]
    pub(in crate::cli) load: Option<ImportedLoad>,
    /// Latency limits, e.g. max=1ms
    #[arg(long, value_name = "LIMITS", value_parser = requirement)]
    pub(in crate::cli) require: Option<Requirement>,
    /// Output format, e.g. json, md
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub(in crate::cli) format: RunFormat,
}

/// Unit of the values of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ImportUnit {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
    /// Seconds
    S,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Directory to search, with all below it
    #[arg(default_value = "runs")]
    pub(in crate::cli) dir: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

/// Format of a run's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum RunFormat {
    /// For people
    Text,
    /// One document for programs
    Json,
    /// A row for each cell
    Csv,
    /// Markdown, for an issue
    Md,
    /// JUnit XML: a test for each limit in each cell
    Junit,
    /// Test Anything Protocol
    Tap,
    /// Test-case signals of LAVA
    Lava,
    /// Report for KCIDB, the database of kernel test results
    Kcidb,
    /// Percentile distribution of HdrHistogram, of one cell
    Hgrm,
    /// Latency histograms as a gnuplot script with its data
    Gnuplot,
    /// A page for Prometheus' textfile collector
    Prom,
}

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
