//! `punctual cell`: one Cell as JSON in, one Record as JSON out. All cells run through this command.

use super::{Outcome, arguments::CellArguments, note, one_line};
use campaign::{CELL_FAILED, Stop};
use cell::Prepared;
use model::{Cell, Progress};
use serde::Serialize;
use std::io::{self, Read, Write};
use sys::process;

pub(super) fn cell(arguments: &CellArguments) -> Outcome {
    // Without the requesting process the record has no reader, and the cell must not continue. The campaign passes its
    // process ID, because it may have exited before this line.
    process::die_with(arguments.parent.unwrap_or_else(std::os::unix::process::parent_id))?;
    arguments.lock.map_or(Ok(()), host::keep_lock).map_err(|err| format!("--lock: {err}"))?;
    let stop = Stop::on_signals()?;
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|err| format!("stdin: {err}; a cell is JSON text"))?;
    let cell: Cell = serde_json::from_slice(text.as_bytes())
        .map_err(|err| format!("stdin: {err}; a cell is JSON as in schema/cell.schema.json"))?;
    let observe = |progress: Progress| {
        if arguments.progress
            && let Ok(line) = serde_json::to_string(&progress)
        {
            // A closed stderr does not stop the measurement.
            let _ = writeln!(io::stderr(), "{line}");
        }
    };
    if arguments.tracers {
        return write(&Prepared::new(cell, None)?.trace()?);
    }
    let prepared = Prepared::new(cell, arguments.samples.as_deref());
    let armed = prepared.and_then(Prepared::arm);
    let record = armed.and_then(|armed| armed.measure(stop.flag(), observe)?.record());
    match record {
        Ok(record) => write(&record),
        // A campaign, which requests progress, continues after a transient failure.
        Err(err) if arguments.progress && err.is_of_this_time() => {
            note(format_args!("punctual: {}", one_line(&err)));
            Ok(CELL_FAILED)
        }
        Err(err) => Err(err.into()),
    }
}

fn write(what: &impl Serialize) -> Outcome {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    io::stdout().write_all(&line).map_err(|err| format!("cannot write the record to stdout: {err}"))?;
    Ok(0)
}
