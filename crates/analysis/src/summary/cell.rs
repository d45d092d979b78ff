//! A cell in numbers: the distribution, its uncertainty, and its largest latency.

use crate::explain;
use crate::stats::histogram::standard_deviation;
use crate::stats::levels::Quantiles;
use crate::stats::rate::Rate;
use crate::summary::cost::{self, CostSummary, LoadCostChange};
use crate::summary::due_time::{self, DueTimes};
use crate::summary::instrument::{self, InstrumentSummary};
use crate::summary::intensity::{self, Busy, LoadRate};
use crate::summary::late::{self, Late, Views};
use crate::summary::layers::{self, LayerFloor};
use crate::summary::noise::{self, NoiseSummary};
use crate::summary::open::Open;
use crate::summary::pool::Pool;
use crate::summary::responses::{self, Response};
use crate::summary::steadiness::Steadiness;
use crate::summary::threads::{self, CobaltThreads, ThreadSummary};
use crate::summary::tracers::{self, Stages, Tracers};
use crate::summary::watched::{self, WatchSummary, WatchedSummary};
use punctual_model::{Cell, Entry, ExplainRecord, Header, Histogram, Ledger, Level, RuntimeRecord, Span, ThreadRecord};
use serde::Serialize;

/// The pooled blocks of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CellSummary {
    /// The cell.
    #[serde(skip)]
    pub cell: Cell,
    /// Name within the run: load and policy, and every other axis that has more than one value.
    #[serde(skip)]
    pub name: String,
    /// Whether it is the second measurement of a cell in each block (A/A).
    #[serde(skip)]
    pub again: bool,
    /// Blocks in which it was measured.
    pub blocks: u32,
    /// Time measured; blocks add up, CPUs do not.
    #[serde(rename = "measured_ns")]
    #[schemars(with = "u64")]
    pub measured: Span,
    /// Wake-ups recorded.
    pub samples: u64,
    /// Missed due times; for responses, due times without one. `None` without a record, if an outside program does not
    /// count them, or where none is known and a watched thread has no period.
    pub missed: Option<u64>,
    /// The account of all due times of its threads; empty where an outside program measures.
    pub ledger: Ledger,
    /// Wake-ups before their due time; `None` without a record of its own.
    pub early: Option<u64>,
    /// Samples lost because the log was full; `None` without a record of its own.
    pub lost: Option<u64>,
    /// What is known of its threads as threads of Cobalt; `None` for others.
    #[serde(skip)]
    pub(crate) cobalt: Option<CobaltThreads>,
    /// Waits still open at the end of their block; `None` without one.
    pub censored: Option<Open>,
    /// Time to read the clock, ns: the longest of its blocks. `None` if not recorded.
    pub clock_reading_ns: Option<u64>,
    /// Smallest latency, ns.
    pub min_ns: Option<i64>,
    /// Mean latency, ns. For comparison with other tools only: a tail moves it.
    pub mean_ns: Option<f64>,
    /// Standard deviation of the latency, ns; `None` below 2 samples. It says little about a heavy tail.
    pub stddev_ns: Option<f64>,
    /// The distribution by wake-up.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// Each thread, by CPU; empty without a record, and where something else measures. Documents have it only where the
    /// threads have different periods, so that the figures above pool different populations.
    #[serde(skip_serializing_if = "threads::have_one_period")]
    pub by_thread: Vec<ThreadSummary>,
    /// Largest latency and its moment.
    #[serde(skip)]
    pub max: Option<Max>,
    /// Effective sample size at p99; `None` with too few slices.
    pub n_eff: Option<u64>,
    /// Stationarity. A quantile that changed has no interval.
    pub steadiness: Steadiness,
    /// The distribution by due time.
    #[serde(rename = "by_due_time")]
    pub due_times: DueTimes,
    /// Share of late samples for each required quantile.
    #[serde(skip)]
    pub(crate) late: Vec<Late>,
    /// Episodes of wake-ups later than the deadline; `None` without measured time, or where none is known and an
    /// outside program does not tell, or a watched thread has neither deadline nor period.
    pub misses: Option<Rate>,
    /// Language of the measured program; `None` for other methods, or without a record.
    pub runtime: Option<RuntimeRecord>,
    /// The outside program; `None` for every other method, or without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrument: Option<InstrumentSummary>,
    /// Events on the link besides answers, and triggers without one; `None` without a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
    /// Achieved rate of each part of the load; empty without one.
    pub loads: Vec<LoadRate>,
    /// Results of the kernel's tracers after it; `None` if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracers: Option<Tracers>,
    /// Costs of operations; `None` for every method but `cost`, or without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostSummary>,
    /// Costs of the operations of its load meanwhile; `None` for every load without `cost`, or without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_cost: Option<CostSummary>,
    /// Their change against a cell of method `cost` with the same kernel; `None` without one, or where an operation of
    /// it had no turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_cost_change: Option<LoadCostChange>,
    /// Watched threads of another program; `None` for every method but `watch`, or without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchSummary>,
    /// What each layer of the machine took; empty unless its gaps or late wake-ups were explained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerFloor>,
    /// Gaps of a thread that never waits; `None` for every method but `noise`, or without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseSummary>,
    /// Utilization of the machine during the measurement.
    pub machine: Busy,
    /// Causes of late wake-ups; `None` if not requested.
    pub explained: Option<ExplainRecord>,
    /// The two stages of every wake-up; `None` without a trace that shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
}

/// The largest latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "MaxAt")]
pub struct Max {
    /// Its value, ns.
    #[serde(skip)]
    pub latency_ns: i64,
    /// Whether any wait is open or any trigger without an answer, so that the latency is a lower bound.
    #[serde(skip)]
    pub at_least: bool,
    /// Its block, from 0.
    pub block: u32,
    /// Its CPU.
    pub cpu: u32,
    /// Its due time: ms since the run began, by the wall clock. `None` if not recorded.
    pub run_ms: Option<u64>,
}

/// Summarizes the records of `pool`; `name` is the cell's name within the run.
pub(crate) fn summary(header: &Header, pool: &Pool<'_>, name: String) -> CellSummary {
    let histogram = pool.histogram();
    let stretches: Vec<_> = pool.stretches().into_iter().collect();
    let steadiness = Steadiness::of(pool, &histogram, &stretches);
    let slices: Vec<Histogram> = stretches.into_iter().map(|(_, slice)| slice).collect();
    let quantiles = Quantiles::of(&histogram, &slices, pool.confidence);
    let shown = |all: Quantiles| all.with_intervals_where(|level| steadiness.courses.allows_interval(level));
    let by_due_time = due_time::slices(pool);
    let due_times = DueTimes::of(pool, quantiles, by_due_time.as_ref());
    let views = Views { by_wakeup: (&histogram, &slices), by_due_time: by_due_time.as_ref() };
    // The shortest period, where threads differ: a thread later than a limit is so for the most due times.
    let late = late::of(&header.plan.require, &views, pool.cell.period);
    let (instrument, ledger, watch) = (instrument::of(pool), pool.ledger(), watched::of(pool));
    let of_watched = |is_told: fn(&WatchedSummary) -> bool| {
        watch.as_ref().is_none_or(|watch| !watch.threads.is_empty() && watch.threads.iter().all(is_told))
    };
    let (have_period, have_deadline) =
        (of_watched(|one| one.period.is_some()), of_watched(|one| one.deadline.is_some()));
    let is_reported = pool.cell.task.is_reported();
    let of_own = |sum: fn(&ThreadRecord) -> u64| (!pool.entries.is_empty() && !is_reported).then(|| pool.sum(sum));
    let of_program = instrument.as_ref();
    CellSummary {
        cell: pool.cell.clone(),
        again: name.ends_with("/again"),
        name,
        blocks: u32::try_from(pool.entries.len()).unwrap_or(u32::MAX),
        measured: pool.measured(),
        samples: of_program.and_then(|program| program.samples).unwrap_or_else(|| pool.sum(|thread| thread.recorded)),
        missed: match of_program {
            Some(program) => program.missed,
            None if is_reported || pool.entries.is_empty() => None,
            None => Some(ledger.missed + ledger.unanswered).filter(|missed| *missed > 0 || have_period),
        },
        ledger,
        early: of_own(|thread| thread.early),
        lost: of_own(|thread| thread.lost),
        cobalt: threads::of_cobalt(pool),
        censored: Open::of(pool.threads().map(|(_, thread)| thread)),
        clock_reading_ns: pool.entries.iter().filter_map(|entry| entry.record.clock_reading).max().map(Span::ns),
        min_ns: of_program.and_then(|program| program.extremes.min_ns).or(histogram.min_ns),
        mean_ns: of_program.and_then(|program| program.mean_ns(&histogram)).or_else(|| mean_of(&histogram)),
        stddev_ns: standard_deviation(&histogram),
        by_thread: threads::of(pool),
        max: of_program.map_or_else(|| max(header, pool), max_of_program),
        n_eff: quantiles.at(Level::P99).n_eff(),
        steadiness,
        due_times: DueTimes { quantiles: shown(due_times.quantiles), ..due_times },
        late,
        quantiles: shown(quantiles),
        // A gap has no period that could be its deadline.
        misses: Rate::of(&pool.episode_starts_ns(), pool.measured())
            .filter(|_| pool.cell.deadline.is_some() || !pool.cell.task.is_noise())
            .filter(|rate| rate.episodes > 0 || !is_reported && have_deadline),
        runtime: pool.entries.iter().find_map(|entry| entry.record.runtime.clone()),
        response: responses::of(pool),
        instrument,
        loads: intensity::loads(pool),
        tracers: tracers::of(pool),
        cost: cost::summary(pool.entries.iter().map(|entry| &entry.record)),
        load_cost: cost::summary_of_load(pool.entries.iter().map(|entry| &entry.record)),
        load_cost_change: None,
        watch,
        layers: layers::of(pool),
        noise: noise::of(pool),
        machine: intensity::busy(header, pool),
        stages: tracers::stages(pool),
        explained: explain::merged(pool.entries.iter().filter_map(|entry| entry.record.explained.as_ref())),
    }
}

impl CellSummary {
    /// Whether its threads have different periods.
    pub fn has_several_periods(&self) -> bool {
        !threads::have_one_period(&self.by_thread)
    }

    /// One sentence if the latest wake-up was not caught by the trace that explains. A wait that is still open has a
    /// finding of its own.
    pub fn not_caught(&self) -> Option<String> {
        let ended = self.max.filter(|max| !max.at_least);
        let explained = self.explained.as_ref()?;
        // Of gaps, those of which events were lost are counted beside the causes.
        (!self.cell.task.is_noise()).then(|| explain::not_caught(explained, ended.map(|max| max.latency_ns))).flatten()
    }

    /// Whether a wake-up may have been later than the largest latency: one that is open, was lost or was not seen.
    pub(crate) fn may_be_later(&self) -> bool {
        self.max.is_some_and(|max| max.at_least) || self.lost > Some(0) || self.ledger.not_seen() > 0
    }

    /// Mean latency, ns, and whether it is a lower bound: waits that are open count with what they had reached.
    pub fn mean(&self) -> Option<(f64, bool)> {
        Open::mean(self.censored, self.mean_ns, self.samples)
    }

    /// Number of latencies; `None` without a record, or if an outside program does not report it.
    pub fn known_samples(&self) -> Option<u64> {
        let is_unknown = self.blocks == 0 || self.instrument.as_ref().is_some_and(|program| program.samples.is_none());
        (!is_unknown || self.samples > 0).then_some(self.samples)
    }
}

/// The largest latency that an outside program reports, whose moment is unknown.
fn max_of_program(program: &InstrumentSummary) -> Option<Max> {
    let (block, cpu) = program.extremes.max_at?;
    Some(Max { latency_ns: program.extremes.max_ns?, at_least: false, block, cpu, run_ms: None })
}

fn mean_of(histogram: &Histogram) -> Option<f64> {
    (histogram.n > 0).then(|| histogram.sum_ns as f64 / histogram.n as f64)
}

/// The largest latency of any thread; an open wait and a trigger without an answer count with the lateness they had
/// reached.
fn max(header: &Header, pool: &Pool<'_>) -> Option<Max> {
    let at = |entry: &Entry, thread: &ThreadRecord, (latency_ns, at_least, cycle): (i64, bool, Option<i64>)| {
        let period_ns = i128::from(thread.period_in(pool.cell).ns());
        let due_ns = |cycle| i128::from(cycle) * period_ns + i128::from(thread.lead().ns());
        let after_start = cycle.map(|cycle: i64| due_ns(cycle) / 1_000_000);
        let since_run = i128::from(entry.record.started_unix_ms) - i128::from(header.started_unix_ms);
        let run_ms = after_start.map(|ms| u64::try_from(since_run + ms).unwrap_or(0));
        Max { latency_ns, at_least, block: entry.planned.block, cpu: thread.cpu, run_ms }
    };
    let of_thread = |(entry, thread)| threads::maxima(thread).map(move |max| at(entry, thread, max));
    // Among equal ones the first in time. What is open or never came may be later than all that ended.
    let later = |best: Max, next: Max| Max {
        at_least: best.at_least || next.at_least,
        ..if next.latency_ns > best.latency_ns { next } else { best }
    };
    pool.threads().flat_map(of_thread).reduce(later)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::histogram::merged;
    use crate::stats::woodruff::Quantile;
    use crate::stats::woodruff::Refusal;
    use crate::summarise;
    use crate::summary::due_time::by_due_time;
    use crate::testing::RunBuilder;
    use punctual_model::{LoadRecord, LoadSecond};

    fn run(latency_ns: impl Fn(u32, u64) -> i64 + Copy) -> CellSummary {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.header.plan.repetitions = 2;
        run.measure(0, 0, latency_ns).measure(1, 0, latency_ns);
        summarise(&run.header, &run.entries).cells.remove(0)
    }

    #[test]
    fn a_cell_without_records_has_no_numbers() {
        let mut builder = RunBuilder::new();
        builder.cell("none", "other");
        let cell = &summarise(&builder.header, &[]).cells[0];
        assert_eq!((cell.blocks, cell.samples, cell.measured), (0, 0, Span(0)));
        assert_eq!((cell.known_samples(), cell.missed, cell.early, cell.lost), (None, None, None, None));
        assert_eq!((cell.min_ns, cell.mean_ns, cell.stddev_ns, cell.max, cell.misses), (None, None, None, None, None));
        assert_eq!(*cell.quantiles.at(Level::P50), Quantile::Refused(Refusal::NoSamples));
        assert_eq!(cell.n_eff, None);
    }

    #[test]
    fn blocks_and_cpus_are_added_up_but_time_only_by_block() {
        let cell = run(|cpu, _| if cpu == 0 { 5_000 } else { 7_000 });
        assert_eq!((cell.blocks, cell.samples, cell.measured), (2, 8_000, Span(4_000_000_000)));
        assert_eq!((cell.min_ns, cell.mean_ns), (Some(5_000), Some(6_000.0)));
        let stddev = cell.stddev_ns.unwrap();
        assert!((stddev - 1_000.0 * (8_000.0f64 / 7_999.0).sqrt()).abs() < 1e-9, "{stddev}");
        assert_eq!(cell.quantiles.at(Level::P99).value_ns(), Some(7_000));
        assert_eq!(cell.due_times.quantiles, cell.quantiles, "nothing was missed");
    }

    #[test]
    fn the_maximum_knows_its_moment() {
        let cell = run(|cpu, cycle| if (cpu, cycle) == (1, 1_500) { 80_000 } else { 5_000 });
        // The run's first measurement begins 1 s after its start, and the wake-up was due 1.5 s later. Among equal ones
        // the first.
        let expected = Max { latency_ns: 80_000, at_least: false, block: 0, cpu: 1, run_ms: Some(2_500) };
        assert_eq!(cell.max, Some(expected));
        assert_eq!(cell.quantiles.at(Level::P99).value_ns(), Some(5_023), "the upper edge of the bucket of 5000 ns");
    }

    #[test]
    fn an_open_wait_makes_the_maximum_a_lower_bound() {
        let cell = run(|cpu, cycle| if cpu == 1 && cycle >= 1_500 { i64::MAX } else { 5_000 });
        let expected = Max { latency_ns: 500_000_000, at_least: true, block: 0, cpu: 1, run_ms: Some(2_500) };
        assert_eq!(cell.max, Some(expected));
        assert_eq!(cell.censored, Some(Open { waits: 2, at_least_ns: 500_000_000, total_ns: 1_000_000_000 }));
        assert_eq!(cell.mean(), Some(((7_000.0 * 5_000.0 + 1e9) / 7_002.0, true)));
        assert_eq!((cell.samples, cell.missed), (7_000, Some(998)));
        assert!(cell.due_times.at_least);
        assert_eq!(cell.due_times.n, 8_000, "each due time once");
        assert_eq!(cell.misses.map(|rate| rate.episodes), Some(2));
        let late =
            run(|cpu, cycle| if (cpu, cycle) == (0, 9) { 900_000_000 } else { i64::MAX * i64::from(cycle >= 1_500) });
        assert_eq!(late.max.map(|max| (max.latency_ns, max.at_least)), Some((900_000_000, true)), "it may be later");
    }

    #[test]
    fn missed_due_times_show_in_the_second_view_only() {
        // One stall of 400 ms in each block: 0.05 % of the wake-ups, but a fifth of the time.
        let cell = run(|_, cycle| if cycle == 1_000 { 400_000_000 } else { 5_000 });
        assert_eq!((cell.samples, cell.missed), (4 * 1_601, Some(4 * 399)));
        assert_eq!(cell.due_times.n, 8_000);
        let max_ns = cell.max.map(|max| max.latency_ns);
        assert_eq!(max_ns, Some(400_000_000));
        assert!(cell.quantiles.at(Level::P99).value_ns() < Some(6_000), "{:?}", cell.quantiles.at(Level::P99));
        let by_due_time = by_due_time(&merged([&one_stall()].into_iter()), cell.cell.period);
        assert!(crate::quantile(&by_due_time, 0.9) > Some(190_000_000));
        assert!(!cell.due_times.at_least);
    }

    fn one_stall() -> Histogram {
        let mut histogram = Histogram::default();
        histogram.record_n(5_000, 1_600);
        histogram.record(400_000_000);
        histogram
    }

    #[test]
    fn episodes_on_two_cpus_at_once_are_one() {
        let cell = run(|_, cycle| if cycle == 100 || cycle == 1_900 { 3_000_000 } else { 5_000 });
        let rate = cell.misses.unwrap();
        assert_eq!(rate.episodes, 4, "two in each block, on both CPUs");
        assert!((rate.per_hour - 3600.0).abs() < 1e-9);
    }

    #[test]
    fn the_load_is_summed_over_blocks() {
        let mut builder = RunBuilder::new();
        builder.cell("messaging", "other").measure(0, 0, |_, _| 5_000).measure(1, 0, |_, _| 5_000);
        for (entry, operations) in builder.entries.iter_mut().zip([400, 1200]) {
            let second =
                LoadSecond { elapsed: Span(2_000_000_000), operations: Some(operations), cpu_us: Some(1_000_000) };
            let later = LoadSecond { operations: Some(operations / 2), ..second };
            let seconds = vec![second, second, later, later];
            entry.record.loads = vec![LoadRecord { operation: "message".to_owned(), seconds, ..LoadRecord::default() }];
        }
        let cell = summarise(&builder.header, &builder.entries).cells.remove(0);
        assert_eq!(
            cell.loads,
            [LoadRate {
                load: String::new(),
                operation: "message".to_owned(),
                per_second: Some(300.0),
                cpus_used: Some(0.5),
                lowest_share: Some(0.5),
            }]
        );
    }
}
