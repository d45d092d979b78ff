//! Tracing by ftrace: a private instance, the kernel's ring buffer read raw, and its events for `analysis::explain`.
//!
//! The only module that writes below tracefs, with `host::tracer` in guests, and only below directories that it has made itself there.

mod dat;
mod decode;
mod events;
mod export;
mod format;
#[cfg(test)]
mod fuzz;
mod instance;
mod pages;
#[cfg(test)]
mod rate;

pub use decode::Decoder;
pub use export::Export;
pub use instance::{Instance, Watched};

use std::io;
use std::path::PathBuf;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// tracefs is not mounted, or cannot be seen.
    #[error("cannot explain: tracefs is not mounted; as root: mount -t tracefs nodev /sys/kernel/tracing")]
    NotMounted,
    /// tracefs is mounted, and another user's.
    #[error("cannot explain: tracefs is not readable for this user; run as root")]
    Forbidden,
    /// A file of it cannot be used.
    #[error("cannot explain: {path}: {source}{advice}")]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
        /// What to do, with its own separator.
        advice: &'static str,
    },
    /// No timer can tick on a measured CPU.
    #[error("cannot have a witness: {0}; leave --witness out, or run as root (perf_event_open(2))")]
    Witness(io::Error),
    /// This process cannot have what it takes.
    #[error("cannot explain: {0}")]
    Process(io::Error),
    /// A file holds something else than expected.
    #[error("cannot explain: {path}: {what}; please report this, with the file")]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl TraceError {
    /// A file that cannot be used, with what is known to help.
    fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> TraceError {
        let path = path.into();
        move |source| {
            let advice = match source.raw_os_error() {
                Some(libc::EACCES) => "; run as root",
                Some(libc::EPERM) => "; run as root, on a kernel whose lockdown allows tracing (not `confidentiality`)",
                Some(libc::ENOMEM) => "; there is too little memory for the trace",
                _ => "",
            };
            TraceError::File { path, source, advice }
        }
    }
}
