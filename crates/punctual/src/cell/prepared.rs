//! The first phase: the machine is looked at and held as the cell wants it.

use super::CellError;
use super::armed::Armed;
use crate::host::{self, DmaLatency, HostFs};
use crate::load;
use model::{Cell, CpuSet, Host, Policy};
use rt::{Limits, Settings, Team, sys};
use std::sync::atomic::AtomicU64;

/// The machine is as the cell wants it; nothing runs yet.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(super) cell: Cell,
    pub(super) host: Host,
    /// CPUs that this process may use.
    allowed: CpuSet,
    /// Held for as long as the cell lasts, with the value in force.
    pub(super) dma_latency: Option<(DmaLatency, u32)>,
}

/// Samples a log holds at most: 4 MiB. At a period of 10 us that is 2.6 s, and the log is emptied once a second.
const MOST_ROOM: u64 = 1 << 18;

impl Prepared {
    /// Checks the cell against this machine and takes hold of what it wants held.
    ///
    /// # Errors
    /// When the cell cannot be measured here as it is written.
    pub(crate) fn new(cell: Cell) -> Result<Prepared, CellError> {
        let allowed = sys::sched::affinity(0).map_err(|err| CellError::Impossible(err.to_string()))?;
        cell.check().map_err(CellError::Impossible)?;
        let absent = cell.cpus.minus(&allowed);
        if !absent.is_empty() {
            let reason = format!("CPU {absent} cannot be used here; this process may use {allowed}");
            return Err(CellError::Impossible(reason));
        }
        let dma_latency = cell.cpu_dma_latency_us.map(DmaLatency::hold).transpose().map_err(CellError::Setting)?;
        Ok(Prepared { host: host::snapshot(&HostFs::here()), cell, allowed, dma_latency })
    }

    /// Starts the load and sets the measured threads up, up to the barrier.
    ///
    /// The load comes first: its workers are forked, which needs a process with one thread.
    ///
    /// # Errors
    /// When the load does not work, memory cannot be locked, or a thread's settings are refused or not kept.
    pub(crate) fn arm(self) -> Result<Armed, CellError> {
        let cell = &self.cell;
        let setting = |what: &str, err: std::io::Error| CellError::Setting(format!("cannot {what}: {err}"));
        // Whoever started us may run nicely or in real time; the load shall not.
        sys::sched::set_policy(0, Policy::OTHER).map_err(|err| setting("run at nice 0 (start without `nice`)", err))?;
        let crew = load::start(&cell.load, self.allowed.len())?;

        sys::memory::use_one_arena();
        if cell.lock_memory {
            let advice = "lock memory (raise `ulimit -l`, or run as root)";
            sys::memory::lock_all().map_err(|err| setting(advice, err))?;
        }
        let settings = Settings { policy: cell.policy, timer_slack: cell.timer_slack, method: cell.method };
        let limits = Limits { first_recorded: cell.first_cycle(), end: AtomicU64::new(cell.end_cycle()) };
        let cycles = cell.end_cycle() - cell.first_cycle();
        let room = usize::try_from(cycles.min(MOST_ROOM)).unwrap_or(usize::MAX);
        let team = Team::muster(&cell.cpus, settings, limits, cell.period, room)?;

        let memory_locked_bytes = host::memory_locked_bytes().unwrap_or(0);
        if cell.lock_memory && memory_locked_bytes == 0 {
            let found =
                "memory was locked, but the kernel reports none locked (VmLck); measuring would not be what was asked";
            return Err(CellError::Setting(found.to_owned()));
        }
        // This thread empties the logs: away from the measured CPUs, if there are others.
        let others = self.allowed.minus(&cell.cpus);
        if !others.is_empty() {
            sys::sched::set_affinity(0, &others).map_err(|err| setting("leave the measured CPUs", err))?;
        }
        Ok(Armed { prepared: self, crew, team, memory_locked_bytes })
    }
}
