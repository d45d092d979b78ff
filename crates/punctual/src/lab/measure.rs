//! One measurement in a guest.

use super::devices::Devices;
use super::job::Job;
use super::machine::Setup;
use super::one_cpu::OneCpu;
use super::qemu::{Limits, Qemu};
use super::scratch::Scratch;
use super::{LabError, pair, snapshot};
use model::{Cell, LabClock, LabKernel, Record};
use std::time::Duration;

/// By how much later a cell starts in each further block: no multiple of a clock tick (4 ms) or of a usual period.
const PHASE: Duration = Duration::from_nanos(1_270_007);
/// How long the first one waits, so that what starting it did to the kernel is over.
const FIRST_PHASE: Duration = Duration::from_millis(20);

/// How much CPU time a guest may take to start, and for each of its seconds.
const CPU_TO_START: Duration = Duration::from_secs(60);
const CPU_FOR_A_SECOND: u32 = 30;
/// How many times longer it may take than the CPU time, on a busy machine.
const WALL: u32 = 8;
/// How many times longer than the cell it is busy with the tracers, which run one after the other and may have to wait.
const WITH_TRACERS: u32 = 5;
/// After how much of its own time a guest gives up, beyond what the cell is to take.
const LONGER: Duration = Duration::from_secs(30);

/// Measures `cell` on `kernel`; ends early, without a record, when `is_asked` to. In another `block` everything happens at
/// other moments relative to the kernel's own clock ticks, so that blocks are not copies of each other.
///
/// # Errors
/// When there is no such kernel, or the guest gives no record.
pub(crate) fn carry_out(
    cell: &Cell,
    kernel: &LabKernel,
    block: u32,
    is_asked: &dyn Fn() -> bool,
) -> Result<Record, LabError> {
    let setup = Setup::of(cell.kernel.to_string(), kernel, Devices::of(cell))?;
    let busy = Duration::from_nanos(cell.duration.ns().saturating_add(cell.warm_up.ns()));
    let busy = busy.saturating_mul(if cell.tracers { WITH_TRACERS } else { 1 });
    let cpu = CPU_TO_START + busy.saturating_mul(CPU_FOR_A_SECOND);
    let limits = Limits { is_asked, cpu, wall: cpu.saturating_mul(WALL) };
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let wait_ns = ns(FIRST_PHASE + PHASE.saturating_mul(block));
    let job = Job { cell: cell.clone(), wait_ns, limit_ns: ns(LONGER + busy.saturating_mul(2)), is_target: false };
    if Devices::of(cell) == Devices::Line {
        return pair::carry_out(&setup, &job, limits);
    }
    let _one_cpu = (setup.clock == LabClock::Virtual).then(OneCpu::take);
    // Only instructions can be stopped and gone on with as if nothing had happened.
    let saved = match setup.clock {
        LabClock::Virtual => Some(snapshot::ready(&setup, limits)?),
        LabClock::Emulated | LabClock::Kvm => None,
    };
    let scratch = Scratch::for_guest()?;
    let files = setup.files_below(&scratch.0, Some(&job))?;
    let incoming = saved.iter().flat_map(snapshot::arguments);
    let mut qemu = Qemu::start(setup.arguments(&files).into_iter().chain(incoming).collect())?;
    let gone_on = saved.as_ref().map_or(Ok(()), |saved| snapshot::go_on(&mut qemu, saved, limits));
    gone_on.and_then(|()| qemu.wait(limits)).map_err(|gone| setup.failed(&files, gone))?;
    setup.record(&files, &job)
}
