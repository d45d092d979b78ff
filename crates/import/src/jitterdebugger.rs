//! `results.json` of jitterdebugger, version 3.

use super::ParseError;
use super::column::Column;
use super::cyclictest_json::{SystemInformation, column, no_json};
use super::fields::ns;
use punctual_model::{Beyond, Imported, ImportedThread, Order, Source};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Supported version; earlier ones had other keys.
const VERSION: u64 = 3;

/// Range of its histogram: slots of 1 us each, even if values are in ns (`jitterdebugger.c`, `hist_size`). Larger
/// values are in no slot.
const RANGE_NS: i64 = 1_000_000;

#[derive(Debug, Deserialize)]
struct Document {
    version: u64,
    sysinfo: Option<SystemInformation>,
    cpu: BTreeMap<String, Thread>,
}

#[derive(Debug, Deserialize)]
struct Thread {
    histogram: BTreeMap<String, u64>,
    count: u64,
    min: i64,
    max: i64,
    avg: f64,
}

/// Remark for every file of jitterdebugger.
pub(super) const EVERY_DUE_TIME: &str =
    "jitterdebugger waits for every due time, even in the past: a stall is many samples, not one";

/// Remark: its numbers are those of threads; with `-a` they are not CPU numbers.
pub(super) const NUMBERS: &str = "thread numbers are CPU numbers only without -a";

/// Parses a whole document.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, ParseError> {
    let document: Document = serde_json::from_slice(text.as_bytes()).map_err(|err| no_json(&err))?;
    if document.version != VERSION {
        return Err(ParseError::of_file(format!(
            "unsupported: version {} of results.json; expected {VERSION}",
            document.version
        )));
    }
    let sysinfo = document.sysinfo.unwrap_or_default();
    let unit_ns = match sysinfo.resolution_in_ns {
        Some(1) => 1,
        // 0 in releases that support no other unit.
        Some(0 | 1_000) | None => 1_000,
        Some(other) => {
            return Err(ParseError::of_file(format!("invalid resolution {other} ns: expected 1 or 1000")));
        }
    };
    let mut threads = Vec::new();
    for (key, thread) in &document.cpu {
        threads.push(one(key, thread, unit_ns)?);
    }
    threads.order_by_key(|thread| thread.number);
    if threads.is_empty() {
        return Err(ParseError::of_file("no thread"));
    }
    Ok(Imported {
        host: sysinfo.host(),
        threads,
        remarks: vec![EVERY_DUE_TIME.to_owned(), NUMBERS.to_owned()],
        ..Imported::of(Source::of("jitterdebugger", name), unit_ns)
    })
}

fn one(key: &str, thread: &Thread, unit_ns: u64) -> Result<ImportedThread, ParseError> {
    let of_thread = |reason: String| ParseError::of_file(format!("cpu {key}: {reason}"));
    let number = key.parse().map_err(|_| ParseError::of_file(format!("invalid number `{}`", key.escape_debug())))?;
    let column: Column = column(&thread.histogram).map_err(of_thread)?;
    let missing = thread.count.checked_sub(column.n);
    let missing = missing.ok_or_else(|| of_thread(format!("{} samples, more than its count", column.n)))?;
    let scaled = |value: i64| ns(value, unit_ns).map_err(of_thread);
    let (min_ns, max_ns) = (scaled(thread.min)?, scaled(thread.max)?);
    let has_samples = thread.count > 0;
    let mean_ns = Some(thread.avg).filter(|avg| has_samples && avg.is_finite() && avg.abs() <= 3e16);
    Ok(ImportedThread {
        number,
        cpu: None,
        samples: Some(thread.count),
        histogram: Some(column.histogram(unit_ns)?),
        beyond: (missing > 0).then_some(Beyond { samples: Some(missing), at_least_ns: RANGE_NS }),
        min_ns: has_samples.then_some(min_ns),
        max_ns: has_samples.then_some(max_ns),
        mean_ns: mean_ns.map(|avg| avg * unit_ns as f64),
        // It waits for each of them.
        missed: Some(0),
        slices: Vec::new(),
    })
}
