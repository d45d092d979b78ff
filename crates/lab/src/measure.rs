//! One measurement in a guest.

use super::devices::Devices;
use super::machine::Setup;
use super::one_cpu::OneCpu;
use super::protocol::Job;
use super::qemu::{Limits, Qemu};
use super::{LabError, Monitor, directories, snapshot, two_guests};
use model::{Cell, LabClock, LabKernel, Record};
use std::time::Duration;

/// By how much later a cell starts in each further block: no multiple of a clock tick (4 ms) or of a usual period.
const PHASE: Duration = Duration::from_nanos(1_270_007);
/// How long the first one waits, so that what starting it did to the kernel is over.
const FIRST_PHASE: Duration = Duration::from_millis(20);

/// How much CPU time a guest may take to start, and for each of its seconds.
const CPU_TO_START: Duration = Duration::from_secs(60);
const CPU_FOR_A_SECOND: u32 = 30;
/// For how long it may use no CPU time at all.
const STILL: Duration = Duration::from_secs(600);
/// How many times longer than the cell it is busy with the tracers, which run one after the other and may have to wait.
const WITH_TRACERS: u32 = 5;
/// After how much of its own time a guest gives up, beyond what the cell is to take.
const LONGER: Duration = Duration::from_secs(30);
/// The same where its time is this machine's, which may be busy.
const LONGER_HERE: Duration = Duration::from_secs(1800);

/// Measures `cell` on `kernel`; ends early, without a record, when `monitor` has it stopped. In another `block` everything happens at
/// other moments relative to the kernel's own clock ticks, so that blocks are not copies of each other.
///
/// # Errors
/// When there is no such kernel, or the guest gives no record.
pub fn carry_out(cell: &Cell, kernel: &LabKernel, block: u32, monitor: Monitor<'_>) -> Result<Record, LabError> {
    let setup = Setup::of(cell.kernel.to_string(), kernel, Devices::of(cell), monitor)?;
    let busy = Duration::from_nanos(cell.duration.ns().saturating_add(cell.conditions.warm_up.ns()));
    let busy = busy.saturating_mul(if cell.conditions.tracers { WITH_TRACERS } else { 1 });
    let cpu = CPU_TO_START + busy.saturating_mul(CPU_FOR_A_SECOND);
    let limits = Limits { monitor, cpu, still: STILL };
    let longer = if setup.clock == LabClock::Virtual { LONGER } else { LONGER_HERE };
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let wait_ns = ns(FIRST_PHASE + PHASE.saturating_mul(block));
    let job = Job { cell: cell.clone(), wait_ns, limit_ns: ns(longer + busy.saturating_mul(2)), is_target: false };
    if Devices::of(cell) == Devices::Line {
        return two_guests::carry_out(&setup, &job, limits);
    }
    let _one_cpu = (setup.clock == LabClock::Virtual).then(OneCpu::take);
    // Only instructions can be stopped and gone on with as if nothing had happened.
    let saved = match setup.clock {
        LabClock::Virtual => Some(snapshot::ready(&setup, limits)?),
        LabClock::Emulated | LabClock::Kvm => None,
    };
    let place = directories::for_guest()?;
    let files = setup.files_below(place.path(), Some(&job))?;
    let incoming = saved.iter().flat_map(snapshot::arguments);
    let mut qemu = Qemu::start(setup.arguments(&files).into_iter().chain(incoming).collect())?;
    let gone_on = saved.as_ref().map_or(Ok(()), |saved| snapshot::go_on(&mut qemu, saved, limits));
    gone_on.and_then(|()| qemu.wait(limits)).map_err(|gone| setup.failed(&files, gone))?;
    setup.record(&files, &job)
}
