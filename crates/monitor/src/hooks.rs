//! The sides of a monitor that its caller sees: what it is to do for it, and its errors.

use crate::session::SessionError;
use punctual_model::{MonitorStatus, MonitorWindow};
use punctual_store::StoreError;
use std::time::Instant;

/// The reason why a monitor did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// Another measurement, or another monitor.
    #[error("{0}")]
    Lock(String),
    /// The history cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A thread could not be set up, or could not measure any more.
    #[error("{0}")]
    Session(String),
    /// A setting of this process.
    #[error("cannot {0}: {1}")]
    Setting(&'static str, std::io::Error),
    /// The text file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Textfile {
        /// The file.
        path: std::path::PathBuf,
        /// The kernel's reason.
        source: std::io::Error,
    },
}

impl From<SessionError> for MonitorError {
    fn from(err: SessionError) -> Self {
        MonitorError::Session(err.to_string())
    }
}

/// What the command line does for a monitor.
pub struct Hooks<'a> {
    /// Waits until the instant; returns whether a stop was requested.
    pub wait: &'a dyn Fn(Instant) -> bool,
    /// Writes a line for the user.
    pub note: &'a dyn Fn(&str),
    /// Shows a window that has ended.
    pub window: &'a dyn Fn(&MonitorWindow),
    /// The metrics as text.
    pub metrics: fn(&MonitorStatus) -> String,
}

impl std::fmt::Debug for Hooks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooks")
    }
}
