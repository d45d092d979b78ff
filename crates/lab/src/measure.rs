//! One measurement in a guest.

use super::devices::Devices;
use super::machine::Setup;
use super::one_cpu::OneCpu;
use super::protocol::Job;
use super::qemu::Limits;
use super::{LabError, Monitor, directories, snapshot, two_guests};
use model::{Cell, LabClock, LabKernel, Record};
use std::time::Duration;

/// Additional start delay per block: not a multiple of a clock tick (4 ms) or of a usual period.
const BLOCK_DELAY_STEP: Duration = Duration::from_nanos(1_270_007);
/// Start delay of the first block, so that the effects of starting it have settled.
const FIRST_BLOCK_DELAY: Duration = Duration::from_millis(20);

/// CPU time limit for the start of a guest, and the CPU seconds added for each of its seconds.
const BOOT_CPU_LIMIT: Duration = Duration::from_secs(60);
const CPU_LIMIT_PER_SECOND: u32 = 30;
/// Timeout without any CPU time used.
const STALL_TIMEOUT: Duration = Duration::from_secs(600);
/// Factor of the run time with tracers, which run one after the other and may have to wait.
const TRACERS_FACTOR: u32 = 5;
/// Timeout of a guest in its own time, beyond the duration of the cell.
const GUEST_TIME_MARGIN: Duration = Duration::from_secs(30);
/// The same timeout if its time is the host's, which may be busy.
const HOST_TIME_MARGIN: Duration = Duration::from_secs(1800);

/// Measures `cell` on `kernel`; stops early, without a record, on request of `monitor`. Each `block` starts at another
/// phase of the kernel's clock tick, so that blocks are not copies of each other.
///
/// # Errors
/// If there is no such kernel, or the guest gives no record.
pub fn carry_out(cell: &Cell, kernel: &LabKernel, block: u32, monitor: Monitor<'_>) -> Result<Record, LabError> {
    let setup = Setup::of(cell.kernel.to_string(), kernel, Devices::of(cell), monitor)?;
    let busy = Duration::from_nanos(cell.duration.ns().saturating_add(cell.conditions.warm_up.ns()));
    let busy = busy.saturating_mul(if cell.conditions.tracers { TRACERS_FACTOR } else { 1 });
    let cpu = BOOT_CPU_LIMIT + busy.saturating_mul(CPU_LIMIT_PER_SECOND);
    let limits = Limits { monitor, cpu, stall: STALL_TIMEOUT };
    let margin = if setup.clock == LabClock::Virtual { GUEST_TIME_MARGIN } else { HOST_TIME_MARGIN };
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let wait_ns = ns(FIRST_BLOCK_DELAY + BLOCK_DELAY_STEP.saturating_mul(block));
    let job = Job { cell: cell.clone(), wait_ns, limit_ns: ns(margin + busy.saturating_mul(2)), is_target: false };
    if Devices::of(cell) == Devices::Line {
        return two_guests::carry_out(&setup, &job, limits);
    }
    let _one_cpu = (setup.clock == LabClock::Virtual).then(OneCpu::take);
    // Only virtual time can be stopped and resumed without a trace.
    let saved = match setup.clock {
        LabClock::Virtual => Some(snapshot::ready(&setup, limits)?),
        LabClock::Emulated | LabClock::Kvm => None,
    };
    let place = directories::for_guest()?;
    let files = setup.files_below(place.path(), Some(&job))?;
    let incoming = saved.iter().flat_map(snapshot::arguments);
    let (mut qemu, threads) = setup.start(&files, incoming.collect(), limits)?;
    let resumed = saved.as_ref().map_or(Ok(()), |saved| snapshot::resume(&mut qemu, saved, limits));
    resumed.and_then(|()| qemu.wait(limits)).map_err(|gone| setup.failed(&files, gone))?;
    let mut record = setup.record(&files, &job)?;
    record.lab.iter_mut().for_each(|lab| lab.threads.clone_from(&threads));
    Ok(record)
}
