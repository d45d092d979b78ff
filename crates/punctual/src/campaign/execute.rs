//! Carrying out one cell in a child process.

use super::{Stop, roles};
use crate::child;
use crate::host::{self, HostFs};
use crate::lab::Guests;
use model::{Cell, CpuSet, Kernel, Progress, Record};
use rt::sys::{process, sched};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Carries out cells. The campaign knows nothing else about how that is done.
pub(crate) trait Executor {
    /// Learns what it will be asked to measure next, in which blocks, in this order; it may begin with that.
    fn expect(&mut self, _next: &mut dyn Iterator<Item = (&Cell, u32)>, _stop: &Stop) {}

    /// Measures `cell` in block `block`; ends early, with what there is, when asked to stop. `observe` is called now and then. The raw
    /// samples go to the new file `samples`, if it is named.
    ///
    /// # Errors
    /// When the cell was not measured. There is no file of samples then.
    fn execute(
        &mut self,
        cell: &Cell,
        block: u32,
        samples: Option<&Path>,
        stop: &Stop,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<Record, Failure>;
}

/// Why a child process gave no record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It cannot be started or talked to.
    #[error("cannot carry out the cell: {0}")]
    Process(#[from] io::Error),
    /// It said what was wrong.
    #[error("{0}")]
    Said(String),
    /// It ended without a word.
    #[error("the measuring process ended early ({0}); nothing of this cell is recorded")]
    Ended(std::process::ExitStatus),
    /// It answered with something else than a record.
    #[error("the measuring process gave no readable record: {0}")]
    NoRecord(serde_json::Error),
}

/// This program again, as `punctual cell`: a process of its own, so that a cell inherits no memory, thread or setting.
#[derive(Debug)]
pub(crate) struct Child;

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
            return Err(Failure::Said(format!("{} is not the kernel that runs here", cell.kernel)));
        }
        let mut child = child::start(samples)?;
        // The child has its CPUs now. Those who listen to it, and draw what it says, keep off the measured ones.
        let _aside = Aside::keep_off(&cell.cpus)?;
        let missing = || io::Error::other("a pipe is missing");
        let mut input = child.stdin.take().ok_or_else(missing)?;
        let mut output = child.stdout.take().ok_or_else(missing)?;
        let words = BufReader::new(child.stderr.take().ok_or_else(missing)?);
        input.write_all(&serde_json::to_vec(cell).map_err(io::Error::from)?)?;
        drop(input);
        let pid = child.id();
        let is_over = AtomicBool::new(false);
        let (record, said) = std::thread::scope(|scope| {
            let record = scope.spawn(move || {
                let mut text = Vec::new();
                output.read_to_end(&mut text).map(|_| text)
            });
            scope.spawn(|| tell_to_stop(pid, stop, &is_over));
            let mut said = Vec::new();
            for line in words.lines().map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(progress) => observe(&progress),
                    Err(_) => said.push(line),
                }
            }
            is_over.store(true, Relaxed);
            stop.ring();
            (record.join(), said)
        });
        let status = child.wait()?;
        if status.signal().is_some() {
            // It could not put back itself what it had changed.
            host::recover(&HostFs::here());
        }
        if !status.success() {
            return Err(child::reason(&said).map_or(Failure::Ended(status), Failure::Said));
        }
        for line in said {
            let _ = writeln!(io::stderr(), "{line}");
        }
        let record = record.map_err(|_| io::Error::other("the reading thread failed"))??;
        serde_json::from_slice(&record).map_err(Failure::NoRecord)
    }
}

/// Each cell on the kernel that it names: here in a child process, between machines, or in a guest of the lab.
#[derive(Debug, Default)]
pub(crate) struct HereOrLab {
    guests: Guests,
}

impl Executor for HereOrLab {
    fn expect(&mut self, next: &mut dyn Iterator<Item = (&Cell, u32)>, stop: &Stop) {
        self.guests.run_ahead(next, stop.flag());
    }

    fn execute(
        &mut self,
        cell: &Cell,
        block: u32,
        samples: Option<&Path>,
        stop: &Stop,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<Record, Failure> {
        match &cell.kernel {
            Kernel::Running if !cell.roles.is_empty() => roles::execute(cell, samples, stop, observe),
            Kernel::Running => Child.execute(cell, block, samples, stop, observe),
            Kernel::Lab(_) => {
                self.guests.record(cell, block, stop.flag()).map_err(|err| Failure::Said(err.to_string()))
            }
        }
    }
}

/// Holds this thread, and those it starts meanwhile, off the measured CPUs where there are others.
#[derive(Debug)]
struct Aside {
    /// What this thread could use before; `None` when nothing was changed.
    before: Option<CpuSet>,
}

impl Aside {
    fn keep_off(measured: &CpuSet) -> io::Result<Aside> {
        let before = sched::affinity(0)?;
        let others = before.minus(measured);
        if others.is_empty() {
            return Ok(Aside { before: None });
        }
        sched::set_affinity(0, &others)?;
        Ok(Aside { before: Some(before) })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // The next child starts with what this thread may use. Should this fail, that child says which CPU it lacks.
        let _ = self.before.as_ref().map(|before| sched::set_affinity(0, before));
    }
}

/// Sends a cell SIGINT once it is asked to stop: it then ends early and still writes its record. Once only, because a
/// second one would end it at once.
fn tell_to_stop(pid: u32, stop: &Stop, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        stop.wait();
        if stop.is_asked() && !is_over.load(Relaxed) {
            // Not reaped yet: it is waited for only after this thread has ended.
            let _ = process::signal(pid, libc::SIGINT);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_keeps_off_the_measured_cpus_and_comes_back() {
        let all = sched::affinity(0).unwrap();
        let first: CpuSet = all.iter().take(1).collect();
        let others = all.minus(&first);
        let aside = Aside::keep_off(&first).unwrap();
        assert_eq!(sched::affinity(0).unwrap(), if others.is_empty() { all.clone() } else { others });
        drop(aside);
        let aside = Aside::keep_off(&all).unwrap();
        assert_eq!(sched::affinity(0).unwrap(), all, "nowhere else to go");
        drop(aside);
        assert_eq!(sched::affinity(0).unwrap(), all);
    }
}
