//! The kernel's tracers in place of the measured threads, with the same load, period, CPUs and host settings.

use super::prepared::Prepared;
use super::{CellError, trace_lines};
use punctual_host::{HWLAT_MODE, NoTracer, Tracer, TracerRequest};
use punctual_model::{
    Cell, CpuSet, Histogram, HwlatGaps, HwlatRecord, OsnoiseRecord, Policy, RtPriority, Span, TRACERS, TimerlatRecord,
    TracersRecord,
};
use punctual_sys::sched;
use std::time::{Duration, Instant};

const TIMERLAT: &str = TRACERS[0];
const OSNOISE: &str = TRACERS[1];
const HWLAT: &str = TRACERS[2];
/// CPUs with a thread of timerlat or osnoise.
const OSNOISE_CPUS: &str = "osnoise/cpus";
/// The longest sample requested from osnoise, as the kernel's default.
const LONGEST_SAMPLE: Span = Span::SECOND;
/// Shortest pause of osnoise between two samples (osnoise_sleep, kernel/trace/trace_osnoise.c).
const OSNOISE_SLEEP: Duration = Duration::from_millis(1);
/// Time with interrupts off of hwlat's loop, us, and from one begin to the next: half of the CPU, as by default, in
/// parts that delay others for 10 ms at most, not for half a second.
const HWLAT_WIDTH_US: u64 = 10_000;
const HWLAT_WINDOW_US: u64 = 20_000;
/// A longer gap counts, us: the kernel's default (kernel/trace/trace_hwlat.c).
const HWLAT_THRESHOLD_US: u64 = 10;
/// Interval between checks for all samples of a late tracer.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Prepared {
    /// Runs `timerlat`, `osnoise` and `hwlat`, each for the duration of the cell. Nothing runs in a guest whose kernel
    /// has none of them; `None`: stopped. Errors: when the load or a tracer does not do what is requested.
    pub fn trace(self) -> Result<Option<TracersRecord>, CellError> {
        let cell = &self.cell;
        if !are_there() {
            return Ok(Some(TracersRecord::default()));
        }
        sched::set_policy(0, Policy::OTHER).map_err(|err| CellError::setting("run at nice 0", err))?;
        // They may wait as long as one of them takes.
        let mut busy = vec![cell.duration; TRACERS.len() + 1];
        busy.push(cell.conditions.warm_up);
        let loads = self.start_load(&busy)?;
        // The load must not delay the end of a tracer; this thread sleeps meanwhile.
        if let Some(highest) = RtPriority::new(99) {
            sched::set_policy(0, Policy::Fifo(highest)).map_err(|err| CellError::setting("run in real time", err))?;
        }
        let seen = TracersRecord { timerlat: timerlat(cell)?, osnoise: osnoise(cell)?, hwlat: hwlat(cell)? };
        match loads.iter().find_map(|load| Some((load, load.failure()?))) {
            Some((load, reason)) => Err(load.error(reason).into()),
            None => Ok(Some(seen).filter(|_| !punctual_host::is_wait_to_end())),
        }
    }
}

/// Whether this kernel has one of the tracers.
fn are_there() -> bool {
    TRACERS.into_iter().any(Tracer::exists)
}

/// Whether the tracers that the kernel has can be used now: not after a whole measurement. Errors: another program uses
/// the trace, it needs more rights, or the kernel of this machine has none.
pub fn check(cell: &Cell) -> Result<(), CellError> {
    if cell.kernel.is_here() && !are_there() {
        return Err(failed(NoTracer::Lacking));
    }
    TRACERS.into_iter().filter(|name| Tracer::exists(name)).try_for_each(Tracer::check).map_err(failed)
}

/// Sleeps, unless it is asked to stop.
fn wait(length: Duration) {
    let began = Instant::now();
    while let Some(left) = length.checked_sub(began.elapsed()).filter(|_| !punctual_host::is_wait_to_end()) {
        std::thread::sleep(left.min(POLL_INTERVAL));
    }
}

/// The tracer, or `None` where the kernel lacks it.
fn there(started: Result<Tracer, NoTracer>) -> Result<Option<Tracer>, CellError> {
    match started {
        Ok(tracer) => Ok(Some(tracer)),
        Err(NoTracer::Lacking) => Ok(None),
        Err(err) => Err(failed(err)),
    }
}

fn failed(err: NoTracer) -> CellError {
    CellError::Tracers(err.to_string())
}

fn timerlat(cell: &Cell) -> Result<Option<Vec<TimerlatRecord>>, CellError> {
    let cycles = cell.period.cycles_in(cell.duration);
    let request = TracerRequest {
        name: TIMERLAT,
        options: &[
            (OSNOISE_CPUS, cell.cpus.to_string()),
            ("osnoise/timerlat_period_us", (cell.period.ns() / 1000).to_string()),
        ],
        // Two lines a cycle, and as many again for a thread that ends its cycle late.
        lines: cycles.saturating_mul(4),
    };
    let Some(tracer) = there(Tracer::start(&request))? else { return Ok(None) };
    tracer.set_policy(&cell.cpus, cell.policy).map_err(failed)?;
    wait(Duration::from_nanos(cell.conditions.warm_up.ns()));
    tracer.forget().map_err(failed)?;
    wait(Duration::from_nanos(cell.duration.ns()));
    let record = |cpu: u32| {
        let lost = tracer.lines(cpu).map_err(failed)?.1;
        Ok(TimerlatRecord { cpu, irq: Histogram::default(), thread: Histogram::default(), lost })
    };
    let mut known = cell.cpus.iter().map(record).collect::<Result<Vec<_>, CellError>>()?;
    taken(tracer, |line| trace_lines::timerlat(line, &mut known))?;
    Ok(Some(known))
}

fn osnoise(cell: &Cell) -> Result<Option<Vec<OsnoiseRecord>>, CellError> {
    let sample = Span(cell.duration.min(LONGEST_SAMPLE).ns() / 1000 * 1000);
    let samples = (cell.duration.ns() / sample.ns().max(1)).max(1);
    let sample_us = (sample.ns() / 1000).to_string();
    let request = TracerRequest {
        name: OSNOISE,
        // The runtime never exceeds the period.
        options: &[
            (OSNOISE_CPUS, cell.cpus.to_string()),
            ("osnoise/runtime_us", sample_us.clone()),
            ("osnoise/period_us", sample_us),
        ],
        lines: samples.saturating_mul(4),
    };
    let Some(tracer) = there(Tracer::start(&request))? else { return Ok(None) };
    let duration = Duration::from_nanos(cell.duration.ns());
    let began = Instant::now();
    wait(duration + OSNOISE_SLEEP.saturating_mul(u32::try_from(samples).unwrap_or(u32::MAX)));
    // A thread that the load keeps from running ends its samples late.
    let is_late = || -> Result<bool, CellError> {
        Ok(!punctual_host::is_wait_to_end() && !has_all(&tracer, &cell.cpus, samples)?)
    };
    while is_late()? && began.elapsed() < duration.saturating_mul(2) + POLL_INTERVAL {
        std::thread::sleep(POLL_INTERVAL);
    }
    let mut known: Vec<_> = cell.cpus.iter().map(|cpu| OsnoiseRecord { cpu, ..OsnoiseRecord::default() }).collect();
    taken(tracer, |line| trace_lines::osnoise(line, samples, &mut known))?;
    Ok(Some(known))
}

fn hwlat(cell: &Cell) -> Result<Option<Vec<HwlatRecord>>, CellError> {
    let windows = cell.duration.ns() / 1000 / HWLAT_WINDOW_US;
    let request = TracerRequest {
        name: HWLAT,
        // The width never exceeds the window.
        options: &[
            ("tracing_cpumask", cell.cpus.to_string()),
            ("tracing_thresh", HWLAT_THRESHOLD_US.to_string()),
            ("hwlat_detector/width", HWLAT_WIDTH_US.to_string()),
            ("hwlat_detector/window", HWLAT_WINDOW_US.to_string()),
            (HWLAT_MODE, "per-cpu".to_owned()),
        ],
        lines: windows.saturating_mul(2),
    };
    let Some(tracer) = there(Tracer::start(&request))? else { return Ok(None) };
    wait(Duration::from_nanos(cell.duration.ns()));
    let record = |cpu: u32| {
        let lost = tracer.lines(cpu).map_err(failed)?.1;
        let watched_us = tracer.ran(cpu).and_then(|ran| u64::try_from(ran.as_micros()).ok());
        let gaps = HwlatGaps { watched_us, threshold_us: HWLAT_THRESHOLD_US, lost, ..HwlatGaps::default() };
        Ok(HwlatRecord { cpu, gaps })
    };
    let mut known = cell.cpus.iter().map(record).collect::<Result<Vec<_>, CellError>>()?;
    taken(tracer, |line| trace_lines::hwlat(line, &mut known))?;
    Ok(Some(known))
}

fn has_all(tracer: &Tracer, cpus: &CpuSet, samples: u64) -> Result<bool, CellError> {
    for cpu in cpus.iter() {
        if tracer.lines(cpu).map_err(failed)?.0 < samples {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Stops a tracer, and passes all its lines to `read`.
fn taken(tracer: Tracer, mut read: impl FnMut(&str) -> Result<(), String>) -> Result<(), CellError> {
    let mut outcome = Ok(());
    let finished = tracer.finish(|line| {
        if outcome.is_ok() {
            outcome = read(line);
        }
    });
    finished.map_err(failed)?;
    outcome.map_err(CellError::Tracers)
}
