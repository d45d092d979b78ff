//! Messages from the processes of a load to the process that started it.

use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// A message of a supervisor or a worker to the process that started the load.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LoadMessage {
    /// All of the load works.
    Works {
        /// Processes that were started.
        workers: u64,
        /// The control group that holds them, if there is one.
        cgroup: Option<PathBuf>,
    },
    /// The load could not be started, or has degraded.
    Failed {
        /// The failure.
        reason: String,
    },
}

/// The sending end for messages. Datagrams, so that those of several processes do not mix.
#[derive(Debug)]
pub(super) struct Report(UnixDatagram);

impl Report {
    /// Creates the sending end for messages, and the receiving end.
    pub(super) fn pair() -> io::Result<(Report, UnixDatagram)> {
        let (tx, rx) = UnixDatagram::pair()?;
        // A thousand workers that fail at once must not block on a full socket.
        tx.set_nonblocking(true)?;
        Ok((Report(tx), rx))
    }

    pub(super) fn send(&self, message: &LoadMessage) {
        // A closed or a full socket: there is no other way to report it.
        let _ = serde_json::to_vec(message).map(|bytes| self.0.send(&bytes));
        if matches!(message, LoadMessage::Failed { .. }) {
            punctual_sys::fail::point("load-failed");
        }
    }
}
