//! Measurements of this program or of other tools, the source of every text, page and format.

use punctual_analysis::{Answer, Case, Curves, Finding, ImportedSummary, Row, RunSummary, Verdict};
use punctual_model::{Entry, Header, Histogram, ImportHeader};
use std::collections::{BTreeMap, HashSet};

/// The results of a run, or of one import.
#[derive(Debug, Clone, Copy)]
pub enum Results<'a> {
    /// Measured by this program.
    Own(OwnRun<'a>),
    /// Imported.
    Imported(ImportedSet<'a>),
}

/// A run of this program.
#[derive(Debug, Clone, Copy)]
pub struct OwnRun<'a> {
    /// Its name: its directory.
    pub name: &'a str,
    /// Its plan and its machine.
    pub header: &'a Header,
    /// Its measurements.
    pub entries: &'a [Entry],
    /// Statistics of the measurements.
    pub summary: &'a RunSummary,
}

/// Measurements of other tools, imported together.
#[derive(Debug, Clone, Copy)]
pub struct ImportedSet<'a> {
    /// Their name: their directory.
    pub name: &'a str,
    /// Date and program of the import.
    pub header: &'a ImportHeader,
    /// Statistics of the measurements.
    pub summary: &'a ImportedSummary,
}

impl<'a> Results<'a> {
    /// Its directory.
    pub(crate) fn name(&self) -> &'a str {
        match self {
            Results::Own(run) => run.name,
            Results::Imported(run) => run.name,
        }
    }

    /// The cells.
    pub fn rows(&self) -> Vec<Row<'a>> {
        match self {
            Results::Own(run) => Row::of_run(run.header, &run.summary.cells, &run.summary.cell_findings),
            Results::Imported(run) => Row::of_imported(&run.summary.cells, &run.summary.cell_findings),
        }
    }

    /// Histogram of a cell by its index; `None` if only the extremes are known.
    pub fn histogram(&self, index: usize) -> Option<Histogram> {
        match self {
            Results::Own(run) => punctual_analysis::histograms(run.header, run.entries).into_iter().nth(index),
            Results::Imported(run) => punctual_analysis::imported_histogram(&run.summary.cells.get(index)?.imported),
        }
    }

    /// Data for the plots of the `wanted` cells, by index.
    pub(crate) fn curves(&self, wanted: &HashSet<usize>) -> BTreeMap<usize, Curves> {
        match self {
            Results::Own(run) => punctual_analysis::curves(run.header, run.entries, |index| wanted.contains(&index)),
            Results::Imported(run) => {
                let cells = run.summary.cells.iter().enumerate().filter(|(index, _)| wanted.contains(index));
                cells.map(|(index, cell)| (index, punctual_analysis::imported_curves(&cell.imported))).collect()
            }
        }
    }

    /// Findings about all cells together.
    pub(crate) fn findings(&self) -> &'a [Finding] {
        match self {
            Results::Own(run) => &run.summary.findings,
            Results::Imported(_) => &[],
        }
    }

    /// The answer in one sentence.
    pub(crate) fn answer(&self) -> Answer {
        match self {
            Results::Own(run) => run.summary.answer(),
            Results::Imported(run) => run.summary.answer(),
        }
    }

    /// The verdict on all requirements.
    pub fn verdict(&self) -> &'a Verdict {
        match self {
            Results::Own(run) => &run.summary.verdict,
            Results::Imported(run) => &run.summary.verdict,
        }
    }

    /// The verdict on each limit in each cell.
    pub(crate) fn cases(&self) -> &'a [Case] {
        match self {
            Results::Own(run) => &run.summary.cases,
            Results::Imported(run) => &run.summary.cases,
        }
    }
}
