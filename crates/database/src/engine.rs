//! One interface to both engines: statements with parameters `$1`, `$2` ... in the order of their first use.

#[cfg_attr(not(feature = "postgres"), path = "engine/left_out.rs")]
mod postgres;
#[cfg_attr(not(feature = "sqlite"), path = "engine/left_out.rs")]
mod sqlite;

use crate::contents::Row;
use crate::{DatabaseError, Location, Part, Value};
use std::ops::ControlFlow;

/// An open connection.
pub(crate) enum Engine {
    Sqlite(sqlite::Connection),
    Postgres(Box<postgres::Connection>),
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Questions only; the store has to exist.
    Read,
    /// Additions; a store that does not exist is made.
    Write,
}

/// Failure of a statement.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another process holds the lock.
    #[cfg_attr(not(any(feature = "postgres", feature = "sqlite")), expect(dead_code, reason = "no store opens"))]
    Locked,
    /// Anything else, in words.
    Other(String),
}

impl Failure {
    /// The failure of an addition to the store at this place.
    pub(crate) fn writing(self, at: &Location) -> DatabaseError {
        match self {
            Failure::Locked => DatabaseError::Locked(at.to_string()),
            Failure::Other(reason) => DatabaseError::Write { at: at.to_string(), reason },
        }
    }

    /// The failure of a question to the store at this place.
    pub(crate) fn reading(self, at: &Location) -> DatabaseError {
        match self {
            Failure::Locked => DatabaseError::Locked(at.to_string()),
            Failure::Other(reason) => DatabaseError::Read { at: at.to_string(), reason },
        }
    }
}

impl Engine {
    /// Opens the store. Errors: if it cannot be opened, or does not exist and is only to be read.
    pub(crate) fn open(at: &Location, access: Access) -> Result<Engine, DatabaseError> {
        match at {
            Location::File(path) => sqlite::open(path, at, access).map(Engine::Sqlite),
            Location::Server(url) => postgres::open(url, at, access).map(Box::new).map(Engine::Postgres),
        }
    }

    /// Runs a statement.
    pub(crate) fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<(), Failure> {
        match self {
            Engine::Sqlite(connection) => sqlite::execute(connection, sql, parameters),
            Engine::Postgres(client) => postgres::execute(client, sql, parameters),
        }
    }

    /// Runs a statement that returns rows.
    pub(crate) fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, Failure> {
        match self {
            Engine::Sqlite(connection) => sqlite::query(connection, sql, parameters),
            Engine::Postgres(client) => postgres::query(client, sql, parameters),
        }
    }

    /// Runs one statement of the user that cannot change the store, until `each` breaks.
    pub(crate) fn ask(&mut self, sql: &str, each: &mut dyn FnMut(Part) -> ControlFlow<()>) -> Result<(), Failure> {
        match self {
            Engine::Sqlite(connection) => sqlite::ask(connection, sql, each),
            Engine::Postgres(client) => postgres::ask(client, sql, each),
        }
    }

    /// Inserts rows, as many in a statement as parameters permit; all have the columns of the first.
    pub(crate) fn insert(&mut self, table: &str, rows: &[Row]) -> Result<(), Failure> {
        /// Parameters of a statement: SQLite permits 32 766, PostgreSQL 65 535.
        const PARAMETERS: usize = 8_000;
        let Some(first) = rows.first() else { return Ok(()) };
        let names = first.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        for part in rows.chunks((PARAMETERS / first.len().max(1)).max(1)) {
            let mut next = 0;
            let mut row = |row: &Row| {
                let places = row.iter().map(|_| {
                    next += 1;
                    format!("${next}")
                });
                format!("({})", places.collect::<Vec<_>>().join(", "))
            };
            let places: Vec<_> = part.iter().map(&mut row).collect();
            let values: Vec<Value> = part.iter().flatten().map(|(_, value)| value.clone()).collect();
            self.execute(&format!("INSERT INTO {table} ({names}) VALUES {}", places.join(", ")), &values)?;
        }
        Ok(())
    }

    /// Begins a transaction that excludes other writers of the store.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        match self {
            Engine::Sqlite(connection) => sqlite::begin(connection),
            Engine::Postgres(client) => postgres::begin(client),
        }
    }

    /// Ends the transaction.
    pub(crate) fn commit(&mut self) -> Result<(), Failure> {
        self.execute("COMMIT", &[])
    }

    /// Undoes the transaction. A lost connection has already undone it.
    pub(crate) fn roll_back(&mut self) {
        let _ = self.execute("ROLLBACK", &[]);
    }

    /// Whether a table exists.
    pub(crate) fn has_table(&mut self, name: &str) -> Result<bool, Failure> {
        let tables = match self {
            Engine::Sqlite(_) => "SELECT name FROM sqlite_master WHERE type = 'table' AND name = $1",
            Engine::Postgres(_) => {
                "SELECT tablename::text FROM pg_tables WHERE schemaname = 'punctual' AND tablename = $1"
            }
        };
        Ok(!self.query(tables, &[Value::text(name)])?.is_empty())
    }

    /// Whether there are tables, but no schema of a store among them: one statement, as another process may define it.
    pub(crate) fn is_foreign(&mut self) -> Result<bool, Failure> {
        match self {
            Engine::Sqlite(connection) => {
                let others = "SELECT 1 FROM sqlite_master WHERE NOT EXISTS \
                              (SELECT 1 FROM sqlite_master WHERE name = 'schema_version') LIMIT 1";
                Ok(!sqlite::query(connection, others, &[])?.is_empty())
            }
            // A schema of its own: other tables of the database are in others.
            Engine::Postgres(_) => Ok(false),
        }
    }

    /// A definition in the words of this engine: its types, and how rows lie in a table with a key of several columns.
    pub(crate) fn definition(&self, sql: &str) -> String {
        let words = match self {
            Engine::Sqlite(_) => [
                ("{id}", "INTEGER PRIMARY KEY"),
                ("{int}", "INTEGER"),
                ("{real}", "REAL"),
                ("{bytes}", "BLOB"),
                ("{clustered}", "STRICT, WITHOUT ROWID"),
                ("{end}", "STRICT"),
            ],
            Engine::Postgres(_) => [
                ("{id}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
                ("{int}", "BIGINT"),
                ("{real}", "DOUBLE PRECISION"),
                ("{bytes}", "BYTEA"),
                ("{clustered}", ""),
                ("{end}", ""),
            ],
        };
        words.into_iter().fold(sql.to_owned(), |sql, (word, meaning)| sql.replace(word, meaning))
    }
}
