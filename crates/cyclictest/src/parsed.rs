//! Parsed values of the individual options.

use super::COMPAT;
use super::getopt::GivenOption;
use super::option_table::Id;
use super::option_values::{self, Layout, PolicyName};
use punctual_model::{ClockId, CpuSet, Span};

/// Options as given; the last of several of a kind counts.
#[derive(Debug, Default)]
pub(super) struct ParsedOptions {
    /// `-a`, with or without a set of CPUs.
    pub(super) affinity: Option<Option<CpuSet>>,
    pub(super) aligned: Option<Span>,
    pub(super) sec_aligned: Option<Span>,
    pub(super) break_above: Option<u64>,
    pub(super) clock: ClockId,
    pub(super) cpu_dma_latency_us: Option<u32>,
    pub(super) distance_us: Option<u64>,
    pub(super) duration: Option<Span>,
    pub(super) histfile: Option<String>,
    /// Number of rows, and whether there is a column for all threads.
    pub(super) histogram: Option<(u64, bool)>,
    pub(super) interval_us: u64,
    pub(super) json: Option<String>,
    pub(super) layout: Layout,
    pub(super) lock_memory: bool,
    pub(super) loops: Option<u64>,
    pub(super) main_affinity: Option<CpuSet>,
    pub(super) nanoseconds: bool,
    pub(super) notes: Vec<String>,
    pub(super) policy: Option<PolicyName>,
    pub(super) posix_timers: bool,
    pub(super) prio_spread: bool,
    pub(super) priority: Option<u64>,
    pub(super) quiet: bool,
    pub(super) reduce: u64,
    pub(super) refresh_on_max: bool,
    pub(super) relative: bool,
    pub(super) resolution: bool,
    pub(super) smp: bool,
    pub(super) system: bool,
    /// `-t`, with or without a number.
    pub(super) threads: Option<Option<usize>>,
    pub(super) trace_mark: bool,
    pub(super) smi: bool,
    pub(super) verbose: bool,
}

/// Limit of histogram rows: 10 s in us.
const MAX_ROWS: u64 = 10_000_000;
/// Limit of threads.
const MAX_THREADS: u64 = 1024;
/// Upper limit of atoi(3), as used by the original.
const MOST: u64 = i32::MAX as u64;

impl ParsedOptions {
    /// Parses the value of every option. Errors: one line: the option, its value, and the reason.
    pub(super) fn of(
        given: &[GivenOption<Id>],
        usable: &CpuSet,
        layout: Option<&str>,
    ) -> Result<ParsedOptions, String> {
        let layout = layout.map(|text| option_values::layout(COMPAT, text)).transpose()?;
        let mut typed = ParsedOptions {
            interval_us: 1000,
            reduce: 1,
            cpu_dma_latency_us: Some(0),
            layout: layout.unwrap_or_default(),
            ..ParsedOptions::default()
        };
        for option in given {
            typed.take(option, usable)?;
        }
        Ok(typed)
    }

    fn take(&mut self, GivenOption { id, typed, value }: &GivenOption<Id>, usable: &CpuSet) -> Result<(), String> {
        let text = value.as_deref().unwrap_or_default();
        let number = |what, range| option_values::number(typed, text, what, range);
        let offset =
            || value.as_ref().map_or(Ok(Span(0)), |_| number("offset in us", 0..=MOST).map(|us| Span(us * 1000)));
        match id {
            Id::Affinity => {
                let cpus = value.as_ref().map(|text| option_values::cpus(typed, text, usable)).transpose()?;
                self.affinity = Some(cpus);
            }
            Id::Aligned => self.aligned = Some(offset()?),
            Id::SecAligned => self.sec_aligned = Some(offset()?),
            Id::BreakTrace => self.break_above = Some(number("latency", 1..=MOST)?),
            Id::Clock => self.clock = option_values::clock(typed, text)?,
            Id::Compat => self.layout = option_values::layout(typed, text)?,
            Id::Debug => self.notes.push(format!("{typed} has no effect")),
            Id::DefaultSystem => {
                self.cpu_dma_latency_us = None;
                self.notes.push("WARN: not setting cpu_dma_latency from cyclictest".to_owned());
            }
            Id::Laptop => {
                self.cpu_dma_latency_us = None;
                self.notes.push("WARN: not setting cpu_dma_latency to save battery power".to_owned());
            }
            Id::Latency => {
                let us = number("latency in us", 0..=MOST)?;
                self.cpu_dma_latency_us = self.cpu_dma_latency_us.and(u32::try_from(us).ok());
            }
            Id::Distance => self.distance_us = Some(number("distance in us", 0..=100_000_000)?),
            Id::Duration => self.duration = Some(option_values::duration(typed, text)?),
            Id::Histfile => self.histfile = Some(path(typed, text)?),
            Id::Histogram | Id::HistOfAll => {
                let of_all = *id == Id::HistOfAll || self.histogram.is_some_and(|(_, of_all)| of_all);
                self.histogram = Some((number("number of rows", 1..=MAX_ROWS)?, of_all));
            }
            Id::Interval => self.interval_us = option_values::interval(typed, text)?,
            Id::Json => self.json = Some(path(typed, text)?),
            Id::LockAll => self.lock_memory = true,
            Id::Loops => self.loops = Some(number("number of loops", 0..=MOST)?),
            Id::MainAffinity => self.main_affinity = Some(option_values::cpus(typed, text, usable)?),
            Id::Nanoseconds => self.nanoseconds = true,
            Id::NoOperation => {
                let why =
                    if typed == "--notrace" { "no tracer is switched on" } else { "clock_nanosleep is the default" };
                self.notes.push(format!("{typed} has no effect: {why}"));
            }
            Id::Numa => {
                self.smp = true;
                self.notes.push(format!("{typed} is read as -S: a thread on each CPU"));
            }
            Id::Oscilloscope => self.reduce = number("reduction", 1..=MOST)?,
            Id::Policy => self.policy = Some(policy(typed, text)?),
            Id::PosixTimers => self.posix_timers = true,
            Id::Priority => self.priority = Some(number("priority", 0..=99)?),
            Id::PrioSpread => self.prio_spread = true,
            Id::Quiet => self.quiet = true,
            Id::RefreshOnMax => self.refresh_on_max = true,
            Id::Relative => self.relative = true,
            Id::Resolution => self.resolution = true,
            Id::Smp => self.smp = true,
            Id::System => self.system = true,
            Id::Threads => {
                let n = value.as_ref().map(|_| number("number of threads", 1..=MAX_THREADS)).transpose()?;
                self.threads = Some(n.map(|n| usize::try_from(n).unwrap_or(usize::MAX)));
            }
            Id::TraceMark => self.trace_mark = true,
            Id::Smi => self.smi = true,
            Id::Verbose => self.verbose = true,
            // Lines are always flushed, so there is nothing to unbuffer. The other options were handled before.
            Id::Unbuffered | Id::Help | Id::Version | Id::Refused(_) => {}
        }
        Ok(())
    }
}

fn path(typed: &str, text: &str) -> Result<String, String> {
    if text.is_empty() { Err(format!("{typed} needs a file name")) } else { Ok(text.to_owned()) }
}

fn policy(typed: &str, text: &str) -> Result<PolicyName, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "other" | "normal" => Ok(PolicyName::Other),
        "batch" => Ok(PolicyName::Batch),
        "idle" => Ok(PolicyName::Idle),
        "fifo" => Ok(PolicyName::Fifo),
        "rr" => Ok(PolicyName::RoundRobin),
        "deadline" => Err(format!("{typed}: unsupported: SCHED_DEADLINE; see `punctual measure deadline`")),
        other => Err(format!("{typed}: unknown policy `{other}` (known: other normal batch idle fifo rr)")),
    }
}
