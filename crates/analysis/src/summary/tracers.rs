//! Results of the kernel's tracers for a cell, over all its blocks and CPUs.

use crate::stats::quantile::quantile;
use crate::summary::pool::Pool;
use punctual_model::{Histogram, HwlatGaps, HwlatRecord, Level, OsnoiseRecord, Phase, TimerlatRecord, TracersRecord};
use serde::Serialize;

/// Results of `timerlat`, `osnoise` and `hwlat` after the blocks of a cell, under its load.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Tracers {
    /// `null`: the kernel has no such tracer.
    pub timerlat: Option<Timerlat>,
    /// `null`: the kernel has no such tracer, or none of its samples is complete.
    pub osnoise: Option<Osnoise>,
    /// `null`: the kernel has no such tracer.
    pub hwlat: Option<HwlatGaps>,
}

/// Latency of the kernel's own timer, and of the thread that it wakes.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Timerlat {
    /// Until the timer's handler.
    pub irq: TracedLatency,
    /// Until the thread; it includes the part until the handler.
    pub thread: TracedLatency,
    /// Lines lost by the trace buffer.
    pub lost: u64,
}

/// Stages of every wake-up of a traced cell. For timers the two of timerlat, on any kernel with timer events; for
/// answers and devices those within this machine.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Stages {
    /// Until the timer's handler; `null` without a timer.
    pub irq: Option<TracedLatency>,
    /// From the interrupt until the wake-up of the thread; `null` for timers.
    pub interrupt_to_wakeup: Option<TracedLatency>,
    /// From that wake-up until the thread is switched in; `null` for timers.
    pub wakeup_to_switch: Option<TracedLatency>,
    /// Until the thread runs, which is the latency itself; it includes the part until the handler.
    pub thread: TracedLatency,
}

impl Stages {
    /// The existing stages, each with its name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &TracedLatency)> {
        let known = [
            ("irq: to its interrupt", self.irq.as_ref()),
            (Phase::InterruptToWakeup.name(), self.interrupt_to_wakeup.as_ref()),
            (Phase::WakeupToSwitch.name(), self.wakeup_to_switch.as_ref()),
            ("thread: to its clock", Some(&self.thread)),
        ];
        known.into_iter().filter_map(|(name, stage)| Some((name, stage?)))
    }
}

/// The stages of a cell; `None` without any.
pub(crate) fn stages(pool: &Pool<'_>) -> Option<Stages> {
    let [mut irq, mut interrupt_to_wakeup, mut wakeup_to_switch, mut thread]: [Histogram; 4] = Default::default();
    for record in pool.entries.iter().filter_map(|entry| entry.record.explained.as_ref()) {
        record.irq.iter().for_each(|seen| irq.merge(&seen.histogram));
        record.answers.iter().for_each(|seen| interrupt_to_wakeup.merge(&seen.interrupt_to_wakeup));
        record.answers.iter().for_each(|seen| wakeup_to_switch.merge(&seen.wakeup_to_switch));
    }
    pool.threads().for_each(|(_, of_cpu)| thread.merge(&of_cpu.histogram));
    let known = |histogram: &Histogram| (histogram.n > 0).then(|| latency(histogram));
    let [irq, interrupt_to_wakeup, wakeup_to_switch] = [&irq, &interrupt_to_wakeup, &wakeup_to_switch].map(known);
    let is_any = irq.is_some() || interrupt_to_wakeup.is_some();
    is_any.then(|| Stages { irq, interrupt_to_wakeup, wakeup_to_switch, thread: latency(&thread) })
}

/// A distribution reported by a tracer.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TracedLatency {
    /// Number of its lines.
    pub samples: u64,
    /// Smallest, ns; `null` without samples.
    pub min_ns: Option<i64>,
    /// Median, ns; `null` without samples.
    pub p50_ns: Option<i64>,
    /// 99 % are at most this, ns; `null` without samples.
    pub p99_ns: Option<i64>,
    /// Largest, ns; `null` without samples.
    pub max_ns: Option<i64>,
}

/// Noise: time for which a thread that is always ready did not run.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Osnoise {
    /// Complete samples.
    pub samples: u64,
    /// Their length, us.
    pub runtime_us: u64,
    /// Time lost to noise, us.
    pub noise_us: u64,
    /// The same, percent of the runtime.
    pub noise_percent: f64,
    /// The longest interference, us.
    pub max_single_us: u64,
    /// Interferences without any kernel activity as their cause.
    pub hardware: u64,
    /// By non-maskable interrupts.
    pub nmi: u64,
    /// By interrupts.
    pub irq: u64,
    /// By soft interrupts.
    pub softirq: u64,
    /// By other threads.
    pub thread: u64,
}

/// Pools the results of the blocks; `None` if not requested.
pub(crate) fn of(pool: &Pool<'_>) -> Option<Tracers> {
    let seen: Vec<&TracersRecord> = pool.entries.iter().filter_map(|entry| entry.record.tracers.as_ref()).collect();
    (!seen.is_empty()).then(|| Tracers {
        timerlat: timerlat(seen.iter().filter_map(|seen| seen.timerlat.as_deref())),
        osnoise: osnoise(seen.iter().filter_map(|seen| seen.osnoise.as_deref())),
        hwlat: hwlat(seen.iter().filter_map(|seen| seen.hwlat.as_deref()).flatten()),
    })
}

fn hwlat<'a>(records: impl Iterator<Item = &'a HwlatRecord>) -> Option<HwlatGaps> {
    records.map(|record| record.gaps.clone()).reduce(|sum, gaps| HwlatGaps {
        watched_us: sum.watched_us.zip(gaps.watched_us).map(|(sum, us)| sum.saturating_add(us)),
        threshold_us: sum.threshold_us.max(gaps.threshold_us),
        gaps: sum.gaps.saturating_add(gaps.gaps),
        longest_us: sum.longest_us.max(gaps.longest_us),
        nmi: sum.nmi.saturating_add(gaps.nmi),
        lost: sum.lost.saturating_add(gaps.lost),
    })
}

fn timerlat<'a>(records: impl Iterator<Item = &'a [TimerlatRecord]>) -> Option<Timerlat> {
    let (mut irq, mut thread, mut lost, mut is_there) = (Histogram::default(), Histogram::default(), 0, false);
    for record in records {
        is_there = true;
        for of_cpu in record {
            irq.merge(&of_cpu.irq);
            thread.merge(&of_cpu.thread);
            lost += of_cpu.lost;
        }
    }
    is_there.then(|| Timerlat { irq: latency(&irq), thread: latency(&thread), lost })
}

pub(crate) fn latency(histogram: &Histogram) -> TracedLatency {
    let at = |level: Level| quantile(histogram, level.p());
    TracedLatency {
        samples: histogram.n,
        min_ns: histogram.min_ns,
        p50_ns: at(Level::P50),
        p99_ns: at(Level::P99),
        max_ns: histogram.max_ns,
    }
}

fn osnoise<'a>(records: impl Iterator<Item = &'a [OsnoiseRecord]>) -> Option<Osnoise> {
    let all: Vec<&OsnoiseRecord> = records.flatten().collect();
    let sum = |of: fn(&OsnoiseRecord) -> u64| all.iter().map(|record| of(record)).fold(0, u64::saturating_add);
    let (runtime_us, noise_us) = (sum(|record| record.runtime_us), sum(|record| record.noise_us));
    Some(Osnoise {
        samples: sum(|record| record.samples),
        max_single_us: all.iter().filter_map(|record| record.max_single_us).max()?,
        noise_percent: if runtime_us == 0 { 0.0 } else { 100.0 * noise_us as f64 / runtime_us as f64 },
        runtime_us,
        noise_us,
        hardware: sum(|record| record.hardware),
        nmi: sum(|record| record.nmi),
        irq: sum(|record| record.irq),
        softirq: sum(|record| record.softirq),
        thread: sum(|record| record.thread),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::RunBuilder;

    /// Two blocks of a cell whose records have these.
    fn run(seen: [Option<TracersRecord>; 2]) -> Option<Tracers> {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        for (block, seen) in (0..).zip(seen) {
            run.measure(block, 0, |_, _| 5_000);
            run.entries.last_mut().unwrap().record.tracers = seen;
        }
        summarise(&run.header, &run.entries).cells[0].tracers.clone()
    }

    fn seen(cpu: u32, irq: &[i64], thread: &[i64], noise_us: u64) -> TracersRecord {
        let timerlat = TimerlatRecord { cpu, irq: Histogram::of(irq), thread: Histogram::of(thread), lost: 1 };
        let osnoise = OsnoiseRecord {
            cpu,
            samples: 1,
            runtime_us: 1_000,
            noise_us,
            max_single_us: Some(noise_us / 2),
            irq: 4,
            ..OsnoiseRecord::default()
        };
        let gaps = HwlatGaps {
            watched_us: (noise_us < 99).then_some(500),
            threshold_us: 10,
            gaps: noise_us / 10,
            longest_us: (noise_us > 10).then_some(noise_us),
            ..HwlatGaps::default()
        };
        let hwlat = HwlatRecord { cpu, gaps };
        TracersRecord { timerlat: Some(vec![timerlat]), osnoise: Some(vec![osnoise]), hwlat: Some(vec![hwlat]) }
    }

    #[test]
    fn blocks_add_up() {
        let Tracers { timerlat, osnoise, hwlat } =
            run([Some(seen(0, &[10, 20], &[100], 10)), Some(seen(0, &[30], &[300], 30))]).unwrap();
        let all =
            HwlatGaps { watched_us: Some(1_000), threshold_us: 10, gaps: 4, longest_us: Some(30), nmi: 0, lost: 0 };
        assert_eq!(hwlat, Some(all));
        // What one record does not know, no sum knows.
        let unknown = run([Some(seen(0, &[], &[], 10)), Some(seen(0, &[], &[], 99))]).unwrap().hwlat.unwrap();
        assert_eq!((unknown.watched_us, unknown.gaps), (None, 10));
        let (timerlat, osnoise) = (timerlat.unwrap(), osnoise.unwrap());
        let irq = TracedLatency { samples: 3, min_ns: Some(10), p50_ns: Some(20), p99_ns: Some(30), max_ns: Some(30) };
        assert_eq!((timerlat.irq, timerlat.thread.max_ns, timerlat.lost), (irq, Some(300), 2));
        assert_eq!((osnoise.samples, osnoise.noise_us, osnoise.max_single_us, osnoise.irq), (2, 40, 15, 8));
        assert!((osnoise.noise_percent - 2.0).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_asked_for_or_is_not_in_the_kernel_is_unknown() {
        assert_eq!(run([None, None]), None);
        let none = TracersRecord::default();
        assert_eq!(run([Some(none.clone()), Some(none)]), Some(Tracers { timerlat: None, osnoise: None, hwlat: None }));
        // A tracer without output exists, and has no numbers.
        let osnoise = Some(vec![OsnoiseRecord::default()]);
        let mute = TracersRecord { timerlat: Some(Vec::new()), osnoise, hwlat: None };
        let Tracers { timerlat, osnoise, .. } = run([Some(mute), None]).unwrap();
        assert_eq!((timerlat.unwrap().irq.max_ns, osnoise), (None, None));
    }
}
