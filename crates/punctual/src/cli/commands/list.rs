//! `punctual list`: lists the runs below a directory.

use super::read::Read;
use crate::cli::arguments::{Format, ListArguments};
use crate::cli::terminal::{Outcome, note, output};
use report::json::{List, Unreadable};

pub(super) fn list(arguments: &ListArguments) -> Outcome {
    let mut list = List::default();
    let (found, closed) = store::below(&arguments.dir)?;
    for found in found {
        let path = found.dir.display().to_string();
        match Read::open(&found.dir) {
            Ok(read) => list.add(found.bytes, &read.results(&path), read.damage()),
            Err(err) => list.add_unreadable(Unreadable { path, bytes: found.bytes, reason: err.to_string() }),
        }
    }
    let mut text = Vec::new();
    match arguments.format {
        Format::Text => {
            report::list_text(&list, &mut text, &arguments.dir.display().to_string(), output::style(false))?
        }
        Format::Json => output::json(&mut text, &serde_json::to_value(&list)?)?,
    }
    output::write(&text)?;
    closed.iter().for_each(|why| note(format_args!("punctual: {why}")));
    // Naming damaged runs is part of the list and not an error.
    Ok(0)
}
