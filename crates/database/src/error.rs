//! Reasons why a store cannot be used.

use punctual_store::StoreError;
use std::io;

/// Reason why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// A name of a store that cannot be one.
    #[error("invalid store `{named}`: {reason}")]
    Location {
        /// The name, without a password.
        named: String,
        /// Reason.
        reason: String,
    },
    /// No directory for the store of this user.
    #[error("no directory for the store: HOME and XDG_DATA_HOME are not set; name a file with --store")]
    NoHome,
    /// This program cannot open it.
    #[error("{0}")]
    LeftOut(String),
    /// No store there.
    #[error("no store at {0}: `punctual store add RUN` makes it; name another with --store")]
    None(String),
    /// The file or directory cannot be used.
    #[error("cannot {action} {at}: {source}")]
    Io {
        /// The failed operation.
        action: &'static str,
        /// The path.
        at: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The server or file cannot be opened.
    #[error("cannot open {at}: {reason}")]
    Open {
        /// The store.
        at: String,
        /// Reason.
        reason: String,
    },
    /// A database of something else.
    #[error("{0} is a database without a store of punctual; name another file or database")]
    Foreign(String),
    /// A schema of a later version of this program.
    #[error("unsupported: {at} has schema {version}, newer than this program ({known}); use a newer punctual")]
    Newer {
        /// The store.
        at: String,
        /// Its schema.
        version: i64,
        /// The newest known schema.
        known: usize,
    },
    /// Another process writes for too long.
    #[error("{0} is locked by another process; repeat the command when it has ended")]
    Locked(String),
    /// Nothing was written.
    #[error("cannot write {at}: {reason}; each run is in the store whole or not at all, repeat the command")]
    Write {
        /// The store.
        at: String,
        /// Reason.
        reason: String,
    },
    /// A question that the store cannot answer.
    #[error("cannot read {at}: {reason}")]
    Read {
        /// The store.
        at: String,
        /// Reason.
        reason: String,
    },
    /// A statement of the user.
    #[error("cannot run this query: {0}")]
    Query(String),
    /// The run.
    #[error(transparent)]
    Run(#[from] StoreError),
    /// A run that says nothing about a series.
    #[error("cannot add {run}: {reason}")]
    Unsuited {
        /// The run.
        run: String,
        /// Reason.
        reason: String,
    },
}
