//! The cost suite: costs of the kernel's operations, each repeated many times by processes on one CPU.
//!
//! `punctual_model::COST_OPERATIONS` describes the operations. [`make`] prepares one, [`Suite`] runs all of them in a
//! process, batch by batch.

mod calls;
mod file;
mod ipc;
mod memory;
mod net;
mod operation;
mod process;
mod ring;
mod suite;
mod times;
mod worker;

use operation::{Batch, NotReady, Operation, ReadyOperation, open_device, unknown};
pub use process::is_nothing;
use punctual_model::{CostGroup, CostOperation, CostScope, Usage};
use punctual_sys::{sched, storage, usage};
use std::ffi::CString;
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
pub use suite::{CostError, Suite, SuiteEvent};
pub(crate) use times::{Recorder, Times};
pub use worker::SuiteRequest;

/// Reason of an operation whose turn did not come before the end of the measurement.
pub const NOT_REACHED: &str = "the measurement ended before its turn";

/// Prepares an operation; its files are in `directory`.
fn make(operation: &CostOperation, directory: &Directory) -> Result<ReadyOperation, NotReady> {
    let name = operation.name.split_once('/').map_or(operation.name, |(_, name)| name);
    let ready = match operation.group {
        CostGroup::Syscall | CostGroup::Signal => calls::make(operation.name, directory),
        CostGroup::Process => process::make(name),
        CostGroup::Switch => ring::switches(name),
        CostGroup::Ipc => ipc::make(name),
        CostGroup::Net => net::make(name),
        CostGroup::Memory => memory::make(name),
        CostGroup::File => file::make(name, directory),
        CostGroup::Sched => ring::scheduler(name),
    };
    ready.map_err(|err| match err {
        NotReady::Failed(err) => worded(err),
        missing @ NotReady::Missing(_) => missing,
    })
}

/// An error in words, with advice.
fn worded(err: io::Error) -> NotReady {
    match err.raw_os_error() {
        Some(libc::ENOSYS | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::EOPNOTSUPP) => {
            NotReady::Missing(format!("unsupported by this kernel ({err})"))
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            NotReady::Failed(io::Error::other(format!("{err}; raise `ulimit -n` to {OPEN_FILES}")))
        }
        Some(libc::EAGAIN) => NotReady::Failed(io::Error::other(format!("{err}; raise `ulimit -u`"))),
        _ => NotReady::Failed(err),
    }
}

/// Open files that the largest operations need, with reserve for the process itself.
const OPEN_FILES: u64 = 256;

/// Memory that the largest operation fills, bytes.
pub(crate) const MEMORY_BYTES: u64 = 32 << 20;

/// Bytes that the suite's files need at most.
const FILE_BYTES: u64 = 4 << 20;

/// A private directory of the suite, removed with its content.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

/// Directory for temporary files on a disk (file-hierarchy(7)).
const PARENT: &str = "/var/tmp";

impl Directory {
    /// Creates a directory where there is enough space. Errors: one line of text: the missing resource, and advice.
    fn new() -> Result<Directory, String> {
        let parent = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from(PARENT), PathBuf::from);
        let shown = parent.display();
        let failed = |err: io::Error| format!("cannot create a directory in {shown}: {err}; name another in TMPDIR");
        let free = storage::free_bytes(&parent).map_err(failed)?;
        if free < FILE_BYTES {
            let (need, free) = (FILE_BYTES >> 20, free >> 20);
            return Err(format!("{shown} has {free} MiB free, files need {need} MiB; name another in TMPDIR"));
        }
        let path = parent.join(punctual_host::named("punctual-cost", std::process::id()));
        std::fs::create_dir(&path).map_err(failed)?;
        let directory = Directory(path);
        punctual_sys::fail::point("suite-directory-made");
        file::fill(&directory).map_err(failed)?;
        Ok(directory)
    }

    /// The path of a file in the directory, as system calls take it.
    fn name(&self, file: &str) -> io::Result<CString> {
        Ok(CString::new(self.0.join(file).as_os_str().as_bytes())?)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs all operations forever, a few of each in turn, with their times, and calls `count` with the number of them: a
/// load, whose files are in `path`. Operations that this machine lacks are skipped. Errors: when an operation fails,
/// which the error names.
pub(crate) fn for_ever(path: &Path, count: &dyn Fn(u64), recorder: &mut Recorder<'_>) -> io::Result<()> {
    // The owner of the directory removes it.
    let directory = ManuallyDrop::new(Directory(path.to_owned()));
    let failed = |err: io::Error| io::Error::other(format!("in {}: {err}; name another directory", path.display()));
    std::fs::create_dir(path).and_then(|()| file::fill(&directory)).map_err(failed)?;
    worker::for_ever(&directory, count, recorder)
}

/// Runs the one operation of `scope` `n` times, on one CPU; returns the usage of this process for that. Errors: when
/// `scope` is several operations, `n` is not a number of whole batches, or the operation fails.
pub fn carry_out(scope: CostScope, n: u64) -> Result<Usage, String> {
    let (Some(operation), 1) = (scope.operations().next(), scope.operations().count()) else {
        return Err(format!("invalid operation `{scope}`: expected one operation, like syscall/read"));
    };
    let failed = |err: io::Error| format!("{}: {err}", operation.name);
    let cpus = sched::affinity(0).map_err(failed)?;
    sched::set_affinity(0, &cpus.iter().last().into_iter().collect()).map_err(failed)?;
    let directory = Directory::new()?;
    let mut ready = make(operation, &directory).map_err(|err| format!("{}: {err}", operation.name))?;
    let (Batch::Of(batch) | Batch::Exactly(batch)) = ready.batch;
    if !n.is_multiple_of(batch) {
        return Err(format!("invalid number {n}: expected a multiple of {batch}, the batch of {}", operation.name));
    }
    let before = usage::thread().map_err(failed)?;
    let at_a_time = if ready.batch == Batch::Exactly(batch) { batch } else { n };
    for _ in 0..n / at_a_time.max(1) {
        ready.operation.prepare(at_a_time).map_err(failed)?;
        ready.operation.run(at_a_time).map_err(failed)?;
    }
    Ok(usage::since(&before, &usage::thread().map_err(failed)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_sys::clock;
    use std::fs::OpenOptions;

    #[test]
    fn memory_is_moved_and_not_optimized_away() {
        for name in ["copy", "read", "write"] {
            let mut ready = memory::make(name).unwrap_or_else(|err| panic!("{name}: {err}"));
            let began = clock::monotonic();
            ready.operation.run(16).unwrap();
            let took_ns = clock::monotonic().0 - began.0;
            // 16 MiB: no processor moves a terabyte in a second.
            assert!(took_ns > 16_000, "{name}: 16 blocks in {took_ns} ns");
        }
    }

    #[test]
    fn errors_say_what_to_do_and_what_is_missing_is_no_error() {
        let of = |errno| worded(io::Error::from_raw_os_error(errno));
        assert!(matches!(of(libc::ENOSYS), NotReady::Missing(why) if why.starts_with("unsupported by this kernel")));
        assert!(of(libc::EMFILE).to_string().ends_with("raise `ulimit -n` to 256"));
        assert!(of(libc::EAGAIN).to_string().ends_with("raise `ulimit -u`"));
    }

    #[test]
    fn an_absent_device_is_missing_and_one_that_cannot_be_opened_is_a_failure() {
        let open = |path: &str| open_device(OpenOptions::new().write(true), path).map(drop);
        assert!(open("/dev/null").is_ok());
        assert!(matches!(open("/dev/no-such"), Err(NotReady::Missing(why)) if why == "no /dev/no-such"));
        let failed = open("/dev").unwrap_err();
        assert!(matches!(&failed, NotReady::Failed(_)) && failed.to_string().starts_with("/dev: "), "{failed}");
    }
}
