//! The processes of one part of a load: forked together, counted together, killed together.

use super::Place;
use super::keeper::{Message, Report};
use crate::host::{self, Cgroup};
use model::CpuSet;
use rt::sys::memory::SharedCounters;
use rt::sys::process::{self, Child};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long all workers may take to begin, and to be gone.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long a program that is told to end may tidy up before it is killed.
const COURTESY: Duration = Duration::from_millis(250);
const GLANCE: Duration = Duration::from_millis(1);

/// The workers. Dropping it kills them, with everything that they have made, and waits until all are gone.
pub(super) struct Crew<'a> {
    place: &'a Place<'a>,
    report: &'a Report,
    /// One counter of operations for each worker that counts.
    counters: &'a SharedCounters,
    /// The process id of each worker.
    pids: &'a SharedCounters,
    /// Holds all of them, where the system allows it.
    cgroup: Option<Cgroup>,
    /// A directory for their files, where they have some.
    pub(super) directory: Option<&'a Path>,
    /// Their process group: the id of the first worker.
    group: Option<u32>,
    started: usize,
    workers: usize,
}

impl<'a> Crew<'a> {
    /// A crew of `workers` that are still to be hired.
    pub(super) fn new(
        place: &'a Place<'a>,
        report: &'a Report,
        (counters, pids): (&'a SharedCounters, &'a SharedCounters),
        cgroup: Option<Cgroup>,
        directory: Option<&'a Path>,
        workers: usize,
    ) -> Crew<'a> {
        Crew { place, report, counters, pids, cgroup, directory, group: None, started: 0, workers }
    }

    /// CPUs that the workers may use.
    pub(super) fn cpus(&self) -> &'a CpuSet {
        self.place.cpus
    }

    /// Forks a worker. `work` gets the counter with index `counter`, if it counts, and returns only to fail.
    pub(super) fn hire(
        &mut self,
        counter: Option<usize>,
        work: impl FnOnce(Option<&AtomicU64>) -> io::Result<()>,
    ) -> Result<(), String> {
        let count = counter.and_then(|index| self.counters.get(index));
        let (place, report) = (self.place, self.report);
        let forked = process::fork_tied(self.group, libc::SIGKILL, || {
            let settled = rt::sys::sched::set_inherited_policy(0, place.policy);
            if place.policy.is_realtime() {
                // The alarm is for a worker; its descendants have none, and a program may set another.
                let seconds = u32::try_from(place.at_most.ns().div_ceil(1_000_000_000)).unwrap_or(u32::MAX);
                process::end_after(seconds);
                process::kill_after_cpu_time(seconds);
            }
            let settled = settled.map_err(|err| io::Error::other(format!("cannot run as {}: {err}", place.policy)));
            match settled.and_then(|()| work(count)) {
                // Its partner has ended, which the keeper sees.
                Err(err) if PARTNER_GONE.contains(&err.kind()) => {}
                Err(err) => report.send(&Message::Failed { reason: err.to_string() }),
                Ok(()) => return 0,
            }
            TOLD
        });
        let pid = forked.map_err(|err| self.start_error(&err))?;
        self.group = self.group.or(Some(pid));
        if let Some(place) = self.pids.get(self.started) {
            place.store(pid.into(), Relaxed);
        }
        self.started += 1;
        Ok(())
    }

    /// Hires `work` instead of a worker that was dismissed: the only one of this crew.
    pub(super) fn hire_again(&mut self, work: impl FnOnce() -> io::Result<()>) -> Result<(), String> {
        self.in_cgroup(|crew| crew.hire(None, |_| work()))
    }

    /// Lets the workers tidy up, for a moment.
    pub(super) fn ask_to_end(&mut self) {
        if let Some(group) = self.group {
            let _ = process::signal_group(group, libc::SIGTERM);
        }
        let until = Instant::now() + COURTESY;
        while Instant::now() < until && !matches!(process::reap(None), Ok(Child::None) | Err(_)) {
            std::thread::sleep(GLANCE);
        }
    }

    /// Kills the workers, with everything that they have made, and waits until all are gone.
    pub(super) fn dismiss(&mut self) {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            // Each round, so that a process made while the signal was under way is met by the next one.
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
                        (self.group, self.started) = (None, 0);
                        return;
                    }
                }
            }
            std::thread::sleep(GLANCE);
        }
        let me = std::process::id();
        let _ = writeln!(io::stderr(), "punctual: a load does not end; look at it with: ps --ppid {me}");
    }

    /// Has the processes that `start` makes born in the control group, if there is one.
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
            "cannot start process {} of {}: {source}; raise `ulimit -u` or `ulimit -n`, or ask for less, like \
             messaging:groups=1",
            self.started + 1,
            self.workers
        )
    }

    /// Waits until every counting worker has done something.
    pub(super) fn wait_until_all_work(&self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(Child::Ended(pid, status)) = process::reap(None)
                && self.employs(pid)
            {
                return Err(ended(pid, status));
            }
            let idle = self.counters.iter().filter(|count| count.load(Relaxed) == 0).count();
            if idle == 0 {
                return Ok(());
            }
            if Instant::now() > until {
                let workers = self.counters.iter().count();
                return Err(format!(
                    "{idle} of {workers} workers had done nothing after 10 s; ask for less, like messaging:groups=1"
                ));
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Whether this process is one of the workers, and not only a descendant of one.
    pub(super) fn employs(&self, pid: u32) -> bool {
        self.pids.iter().any(|worker| worker.load(Relaxed) == u64::from(pid))
    }

    /// Counts a run of a program.
    pub(super) fn count_run(&self) {
        super::count_one(self.counters.get(0));
    }

    /// How many processes were started.
    pub(super) fn n_started(&self) -> usize {
        self.started
    }

    /// The control group that holds them.
    pub(super) fn cgroup(&self) -> Option<&Path> {
        self.cgroup.as_ref().map(Cgroup::path)
    }

    fn kill_group(&self) {
        if let Some(group) = self.group {
            let _ = process::signal_group(group, libc::SIGKILL);
        }
    }
}

/// Kills every process below this one, those that have left their process group, too. Each before its children, so that
/// it makes no more of them; those it has made meanwhile become this process's own, and are met in the next round.
fn kill_descendants() {
    let mut found = host::children_of(std::process::id());
    while let Some(pid) = found.pop() {
        let children = host::children_of(pid);
        let _ = process::signal(pid, libc::SIGKILL);
        found.extend(children);
    }
}

/// The exit status of a worker that has told why it ended, or of which somebody else tells.
const TOLD: i32 = 3;

/// How a worker notices that the one it works with has ended.
const PARTNER_GONE: [io::ErrorKind; 3] =
    [io::ErrorKind::BrokenPipe, io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];

/// What is said of a worker that ended without being told to.
pub(super) fn ended(pid: u32, status: ExitStatus) -> String {
    format!("process {pid} ended ({status})")
}

/// Whether it is told already why this worker ended.
pub(super) fn has_told(status: ExitStatus) -> bool {
    status.code() == Some(TOLD)
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        self.dismiss();
    }
}
