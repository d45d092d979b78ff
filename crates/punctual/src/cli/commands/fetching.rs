//! Progress of a download: a redrawn line on a terminal, otherwise one line.

use crate::cli::terminal::note;
use crate::cli::terminal::redraw::RedrawnLines;
use punctual_lab::Fetching;

/// Carries out `fetch` with an observer that shows its progress.
pub(super) fn observed<T>(fetch: impl FnOnce(&mut dyn FnMut(Fetching<'_>)) -> T) -> T {
    let mut terminal = RedrawnLines::on_terminal();
    let mut said = String::new();
    let result = fetch(&mut |fetching| match &mut terminal {
        Some(terminal) => terminal.draw(&[line(fetching).into()], RedrawnLines::size().columns),
        None if said != fetching.package => {
            fetching.package.clone_into(&mut said);
            note(format_args!("fetching {}{}", fetching.package, size_of(fetching)));
        }
        None => {}
    });
    if let Some(terminal) = &mut terminal {
        terminal.erase();
    }
    result
}

fn size_of(fetching: Fetching<'_>) -> String {
    fetching.of_bytes.map(|bytes| format!(", {}", punctual_report::size(bytes))).unwrap_or_default()
}

fn line(fetching: Fetching<'_>) -> String {
    let Fetching { package, bytes, of_bytes } = fetching;
    let of = of_bytes.map(|all| format!(" of {}", punctual_report::size(all))).unwrap_or_default();
    format!("fetching {package}: {}{of}", punctual_report::size(bytes))
}
