//! `punctual compare`: two cells of one run, or two runs.

use super::arguments::{CompareArguments, Format};
use super::{Outcome, note, output};
use crate::report;
use crate::store::{self, Run};
use analysis::comparison::{Arm, Question, compare as compared};
use model::{Entry, Selector};
use std::error::Error;
use std::path::Path;

pub(super) fn compare(arguments: &CompareArguments) -> Outcome {
    let question = Question {
        metric: arguments.metric,
        margin: arguments.margin,
        looked_at_every_block: false,
        force: arguments.force,
    };
    let first = read(Path::new(&arguments.run))?;
    let second = match arguments.others.first() {
        // A selector has an equals sign; a run whose name has one is found by its file.
        Some(word) if Path::new(word).exists() || !word.contains('=') => Some(read(Path::new(word))?),
        _ => None,
    };
    let selectors = arguments.others.iter().skip(usize::from(second.is_some()));
    let selectors: Vec<Selector> = selectors.map(|word| word.parse()).collect::<Result<_, _>>()?;
    let (a, b) = match &second {
        Some(second) => two_runs(&arguments.run, &first, &arguments.others[0], second, &selectors)?,
        None => two_cells(&first, &selectors)?,
    };
    let comparison = compared(&a, &b, None, &question);
    let mut text = Vec::new();
    match arguments.format {
        Format::Text => report::comparison::text(&mut text, &comparison, output::style(false))?,
        Format::Json => output::json(&mut text, &report::comparison::json(&comparison))?,
    }
    output::write(&text)?;
    Ok(comparison.answer.exit_status())
}

fn read(dir: &Path) -> Result<Run, Box<dyn Error>> {
    let run = store::read(dir)?;
    run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    Ok(run)
}

/// Two cells of one run: those that are selected, or the only two.
fn two_cells<'a>(run: &'a Run, selectors: &[Selector]) -> Result<(Arm<'a>, Arm<'a>), String> {
    let (a, b) = match selectors {
        [] if run.header.cells.len() == 2 => (0, 1),
        [a, b] => (selected(run, a)?, selected(run, b)?),
        _ => {
            let cells = analysis::cell_names(&run.header.cells).join(", ");
            return Err(format!("name two cells, each like load=messaging,policy=fifo:80; the run has {cells}"));
        }
    };
    if a == b {
        return Err(format!("both are the cell {}; name two that differ", name(run, a)));
    }
    Ok((arm(run, a, name(run, a)), arm(run, b, name(run, b))))
}

/// The same cell of two runs, or a cell of each.
fn two_runs<'a>(
    first_path: &str,
    first: &'a Run,
    second_path: &str,
    second: &'a Run,
    selectors: &[Selector],
) -> Result<(Arm<'a>, Arm<'a>), String> {
    let any = Selector::default();
    let (for_first, for_second) = match selectors {
        [] => (&any, &any),
        [both] => (both, both),
        [a, b] => (a, b),
        _ => return Err("name at most one cell of each run".to_owned()),
    };
    let (a, b) = (selected(first, for_first)?, selected(second, for_second)?);
    let named = |path: &str, run: &Run, cell| format!("{} in {path}", name(run, cell));
    Ok((arm(first, a, named(first_path, first, a)), arm(second, b, named(second_path, second, b))))
}

/// The one cell of the run that a selector means.
fn selected(run: &Run, selector: &Selector) -> Result<usize, String> {
    let cells = &run.header.cells;
    let meant: Vec<usize> = (0..cells.len()).filter(|i| selector.matches(&cells[*i])).collect();
    let names = |cells: &[usize]| cells.iter().map(|i| name(run, *i)).collect::<Vec<_>>().join(", ");
    match meant.as_slice() {
        [one] => Ok(*one),
        [] => Err(format!("no cell of the run is meant; it has {}", names(&(0..cells.len()).collect::<Vec<_>>()))),
        several => Err(format!("several cells are meant: {}; name more axes", names(several))),
    }
}

fn name(run: &Run, cell: usize) -> String {
    analysis::cell_names(&run.header.cells).get(cell).cloned().unwrap_or_default()
}

fn arm(run: &Run, cell: usize, name: String) -> Arm<'_> {
    let is_of_cell = |entry: &&Entry| entry.planned.cell_index == cell;
    Arm { name, entries: run.entries.iter().filter(is_of_cell).collect() }
}
