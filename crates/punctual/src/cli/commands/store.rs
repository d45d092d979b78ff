//! `punctual store`: adds runs to the store, lists them, and answers questions in SQL.

use super::history;
use crate::cli::arguments::{
    QueryFormat, StoreAddArguments, StoreCommand, StoreListArguments, StoreName, StoreQueryArguments,
};
use crate::cli::terminal::output;
use crate::cli::terminal::output::Parts;
use crate::cli::terminal::{ERROR, Outcome, note};
use punctual_database::{Added, Database, DatabaseError, Location, Part, Value};
use punctual_report::{RowsFormat, RowsWriter};
use serde_json::Value as Json;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Carries out `punctual store`.
pub(super) fn command(command: &StoreCommand) -> Outcome {
    match command {
        StoreCommand::Add(arguments) => add(arguments),
        StoreCommand::List(arguments) => list(arguments),
        StoreCommand::Query(arguments) => query(arguments),
        StoreCommand::History(arguments) => history::history(arguments),
    }
}

/// The store that a command names.
pub(super) fn location(store: &StoreName) -> Result<Location, DatabaseError> {
    Location::named_or_of_user(store.named.as_deref())
}

fn add(arguments: &StoreAddArguments) -> Outcome {
    let mut runs = Vec::new();
    for named in &arguments.runs {
        if punctual_store::is_run(named) || !named.is_dir() {
            runs.push(named.clone());
            continue;
        }
        let (found, closed) = punctual_store::below(named)?;
        closed.iter().for_each(|why| note(format_args!("punctual: {why}")));
        if found.is_empty() {
            return Err(format!("no run in {}: name a directory written by `punctual run`", named.display()).into());
        }
        runs.extend(found.into_iter().map(|run| run.dir));
    }
    let mut database = Database::open(&location(&arguments.store)?)?;
    let mut failed = 0;
    for run in &runs {
        match add_one(&mut database, run) {
            Ok(line) => output::write(format!("{line}\n").as_bytes())?,
            // A store that cannot be written fails for every other run as well.
            Err(err @ (DatabaseError::Write { .. } | DatabaseError::Locked(_))) => return Err(err.into()),
            Err(err) if runs.len() == 1 => return Err(err.into()),
            Err(err) => {
                failed += 1;
                note(format_args!("punctual: {err}"));
            }
        }
    }
    Ok(if failed == 0 { 0 } else { ERROR })
}

fn add_one(database: &mut Database, path: &Path) -> Result<String, DatabaseError> {
    let run = punctual_store::read(path)?;
    run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    let absolute = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    let added = database.add(&run.header, &run.entries, &absolute.display().to_string())?;
    let n = punctual_analysis::wording::things(u64::try_from(run.entries.len()).unwrap_or(u64::MAX), "measurement");
    Ok(match added {
        Added::New => format!("{}: added, {n}", path.display()),
        Added::Replaced => format!("{}: replaced, {n} now", path.display()),
        Added::Known => format!("{}: known", path.display()),
    })
}

fn list(arguments: &StoreListArguments) -> Outcome {
    let runs = Database::open_to_read(&location(&arguments.store)?)?.runs()?;
    let columns = ["started", "machine", "kernel", "title", "measured", "planned", "path"];
    let row = |run: punctual_database::StoredRun| {
        vec![
            Json::from(punctual_report::utc(run.started_unix_ms)),
            run.machine.into(),
            run.kernel_release.into(),
            run.title.into(),
            run.measurements.into(),
            run.planned.into(),
            run.path.into(),
        ]
    };
    let mut rows = RowsWriter::new(format(arguments.format), Parts::default());
    let written = rows.begin(&columns.map(str::to_owned)).and_then(|()| {
        runs.into_iter().try_for_each(|run| rows.row(&row(run)))?;
        rows.end()
    });
    output::written(written)
}

fn query(arguments: &StoreQueryArguments) -> Outcome {
    let mut rows = RowsWriter::new(format(arguments.format), Parts::default());
    // Twice the characters that a text shows.
    let bytes = if arguments.format == QueryFormat::Text { punctual_report::FIELD_WIDTH } else { usize::MAX };
    let mut written = Ok(());
    Database::open_to_read(&location(&arguments.store)?)?.query(&arguments.sql, &mut |part| {
        written = match part {
            Part::Columns(names) => rows.begin(&names),
            Part::Row(row) => rows.row(&row.into_iter().map(|value| json(value, bytes)).collect::<Vec<_>>()),
        };
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    output::written(written.and_then(|()| rows.end()))
}

fn format(format: QueryFormat) -> RowsFormat {
    match format {
        QueryFormat::Text => RowsFormat::Text(output::style(false)),
        QueryFormat::Csv => RowsFormat::Csv,
        QueryFormat::Json => RowsFormat::Json,
    }
}

/// A field; its first `bytes` bytes are hexadecimal text.
fn json(value: Value, bytes: usize) -> Json {
    let digit = |nibble| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    match value {
        Value::Null => Json::Null,
        Value::Int(n) => n.into(),
        Value::Real(x) => x.into(),
        Value::Text(text) => text.into(),
        Value::Bytes(all) => {
            all.iter().take(bytes).flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect::<String>().into()
        }
    }
}
