//! Messages from the processes of a load to the process that started it.

use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// What a keeper, or a worker, says to whoever started the load.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LoadMessage {
    /// All of it works.
    Works {
        /// Processes that were started.
        workers: u64,
        /// The control group that holds them, if there is one.
        cgroup: Option<PathBuf>,
    },
    /// It could not be started, or is less than it was.
    Failed {
        /// What happened.
        reason: String,
    },
}

/// Where messages go. Datagrams, so that those of several processes do not mix.
#[derive(Debug)]
pub(super) struct Report(UnixDatagram);

impl Report {
    /// A way for messages, and its other end.
    pub(super) fn pair() -> io::Result<(Report, UnixDatagram)> {
        let (mouth, ear) = UnixDatagram::pair()?;
        // A thousand workers that fail at once must not wait for somebody to listen.
        mouth.set_nonblocking(true)?;
        Ok((Report(mouth), ear))
    }

    pub(super) fn send(&self, message: &LoadMessage) {
        // Nobody listening, or too many having told already: there is nothing that could be done about it.
        let _ = serde_json::to_vec(message).map(|bytes| self.0.send(&bytes));
    }
}
