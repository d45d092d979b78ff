//! The runs of a page, own and imported ones, and their letters.

use crate::cells::letter;
use crate::sections::{findings, imported};
use crate::{OwnRun, Results};
use punctual_model::Imported;

/// Returns the runs of this program, with their index among all.
pub(super) fn own<'a>(runs: &'a [Results<'a>]) -> impl Iterator<Item = (usize, &'a OwnRun<'a>)> {
    runs.iter().enumerate().filter_map(|(index, run)| match run {
        Results::Own(run) => Some((index, run)),
        Results::Imported(_) => None,
    })
}

/// Returns each imported measurement with its name on the page.
pub(super) fn imported<'a>(runs: &'a [Results<'a>]) -> impl Iterator<Item = (String, &'a Imported)> {
    runs.iter().enumerate().flat_map(move |(index, run)| {
        let cells = match run {
            Results::Own(_) => &[],
            Results::Imported(run) => &run.summary.cells[..],
        };
        cells.iter().map(move |cell| (lettered(runs, index, &cell.name), &cell.imported))
    })
}

/// Returns a name after the letter of its run.
pub(super) fn lettered(runs: &[Results<'_>], index: usize, name: &str) -> String {
    letter(runs, index).map_or_else(|| name.to_owned(), |letter| format!("{letter} {name}"))
}

impl Results<'_> {
    /// Returns the findings, at most `most` of them, and the number of the others.
    pub(super) fn sentences(&self, most: usize) -> (Vec<String>, usize) {
        match self {
            Results::Own(run) => findings::sentences(run.summary, most),
            Results::Imported(run) => findings::first(imported::sentences(run.summary), most),
        }
    }
}
