//! Comma-separated values (RFC 4180, but with LF line endings): one row for each cell, units in the column names.

use super::Page;
use punctual_analysis::{CellSummary, Level, Osnoise, Row, ThreadSummary, Timerlat};
use punctual_model::HwlatGaps;
use std::fmt::Display;

/// A column: its name, and the value for a cell, empty if unknown.
type Column = (&'static str, fn(&Row<'_>) -> String);

type Show = Box<dyn Fn(&Row<'_>) -> String>;

const COLUMNS: [Column; 22] = [
    ("started_unix_ms", |row| known(row.started_unix_ms)),
    ("hostname", |row| known(row.host.hostname.as_ref())),
    ("kernel_release", |row| known(row.host.kernel_release.as_ref())),
    ("name", |row| row.name.to_owned()),
    ("kernel", |row| own(row, |cell| cell.cell.kernel.to_string())),
    ("time", |row| own(row, |cell| cell.cell.kernel.time())),
    ("load", |row| known(row.load.as_ref())),
    ("policy", |row| known(row.policy.as_ref())),
    ("period_ns", |row| known(row.period.map(punctual_model::Period::ns))),
    ("method", |row| known(row.method.as_ref())),
    ("cpus", |row| known(row.cpus.as_ref())),
    ("cell_id", |row| own(row, |cell| cell.cell.id().to_string())),
    ("blocks", |row| own(row, |cell| cell.blocks)),
    ("measured_ns", |row| known(row.measured.map(punctual_model::Span::ns))),
    ("samples", |row| known(row.samples)),
    ("missed", |row| known(row.missed)),
    ("early", |row| known(row.own().and_then(|cell| cell.early))),
    ("lost", |row| known(row.own().and_then(|cell| cell.lost))),
    ("censored", |row| known(waits_open(row))),
    ("min_ns", |row| known(row.min_ns)),
    ("mean_ns", |row| known(row.mean_ns)),
    ("stddev_ns", |row| known(row.stddev_ns)),
];

/// Columns after the usual quantiles.
const AFTER_QUANTILES: [Column; 7] = [
    ("max_ns", |row| known(row.max_ns)),
    ("max_is_lower_bound", |row| known(row.max().map(|max| max.at_least))),
    ("max_block", |row| known(row.max().map(|max| max.block))),
    ("max_cpu", |row| known(row.max_cpu)),
    ("n_eff", |row| known(row.n_eff)),
    ("miss_episodes", |row| known(row.own().and_then(|cell| cell.misses).map(|rate| rate.episodes))),
    ("misses_upper_per_hour", |row| known(row.own().and_then(|cell| cell.misses).map(|rate| rate.upper_per_hour))),
];

/// The column after the higher quantiles.
const PREPARE: Column = ("prepare", |row| own(row, |cell| cell.cell.conditions.prepare.clone()));

/// Columns of a run whose plan asks for the kernel's tracers, after all others.
const OF_TRACERS: [Column; 20] = [
    ("timerlat_irq_samples", |row| known(timerlat(row).map(|seen| seen.irq.samples))),
    ("timerlat_irq_p50_ns", |row| known(timerlat(row).and_then(|seen| seen.irq.p50_ns))),
    ("timerlat_irq_max_ns", |row| known(timerlat(row).and_then(|seen| seen.irq.max_ns))),
    ("timerlat_thread_samples", |row| known(timerlat(row).map(|seen| seen.thread.samples))),
    ("timerlat_thread_p50_ns", |row| known(timerlat(row).and_then(|seen| seen.thread.p50_ns))),
    ("timerlat_thread_max_ns", |row| known(timerlat(row).and_then(|seen| seen.thread.max_ns))),
    ("timerlat_lost", |row| known(timerlat(row).map(|seen| seen.lost))),
    ("osnoise_runtime_us", |row| known(osnoise(row).map(|seen| seen.runtime_us))),
    ("osnoise_noise_us", |row| known(osnoise(row).map(|seen| seen.noise_us))),
    ("osnoise_max_single_us", |row| known(osnoise(row).map(|seen| seen.max_single_us))),
    ("osnoise_hardware", |row| known(osnoise(row).map(|seen| seen.hardware))),
    ("osnoise_nmi", |row| known(osnoise(row).map(|seen| seen.nmi))),
    ("osnoise_irq", |row| known(osnoise(row).map(|seen| seen.irq))),
    ("osnoise_softirq", |row| known(osnoise(row).map(|seen| seen.softirq))),
    ("osnoise_thread", |row| known(osnoise(row).map(|seen| seen.thread))),
    ("hwlat_watched_us", |row| known(hwlat(row).and_then(|seen| seen.watched_us))),
    ("hwlat_gaps", |row| known(hwlat(row).map(|seen| seen.gaps))),
    ("hwlat_longest_us", |row| known(hwlat(row).and_then(|seen| seen.longest_us))),
    ("hwlat_nmi", |row| known(hwlat(row).map(|seen| seen.nmi))),
    ("hwlat_lost", |row| known(hwlat(row).map(|seen| seen.lost))),
];

/// Columns of a run with threads of different periods: the values of all threads of a cell, joined by `+`.
const OF_THREADS: [Column; 9] = [
    ("thread_cpu", |row| of_threads(row, |thread| known(Some(thread.cpu)))),
    ("thread_period_ns", |row| of_threads(row, |thread| known(Some(thread.period.ns())))),
    ("thread_samples", |row| of_threads(row, |thread| known(Some(thread.all.samples)))),
    ("thread_missed", |row| of_threads(row, |thread| known(Some(thread.all.missed)))),
    ("thread_min_ns", |row| of_threads(row, |thread| known(thread.all.min_ns))),
    ("thread_mean_ns", |row| of_threads(row, |thread| known(thread.all.mean_ns))),
    ("thread_stddev_ns", |row| of_threads(row, |thread| known(thread.all.stddev_ns))),
    ("thread_max_ns", |row| of_threads(row, |thread| known(thread.all.max_ns))),
    ("thread_max_is_lower_bound", |row| of_threads(row, |thread| known(Some(thread.all.max_is_lower_bound)))),
];

/// The last column: operations a second of each part of the load.
const RATES: Column = ("load_per_second", |row| own(row, rates));

/// The cells of a run as CSV. The first columns identify the run, so that files can be concatenated.
pub fn csv(page: &Page<'_>) -> String {
    let is_traced = page.rows.iter().any(|row| row.own().is_some_and(|cell| cell.tracers.is_some()));
    let has_threads = page.rows.iter().any(|row| row.own().is_some_and(CellSummary::has_several_periods));
    let of_tracers = OF_TRACERS.iter().filter(|_| is_traced);
    let of_threads = OF_THREADS.iter().filter(|_| has_threads);
    let named = |(head, show): &Column| -> (String, Show) { ((*head).to_owned(), Box::new(*show)) };
    // Higher quantiles came later, and programs may rely on the positions of columns.
    let (usual, higher) = Level::ALL.split_at(Level::USUAL.len());
    let first =
        COLUMNS.iter().map(named).chain(usual.iter().flat_map(of_level)).chain(AFTER_QUANTILES.iter().map(named));
    let last = std::iter::once(&PREPARE).chain(of_tracers).chain(of_threads).chain([&RATES]).map(named);
    let columns: Vec<_> = first.chain(higher.iter().flat_map(of_level)).chain(last).collect();
    let line = |fields: Vec<String>| fields.join(",") + "\n";
    let mut text = line(columns.iter().map(|(head, _)| head.clone()).collect());
    for row in &page.rows {
        text += &line(columns.iter().map(|(_, show)| field(&show(row))).collect());
    }
    text
}

/// Operations a second of each part of the load, in its order; empty where unknown.
fn rates(cell: &CellSummary) -> String {
    let rates = cell.loads.iter().map(|part| known(part.per_second.map(|rate| format!("{rate:.3}"))));
    rates.collect::<Vec<_>>().join("+")
}

/// A value of each thread of a cell, in the order of the CPUs; empty where all have one period.
fn of_threads(row: &Row<'_>, show: fn(&ThreadSummary) -> String) -> String {
    let threads = row.own().filter(|cell| cell.has_several_periods()).map(|cell| &cell.by_thread);
    threads.into_iter().flatten().map(show).collect::<Vec<_>>().join("+")
}

fn timerlat<'a>(row: &Row<'a>) -> Option<&'a Timerlat> {
    row.own()?.tracers.as_ref()?.timerlat.as_ref()
}

fn osnoise<'a>(row: &Row<'a>) -> Option<&'a Osnoise> {
    row.own()?.tracers.as_ref()?.osnoise.as_ref()
}

fn hwlat<'a>(row: &Row<'a>) -> Option<&'a HwlatGaps> {
    row.own()?.tracers.as_ref()?.hwlat.as_ref()
}

fn known(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Waits still open at the end; `None` without a record of its own.
fn waits_open(row: &Row<'_>) -> Option<u64> {
    let cell = row.own().filter(|cell| cell.lost.is_some())?;
    Some(cell.censored.map_or(0, |open| open.waits))
}

fn own<T: Display>(row: &Row<'_>, of: fn(&CellSummary) -> T) -> String {
    known(row.own().map(of))
}

/// Columns of a quantile and of its interval.
fn of_level(level: &Level) -> [(String, Show); 3] {
    let (level, key) = (*level, level.key());
    let end = move |row: &Row<'_>, end: fn((i64, i64)) -> i64| known(row.quantiles.at(level).interval_ns().map(end));
    [
        (format!("{key}_ns"), Box::new(move |row| known(row.quantiles.at(level).value_ns()))),
        (format!("{key}_lower_ns"), Box::new(move |row| end(row, |(lower, _)| lower))),
        (format!("{key}_upper_ns"), Box::new(move |row| end(row, |(_, upper)| upper))),
    ]
}

/// A field in the form of RFC 4180: quoted if it contains a comma, a quote or a line break, or a semicolon or a tab, at
/// which some spreadsheets split. An apostrophe disarms text that a spreadsheet would take for a formula; numbers stay
/// numbers.
pub(crate) fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r', ';', '\t']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_only_where_they_must_be() {
        for (text, quoted) in [
            ("", ""),
            ("none", "none"),
            ("a,b", "\"a,b\""),
            ("a;=b", "\"a;=b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("a\nb", "\"a\nb\""),
            ("-12.5", "-12.5"),
            ("+3", "+3"),
            ("1=2", "1=2"),
            ("=cmd|'/C calc'!A0", "'=cmd|'/C calc'!A0"),
            ("@SUM(A1,A2)", "\"'@SUM(A1,A2)\""),
            ("+1+cmd", "'+1+cmd"),
            ("-1-cmd", "'-1-cmd"),
            ("\t=x", "\"'\t=x\""),
        ] {
            assert_eq!(field(text), quoted);
        }
    }
}
