//! `punctual cell`: one Cell as JSON in, one Record as JSON out. All cells run through this command.

use super::internal::end_with;
use crate::cli::arguments::CellArguments;
use crate::cli::terminal::{Outcome, note, one_line};
use punctual_campaign::{CELL_FAILED, Stop};
use punctual_cell::Prepared;
use punctual_cell::host_side::{BesideGuest, READY, Request, Window};
use punctual_model::Progress;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

pub(super) fn cell(arguments: &CellArguments) -> Outcome {
    // Without the requesting process the record has no reader, and the cell must not continue. The campaign passes its
    // process ID, because it may have exited before this line.
    punctual_sys::fail::point("cell-untied");
    end_with(arguments.parent.or_else(|| Some(std::os::unix::process::parent_id())))?;
    arguments.lock.map_or(Ok(()), punctual_host::keep_lock).map_err(|err| format!("--lock: {err}"))?;
    if arguments.beside_guest {
        return beside_guest();
    }
    let stop = Stop::on_signals()?;
    punctual_host::end_waits_with(stop.flag());
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|err| format!("stdin: {err}; a cell is JSON text"))?;
    let cell = punctual_model::json::cell(text.as_bytes())
        .map_err(|err| format!("stdin: {err}; a cell is JSON as in schema/cell.schema.json"))?;
    punctual_sys::fail::point("cell-begun");
    let observe = |progress: Progress| {
        if arguments.progress
            && let Ok(line) = serde_json::to_string(&progress)
        {
            // A closed stderr does not stop the measurement.
            let _ = writeln!(io::stderr(), "{line}");
        }
    };
    // The kernel's tracers run afterwards, with the machine prepared anew.
    let traced = cell.conditions.tracers.then(|| cell.clone());
    traced.as_ref().map_or(Ok(()), punctual_cell::check_tracers)?;
    let prepared = Prepared::new(cell, arguments.samples.as_deref());
    let armed = prepared.and_then(Prepared::arm);
    let record = armed.and_then(|armed| armed.measure(stop.flag(), observe)?.record());
    match record {
        Ok(mut record) => {
            let seen =
                traced.filter(|_| !stop.is_requested()).map(|cell| Prepared::new(cell, None)?.trace()).transpose();
            record.tracers = seen?.flatten();
            write(&record)
        }
        // A campaign, which requests progress, continues after a transient failure.
        Err(err) if arguments.progress && err.is_of_this_time() => {
            note(format_args!("punctual: {}", one_line(&err)));
            Ok(CELL_FAILED)
        }
        Err(err) => Err(err.into()),
    }
}

/// Runs load and trace of this machine beside a guest, until the campaign asks for the answer or has ended.
fn beside_guest() -> Outcome {
    let line = || {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line).map_err(|err| format!("stdin: {err}"))
    };
    let request: Request = serde_json::from_slice(line()?.as_bytes())
        .map_err(|err| format!("stdin: {err}; a request is JSON of the same version"))?;
    let mut beside = BesideGuest::start(&request)?;
    writeln!(io::stdout(), "{READY}").map_err(|err| format!("stdout: {err}"))?;
    // An end of stdin is also a reason to end.
    beside.watch(&|interval| punctual_sys::pipe::wait_readable(io::stdin().as_fd(), interval).unwrap_or(true))?;
    let windows = line()?;
    if windows.is_empty() {
        return Ok(0);
    }
    let windows: Vec<Window> = serde_json::from_slice(windows.as_bytes()).map_err(|err| format!("stdin: {err}"))?;
    write(&beside.answer(&windows))
}

fn write(what: &impl Serialize) -> Outcome {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    punctual_sys::fail::write_all("cell-half-said", &mut io::stdout(), &line)
        .map_err(|err| format!("cannot write the record to stdout: {err}"))?;
    Ok(0)
}
