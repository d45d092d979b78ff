//! Results of oslat (rt-tests): text with a column for each CPU, and JSON with an object for each.

use super::ParseError;
use super::column::Column;
use super::cyclictest_json::{self, Document, Thread};
use super::fields::{decimal, ns, number, option, rounded, us};
use super::xenomai::beyond;
use punctual_model::{CpuSet, Imported, ImportedThread, Order, Source, Span, StatedConditions};

/// Unit of its values.
const UNIT_NS: u64 = 1_000;

/// A measured CPU.
#[derive(Debug)]
struct Core {
    cpu: u32,
    column: Column,
    min_ns: i64,
    mean_ns: f64,
    max_ns: i64,
    measured_ns: i64,
}

/// Lines with a value for each CPU, by their first word.
#[derive(Debug, Default)]
struct Parsed {
    cpus: Vec<u32>,
    columns: Vec<Column>,
    min_ns: Vec<i64>,
    mean_ns: Vec<i64>,
    max_ns: Vec<i64>,
    measured_ns: Vec<i64>,
    version: Option<String>,
    priority: Option<u32>,
}

/// Parses a whole output.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, ParseError> {
    let mut parsed = Parsed::default();
    for (line, text) in text.lines().enumerate().map(|(i, text)| (i + 1, text)) {
        parsed.line(text, line)?;
    }
    let Parsed { cpus, columns, min_ns, mean_ns, max_ns, measured_ns, version, priority } = parsed;
    let n = cpus.len();
    let is_whole =
        n > 0 && columns.len() == n && [&min_ns, &mean_ns, &max_ns, &measured_ns].iter().all(|all| all.len() == n);
    if !is_whole {
        return Err(ParseError::of_file("no complete result: lines Core to Duration; the output may be truncated"));
    }
    let core = |(index, (cpu, column))| Core {
        cpu,
        column,
        min_ns: min_ns[index],
        mean_ns: mean_ns[index] as f64,
        max_ns: max_ns[index],
        measured_ns: measured_ns[index],
    };
    let cores = cpus.into_iter().zip(columns).enumerate().map(core).collect();
    imported(cores, priority, Source { version, ..Source::of("oslat", name) })
}

/// Parses a document of `--json`.
pub(super) fn json(text: &str, name: &str) -> Result<Imported, ParseError> {
    let document = Document::of(text)?;
    let mut cores = Vec::new();
    for (key, thread) in &document.thread {
        let of_thread = |reason: &str| ParseError::of_file(format!("thread {}: {reason}", key.escape_debug()));
        let index: u32 = key.parse().map_err(|_| of_thread("invalid number"))?;
        cores.push((index, core(thread).map_err(|reason| of_thread(&reason))?));
    }
    if cores.is_empty() {
        return Err(ParseError::of_file("no thread"));
    }
    cores.order_by_key(|(index, _)| *index);
    let priority = document.command_line().and_then(|line| option(line, "-f", "--rtprio")?.parse().ok());
    let (source, host, started_unix_ms) = document.about("oslat", name);
    let imported = imported(cores.into_iter().map(|(_, core)| core).collect(), priority, source)?;
    Ok(Imported { host, started_unix_ms, ..imported })
}

fn core(thread: &Thread) -> Result<Core, String> {
    let Thread { histogram: Some(histogram), min: Some(min), avg: Some(avg), max: Some(max), .. } = thread else {
        return Err("expected `histogram`, `min`, `avg` and `max`".to_owned());
    };
    let cpu = thread.cpu.and_then(|cpu| u32::try_from(cpu).ok()).ok_or("invalid `cpu`")?;
    let seconds = thread.duration.unwrap_or(0.0);
    Ok(Core {
        cpu,
        column: cyclictest_json::column(histogram)?,
        min_ns: ns(*min, UNIT_NS)?,
        mean_ns: rounded(avg * UNIT_NS as f64).ok_or("invalid `avg`")? as f64,
        max_ns: ns(*max, UNIT_NS)?,
        measured_ns: rounded(seconds * Span::SECOND.ns() as f64).ok_or("invalid `duration`")?,
    })
}

/// The measurement of these CPUs. oslat rounds up: a value of 1 us stands for every interruption of at most 1 us.
fn imported(cores: Vec<Core>, priority: Option<u32>, source: Source) -> Result<Imported, ParseError> {
    if cores.iter().map(|core| core.cpu).collect::<CpuSet>().len() != cores.len() {
        return Err(ParseError::of_file("the same CPU twice"));
    }
    let longest = cores.iter().map(|core| core.measured_ns).max().and_then(|ns| u64::try_from(ns).ok());
    let mut remarks = vec!["values are rounded up to whole microseconds".to_owned()];
    let mut threads = Vec::new();
    for (number, Core { cpu, mut column, min_ns, mean_ns, max_ns, .. }) in (0..).zip(cores) {
        let beyond = beyond(&mut column, UNIT_NS, max_ns, &mut remarks)?;
        let histogram = column.histogram(UNIT_NS)?;
        threads.push(ImportedThread {
            number,
            cpu: Some(cpu),
            samples: Some(histogram.n.saturating_add(beyond.and_then(|b| b.samples).unwrap_or(0))),
            histogram: Some(histogram),
            beyond,
            min_ns: Some(min_ns),
            max_ns: Some(max_ns),
            mean_ns: Some(mean_ns),
            ..ImportedThread::default()
        });
    }
    remarks.dedup();
    Ok(Imported {
        conditions: StatedConditions { priority, ..StatedConditions::of("noise") },
        measured: longest.filter(|ns| *ns > 0).map(Span),
        threads,
        remarks,
        ..Imported::of(source, UNIT_NS)
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
            "Core" if !self.cpus.is_empty() => return Err(ParseError::several(line)),
            "Core" => {
                self.cpus = values.split_whitespace().map(|cpu| number(cpu, line, "CPU")).collect::<Result<_, _>>()?;
                self.columns.clear();
                self.columns.resize_with(self.cpus.len(), Column::default);
            }
            "Minimum" => self.min_ns = numbers()?,
            "Average" => self.mean_ns = numbers()?,
            "Maximum" => self.max_ns = numbers()?,
            "Duration" => {
                let seconds = |field| decimal(field, Span::SECOND.ns(), line);
                self.measured_ns = values.split_whitespace().map(seconds).collect::<Result<_, _>>()?;
            }
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
