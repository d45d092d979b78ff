//! Findings about imported measurements.

use crate::stats::course::{Course, Measure};
use crate::stats::woodruff::{MIN_SLICES, Quantile, Refusal};
use crate::summary::imported::ImportedCell;
use crate::wording::{count, duration, things};
use punctual_model::{Level, Order};
use serde::Serialize;
use std::fmt;

/// A caveat to know before trusting an imported number. `Display` is one sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ImportedFinding {
    /// Samples were beyond the tool's histogram.
    Beyond {
        /// Number of them; `None` if unknown.
        samples: Option<u64>,
        /// Their lower bound, ns.
        at_least_ns: i64,
    },
    /// A property of the tool or its output that affects the numbers.
    Remark {
        /// A sentence without its full stop.
        text: String,
    },
    /// The mean wake-up latency is above the period: the values are in another unit, or the thread never kept up.
    AbovePeriod {
        /// Mean, ns.
        mean_ns: f64,
        /// Period, ns.
        period_ns: u64,
    },
    /// Several threads measured on one CPU and delayed each other.
    SharedCpu {
        /// The CPU.
        cpu: u32,
        /// Number of threads on it.
        threads: usize,
    },
    /// Unknown conditions.
    Unknown {
        /// Their names: "period", "policy", "load".
        facts: Vec<&'static str>,
    },
    /// A quantile with too few samples above it.
    FewSamples {
        /// Its level.
        level: Level,
        /// Upper bound of the effective sample size.
        n_eff: u64,
    },
    /// A number changed once.
    LatencyChanged {
        /// The number.
        what: Measure,
        /// After this share of the file, percent.
        after_percent: u32,
        /// Value before, ns; for maxima of stretches the median.
        before_ns: i64,
        /// Value after, ns.
        after_ns: i64,
    },
    /// A number rises or falls.
    LatencyDrifts {
        /// The number.
        what: Measure,
        /// Value in the first quarter, ns; for maxima of stretches the median.
        before_ns: i64,
        /// Value in the last quarter, ns.
        after_ns: i64,
    },
    /// Calm and rough stretches follow each other.
    LatencyInWaves {
        /// The number.
        what: Measure,
    },
    /// The file has a course of time, and too few samples in it to test stationarity.
    CourseNotTested,
    /// The file has no course of time.
    NoCourse,
    /// Values are whole multiples of this.
    Resolution {
        /// Resolution, ns.
        resolution_ns: u64,
    },
}

/// Name of a number; the maxima of a file are those of its stretches, which may be longer or shorter than a second.
fn of_file(what: Measure) -> String {
    if what == Measure::Maxima { "the maxima of stretches".to_owned() } else { what.to_string() }
}

/// All findings about a cell, most important first.
pub(crate) fn of_imported(cell: &ImportedCell) -> Vec<ImportedFinding> {
    let mut findings = Vec::new();
    let threads = &cell.imported.threads;
    let beyond: Vec<_> = threads.iter().filter_map(|thread| thread.beyond).collect();
    if let Some(at_least_ns) = beyond.iter().map(|beyond| beyond.at_least_ns).min() {
        let samples = beyond.iter().try_fold(0, |all: u64, beyond| all.checked_add(beyond.samples?));
        findings.push(ImportedFinding::Beyond { samples, at_least_ns });
    }
    let conditions = &cell.imported.conditions;
    if let Some((mean_ns, period)) = cell.mean_ns.zip(conditions.period).filter(|_| conditions.what == "wake-up") {
        let period_ns = period.ns();
        let is_above = mean_ns > period_ns as f64;
        findings.extend(is_above.then_some(ImportedFinding::AbovePeriod { mean_ns, period_ns }));
    }
    let mut cpus: Vec<u32> = threads.iter().filter_map(|thread| thread.cpu).collect();
    cpus.sort_unstable();
    let shared = cpus.chunk_by(|a, b| a == b).filter(|same| same.len() > 1);
    findings.extend(shared.map(|same| ImportedFinding::SharedCpu { cpu: same[0], threads: same.len() }));
    findings.extend(cell.imported.remarks.iter().map(|text| ImportedFinding::Remark { text: text.clone() }));
    let is_noise = conditions.what == "noise";
    let unknown = [
        ("period", conditions.period.is_none() && !is_noise),
        ("policy", conditions.policy.is_none()),
        ("load", conditions.load.is_none()),
        ("kernel", cell.imported.host.kernel_release.is_none()),
    ];
    let facts: Vec<_> = unknown.into_iter().filter(|(_, is_unknown)| *is_unknown).map(|(fact, _)| fact).collect();
    if !facts.is_empty() {
        findings.push(ImportedFinding::Unknown { facts });
    }
    let few = |level: Level| match cell.quantiles.at(level) {
        Quantile::Refused(Refusal::FewExceedances { n_eff, .. }) => {
            Some(ImportedFinding::FewSamples { level, n_eff: *n_eff })
        }
        _ => None,
    };
    findings.extend(Level::USUAL.into_iter().find_map(few));
    let has_distribution = threads.iter().all(|thread| thread.histogram.is_some());
    if has_distribution && threads.iter().all(|thread| thread.slices.len() < MIN_SLICES) {
        findings.push(ImportedFinding::NoCourse);
    } else if has_distribution && !cell.steadiness.courses.is_tested() {
        findings.push(ImportedFinding::CourseNotTested);
    }
    findings.extend(cell.steadiness.courses.all().into_iter().filter_map(|(what, course)| match course {
        Course::Untested | Course::Same => None,
        Course::Changed { at, before_ns, after_ns } => {
            let after_percent = u32::try_from((at * 100).checked_div(cell.steadiness.stretches)?).ok()?;
            Some(ImportedFinding::LatencyChanged { what, after_percent, before_ns, after_ns })
        }
        Course::Drifts { before_ns, after_ns } => Some(ImportedFinding::LatencyDrifts { what, before_ns, after_ns }),
        Course::Waves => Some(ImportedFinding::LatencyInWaves { what }),
    }));
    let resolution_ns = cell.imported.resolution.ns();
    if resolution_ns > 1 {
        findings.push(ImportedFinding::Resolution { resolution_ns });
    }
    findings.order_by_key(ImportedFinding::importance);
    findings
}

impl ImportedFinding {
    /// Importance, most important first.
    pub fn importance(&self) -> u8 {
        match self {
            ImportedFinding::AbovePeriod { .. } | ImportedFinding::Beyond { samples: None, .. } => 0,
            ImportedFinding::Beyond { .. } | ImportedFinding::SharedCpu { .. } => 1,
            ImportedFinding::Remark { .. }
            | ImportedFinding::LatencyChanged { .. }
            | ImportedFinding::LatencyDrifts { .. }
            | ImportedFinding::LatencyInWaves { .. } => 2,
            ImportedFinding::NoCourse | ImportedFinding::CourseNotTested => 3,
            ImportedFinding::Unknown { .. } => 4,
            ImportedFinding::Resolution { .. } => 5,
            ImportedFinding::FewSamples { .. } => 6,
        }
    }
}

impl fmt::Display for ImportedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NO_INTERVAL: &str = "no interval is valid for the whole file";
        let ns = |ns: i64| duration(ns as f64);
        match self {
            ImportedFinding::Beyond { samples: Some(samples), at_least_ns } => {
                let (samples, limit) = (things(*samples, "sample"), ns(*at_least_ns));
                write!(f, "histogram overflow: {samples} at {limit} or later; quantiles there are unknown")
            }
            ImportedFinding::Beyond { samples: None, at_least_ns } => {
                let limit = ns(*at_least_ns);
                write!(f, "missing samples: an unknown number at {limit} or later; every quantile may be too small")
            }
            ImportedFinding::Remark { text } => f.write_str(text),
            ImportedFinding::AbovePeriod { mean_ns, period_ns } => {
                let (mean, period) = (duration(*mean_ns), duration(*period_ns as f64));
                write!(f, "mean {mean} above the period of {period}: the values may be ticks or another unit (--unit)")
            }
            ImportedFinding::SharedCpu { cpu, threads } => {
                write!(f, "CPU {cpu} measured by {threads} threads, which delay each other; measure with one a CPU")
            }
            ImportedFinding::Unknown { facts } => write!(f, "unknown conditions: {}", facts.join(", ")),
            ImportedFinding::FewSamples { level, n_eff } => {
                write!(f, "too few samples for {level}: effective sample size at most {}", count(*n_eff))
            }
            ImportedFinding::LatencyChanged { what, after_percent, before_ns, after_ns } => {
                let (what, before, after) = (of_file(*what), ns(*before_ns), ns(*after_ns));
                let when = format!("after {after_percent} % of the file");
                write!(f, "level shift: {what} {when} ({before} before, {after} after); {NO_INTERVAL}")
            }
            ImportedFinding::LatencyDrifts { what, before_ns, after_ns } => {
                let (what, before, after) = (of_file(*what), ns(*before_ns), ns(*after_ns));
                write!(f, "drift: {what} {before} in the first quarter, {after} in the last; {NO_INTERVAL}")
            }
            ImportedFinding::LatencyInWaves { what } => {
                write!(f, "not stationary: low and high stretches of {}; {NO_INTERVAL}", of_file(*what))
            }
            ImportedFinding::CourseNotTested => {
                f.write_str("stationarity not tested: needs 30 s, with samples in each part of them")
            }
            ImportedFinding::NoCourse => {
                f.write_str("no time series in the file: quantiles have no intervals, stationarity is not tested")
            }
            ImportedFinding::Resolution { resolution_ns } => {
                let by = duration(*resolution_ns as f64);
                write!(f, "resolution {by}: values are truncated to multiples of it, latencies are up to {by} larger")
            }
        }
    }
}
