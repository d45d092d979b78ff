//! An operation that is ready to run, or the reason that it is not.

use std::fs::{File, OpenOptions};
use std::io;

/// An operation that is ready to run.
pub(super) trait Operation {
    /// Prepares a batch of `n`, outside the measured time.
    fn prepare(&mut self, n: u64) -> io::Result<()> {
        let _ = n;
        Ok(())
    }

    /// Runs `n` operations.
    fn run(&mut self, n: u64) -> io::Result<()>;
}

/// An operation, and the size of its batches.
pub(super) struct ReadyOperation {
    pub(super) operation: Box<dyn Operation>,
    pub(super) batch: Batch,
}

/// Size of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batch {
    /// This number times a power of two that suits the clock.
    Of(u64),
    /// Always this number: the cost of an operation depends on it.
    Exactly(u64),
}

/// The reason that an operation is not ready.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    /// The machine, or its kernel, lacks a feature.
    #[error("{0}")]
    Missing(String),
    /// Another failure.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

/// An operation that is a loop of single calls.
struct Each<F>(F);

impl<F: FnMut() -> io::Result<()>> Operation for Each<F> {
    fn run(&mut self, n: u64) -> io::Result<()> {
        for _ in 0..n {
            (self.0)()?;
        }
        Ok(())
    }
}

impl ReadyOperation {
    /// Creates an operation of single calls, in batches that suit the clock.
    pub(super) fn each(call: impl FnMut() -> io::Result<()> + 'static) -> ReadyOperation {
        ReadyOperation { operation: Box::new(Each(call)), batch: Batch::Of(1) }
    }
}

/// Opens a device, or says that it is missing.
pub(super) fn open_device(options: &OpenOptions, path: &str) -> Result<File, NotReady> {
    options.open(path).map_err(|err| match err.raw_os_error() {
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => NotReady::Missing(format!("no {path}")),
        _ => NotReady::Failed(io::Error::other(format!("{path}: {err}"))),
    })
}

/// The error for a name in the table without an implementation: a defect, which a test finds.
pub(super) fn unknown(name: &str) -> NotReady {
    NotReady::Failed(io::Error::other(format!("unknown operation {name}")))
}
