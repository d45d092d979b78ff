//! What was measured, by this program or by other tools: what every text, page and format is made of.

use analysis::{Case, Curves, Finding, ImportedSummary, Row, RunSummary, Verdict};
use model::{Entry, Header, Histogram, ImportHeader};
use std::collections::{BTreeMap, HashSet};

/// The results of a run, or of what was imported together.
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
    /// What it is called: its directory.
    pub name: &'a str,
    /// What was asked, on which machine.
    pub header: &'a Header,
    /// What was measured.
    pub entries: &'a [Entry],
    /// What that says.
    pub summary: &'a RunSummary,
}

/// Measurements of other tools, imported together.
#[derive(Debug, Clone, Copy)]
pub struct ImportedSet<'a> {
    /// What they are called: their directory.
    pub name: &'a str,
    /// When and by what they were imported.
    pub header: &'a ImportHeader,
    /// What they say.
    pub summary: &'a ImportedSummary,
}

impl<'a> Results<'a> {
    /// Its cells.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'a>> {
        match self {
            Results::Own(run) => Row::of_run(run.header, &run.summary.cells, &run.summary.cell_findings),
            Results::Imported(run) => Row::of_imported(&run.summary.cells, &run.summary.cell_findings),
        }
    }

    /// The latencies of a cell by its index; `None` where only their ends are known.
    #[must_use]
    pub fn histogram(&self, index: usize) -> Option<Histogram> {
        match self {
            Results::Own(run) => analysis::histograms(run.header, run.entries).into_iter().nth(index),
            Results::Imported(run) => analysis::imported_histogram(&run.summary.cells.get(index)?.imported),
        }
    }

    /// What pictures of the `wanted` cells are drawn from, by their index.
    pub(crate) fn curves(&self, wanted: &HashSet<usize>) -> BTreeMap<usize, Curves> {
        match self {
            Results::Own(run) => analysis::curves(run.header, run.entries, |index| wanted.contains(&index)),
            Results::Imported(run) => {
                let cells = run.summary.cells.iter().enumerate().filter(|(index, _)| wanted.contains(index));
                cells.map(|(index, cell)| (index, analysis::imported_curves(&cell.imported))).collect()
            }
        }
    }

    /// What is true of all of it.
    pub(crate) fn findings(&self) -> &'a [Finding] {
        match self {
            Results::Own(run) => &run.summary.findings,
            Results::Imported(_) => &[],
        }
    }

    /// Whether what is required is kept.
    #[must_use]
    pub fn verdict(&self) -> &'a Verdict {
        match self {
            Results::Own(run) => &run.summary.verdict,
            Results::Imported(run) => &run.summary.verdict,
        }
    }

    /// The same for each limit in each cell.
    pub(crate) fn cases(&self) -> &'a [Case] {
        match self {
            Results::Own(run) => &run.summary.cases,
            Results::Imported(run) => &run.summary.cases,
        }
    }
}
