//! Executor that runs one cell in a child process.

use super::executor::{Executor, Failure};
use super::stop::Stop;
use cell::child::{self, CellFailure, CellProcess};
use host::HostFs;
use model::{Cell, CpuSet, Kernel, Progress, Record, plain};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Builder;
use sys::{process, sched};

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
        if cell.kernel != Kernel::Running {
            return Err(Failure::Unsupported(format!("kernel {} is not the running kernel", cell.kernel)));
        }
        let mut child = CellProcess::start(samples)?;
        sys::fail::point("cell-started");
        // The child has its CPUs now. The threads that read its output and draw its progress stay off the measured
        // ones.
        let _affinity = AffinityGuard::leave(&cell.cpus)?;
        child.give(cell)?;
        sys::fail::point("cell-given");
        let output = listen(&mut child, stop, observe);
        let status = child.wait()?;
        sys::fail::point("cell-ended");
        if status.signal().is_some() {
            // A killed process could not restore the settings that it had changed.
            host::recover(&HostFs::here());
        }
        match child.record(output?) {
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

/// Passes the progress of `child` to `observe` until it has closed its output, and forwards a stop request to it.
/// Returns its output.
///
/// # Errors
/// If a thread cannot be created; the child is killed then.
fn listen(child: &mut CellProcess, stop: &Stop, observe: &mut dyn FnMut(&Progress)) -> io::Result<io::Result<Vec<u8>>> {
    let (output, lines) = child.streams()?;
    let pid = child.id();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let no_thread = |err| {
            // No thread could forward a stop request, or read its record.
            let _ = process::signal(pid, libc::SIGKILL);
            host::no_thread(&err)
        };
        let output = Builder::new().spawn_scoped(scope, move || output.read()).map_err(no_thread)?;
        Builder::new().spawn_scoped(scope, || forward_stop(pid, stop, &is_over)).map_err(no_thread)?;
        for line in lines {
            if let Some(progress) = child.take(line) {
                observe(&progress);
            }
        }
        is_over.store(true, Relaxed);
        stop.wake();
        Ok(output.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread failed"))))
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

/// Interrupts a cell after a stop request.
fn forward_stop(pid: u32, stop: &Stop, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        stop.wait();
        if stop.is_requested() && !is_over.load(Relaxed) {
            // Not reaped yet: the parent waits for it only after this thread has ended.
            return child::interrupt(pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_stop_request_reaches_the_cell_unless_it_is_over() {
        let ended_by = |is_over| {
            let mut cell = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            let stop = Stop::new().unwrap();
            stop.flag().store(true, Relaxed);
            stop.wake();
            forward_stop(cell.id(), &stop, &AtomicBool::new(is_over));
            // It ends by itself now, if it was not interrupted.
            drop(cell.stdin.take());
            cell.wait().unwrap().signal()
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
