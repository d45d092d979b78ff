//! Setup of machine and process before a run, and messages about it.

use super::options::{Options, Start, ThreadOptions};
use super::text;
use punctual_host::{DmaLatency, HostFs, SmiCounter};
use punctual_model::{ClockTime, CpuSet, Method, Nanos, Period, Policy, Span};
use punctual_rt::{Settings, Team, ThreadSpec};
use punctual_sys::counter::Counter;
use std::error::Error;
use std::fmt::Write;

/// Capacity of a log: the samples of 4 s, longer than the drain interval, within these bounds.
const LOG_SECONDS: u64 = 4;
const MIN_LOG_CAPACITY: u64 = 1 << 10;
const MAX_LOG_CAPACITY: u64 = 1 << 18;
/// Time from opening the barrier to the first interval: every thread reaches its first wait within it.
const LEAD: Span = Span(2_000_000);
/// Minimum time before a start at a full second.
const MIN_SECOND_LEAD: Span = Span(100_000_000);

/// Locks memory, and verifies that the kernel did.
pub(super) fn lock_memory() -> Result<(), String> {
    punctual_sys::memory::use_one_arena();
    punctual_sys::memory::lock_all()
        .map_err(|err| format!("cannot lock memory: {err}; raise `ulimit -l`, or run as root"))?;
    if punctual_host::memory_locked_bytes_of(std::process::id()) == Some(0) {
        return Err("cannot lock memory: the kernel reports none locked (VmLck)".to_owned());
    }
    Ok(())
}

/// Holds `/dev/cpu_dma_latency` if requested. Without permission a warning is added to `notes`, as the original goes
/// on, too.
pub(super) fn hold_dma_latency(options: &Options, notes: &mut Vec<String>) -> Result<Option<DmaLatency>, String> {
    let Some(us) = options.cpu_dma_latency_us else { return Ok(None) };
    if !DmaLatency::is_permitted() {
        notes.push("WARN: cannot write to /dev/cpu_dma_latency: idle states are not limited".to_owned());
        return Ok(None);
    }
    DmaLatency::hold(us).map(|(held, _)| Some(held))
}

/// Lines of `-v` about the CPUs, before the run.
pub(super) fn about_cpus(options: &Options) -> String {
    let (present, online) = punctual_host::configured_cpus(&HostFs::here());
    let mut text = String::new();
    for (label, count) in [("Max CPUs", present), ("Online CPUs", online)] {
        if let Some(count) = count {
            let _ = writeln!(text, "{label} = {count}");
        }
    }
    if let Some(cpus) = &options.affinity {
        let _ = writeln!(text, "Using {} cpus.", cpus.len());
    }
    text
}

/// Lines of `-v` about the threads, before the run.
pub(super) fn about_threads(options: &Options) -> String {
    let mut text = String::new();
    for (index, thread) in options.threads.iter().enumerate() {
        if let Some(cpu) = thread.cpu.filter(|_| options.affinity.is_some()) {
            let _ = writeln!(text, "Thread {index} using cpu {cpu}.");
        }
        // The original prints the interval of the next thread.
        let _ = writeln!(text, "Thread {index} Interval: {}", thread.interval_us);
    }
    text
}

/// Reads the clock repeatedly and reports the shortest step.
pub(super) fn resolution(method: Method, verbose: bool) -> Vec<String> {
    /// About a millisecond of reading.
    const READINGS: usize = 20_000;
    let clock = method.clock();
    let readings: Vec<ClockTime> = (0..READINGS).map(|_| punctual_sys::clock::now(clock)).collect();
    let steps = readings.windows(2).map(|pair| pair[1].since(pair[0]).0).filter(|step| *step > 0);
    let stated = punctual_sys::clock::resolution(clock).ns();
    let Some(measured) = steps.min().map(i64::cast_unsigned).filter(|measured| verbose || *measured > stated) else {
        return Vec::new();
    };
    vec![
        format!("WARN: reported clock resolution: {stated} nsec"),
        format!("WARN: measured clock resolution approximately: {measured} nsec"),
    ]
}

/// Warnings about threads that delay others: those of the highest priority, and those of other programs that spin.
pub(super) fn unfit(policy: Policy) -> Vec<String> {
    let is_highest = matches!(policy, Policy::Fifo(priority) | Policy::RoundRobin(priority) if priority.get() == 99);
    let highest = "WARN: priority 99 delays interrupt threads and the kernel's migration threads; use 98 at most";
    let spinning = punctual_host::spinning_tasks();
    let spinning = spinning.iter().map(|task| format!("WARN: {task}; it may be left over: kill {}", task.tid));
    is_highest.then(|| highest.to_owned()).into_iter().chain(spinning).collect()
}

/// The SMI counters of the threads' CPUs, each with its present count, if requested.
pub(super) fn smi_counters(options: &Options) -> Result<Vec<(SmiCounter, u64)>, String> {
    if !options.smi {
        return Ok(Vec::new());
    }
    let counter = |thread: &ThreadOptions| {
        let cpu = thread.cpu.ok_or("--smi counts per CPU; pin the threads with -a")?;
        let counter = SmiCounter::open(cpu).map_err(|err| format!("--smi: {err}"))?;
        let count = counter.count().map_err(|err| format!("--smi: CPU {cpu}: {err}"))?;
        Ok((counter, count))
    };
    options.threads.iter().map(counter).collect()
}

pub(super) fn period(thread: &ThreadOptions) -> Result<Period, punctual_model::SpanError> {
    Period::try_from(Span(thread.interval_us.saturating_mul(1000)))
}

/// Start of each thread's first interval, relative to the start of the run.
pub(super) fn phases(options: &Options) -> Vec<Span> {
    let n = options.threads.len().max(1) as u64;
    let first_ns = options.threads.first().map_or(0, |thread| thread.interval_us.saturating_mul(1000));
    (0..n)
        .map(|index| match options.start {
            Start::Spread => Span(first_ns * index / n),
            Start::Aligned(offset) => Span(offset.ns().saturating_mul(index)),
            Start::SecAligned(offset) => offset,
        })
        .collect()
}

/// Start time of the run, on the clock of its method.
pub(super) fn start_time(options: &Options) -> ClockTime {
    let now = punctual_sys::clock::now(options.method.clock());
    match options.start {
        Start::SecAligned(_) => {
            let second = Span::SECOND.ns();
            ClockTime(now.plus(MIN_SECOND_LEAD).0.div_ceil(second).saturating_mul(second))
        }
        Start::Spread | Start::Aligned(_) => now.plus(LEAD),
    }
}

/// Creates the threads, verifies their settings, and leaves them at the barrier. The first cycle of a thread is due one
/// interval and its phase after the barrier opens.
pub(super) fn spawn_threads(options: &Options, usable: &CpuSet) -> Result<Team, Box<dyn Error>> {
    let mut tasks = Vec::new();
    for (thread, phase) in options.threads.iter().zip(phases(options)) {
        let period = period(thread)?;
        let cpus = thread.cpu.map_or_else(|| usable.clone(), |cpu| [cpu].into_iter().collect());
        let (policy, method, counter) = (thread.policy, options.method, Counter::Clock);
        let settings = Settings { policy, timer_slack: None, method, period, counter, movable: None };
        tasks.push(ThreadSpec {
            cpu: thread.cpu.unwrap_or(0),
            cpus,
            settings,
            phase: phase_of_first_cycle(phase, period),
            cycles: 0..u64::MAX,
            link: None,
        });
    }
    let unit_ns = if options.nanoseconds { 1 } else { 1000 };
    // Above N whole units means N + 1 units or more.
    let stop_above = |limit: u64| i64::try_from((limit + 1).saturating_mul(unit_ns) - 1).unwrap_or(i64::MAX);
    let stop_above = Nanos(options.break_above.map_or(i64::MAX, stop_above));
    let shortest = tasks.iter().map(|task| task.settings.period.ns()).min().unwrap_or(1);
    let room = (LOG_SECONDS * Span::SECOND.ns() / shortest).clamp(MIN_LOG_CAPACITY, MAX_LOG_CAPACITY);
    // A thread makes at most this many loops, except for those before it is ended.
    let room = options.loops.map_or(room, |loops| room.min(loops.max(MIN_LOG_CAPACITY)));
    spawn(tasks, stop_above, usize::try_from(room)?)
}

/// The threads at the barrier. Errors: as [`Team::spawn`]; of a refused policy, how to allow it.
pub(super) fn spawn(tasks: Vec<ThreadSpec>, stop_above: Nanos, room: usize) -> Result<Team, Box<dyn Error>> {
    Team::spawn(tasks, stop_above, room, None).map_err(|err| match err.refused_policy() {
        Some(policy) => punctual_host::how_to_allow(policy).into(),
        None => err.into(),
    })
}

/// Due time of a thread's first cycle, relative to the start.
pub(super) fn phase_of_first_cycle(phase: Span, period: Period) -> Span {
    Span(phase.ns().saturating_add(period.ns()))
}

/// Sets the affinity of the calling thread, which prints: as requested, or off the measured CPUs if there are others.
/// With a trace to stop it gets the highest policy of the measured threads, to run as soon as they do.
pub(super) fn place_main(options: &Options, usable: &CpuSet) -> Result<(), Box<dyn Error>> {
    let measured = options.threads.iter().filter_map(|thread| thread.cpu).collect();
    let cpus = options.main_affinity.clone().unwrap_or_else(|| usable.minus(&measured));
    if !cpus.is_empty() {
        punctual_sys::sched::set_affinity(0, &cpus).map_err(|err| format!("--mainaffinity {cpus}: {err}"))?;
    }
    if options.trace_mark && options.break_above.is_some() {
        let policies = options.threads.iter().map(|thread| thread.policy);
        if let Some(policy) = policies.filter(|policy| policy.is_realtime()).max() {
            punctual_sys::sched::set_policy(0, policy).map_err(|err| format!("--tracemark: {policy}: {err}"))?;
        }
    }
    Ok(())
}

/// The line on idle states, if they are limited.
pub(super) fn dma_line(options: &Options, held: Option<&DmaLatency>) -> String {
    held.and(options.cpu_dma_latency_us).map_or_else(String::new, text::dma_latency)
}
