//! The time that each CPU of a cell was taken from a thread that never waits.

use crate::stats::rate::poisson_interval;
use crate::summary::pool::Pool;
use punctual_model::{MachineSecond, NoiseRecord, Order, Span, ThreadRecord, Usage};
use serde::Serialize;
use std::collections::BTreeMap;

/// Lengths above which gaps are counted, ns, besides the threshold.
const ABOVE_NS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// Gaps of a loop that never waits, over all blocks of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NoiseSummary {
    /// Each measured CPU whose loop ended, the one that lost the largest share first.
    pub cpus: Vec<CpuNoise>,
    /// Loops that did not end, of all blocks.
    pub not_ended: u64,
    /// Timer interrupts of each measured CPU a second: the ticks really seen. `null`: not readable.
    pub timer_interrupts_per_second: Option<f64>,
    /// All interrupts of each measured CPU a second. `null`: not readable.
    pub interrupts_per_second: Option<f64>,
    /// Soft interrupts of each measured CPU a second. `null`: not readable.
    pub soft_interrupts_per_second: Option<f64>,
    /// Time that the hypervisor took from all CPUs of the machine, ms. `null`: not readable.
    pub steal_ms: Option<u64>,
    /// System management interrupts of the machine. `null`: not readable, or only by interrupting a measured CPU.
    pub smis: Option<u64>,
}

/// The gaps of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CpuNoise {
    /// The CPU.
    pub cpu: u32,
    /// The counter that was read: `tsc`, `cntvct_el0`, `clock_gettime`.
    pub counter: String,
    /// Longest gap that counts as none, ns: that of the block with the highest one.
    pub threshold_ns: u64,
    /// Time of one reading, ns: the longest median of its blocks.
    pub reading_ns: f64,
    /// Number of readings.
    pub readings: u64,
    /// Number of gaps.
    pub gaps: u64,
    /// Sum of their lengths, ns.
    pub lost_ns: u64,
    /// Time from the first to the last reading, ns.
    pub observed_ns: u64,
    /// `lost_ns` as a share of `observed_ns`, 0 to 1.
    pub lost_share: f64,
    /// The longest gap, ns; `null` without one.
    pub longest_ns: Option<i64>,
    /// Times that the thread was switched out against its will. `null`: not readable.
    pub involuntary_switches: Option<u64>,
    /// Rates of gaps above some lengths, the threshold first.
    pub above: Vec<GapRate>,
}

/// How often gaps longer than a length come, with the exact 95 % limits of a Poisson rate: without any gap the upper
/// one alone. Gaps that come in groups are spread wider.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GapRate {
    /// The length, ns.
    pub above_ns: u64,
    /// Number of longer gaps.
    pub gaps: u64,
    /// Gaps an hour.
    pub per_hour: f64,
    /// Lower limit; 0 without a gap.
    pub lower_per_hour: f64,
    /// Upper limit.
    pub upper_per_hour: f64,
}

impl GapRate {
    /// The rate of so many gaps in the time `observed`.
    pub(super) fn of(above_ns: u64, gaps: u64, observed: Span) -> GapRate {
        let hours = observed.as_secs_f64() / 3600.0;
        let (lower_per_hour, upper_per_hour) = poisson_interval(gaps as f64, hours);
        GapRate { above_ns, gaps, per_hour: gaps as f64 / hours, lower_per_hour, upper_per_hour }
    }
}

/// The gaps of a cell; `None` for every other method, or without a record.
pub(super) fn of(pool: &Pool<'_>) -> Option<NoiseSummary> {
    if !pool.cell.task.is_noise() || pool.entries.is_empty() {
        return None;
    }
    let mut by_cpu: BTreeMap<u32, Vec<(&ThreadRecord, &NoiseRecord)>> = BTreeMap::new();
    for (_, thread) in pool.threads() {
        by_cpu.entry(thread.cpu).or_default().extend(thread.noise.iter().map(|noise| (thread, noise)));
    }
    let mut cpus: Vec<CpuNoise> = by_cpu.iter().filter_map(|(cpu, records)| of_cpu(*cpu, records)).collect();
    cpus.order_by(|a, b| b.lost_share.total_cmp(&a.lost_share));
    let seconds = || pool.entries.iter().flat_map(|entry| &entry.record.machine);
    let sum = |of: fn(&MachineSecond) -> Option<u64>| {
        seconds().next()?;
        seconds().map(of).sum::<Option<u64>>()
    };
    let elapsed = seconds().map(|second| second.elapsed.as_secs_f64()).sum::<f64>();
    let per_second = |of: fn(&MachineSecond) -> Option<u64>| {
        Some(sum(of)? as f64 / elapsed / pool.cell.cpus.len() as f64).filter(|rate| rate.is_finite())
    };
    Some(NoiseSummary {
        cpus,
        not_ended: pool.sum(|thread| u64::from(thread.noise.is_none())),
        timer_interrupts_per_second: per_second(|second| second.interrupts.map(|_| timer_interrupts(second))),
        interrupts_per_second: per_second(|second| Some(second.interrupts_by_kind.values().sum())),
        soft_interrupts_per_second: per_second(|second| Some(second.soft_interrupts_by_kind.values().sum())),
        steal_ms: sum(|second| second.steal_ms),
        smis: sum(|second| second.smis),
    })
}

/// Interrupts of the CPUs' own timers: `LOC` of x86, `26:arch_timer`, `5:riscv-timer` (proc_interrupts(5)).
fn timer_interrupts(second: &MachineSecond) -> u64 {
    let is_timer = |name: &str| name == "LOC" || name.ends_with("timer");
    second.interrupts_by_kind.iter().filter(|(name, _)| is_timer(name)).map(|(_, n)| n).sum()
}

fn of_cpu(cpu: u32, records: &[(&ThreadRecord, &NoiseRecord)]) -> Option<CpuNoise> {
    let noises = || records.iter().map(|(_, noise)| *noise);
    let sum = |of: fn(&NoiseRecord) -> u64| noises().map(of).fold(0, u64::saturating_add);
    let threshold_ns = noises().map(|noise| noise.threshold.ns()).max()?;
    let observed_ns = sum(|noise| noise.observed.ns());
    let (gaps, lost_ns) = (sum(|noise| noise.gaps), sum(|noise| noise.lost.ns()));
    let longer = |ns: u64| records.iter().map(|(thread, _)| thread.histogram.count_above(ns)).sum();
    let lengths = ABOVE_NS.into_iter().filter(|ns| *ns > threshold_ns).map(|ns| (ns, longer(ns)));
    let rate = |(above_ns, gaps): (u64, u64)| GapRate::of(above_ns, gaps, Span(observed_ns));
    let switches = |usage: Usage| usage.involuntary_switches;
    Some(CpuNoise {
        cpu,
        counter: noises().next()?.counter.clone(),
        threshold_ns,
        reading_ns: noises().map(|noise| noise.reading_ps).max()? as f64 / 1e3,
        readings: sum(|noise| noise.readings),
        gaps,
        lost_ns,
        observed_ns,
        lost_share: lost_ns as f64 / observed_ns.max(1) as f64,
        longest_ns: records.iter().filter_map(|(thread, _)| thread.histogram.max_ns).max(),
        involuntary_switches: records.iter().map(|(thread, _)| thread.usage.map(switches)).sum(),
        above: std::iter::once((threshold_ns, gaps)).chain(lengths).map(rate).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use crate::{Answer, summarise};
    use punctual_model::{Histogram, Method};

    const HOUR_NS: u64 = 3_600_000_000_000;

    /// One block of a cell on CPUs 0 and 1, whose loops had these gaps in an hour.
    fn run(gaps: [&[i64]; 2], machine: Vec<MachineSecond>) -> RunBuilder {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.measure(0, 0, |_, _| 0);
        let record = &mut run.entries[0].record;
        record.machine = machine;
        record.measured = Span(HOUR_NS);
        for (thread, gaps) in record.threads.iter_mut().zip(gaps) {
            let (n, lost) = (gaps.len() as u64, Span(gaps.iter().sum::<i64>().unsigned_abs()));
            thread.histogram = Histogram::of(gaps);
            (thread.recorded, thread.cycles_due, thread.slices) = (n, n, Vec::new());
            thread.noise = Some(NoiseRecord {
                counter: "tsc".to_owned(),
                threshold: Span(1_000),
                reading_ps: 9_500,
                readings: 7,
                gaps: n,
                lost,
                observed: Span(HOUR_NS),
            });
        }
        let task = punctual_model::Task::Cyclic(Method::Noise { threshold: None });
        run.header.cells[0].task = task.clone();
        record.cell.task = task;
        run
    }

    fn of_run(run: &RunBuilder) -> (NoiseSummary, Answer) {
        let mut summary = summarise(&run.header, &run.entries);
        (summary.cells.remove(0).noise.unwrap(), summary.without_limits)
    }

    #[test]
    fn without_a_gap_there_is_an_upper_limit() {
        let (noise, answer) = of_run(&run([&[], &[]], Vec::new()));
        let cpu = &noise.cpus[0];
        assert_eq!((cpu.gaps, cpu.lost_share, cpu.longest_ns, noise.not_ended), (0, 0.0, None, 0));
        assert_eq!((cpu.above[0].lower_per_hour, cpu.above.len()), (0.0, 5));
        assert!((cpu.above[0].upper_per_hour - 2.9957).abs() < 1e-3, "{cpu:?}");
        assert_eq!((noise.timer_interrupts_per_second, noise.steal_ms, noise.smis), (None, None, None));
        assert_eq!(answer.to_string(), "CPU 0 lost nothing to gaps above 1 us in 60 min; CPU 1 lost nothing");
    }

    #[test]
    fn the_cpu_that_lost_most_is_first_and_every_length_has_its_rate() {
        let second = |loc, smis| MachineSecond {
            elapsed: Span::SECOND,
            interrupts: Some(9),
            interrupts_by_kind: [("LOC".to_owned(), loc), ("RES".to_owned(), 4)].into(),
            steal_ms: Some(5),
            smis,
            ..MachineSecond::default()
        };
        let mut run = run([&[2_000], &[1_500, 12_000, 36_000_000_000]], vec![second(500, Some(0)), second(300, None)]);
        let (noise, answer) = of_run(&run);
        let cpu = &noise.cpus[0];
        assert_eq!((cpu.cpu, cpu.gaps, cpu.lost_ns, cpu.longest_ns), (1, 3, 36_000_013_500, Some(36_000_000_000)));
        let rates: Vec<_> = cpu.above.iter().map(|rate| (rate.above_ns, rate.gaps)).collect();
        assert_eq!(rates, [(1_000, 3), (10_000, 2), (100_000, 1), (1_000_000, 1), (10_000_000, 1)]);
        assert!(
            (cpu.above[2].lower_per_hour - 0.0253).abs() < 1e-4 && (cpu.above[2].upper_per_hour - 5.572).abs() < 1e-3
        );
        // Two CPUs, two seconds; a count that is unknown once is unknown.
        assert_eq!((noise.timer_interrupts_per_second, noise.interrupts_per_second), (Some(200.0), Some(202.0)));
        assert_eq!((noise.steal_ms, noise.smis), (Some(10), None));
        assert_eq!(
            answer.to_string(),
            "CPU 1 lost 1 % to 3 gaps above 1 us in 60 min; the longest 36 s; CPU 0 lost 0.000000056 %, the longest 2 us"
        );
        run.entries[0].record.threads[1].noise = None;
        let (noise, answer) = of_run(&run);
        assert_eq!((noise.cpus.len(), noise.not_ended), (1, 1));
        assert!(answer.to_string().starts_with("cannot tell all that was lost: 1 loop did not end; CPU 0 lost"));
    }
}
