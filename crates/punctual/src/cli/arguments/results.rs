//! What can be typed for results that are there already: show, check, import, list.

use super::compare::{margin, metric};
use super::{EXIT_STATUS, Format, requirement};
use analysis::Level;
use clap::{Args, ValueEnum};
use model::{ImportedLoad, Period, Policy, Requirement};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct ShowArguments {
    /// Directory of a run [default: the latest below runs/]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Print everything: all findings, all spikes, what the load did
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Only this cell, by its printed name or a part of it, like messaging/fifo:80
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) cell: Option<String>,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: RunFormat,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct CheckArguments {
    /// Directory of a run, or of imported measurements [default: the latest below runs/]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Only this cell, by its printed name or a part of it, like messaging/fifo:80
    #[arg(long, value_name = "NAME", conflicts_with = "baseline")]
    pub(in crate::cli) cell: Option<String>,
    /// What has to be kept, like max=1ms,p999=200us [default: what the run was measured with]
    #[arg(long, value_name = "LIMITS", value_parser = requirement)]
    pub(in crate::cli) require: Option<Requirement>,
    /// An older run: no cell may be later than the same one there
    #[arg(long, value_name = "RUN")]
    pub(in crate::cli) baseline: Option<PathBuf>,
    /// The one metric that the baseline is compared by: p50, p99 or p99.9 [default: as in compare]
    #[arg(long, requires = "baseline", value_parser = metric)]
    pub(in crate::cli) metric: Option<Level>,
    /// Compare with the baseline although the runs are separate in time, or of different machines: whatever else changed
    /// counts, too
    #[arg(long, requires = "baseline")]
    pub(in crate::cli) force: bool,
    /// Ratio below which a difference does not matter, above 1 [default: 1.25, of p50 1.10]
    #[arg(long, value_name = "RATIO", requires = "baseline", value_parser = margin)]
    pub(in crate::cli) margin: Option<f64>,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: RunFormat,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct ImportArguments {
    /// Output of cyclictest (text or JSON), results.json or samples.raw of jitterdebugger, histograms of rtla, summary.xml of
    /// rteval, output of latency or latmus, tables of latencies and counts
    #[arg(required = true, value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Directory to keep them in [default: runs/DATE-TIME]
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// What they are called together
    #[arg(long)]
    pub(in crate::cli) title: Option<String>,
    /// Unit of the values, where the file does not say it
    #[arg(long, value_enum)]
    pub(in crate::cli) unit: Option<ImportUnit>,
    /// Time between two due times, where the file does not say it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) period: Option<Period>,
    /// How the threads were scheduled, where the file does not say it
    #[arg(long)]
    pub(in crate::cli) policy: Option<Policy>,
    /// Background work, which most files leave out: a load of `punctual load --list`, or a description like idle
    #[arg(long)]
    pub(in crate::cli) load: Option<ImportedLoad>,
    /// What has to be kept, like max=1ms
    #[arg(long, value_name = "LIMITS", value_parser = requirement)]
    pub(in crate::cli) require: Option<Requirement>,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: RunFormat,
}

/// Unit of the values of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ImportUnit {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Where to look, with everything below
    #[arg(default_value = "runs")]
    pub(in crate::cli) dir: PathBuf,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

/// The form of a run's result.
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
    /// Percentile distribution of HdrHistogram, of one cell
    Hgrm,
    /// A page for Prometheus' textfile collector
    Prom,
}
