//! JSON of cyclictest `--json`, and of `punctual cyclictest` with its additional keys.

use super::ParseError;
use super::column::Column;
use super::fields::ns;
use punctual_cyclictest::asked_there;
use punctual_model::{
    Beyond, Host, Imported, ImportedThread, Order, Policy, Preemption, Source, Span, StatedConditions,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The document; the original has a colon in the names of two keys, `punctual cyclictest` writes both spellings.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(rename = "cmdline:")]
    original_command_line: Option<String>,
    #[serde(rename = "cmdline")]
    command_line: Option<String>,
    #[serde(rename = "rt_test_version:")]
    original_version: Option<String>,
    #[serde(rename = "rt_test_version")]
    version: Option<String>,
    start_time: Option<String>,
    end_time: Option<String>,
    sysinfo: Option<SystemInformation>,
    resolution_in_ns: Option<u64>,
    pub(super) thread: BTreeMap<String, Thread>,
}

/// Fields of `uname(2)`, as written by several tools.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SystemInformation {
    nodename: Option<String>,
    release: Option<String>,
    version: Option<String>,
    machine: Option<String>,
    realtime: Option<u8>,
    pub(super) resolution_in_ns: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Thread {
    #[serde(default)]
    pub(super) histogram: Option<BTreeMap<String, u64>>,
    cycles: Option<u64>,
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    pub(super) avg: Option<f64>,
    pub(super) cpu: Option<i64>,
    /// Of oslat, seconds.
    pub(super) duration: Option<f64>,
    missed: Option<u64>,
    /// Policy reported by the kernel, in our notation.
    policy: Option<String>,
}

impl Document {
    pub(super) fn of(text: &str) -> Result<Document, ParseError> {
        serde_json::from_slice(text.as_bytes()).map_err(|err| no_json(&err))
    }

    pub(super) fn command_line(&self) -> Option<&str> {
        self.original_command_line.as_deref().or(self.command_line.as_deref())
    }

    /// The facts about the program and its machine.
    pub(super) fn about(self, tool: &str, name: &str) -> (Source, Host, Option<u64>) {
        let started_unix_ms = self.start_time.as_deref().and_then(unix_s).and_then(|start| start.checked_mul(1_000));
        let command_line = self.original_command_line.or(self.command_line);
        let source = Source { version: self.original_version.or(self.version), command_line, ..Source::of(tool, name) };
        (source, self.sysinfo.unwrap_or_default().host(), started_unix_ms)
    }
}

/// Parses a whole document.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, ParseError> {
    let document = Document::of(text)?;
    // `-N`; older releases omit the key, and have microseconds unless it is set.
    let unit_ns = if document.resolution_in_ns == Some(1) { 1 } else { 1_000 };
    let count = u32::try_from(document.thread.len()).map_err(|_| ParseError::of_file("too many threads"))?;
    let asked = document.command_line().and_then(|line| asked_there(line, count));
    let mut threads = Vec::new();
    for (key, thread) in &document.thread {
        threads.push(one(key, thread, unit_ns, asked.as_ref().and_then(|asked| asked.rows))?);
    }
    threads.order_by_key(|thread| thread.number);
    if threads.is_empty() {
        return Err(ParseError::of_file("no thread"));
    }
    let time = |text: &Option<String>| text.as_deref().and_then(unix_s);
    let (start, end) = (time(&document.start_time), time(&document.end_time));
    let mut remarks = Vec::new();
    if threads.iter().all(|thread| thread.missed.is_none()) {
        remarks.push(
            "cyclictest skips missed periods and does not count them: a stall of many periods is one \
             sample"
                .to_owned(),
        );
    }
    if threads.iter().all(|thread| thread.histogram.is_none()) {
        remarks.push(super::NO_HISTOGRAM.to_owned());
    }
    if asked.is_none() {
        remarks.push("unknown command line: period and policy are not known".to_owned());
    }
    let measured = end.zip(start).and_then(|(end, start)| super::fields::seconds_span(end.checked_sub(start)?));
    let reported = one_policy(document.thread.values().map(|thread| thread.policy.as_deref()));
    let (source, host, started_unix_ms) = document.about("cyclictest", name);
    Ok(Imported {
        conditions: StatedConditions {
            policy: reported.or(asked.as_ref().and_then(|asked| asked.policy)),
            period: asked.as_ref().and_then(|asked| asked.period),
            ..StatedConditions::of("wake-up")
        },
        started_unix_ms,
        measured,
        host,
        threads,
        remarks,
        ..Imported::of(source, unit_ns)
    })
}

/// The common policy of all threads, as reported by `punctual cyclictest`.
pub(super) fn one_policy<'a>(mut words: impl Iterator<Item = Option<&'a str>>) -> Option<Policy> {
    let first = words.next()??;
    words.all(|word| word == Some(first)).then(|| first.parse().ok())?
}

fn one(key: &str, thread: &Thread, unit_ns: u64, rows: Option<u64>) -> Result<ImportedThread, ParseError> {
    let of_thread = |reason: String| ParseError::of_file(format!("thread {key}: {reason}"));
    let number =
        key.parse().map_err(|_| ParseError::of_file(format!("invalid thread number `{}`", key.escape_debug())))?;
    let scaled = |value: Option<i64>| value.map(|value| ns(value, unit_ns)).transpose().map_err(of_thread);
    // Without -h it is an empty object.
    let counts = thread.histogram.as_ref().filter(|counts| !counts.is_empty() || rows.is_some());
    let counts = counts.map(|counts| column(counts).map_err(of_thread)).transpose()?;
    // The maximum is exact; of values beyond the histogram only the number is known.
    let known = counts.as_ref().map_or(0, |column| column.n);
    let dropped = thread.cycles.map(|cycles| cycles.saturating_sub(known)).filter(|n| *n > 0 && counts.is_some());
    let end = rows.or(counts.as_ref().map(Column::end)).unwrap_or(0);
    let beyond = dropped.map(|samples| Beyond {
        samples: Some(samples),
        at_least_ns: i64::try_from(end).ok().and_then(|end| ns(end, unit_ns).ok()).unwrap_or(0),
    });
    let has_samples = thread.cycles.is_none_or(|cycles| cycles > 0);
    let mean = thread.avg.filter(|avg| avg.is_finite() && avg.abs() <= 3e16).map(|avg| avg * unit_ns as f64);
    Ok(ImportedThread {
        number,
        cpu: thread.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
        samples: thread.cycles,
        histogram: counts.map(|column| column.histogram(unit_ns)).transpose()?,
        beyond,
        min_ns: scaled(thread.min)?.filter(|_| has_samples),
        max_ns: scaled(thread.max)?.filter(|_| has_samples),
        mean_ns: mean.filter(|_| has_samples),
        missed: thread.missed,
        slices: Vec::new(),
    })
}

/// A histogram whose keys are the values.
pub(super) fn column(counts: &BTreeMap<String, u64>) -> Result<Column, String> {
    let mut column = Column::default();
    for (value, n) in counts {
        let value = value.parse().map_err(|_| format!("invalid latency `{}`", value.escape_debug()))?;
        column.add(value, *n, 0).map_err(|flaw| flaw.reason)?;
    }
    Ok(column)
}

/// Converts an error of serde_json to a flaw with its line.
pub(super) fn no_json(err: &serde_json::Error) -> ParseError {
    let text = err.to_string();
    // serde_json appends the position to its message.
    let reason = text.split(" at line ").next().unwrap_or(&text).to_owned();
    if err.line() > 0 { ParseError::at(err.line(), reason) } else { ParseError::of_file(reason) }
}

impl SystemInformation {
    /// The host description, as far as it is known.
    pub(super) fn host(self) -> Host {
        let is_realtime = self.realtime == Some(1) || self.version.as_deref().is_some_and(|v| v.contains("PREEMPT_RT"));
        Host {
            hostname: self.nodename,
            kernel_release: self.release,
            kernel_version: self.version,
            architecture: self.machine,
            preemption: is_realtime.then_some(Preemption::Realtime),
            ..Host::default()
        }
    }
}

/// Seconds since 1970 of `Sat, 21 Nov 2026 00:22:35 +0000` (RFC 5322, the strftime(3) format of rt-tests).
fn unix_s(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_whitespace().skip(1);
    let day: i64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = MONTHS.iter().position(|month| Some(*month) == words.clone().next())?;
    let month = i64::try_from(month).ok()? + 1;
    let year: i64 = words.nth(1)?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let clock = super::fields::clock(words.next()?)?.ns() / Span::SECOND.ns();
    let zone = words.next()?;
    let (hours, minutes) = zone.get(1..)?.split_at_checked(2)?;
    let offset = hours.parse::<i64>().ok()?.checked_mul(3_600)? + minutes.parse::<i64>().ok()?.checked_mul(60)?;
    let offset = if zone.starts_with('-') { -offset } else { offset };
    // Days of the civil calendar: a year that begins in March has its leap day at the end.
    let (shifted, of_year) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + (153 * of_year + 2) / 5 + day - 1 - 719_468;
    u64::try_from(days * 86_400 + i64::try_from(clock).ok()? - offset).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 +0000", Some(0)),
            ("Sat, 21 Nov 2026 00:22:35 +0000", Some(1_795_220_555)),
            ("Sat, 21 Nov 2026 02:22:35 +0200", Some(1_795_220_555)),
            ("Tue, 29 Feb 2000 12:00:00 -0130", Some(951_831_000)),
            ("Tue, 29 Xyz 2000 12:00:00 +0000", None),
            ("", None),
        ] {
            assert_eq!(unix_s(text), seconds, "{text}");
        }
    }
}
