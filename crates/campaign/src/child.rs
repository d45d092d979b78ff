//! Executor that runs one cell in a child process.

use super::estimate::measured_after;
use super::executor::{Executor, Failure};
use super::stop::Stop;
use punctual_cell::child::{self, CellFailure, CellProcess};
use punctual_host::HostFs;
use punctual_model::{Cell, CpuSet, Progress, Record, plain};
use punctual_sys::{process, sched};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Interval between two looks at a cell that should have measured. It is killed when both find it stopped.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// This program as `punctual cell`: a separate process, so that a cell inherits no memory, thread or setting.
#[derive(Debug)]
pub struct Child;

impl Executor for Child {
    fn execute(
        &mut self,
        cell: &Cell,
        _: u32,
        samples: Option<&Path>,
        stop: &Stop,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<Record, Failure> {
        if !cell.kernel.is_here() {
            return Err(Failure::Unsupported(format!("kernel {} is not the running kernel", cell.kernel)));
        }
        let mut child = CellProcess::start(samples)?;
        punctual_sys::fail::point("cell-started");
        // The child has its CPUs now. The threads that read its output and draw its progress stay off the measured
        // ones.
        let _affinity = AffinityGuard::leave(&cell.cpus)?;
        child.give(cell)?;
        punctual_sys::fail::point("cell-given");
        let (output, was_stopped) = listen(&mut child, cell, stop, observe)?;
        let status = child.wait()?;
        punctual_sys::fail::point("cell-ended");
        if status.signal().is_some() {
            // A killed process could not restore the settings that it had changed.
            punctual_host::recover(&HostFs::here());
        }
        if was_stopped {
            let pid = child.id();
            let by = "SIGSTOP, a debugger or a frozen control group";
            return Err(Failure::Reported(format!("killed: the measuring process {pid} was stopped ({by})")));
        }
        match child.record(output) {
            Err(CellFailure::Exit(status, reason)) => {
                let kind = if status.code() == Some(1) { Failure::Unsupported } else { Failure::Reported };
                Err(reason.map_or(Failure::Exited(status), kind))
            }
            ended => {
                for line in child.notes() {
                    let _ = writeln!(io::stderr(), "{}", plain(line));
                }
                ended.map_err(|failure| match failure {
                    CellFailure::Io(err) => Failure::Process(err),
                    CellFailure::Exit(status, _) => Failure::Exited(status),
                    CellFailure::NoRecord(err) => Failure::NoRecord(err),
                })
            }
        }
    }
}

/// Passes the progress of `child` to `observe` until it has closed its output, and attends to it meanwhile. Returns its
/// output, and whether it was stopped and killed. Errors: if a thread cannot be created; the child is killed then.
fn listen(
    child: &mut CellProcess,
    cell: &Cell,
    stop: &Stop,
    observe: &mut dyn FnMut(&Progress),
) -> io::Result<(io::Result<Vec<u8>>, bool)> {
    let (output, lines) = child.streams()?;
    let pid = child.id();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let no_thread = |err| {
            // No thread could forward a stop request, or read its record.
            let _ = process::signal(pid, libc::SIGKILL);
            punctual_host::no_thread(&err)
        };
        let output = Builder::new().spawn_scoped(scope, move || output.read()).map_err(no_thread)?;
        let attend = || attend(pid, measured_after(cell), stop, &is_over);
        let attending = Builder::new().spawn_scoped(scope, attend).map_err(no_thread)?;
        for line in lines {
            if let Some(progress) = child.take(line) {
                observe(&progress);
            }
        }
        is_over.store(true, Relaxed);
        stop.wake();
        let output = output.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread failed")));
        Ok((output, attending.join().unwrap_or(false)))
    })
}

/// Keeps this thread, and those it starts meanwhile, off the measured CPUs if there are others.
#[derive(Debug)]
struct AffinityGuard {
    /// The previous affinity; `None` when nothing was changed.
    before: Option<CpuSet>,
}

impl AffinityGuard {
    fn leave(measured: &CpuSet) -> io::Result<AffinityGuard> {
        let before = sched::affinity(0)?;
        let others = before.minus(measured);
        if others.is_empty() {
            return Ok(AffinityGuard { before: None });
        }
        sched::set_affinity(0, &others)?;
        Ok(AffinityGuard { before: Some(before) })
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        // The next child inherits the affinity of this thread. If this fails, that child reports the missing CPU.
        let _ = self.before.as_ref().map(|before| sched::set_affinity(0, before));
    }
}

/// Interrupts a cell after a stop request. Once it should have measured, or is interrupted, this looks at it now and
/// then, and kills it if it is stopped; returns whether it was.
fn attend(pid: u32, measured_after: Duration, stop: &Stop, is_over: &AtomicBool) -> bool {
    let (mut next, mut was_stopped, mut is_interrupted) =
        (Instant::now() + measured_after + LOOK_INTERVAL, false, false);
    while !is_over.load(Relaxed) {
        stop.wait_until(next);
        // Not reaped yet: the parent waits for it only after this thread has ended.
        if is_over.load(Relaxed) {
            return false;
        }
        if stop.is_requested() && !is_interrupted {
            child::interrupt(pid);
            (is_interrupted, next) = (true, Instant::now() + LOOK_INTERVAL);
        } else if Instant::now() >= next {
            let is_stopped = punctual_host::is_stopped(pid);
            if is_stopped && was_stopped {
                let _ = process::signal(pid, libc::SIGKILL);
                return true;
            }
            (was_stopped, next) = (is_stopped, Instant::now() + LOOK_INTERVAL);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_stop_request_reaches_the_cell_unless_it_is_over() {
        let ended_by = |is_over| {
            let mut cell = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            // Not closed by `wait`, or it would end by itself.
            let mut input = cell.stdin.take();
            let stop = Stop::new().unwrap();
            stop.flag().store(true, Relaxed);
            stop.wake();
            let (pid, is_over) = (cell.id(), AtomicBool::new(is_over));
            std::thread::scope(|scope| {
                let attending = scope.spawn(|| attend(pid, LOOK_INTERVAL, &stop, &is_over));
                if is_over.load(Relaxed) {
                    attending.join().unwrap();
                    // It ends by itself now, if it was not interrupted.
                    drop(input.take());
                }
                let status = cell.wait().unwrap();
                is_over.store(true, Relaxed);
                stop.wake();
                status.signal()
            })
        };
        assert_eq!([false, true].map(ended_by), [Some(libc::SIGTERM), None]);
    }

    #[test]
    fn the_listening_thread_leaves_the_measured_cpus_and_returns() {
        let all = sched::affinity(0).unwrap();
        let first: CpuSet = all.iter().take(1).collect();
        let others = all.minus(&first);
        let guard = AffinityGuard::leave(&first).unwrap();
        assert_eq!(sched::affinity(0).unwrap(), if others.is_empty() { all.clone() } else { others });
        drop(guard);
        let guard = AffinityGuard::leave(&all).unwrap();
        assert_eq!(sched::affinity(0).unwrap(), all, "nowhere else to go");
        drop(guard);
        assert_eq!(sched::affinity(0).unwrap(), all);
    }
}
