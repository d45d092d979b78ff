//! Resolution of a command line into a complete description of a run on this machine.

use super::getopt;
use super::option_table::{Id, OPTIONS};
use super::option_values::{Layout, PolicyName};
use super::parsed::ParsedOptions;
use punctual_model::{ClockId, CpuSet, Method, Policy, RtPriority, Span};

/// Requested action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Invocation {
    Help,
    Version,
    Measure(Box<Options>),
}

/// Complete parameters of a measurement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) threads: Vec<ThreadOptions>,
    pub(super) method: Method,
    pub(super) start: Start,
    /// Break threshold: a larger value ends the run; in the unit of the output.
    pub(super) break_above: Option<u64>,
    /// Whether to stop tracing at the break.
    pub(super) trace_mark: bool,
    /// Whether to count system management interrupts.
    pub(super) smi: bool,
    pub(super) duration: Option<Span>,
    /// Number of wake-ups of the first thread that ends the run.
    pub(super) loops: Option<u64>,
    pub(super) histogram: Option<HistogramOptions>,
    /// Destination of the JSON: a path, or `-`.
    pub(super) json: Option<String>,
    /// Whether values are in ns, not us.
    pub(super) nanoseconds: bool,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    /// `-v` prints the largest of so many values.
    pub(super) reduce: u64,
    pub(super) refresh_on_max: bool,
    pub(super) resolution: bool,
    pub(super) lock_memory: bool,
    /// CPUs given by `-a`.
    pub(super) affinity: Option<CpuSet>,
    pub(super) main_affinity: Option<CpuSet>,
    /// Value held in `/dev/cpu_dma_latency`, us.
    pub(super) cpu_dma_latency_us: Option<u32>,
    pub(super) layout: Layout,
    /// Notes for stderr: one line each.
    pub(super) notes: Vec<String>,
}

/// One measured thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadOptions {
    /// The CPU to pin to; `None`: any CPU that this process may use.
    pub(super) cpu: Option<u32>,
    pub(super) policy: Policy,
    /// Priority as printed: 0 unless the policy is real-time.
    pub(super) priority: u32,
    pub(super) interval_us: u64,
}

/// Parameters of the histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HistogramOptions {
    /// Number of rows from 0 on; larger values are overflows.
    pub(super) rows: u64,
    /// Whether there is a column for the sum of all threads.
    pub(super) of_all: bool,
    /// Destination; `None`: stdout.
    pub(super) file: Option<String>,
}

/// Start times of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Evenly spread over the first thread's interval, so that threads do not wake together. The original starts each
    /// thread when it is created, which spreads them by chance.
    Spread,
    /// Together, with this offset between consecutive threads.
    Aligned(Span),
    /// At a full second of the clock, plus this offset.
    SecAligned(Span),
}

/// Parses a command line without the program's name. `usable` are the CPUs that this process may use; `layout` is the
/// layout from the environment. Errors: one line: reason and advice.
pub(super) fn read(words: &[String], usable: &CpuSet, layout: Option<&str>) -> Result<Invocation, String> {
    if let Some(word) = words.iter().find(|word| word.starts_with("-smp")) {
        return Err(format!(
            "ambiguous option `{word}`: it means -s (nanosleep), -m and -p; for one thread on each CPU use \
             --smp or -S, like -S -m -p80"
        ));
    }
    let given = getopt::options(OPTIONS, words)?;
    for option in &given {
        match option.id {
            Id::Help => return Ok(Invocation::Help),
            Id::Version => return Ok(Invocation::Version),
            Id::Refused(instead) => return Err(format!("unsupported: {}; {instead}", option.typed)),
            _ => {}
        }
    }
    let typed = ParsedOptions::of(&given, usable, layout)?;
    decide(typed, usable).map(|options| Invocation::Measure(Box::new(options)))
}

/// Combines the parsed options into the parameters of a measurement.
fn decide(typed: ParsedOptions, usable: &CpuSet) -> Result<Options, String> {
    let mut notes = typed.notes;
    let (mut affinity, mut asked_threads) = (typed.affinity, typed.threads);
    if typed.smp {
        if asked_threads.take().is_some() {
            notes.push("WARN: -t ignored due to smp mode".to_owned());
        }
        if affinity.take().is_some() {
            notes.push("WARN: -a ignored due to smp mode".to_owned());
        }
        asked_threads = Some(None);
    }
    // `-a` alone means all CPUs, pinned; without it only the old layout pins.
    let pins = typed.smp || affinity.is_some() || typed.layout == Layout::V2_4;
    let affinity = affinity.flatten();
    let cpus: Vec<u32> = affinity.as_ref().unwrap_or(usable).iter().collect();
    let n_threads = match asked_threads {
        None => 1,
        Some(None) => cpus.len(),
        Some(Some(n)) => n,
    };
    if typed.histogram.is_some() && typed.distance_us.is_some() {
        notes.push("WARN: distance is ignored and set to 0, if histogram enabled".to_owned());
    }
    // All threads of a histogram have one interval, as in the original.
    let distance_us = if typed.histogram.is_some() { 0 } else { typed.distance_us.unwrap_or(500) };
    let last_us = distance_us.saturating_mul(n_threads.saturating_sub(1) as u64).saturating_add(typed.interval_us);
    if last_us > 100_000_000 {
        return Err(format!("-d: the last of {n_threads} threads has an interval of {last_us} us; the limit is 100 s"));
    }
    let policies = policies(typed.policy, typed.priority, typed.prio_spread, n_threads, &mut notes)?;
    if pins && n_threads > cpus.len() && !cpus.is_empty() {
        let shared: CpuSet = cpus.iter().copied().take(n_threads - cpus.len()).collect();
        notes.push(format!(
            "WARN: several threads on CPU {shared} delay each other; use one a CPU: -S, or a smaller -t"
        ));
    }
    let threads = policies.into_iter().enumerate().map(|(index, (policy, priority))| ThreadOptions {
        cpu: cpus.get(index % cpus.len().max(1)).copied().filter(|_| pins),
        policy,
        priority,
        interval_us: typed.interval_us + distance_us * index as u64,
    });
    let histogram =
        typed.histogram.map(|(rows, of_all)| HistogramOptions { rows, of_all, file: typed.histfile.clone() });
    if histogram.is_none() && typed.histfile.is_some() {
        return Err("--histfile requires -h or -H".to_owned());
    }
    if typed.trace_mark && typed.break_above.is_none() {
        notes.push("--tracemark requires -b".to_owned());
    }
    if typed.reduce > 1 && !typed.verbose {
        return Err("-o is only meaningful with -v".to_owned());
    }
    Ok(Options {
        threads: threads.collect(),
        method: method(typed.clock, typed.system, typed.posix_timers, typed.relative)?,
        start: start(typed.aligned, typed.sec_aligned)?,
        break_above: typed.break_above,
        trace_mark: typed.trace_mark,
        smi: typed.smi,
        duration: typed.duration.filter(|span| *span > Span(0)),
        loops: typed.loops.filter(|loops| *loops > 0),
        histogram,
        json: typed.json,
        nanoseconds: typed.nanoseconds,
        quiet: typed.quiet,
        verbose: typed.verbose,
        reduce: typed.reduce,
        refresh_on_max: typed.refresh_on_max,
        resolution: typed.resolution,
        lock_memory: typed.lock_memory,
        affinity,
        main_affinity: typed.main_affinity,
        cpu_dma_latency_us: typed.cpu_dma_latency_us,
        layout: typed.layout,
        notes,
    })
}

fn method(clock: ClockId, system: bool, posix_timers: bool, relative: bool) -> Result<Method, String> {
    match (system, posix_timers) {
        (true, true) => Err("-s and -x conflict; use one of them".to_owned()),
        (true, false) if clock != ClockId::Monotonic => {
            Err("-s: nanosleep uses the monotonic clock; leave out -c, or -s".to_owned())
        }
        (true, false) => Ok(Method::Nanosleep),
        (false, true) if relative => Err("-r does not apply to a periodic timer; leave out -r, or -x".to_owned()),
        (false, true) => Ok(Method::PosixTimer { clock }),
        (false, false) => Ok(Method::ClockNanosleep { clock, relative }),
    }
}

fn start(aligned: Option<Span>, sec_aligned: Option<Span>) -> Result<Start, String> {
    match (aligned, sec_aligned) {
        (Some(_), Some(_)) => Err("--aligned and --secaligned conflict; use one of them".to_owned()),
        (Some(offset), None) => Ok(Start::Aligned(offset)),
        (None, Some(offset)) => Ok(Start::SecAligned(offset)),
        (None, None) => Ok(Start::Spread),
    }
}

/// Policy and printed priority of each thread.
fn policies(
    named: Option<PolicyName>,
    priority: Option<u64>,
    spread: bool,
    n_threads: usize,
    notes: &mut Vec<String>,
) -> Result<Vec<(Policy, u32)>, String> {
    let normal = match named {
        Some(PolicyName::Other) => Some(("other", Policy::OTHER)),
        Some(PolicyName::Batch) => Some(("batch", Policy::Batch)),
        Some(PolicyName::Idle) => Some(("idle", Policy::Idle)),
        None if priority.is_none() && !spread => Some(("other", Policy::OTHER)),
        _ => None,
    };
    if let Some((name, policy)) = normal {
        if priority.is_some_and(|priority| priority > 0) || spread {
            return Err(format!(
                "--policy={name} has no priority; leave out -p and --priospread, or use --policy=fifo"
            ));
        }
        return Ok(vec![(policy, 0); n_threads]);
    }
    let first = match priority {
        Some(priority @ 1..) => priority,
        Some(0) | None => {
            let default = n_threads as u64 + 1;
            notes.push(format!("defaulting realtime priority to {default}"));
            if named.is_none() && priority.is_none() {
                notes.push("policy and priority don't match: setting policy to SCHED_FIFO".to_owned());
            }
            default
        }
    };
    let of_thread = |index: usize| {
        let priority = if spread { first.checked_sub(index as u64) } else { Some(first) };
        let priority = priority.and_then(|priority| RtPriority::new(u32::try_from(priority).ok()?));
        let priority = priority.ok_or_else(|| {
            format!("-p: {n_threads} threads from priority {first} exceed the range 1 to 99; use another -p")
        })?;
        let policy =
            if named == Some(PolicyName::RoundRobin) { Policy::RoundRobin(priority) } else { Policy::Fifo(priority) };
        Ok((policy, priority.get()))
    };
    (0..n_threads).map(of_thread).collect()
}

#[cfg(test)]
mod tests;
