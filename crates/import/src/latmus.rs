//! The histogram of `latmus -g`: `#` lines that describe the measurement, then rows.

use super::ParseError;
use super::column::Column;
use super::fields::{clock, number, numbered, period_us, us};
use punctual_model::{Beyond, Host, Imported, ImportedThread, Source, Span, StatedConditions};

/// Unit of rows: whole microseconds.
const UNIT_NS: u64 = 1_000;

#[derive(Debug, Default)]
struct Parsed {
    what: Option<String>,
    period_us: Option<u64>,
    priority: Option<u32>,
    cpu: Option<u32>,
    measured: Option<Span>,
    version: Option<String>,
    min_ns: Option<i64>,
    mean_ns: Option<i64>,
    max_ns: Option<i64>,
    overruns: u64,
    samples: Option<u64>,
    /// The row with a `+`: it counts all larger values, too.
    last: Option<(u64, u64)>,
    column: Column,
    host: Host,
}

/// Parses a whole file.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, ParseError> {
    let mut parsed = Parsed::default();
    for (line, text) in numbered(text) {
        match text.strip_prefix('#') {
            Some(rest) => parsed.fact(rest.trim(), line)?,
            None if text.is_empty() => {}
            None => parsed.row(text, line)?,
        }
    }
    let beyond = parsed.last.map(|(value, n)| Beyond {
        samples: Some(n),
        at_least_ns: i64::try_from(value.saturating_mul(UNIT_NS)).unwrap_or(i64::MAX),
    });
    let known = parsed.column.n.checked_add(parsed.last.map_or(0, |(_, n)| n));
    let known = known.ok_or_else(|| ParseError::of_file("more samples than a measurement can have"))?;
    let mut remarks = Vec::new();
    if beyond.is_some() {
        remarks.push("the last row of the histogram holds everything above it".to_owned());
    }
    let said = parsed.samples.filter(|said| *said != known);
    if let Some(said) = said {
        remarks.push(format!("the file states {said} samples and holds {known}"));
    }
    Ok(Imported {
        conditions: StatedConditions {
            priority: parsed.priority,
            period: parsed.period_us.and_then(period_us),
            ..StatedConditions::of(parsed.what.as_deref().unwrap_or("wake-up"))
        },
        measured: parsed.measured,
        host: parsed.host,
        threads: vec![ImportedThread {
            cpu: parsed.cpu,
            number: parsed.cpu.unwrap_or(0),
            samples: Some(known.max(parsed.samples.unwrap_or(0))),
            histogram: Some(parsed.column.histogram(UNIT_NS)?),
            beyond,
            min_ns: parsed.min_ns,
            max_ns: parsed.max_ns,
            mean_ns: parsed.mean_ns.map(|ns| ns as f64),
            missed: Some(parsed.overruns),
            slices: Vec::new(),
        }],
        remarks,
        ..Imported::of(Source { version: parsed.version, ..Source::of("latmus", name) }, UNIT_NS)
    })
}

impl Parsed {
    fn fact(&mut self, text: &str, line: usize) -> Result<(), ParseError> {
        if let Some(version) = text.strip_prefix("Linux version ") {
            self.host.kernel_release = version.split_whitespace().next().map(str::to_owned);
            return Ok(());
        }
        let Some((key, value)) = text.split_once(':').map(|(key, value)| (key.trim(), value.trim())) else {
            return Ok(());
        };
        match key {
            "sampling period" => {
                let us = value.trim_end_matches(" microseconds").trim_end_matches(" us");
                self.period_us = Some(number(us, line, "period in us")?);
            }
            "context" => self.what = Some(value.to_owned()).filter(|what| !what.is_empty()),
            "thread priority" => self.priority = value.parse().ok().filter(|priority| *priority <= 99),
            "thread affinity" => {
                self.cpu = value.strip_prefix("CPU").and_then(|cpu| cpu.split('-').next()?.parse().ok());
            }
            "duration (hhmmss)" => self.measured = clock(value),
            "libevl version" => self.version = Some(value.to_owned()),
            "clocksource" => self.host.clock_source = Some(value.to_owned()),
            "min latency" => self.min_ns = Some(us(value, line)?),
            "avg latency" => self.mean_ns = Some(us(value, line)?),
            "max latency" => self.max_ns = Some(us(value, line)?),
            "OVERRUNS" => self.overruns = number(value, line, "number of overruns")?,
            "sample count" if self.samples.is_some() => return Err(ParseError::several(line)),
            "sample count" => self.samples = Some(number(value, line, "number of samples")?),
            _ => {}
        }
        Ok(())
    }

    fn row(&mut self, text: &str, line: usize) -> Result<(), ParseError> {
        let wrong = || ParseError::at(line, "invalid histogram row: expected a latency and a count");
        let (value, n) = text.split_once(char::is_whitespace).ok_or_else(wrong)?;
        let n = number(n, line, "count")?;
        match value.strip_suffix('+') {
            Some(value) => self.last = Some((number(value, line, "latency")?, n)),
            None => self.column.add(number(value, line, "latency")?, n, line)?,
        }
        Ok(())
    }
}
