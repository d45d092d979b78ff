//! The schema of both engines, and its versions.

use crate::engine::{Engine, Failure};
use crate::{DatabaseError, Location, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// The statements that lead from each version to the next; the first from an empty database to version 1. A published
/// one never changes: a new version gets a new list. docs/history.md describes the tables.
pub(crate) const MIGRATIONS: &[&[&str]] = &[VERSION_1];

const VERSION_1: &[&str] = &[
    "CREATE TABLE schema_version (version {int} NOT NULL, tool TEXT NOT NULL, applied_unix_ms {int} NOT NULL) {end}",
    "CREATE TABLE machine (id {id}, identity TEXT NOT NULL UNIQUE, hostname TEXT, model TEXT, cpu_model TEXT, \
     architecture TEXT, hypervisor TEXT) {end}",
    "CREATE TABLE configuration (id {id}, fingerprint TEXT NOT NULL UNIQUE, kernel_release TEXT, kernel_version TEXT, \
     preemption TEXT, facts TEXT NOT NULL) {end}",
    "CREATE TABLE cell (id {id}, identity TEXT NOT NULL UNIQUE, name TEXT NOT NULL, kernel TEXT NOT NULL, \
     load TEXT NOT NULL, policy TEXT NOT NULL, period_ns {int} NOT NULL, method TEXT NOT NULL, cpus TEXT NOT NULL, \
     duration_ns {int} NOT NULL, cell TEXT NOT NULL) {end}",
    "CREATE TABLE run (id {id}, identity TEXT NOT NULL UNIQUE, machine_id {int} NOT NULL REFERENCES machine, \
     configuration_id {int} NOT NULL REFERENCES configuration, started_unix_ms {int} NOT NULL, title TEXT NOT NULL, \
     path TEXT NOT NULL, tool TEXT NOT NULL, measurements {int} NOT NULL, planned {int} NOT NULL, \
     added_unix_ms {int} NOT NULL) {end}",
    "CREATE INDEX run_by_machine ON run (machine_id, started_unix_ms)",
    "CREATE TABLE measurement (run_id {int} NOT NULL REFERENCES run, cell_index {int} NOT NULL, \
     cell_id {int} NOT NULL REFERENCES cell, machine_id {int} NOT NULL REFERENCES machine, \
     started_unix_ms {int} NOT NULL, again {int} NOT NULL, kernel_release TEXT, blocks {int} NOT NULL, \
     measured_ns {int} NOT NULL, samples {int} NOT NULL, missed {int}, lost {int} NOT NULL, min_ns {int}, \
     mean_ns {real}, p50_ns {int}, p99_ns {int}, p99_low_ns {int}, p99_high_ns {int}, p999_ns {int}, max_ns {int}, \
     max_at_least {int} NOT NULL, typical_p99_ns {real}, typical_max_ns {real}, \
     PRIMARY KEY (run_id, cell_index)) {clustered}",
    "CREATE INDEX measurement_of_series ON measurement (machine_id, cell_id, started_unix_ms)",
    "CREATE TABLE block (run_id {int} NOT NULL REFERENCES run, cell_index {int} NOT NULL, block {int} NOT NULL, \
     started_unix_ms {int} NOT NULL, samples {int} NOT NULL, p99_ns {int}, max_ns {int}, \
     PRIMARY KEY (run_id, cell_index, block)) {clustered}",
    "CREATE TABLE histogram (run_id {int} NOT NULL REFERENCES run, cell_index {int} NOT NULL, counts {bytes} NOT NULL, \
     PRIMARY KEY (run_id, cell_index)) {clustered}",
    "CREATE TABLE finding (run_id {int} NOT NULL REFERENCES run, number {int} NOT NULL, cell_index {int}, \
     kind TEXT NOT NULL, importance {int} NOT NULL, sentence TEXT NOT NULL, PRIMARY KEY (run_id, number)) {clustered}",
    "CREATE TABLE cause (run_id {int} NOT NULL REFERENCES run, cell_index {int} NOT NULL, number {int} NOT NULL, \
     cause TEXT NOT NULL, owners TEXT NOT NULL, wakeups {int} NOT NULL, blamed {int} NOT NULL, total_ns {int} NOT NULL, \
     worst_ns {int} NOT NULL, PRIMARY KEY (run_id, cell_index, number)) {clustered}",
];

/// Version of the schema; `None` for an empty database.
pub(crate) fn version(engine: &mut Engine, at: &Location) -> Result<Option<i64>, DatabaseError> {
    let reading = |failure: Failure| failure.reading(at);
    if engine.is_foreign().map_err(reading)? {
        return Err(DatabaseError::Foreign(at.to_string()));
    }
    punctual_sys::fail::point("schema-looked");
    if !engine.has_table("schema_version").map_err(reading)? {
        return Ok(None);
    }
    let rows = engine.query("SELECT max(version) FROM schema_version", &[]).map_err(reading)?;
    let version = rows.first().and_then(|row| row.first()).and_then(Value::as_int);
    version.map(Some).ok_or_else(|| DatabaseError::Foreign(at.to_string()))
}

/// Checks that the store can be read: it has a schema that this program knows.
pub(crate) fn check(engine: &mut Engine, at: &Location) -> Result<(), DatabaseError> {
    let known = MIGRATIONS.len();
    match version(engine, at)? {
        None => Err(DatabaseError::None(at.to_string())),
        Some(version) if usize::try_from(version).is_ok_and(|version| version > known) => {
            Err(DatabaseError::Newer { at: at.to_string(), version, known })
        }
        Some(version) if usize::try_from(version).is_ok_and(|version| version == known) => Ok(()),
        Some(version) => Err(DatabaseError::Read {
            at: at.to_string(),
            reason: format!("it has schema {version} of an older program; `punctual store add` with a run converts it"),
        }),
    }
}

/// Brings the schema to the newest of these versions, in one transaction.
pub(crate) fn migrate(engine: &mut Engine, at: &Location, migrations: &[&[&str]]) -> Result<(), DatabaseError> {
    let known = migrations.len();
    let is_done = |version: Option<i64>| match version {
        Some(version) if usize::try_from(version).is_ok_and(|version| version > known) => {
            Err(DatabaseError::Newer { at: at.to_string(), version, known })
        }
        Some(version) => Ok(usize::try_from(version) == Ok(known)),
        None => Ok(false),
    };
    if is_done(version(engine, at)?)? {
        return Ok(());
    }
    engine.begin().map_err(|failure| failure.writing(at))?;
    punctual_sys::fail::point("schema-begun");
    let migrated = in_transaction(engine, at, migrations);
    punctual_sys::fail::point("schema-kept");
    if migrated.is_err() {
        engine.roll_back();
    }
    migrated
}

fn in_transaction(engine: &mut Engine, at: &Location, migrations: &[&[&str]]) -> Result<(), DatabaseError> {
    let writing = |failure: Failure| failure.writing(at);
    // Another process may have been faster.
    let from = version(engine, at)?.and_then(|version| usize::try_from(version).ok()).unwrap_or(0);
    for (index, statements) in migrations.iter().enumerate().skip(from) {
        for statement in *statements {
            let statement = engine.definition(statement);
            engine.execute(&statement, &[]).map_err(writing)?;
        }
        let row = vec![
            ("version", (index + 1).into()),
            ("tool", punctual_model::TOOL.into()),
            ("applied_unix_ms", now_unix_ms().into()),
        ];
        engine.insert("schema_version", &[row]).map_err(writing)?;
    }
    punctual_sys::fail::point("schema-put");
    engine.commit().map_err(writing)
}

/// The time, ms since 1970-01-01 UTC.
pub(crate) fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
