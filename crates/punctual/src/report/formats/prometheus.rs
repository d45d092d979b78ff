//! A page for the textfile collector of Prometheus' node exporter: text exposition format 0.0.4, base units, `HELP` and `TYPE`.

use analysis::{CellSummary, Level, RunSummary, Verdict};
use model::Header;
use std::fmt::Write;

/// A gauge: its name, what it says, and its value for a cell; `None` leaves the line out.
type Gauge = (&'static str, &'static str, fn(&CellSummary) -> Option<f64>);

const NS: f64 = 1e-9;

const GAUGES: [Gauge; 8] = [
    ("punctual_latency_min_seconds", "Smallest latency of a wake-up.", |cell| cell.min_ns.map(|ns| ns as f64 * NS)),
    (
        "punctual_latency_max_seconds",
        "Largest latency of a wake-up; a bound from below when a wait had not ended.",
        |cell| cell.max.map(|max| max.latency_ns as f64 * NS),
    ),
    ("punctual_measured_seconds", "Time measured.", |cell| Some(cell.measured.as_secs_f64())),
    ("punctual_missed_due_times", "Due times already past when the thread could wait again.", |cell| {
        (!cell.cell.method.is_relative()).then_some(cell.missed as f64)
    }),
    ("punctual_lost_samples", "Samples for which there was no room.", |cell| Some(cell.lost as f64)),
    ("punctual_early_wakeups", "Wake-ups before their due time.", |cell| Some(cell.early as f64)),
    ("punctual_miss_episodes", "Episodes of wake-ups later than the deadline.", |cell| {
        cell.misses.map(|rate| rate.episodes as f64)
    }),
    ("punctual_effective_samples", "Independent samples that the recorded ones are worth at p99.", |cell| {
        cell.n_eff.map(|n_eff| n_eff as f64)
    }),
];

/// The run as metrics; time series come from scraping page after page.
pub(crate) fn prometheus(header: &Header, summary: &RunSummary) -> String {
    let mut text = String::new();
    info(&mut text, header);
    latency(&mut text, summary);
    bounds(&mut text, summary);
    for (name, help, of) in GAUGES {
        let rows = summary.cells.iter().filter_map(|cell| Some((labels(cell, &[]), of(cell)?)));
        metric(&mut text, name, help, "gauge", rows);
    }
    let word = match summary.verdict {
        Verdict::NoneAsked => "none_asked",
        Verdict::Pass { .. } => "pass",
        Verdict::Fail { .. } => "fail",
        Verdict::NotShown { .. } => "not_shown",
    };
    let of = |name: &'static str| (format!("{{verdict=\"{name}\"}}"), if name == word { 1.0 } else { 0.0 });
    let verdicts = ["none_asked", "pass", "fail", "not_shown"].map(of);
    metric(&mut text, "punctual_verdict", "1 for the verdict of the run.", "gauge", verdicts.into_iter());
    text
}

/// When and where, as the labels of a constant.
fn info(text: &mut String, header: &Header) {
    let host = &header.host;
    let fact = |value: Option<&str>| escaped(value.unwrap_or_default());
    let labels = format!(
        "{{host=\"{}\",kernel_release=\"{}\",preemption=\"{}\",title=\"{}\",tool=\"{}\"}}",
        fact(host.hostname.as_deref()),
        fact(host.kernel_release.as_deref()),
        fact(host.preemption.map(model::Preemption::name)),
        escaped(super::title(header)),
        escaped(&header.tool)
    );
    metric(text, "punctual_run_info", "What was measured, on which machine.", "gauge", [(labels, 1.0)].into_iter());
    let started = header.started_unix_ms as f64 / 1e3;
    let help = "When the run began, seconds since 1970-01-01 UTC.";
    metric(text, "punctual_run_start_timestamp_seconds", help, "gauge", [(String::new(), started)].into_iter());
}

/// Quantiles, sum and count as one summary.
fn latency(text: &mut String, summary: &RunSummary) {
    let name = "punctual_latency_seconds";
    let _ = writeln!(text, "# HELP {name} How late threads woke after their due time.\n# TYPE {name} summary");
    for cell in &summary.cells {
        for level in Level::ALL {
            // NaN is the format's word for a quantile that is not known.
            let value = cell.quantiles.at(level).value_ns().map_or("NaN".to_owned(), |ns| number(ns as f64 * NS));
            let _ = writeln!(text, "{name}{} {value}", labels(cell, &[("quantile", &level.p().to_string())]));
        }
        let sum = cell.mean_ns.map_or(0.0, |mean| mean * cell.samples as f64 * NS);
        let _ = writeln!(text, "{name}_sum{} {}", labels(cell, &[]), number(sum));
        let _ = writeln!(text, "{name}_count{} {}", labels(cell, &[]), cell.samples);
    }
}

/// The ends of the intervals of the quantiles.
fn bounds(text: &mut String, summary: &RunSummary) {
    let rows = summary.cells.iter().flat_map(|cell| {
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

fn metric(text: &mut String, name: &str, help: &str, kind: &str, rows: impl Iterator<Item = (String, f64)>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in rows {
        let _ = writeln!(text, "{name}{labels} {}", number(value));
    }
}

/// A value with all the digits it takes to read it back.
fn number(value: f64) -> String {
    // Products with 1e-9 leave noise in the last digits; a nanosecond has nine decimals.
    super::decimal(value)
}

/// Which cell, as labels.
fn labels(cell: &CellSummary, more: &[(&str, &str)]) -> String {
    let asked = &cell.cell;
    let own = [
        ("cell", cell.name.clone()),
        ("load", asked.load.label()),
        ("policy", asked.policy.to_string()),
        ("method", asked.method.to_string()),
        ("period", asked.period.to_string()),
    ];
    let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let pairs: Vec<_> =
        own.into_iter().chain(more).map(|(name, value)| format!("{name}=\"{}\"", escaped(&value))).collect();
    format!("{{{}}}", pairs.join(","))
}

/// A label's value: backslash, quote and line feed are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
