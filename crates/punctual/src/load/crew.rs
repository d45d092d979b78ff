//! The processes of one load: forked together, counted together, killed together.

use model::Load;
use rt::sys::memory::SharedCounters;
use rt::sys::process::{self, Child};
use std::io::{self, Write};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long all workers may take to begin, and to be gone.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(1);

/// Why a load does not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// A worker could not be started.
    #[error(
        "load {load}: cannot start process {worker} of {workers}: {source}; raise `ulimit -u` or `ulimit -n`, or ask for less, like messaging:groups=1"
    )]
    Start {
        /// The load as typed.
        load: String,
        /// Which worker, from 1.
        worker: usize,
        /// How many there were to be.
        workers: usize,
        /// The kernel's reason.
        source: io::Error,
    },
    /// There is no memory for the counters.
    #[error("load {load}: no shared memory: {source}")]
    Memory {
        /// The load as typed.
        load: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Not every worker began to work.
    #[error(
        "load {load}: {idle} of {workers} workers had done nothing after 10 s; ask for less, like messaging:groups=1"
    )]
    Idle {
        /// The load as typed.
        load: String,
        /// Workers that did nothing.
        idle: usize,
        /// Workers whose work is counted.
        workers: usize,
    },
    /// A worker ended although nobody stopped it.
    #[error("load {load}: process {pid} ended while measuring; the cell was not under its load and is not recorded")]
    Died {
        /// The load as typed.
        load: String,
        /// The process that ended.
        pid: u32,
    },
    /// Workers do nothing while time passes, or while the others work on.
    #[error("load {load}: {idle} of {workers} workers stalled; the cell was not under its load and is not recorded")]
    Stalled {
        /// The load as typed.
        load: String,
        /// Workers that did nothing.
        idle: usize,
        /// Workers whose work is counted.
        workers: usize,
    },
}

/// The workers of one load. Dropping it kills them and waits until every one is gone.
#[derive(Debug)]
pub(crate) struct Crew {
    load: String,
    /// What one operation is, in the singular.
    pub(crate) operation: &'static str,
    /// One counter of operations for each worker that counts.
    counters: SharedCounters,
    /// Their process group: the id of the first worker.
    group: Option<u32>,
    started: usize,
    workers: usize,
}

impl Crew {
    /// A crew without workers yet; `workers` are planned, `n_counters` of them will count their operations.
    pub(crate) fn new(
        load: &Load,
        operation: &'static str,
        workers: usize,
        n_counters: usize,
    ) -> Result<Crew, LoadError> {
        let load = load.to_string();
        let counters =
            SharedCounters::new(n_counters).map_err(|source| LoadError::Memory { load: load.clone(), source })?;
        Ok(Crew { load, operation, counters, group: None, started: 0, workers })
    }

    /// Forks a worker. `work` gets the counter with index `counter`, if it counts, and never returns in earnest.
    pub(crate) fn hire(
        &mut self,
        counter: Option<usize>,
        work: impl FnOnce(Option<&AtomicU64>) -> io::Result<()>,
    ) -> Result<(), LoadError> {
        let count = counter.and_then(|index| self.counters.get(index));
        let forked = process::fork_worker(self.group, || i32::from(work(count).is_err()));
        let pid = forked.map_err(|source| self.start_error(source))?;
        self.group = self.group.or(Some(pid));
        self.started += 1;
        Ok(())
    }

    /// The error for a worker that could not be prepared or forked.
    pub(crate) fn start_error(&self, source: io::Error) -> LoadError {
        LoadError::Start { load: self.load.clone(), worker: self.started + 1, workers: self.workers, source }
    }

    /// Waits until every counting worker has done something.
    pub(crate) fn wait_until_all_work(&self) -> Result<(), LoadError> {
        let until = Instant::now() + PATIENCE;
        loop {
            self.check_alive()?;
            let idle = self.counters.iter().filter(|count| count.load(Relaxed) == 0).count();
            if idle == 0 {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(LoadError::Idle { load: self.load.clone(), idle, workers: self.counters.iter().count() });
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// How many processes do the work.
    pub(crate) fn n_workers(&self) -> usize {
        self.started
    }

    /// Operations of each counting worker since it began.
    pub(crate) fn operations(&self) -> Vec<u64> {
        self.counters.iter().map(|count| count.load(Relaxed)).collect()
    }

    /// The error for `idle` workers that do nothing.
    pub(crate) fn stalled(&self, idle: usize) -> LoadError {
        LoadError::Stalled { load: self.load.clone(), idle, workers: self.counters.iter().count() }
    }

    /// Whether every worker still runs.
    ///
    /// # Errors
    /// When one has ended: a load that is less than it says is no load.
    pub(crate) fn check_alive(&self) -> Result<(), LoadError> {
        match self.group.map(process::reap) {
            Some(Ok(Child::Ended(pid))) => Err(LoadError::Died { load: self.load.clone(), pid }),
            _ => Ok(()),
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let Some(group) = self.group else { return };
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            // Each round, so that a process forked while the signal was under way is met by the next one.
            let _ = process::signal_group(group, libc::SIGKILL);
            match process::reap(group) {
                Ok(Child::Ended(_)) => {}
                Ok(Child::Running) => std::thread::sleep(GLANCE),
                Ok(Child::None) | Err(_) => return,
            }
        }
        let advice = format_args!("process group {group} does not end; look at it with: ps -g {group}");
        let _ = writeln!(io::stderr(), "punctual: load {}: {advice}", self.load);
    }
}
