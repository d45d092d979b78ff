//! The runs of a page, own and imported ones, and what stands at the top of the page about each.

use crate::sections::{conclusion, findings, imported, machine};
use crate::{ImportedSet, OwnRun, Results, rfc3339};
use model::{Imported, Requirement};

/// The runs of this program, with their index among all.
pub(super) fn own<'a>(runs: &'a [Results<'a>]) -> impl Iterator<Item = (usize, &'a OwnRun<'a>)> {
    runs.iter().enumerate().filter_map(|(index, run)| match run {
        Results::Own(run) => Some((index, run)),
        Results::Imported(_) => None,
    })
}

/// Each imported measurement, with the name that it has on the page.
pub(super) fn imported<'a>(runs: &'a [Results<'a>]) -> impl Iterator<Item = (String, &'a Imported)> {
    runs.iter().enumerate().flat_map(move |(index, run)| {
        let cells = match run {
            Results::Own(_) => &[],
            Results::Imported(run) => &run.summary.cells[..],
        };
        cells.iter().map(move |cell| (lettered(runs, index, &cell.name), &cell.imported))
    })
}

/// What tells the cells of several runs apart; nothing when there is one.
pub(super) fn letter(runs: &[Results<'_>], index: usize) -> Option<char> {
    let letter = u8::try_from(index).ok().and_then(|index| b'A'.checked_add(index)).filter(u8::is_ascii_uppercase);
    (runs.len() > 1).then(|| letter.map_or('?', char::from))
}

/// A name with the letter of its run before it.
pub(super) fn lettered(runs: &[Results<'_>], index: usize, name: &str) -> String {
    letter(runs, index).map_or_else(|| name.to_owned(), |letter| format!("{letter} {name}"))
}

/// The letter as markup behind a heading.
pub(super) fn badge(runs: &[Results<'_>], index: usize) -> String {
    letter(runs, index).map(|letter| format!(" <b class=run>{letter}</b>")).unwrap_or_default()
}

/// What stands at the top of a page about one run.
#[derive(Debug)]
pub(super) struct Top<'a> {
    pub(super) name: &'a str,
    pub(super) title: String,
    pub(super) require: &'a Requirement,
    /// Whether all of it is in virtual time.
    pub(super) is_virtual: bool,
    /// The answer in a sentence.
    pub(super) answer: String,
    /// Which machine, when, by what.
    pub(super) facts: Vec<String>,
    /// How much was measured.
    pub(super) extent: String,
}

impl<'a> Results<'a> {
    pub(super) fn top(&self) -> Top<'a> {
        let utc = |ms: u64| format!("{} UTC", rfc3339(ms).trim_end_matches('Z').replace('T', " "));
        // Neither a plan nor an import need have a title.
        let titled = |title: &str, other: String| if title.is_empty() { other } else { title.to_owned() };
        match self {
            Results::Own(OwnRun { name, header, summary, .. }) => {
                let is_virtual = header.is_virtual();
                // What is measured in virtual time is no machine's.
                let host = header.host.hostname.as_ref().filter(|_| !is_virtual).map_or("it", String::as_str);
                let mut facts = machine::measured_on(header);
                facts.extend([utc(header.started_unix_ms), header.tool.clone()]);
                Top {
                    name,
                    title: titled(&header.plan.title, format!("How late can {host} be?")),
                    require: &header.plan.require,
                    is_virtual,
                    answer: conclusion::how_late(summary),
                    facts,
                    extent: machine::measured(header, summary),
                }
            }
            Results::Imported(ImportedSet { name, header, summary }) => {
                let n = u64::try_from(summary.cells.len()).unwrap_or(u64::MAX);
                let measurements = analysis::wording::things(n, "measurement");
                let mut facts = imported::machines(summary);
                facts.extend([format!("imported {}", utc(header.imported_unix_ms)), header.tool.clone()]);
                Top {
                    name,
                    title: titled(&header.title, "What other tools have measured".to_owned()),
                    require: &header.require,
                    is_virtual: false,
                    answer: imported::answer(summary),
                    facts,
                    extent: format!("{measurements} of other tools; what their files do not say is not known"),
                }
            }
        }
    }

    /// What stands out, of which at most so many are listed, and how many more there are.
    pub(super) fn sentences(&self, most: usize) -> (Vec<String>, usize) {
        match self {
            Results::Own(run) => findings::sentences(run.summary, most),
            Results::Imported(run) => findings::first(imported::sentences(run.summary), most),
        }
    }
}
