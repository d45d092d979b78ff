//! Samples of rttest, the loop of ROS 2's pendulum: `iteration timestamp latency minor_pagefaults major_pagefaults`.

use super::fields::{ns, number, numbered};
use super::{ParseError, samples};
use punctual_model::{Imported, Period, Source, Span, StatedConditions};

/// Parses a whole file. Values are in ns; older versions have `minor_pagefaults` twice, or `missed_deadline`
/// (`write_results_file`, rttest.cpp).
pub(super) fn read(text: &str, name: &str) -> Result<Imported, ParseError> {
    let is_head = |(_, text): &(usize, &str)| text.starts_with("iteration timestamp latency");
    let rows = || numbered(text).skip_while(move |row| !is_head(row)).skip(1).filter(|(_, text)| !text.is_empty());
    let field = |(line, row): (usize, &str), index: usize, what: &str| -> Result<u64, ParseError> {
        let found = row.split_ascii_whitespace().nth(index);
        number(found.ok_or_else(|| ParseError::at(line, format!("row without {what}")))?, line, what)
    };
    let latency = |row: (usize, &str)| {
        let latency = field(row, 2, "latency")?;
        let latency = i64::try_from(latency).map_err(|_| format!("invalid latency {latency}: longer than a year"));
        latency.and_then(|latency| ns(latency, 1)).map_err(|reason| ParseError::at(row.0, reason))
    };
    let n = rows().count();
    let Some(first) = rows().next() else {
        return Err(ParseError::of_file("no row: nothing was measured, or the output is truncated"));
    };
    // The time of a sample is its due time, or in a logger's file that of a message.
    let (mut times, mut step) = (field(first, 1, "timestamp")?, None);
    let mut is_periodic = n > 1;
    for row in rows().skip(1) {
        let time = field(row, 1, "timestamp")?;
        let found = time.checked_sub(times).ok_or_else(|| ParseError::at(row.0, "timestamp before the last one"))?;
        is_periodic &= *step.get_or_insert(found) == found;
        times = time;
    }
    let period = step.filter(|_| is_periodic).and_then(|step| Period::try_from(Span(step)).ok());
    let faults = rows().filter(|row| field(*row, 4, "page faults").is_ok_and(|faults| faults > 0)).count();
    let mut remarks = Vec::new();
    if faults > 0 {
        remarks.push(format!("iterations with major page faults: {faults}"));
    }
    let mut thread = samples::thread(0, n, rows().map(latency))?;
    if period.is_some() {
        thread.missed = Some(0);
        remarks.push("rttest waits for every due time, even in the past: a stall is many samples, not one".to_owned());
    }
    let measured = period.and_then(|period| period.ns().checked_mul(u64::try_from(n).ok()?));
    Ok(Imported {
        conditions: StatedConditions { period, ..StatedConditions::of("wake-up") },
        measured: measured.map(Span).filter(|span| *span <= Span::MAX),
        threads: vec![thread],
        remarks,
        ..Imported::of(Source::of("rttest", name), 1)
    })
}
