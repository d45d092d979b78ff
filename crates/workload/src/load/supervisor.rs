//! The supervisor process of one part of a load.

use super::idle_timeout::POLL_INTERVAL;
use super::job::Job;
use super::report::{LoadMessage, Report};
use super::workers::{self, Workers};
use super::{Place, own_name, programs};
use punctual_host::{Cgroup, HostFs, OwnDirectory};
use punctual_sys::memory::SharedCounters;
use punctual_sys::process::{self, Child};
use punctual_sys::sched;
use punctual_sys::signal::SignalSet;
use punctual_sys::thread;
use punctual_sys::waited::Waited;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Minimum uptime of a program before it counts as started: wrong options end it earlier.
const MIN_UPTIME: Duration = Duration::from_millis(100);
/// The shortest interval between two starts of a program: one without any work would otherwise be a storm of new
/// processes instead of the requested load.
const RESTART_INTERVAL: Duration = Duration::from_millis(100);

/// Timeout until killed workers have ended.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Cleans up after supervisor `pid` was killed by SIGKILL: ends its workers, of which `first` was the first one, with
/// everything in their process group or control group or with their environment, and removes the directory in `parent`.
pub(super) fn clean_up_after(pid: u32, first: Option<u32>, parent: Option<&Path>) {
    let name = own_name(pid);
    // The PGID is the PID of its first process.
    first.into_iter().for_each(|group| drop(process::signal_group(group, libc::SIGKILL)));
    punctual_host::end_group(&name);
    punctual_host::kill_marked(|mark| mark == name);
    // Waits so that none of them creates a file again. The wait has a timeout, because an ended process may not be
    // reaped yet.
    let mut waited = Waited::begin();
    while first.is_some_and(|group| process::signal_group(group, 0).is_ok()) && waited.look() < STOP_TIMEOUT {
        std::thread::sleep(POLL_INTERVAL);
    }
    drop(parent.map(|parent| OwnDirectory::of(parent, &name)));
}

/// Starts the workers of `job`, reports that, and keeps them until SIGTERM, which the kernel also sends when the parent
/// of this process ends. Returns the exit status.
pub(super) fn supervise(
    job: &Job,
    place: &Place<'_>,
    counters: (&SharedCounters, &SharedCounters),
    report: &Report,
) -> io::Result<i32> {
    let signals = SignalSet::any(&[libc::SIGTERM, libc::SIGCHLD]);
    signals.block()?;
    process::adopt_orphans()?;
    punctual_sys::fail::point("supervisor-made");
    punctual_host::drop_rights_of_file()?;
    sched::set_affinity(0, place.cpus)?;
    // Makes the purpose of each process visible in ps(1).
    let part = job.part.to_string();
    thread::set_name(&format!("load/{}", part.split([':', ' ']).next().unwrap_or_default()))?;
    let failed = |reason| {
        report.send(&LoadMessage::Failed { reason });
        Ok(1)
    };
    let name = own_name(std::process::id());
    let directory = match &job.directory {
        None => None,
        Some(parent) => match OwnDirectory::make(parent, &name) {
            Ok(directory) => Some(directory),
            Err(err) => {
                return failed(format!("cannot create a directory in {}: {err}; name another", parent.display()));
            }
        },
    };
    let cgroup = Cgroup::make(&HostFs::here(), &name);
    let directory = directory.as_ref().map(OwnDirectory::path);
    let mut workers = Workers::new(place, report, counters, cgroup, directory, job.workers);
    let mut began = Instant::now();
    let gate = match workers.in_cgroup(|workers| job.start(workers)) {
        Ok(gate) => gate,
        Err(reason) => return failed(reason),
    };
    punctual_sys::fail::point("load-forked");
    if job.program.is_none()
        && let Err(reason) = workers.wait_until_all_work()
    {
        return failed(reason);
    }
    if let Some(gate) = gate {
        gate.open()?;
    }
    if job.program.is_some() {
        std::thread::sleep(MIN_UPTIME);
    }
    let works =
        LoadMessage::Works { workers: workers.n_started() as u64, cgroup: workers.cgroup().map(Path::to_owned) };
    // Workers that ended while settling come first: their SIGCHLD is pending.
    let mut is_restart_due = reap(&mut workers, job, report);
    report.send(&works);
    punctual_sys::fail::point("load-works");
    loop {
        let left = RESTART_INTERVAL.saturating_sub(began.elapsed());
        let signal = if is_restart_due { signals.wait_at_most(left) } else { signals.wait() };
        match signal {
            Ok(libc::SIGTERM) => {
                punctual_sys::fail::point("load-ends");
                if job.program.is_some() {
                    workers.terminate();
                }
                return Ok(0);
            }
            Ok(_) => is_restart_due |= reap(&mut workers, job, report),
            Err(_) => {}
        }
        if let Some(program) = job.program.as_ref().filter(|_| is_restart_due && began.elapsed() >= RESTART_INTERVAL) {
            (is_restart_due, began) = (false, Instant::now());
            punctual_sys::fail::point("load-restarts");
            if let Err(reason) = programs::restart(&mut workers, program) {
                report.send(&LoadMessage::Failed { reason });
            }
        }
    }
}

/// Reaps every process that has ended, and reports those that should not have. Returns whether a program has finished
/// its run and must be restarted.
fn reap(workers: &mut Workers<'_>, job: &Job, report: &Report) -> bool {
    let mut is_done = false;
    while let Ok(Child::Ended(pid, status)) = process::reap(None) {
        if !workers.contains(pid) {
            continue;
        }
        let outcome = match &job.program {
            Some(program) => programs::ended(workers, program, status),
            None if workers::has_reported(status) => continue,
            None => Err(workers::ended(pid, status)),
        };
        match outcome {
            Ok(()) => is_done = true,
            Err(reason) => report.send(&LoadMessage::Failed { reason }),
        }
    }
    is_done
}
