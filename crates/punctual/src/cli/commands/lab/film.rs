//! `punctual lab film`: the execution of a late wake-up of a run, or of one that a search has found.

use super::worst::{in_run, in_search};
use crate::cli::arguments::{LabFilmArguments, LabSearchCell};
use crate::cli::commands::cells;
use crate::cli::commands::new_directory::NewDirectory;
use crate::cli::commands::show;
use crate::cli::terminal::{Outcome, note, output};
use punctual_model::{Entry, Film, KeptFilm, Order, Worst};
use punctual_report::{SEARCH_LIMITS, film_svg, film_text, film_timeline, film_title};
use std::cmp::Reverse;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

pub(super) fn film(arguments: LabFilmArguments) -> Outcome {
    let LabFilmArguments { what, cell, nth, witness, load, policy, out } = arguments;
    let (title, film) = match (witness, cell) {
        (Some(witness), _) => {
            let title = format!("{what}, {load}, wake-up {witness}");
            let film = in_search(LabSearchCell { kernel: what.parse()?, load, policy }, |search, monitor| {
                let symbols = search.symbols(monitor)?;
                let approach = search.approach(witness.block, witness.cycle, monitor)?;
                Ok(approach.film(witness.earlier_ns, &symbols, monitor)?.1)
            })?;
            (title, Arc::new(film))
        }
        (None, cell) => of_run(Path::new(&what), &cell.unwrap_or_default(), nth.into())?,
    };
    output::write(format!("{SEARCH_LIMITS}\n{title}\n{}", film_text(&film)).as_bytes())?;
    if let Some(out) = &out {
        let new = NewDirectory::make(out)?;
        new.write("film.svg", film_svg(&film, &title).as_bytes(), false)?;
        new.write("film.perfetto.json", film_timeline(&film, &title).to_string().as_bytes(), false)?;
        new.finish()?;
    }
    Ok(0)
}

/// The title and the film of the `nth` latest wake-up of a cell of a run.
fn of_run(directory: &Path, word: &str, nth: usize) -> Result<(String, Arc<Film>), Box<dyn Error>> {
    let run = punctual_store::read(directory)?;
    let index = cells::named(&run, word)?.index;
    let (entry, worst) =
        latest(run.entries.iter().filter(|entry| entry.planned.cell_index == index), nth).ok_or_else(|| {
            format!("{}: the records of the cell list fewer than {nth} late wake-ups", directory.display())
        })?;
    let (cell, block) = (&entry.record.cell, entry.planned.block);
    if !cell.kernel.is_virtual() {
        return Err(format!("{}: films show guests in virtual time only", directory.display()).into());
    }
    let film = in_run(cell, |search, monitor| {
        let symbols = search.symbols(monitor)?;
        Ok(search.film_again(block, &entry.record, worst, &symbols, monitor)?)
    })?;
    let film = Arc::new(film);
    keep(directory, KeptFilm { planned: entry.planned, cycle: worst.cycle, film: Arc::clone(&film) });
    Ok((film_title(cell, block, worst.cycle), film))
}

/// Keeps a film with its run, and writes the page of the run again. A failure is printed but is not an error: the film
/// is shown.
fn keep(directory: &Path, film: KeptFilm) {
    let kept = punctual_store::keep_film(directory, film).and_then(|()| punctual_store::read(directory));
    match kept {
        Ok(run) => show::beside_run(directory, &run.header, &run.entries),
        Err(err) => note(format_args!("punctual: {err}")),
    }
}

/// The `nth` latest wake-up of these records, counted from 1.
fn latest<'a>(entries: impl Iterator<Item = &'a Entry>, nth: usize) -> Option<(&'a Entry, Worst)> {
    let listed = |entry: &'a Entry| {
        let worst = entry.record.threads.iter().flat_map(|thread| &thread.worst);
        worst.map(move |worst| (entry, *worst))
    };
    let mut all: Vec<_> = entries.flat_map(listed).collect();
    all.order_by_key(|(entry, worst)| (Reverse(worst.latency_ns), entry.planned.block, worst.cycle));
    all.get(nth.checked_sub(1)?).copied()
}
