//! Comma-separated values (RFC 4180, lines ended by a line feed): one row for each cell, units in the heads.

use super::page::{Page, Row};
use analysis::{Level, Osnoise, Timerlat};
use std::fmt::Display;

/// A column: its head, and what it holds of a cell; empty where nothing is known.
type Column = (&'static str, fn(&Row<'_>) -> String);

const COLUMNS: [Column; 38] = [
    ("started_unix_ms", |row| known(row.started_unix_ms)),
    ("hostname", |row| known(row.host.hostname.as_ref())),
    ("kernel_release", |row| known(row.host.kernel_release.as_ref())),
    ("name", |row| row.name.to_owned()),
    ("kernel", |row| known(row.kernel.as_ref())),
    ("time", |row| known(row.time)),
    ("load", |row| known(row.load)),
    ("policy", |row| known(row.policy.as_ref())),
    ("period_ns", |row| known(row.period.map(model::Period::ns))),
    ("method", |row| known(row.method.as_ref())),
    ("cpus", |row| known(row.cpus.as_ref())),
    ("cell_id", |row| known(row.cell_id.as_ref())),
    ("blocks", |row| known(row.blocks)),
    ("measured_ns", |row| known(row.measured.map(model::Span::ns))),
    ("samples", |row| known(row.samples)),
    ("missed", |row| known(row.missed)),
    ("early", |row| known(row.early)),
    ("lost", |row| known(row.lost)),
    ("censored", |row| known(row.censored)),
    ("min_ns", |row| known(row.min_ns)),
    ("mean_ns", |row| known(row.mean_ns)),
    ("stddev_ns", |row| known(row.stddev_ns)),
    ("p50_ns", |row| value(row, Level::P50)),
    ("p50_lower_ns", |row| lower(row, Level::P50)),
    ("p50_upper_ns", |row| upper(row, Level::P50)),
    ("p99_ns", |row| value(row, Level::P99)),
    ("p99_lower_ns", |row| lower(row, Level::P99)),
    ("p99_upper_ns", |row| upper(row, Level::P99)),
    ("p999_ns", |row| value(row, Level::P999)),
    ("p999_lower_ns", |row| lower(row, Level::P999)),
    ("p999_upper_ns", |row| upper(row, Level::P999)),
    ("max_ns", |row| known(row.max_ns)),
    ("max_is_lower_bound", |row| known(row.max_is_lower_bound)),
    ("max_block", |row| known(row.max_block)),
    ("max_cpu", |row| known(row.max_cpu)),
    ("n_eff", |row| known(row.n_eff)),
    ("miss_episodes", |row| known(row.miss_episodes)),
    ("misses_upper_per_hour", |row| known(row.misses_upper_per_hour)),
];

/// Those of a run whose plan asks for the kernel's tracers, after all others.
const OF_TRACERS: [Column; 15] = [
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
];

/// The cells of a run as CSV. The first columns say which run it is, so that files can be put below each other.
pub(crate) fn csv(page: &Page<'_>) -> String {
    let is_traced = page.rows.iter().any(|row| row.tracers.is_some());
    let columns: Vec<&Column> = COLUMNS.iter().chain(OF_TRACERS.iter().filter(|_| is_traced)).collect();
    let line = |fields: Vec<String>| fields.join(",") + "\n";
    let mut text = line(columns.iter().map(|(head, _)| (*head).to_owned()).collect());
    for row in &page.rows {
        text += &line(columns.iter().map(|(_, show)| field(&show(row))).collect());
    }
    text
}

fn timerlat<'a>(row: &Row<'a>) -> Option<&'a Timerlat> {
    row.tracers?.timerlat.as_ref()
}

fn osnoise<'a>(row: &Row<'a>) -> Option<&'a Osnoise> {
    row.tracers?.osnoise.as_ref()
}

fn known(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn value(row: &Row<'_>, level: Level) -> String {
    known(row.quantiles.at(level).value_ns())
}

fn lower(row: &Row<'_>, level: Level) -> String {
    known(row.quantiles.at(level).interval_ns().map(|(lower, _)| lower))
}

fn upper(row: &Row<'_>, level: Level) -> String {
    known(row.quantiles.at(level).interval_ns().map(|(_, upper)| upper))
}

/// A field as RFC 4180 wants it: in quotes where it holds a comma, a quote or a line break.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_only_where_they_must_be() {
        for (text, quoted) in
            [("", ""), ("none", "none"), ("a,b", "\"a,b\""), ("say \"x\"", "\"say \"\"x\"\"\""), ("a\nb", "\"a\nb\"")]
        {
            assert_eq!(field(text), quoted);
        }
    }
}
