//! Adding runs: each in one transaction.

use crate::contents::{self, Contents, Measurement, Row};
use crate::engine::{Engine, Failure};
use crate::schema::now_unix_ms;
use crate::{Database, DatabaseError, Value};
use punctual_model::{Entry, Header};

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

/// Tables with rows of a run, in the order of deletion.
const OF_RUN: [&str; 5] = ["cause", "finding", "histogram", "block", "measurement"];

impl Database {
    /// Adds a run, read from `path`. A run that is there already is replaced if it has more measurements now. Errors:
    /// if the store cannot be written. It is then as before.
    pub fn add(&mut self, header: &Header, entries: &[Entry], path: &str) -> Result<Added, DatabaseError> {
        let contents = contents::of(header, entries, path)?;
        let engine = &mut self.engine;
        engine.begin().map_err(|failure| failure.writing(&self.at))?;
        punctual_sys::fail::point("addition-begun");
        let added = put(engine, &contents).and_then(|added| {
            punctual_sys::fail::point("addition-put");
            engine.commit().map(|()| added)
        });
        punctual_sys::fail::point("addition-kept");
        added.map_err(|failure| {
            engine.roll_back();
            failure.writing(&self.at)
        })
    }
}

fn put(engine: &mut Engine, contents: &Contents) -> Result<Added, Failure> {
    let identity = contents.run.first().map(|(_, identity)| identity.clone()).unwrap_or(Value::Null);
    let find = |engine: &mut Engine, identity: &Value| -> Result<Option<(i64, u64)>, Failure> {
        let sql = "SELECT id, measurements FROM run WHERE identity = $1";
        let known = engine.query(sql, std::slice::from_ref(identity))?;
        Ok(known.first().and_then(|row| Some((row.first()?.as_int()?, row.get(1)?.as_unsigned()?))))
    };
    let mut known = find(engine, &identity)?;
    if known.is_none() {
        known = find(engine, &Value::text(&contents.earlier_identity))?;
        if let Some((id, _)) = known {
            engine.execute("UPDATE run SET identity = $1 WHERE id = $2", &[identity, id.into()])?;
        }
    }
    let measurements = u64::try_from(contents.n_measurements).unwrap_or(u64::MAX);
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
    let machine = number(engine, "machine", &contents.machine)?;
    let configuration = number(engine, "configuration", &contents.configuration)?;
    let of_store = [
        ("machine_id", machine.into()),
        ("configuration_id", configuration.into()),
        ("added_unix_ms", now_unix_ms().into()),
    ];
    let id = number(engine, "run", &[&contents.run[..], &of_store].concat())?;
    rows_of_run(engine, contents, id, machine)?;
    Ok(added)
}

/// The number of the row with this identity, its first field; the row is inserted if there is none.
fn number(engine: &mut Engine, table: &str, row: &[(&'static str, Value)]) -> Result<i64, Failure> {
    let (key, identity) = row.first().cloned().unwrap_or(("id", Value::Null));
    let find = format!("SELECT id FROM {table} WHERE {key} = $1");
    let found = |engine: &mut Engine| -> Result<Option<i64>, Failure> {
        let rows = engine.query(&find, std::slice::from_ref(&identity))?;
        Ok(rows.first().and_then(|row| row.first()).and_then(Value::as_int))
    };
    if let Some(id) = found(engine)? {
        return Ok(id);
    }
    engine.insert(table, &[row.to_vec()])?;
    found(engine)?.ok_or_else(|| Failure::Other(format!("a row of {table} is missing after its insertion")))
}

fn rows_of_run(engine: &mut Engine, contents: &Contents, run: i64, machine: i64) -> Result<(), Failure> {
    let mut cells = std::collections::BTreeMap::new();
    for (identity, row) in &contents.cells {
        cells.insert(identity.as_str(), number(engine, "cell", row)?);
    }
    let with = |ids: &[(&'static str, i64)], row: &Row| -> Row {
        ids.iter().map(|(column, id)| (*column, (*id).into())).chain(row.iter().cloned()).collect()
    };
    let of_run = |row: &Row| with(&[("run_id", run)], row);
    let of_cell = |one: &Measurement| {
        let cell = cells.get(one.cell.as_str()).copied().unwrap_or_default();
        with(&[("run_id", run), ("cell_id", cell), ("machine_id", machine)], &one.row)
    };
    let all = &contents.measurements;
    engine.insert("measurement", &all.iter().map(of_cell).collect::<Vec<_>>())?;
    punctual_sys::fail::point("addition-half");
    engine.insert("block", &all.iter().flat_map(|one| &one.blocks).map(of_run).collect::<Vec<_>>())?;
    engine.insert("histogram", &all.iter().filter_map(|one| one.histogram.as_ref()).map(of_run).collect::<Vec<_>>())?;
    engine.insert("cause", &all.iter().flat_map(|one| &one.causes).map(of_run).collect::<Vec<_>>())?;
    engine.insert("finding", &contents.findings.iter().map(of_run).collect::<Vec<_>>())
}
