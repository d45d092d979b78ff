//! Summaries of measurements made by other tools.
//!
//! Quantiles where the file has a distribution, no intervals where it has no course of time, and a refusal for
//! everything that it leaves out.

mod curves;

use crate::stats::course::{Course, Courses, of_levels, of_maxima};
use crate::stats::histogram::{merged, standard_deviation};
use crate::stats::levels::{Quantiles, levels};
use crate::stats::quantile::rank;
use crate::stats::stationarity::{self, MIN_SECONDS};
use crate::stats::woodruff::{CONFIDENCE, Quantile, Refusal, estimate_of};
pub use curves::imported_curves;
use punctual_model::{Histogram, Imported, ImportedThread, Level, Span};
use serde::Serialize;

/// One imported measurement in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ImportedNumbers")]
pub struct ImportedCell {
    /// The measurement.
    #[serde(skip)]
    pub imported: Imported,
    /// Name of its file, and the kind of latency where a file has several.
    #[serde(skip)]
    pub name: String,
    pub(crate) threads: usize,
    /// Number of samples; `None` if the tool does not report it.
    pub samples: Option<u64>,
    /// Missed due times; `None` for tools that do not count them.
    pub missed: Option<u64>,
    /// Smallest latency, ns.
    pub min_ns: Option<i64>,
    /// Mean latency, ns: of the distribution if it is complete, else as reported by the tool.
    pub mean_ns: Option<f64>,
    /// Standard deviation, ns; `None` unless the distribution is complete.
    pub stddev_ns: Option<f64>,
    /// The distribution.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// Largest latency, ns.
    pub max_ns: Option<i64>,
    /// Number of the thread with the largest latency, or of its CPU if known.
    pub max_thread: Option<u32>,
    // Effective sample size at p99.
    pub(crate) n_eff: Option<u64>,
    /// Stability over time; `at` is the index of the first of the `stretches` after a change.
    pub(crate) steadiness: FileCourses,
}

// Stationarity over the stretches of time of a file. A quantile that changed has no interval.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ImportedCourses")]
pub(crate) struct FileCourses {
    pub(crate) stretches: usize,
    #[serde(flatten)]
    pub(crate) courses: Courses<usize>,
}

/// Each imported measurement, in the given order.
pub(crate) fn cells(all: &[Imported]) -> Vec<ImportedCell> {
    all.iter().zip(names(all)).map(|(imported, name)| cell(imported, name)).collect()
}

/// File names, without directories where these are not needed to tell them apart, and the kind of latency where a file
/// has several.
fn names(all: &[Imported]) -> Vec<String> {
    let base = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    let of_file = |imported: &Imported| {
        let file = &imported.source.file;
        let is_unclear = all.iter().any(|other| other.source.file != *file && base(&other.source.file) == base(file));
        if is_unclear { file.clone() } else { base(file) }
    };
    let name = |imported: &Imported| {
        let kinds = all.iter().filter(|other| other.source.file == imported.source.file).count();
        let what = if kinds > 1 { format!("/{}", imported.conditions.what) } else { String::new() };
        of_file(imported) + &what
    };
    all.iter().map(name).collect()
}

/// The sum, if every thread has the value.
fn sum(threads: &[ImportedThread], of: impl Fn(&ImportedThread) -> Option<u64>) -> Option<u64> {
    threads.iter().try_fold(0, |all: u64, thread| all.checked_add(of(thread)?))
}

fn cell(imported: &Imported, name: String) -> ImportedCell {
    let threads = &imported.threads;
    let known = imported_histogram(imported);
    let is_whole = known.is_some() && threads.iter().all(|thread| thread.beyond.is_none() && thread.missing() == 0);
    let largest = threads.iter().filter_map(|thread| Some((thread.max_ns?, thread.cpu.unwrap_or(thread.number))));
    // Among equal ones the first.
    let largest = largest.reduce(|best, next| if next.0 > best.0 { next } else { best });
    let whole = known.as_ref().filter(|_| is_whole);
    let of_histogram = || whole.filter(|all| all.n > 0).map(|all| all.sum_ns as f64 / all.n as f64);
    let is_finer = imported.resolution > Span(1_000) || mean_is_finer(imported, of_histogram());
    let mean_ns = if is_finer { mean(threads).or_else(of_histogram) } else { of_histogram().or_else(|| mean(threads)) };
    let slices = slices(threads);
    let courses = courses(imported, known.as_ref(), &slices);
    let quantiles = quantiles(threads, known.as_ref()).with_intervals_where(|level| courses.allows_interval(level));
    ImportedCell {
        name,
        threads: threads.len(),
        samples: sum(threads, |thread| thread.samples),
        missed: sum(threads, |thread| thread.missed),
        min_ns: threads.iter().filter_map(|thread| thread.min_ns).min(),
        mean_ns,
        stddev_ns: whole.and_then(standard_deviation),
        quantiles,
        max_ns: largest.map(|(max_ns, _)| max_ns),
        max_thread: largest.map(|(_, thread)| thread),
        n_eff: quantiles.at(Level::P99).n_eff(),
        steadiness: FileCourses { stretches: slices.len(), courses },
        imported: imported.clone(),
    }
}

/// Stationarity, tested as for records: nothing is reported below half a minute, or without a course of time. Samples
/// beyond the tool's histogram are in no stretch.
fn courses(imported: &Imported, known: Option<&Histogram>, slices: &[Histogram]) -> Courses<usize> {
    let is_short = imported.measured.is_some_and(|measured| measured.as_secs_f64() < MIN_SECONDS as f64);
    let is_whole = imported.threads.iter().all(|thread| thread.beyond.is_none());
    let Some(known) = known.filter(|_| !is_short && is_whole) else {
        return Courses::new([Course::Untested; 3], Course::Untested);
    };
    let maxima: Vec<f64> = slices.iter().filter_map(|slice| slice.max_ns).map(|ns| ns as f64).collect();
    let levels = of_levels(known, slices, &vec![0; slices.len()]);
    Courses::new(levels, of_maxima(stationarity::Gate::of(&maxima), &maxima))
}

/// Whether the tool's mean comes from values finer than its histogram (Xenomai's latency). Other tools round it down to
/// the resolution, or compute it from truncated values and round it to two digits: then the histogram's mean is better.
fn mean_is_finer(imported: &Imported, of_histogram: Option<f64>) -> bool {
    let unit_ns = imported.resolution.ns().max(1) as f64;
    let is_cut = |thread: &ImportedThread| thread.mean_ns.is_none_or(|mean_ns| mean_ns % unit_ns == 0.0);
    let differs = |(tool, histogram): (f64, f64)| (tool - histogram).abs() > unit_ns / 100.0;
    !imported.threads.iter().all(is_cut) && mean(&imported.threads).zip(of_histogram).is_some_and(differs)
}

/// The mean of the threads' means, weighted by their samples.
fn mean(threads: &[ImportedThread]) -> Option<f64> {
    let with_samples = || threads.iter().filter(|thread| thread.samples != Some(0));
    let parts: Option<Vec<(f64, f64)>> =
        with_samples().map(|thread| Some((thread.mean_ns?, thread.samples? as f64))).collect();
    let parts = parts.filter(|parts| !parts.is_empty())?;
    let samples: f64 = parts.iter().map(|(_, n)| n).sum();
    Some(parts.iter().map(|(mean, n)| mean * n).sum::<f64>() / samples)
}

/// All samples of a measurement with a known value; `None` if the file has no distribution.
pub fn imported_histogram(imported: &Imported) -> Option<Histogram> {
    let histograms: Option<Vec<&Histogram>> = imported.threads.iter().map(|thread| thread.histogram.as_ref()).collect();
    histograms.map(|histograms| merged(histograms.into_iter()))
}

/// The quantiles; refused if the file has no distribution.
fn quantiles(threads: &[ImportedThread], known: Option<&Histogram>) -> Quantiles {
    let Some(known) = known else {
        return Quantiles::by(|_| Quantile::Refused(Refusal::NoDistribution));
    };
    let all = Distribution::of(threads, known);
    levels(|p| all.at(p))
}

/// The known samples, and above them those beyond the histogram, which have a rank and no value.
struct Distribution<'a> {
    known: &'a Histogram,
    all: Histogram,
    /// Lower bound of samples beyond the histogram, ns; `None` without any.
    limit_ns: Option<i64>,
    slices: Vec<Histogram>,
}

impl<'a> Distribution<'a> {
    fn of(threads: &[ImportedThread], known: &'a Histogram) -> Distribution<'a> {
        let beyond: Vec<_> = threads.iter().filter_map(|thread| Some((thread.max_ns, thread.beyond?))).collect();
        let mut all = known.clone();
        for (max_ns, beyond) in &beyond {
            let largest = max_ns.map_or(beyond.at_least_ns, |max_ns| max_ns.max(beyond.at_least_ns));
            all.record_n(largest, beyond.samples.unwrap_or(0));
        }
        let limit_ns = beyond.iter().filter(|(_, beyond)| beyond.samples != Some(0)).map(|(_, b)| b.at_least_ns).min();
        Distribution { known, all, limit_ns, slices: slices(threads) }
    }

    /// The quantile of any `p` from 0 to below 1.
    fn at(&self, p: f64) -> Quantile {
        match (estimate_of(&self.all, &self.slices, p, CONFIDENCE), self.limit_ns) {
            (Quantile::Known { .. }, Some(at_least_ns)) if rank(self.all.n, p) > self.known.n => {
                Quantile::Refused(Refusal::Beyond { at_least_ns })
            }
            (quantile, _) => quantile,
        }
    }
}

/// The stretches of all threads, merged with those nearest in time.
fn slices(threads: &[ImportedThread]) -> Vec<Histogram> {
    let most = threads.iter().map(|thread| thread.slices.len()).max().unwrap_or(0);
    let of = |i: usize| {
        let of_threads = threads.iter().filter_map(move |thread| {
            // All threads cover the same time, whatever their numbers of stretches.
            let at = (i * thread.slices.len()).checked_div(most)?;
            let is_first = i == 0 || (i - 1) * thread.slices.len() / most != at;
            thread.slices.get(at).filter(|_| is_first)
        });
        merged(of_threads.map(|slice| &slice.histogram))
    };
    (0..most).map(of).collect()
}

#[cfg(test)]
pub(crate) mod tests;
