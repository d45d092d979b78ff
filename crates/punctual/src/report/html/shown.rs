//! What a page is made of: runs of ours and imported measurements, and what is said at its top of either.

use super::super::{answer, host, imported, standout};
use analysis::{ImportedSummary, RunSummary, Verdict};
use model::{Entry, Header, ImportHeader, Imported, Requirement};

/// One of the things on a page.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown<'a> {
    /// A run of ours.
    Ours(Ours<'a>),
    /// What was imported together.
    Imported(Imports<'a>),
}

/// A run to be shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ours<'a> {
    /// What it is called: its directory.
    pub(crate) name: &'a str,
    /// What was asked, on which machine.
    pub(crate) header: &'a Header,
    /// What was measured.
    pub(crate) entries: &'a [Entry],
    /// What that says.
    pub(crate) summary: &'a RunSummary,
}

/// Imported measurements to be shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Imports<'a> {
    /// What they are called: their directory.
    pub(crate) name: &'a str,
    /// When and by what they were imported.
    pub(crate) header: &'a ImportHeader,
    /// What they say.
    pub(crate) summary: &'a ImportedSummary,
}

/// The runs of ours, with their index among all.
pub(super) fn ours<'a>(runs: &'a [Shown<'a>]) -> impl Iterator<Item = (usize, &'a Ours<'a>)> {
    runs.iter().enumerate().filter_map(|(index, run)| match run {
        Shown::Ours(run) => Some((index, run)),
        Shown::Imported(_) => None,
    })
}

/// Each imported measurement, with the index of those it was imported with, and its name.
pub(super) fn imports<'a>(runs: &'a [Shown<'a>]) -> impl Iterator<Item = (usize, &'a str, &'a Imported)> {
    runs.iter().enumerate().flat_map(|(index, run)| {
        let cells = match run {
            Shown::Ours(_) => &[],
            Shown::Imported(run) => &run.summary.cells[..],
        };
        cells.iter().map(move |cell| (index, cell.name.as_str(), &cell.imported))
    })
}

impl<'a> Shown<'a> {
    pub(super) fn name(&self) -> &'a str {
        match self {
            Shown::Ours(run) => run.name,
            Shown::Imported(run) => run.name,
        }
    }

    /// Its title; neither a plan nor an import need have one.
    pub(super) fn title(&self) -> String {
        let title = match self {
            Shown::Ours(run) => &run.header.plan.title,
            Shown::Imported(run) => &run.header.title,
        };
        match self {
            _ if !title.is_empty() => title.clone(),
            Shown::Ours(run) => {
                let host = run.header.host.hostname.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
                format!("How late can{host} be?")
            }
            Shown::Imported(_) => "What other tools have measured".to_owned(),
        }
    }

    pub(super) fn require(&self) -> &'a Requirement {
        match self {
            Shown::Ours(run) => &run.header.plan.require,
            Shown::Imported(run) => &run.header.require,
        }
    }

    pub(super) fn verdict(&self) -> &'a Verdict {
        match self {
            Shown::Ours(run) => &run.summary.verdict,
            Shown::Imported(run) => &run.summary.verdict,
        }
    }

    /// The answer in a sentence.
    pub(super) fn answer(&self) -> String {
        match self {
            Shown::Ours(run) => answer::how_late(run.summary),
            Shown::Imported(run) => imported::answer(run.summary),
        }
    }

    /// Which machine, when, by what.
    pub(super) fn facts(&self) -> Vec<String> {
        let utc = |ms: u64| {
            let time = humantime::format_rfc3339_seconds(super::unix(ms)).to_string();
            format!("{} UTC", time.trim_end_matches('Z').replace('T', " "))
        };
        let (mut facts, when, tool) = match self {
            Shown::Ours(run) => (host::named(&run.header.host), utc(run.header.started_unix_ms), &run.header.tool),
            Shown::Imported(run) => {
                let when = format!("imported {}", utc(run.header.imported_unix_ms));
                (imported::about(run.summary), when, &run.header.tool)
            }
        };
        facts.extend([when, tool.clone()]);
        facts
    }

    /// How much was measured.
    pub(super) fn extent(&self) -> String {
        match self {
            Shown::Ours(run) => host::measured(run.header, run.summary),
            Shown::Imported(run) => {
                let n = u64::try_from(run.summary.cells.len()).unwrap_or(u64::MAX);
                let measurements = analysis::wording::things(n, "measurement");
                format!("{measurements} of other tools; what their files do not say is not known")
            }
        }
    }

    /// What stands out, of which at most so many are listed, and how many more there are.
    pub(super) fn findings(&self, most: usize) -> (Vec<String>, usize) {
        match self {
            Shown::Ours(run) => standout::sentences(run.summary, most),
            Shown::Imported(run) => {
                let mut sentences = imported::sentences(run.summary);
                let more = sentences.len().saturating_sub(most);
                sentences.truncate(most);
                (sentences, more)
            }
        }
    }
}
