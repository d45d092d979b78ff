//! Runs below a directory as one JSON document, for `punctual list --format json`.

use crate::{ImportedSet, OwnRun, Results};
use punctual_analysis::Verdict;
use punctual_model::{Host, Order};
use serde::Serialize;

/// A run of the list.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Listed {
    /// Its directory.
    pub path: String,
    /// Start of the run, or time of the import, ms since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Node name of the machine.
    pub host: Option<String>,
    /// Its kernel, `uname -r`.
    pub kernel_release: Option<String>,
    /// Title of the plan or of the import.
    pub title: String,
    /// `none` (no requirement), `pass`, `fail` or `inconclusive`.
    pub verdict: String,
    /// The verdict in one line.
    pub text: String,
    /// Cells of the plan.
    pub cells: usize,
    /// Number of readable measurements.
    pub measurements: usize,
    /// Number of planned measurements.
    pub planned: usize,
    /// Size of all files in the directory, bytes.
    pub bytes: u64,
    /// Damaged lines.
    pub damage: Vec<String>,
}

/// A directory with an unreadable run.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Unreadable {
    /// The directory.
    pub path: String,
    /// Size of all files in the directory, bytes.
    pub bytes: u64,
    /// The reason.
    pub reason: String,
}

/// All runs found.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct List {
    /// Runs, newest first.
    pub runs: Vec<Listed>,
    /// Unreadable runs.
    pub unreadable: Vec<Unreadable>,
}

impl List {
    /// Adds a run, or imported measurements.
    pub fn add(&mut self, bytes: u64, results: &Results<'_>, damage: Vec<String>) {
        let (path, started_unix_ms, hosts, title, measurements) = match results {
            Results::Own(OwnRun { name, header, entries, .. }) => {
                (name, header.started_unix_ms, vec![&header.host], header.plan.title.clone(), entries.len())
            }
            Results::Imported(ImportedSet { name, header, summary }) => {
                let title = if header.title.is_empty() { String::new() } else { format!(": {}", header.title) };
                let hosts: Vec<_> = summary.cells.iter().map(|cell| &cell.imported.host).collect();
                (name, header.imported_unix_ms, hosts, format!("imported{title}"), summary.cells.len())
            }
        };
        let (cells, planned) = match results {
            Results::Own(run) => (run.header.cells.len(), run.header.n_measurements()),
            Results::Imported(_) => (measurements, measurements + damage.len()),
        };
        let same = |of: fn(&Host) -> &Option<String>| {
            let first = hosts.first().and_then(|host| of(host).clone());
            first.filter(|first| hosts.iter().all(|host| of(host).as_ref() == Some(first)))
        };
        self.runs.push(Listed {
            path: (*path).to_owned(),
            started_unix_ms,
            host: same(|host| &host.hostname),
            kernel_release: same(|host| &host.kernel_release),
            title,
            verdict: word(results.verdict()),
            text: results.verdict().to_string(),
            cells,
            measurements,
            planned,
            bytes,
            damage,
        });
        self.runs.order_by(|a, b| (b.started_unix_ms, &a.path).cmp(&(a.started_unix_ms, &b.path)));
    }

    /// Adds a directory whose run cannot be read.
    pub fn add_unreadable(&mut self, unreadable: Unreadable) {
        self.unreadable.push(unreadable);
    }
}

fn word(verdict: &Verdict) -> String {
    if *verdict == Verdict::NoneAsked { "none".to_owned() } else { verdict.word().to_lowercase() }
}
