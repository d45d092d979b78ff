//! Imported measurements side by side: two of one import, or one of each of two.

use super::super::arguments::CompareArguments;
use super::super::note;
use analysis::ImportedCell;
use analysis::comparison::{Comparison, Question, compare_imported};
use std::error::Error;
use std::path::Path;
use store::ImportedRun;

/// The comparison, where what was named is imported; `None` where it is a run of ours.
pub(super) fn compare(
    arguments: &CompareArguments,
    question: &Question<'_>,
) -> Result<Option<Comparison>, Box<dyn Error>> {
    let Some(first) = read(&arguments.run)? else {
        let second = arguments.others.first().filter(|word| !word.contains('=') || Path::new(word).exists());
        return match second.map(|word| read(word)).transpose()?.flatten() {
            Some(_) => Err(mixed().into()),
            None => Ok(None),
        };
    };
    let of = |run: &ImportedRun| analysis::summarise_imported(&run.measurements, &run.header.require).cells;
    let first = of(&first);
    // A measurement is called like its file, which may lie here as well.
    let (second, names) = match &arguments.others[..] {
        [word, rest @ ..] if first.iter().all(|cell| cell.name != *word) => {
            let Some(second) = read(word)? else {
                return Err(match store::read(Path::new(word)) {
                    Ok(_) => mixed(),
                    Err(_) => format!("{word} is neither an import nor one of its measurements: {}", names(&first)),
                }
                .into());
            };
            (Some((of(&second), word)), rest)
        }
        names => (None, names),
    };
    let (mut a, mut b) = match (&second, names, &first[..]) {
        (None, [], [a, b]) => (a.clone(), b.clone()),
        (None, [a, b], _) => (meant(&first, &arguments.run, Some(a))?, meant(&first, &arguments.run, Some(b))?),
        (None, ..) => return Err(format!("name two measurements; the import has {}", self::names(&first)).into()),
        // One name is meant for both.
        (Some((second, path)), [] | [_] | [_, _], _) => {
            (meant(&first, &arguments.run, names.first())?, meant(second, path, names.last())?)
        }
        (Some(_), ..) => return Err("name at most one measurement of each import".into()),
    };
    match &second {
        Some((_, path)) => {
            a.name = format!("{} in {}", a.name, arguments.run);
            b.name = format!("{} in {path}", b.name);
        }
        None if a.name == b.name => return Err(format!("both are {}; name two that differ", a.name).into()),
        None => {}
    }
    Ok(Some(compare_imported(&a, &b, question)))
}

fn read(dir: &str) -> Result<Option<ImportedRun>, store::StoreError> {
    let run = store::read_imported(Path::new(dir))?;
    run.iter().flat_map(|run| &run.damage).for_each(|damage| note(format_args!("punctual: {damage}")));
    Ok(run)
}

fn mixed() -> String {
    "one is a run and one is imported: there are no blocks that hold both; see them side by side with `punctual report`"
        .to_owned()
}

/// The measurement of this name, or the only one.
fn meant(cells: &[ImportedCell], path: &str, name: Option<&String>) -> Result<ImportedCell, String> {
    match (name, cells) {
        (None, [one]) => Ok(one.clone()),
        (None, all) => Err(format!("{path} has {}; name one", names(all))),
        (Some(name), _) => {
            let cell = cells.iter().find(|cell| cell.name == *name).cloned();
            cell.ok_or_else(|| format!("no measurement is called {name}; there are {}", names(cells)))
        }
    }
}

fn names(cells: &[ImportedCell]) -> String {
    let names: Vec<_> = cells.iter().map(|cell| cell.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
