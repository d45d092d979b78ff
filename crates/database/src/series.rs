//! Questions of `punctual history` and `check --baseline store:`.

use crate::contents::series_cell;
use crate::packed::unpacked;
use crate::{Database, DatabaseError, Value};
use punctual_analysis::facts;
use punctual_analysis::history::{Point, Series};
use punctual_model::{Cell, Host};
use std::collections::{BTreeMap, HashMap};

/// Columns of a point, in the order of `point`.
const POINT: &str = "m.machine_id, m.cell_id, m.run_id, m.cell_index, m.started_unix_ms, m.kernel_release, \
                     r.configuration_id, m.p99_ns, m.p99_low_ns, m.p99_high_ns, m.max_ns, m.max_at_least, \
                     m.typical_p99_ns, m.typical_max_ns, m.samples";

/// Series that are asked for.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Part of the node name, model or identity of a machine.
    pub machine: Option<String>,
    /// Part of the name of a cell, or its identity.
    pub cell: Option<String>,
}

/// A run in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// Number in the store.
    pub id: u64,
    /// Start, ms since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Node name, or identity, of its machine.
    pub machine: String,
    /// Its kernel, `uname -r`.
    pub kernel_release: Option<String>,
    /// Title of its plan.
    pub title: String,
    /// Directory from which it was added.
    pub path: String,
    /// Measurements in it.
    pub measurements: u64,
    /// Measurements planned.
    pub planned: u64,
}

/// Lowest latency, ns, and count of each bucket of a histogram.
pub type Buckets = Vec<(u64, u64)>;

impl Database {
    /// All runs, newest first. Errors: if the store cannot be read.
    pub fn runs(&mut self) -> Result<Vec<StoredRun>, DatabaseError> {
        let sql = "SELECT r.id, r.started_unix_ms, coalesce(m.hostname, m.identity), c.kernel_release, r.title, r.path, \
                   r.measurements, r.planned FROM run r JOIN machine m ON m.id = r.machine_id \
                   JOIN configuration c ON c.id = r.configuration_id ORDER BY r.started_unix_ms DESC, r.id DESC";
        let rows = self.read(sql, &[])?;
        let run = |row: &[Value]| {
            Some(StoredRun {
                id: row.first()?.as_unsigned()?,
                started_unix_ms: row.get(1)?.as_unsigned()?,
                machine: row.get(2)?.as_text()?.to_owned(),
                kernel_release: row.get(3)?.as_text().map(str::to_owned),
                title: row.get(4)?.as_text()?.to_owned(),
                path: row.get(5)?.as_text()?.to_owned(),
                measurements: row.get(6)?.as_unsigned()?,
                planned: row.get(7)?.as_unsigned()?,
            })
        };
        Ok(rows.iter().filter_map(|row| run(row)).collect())
    }

    /// The selected series, by machine and cell, each in the order of time. Series without latencies are left out.
    /// Errors: if the store cannot be read.
    pub fn series(&mut self, selection: &Selection) -> Result<Vec<Series>, DatabaseError> {
        let machines =
            self.named("SELECT id, coalesce(hostname, identity), model, identity FROM machine ORDER BY id")?;
        let cells = self.named("SELECT id, name, policy, identity FROM cell ORDER BY id")?;
        let details = self.details()?;
        let matches = |asked: &Option<String>, names: &[String]| {
            asked.as_ref().is_none_or(|asked| names.iter().any(|name| name.contains(asked.as_str())))
        };
        let cells: BTreeMap<i64, _> = cells.into_iter().filter(|(_, names)| matches(&selection.cell, names)).collect();
        let mut series = Vec::new();
        for (machine, names) in machines.iter().filter(|(_, names)| matches(&selection.machine, names)) {
            let mut points = self.points(*machine)?;
            let names = (names.first().cloned().unwrap_or_default(), names.last().cloned().unwrap_or_default());
            for (cell, of_cell) in &cells {
                let Some(points) = points.remove(cell) else { continue };
                let label = of_cell.first().cloned().unwrap_or_default();
                series.push(Series {
                    machine: names.0.clone(),
                    machine_identity: names.1.clone(),
                    cell: label,
                    cell_identity: of_cell.last().cloned().unwrap_or_default(),
                    details: details.get(cell).cloned().unwrap_or_default(),
                    points,
                });
            }
        }
        Ok(series)
    }

    /// Earlier runs of the series of a cell on a machine, in the order of time. Errors: if the store cannot be read.
    pub fn earlier(&mut self, host: &Host, cell: &Cell, before_unix_ms: u64) -> Result<Vec<Point>, DatabaseError> {
        let configurations = self.configurations()?;
        let sql = format!(
            "SELECT {POINT} FROM measurement m JOIN run r ON r.id = m.run_id \
             WHERE m.machine_id = (SELECT id FROM machine WHERE identity = $1) \
             AND m.cell_id = (SELECT id FROM cell WHERE identity = $2) \
             AND m.started_unix_ms < $3 AND m.again = 0 ORDER BY m.started_unix_ms, m.run_id"
        );
        let identity = series_cell(cell).id().to_string();
        let parameters = [Value::Text(facts::identity(host)), Value::Text(identity), before_unix_ms.into()];
        let rows = self.read(&sql, &parameters)?;
        Ok(rows.iter().filter_map(|row| point(row, &configurations)).map(|(_, point)| point).collect())
    }

    /// Histograms of the measurements with these runs and cells: lowest latency and count of each bucket. Damaged ones
    /// are left out. Errors: if the store cannot be read.
    pub fn histograms(&mut self, points: &[(u64, u64)]) -> Result<Vec<Option<Buckets>>, DatabaseError> {
        let sql = "SELECT counts FROM histogram WHERE run_id = $1 AND cell_index = $2";
        let mut histograms = Vec::new();
        for (run, cell) in points {
            let rows = self.read(sql, &[(*run).into(), (*cell).into()])?;
            histograms.push(rows.first().and_then(|row| row.first()?.as_bytes()).and_then(unpacked));
        }
        Ok(histograms)
    }

    /// Numbers with names.
    fn named(&mut self, sql: &str) -> Result<Vec<(i64, Vec<String>)>, DatabaseError> {
        let text = |value: &Value| value.as_text().unwrap_or_default().to_owned();
        let rows = self.read(sql, &[])?;
        let named = |row: &Vec<Value>| Some((row.first()?.as_int()?, row.iter().skip(1).map(text).collect()));
        Ok(rows.iter().filter_map(named).collect())
    }

    /// What distinguishes cells of one name: period, method, CPUs and duration.
    fn details(&mut self) -> Result<HashMap<i64, String>, DatabaseError> {
        let rows = self.read("SELECT id, period_ns, method, cpus, duration_ns, kernel FROM cell", &[])?;
        let words = |row: &Vec<Value>| {
            let period = punctual_model::Span(row.get(1)?.as_unsigned()?);
            let duration = punctual_model::Span(row.get(4)?.as_unsigned()?);
            let (method, cpus, kernel) = (row.get(2)?.as_text()?, row.get(3)?.as_text()?, row.get(5)?.as_text()?);
            Some((row.first()?.as_int()?, format!("{method} {period}, CPU {cpus}, {duration}, kernel {kernel}")))
        };
        Ok(rows.iter().filter_map(words).collect())
    }

    /// Facts of each configuration.
    fn configurations(&mut self) -> Result<Configurations, DatabaseError> {
        let rows = self.read("SELECT id, fingerprint, facts FROM configuration", &[])?;
        let read = |row: &Vec<Value>| {
            let facts = serde_json::from_slice(row.get(2)?.as_text()?.as_bytes()).unwrap_or_default();
            Some((row.first()?.as_int()?, std::sync::Arc::new(facts)))
        };
        Ok(rows.iter().filter_map(read).collect())
    }

    /// All points of a machine, by cell.
    fn points(&mut self, machine: i64) -> Result<BTreeMap<i64, Vec<Point>>, DatabaseError> {
        if self.facts.is_none() {
            self.facts = Some(self.configurations()?);
        }
        let sql = format!(
            "SELECT {POINT} FROM measurement m JOIN run r ON r.id = m.run_id WHERE m.machine_id = $1 AND m.again = 0 \
             ORDER BY m.cell_id, m.started_unix_ms, m.run_id"
        );
        let rows = self.read(&sql, &[machine.into()])?;
        let configurations = self.facts.as_ref();
        let mut points: BTreeMap<i64, Vec<Point>> = BTreeMap::new();
        for (cell, found) in rows.iter().filter_map(|row| point(row, configurations?)) {
            points.entry(cell).or_default().push(found);
        }
        points.retain(|_, points| points.iter().any(|point| point.max_ns.is_some()));
        Ok(points)
    }

    fn read(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DatabaseError> {
        self.engine.query(sql, parameters).map_err(|failure| failure.reading(&self.at))
    }
}

/// Facts of configurations, by their number in the store.
pub(crate) type Configurations = HashMap<i64, std::sync::Arc<BTreeMap<String, String>>>;

/// A point, with the number of its cell.
fn point(row: &[Value], configurations: &Configurations) -> Option<(i64, Point)> {
    let int = |index: usize| row.get(index).and_then(Value::as_int);
    let unsigned = |index: usize| row.get(index).and_then(Value::as_unsigned);
    let point = Point {
        run: unsigned(2)?,
        cell_index: unsigned(3)?,
        started_unix_ms: unsigned(4)?,
        kernel_release: row.get(5)?.as_text().map(str::to_owned),
        facts: configurations.get(&int(6)?).cloned().unwrap_or_default(),
        p99_ns: int(7),
        p99_interval_ns: int(8).zip(int(9)),
        max_ns: int(10),
        max_at_least: int(11) == Some(1),
        typical_p99_ns: row.get(12)?.as_real(),
        typical_max_ns: row.get(13)?.as_real(),
        samples: unsigned(14)?,
    };
    Some((int(1)?, point))
}
