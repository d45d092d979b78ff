//! Tracing by ftrace: a private instance, raw reads of the ring buffer, and exports. The crate `ftrace` decodes.
//!
//! The only module that writes below tracefs, apart from `punctual_host::tracer` in guests, and only below directories
//! that it has created there, and `uprobe_events`.

mod events;
mod export;
mod instance;
mod probes;
#[cfg(test)]
mod rate;
mod source;

pub(crate) use events::EventSet;
pub(crate) use export::Export;
pub(crate) use instance::StackRequest;
pub use instance::{Instance, TraceRequest};
pub(crate) use source::PageSource;
#[cfg(test)]
pub(crate) use source::Recorded;

use std::io;
use std::path::PathBuf;

/// The reason that there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is no tracefs, or no right to use it.
    #[error("cannot explain: {0}")]
    Denied(#[from] punctual_host::NoTracing),
    /// A file of tracefs cannot be used.
    #[error("cannot explain: {path}: {source}{advice}")]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
        /// Advice for the user, with its own separator.
        advice: &'static str,
    },
    /// The kernel cannot trace programs.
    #[error("unsupported: marks in programs, which need uprobe_events (CONFIG_UPROBE_EVENTS); leave them out")]
    NoProbes,
    /// The kernel cannot pass texts of the program to this trace.
    #[error(
        "unsupported: marks by trace_marker, which need Linux 6.16 (options/copy_trace_marker); use function: or usdt:, or \
         record a trace and judge it (--from)"
    )]
    NoMarkers,
    /// A perf timer on a measured CPU is not available.
    #[error("cannot start the witness: {0}; leave --witness out, or run as root (perf_event_open(2))")]
    Witness(io::Error),
    /// This process cannot get a resource that it needs.
    #[error("cannot explain: {0}")]
    Process(io::Error),
    /// A file has unexpected content.
    #[error("cannot explain: {path}: {what}; please report this, with the file")]
    Content {
        /// The file.
        path: PathBuf,
        /// The defect of the content.
        what: String,
    },
}

impl TraceError {
    /// The error for a file that cannot be used, with advice where some is known.
    fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> TraceError {
        let path = path.into();
        move |source| {
            let advice = match source.raw_os_error() {
                Some(libc::EACCES) => "; run as root",
                Some(libc::EPERM) => "; run as root, on a kernel whose lockdown allows tracing (not `confidentiality`)",
                Some(libc::ENOMEM) => "; too little memory for the trace",
                _ => "",
            };
            TraceError::File { path, source, advice }
        }
    }
}
