//! The processes of one part of a load: forked, counted and killed together.

use super::Place;
use super::idle_timeout::{IdleTimeout, POLL_INTERVAL};
use super::report::{LoadMessage, Report};
use punctual_host::Cgroup;
use punctual_model::CpuSet;
use punctual_sys::memory::SharedCounters;
use punctual_sys::process::{self, Child};
use punctual_sys::waited::Waited;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Timeout of a start, since the last worker that did its first operation.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout until all killed workers are gone.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between SIGTERM and SIGKILL, for a program to tidy up.
const KILL_GRACE: Duration = Duration::from_millis(250);

/// The workers. Dropping it kills them, with all their descendants, and waits until all are gone.
pub(super) struct Workers<'a> {
    place: &'a Place<'a>,
    report: &'a Report,
    /// One counter of operations for each worker that counts.
    counters: &'a SharedCounters,
    /// The process ID of each worker.
    pids: &'a SharedCounters,
    /// Control group of all workers, where the system allows it.
    cgroup: Option<Cgroup>,
    /// A directory for their files, if they have any.
    pub(super) directory: Option<&'a Path>,
    /// Their PGID: the PID of the first worker.
    group: Option<u32>,
    started: usize,
    /// The number of workers to start in all.
    planned: usize,
}

impl<'a> Workers<'a> {
    /// Creates a process group of `planned` workers, none of which is forked yet.
    pub(super) fn new(
        place: &'a Place<'a>,
        report: &'a Report,
        (counters, pids): (&'a SharedCounters, &'a SharedCounters),
        cgroup: Option<Cgroup>,
        directory: Option<&'a Path>,
        planned: usize,
    ) -> Workers<'a> {
        Workers { place, report, counters, pids, cgroup, directory, group: None, started: 0, planned }
    }

    /// CPUs that the workers may use.
    pub(super) fn cpus(&self) -> &'a CpuSet {
        self.place.cpus
    }

    /// Forks a worker. `work` gets the counter with index `counter`, if it counts, and returns only to fail.
    pub(super) fn fork(
        &mut self,
        counter: Option<usize>,
        work: impl FnOnce(Option<&AtomicU64>) -> io::Result<()>,
    ) -> Result<(), String> {
        let count = counter.and_then(|index| self.counters.get(index));
        let (place, report, own_pid) = (self.place, self.report, self.pids.get(self.started));
        let forked = process::fork_tied(self.group, libc::SIGKILL, || {
            // The worker stores its PID as well: its supervisor may be killed before it has done so.
            own_pid.iter().for_each(|pid| pid.store(std::process::id().into(), Relaxed));
            let settled = punctual_sys::sched::set_inherited_policy(0, place.policy);
            if place.policy.is_realtime() {
                // The alarm is for the worker; its descendants have none, and a program may set another.
                let seconds = u32::try_from(place.at_most.ns().div_ceil(1_000_000_000)).unwrap_or(u32::MAX);
                process::end_after(seconds);
                process::kill_after_cpu_time(seconds);
            }
            let settled = settled.map_err(|err| {
                let advice = punctual_host::how_to_allow_others(&err);
                io::Error::other(format!("cannot run as {}: {err}{advice}", place.policy))
            });
            match settled.and_then(|()| work(count)) {
                // The partner has ended, which the supervisor notices.
                Err(err) if PARTNER_GONE.contains(&err.kind()) => {}
                Err(err) => report.send(&LoadMessage::Failed { reason: err.to_string() }),
                Ok(()) => return 0,
            }
            REPORTED_STATUS
        });
        let pid = forked.map_err(|err| self.start_error(&err))?;
        self.group = self.group.or(Some(pid));
        own_pid.iter().for_each(|place| place.store(pid.into(), Relaxed));
        self.started += 1;
        Ok(())
    }

    /// Forks a worker in place of the only one, which was killed.
    pub(super) fn fork_again(&mut self, work: impl FnOnce() -> io::Result<()>) -> Result<(), String> {
        self.in_cgroup(|workers| workers.fork(None, |_| work()))
    }

    /// Sends SIGTERM, and waits for at most `KILL_GRACE`.
    pub(super) fn terminate(&mut self) {
        if let Some(group) = self.group {
            let _ = process::signal_group(group, libc::SIGTERM);
        }
        let until = Instant::now() + KILL_GRACE;
        while Instant::now() < until && !matches!(process::reap(None), Ok(Child::None) | Err(_)) {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills the workers, with all their descendants, and waits until all are gone.
    pub(super) fn kill_all(&mut self) {
        let mut waited = Waited::begin();
        while waited.look() < STOP_TIMEOUT {
            // In each round, so that a process forked while the signal was under way is killed in the next one.
            let killed = self.cgroup.as_ref().is_some_and(|cgroup| cgroup.kill().is_ok());
            if !killed {
                self.kill_group();
                kill_descendants();
            }
            loop {
                match process::reap(None) {
                    Ok(Child::Ended(..)) => {}
                    Ok(Child::Running) => break,
                    Ok(Child::None) | Err(_) => {
                        punctual_sys::fail::point("load-killed");
                        (self.group, self.started) = (None, 0);
                        return;
                    }
                }
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let me = std::process::id();
        let _ = writeln!(io::stderr(), "punctual: cannot stop a load; list its processes with: ps --ppid {me}");
    }

    /// Runs `start` in the control group, if there is one, so that its processes are born there.
    pub(super) fn in_cgroup<T>(&mut self, start: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let moved = |err: io::Error| format!("cannot move between control groups: {err}");
        self.cgroup.as_ref().map_or(Ok(()), Cgroup::enter).map_err(moved)?;
        let started = start(self);
        self.cgroup.as_ref().map_or(Ok(()), Cgroup::leave).map_err(moved)?;
        started
    }

    /// The error for a worker that could not be prepared or forked.
    pub(super) fn start_error(&self, source: &io::Error) -> String {
        format!(
            "cannot start process {} of {}: {source}; raise `ulimit -u` or `ulimit -n`, or reduce the load, like \
             messaging:groups=1",
            self.started + 1,
            self.planned
        )
    }

    /// Waits until every counting worker has done an operation.
    pub(super) fn wait_until_all_work(&self) -> Result<(), String> {
        let mut timeout = IdleTimeout::new(READY_TIMEOUT);
        loop {
            if let Ok(Child::Ended(pid, status)) = process::reap(None)
                && self.contains(pid)
            {
                return Err(ended(pid, status));
            }
            let idle = self.counters.iter().filter(|count| count.load(Relaxed) == 0).count();
            if idle == 0 {
                return Ok(());
            }
            let workers = self.counters.iter().count();
            if timeout.is_over(workers - idle) {
                return Err(format!(
                    "timeout: {idle} of {workers} workers idle, and none began for {} s; reduce the load, like \
                     messaging:groups=1",
                    READY_TIMEOUT.as_secs()
                ));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether this process is a worker, and not only a descendant of one.
    pub(super) fn contains(&self, pid: u32) -> bool {
        self.pids.iter().any(|worker| worker.load(Relaxed) == u64::from(pid))
    }

    /// Counts a run of a program.
    pub(super) fn count_run(&self) {
        super::count_one(self.counters.get(0));
    }

    /// The number of started processes.
    pub(super) fn n_started(&self) -> usize {
        self.started
    }

    /// The path of their control group.
    pub(super) fn cgroup(&self) -> Option<&Path> {
        self.cgroup.as_ref().map(Cgroup::path)
    }

    fn kill_group(&self) {
        if let Some(group) = self.group {
            let _ = process::signal_group(group, libc::SIGKILL);
        }
    }
}

/// Kills every descendant of this process, including those that have left their process group. A parent is killed
/// before its children, so that it forks no more of them; children forked meanwhile are reparented to this process, and
/// killed in the next round.
fn kill_descendants() {
    let mut found = punctual_host::children_of(std::process::id());
    while let Some(pid) = found.pop() {
        let children = punctual_host::children_of(pid);
        let _ = process::signal(pid, libc::SIGKILL);
        found.extend(children);
    }
}

/// The exit status of a worker whose end is reported, by itself or by the supervisor.
const REPORTED_STATUS: i32 = 3;

/// Errors by which a worker notices that its partner has ended.
const PARTNER_GONE: [io::ErrorKind; 3] =
    [io::ErrorKind::BrokenPipe, io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];

/// The error for a worker that ended by itself.
pub(super) fn ended(pid: u32, status: ExitStatus) -> String {
    format!("process {pid} exited ({status})")
}

/// Whether the reason of this worker's end is reported already.
pub(super) fn has_reported(status: ExitStatus) -> bool {
    status.code() == Some(REPORTED_STATUS)
}

impl Drop for Workers<'_> {
    fn drop(&mut self) {
        self.kill_all();
    }
}
