//! The resources of a part of a load, known before any of it is started.

use super::messaging::Gate;
use super::programs::InstalledProgram;
use super::workers::Workers;
use super::{cpu, files, kernel, messaging, programs};
use crate::cost::{self, Times};
use punctual_model::{FileLoad, KernelLoad, LoadPart};
use punctual_sys::storage;
use std::path::{Path, PathBuf};

/// Directory for temporary files on a disk; /tmp may be memory only (file-hierarchy(7)).
const DISK_DIRECTORY: &str = "/var/tmp";
/// A load takes at most one part in this many of the free memory.
const PART_OF_MEMORY: u64 = 2;
/// A load takes at most one part in this many of the free disk space.
const PART_OF_DISK: u64 = 10;

/// A part of a load, ready to be started.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) part: LoadPart,
    /// The name of one operation, in the singular.
    pub(super) operation: &'static str,
    /// Processes that are started for it.
    pub(super) workers: usize,
    /// Those of them that count their operations.
    pub(super) counters: usize,
    /// Whether the processes fork others, whose CPU time is not their own.
    pub(super) forks: bool,
    /// Memory that it fills, bytes.
    memory_bytes: u64,
    /// Bytes on disk that it fills at most at any instant.
    disk_bytes: u64,
    /// Parent of its private directory; `None` when it keeps no files.
    pub(super) directory: Option<PathBuf>,
    /// The outside program, as found.
    pub(super) program: Option<InstalledProgram>,
    /// Times of the operations of the cost suite; `None` for every other load.
    pub(super) times: Option<Times>,
}

impl Job {
    /// Creates the job for `part` on `n_cpus` CPUs. Errors: one line of text: a missing program, or too little space.
    pub(super) fn of(part: &LoadPart, n_cpus: usize) -> Result<Job, String> {
        let mut job = Job {
            part: part.clone(),
            operation: "round",
            workers: n_cpus,
            counters: n_cpus,
            forks: false,
            memory_bytes: 0,
            disk_bytes: 0,
            directory: None,
            program: None,
            times: None,
        };
        match part {
            LoadPart::Cpu { .. } => {}
            LoadPart::Messaging { groups } => {
                job.counters = messaging::n_receivers(*groups, n_cpus);
                (job.operation, job.workers) = ("message", 2 * job.counters);
            }
            LoadPart::Kernel(what) => {
                job.operation = kernel::operation(*what);
                job.workers = n_cpus * kernel::workers_of_each(*what);
                job.forks = matches!(what, KernelLoad::Fork | KernelLoad::Exec);
                job.memory_bytes = kernel::memory_bytes(*what) * n_cpus as u64;
            }
            LoadPart::Files { work, directory } => {
                let is_suite = *work == FileLoad::Cost;
                (job.operation, job.forks) = (if is_suite { "batch" } else { "file" }, is_suite);
                job.disk_bytes = if *work == FileLoad::Files { 0 } else { files::FILE_BYTES * n_cpus as u64 };
                if is_suite {
                    let failed = |err| format!("cannot allocate shared memory: {err}");
                    job.times = Some(Times::new(n_cpus).map_err(failed)?);
                }
                job.memory_bytes = if is_suite { cost::MEMORY_BYTES * n_cpus as u64 } else { 0 };
                job.directory = Some(PathBuf::from(directory.as_deref().unwrap_or(DISK_DIRECTORY)));
            }
            LoadPart::Program(program) => {
                (job.operation, job.workers, job.counters, job.forks) = ("run", 1, 1, true);
                job.directory = programs::has_directory(program.tool).then(|| PathBuf::from(DISK_DIRECTORY));
                job.program = Some(programs::find(program)?);
            }
        }
        job.check_room()?;
        Ok(job)
    }

    /// Forks all workers. Some may wait behind the gate, which is opened when all others work.
    pub(super) fn start(&self, workers: &mut Workers<'_>) -> Result<Option<Gate>, String> {
        match &self.part {
            LoadPart::Cpu { percent } => cpu::start(workers, *percent),
            LoadPart::Messaging { .. } => return messaging::start(workers, self.counters).map(Some),
            LoadPart::Kernel(what) => kernel::start(workers, *what, self.counters),
            LoadPart::Files { work, .. } => files::start(workers, *work, self.counters, self.times.as_ref()),
            LoadPart::Program(_) => self.program.as_ref().map_or(Ok(()), |program| programs::start(workers, program)),
        }
        .map(|()| None)
    }

    fn check_room(&self) -> Result<(), String> {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        if let Some(free) =
            punctual_host::memory_available_bytes().filter(|free| self.memory_bytes > free / PART_OF_MEMORY)
        {
            let (need, free) = (mib(self.memory_bytes), free >> 20);
            return Err(format!("needs {need} MiB, more than half of the {free} MiB free; use fewer CPUs"));
        }
        let Some(directory) = &self.directory else { return Ok(()) };
        let free = room_in(directory)?;
        if self.disk_bytes > free / PART_OF_DISK {
            let (need, free, directory) = (mib(self.disk_bytes), free >> 20, directory.display());
            return Err(format!(
                "needs {need} MiB, more than a tenth of the {free} MiB free in {directory}; name another directory"
            ));
        }
        Ok(())
    }
}

fn room_in(directory: &Path) -> Result<u64, String> {
    storage::free_bytes(directory).map_err(|err| format!("{}: {err}; name another directory", directory.display()))
}
