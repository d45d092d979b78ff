//! The keeper: the process that answers for one part of a load.

use super::crew::{self, Crew};
use super::job::Job;
use super::{Place, programs};
use crate::host::{Cgroup, HostFs};
use rt::sys::memory::SharedCounters;
use rt::sys::process::{self, Child};
use rt::sys::sched;
use rt::sys::signal::Awaited;
use rt::sys::thread;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a keeper, or a worker, says to whoever started the load.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// All of it works.
    Works {
        /// Processes that were started.
        workers: u64,
        /// The control group that holds them, if there is one.
        cgroup: Option<PathBuf>,
    },
    /// It could not be started, or is less than it was.
    Failed {
        /// What happened.
        reason: String,
    },
}

/// Where messages go. Datagrams, so that those of several processes do not mix.
#[derive(Debug)]
pub(super) struct Report(UnixDatagram);

impl Report {
    /// A way for messages, and its other end.
    pub(super) fn pair() -> io::Result<(Report, UnixDatagram)> {
        let (mouth, ear) = UnixDatagram::pair()?;
        // A thousand workers that fail at once must not wait for somebody to listen.
        mouth.set_nonblocking(true)?;
        Ok((Report(mouth), ear))
    }

    pub(super) fn send(&self, message: &Message) {
        // Nobody listening, or too many having told already: there is nothing that could be done about it.
        let _ = serde_json::to_vec(message).map(|bytes| self.0.send(&bytes));
    }
}

/// How long a program has to live before it counts as started: wrong options end it earlier.
const SETTLED: Duration = Duration::from_millis(100);
/// A program is started no sooner than this after it was started before: one that has nothing to do would otherwise be a
/// storm of new processes instead of what was asked for.
const APART: Duration = Duration::from_millis(100);

/// Starts the workers of `job`, says so, and keeps them until SIGTERM comes, which the kernel sends when whoever
/// started this process ends. Returns the exit status.
pub(super) fn keep(
    job: &Job,
    place: &Place<'_>,
    counters: (&SharedCounters, &SharedCounters),
    report: &Report,
) -> io::Result<i32> {
    let signals = Awaited::any(&[libc::SIGTERM, libc::SIGCHLD]);
    signals.block()?;
    process::adopt_orphans()?;
    sched::set_affinity(0, place.cpus)?;
    // Who looks at the machine sees what each process is for.
    let part = job.part.to_string();
    thread::set_name(&format!("load/{}", part.split([':', ' ']).next().unwrap_or_default()))?;
    let failed = |reason| {
        report.send(&Message::Failed { reason });
        Ok(1)
    };
    let name = format!("punctual-load-{}", std::process::id());
    let directory = match &job.directory {
        None => None,
        Some(parent) => match Directory::make(&parent.join(&name)) {
            Ok(directory) => Some(directory),
            Err(err) => return failed(format!("cannot make a directory in {}: {err}; name another", parent.display())),
        },
    };
    let cgroup = Cgroup::make(&HostFs::here(), &name);
    let directory = directory.as_ref().map(|directory| directory.0.as_path());
    let mut crew = Crew::new(place, report, counters, cgroup, directory, job.workers);
    let mut began = Instant::now();
    let gate = match crew.in_cgroup(|crew| job.start(crew)) {
        Ok(gate) => gate,
        Err(reason) => return failed(reason),
    };
    if job.program.is_none()
        && let Err(reason) = crew.wait_until_all_work()
    {
        return failed(reason);
    }
    if let Some(gate) = gate {
        gate.open()?;
    }
    if job.program.is_some() {
        std::thread::sleep(SETTLED);
    }
    let works = Message::Works { workers: crew.n_started() as u64, cgroup: crew.cgroup().map(Path::to_owned) };
    // Those that ended while settling come first: their SIGCHLD is pending.
    let mut rests = attend(&mut crew, job, report);
    report.send(&works);
    loop {
        let rest = APART.saturating_sub(began.elapsed());
        let signal = if rests { signals.wait_at_most(rest) } else { signals.wait() };
        match signal {
            Ok(libc::SIGTERM) => {
                if job.program.is_some() {
                    crew.ask_to_end();
                }
                return Ok(0);
            }
            Ok(_) => rests |= attend(&mut crew, job, report),
            Err(_) => {}
        }
        if let Some(program) = job.program.as_ref().filter(|_| rests && began.elapsed() >= APART) {
            (rests, began) = (false, Instant::now());
            if let Err(reason) = programs::again(&mut crew, program) {
                report.send(&Message::Failed { reason });
            }
        }
    }
}

/// Sees to every process that has ended, and tells what should not have. Returns whether a program has done its work and
/// is to be started again.
fn attend(crew: &mut Crew<'_>, job: &Job, report: &Report) -> bool {
    let mut is_done = false;
    while let Ok(Child::Ended(pid, status)) = process::reap(None) {
        if !crew.employs(pid) {
            continue;
        }
        let outcome = match &job.program {
            Some(program) => programs::ended(crew, program, status),
            None if crew::has_told(status) => continue,
            None => Err(crew::ended(pid, status)),
        };
        match outcome {
            Ok(()) => is_done = true,
            Err(reason) => report.send(&Message::Failed { reason }),
        }
    }
    is_done
}

/// A directory of the load's own, removed with all that is in it.
struct Directory(PathBuf);

impl Directory {
    fn make(path: &Path) -> io::Result<Directory> {
        std::fs::create_dir(path).map(|()| Directory(path.to_owned()))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
