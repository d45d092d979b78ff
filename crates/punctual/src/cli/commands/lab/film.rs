//! `punctual lab film`: the execution of a wake-up that a search has found.

use super::worst::in_search;
use crate::cli::arguments::LabFilmArguments;
use crate::cli::commands::new_directory::NewDirectory;
use crate::cli::terminal::{Outcome, output};
use punctual_report::{SEARCH_LIMITS, film_svg, film_text, film_timeline};

pub(super) fn film(arguments: LabFilmArguments) -> Outcome {
    let LabFilmArguments { cell, witness, out } = arguments;
    let title = format!("{}, {}, wake-up {witness}", cell.kernel, cell.load);
    let film = in_search(cell, |search, monitor| {
        let symbols = search.symbols(monitor)?;
        let approach = search.approach(witness.block, witness.cycle, monitor)?;
        Ok(approach.film(witness.earlier_ns, &symbols, monitor)?.1)
    })?;
    output::write(format!("{SEARCH_LIMITS}\n{title}\n{}", film_text(&film)).as_bytes())?;
    if let Some(out) = &out {
        let new = NewDirectory::make(out)?;
        new.write("film.svg", film_svg(&film, &title).as_bytes(), false)?;
        new.write("film.perfetto.json", film_timeline(&film, &title).to_string().as_bytes(), false)?;
        new.finish()?;
    }
    Ok(0)
}
