//! Adding runs: each in one transaction.

use crate::contents::{self, Contents, Measurement};
use crate::engine::{Engine, Failure};
use crate::schema::now_unix_ms;
use crate::{Database, DatabaseError, Value};
use model::{Entry, Header, plain};

/// Effect of an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The run is new.
    New,
    /// The run was there with fewer measurements and has been replaced, such as after `--resume`.
    Replaced,
    /// The run was there, with at least as many measurements; nothing changed.
    Known,
}

const MACHINE: [&str; 6] = ["identity", "hostname", "model", "cpu_model", "architecture", "hypervisor"];

const CONFIGURATION: [&str; 5] = ["fingerprint", "kernel_release", "kernel_version", "preemption", "facts"];

const CELL: [&str; 10] =
    ["identity", "name", "kernel", "load", "policy", "period_ns", "method", "cpus", "duration_ns", "cell"];

const RUN: [&str; 10] = [
    "identity", "machine_id", "configuration_id", "started_unix_ms", "title", "path", "tool", "measurements",
    "planned", "added_unix_ms",
];

const MEASUREMENT: [&str; 23] = [
    "run_id", "cell_index", "cell_id", "machine_id", "started_unix_ms", "again", "kernel_release", "blocks",
    "measured_ns", "samples", "missed", "lost", "min_ns", "mean_ns", "p50_ns", "p99_ns", "p99_low_ns", "p99_high_ns",
    "p999_ns", "max_ns", "max_at_least", "typical_p99_ns", "typical_max_ns",
];

const BLOCK: [&str; 7] = ["run_id", "cell_index", "block", "started_unix_ms", "samples", "p99_ns", "max_ns"];

const FINDING: [&str; 6] = ["run_id", "number", "cell_index", "kind", "importance", "sentence"];

const CAUSE: [&str; 9] =
    ["run_id", "cell_index", "number", "cause", "owners", "wakeups", "blamed", "total_ns", "worst_ns"];

/// Tables with rows of a run, in the order of deletion.
const OF_RUN: [&str; 5] = ["cause", "finding", "histogram", "block", "measurement"];

impl Database {
    /// Adds a run, read from `path`. A run that is there already is replaced if it has more measurements now. Errors:
    /// if the store cannot be written. It is then as before.
    pub fn add(&mut self, header: &Header, entries: &[Entry], path: &str) -> Result<Added, DatabaseError> {
        let contents = contents::of(header, entries, path)?;
        let engine = &mut self.engine;
        engine.begin().map_err(|failure| failure.writing(&self.at))?;
        sys::fail::point("addition-begun");
        let added = put(engine, &contents).and_then(|added| {
            sys::fail::point("addition-put");
            engine.commit().map(|()| added)
        });
        sys::fail::point("addition-kept");
        added.map_err(|failure| {
            engine.roll_back();
            failure.writing(&self.at)
        })
    }
}

fn put(engine: &mut Engine, contents: &Contents) -> Result<Added, Failure> {
    let run = &contents.run;
    let known =
        engine.query("SELECT id, measurements FROM run WHERE identity = $1", &[run.identity.as_str().into()])?;
    let known = known.first().and_then(|row| Some((row.first()?.as_int()?, row.get(1)?.as_unsigned()?)));
    let measurements = u64::try_from(run.measurements).unwrap_or(u64::MAX);
    let added = match known {
        Some((_, before)) if before >= measurements => return Ok(Added::Known),
        Some((id, _)) => {
            for table in OF_RUN {
                engine.execute(&format!("DELETE FROM {table} WHERE run_id = $1"), &[id.into()])?;
            }
            engine.execute("DELETE FROM run WHERE id = $1", &[id.into()])?;
            Added::Replaced
        }
        None => Added::New,
    };
    let machine = number(engine, "machine", &MACHINE, &contents.machine)?;
    let configuration = number(engine, "configuration", &CONFIGURATION, &contents.configuration)?;
    let row = vec![
        run.identity.as_str().into(),
        machine.into(),
        configuration.into(),
        run.started_unix_ms.into(),
        run.title.as_str().into(),
        plain(&run.path).as_ref().into(),
        run.tool.as_str().into(),
        run.measurements.into(),
        run.planned.into(),
        now_unix_ms().into(),
    ];
    let id = number(engine, "run", &RUN, &row)?;
    rows_of_run(engine, contents, id, machine)?;
    Ok(added)
}

/// The number of the row with this identity, its first field; the row is inserted if there is none.
fn number(engine: &mut Engine, table: &str, columns: &[&str], row: &[Value]) -> Result<i64, Failure> {
    let key = columns.first().copied().unwrap_or_default();
    let find = format!("SELECT id FROM {table} WHERE {key} = $1");
    let identity = row.first().cloned().unwrap_or(Value::Null);
    let found = |engine: &mut Engine| -> Result<Option<i64>, Failure> {
        let rows = engine.query(&find, std::slice::from_ref(&identity))?;
        Ok(rows.first().and_then(|row| row.first()).and_then(Value::as_int))
    };
    if let Some(id) = found(engine)? {
        return Ok(id);
    }
    engine.insert(table, columns, &[row.to_vec()], "")?;
    found(engine)?.ok_or_else(|| Failure::Other(format!("a row of {table} is missing after its insertion")))
}

fn rows_of_run(engine: &mut Engine, contents: &Contents, run: i64, machine: i64) -> Result<(), Failure> {
    let mut cells = std::collections::BTreeMap::new();
    for (identity, row) in &contents.cells {
        cells.insert(identity.as_str(), number(engine, "cell", &CELL, row)?);
    }
    let with_run = |row: &[Value]| -> Vec<Value> { std::iter::once(run.into()).chain(row.iter().cloned()).collect() };
    let all = |of: fn(&Measurement) -> &[Vec<Value>]| -> Vec<Vec<Value>> {
        contents.measurements.iter().flat_map(of).map(|row| with_run(row)).collect()
    };
    let mut measurements = Vec::new();
    let mut histograms = Vec::new();
    for one in &contents.measurements {
        let cell = cells.get(one.cell.as_str()).copied().unwrap_or_default();
        let mut row = vec![run.into(), one.index.into(), cell.into(), machine.into()];
        row.extend(one.row.iter().cloned());
        measurements.push(row);
        if let Some(counts) = &one.histogram {
            histograms.push(vec![run.into(), one.index.into(), Value::Bytes(counts.clone())]);
        }
    }
    engine.insert("measurement", &MEASUREMENT, &measurements, "")?;
    sys::fail::point("addition-half");
    engine.insert("block", &BLOCK, &all(|one| &one.blocks), "")?;
    engine.insert("histogram", &["run_id", "cell_index", "counts"], &histograms, "")?;
    engine.insert("cause", &CAUSE, &all(|one| &one.causes), "")?;
    let findings: Vec<_> = contents.findings.iter().map(|row| with_run(row)).collect();
    engine.insert("finding", &FINDING, &findings, "")
}
