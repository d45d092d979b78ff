//! Histograms of `rtla timerlat hist` and `rtla osnoise hist` (tools/tracing/rtla of Linux).
//!
//! Version 6.1 has no table of all CPUs, and reports a threshold stop in one line; later versions also report the CPU.

use super::ParseError;
use super::column::Column;
use super::fields::{clock, ns, number, numbered, seconds_span};
use punctual_model::{Beyond, Histogram, Imported, ImportedThread, Source, Span, StatedConditions};
use std::collections::BTreeMap;

/// A column: one kind of latency on one CPU.
#[derive(Debug)]
struct Series {
    /// `IRQ`, `Thr`, `Usr` or `CPU`.
    kind: String,
    cpu: u32,
    column: Column,
    feet: BTreeMap<&'static str, Option<i64>>,
}

/// Labels of the footer lines.
const FOOTER_LABELS: [&str; 5] = ["over", "count", "min", "avg", "max"];

const UNITS_NS: [(&str, u64); 2] = [("microseconds", 1_000), ("nanoseconds", 1)];

/// Parses a whole output: one measurement for each kind of latency.
pub(super) fn read(text: &str, name: &str) -> Result<Vec<Imported>, ParseError> {
    let mut tool = "";
    let (mut unit_ns, mut measured, mut series, mut remarks) = (None, None, Vec::<Series>::new(), Vec::new());
    let (mut has_index, mut is_stopped, mut is_whole, mut has_sums) = (false, false, false, false);
    // Value after the last row, even if that row is all zeros.
    let mut end = 0;
    for (line, text) in numbered(text) {
        if let Some(rest) = text.strip_prefix('#') {
            let rest = rest.trim();
            match rest {
                "RTLA timerlat histogram" => tool = "rtla timerlat",
                "RTLA osnoise histogram" => tool = "rtla osnoise",
                _ => {}
            }
            if let Some(unit) = rest.strip_prefix("Time unit is ") {
                unit_ns = UNITS_NS.iter().find(|(word, _)| unit.starts_with(word)).map(|(_, ns)| *ns);
            }
            if let Some(duration) = rest.strip_prefix("Duration:") {
                measured = days_and_clock(duration);
            }
            is_stopped |= rest.starts_with("# CPU");
            continue;
        }
        is_stopped |= text.contains("hit stop tracing");
        let mut words = text.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if first == "Index" && has_index {
            return Err(ParseError::several(line));
        } else if has_sums {
            continue;
        } else if first == "Index" {
            series = words.map(|word| head(word, line)).collect::<Result<_, _>>()?;
            has_index = true;
        } else if let Some(foot) = FOOTER_LABELS.into_iter().find(|foot| first.strip_suffix(':') == Some(foot)) {
            feet(&mut series, foot, words, line)?;
            is_whole |= foot == "max";
        } else if first == "ALL:" {
            // The same values, summed up.
            has_sums = true;
        } else if has_index && first.starts_with(|c: char| c.is_ascii_digit()) {
            end = end.max(row(&mut series, first, words, line)?.saturating_add(1));
        } else if !text.contains(' ') || first.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(ParseError::at(
                line,
                "a row before the line `Index ...`; unsupported: --no-index and --no-header",
            ));
        }
        // All other lines are messages about a threshold stop.
    }
    let unit_ns =
        unit_ns.ok_or_else(|| ParseError::of_file("no line `# Time unit is ...`; unsupported: --no-header"))?;
    if series.is_empty() && has_index && is_whole && tool == "rtla osnoise" {
        return Ok(vec![no_noise(unit_ns, measured, name)]);
    }
    if series.is_empty() {
        return Err(ParseError::of_file("no column: nothing was measured, or the output is truncated"));
    }
    if is_stopped {
        remarks.push("stopped at a threshold (-i, -T, -s, -S): the maximum ended the measurement".to_owned());
    }
    kinds(&series).iter().map(|kind| of_kind(kind, &series, (tool, name, (unit_ns, end), measured), &remarks)).collect()
}

/// The kinds of latency, in the order of the columns.
fn kinds(series: &[Series]) -> Vec<&str> {
    let mut kinds: Vec<&str> = Vec::new();
    for series in series {
        if !kinds.contains(&series.kind.as_str()) {
            kinds.push(&series.kind);
        }
    }
    kinds
}

/// A measurement in which no CPU had noise above the tracer's threshold: rtla omits the columns of such CPUs.
fn no_noise(unit_ns: u64, measured: Option<Span>, name: &str) -> Imported {
    Imported {
        conditions: StatedConditions::of("noise"),
        measured,
        threads: vec![ImportedThread {
            samples: Some(0),
            histogram: Some(Histogram::default()),
            ..ImportedThread::default()
        }],
        remarks: vec![
            "no CPU had noise above the tracer's threshold; the file does not list the traced CPUs".to_owned(),
        ],
        ..Imported::of(Source::of("rtla osnoise", name), unit_ns)
    }
}

/// Parses a column header such as `IRQ-000`.
fn head(word: &str, line: usize) -> Result<Series, ParseError> {
    let unknown = || ParseError::at(line, format!("invalid column `{}` of rtla", word.escape_debug()));
    let (kind, cpu) = word.split_once('-').ok_or_else(unknown)?;
    let is_known = ["IRQ", "Thr", "Usr", "CPU"].contains(&kind);
    let cpu = cpu.parse().ok().filter(|_| is_known).ok_or_else(unknown)?;
    Ok(Series { kind: kind.to_owned(), cpu, column: Column::default(), feet: BTreeMap::new() })
}

/// Parses a row; returns its latency.
fn row<'a>(
    series: &mut [Series],
    value: &str,
    counts: impl Iterator<Item = &'a str>,
    line: usize,
) -> Result<u64, ParseError> {
    let value = number(value, line, "latency")?;
    let counts: Vec<u64> = counts.map(|count| number(count, line, "count")).collect::<Result<_, _>>()?;
    if counts.len() != series.len() {
        return Err(ParseError::at(line, format!("{} counts for {} columns", counts.len(), series.len())));
    }
    series.iter_mut().zip(counts).try_for_each(|(series, n)| series.column.add(value, n, line))?;
    Ok(value)
}

fn feet<'a>(
    series: &mut [Series],
    foot: &'static str,
    values: impl Iterator<Item = &'a str>,
    line: usize,
) -> Result<(), ParseError> {
    // `-` if a column has no sample.
    let value = |word: &str| match word {
        "-" => Ok(None),
        // Some versions print a mean with decimals; others truncate it.
        _ if foot == "avg" => number(word.split('.').next().unwrap_or(word), line, "number").map(Some),
        _ => number(word, line, "number").map(Some),
    };
    let values: Vec<Option<i64>> = values.map(value).collect::<Result<_, _>>()?;
    if series.is_empty() {
        return Ok(());
    }
    if values.len() != series.len() {
        return Err(ParseError::at(line, format!("{} numbers for {} columns", values.len(), series.len())));
    }
    for (series, value) in series.iter_mut().zip(values) {
        series.feet.insert(foot, value);
    }
    Ok(())
}

/// Parses `   0 00:10:00`: days, hours, minutes, seconds.
fn days_and_clock(text: &str) -> Option<Span> {
    let (days, time) = text.trim().split_once(' ')?;
    let of_days = seconds_span(days.parse::<u64>().ok()?.checked_mul(86_400)?)?;
    Some(Span(of_days.ns().checked_add(clock(time)?.ns())?)).filter(|span| *span <= Span::MAX)
}

/// Tool, file, unit in ns with the end of the rows, and duration of the measurement.
type Common<'a> = (&'a str, &'a str, (u64, u64), Option<Span>);

fn of_kind(
    kind: &str,
    series: &[Series],
    (tool, name, (unit_ns, end), measured): Common<'_>,
    remarks: &[String],
) -> Result<Imported, ParseError> {
    let mut remarks = remarks.to_vec();
    let what = match kind {
        "IRQ" => "irq",
        "Thr" => "thread",
        "Usr" => "user",
        _ => {
            remarks.push("noise of a busy thread: the time it was kept from running, not a wake-up latency".to_owned());
            "noise"
        }
    };
    if what != "noise" {
        remarks.push("timerlat skips missed periods and does not count them".to_owned());
    }
    let of_kind: Vec<_> = series.iter().filter(|series| series.kind == kind).collect();
    let step = of_kind.iter().fold(0, |step, s| super::column::greatest_common_divisor(step, s.column.step()));
    let threads = of_kind.iter().map(|series| one(series, (unit_ns, end), &mut remarks)).collect::<Result<_, _>>()?;
    Ok(Imported {
        conditions: StatedConditions::of(what),
        measured,
        threads,
        remarks,
        ..Imported::of(Source::of(tool, name), unit_ns.saturating_mul(step.max(1)))
    })
}

fn one(series: &Series, (unit_ns, end): (u64, u64), remarks: &mut Vec<String>) -> Result<ImportedThread, ParseError> {
    let Series { cpu, column, feet, .. } = series;
    let foot = |key| feet.get(key).copied().flatten();
    let scaled = |key| foot(key).map(|value| ns(value, unit_ns).map_err(ParseError::of_file)).transpose();
    let over = foot("over").and_then(|n| u64::try_from(n).ok());
    let known = column.n.checked_add(over.unwrap_or(0));
    let known =
        known.ok_or_else(|| ParseError::of_file(format!("CPU {cpu}: more samples than a measurement can have")))?;
    let counted = foot("count").and_then(|n| u64::try_from(n).ok());
    if counted.is_some_and(|count| count != known) {
        let said = foot("count").unwrap_or_default();
        // Its counters are C ints, and events between the kernel and rtla may be lost.
        remarks.push(format!("CPU {cpu}: the file states {said} samples and holds {known}"));
    }
    let has_samples = known > 0;
    let end_ns = i64::try_from(end).ok().and_then(|end| ns(end, unit_ns).ok()).unwrap_or(0);
    // Rows of zeros are omitted: without samples in rows the minimum is a better bound than the last row.
    let least_ns = scaled("min")?.filter(|_| column.n == 0).unwrap_or(0).max(end_ns);
    Ok(ImportedThread {
        number: *cpu,
        cpu: Some(*cpu),
        samples: Some(known.max(counted.unwrap_or(0))),
        histogram: Some(column.histogram_from(unit_ns, scaled("min")?)?),
        beyond: over.filter(|n| *n > 0).map(|n| Beyond { samples: Some(n), at_least_ns: least_ns }),
        min_ns: scaled("min")?.filter(|_| has_samples),
        max_ns: scaled("max")?.filter(|_| has_samples),
        mean_ns: scaled("avg")?.filter(|_| has_samples).map(|ns| ns as f64),
        missed: None,
        slices: Vec::new(),
    })
}
