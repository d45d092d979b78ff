//! Text of Xenomai's `latency` and EVL's `latmus`: RTT, RTH, RTD and RTS lines, and HSD rows of `-h`.

use super::ParseError;
use super::column::Column;
use super::fields::{clock, ns, number, period_us, us};
use punctual_model::{Beyond, Imported, ImportedThread, RtPriority, Source, Span, StatedConditions};

/// Unit of HSD rows: microseconds unless set by `-B`, which the output does not contain.
const UNIT_NS: u64 = 1_000;

#[derive(Debug, Default)]
struct Parsed {
    title: Title,
    /// Figures of `RTS`, or best and worst of the last `RTD`.
    result: Option<Figures>,
    /// Histogram of all samples.
    column: Column,
}

/// Fields of a title: `00:00:01  (periodic user-mode task, 100 us period, priority 99)`.
#[derive(Debug, Default)]
pub(super) struct Title {
    pub(super) what: Option<String>,
    pub(super) period_us: Option<u64>,
    pub(super) priority: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Figures {
    min_ns: i64,
    mean_ns: Option<i64>,
    max_ns: i64,
    overruns: u64,
    measured: Option<Span>,
}

/// Parses a whole output.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, ParseError> {
    let mut parsed = Parsed::default();
    for (line, text) in text.lines().enumerate().map(|(i, text)| (i + 1, text)) {
        parsed.line(text.trim(), line)?;
    }
    let Some(Figures { min_ns, mean_ns, max_ns, overruns, measured }) = parsed.result else {
        return Err(ParseError::of_file("no line RTD or RTS: nothing was measured, or the output is truncated"));
    };
    let mut remarks = Vec::new();
    if mean_ns.is_none() {
        remarks.push("truncated before its line RTS: no mean".to_owned());
    }
    if min_ns > max_ns {
        return Err(ParseError::of_file("no statistics yet: it was ended too early; measure 3 s at least (-T 3)"));
    }
    // Wake-ups before their due time, by the gravity of Cobalt's clock, would be most of the histogram.
    if min_ns < 0 && min_ns.unsigned_abs() > max_ns.unsigned_abs() && parsed.column.n > 0 {
        parsed.column = Column::default();
        remarks.push(format!("{FOLDED_REMARK}, so the histogram is left out; set the clock's gravity to 0"));
    }
    let beyond = if parsed.column.n > 0 {
        remarks.push(FOLDED_REMARK.to_owned());
        remarks.push("rows are taken as 1 us each, which they are unless -B was given".to_owned());
        beyond(&mut parsed.column, UNIT_NS, max_ns, &mut remarks)?
    } else {
        None
    };
    let histogram =
        if parsed.column.n > 0 || beyond.is_some() { Some(parsed.column.histogram(UNIT_NS)?) } else { None };
    let samples = histogram.as_ref().map(|h| h.n.saturating_add(beyond.and_then(|b| b.samples).unwrap_or(0)));
    if histogram.is_none() {
        remarks.push(super::NO_HISTOGRAM.to_owned());
    }
    let resolution_ns = if histogram.is_some() { UNIT_NS } else { 1 };
    Ok(Imported {
        conditions: parsed.title.conditions(),
        measured,
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
        ..Imported::of(Source::of("latency", name), resolution_ns)
    })
}

impl Parsed {
    fn line(&mut self, text: &str, line: usize) -> Result<(), ParseError> {
        let mut fields = text.split('|').map(str::trim);
        match fields.next().unwrap_or_default() {
            // RTS is the last line of a result.
            "RTT" | "RTD" | "RTS" if self.result.is_some_and(|result| result.mean_ns.is_some()) => {
                return Err(ParseError::several(line));
            }
            "RTT" => {
                let last = fields.next_back().filter(|last| !last.is_empty());
                self.title.take(last.or_else(|| text.split('|').nth(1)).unwrap_or_default());
            }
            "RTD" => {
                let fields: Vec<_> = fields.collect();
                let [_, _, _, overruns, _, best, worst, ..] = fields[..] else {
                    return Err(ParseError::at(line, "line RTD with fewer than seven columns"));
                };
                let (min_ns, max_ns) = (us(best, line)?, us(worst, line)?);
                let overruns = number(overruns, line, "number of overruns")?;
                self.result = Some(Figures { min_ns, mean_ns: None, max_ns, overruns, measured: None });
            }
            "RTS" => {
                let fields: Vec<_> = fields.collect();
                let [min, avg, max, overruns, rest @ ..] = &fields[..] else {
                    return Err(ParseError::at(line, "line RTS with fewer than four columns"));
                };
                // `00:00:04/00:01:00`: measured time and requested time.
                let measured = rest.iter().find_map(|field| clock(field.split('/').next()?));
                self.result = Some(Figures {
                    min_ns: us(min, line)?,
                    mean_ns: Some(us(avg, line)?),
                    max_ns: us(max, line)?,
                    overruns: number(overruns, line, "number of overruns")?,
                    measured,
                });
            }
            // `HSD|    avg|   3 -  4 |     1234` counts every sample; `min` and `max` count one value per second.
            "HSD" if fields.next() == Some("avg") => {
                let (range, n) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
                let from = number(range.split('-').next().unwrap_or_default(), line, "latency")?;
                self.column.add(from, number(n, line, "count")?, line)?;
            }
            _ => {
                if let Some(period) = text.strip_prefix("== Sampling period:") {
                    self.title.period_us = Some(number(period.trim().trim_end_matches(" us"), line, "period in us")?);
                }
                if let Some(mode) = text.strip_prefix("== Test mode:") {
                    self.title.what = Some(mode.trim().to_owned()).filter(|mode| !mode.is_empty());
                }
            }
        }
        Ok(())
    }
}

impl Title {
    pub(super) fn conditions(&self) -> StatedConditions {
        StatedConditions {
            priority: self.priority,
            period: self.period_us.and_then(period_us),
            ..StatedConditions::of(self.what.as_deref().unwrap_or("wake-up"))
        }
    }

    /// Parses the text between the parentheses.
    pub(super) fn take(&mut self, text: &str) {
        let inner = text.split_once('(').map(|(_, inner)| inner.trim_end_matches(')'));
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
}

/// Remark for every histogram of Xenomai (`add_histogram`, testsuite/latency/latency.c).
pub(super) const FOLDED_REMARK: &str = "negative latencies are counted as positive ones";

/// Removes the last row of the histogram, which also counts all larger samples, and returns it; `None` if the maximum
/// is within the rows.
pub(super) fn beyond(
    column: &mut Column,
    unit_ns: u64,
    max_ns: i64,
    remarks: &mut Vec<String>,
) -> Result<Option<Beyond>, ParseError> {
    let end_ns = column.end().saturating_mul(unit_ns);
    if u64::try_from(max_ns).is_ok_and(|max| max < end_ns) {
        return Ok(None);
    }
    let Some((value, n)) = column.take_last() else { return Ok(None) };
    remarks.push("the last row of the histogram holds everything above it".to_owned());
    let at_least_ns = i64::try_from(value).map_err(|_| format!("invalid latency {value}"));
    let at_least_ns = at_least_ns.and_then(|value| ns(value, unit_ns)).map_err(ParseError::of_file)?;
    Ok(Some(Beyond { samples: Some(n), at_least_ns }))
}
