//! One measurement in a guest.

use super::clock_marks::ClockMarks;
use super::devices::{Devices, LinkDevices};
use super::left_out::{STARTS_GUESTS, left_out};
use super::machine::{AtRest, Setup};
use super::one_cpu::OneCpu;
use super::protocol::Job;
use super::qemu::Limits;
use super::{Beside, GuestClocks, LabError, Monitor, directories, snapshot, two_guests};
use punctual_model::{Captures, Cell, Explain, LabClock, LabKernel, Record, TRACERS};
use std::time::Duration;

/// Additional start delay per block: not a multiple of a clock tick (4 ms) or of a usual period.
const BLOCK_DELAY_STEP: Duration = Duration::from_nanos(1_270_007);
/// Start delay of the first block, so that the effects of starting it have settled.
const FIRST_BLOCK_DELAY: Duration = Duration::from_millis(20);

/// CPU time limit for the start of a guest, and the CPU seconds added for each of its seconds. A guest with hundreds of
/// processes (`messaging`) uses about 200 in a second: the emulator translates addresses anew at each context switch.
const BOOT_CPU_LIMIT: Duration = Duration::from_secs(60);
const CPU_LIMIT_PER_SECOND: u32 = 1000;
/// Timeout without any CPU time used.
const STALL_TIMEOUT: Duration = Duration::from_secs(600);
/// Timeout of a guest in its own time, beyond the duration of the cell.
const GUEST_TIME_MARGIN: Duration = Duration::from_secs(30);
/// The same timeout if its time is the host's, which may be busy.
const HOST_TIME_MARGIN: Duration = Duration::from_secs(1800);

/// Measures `cell` on `kernel`; stops early, without a record, on request of `monitor`. Each `block` starts at another
/// phase of the kernel's clock tick, so that blocks are not copies of each other. Errors: if there is no such kernel,
/// or the guest gives no record.
pub fn carry_out(
    cell: &Cell,
    kernel: &LabKernel,
    block: u32,
    beside: &dyn Beside,
    monitor: Monitor<'_>,
) -> Result<Record, LabError> {
    if !STARTS_GUESTS {
        return Err(LabError::program("lab", left_out()));
    }
    // The files of a language are no part of the cell: they follow from it, and from what is installed here.
    let mut kernel = kernel.clone();
    kernel.files.extend(beside.files(cell)?);
    let setup = Setup::of(cell.kernel.to_string(), &kernel, Devices::of(cell), monitor)?;
    let (limits, job) = (limits(cell, monitor), job(cell, setup.clock, block));
    match setup.clock {
        LabClock::Virtual => in_virtual_time(&setup, &job, limits),
        LabClock::Emulated | LabClock::Kvm
            if matches!(Devices::of(cell).link, LinkDevices::Line | LinkDevices::Network) =>
        {
            let beside = beside.begin(cell, None)?;
            let mut record = two_guests::carry_out(&setup, &job, limits)?;
            beside.map_or(Ok(()), |beside| beside.finish(GuestClocks::default(), &mut record))?;
            Ok(record)
        }
        LabClock::Emulated | LabClock::Kvm => in_machine_time(&setup, job, beside, limits),
    }
}

/// The time that `cell` keeps its guest busy, by the guest's clock.
fn busy(cell: &Cell) -> Duration {
    let busy = Duration::from_nanos(cell.duration.ns().saturating_add(cell.conditions.warm_up.ns()));
    // Tracers run one after the other, and may have to wait as long as one of them.
    let times = if cell.conditions.tracers { 2 + TRACERS.len() } else { 1 };
    busy.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX))
}

/// The limits of a guest that measures `cell`.
pub(super) fn limits<'a>(cell: &Cell, monitor: Monitor<'a>) -> Limits<'a> {
    let cpu = BOOT_CPU_LIMIT + busy(cell).saturating_mul(CPU_LIMIT_PER_SECOND);
    Limits { monitor, cpu, stall: STALL_TIMEOUT, console: None }
}

/// The job to measure `cell` in `block`.
pub(super) fn job(cell: &Cell, clock: LabClock, block: u32) -> Job {
    let margin = if clock == LabClock::Virtual { GUEST_TIME_MARGIN } else { HOST_TIME_MARGIN };
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Job {
        cell: cell.clone(),
        wait_ns: ns(FIRST_BLOCK_DELAY + BLOCK_DELAY_STEP.saturating_mul(block)),
        limit_ns: ns(margin + busy(cell).saturating_mul(2)),
        is_target: false,
        has_marks: false,
        has_disk: Devices::of(cell).has_disk,
        address: None,
        movable: None,
        lists_symbols: false,
    }
}

/// Resumes a guest from its snapshot. Only virtual time can be stopped and resumed without a trace.
pub(super) fn in_virtual_time(setup: &Setup, job: &Job, limits: Limits<'_>) -> Result<Record, LabError> {
    let _one_cpu = OneCpu::take();
    let saved = snapshot::ready(setup, limits)?;
    let place = directories::for_guest()?;
    let files = setup.files_below(place.path(), Some(job))?;
    let moving = job.movable.is_some().then(|| files.moving(0, false)).transpose()?;
    let more = moving.into_iter().flatten().chain(snapshot::arguments(&saved));
    let mut qemu = setup.start(&files, more)?;
    let resumed = snapshot::resume(&mut qemu, &saved.devices(), limits);
    resumed.and_then(|()| qemu.wait(limits)).map_err(|gone| setup.failed(&files, gone))?;
    setup.record(&files, job)
}

/// Boots a guest, and lets it measure beside what the plan wants on this machine.
fn in_machine_time(setup: &Setup, mut job: Job, beside: &dyn Beside, limits: Limits<'_>) -> Result<Record, LabError> {
    let cell = job.cell.clone();
    if let Some(explain) = &mut job.cell.conditions.explain {
        // The causes are summed up again after the host's part is known.
        (explain.for_host, explain.keep, job.has_marks) = (true, *Explain::KEEP.end(), true);
        // Those of all that are kept for the host would be too many.
        explain.captures = Captures::None;
    }
    let place = directories::for_guest()?;
    let files = setup.files_below(place.path(), Some(&job))?;
    let memory = if job.has_marks { setup.marks(&files)? } else { Vec::new() };
    let marks = job.has_marks.then(|| ClockMarks::start(&files.marks())).transpose()?;
    let AtRest { mut qemu, tids, threads } = setup.boot(&files, memory, limits)?;
    let beside = beside.begin(&cell, Some(tids))?;
    setup.go_on(&mut qemu, &files, limits)?;
    qemu.wait(limits).map_err(|gone| setup.failed(&files, gone))?;
    let mut record = setup.record(&files, &job)?;
    (record.cell_id, record.cell) = (cell.id(), cell);
    record.lab.iter_mut().for_each(|lab| lab.threads.clone_from(&threads));
    let marks = marks.map(ClockMarks::finish).unwrap_or_default();
    let clocks = GuestClocks { marks, stops: qemu.stops() };
    beside.map_or(Ok(()), |beside| beside.finish(clocks, &mut record))?;
    Ok(record)
}
