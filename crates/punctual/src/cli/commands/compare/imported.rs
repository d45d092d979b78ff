//! Imported measurements side by side: two of one import, or one of each of two.

use super::NamedRuns;
use crate::cli::commands::cells;
use crate::cli::terminal::note;
use punctual_analysis::ImportedCell;
use punctual_analysis::comparison::{Comparison, Question, compare_imported};
use punctual_store::ImportedRun;
use std::error::Error;
use std::path::Path;

/// The comparison of imported measurements; `None` for runs of this program. Errors: if only one of two runs is
/// imported, or the words do not name two measurements.
pub(super) fn compare(named: &NamedRuns<'_>, question: &Question<'_>) -> Result<Option<Comparison>, Box<dyn Error>> {
    let second = named.second.as_deref().map(read).transpose()?;
    let (first, second) = match (read(&named.first)?, second) {
        (None, None | Some(None)) => return Ok(None),
        (Some(first), None) => (first, None),
        (Some(first), Some(Some(second))) => (first, Some(second)),
        (Some(_), Some(None)) | (None, Some(Some(_))) => return Err(mixed().into()),
    };
    let (mut a, mut b) = match (&second, named.cells, &first[..]) {
        (None, [], [a, b]) => (a.clone(), b.clone()),
        (None, [a, b], _) => (meant(&first, &named.first, Some(a))?, meant(&first, &named.first, Some(b))?),
        (None, words, _) => {
            // A wrong name is the first thing to say.
            words.iter().try_for_each(|word| meant(&first, &named.first, Some(word)).map(drop))?;
            return Err(format!("name two measurements of {}", names(&first)).into());
        }
        // One name is meant for both.
        (Some(second), words @ ([] | [_] | [_, _]), _) => {
            let path = named.second.as_deref().unwrap_or(&named.first);
            (meant(&first, &named.first, words.first())?, meant(second, path, words.last())?)
        }
        (Some(_), ..) => return Err("name at most one measurement of each import".into()),
    };
    match &named.second {
        Some(path) => {
            a.name = format!("{} in {}", a.name, named.first.display());
            b.name = format!("{} in {}", b.name, path.display());
        }
        None if a.name == b.name => return Err(format!("both are {}; name two measurements", a.name).into()),
        None => {}
    }
    Ok(Some(compare_imported(&a, &b, question)))
}

/// The names of the imported measurements in `dir`; empty for a run of this program.
pub(super) fn names_of(dir: &Path) -> Result<Vec<String>, punctual_store::StoreError> {
    let run = punctual_store::read_imported(dir)?;
    Ok(run.iter().flat_map(cells_of).map(|cell| cell.name).collect())
}

fn cells_of(run: &ImportedRun) -> Vec<ImportedCell> {
    punctual_analysis::summarise_imported(&run.measurements, &run.header.require).cells
}

fn read(dir: &Path) -> Result<Option<Vec<ImportedCell>>, punctual_store::StoreError> {
    let run = punctual_store::read_imported(dir)?;
    run.iter().flat_map(|run| &run.damage).for_each(|damage| note(format_args!("punctual: {damage}")));
    Ok(run.as_ref().map(cells_of))
}

fn mixed() -> String {
    "unsupported: comparison of a run with imported measurements, which have no blocks; show both with `punctual report`"
        .to_owned()
}

/// The measurement with this name or a part of it, or the only one.
fn meant(cells: &[ImportedCell], path: &Path, name: Option<&String>) -> Result<ImportedCell, String> {
    let index = match name {
        None if cells.len() == 1 => 0,
        None => return Err(format!("{} has {}; name one", path.display(), names(cells))),
        Some(name) => {
            let names: Vec<_> = cells.iter().map(|cell| cell.name.as_str()).collect();
            cells::position(&names, name)?
        }
    };
    cells.get(index).cloned().ok_or_else(|| "no such measurement".to_owned())
}

fn names(cells: &[ImportedCell]) -> String {
    let names: Vec<_> = cells.iter().map(|cell| cell.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
