//! A page for the textfile collector of Prometheus' node exporter: text exposition format 0.0.4, base units.

use super::Page;
use punctual_analysis::{Level, Row};
use std::fmt::Write;

/// A gauge: name, help text and value for a cell; `None` omits the line.
type Gauge = (&'static str, &'static str, fn(&Row<'_>) -> Option<f64>);

pub(super) const NS: f64 = 1e-9;

const GAUGES: [Gauge; 8] = [
    ("punctual_latency_min_seconds", "Smallest latency of a wake-up.", |cell| cell.min_ns.map(|ns| ns as f64 * NS)),
    (
        "punctual_latency_max_seconds",
        "Largest latency of a wake-up; a bound from below when a wait had not ended.",
        |cell| cell.max_ns.map(|ns| ns as f64 * NS),
    ),
    ("punctual_measured_seconds", "Time measured.", |cell| cell.measured.map(punctual_model::Span::as_secs_f64)),
    ("punctual_missed_due_times", "Due times already past when the thread could wait again.", |cell| {
        cell.missed.map(|missed| missed as f64)
    }),
    ("punctual_lost_samples", "Samples for which there was no room.", |cell| Some(cell.own()?.lost? as f64)),
    ("punctual_early_wakeups", "Wake-ups before their due time.", |cell| Some(cell.own()?.early? as f64)),
    ("punctual_miss_episodes", "Episodes of wake-ups later than the deadline.", |cell| {
        Some(cell.own()?.misses?.episodes as f64)
    }),
    ("punctual_effective_samples", "Independent samples that the recorded ones are worth at p99.", |cell| {
        cell.n_eff.map(|n_eff| n_eff as f64)
    }),
];

/// The run as metrics; repeated scrapes make a time series.
pub fn prometheus(page: &Page<'_>) -> String {
    let mut text = String::new();
    info(&mut text, page);
    latency(&mut text, page);
    bounds(&mut text, page);
    for (name, help, of) in GAUGES {
        let rows = page.rows.iter().filter_map(|cell| Some((labels(cell, &[]), of(cell)?)));
        metric(&mut text, name, help, "gauge", rows);
    }
    let verdicts = [("none_asked", ""), ("pass", "PASS"), ("fail", "FAIL"), ("inconclusive", "INCONCLUSIVE")];
    let is_it = |word| if page.verdict.word() == word { 1.0 } else { 0.0 };
    let verdicts = verdicts.map(|(name, word)| (format!("{{verdict=\"{name}\"}}"), is_it(word)));
    metric(&mut text, "punctual_verdict", "1 for the verdict of the run.", "gauge", verdicts.into_iter());
    text
}

/// Writes date and machine of the run as the labels of a constant.
fn info(text: &mut String, page: &Page<'_>) {
    let host = page.host;
    let fact = |value: Option<&str>| escaped(value.unwrap_or_default());
    let labels = format!(
        "{{host=\"{}\",kernel_release=\"{}\",preemption=\"{}\",title=\"{}\",tool=\"{}\"}}",
        fact(host.hostname.as_deref()),
        fact(host.kernel_release.as_deref()),
        fact(host.preemption.map(punctual_model::Preemption::name)),
        escaped(page.title),
        escaped(page.tool)
    );
    metric(text, "punctual_run_info", "What was measured, on which machine.", "gauge", [(labels, 1.0)].into_iter());
    let help = "When the run began, seconds since 1970-01-01 UTC.";
    metric(
        text,
        "punctual_run_start_timestamp_seconds",
        help,
        "gauge",
        page.started_unix_ms.map(|ms| (String::new(), ms as f64 / 1e3)).into_iter(),
    );
}

/// Writes quantiles, sum and count as one summary.
fn latency(text: &mut String, page: &Page<'_>) {
    let name = "punctual_latency_seconds";
    let _ = writeln!(text, "# HELP {name} How late threads woke after their due time.\n# TYPE {name} summary");
    for cell in &page.rows {
        for level in Level::ALL {
            // NaN stands for an unknown quantile.
            let value = cell.quantiles.at(level).value_ns().map_or("NaN".to_owned(), |ns| number(ns as f64 * NS));
            let _ = writeln!(text, "{name}{} {value}", labels(cell, &[("quantile", &level.p().to_string())]));
        }
        let Some(samples) = cell.samples else { continue };
        let sum = cell.mean_ns.map(|mean| mean * samples as f64 * NS);
        let sum = if samples == 0 { "0".to_owned() } else { sum.map_or("NaN".to_owned(), number) };
        let _ = writeln!(text, "{name}_sum{} {sum}", labels(cell, &[]));
        let _ = writeln!(text, "{name}_count{} {samples}", labels(cell, &[]));
    }
}

/// Writes the ends of the quantiles' intervals.
fn bounds(text: &mut String, page: &Page<'_>) {
    let rows = page.rows.iter().flat_map(|cell| {
        Level::ALL.into_iter().flat_map(move |level| {
            let ends = cell.quantiles.at(level).interval_ns();
            let row = move |bound: &str, ns: i64| {
                (labels(cell, &[("level", &level.p().to_string()), ("bound", bound)]), ns as f64 * NS)
            };
            ends.into_iter().flat_map(move |(lower, upper)| [row("lower", lower), row("upper", upper)])
        })
    });
    let help = "Ends of the 95 % intervals of the quantiles.";
    metric(text, "punctual_latency_interval_seconds", help, "gauge", rows);
}

/// Writes one metric with its rows; without rows, nothing.
pub(super) fn metric(text: &mut String, name: &str, help: &str, kind: &str, rows: impl Iterator<Item = (String, f64)>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in rows {
        let _ = writeln!(text, "{name}{labels} {}", number(value));
    }
}

/// A value with all significant digits.
pub(super) fn number(value: f64) -> String {
    // Products with 1e-9 have rounding noise; nanoseconds have nine decimals.
    super::decimal(value)
}

fn labels(cell: &Row<'_>, more: &[(&str, &str)]) -> String {
    // Prometheus treats an empty label as a missing one, which stands for unknown.
    let own = [
        ("cell", cell.name.to_owned()),
        ("time", cell.own().map(|cell| cell.cell.kernel.time().to_owned()).unwrap_or_default()),
        ("load", cell.load.as_ref().map(punctual_model::ImportedLoad::label).unwrap_or_default()),
        ("policy", cell.policy.clone().unwrap_or_default()),
        ("method", cell.method.clone().unwrap_or_default()),
        ("period", cell.period.map(|period| period.to_string()).unwrap_or_default()),
    ];
    let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let pairs: Vec<_> =
        own.into_iter().chain(more).map(|(name, value)| format!("{name}=\"{}\"", escaped(&value))).collect();
    format!("{{{}}}", pairs.join(","))
}

/// Value of a label with backslash, quote and line feed escaped.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
