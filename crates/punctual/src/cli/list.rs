//! `punctual list`: the runs below a directory.

use super::arguments::{Format, ListArguments};
use super::{Outcome, note, output};
use report::json::{List, Unreadable};

pub(super) fn list(arguments: &ListArguments) -> Outcome {
    let mut list = List::default();
    let (found, closed) = store::below(&arguments.dir)?;
    for found in found {
        let path = found.dir.display().to_string();
        if let Some(imported) = store::read_imported(&found.dir).transpose() {
            match imported {
                Ok(run) => {
                    let summary = analysis::summarise_imported(&run.measurements, &run.header.require);
                    let damage = run.damage.iter().map(ToString::to_string).collect();
                    list.add_imported((path, found.bytes), &run.header, &summary, damage);
                }
                Err(err) => list.add_unreadable(Unreadable { path, bytes: found.bytes, reason: err.to_string() }),
            }
            continue;
        }
        match store::read(&found.dir) {
            Ok(run) => {
                let summary = analysis::summarise(&run.header, &run.entries);
                let damage = run.damage.iter().map(ToString::to_string).collect();
                list.add((path, found.bytes), &run.header, (&summary, run.entries.len()), damage);
            }
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
    // A list that names what is damaged has done what was asked.
    Ok(0)
}
