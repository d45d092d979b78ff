//! Results of performance_test (ROS 2): extremes and means of the latencies of messages, by second.

use super::ParseError;
use super::cyclictest_json::no_json;
use super::fields::{number, numbered, rounded, seconds_span};
use punctual_model::{Imported, ImportedThread, Period, Source, Span, StatedConditions};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Document {
    perf_test_version: Option<String>,
    rate: Option<u64>,
    max_runtime: Option<u64>,
    analysis_results: Vec<Second>,
}

/// The messages of one second; times are in seconds. Without messages the extremes have no meaning.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Second {
    latency_n: f64,
    latency_min: f64,
    latency_max: f64,
    latency_mean: f64,
    #[serde(default)]
    num_samples_lost: f64,
}

/// Parses `--logfile FILE.json` (json_logger.hpp).
pub(super) fn json(text: &str, name: &str) -> Result<Imported, ParseError> {
    let document: Document = serde_json::from_slice(text.as_bytes()).map_err(|err| no_json(&err))?;
    Ok(Imported {
        measured: document.max_runtime.filter(|seconds| *seconds > 0).and_then(seconds_span),
        ..imported(&document.analysis_results, (document.perf_test_version, document.rate), name)?
    })
}

/// Parses `--logfile FILE.csv`: `key: value` lines, then rows below `---EXPERIMENT-START---`, in milliseconds
/// (analysis_result.cpp).
pub(super) fn csv(text: &str, name: &str) -> Result<Imported, ParseError> {
    let (mut version, mut rate) = (None, None);
    let mut lines = numbered(text);
    for (_, line) in lines.by_ref().take_while(|(_, line)| *line != "---EXPERIMENT-START---") {
        match line.split_once(':').map(|(key, value)| (key, value.trim())) {
            Some(("Performance Test Version", value)) => version = Some(value.to_owned()),
            Some(("Publishing rate", value)) => rate = value.parse().ok(),
            _ => {}
        }
    }
    let (line, heads) = lines.next().ok_or_else(|| ParseError::of_file("no row: the output is truncated"))?;
    let heads: Vec<_> = heads.split(',').map(str::trim).collect();
    let column = |head: &str| {
        let found = heads.iter().position(|found| *found == head);
        found.ok_or_else(|| ParseError::at(line, format!("no column `{head}`")))
    };
    let columns = ["received", "latency_min (ms)", "latency_max (ms)", "latency_mean (ms)", "lost"].map(column);
    let [n, min, max, mean, lost] = columns;
    let (n, min, max, mean, lost) = (n?, min?, max?, mean?, lost?);
    let mut seconds = Vec::new();
    // The program ends with a sentence.
    for (line, row) in lines.filter(|(_, row)| row.starts_with(|c: char| c.is_ascii_digit())) {
        let fields: Vec<_> = row.split(',').collect();
        let value = |column: usize| number::<f64>(fields.get(column).copied().unwrap_or_default(), line, "number");
        seconds.push(Second {
            latency_n: value(n)?,
            latency_min: value(min)? / 1e3,
            latency_max: value(max)? / 1e3,
            latency_mean: value(mean)? / 1e3,
            num_samples_lost: value(lost)?,
        });
    }
    imported(&seconds, (version, rate), name)
}

/// The measurement of these seconds, by a version of the program at a rate of messages per second.
fn imported(
    seconds: &[Second],
    (version, rate): (Option<String>, Option<u64>),
    name: &str,
) -> Result<Imported, ParseError> {
    let period =
        rate.and_then(|rate| Span::SECOND.ns().checked_div(rate)).and_then(|ns| Period::try_from(Span(ns)).ok());
    let with_messages = || seconds.iter().filter(|second| second.latency_n > 0.0);
    let ns = |value: f64| {
        rounded(value * 1e9)
            .ok_or_else(|| ParseError::of_file(format!("invalid latency {value} s: longer than a year")))
    };
    let (mut samples, mut sum) = (0.0, 0.0);
    let (mut min_ns, mut max_ns): (Option<i64>, Option<i64>) = (None, None);
    for second in with_messages() {
        samples += second.latency_n;
        sum += second.latency_n * second.latency_mean * 1e9;
        let (min, max) = (ns(second.latency_min)?, ns(second.latency_max)?);
        min_ns = Some(min_ns.map_or(min, |least| least.min(min)));
        max_ns = max_ns.max(Some(max));
    }
    // Sums of this size are exact.
    if !(0.0..9e15).contains(&samples) {
        return Err(ParseError::of_file("invalid number of messages"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 9e15")]
    let n = samples as u64;
    let lost: f64 = seconds.iter().map(|second| second.num_samples_lost).sum();
    let mut remarks = vec!["performance_test keeps the extremes and the mean of each second: no quantiles".to_owned()];
    if lost > 0.0 {
        remarks.push(format!("lost messages, which have no latency: {lost}"));
    }
    Ok(Imported {
        conditions: StatedConditions { period, ..StatedConditions::of("message") },
        threads: vec![ImportedThread {
            samples: Some(n),
            min_ns,
            max_ns,
            mean_ns: (n > 0).then_some(sum / samples),
            ..ImportedThread::default()
        }],
        remarks,
        ..Imported::of(Source { version, ..Source::of("performance_test", name) }, 1)
    })
}
