//! Text of Xenomai's `latency` and of EVL's `latmus`: RTT, RTH, RTD and RTS lines, HSD rows of `-h`.

use super::Flaw;
use super::column::Column;
use super::words::{clock, number, period_us, us};
use model::{Beyond, Conditions, Host, Imported, ImportedThread, RtPriority, Source, Span};

/// Rows of HSD are microseconds unless `-B` says otherwise, which the output does not.
const UNIT_NS: u64 = 1_000;

#[derive(Debug, Default)]
struct Parsed {
    what: Option<String>,
    period_us: Option<u64>,
    priority: Option<u32>,
    /// `RTS`, or the best and the worst of the last `RTD`.
    result: Option<Figures>,
    /// Samples of every single latency.
    column: Column,
}

#[derive(Debug, Clone, Copy)]
struct Figures {
    min_ns: i64,
    mean_ns: Option<i64>,
    max_ns: i64,
    overruns: u64,
    measured: Option<Span>,
}

/// Reads a whole output.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, Flaw> {
    let mut parsed = Parsed::default();
    for (line, text) in text.lines().enumerate().map(|(i, text)| (i + 1, text)) {
        parsed.line(text.trim(), line)?;
    }
    let Some(Figures { min_ns, mean_ns, max_ns, overruns, measured }) = parsed.result else {
        return Err(Flaw::of_file("no line RTD or RTS: nothing was measured, or the output was cut off"));
    };
    let mut remarks = Vec::new();
    if mean_ns.is_none() {
        remarks.push("it was cut off before its line RTS: no mean".to_owned());
    }
    let beyond = parsed.beyond(max_ns, &mut remarks);
    let histogram =
        if parsed.column.n > 0 || beyond.is_some() { Some(parsed.column.histogram(UNIT_NS)?) } else { None };
    let samples = histogram.as_ref().map(|h| h.n.saturating_add(beyond.and_then(|b| b.samples).unwrap_or(0)));
    if histogram.is_none() {
        remarks.push("no histogram (-h): no quantile is known".to_owned());
    }
    Ok(Imported {
        format: model::RECORD_FORMAT,
        tool: crate::TOOL.to_owned(),
        source: Source { tool: "latency".to_owned(), version: None, file: name.to_owned(), command_line: None },
        conditions: Conditions {
            what: parsed.what.unwrap_or_else(|| "wake-up".to_owned()),
            policy: None,
            priority: parsed.priority,
            period: parsed.period_us.and_then(period_us),
            load: None,
            stated: Vec::new(),
        },
        started_unix_ms: None,
        measured,
        resolution: Span(if histogram.is_some() { UNIT_NS } else { 1 }),
        host: Host::default(),
        threads: vec![ImportedThread {
            samples,
            histogram,
            beyond,
            min_ns: Some(min_ns),
            max_ns: Some(max_ns),
            mean_ns: mean_ns.map(|ns| ns as f64),
            missed: Some(overruns),
            ..ImportedThread::default()
        }],
        remarks,
    })
}

impl Parsed {
    fn line(&mut self, text: &str, line: usize) -> Result<(), Flaw> {
        let mut fields = text.split('|').map(str::trim);
        match fields.next().unwrap_or_default() {
            "RTT" => self.title(fields.next_back().filter(|last| !last.is_empty()).or_else(|| text.split('|').nth(1))),
            "RTD" => {
                let fields: Vec<_> = fields.collect();
                let [_, _, _, overruns, _, best, worst, ..] = fields[..] else {
                    return Err(Flaw::at(line, "a line RTD with less than seven columns"));
                };
                let (min_ns, max_ns) = (us(best, line)?, us(worst, line)?);
                let overruns = number(overruns, line, "number of overruns")?;
                self.result = Some(Figures { min_ns, mean_ns: None, max_ns, overruns, measured: None });
            }
            "RTS" => {
                let fields: Vec<_> = fields.collect();
                let [min, avg, max, overruns, rest @ ..] = &fields[..] else {
                    return Err(Flaw::at(line, "a line RTS with less than four columns"));
                };
                // `00:00:04/00:01:00`: what was measured, of what was asked.
                let measured = rest.iter().find_map(|field| clock(field.split('/').next()?));
                self.result = Some(Figures {
                    min_ns: us(min, line)?,
                    mean_ns: Some(us(avg, line)?),
                    max_ns: us(max, line)?,
                    overruns: number(overruns, line, "number of overruns")?,
                    measured,
                });
            }
            // `HSD|    avg|   3 -  4 |     1234`: of every latency; `min` and `max` are one of each second.
            "HSD" if fields.next() == Some("avg") => {
                let (range, n) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
                let from = number(range.split('-').next().unwrap_or_default(), line, "latency")?;
                self.column.add(from, number(n, line, "count")?, line)?;
            }
            _ => {
                if let Some(period) = text.strip_prefix("== Sampling period:") {
                    self.period_us = Some(number(period.trim().trim_end_matches(" us"), line, "period in us")?);
                }
                if let Some(mode) = text.strip_prefix("== Test mode:") {
                    self.what = Some(mode.trim().to_owned()).filter(|mode| !mode.is_empty());
                }
            }
        }
        Ok(())
    }

    /// `00:00:01  (periodic user-mode task, 100 us period, priority 99)`.
    fn title(&mut self, text: Option<&str>) {
        let inner = text.and_then(|text| text.split_once('(')).map(|(_, inner)| inner.trim_end_matches(')'));
        for part in inner.into_iter().flat_map(|inner| inner.split(',')).map(str::trim) {
            if let Some(period) = part.strip_suffix(" us period") {
                self.period_us = period.parse().ok().or(self.period_us);
            } else if let Some(priority) = part.strip_prefix("priority ") {
                let is_known = |priority: &u32| *priority == 0 || RtPriority::new(*priority).is_some();
                self.priority = priority.parse().ok().filter(is_known);
            } else if self.what.is_none() && !part.is_empty() {
                self.what = Some(part.to_owned());
            }
        }
    }

    /// The last cell counts everything above it, too; negative latencies are folded to positive ones.
    fn beyond(&mut self, max_ns: i64, remarks: &mut Vec<String>) -> Option<Beyond> {
        if self.column.n == 0 {
            return None;
        }
        remarks.push(
            "negative latencies are counted as positive ones, and rows as 1 us each, unless -B was given".to_owned(),
        );
        let end_ns = self.column.end().saturating_mul(UNIT_NS);
        if u64::try_from(max_ns).is_ok_and(|max| max < end_ns) {
            return None;
        }
        let (value, n) = self.column.take_last()?;
        remarks.push("the last row of the histogram holds everything above it".to_owned());
        Some(Beyond { samples: Some(n), at_least_ns: i64::try_from(value.saturating_mul(UNIT_NS)).unwrap_or(0) })
    }
}
