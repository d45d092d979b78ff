//! Measurements of runs at their places in a study.

use crate::stats::histogram::{merged, standard_deviation};
use crate::summary::cost::{cost_of, of_load};
use crate::summary::open::{Open, lacks};
use crate::summary::threads::maxima;
use punctual_model::{
    Cell, Entry, Histogram, Host, Kernel, Load, OperationRecord, Period, Policy, Record, Statistic, StudyCells,
    StudyDefinition, ThreadRecord,
};
use std::collections::{BTreeMap, BTreeSet};

/// A measured thread of one block, or the cost suite of one block, at its place in a study.
#[derive(Debug, Clone)]
pub struct StudyMeasurement<'a> {
    /// Names of the study's kernels that its kernel stands for; never empty.
    pub kernels: Vec<&'a str>,
    /// Method of its cell, as the study names it.
    pub method: &'a str,
    /// Kernel of its cell.
    pub kernel: &'a Kernel,
    /// Background load.
    pub load: &'a Load,
    /// Scheduling policy.
    pub policy: Policy,
    /// Period of the thread, or requested length of its sleep.
    pub period: Period,
    /// Position of the thread among those of its cell, from 0.
    pub cpu: usize,
    /// Kind of its time: real, or the clock of a guest.
    pub time: &'static str,
    /// Whether that is virtual time.
    pub is_virtual: bool,
    /// Whether its kernel is that of a machine, and not of a guest.
    pub is_here: bool,
    /// Identity of the machine over its kernels.
    pub machine: String,
    /// The boot of the machine: its identifier, or the run where that is unknown.
    pub boot: String,
    /// The run and the measurement in it, from 0.
    pub measurement: (usize, usize),
    /// Why later wake-ups than those that it has may have happened; `None` if it is complete.
    pub(super) lacks: Option<&'static str>,
    data: Data<'a>,
}

#[derive(Debug, Clone)]
enum Data<'a> {
    Thread(&'a ThreadRecord),
    /// Time of each operation, ns.
    Costs(BTreeMap<&'a str, f64>),
    /// Nothing yet: a value is assumed.
    Assumed {
        value: f64,
        /// Of latencies.
        latency: bool,
        /// Of the cost suite.
        cost: bool,
    },
}

/// A value of a statistic.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct StudyValue {
    /// Latency in ns, number of missed due times, or time of the mean operation in ns.
    pub value: f64,
    /// Whether it is a lower bound, because a wait was still open at the end or a trigger was never answered.
    pub at_least: bool,
}

/// A field of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyField {
    /// The value of all blocks together.
    pub value: StudyValue,
    /// Values of the single blocks, ascending.
    pub blocks: Vec<f64>,
    /// The single latencies, ns, ascending, if there are at most [`SINGLES`].
    pub singles: Vec<i64>,
    /// Due times, the loops of the study; 0 for costs.
    pub due: u64,
    /// Latencies recorded.
    pub samples: u64,
    /// Waits still open at the end of their block.
    pub open: u64,
}

impl StudyField {
    /// Whether no wait ended.
    pub fn is_never(&self) -> bool {
        self.open > 0 && self.samples == 0
    }
}

/// Most latencies of a field that are shown one by one.
pub const SINGLES: u64 = 12;

/// Returns the measurements of runs that belong to a study: those on a kernel that stands for one of its kernels.
pub fn measurements<'a>(definition: &'a StudyDefinition, runs: &[&'a [Entry]]) -> Vec<StudyMeasurement<'a>> {
    let mut found = Vec::new();
    for (run, entries) in runs.iter().enumerate() {
        for (index, entry) in entries.iter().enumerate() {
            let record = &entry.record;
            let answering = record.response.as_ref().and_then(|response| response.target.as_ref()?.host.as_deref());
            let host = answering.unwrap_or(&record.host_before);
            let Some(of_cell) = StudyMeasurement::of_cell(definition, &record.cell, host, (run, index)) else {
                continue;
            };
            let of_cell = StudyMeasurement { lacks: lacks(record), ..of_cell };
            let at = |cpu, period, data| StudyMeasurement { period, cpu, data, ..of_cell.clone() };
            let of_thread = |(cpu, thread): (usize, &'a ThreadRecord)| {
                at(cpu, thread.period_in(&record.cell), Data::Thread(thread))
            };
            found.extend(record.threads.iter().enumerate().map(of_thread));
            found.extend(costs(record).map(|costs| at(0, record.cell.period, Data::Costs(costs))));
        }
    }
    found
}

/// Times of the operations of the cost suite: of the cell, or of its load.
fn costs<'a>(record: &'a Record) -> Option<BTreeMap<&'a str, f64>> {
    let cost = record.cost.as_ref().or_else(|| of_load(record))?;
    let of = |operation: &'a OperationRecord| Some((operation.name.as_str(), cost_of(operation, cost.clock_ns)?));
    Some(cost.operations.iter().filter_map(of).collect())
}

impl<'a> StudyMeasurement<'a> {
    /// The first thread of a cell on `host`, with nothing measured yet; `None` if the study has no such method or
    /// kernel.
    pub(super) fn of_cell(
        definition: &'a StudyDefinition,
        cell: &'a Cell,
        host: &Host,
        measurement: (usize, usize),
    ) -> Option<StudyMeasurement<'a>> {
        let (method, kernels) = (definition.method_of(cell)?, definition.kernels_of(cell, host));
        (!kernels.is_empty()).then(|| StudyMeasurement {
            kernels,
            method,
            kernel: &cell.kernel,
            load: &cell.load,
            policy: cell.policy,
            period: cell.period,
            cpu: 0,
            time: cell.kernel.time(),
            is_virtual: cell.kernel.is_virtual(),
            is_here: cell.kernel.is_here(),
            machine: crate::machine::facts::identity(host),
            boot: host.boot_id.clone().unwrap_or_else(|| format!("run {}", measurement.0)),
            measurement,
            lacks: None,
            data: Data::Assumed {
                value: 0.0,
                latency: cell.task.has_latencies(),
                cost: !cell.task.has_latencies() || cell.load.times_operations(),
            },
        })
    }

    /// One for each thread of its cell: all are one unit, but each has its period.
    pub(super) fn each_thread(&self, cell: &Cell) -> Vec<StudyMeasurement<'a>> {
        let thread = |cpu| StudyMeasurement { period: cell.period_of(cpu), cpu, ..self.clone() };
        (0..cell.cpus.len()).map(thread).collect()
    }

    /// The same with a value that is assumed; unchanged where it is measured.
    pub(super) fn assuming(&self, value: f64) -> StudyMeasurement<'a> {
        let mut assumed = self.clone();
        if let Data::Assumed { value: of_it, .. } = &mut assumed.data {
            *of_it = value;
        }
        assumed
    }

    /// Whether a part of the study, such as a table, is about it: about its method, if it names one, and its cell.
    pub fn is_meant(&self, method: Option<&str>, only: &StudyCells) -> bool {
        method.is_none_or(|method| method == self.method) && self.is_in(only)
    }

    /// Whether it is among these cells, on any of its kernels.
    pub fn is_in(&self, cells: &StudyCells) -> bool {
        let is_on = |kernel: &&str| cells.contain(kernel, Some(self.load), Some(self.policy), Some(self.period));
        self.kernels.iter().any(is_on)
    }

    fn thread(&self) -> Option<&ThreadRecord> {
        match &self.data {
            Data::Thread(thread) => Some(thread),
            Data::Costs(_) | Data::Assumed { .. } => None,
        }
    }

    /// Due times that are known, or assumed: one.
    fn due(&self) -> u64 {
        match &self.data {
            Data::Thread(thread) => thread.cycles_due,
            Data::Costs(_) => 0,
            Data::Assumed { latency, .. } => u64::from(*latency),
        }
    }
}

/// Operations that all of these measurements have: only they are comparable.
pub fn common_operations<'a>(measurements: &[&'a StudyMeasurement<'_>]) -> BTreeSet<&'a str> {
    let mut common: Option<BTreeSet<&str>> = None;
    for measurement in measurements {
        if let Data::Costs(costs) = &measurement.data {
            let names: BTreeSet<&str> = costs.keys().copied().collect();
            common = Some(common.map_or_else(|| names.clone(), |common| &common & &names));
        }
    }
    common.unwrap_or_default()
}

/// The statistic of some measurements together; `None` if none of them has it.
pub fn value(
    measurements: &[&StudyMeasurement<'_>],
    statistic: Statistic,
    operations: &BTreeSet<&str>,
) -> Option<StudyValue> {
    let threads = || measurements.iter().filter_map(|measurement| measurement.thread());
    let histogram = merged(threads().map(|thread| &thread.histogram));
    let open = Open::of(threads());
    let unanswered = threads().flat_map(|thread| thread.unanswered.iter().flatten());
    let never = merged(unanswered.map(|slice| &slice.histogram));
    let known = |value: f64| Some(StudyValue { value, at_least: false });
    let assumed = measurements.iter().find_map(|measurement| match measurement.data {
        Data::Assumed { value, latency, cost } => {
            Some(value).filter(|_| if statistic == Statistic::Cost { cost } else { latency })
        }
        _ => None,
    });
    if let Some(value) = assumed {
        return known(value);
    }
    match statistic {
        Statistic::Min => histogram.min_ns.and_then(|ns| known(ns as f64)),
        Statistic::Max => {
            let all: Vec<_> = threads().flat_map(maxima).collect();
            // What is open or never came may be later than all that ended.
            let at_least = all.iter().any(|(_, is_bound, _)| *is_bound);
            all.iter().map(|(ns, ..)| *ns).max().map(|ns| StudyValue { value: ns as f64, at_least })
        }
        Statistic::Mean => {
            let (n, sum_ns) = (histogram.n + never.n, histogram.sum_ns as f64 + never.sum_ns as f64);
            let ended = || (n > 0).then(|| StudyValue { value: sum_ns / n as f64, at_least: never.n > 0 });
            open.map(|open| StudyValue { value: open.mean_with(sum_ns, n), at_least: true }).or_else(ended)
        }
        Statistic::Deviation => {
            standard_deviation(&histogram).filter(|_| open.is_none() && never.n == 0).and_then(known)
        }
        Statistic::Missed => {
            let due: u64 = threads().map(|thread| thread.cycles_due).sum();
            (due > 0).then(|| threads().map(|thread| thread.missed).sum::<u64>() as f64).and_then(known)
        }
        Statistic::Cost => {
            let mut logarithms = Vec::new();
            for measurement in measurements {
                if let Data::Costs(costs) = &measurement.data {
                    let shared = costs.iter().filter(|(name, ns)| operations.contains(*name) && **ns > 0.0);
                    logarithms.extend(shared.map(|(_, ns)| ns.ln()));
                }
            }
            let n = logarithms.len() as f64;
            (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / n).exp()).and_then(known)
        }
    }
}

/// Due times of some measurements.
pub(crate) fn due_times(measurements: &[&StudyMeasurement<'_>]) -> u64 {
    measurements.iter().map(|measurement| measurement.due()).sum()
}

/// The field of a table for some measurements; `None` if none of them has the statistic.
pub fn field(
    measurements: &[&StudyMeasurement<'_>],
    statistic: Statistic,
    operations: &BTreeSet<&str>,
) -> Option<StudyField> {
    let all = value(measurements, statistic, operations)?;
    let mut blocks: Vec<f64> = by_block(measurements)
        .iter()
        .filter_map(|block| value(block, statistic, operations))
        .map(|value| value.value)
        .collect();
    blocks.sort_by(f64::total_cmp);
    let threads = || measurements.iter().filter_map(|measurement| measurement.thread());
    let histogram = merged(threads().map(|thread| &thread.histogram));
    Some(StudyField {
        value: all,
        blocks,
        due: due_times(measurements),
        samples: histogram.n,
        singles: if histogram.n <= SINGLES { singles(&histogram) } else { Vec::new() },
        open: threads().filter(|thread| thread.censored.is_some()).count() as u64,
    })
}

/// The measurements of each block and cell, in the order of time.
pub(crate) fn by_block<'a, 'b>(measurements: &[&'a StudyMeasurement<'b>]) -> Vec<Vec<&'a StudyMeasurement<'b>>> {
    let mut blocks: BTreeMap<(usize, usize), Vec<&StudyMeasurement<'_>>> = BTreeMap::new();
    for measurement in measurements {
        blocks.entry(measurement.measurement).or_default().push(measurement);
    }
    blocks.into_values().collect()
}

/// The latencies of a small histogram, by the middles of their buckets; the extremes are exact.
fn singles(histogram: &Histogram) -> Vec<i64> {
    let mut all: Vec<i64> = Vec::new();
    for bucket in histogram.buckets() {
        let middle = i64::try_from(bucket.lower_ns.midpoint(bucket.upper_ns)).unwrap_or(i64::MAX);
        all.extend(std::iter::repeat_n(middle, usize::try_from(bucket.count).unwrap_or(0)));
    }
    let bounds = histogram.min_ns.zip(histogram.max_ns);
    if let Some((min, max)) = bounds {
        all.iter_mut().for_each(|ns| *ns = (*ns).clamp(min, max));
        // In this order, so that a single latency is exact, too.
        all.last_mut().into_iter().for_each(|last| *last = max);
        all.first_mut().into_iter().for_each(|first| *first = min);
    }
    all
}
