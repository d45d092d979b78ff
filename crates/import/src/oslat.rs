//! Text of oslat (rt-tests): a block of `Core:`, rows of the histogram, and extremes, with a column for each CPU.

use super::column::Column;
use super::fields::{number, us};
use super::xenomai::beyond;
use super::{ParseError, measurement, source};
use model::{CpuSet, Imported, ImportedThread, Span, StatedConditions};

/// Unit of its values.
const UNIT_NS: u64 = 1_000;

/// Lines with a value for each CPU, by their first word.
#[derive(Debug, Default)]
struct Parsed {
    cpus: Vec<u32>,
    columns: Vec<Column>,
    min_ns: Vec<i64>,
    mean_ns: Vec<i64>,
    max_ns: Vec<i64>,
    /// The measured time of each CPU, thousandths of a second.
    measured_ms: Vec<i64>,
    version: Option<String>,
    priority: Option<u32>,
}

/// Parses a whole output. oslat rounds up: a value of 1 us stands for every interruption of at most 1 us.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, ParseError> {
    let mut parsed = Parsed::default();
    for (line, text) in text.lines().enumerate().map(|(i, text)| (i + 1, text)) {
        parsed.line(text, line)?;
    }
    let Parsed { cpus, mut columns, min_ns, mean_ns, max_ns, measured_ms, version, priority } = parsed;
    let n = cpus.len();
    let is_whole =
        n > 0 && columns.len() == n && [&min_ns, &mean_ns, &max_ns, &measured_ms].iter().all(|all| all.len() == n);
    if !is_whole {
        return Err(ParseError::of_file("no complete result: lines Core to Duration; the output may be truncated"));
    }
    let mut remarks = vec!["values are rounded up to whole microseconds".to_owned()];
    let mut threads = Vec::new();
    for (index, (cpu, column)) in cpus.iter().zip(&mut columns).enumerate() {
        let beyond = beyond(column, UNIT_NS, max_ns[index], &mut remarks)?;
        let histogram = column.histogram(UNIT_NS)?;
        threads.push(ImportedThread {
            number: u32::try_from(index).unwrap_or(u32::MAX),
            cpu: Some(*cpu),
            samples: Some(histogram.n.saturating_add(beyond.and_then(|b| b.samples).unwrap_or(0))),
            histogram: Some(histogram),
            beyond,
            min_ns: Some(min_ns[index]),
            max_ns: Some(max_ns[index]),
            mean_ns: Some(mean_ns[index] as f64),
            ..ImportedThread::default()
        });
    }
    remarks.dedup();
    let longest = measured_ms.into_iter().max().and_then(|ms| u64::try_from(ms).ok());
    Ok(Imported {
        conditions: StatedConditions { priority, ..StatedConditions::of("noise") },
        measured: longest.and_then(|ms| ms.checked_mul(1_000_000)).map(Span),
        threads,
        remarks,
        source: model::Source { version, ..source("oslat", name) },
        ..measurement(source("oslat", name), UNIT_NS)
    })
}

impl Parsed {
    fn line(&mut self, text: &str, line: usize) -> Result<(), ParseError> {
        if let Some(version) = text.strip_prefix("oslat V ") {
            self.version = Some(version.trim().to_owned());
        }
        let Some((key, values)) = text.split_once(':') else { return Ok(()) };
        let values = values.split('(').next().unwrap_or_default();
        let numbers = || values.split_whitespace().map(|field| us(field, line)).collect::<Result<Vec<_>, _>>();
        match key.trim() {
            "Thread priority" => self.priority = values.split_whitespace().last().and_then(|word| word.parse().ok()),
            "Core" => {
                self.cpus = values.split_whitespace().map(|cpu| number(cpu, line, "CPU")).collect::<Result<_, _>>()?;
                let n_distinct = self.cpus.iter().copied().collect::<CpuSet>().len();
                if n_distinct != self.cpus.len() {
                    return Err(ParseError::at(line, "the same CPU twice"));
                }
                self.columns.clear();
                self.columns.resize_with(self.cpus.len(), Column::default);
            }
            "Minimum" => self.min_ns = numbers()?,
            "Average" => self.mean_ns = numbers()?,
            "Maximum" => self.max_ns = numbers()?,
            // `us` reads thousandths.
            "Duration" => self.measured_ms = numbers()?,
            row if row.ends_with("(us)") && row.starts_with(|c: char| c.is_ascii_digit()) => {
                let value = number(row.trim_end_matches("(us)").trim(), line, "latency")?;
                let counts: Vec<u64> =
                    values.split_whitespace().map(|count| number(count, line, "count")).collect::<Result<_, _>>()?;
                if counts.len() != self.columns.len() {
                    return Err(ParseError::at(
                        line,
                        format!("expected {} counts, found {}", self.columns.len(), counts.len()),
                    ));
                }
                for (column, n) in self.columns.iter_mut().zip(counts) {
                    column.add(value, n, line)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
