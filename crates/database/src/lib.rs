//! Runs of many machines and years in one database, SQLite or PostgreSQL, with one schema.
//!
//! The store holds what questions over many runs need: summaries, histograms, findings and causes of each cell, the
//! machine and its configuration. Raw records stay in the files of the run. Each run is added in one transaction.
#![forbid(unsafe_code)]

mod add;
mod contents;
mod engine;
mod error;
mod location;
mod packed;
mod schema;
mod series;
mod value;

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests;

pub use add::Added;
pub use error::DatabaseError;
pub use location::Location;
pub use series::{Buckets, Selection, StoredRun};
pub use value::{Part, Value};

use engine::{Access, Engine};
use std::fmt;
use std::ops::ControlFlow;

/// An open store.
pub struct Database {
    engine: Engine,
    at: Location,
    /// Facts of configurations, read once.
    facts: Option<series::Configurations>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store at {}", self.at)
    }
}

impl Database {
    /// Opens the store for additions; makes it if there is none, and brings its schema to that of this program. Errors:
    /// if it cannot be opened, is locked, or is of a newer program.
    pub fn open(at: &Location) -> Result<Database, DatabaseError> {
        let mut engine = Engine::open(at, Access::Write)?;
        schema::migrate(&mut engine, at, schema::MIGRATIONS)?;
        Ok(Database { engine, at: at.clone(), facts: None })
    }

    /// Opens the store for questions. Errors: if there is none, or it has another schema.
    pub fn open_to_read(at: &Location) -> Result<Database, DatabaseError> {
        let mut engine = Engine::open(at, Access::Read)?;
        schema::check(&mut engine, at)?;
        Ok(Database { engine, at: at.clone(), facts: None })
    }

    /// Answers one SQL statement, which cannot change the store: hands each part to `each` until that breaks, and keeps
    /// none. Errors: if it is not one statement, is wrong, or would change the store.
    pub fn query(&mut self, sql: &str, each: &mut dyn FnMut(Part) -> ControlFlow<()>) -> Result<(), DatabaseError> {
        use engine::Failure;
        self.engine.ask(sql, each).map_err(|failure| match failure {
            Failure::Locked => DatabaseError::Locked(self.at.to_string()),
            Failure::Other(reason) => DatabaseError::Query(reason),
        })
    }
}
