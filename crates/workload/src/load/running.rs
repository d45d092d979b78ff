//! A running part of a load, as seen by the process that started it.

use super::idle_timeout::{IdleTimeout, POLL_INTERVAL};
use super::job::Job;
use super::report::{LoadMessage, Report};
use super::supervisor;
use super::{LoadError, Place};
use crate::cost::Times;
use punctual_model::{CostRecord, CpuSet, LoadPart, LoadRecord, Policy, ProgramRecord, Span, plain};
use punctual_sys::memory::SharedCounters;
use punctual_sys::process::{self, Child};
use punctual_sys::usage;
use punctual_sys::waited::Waited;
use std::cell::OnceCell;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Timeout of a start, since the last worker that was started or did its first operation; beyond that of the workers.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout until a supervisor has ended.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest message, bytes.
const MESSAGE_BYTES: usize = 8192;

/// A running part. Dropping it stops it, and waits until nothing of it is left.
#[derive(Debug)]
pub struct Running {
    part: String,
    /// The name of one operation, in the singular.
    operation: &'static str,
    supervisor: u32,
    /// The exit status of the supervisor, once known.
    ended: OnceCell<ExitStatus>,
    /// Parent of the supervisor's directory.
    directory: Option<PathBuf>,
    report_rx: UnixDatagram,
    /// Operations of each worker that counts.
    counters: SharedCounters,
    /// The process ID of each worker.
    pids: SharedCounters,
    workers: u64,
    cgroup: Option<PathBuf>,
    program: Option<ProgramRecord>,
    /// Whether the workers' own CPU time is not all.
    forks: bool,
    starting: Span,
    cpus: CpuSet,
    policy: Policy,
    /// Times of the operations of the cost suite; `None` for every other load.
    times: Option<Times>,
}

impl Running {
    /// Starts `part` and waits until all of it works. Errors: when it cannot be started or does not begin to work; what
    /// was started is stopped again.
    pub(super) fn start(part: &LoadPart, place: &Place<'_>) -> Result<Running, LoadError> {
        let failed = |reason: String| LoadError { load: part.to_string(), reason };
        let job = Job::of(part, place.cpus.len()).map_err(failed)?;
        let began = Instant::now();
        let memory =
            |len| SharedCounters::new(len).map_err(|err| failed(format!("cannot allocate shared memory: {err}")));
        let (counters, pids) = (memory(job.counters)?, memory(job.workers)?);
        let (report, report_rx) = Report::pair().map_err(|err| failed(format!("cannot create a socket: {err}")))?;
        let supervise = || supervisor::supervise(&job, place, (&counters, &pids), &report).unwrap_or(1);
        let supervisor = process::fork_tied(None, libc::SIGTERM, supervise).map_err(|err| {
            let advice = if err.kind() == io::ErrorKind::WouldBlock { "; raise `ulimit -u`" } else { "" };
            failed(format!("cannot start a process: {err}{advice}"))
        })?;
        let mut running = Running {
            part: part.to_string(),
            operation: job.operation,
            supervisor,
            ended: OnceCell::new(),
            directory: job.directory,
            report_rx,
            counters,
            pids,
            workers: 0,
            cgroup: None,
            program: job.program.map(|program| program.record),
            forks: job.forks,
            starting: Span(0),
            cpus: place.cpus.clone(),
            policy: place.policy,
            times: job.times,
        };
        punctual_sys::fail::point("supervisor-forked");
        running.wait_until_it_works(began)?;
        Ok(running)
    }

    fn wait_until_it_works(&mut self, began: Instant) -> Result<(), LoadError> {
        let lost = |err: io::Error| LoadError {
            load: self.part.clone(),
            reason: format!("cannot read from its supervisor: {err}"),
        };
        self.report_rx.set_read_timeout(Some(POLL_INTERVAL)).map_err(lost)?;
        let mut timeout = IdleTimeout::new(READY_TIMEOUT);
        while !timeout.is_over(self.n_begun()) {
            match self.receive() {
                Some(LoadMessage::Works { workers, cgroup }) => {
                    (self.workers, self.cgroup) = (workers, cgroup);
                    self.starting = Span(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
                    return self.report_rx.set_nonblocking(true).map_err(lost);
                }
                Some(LoadMessage::Failed { reason }) => return Err(self.error(reason)),
                None if self.has_supervisor_exited() => return Err(self.error("its supervisor exited".to_owned())),
                None => {}
            }
        }
        if punctual_host::is_stopped(self.supervisor) {
            return Err(self.error(format!("its supervisor (process {}) was stopped", self.supervisor)));
        }
        let seconds = READY_TIMEOUT.as_secs();
        Err(self.error(format!(
            "timeout: not started, and nothing began for {seconds} s; reduce the load, like messaging:groups=1"
        )))
    }

    /// The number of workers that were started, and of those that have done an operation.
    fn n_begun(&self) -> usize {
        self.pids.iter().chain(self.counters.iter()).filter(|number| number.load(Relaxed) != 0).count()
    }

    /// The next message, if there is one.
    fn receive(&self) -> Option<LoadMessage> {
        let mut bytes = [0; MESSAGE_BYTES];
        let length = self.report_rx.recv(&mut bytes).ok()?;
        serde_json::from_slice(bytes.get(..length)?).ok()
    }

    fn has_supervisor_exited(&self) -> bool {
        // Its ID may be that of another process by now.
        if self.ended.get().is_some() {
            return true;
        }
        match process::reap(Some(self.supervisor)) {
            Ok(Child::Running) => false,
            Ok(Child::Ended(_, status)) => self.ended.set(status).is_ok(),
            Ok(Child::None) | Err(_) => true,
        }
    }

    /// A failure that has degraded the load, if any. Each failure is reported only once.
    pub fn failure(&self) -> Option<String> {
        match self.receive() {
            Some(LoadMessage::Failed { reason }) => Some(reason),
            _ => self.has_supervisor_exited().then(|| format!("its supervisor (process {}) exited", self.supervisor)),
        }
    }

    /// The error for a load that has degraded.
    pub fn error(&self, reason: String) -> LoadError {
        LoadError { load: self.part.clone(), reason }
    }

    /// Whether its operations prove that it works: those of a program do not.
    pub(crate) fn counts_its_work(&self) -> bool {
        self.program.is_none()
    }

    /// Operations of each counting worker since it began.
    pub(crate) fn operations(&self) -> Vec<u64> {
        self.counters.iter().map(|count| count.load(Relaxed)).collect()
    }

    /// CPU time used since the start, us; `None` when it cannot be known, which is the case for forking processes
    /// without a control group.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        if let Some(cgroup) = &self.cgroup {
            return punctual_host::cpu_us_of_group(cgroup);
        }
        let pids = self.pids.iter().filter(|_| !self.forks).map(|pid| u32::try_from(pid.load(Relaxed)).unwrap_or(0));
        let times = pids.map(|pid| usage::cpu_time_of(pid).ok().map(|time| time.ns() / 1000));
        times.sum::<Option<u64>>().filter(|_| !self.forks)
    }

    /// Begins the window in which the costs of its operations are recorded.
    pub(crate) fn begin_costs(&self) {
        self.times.iter().for_each(Times::begin_window);
    }

    /// Costs of its operations in the window so far; `None` for every load but `cost`.
    pub(crate) fn costs(&self) -> Option<CostRecord> {
        self.times.as_ref().map(|times| times.record(self.policy, &self.cpus))
    }

    /// Its record, without readings.
    pub(crate) fn record(&self) -> LoadRecord {
        LoadRecord {
            load: self.part.clone(),
            operation: self.operation.to_owned(),
            workers: self.workers,
            program: self.program.clone(),
            starting: Some(self.starting),
            ..LoadRecord::default()
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut waited = Waited::begin();
        if !self.has_supervisor_exited() {
            let _ = process::signal(self.supervisor, libc::SIGTERM);
            // A worker may have stopped it: it handles the signal once it continues.
            let _ = process::signal(self.supervisor, libc::SIGCONT);
        }
        while !self.has_supervisor_exited() {
            if waited.look() > STOP_TIMEOUT {
                let _ = process::signal(self.supervisor, libc::SIGKILL);
                let advice = format_args!("timeout: not stopped after {} s; killed", STOP_TIMEOUT.as_secs());
                let _ = writeln!(io::stderr(), "punctual: load {}: {advice}", plain(&self.part.to_string()));
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        while !self.has_supervisor_exited() && waited.look() < 2 * STOP_TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
        }
        // A supervisor that was killed by a signal has not cleaned up.
        if self.ended.get().is_some_and(|status| status.signal().is_some()) {
            let first = self.pids.get(0).and_then(|pid| u32::try_from(pid.load(Relaxed)).ok()).filter(|pid| *pid != 0);
            supervisor::clean_up_after(self.supervisor, first, self.directory.as_deref());
        }
    }
}
