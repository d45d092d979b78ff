//! SQLite: one file, whose journal undoes what a killed process left half written.

use super::{Access, Failure};
use crate::{DatabaseError, Location, Part, Value};
pub(crate) use rusqlite::Connection;
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, ToSql};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that a statement waits for the lock of another process, in looks at it.
const LOCK_LOOKS: i32 = 1_000;
const LOCK_INTERVAL: Duration = Duration::from_millis(10);

/// Limit of a field or row of an answer, bytes. Those of a store are far below, and an answer holds one row at a time.
const FIELD_LIMIT: i32 = 16 << 20;

/// Opens the file. A link is not followed, and another kind of file is not opened.
pub(super) fn open(path: &Path, at: &Location, access: Access) -> Result<Connection, DatabaseError> {
    let failed = |action| {
        let at = at.to_string();
        move |source| DatabaseError::Io { action, at, source }
    };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            let reason = "it is not a regular file (links are not followed)".to_owned();
            return Err(DatabaseError::Open { at: at.to_string(), reason });
        }
        Ok(_) => {}
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => match access {
            Access::Read => return Err(DatabaseError::None(at.to_string())),
            Access::Write => {
                let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
                fs::create_dir_all(dir).map_err(failed("make the directory of"))?;
            }
        },
        Err(err) => return Err(failed("read")(err)),
    }
    let path = resolved(path).map_err(failed("read"))?;
    // Reading needs the right to write as well: what a killed process left in the journal is undone first.
    let writable = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let mut flags = OpenFlags::SQLITE_OPEN_NOFOLLOW | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags |= match access {
        Access::Write => writable | OpenFlags::SQLITE_OPEN_CREATE,
        Access::Read => writable,
    };
    let connection = Connection::open_with_flags(&path, flags)
        .map_err(|err| DatabaseError::Open { at: at.to_string(), reason: words(&err) })?;
    set_up(&connection, access).map_err(|failure| match failure {
        Failure::Locked => DatabaseError::Locked(at.to_string()),
        Failure::Other(reason) if reason.contains("not a database") => DatabaseError::Foreign(at.to_string()),
        Failure::Other(reason) => DatabaseError::Open { at: at.to_string(), reason },
    })?;
    Ok(connection)
}

/// The path with the links of its directories resolved: only a link in place of the file itself is refused.
fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs::canonicalize(dir)?.join(path.file_name().unwrap_or_default()))
}

/// Waits for the lock of another process; `false` after the last look. Looks are counted, because a machine that stands
/// still gives the other process no time to release it.
fn wait(looks: i32) -> bool {
    punctual_sys::fail::point("store-waits");
    std::thread::sleep(LOCK_INTERVAL);
    looks < LOCK_LOOKS
}

fn set_up(connection: &Connection, access: Access) -> Result<(), Failure> {
    connection.busy_handler(Some(wait)).map_err(failure)?;
    // The file may come from another user: what its schema defines calls no functions but harmless ones, and no
    // statement reaches another file.
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(failure)?;
    for (name, value) in [("trusted_schema", "OFF"), ("cell_size_check", "ON"), ("foreign_keys", "ON")] {
        connection.pragma_update(None, name, value).map_err(failure)?;
    }
    // Each commit reaches the disk, also if the machine loses its power.
    connection.pragma_update(None, "synchronous", "FULL").map_err(failure)?;
    if access == Access::Read {
        connection.pragma_update(None, "query_only", "ON").map_err(failure)?;
    }
    // The first read: whether the file is a database.
    query(connection, "SELECT count(*) FROM sqlite_master", &[]).map(|_| ())
}

/// Begins a transaction that excludes other writers. An addition of many runs releases the
/// lock only for moments, which the looks of another process can all miss: it looks on as long as the store changes.
pub(super) fn begin(connection: &Connection) -> Result<(), Failure> {
    let version = || query(connection, "PRAGMA data_version", &[]);
    let mut before = version()?;
    loop {
        match execute(connection, "BEGIN IMMEDIATE", &[]) {
            Err(Failure::Locked) => {
                let now = version()?;
                if now == before {
                    return Err(Failure::Locked);
                }
                before = now;
            }
            other => return other,
        }
    }
}

pub(super) fn execute(connection: &Connection, sql: &str, parameters: &[Value]) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(sql).map_err(failure)?;
    statement.execute(rusqlite::params_from_iter(parameters)).map(|_| ()).map_err(failure)
}

pub(super) fn query(connection: &Connection, sql: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, Failure> {
    let mut rows = Vec::new();
    let mut each = |part| {
        if let Part::Row(row) = part {
            rows.push(row);
        }
        ControlFlow::Continue(())
    };
    answer(&mut *connection.prepare_cached(sql).map_err(failure)?, parameters, &mut each)?;
    Ok(rows)
}

/// One statement of the user.
pub(super) fn ask(
    connection: &Connection,
    sql: &str,
    each: &mut dyn FnMut(Part) -> ControlFlow<()>,
) -> Result<(), Failure> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, FIELD_LIMIT).map_err(failure)?;
    let mut statement = connection.prepare(sql).map_err(failure)?;
    if !statement.readonly() {
        return Err(Failure::Other("it would change the store; only queries are possible".to_owned()));
    }
    answer(&mut statement, &[], each)
}

fn answer(
    statement: &mut rusqlite::Statement<'_>,
    parameters: &[Value],
    each: &mut dyn FnMut(Part) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let mut found = statement.query(rusqlite::params_from_iter(parameters)).map_err(failure)?;
    let n = columns.len();
    let mut is_wanted = each(Part::Columns(columns)).is_continue();
    while is_wanted && let Some(row) = found.next().map_err(failure)? {
        let field = |index| row.get_ref(index).map(value).map_err(failure);
        is_wanted = each(Part::Row((0..n).map(field).collect::<Result<_, _>>()?)).is_continue();
    }
    Ok(())
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n) => Value::Int(n),
        ValueRef::Real(x) => Value::Real(x),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(n) => ValueRef::Integer(*n),
            Value::Real(x) => ValueRef::Real(*x),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn failure(err: rusqlite::Error) -> Failure {
    match err.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Locked,
        _ => Failure::Other(words(&err)),
    }
}

fn words(err: &rusqlite::Error) -> String {
    match err {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    }
}
