//! Parser for `samples.raw` of jitterdebugger: records of 28 bytes, read in one pass and not held in memory.
//!
//! A record is a thread's number (`u32`), the wake-up time (`i64` seconds and nanoseconds of the monotonic clock) and
//! the latency (`u64`), packed, in the byte order of the machine that wrote it; little endian is supported. The unit of
//! the latency is not in the file, but can be inferred: wake-up time - latency is a due time, and due times are whole
//! periods apart.

use super::jitterdebugger::{EVERY_DUE_TIME, NUMBERS};
use super::samples::{self, SLICES};
use super::{ImportOptions, Unit};
use punctual_model::{Histogram, Imported, ImportedThread, Order, Period, Slice, Source, Span, StatedConditions};
use std::io::{self, Read};

/// Size of a record, bytes.
pub(super) const RECORD: usize = 28;

/// Limit of threads in a file; each has its own histograms.
const MAX_THREADS: usize = 4_096;

/// Records of one thread used to infer the unit and the period.
const PROBED_RECORDS: usize = 512;
/// Limit of the records held until then, of all threads.
const MAX_PROBED: usize = PROBED_RECORDS * MAX_THREADS;
const UNCLEAR: &str = "too few samples to tell us from ns; add --unit us or --unit ns";

/// Reason why the file cannot be read.
#[derive(Debug)]
pub(super) enum RawError {
    Io(io::Error),
    ParseError(super::ParseError),
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    thread: u32,
    /// Wake-up time, ns of the monotonic clock.
    woke_ns: u64,
    /// Latency in the file's unit.
    latency: u64,
}

impl Sample {
    fn due_ns(&self, unit: Unit) -> u64 {
        self.woke_ns.saturating_sub(self.latency.saturating_mul(unit.ns()))
    }
}

/// Latencies below this, in the file's unit, are counted exactly in a table until their slice ends: a hundred times as
/// fast as in the histogram, and as exact.
const TABLE: usize = 1 << 16;

/// Counts of one thread.
#[derive(Debug)]
struct RecordCounts {
    number: u32,
    slices: Vec<Slice>,
    /// Count of each latency below [`TABLE`] in the last slice.
    table: Vec<u32>,
    /// Index after the largest non-zero entry of the table.
    used: usize,
    /// First and last due time, ns, and the same of wake-ups.
    due_ns: (u64, u64),
    woke_ns: (u64, u64),
    n: u64,
}

/// Parses a file of `length` bytes.
pub(super) fn read(
    mut file: impl Read,
    length: u64,
    name: &str,
    stated: &ImportOptions,
) -> Result<Vec<Imported>, RawError> {
    let flaw = |reason: String| RawError::ParseError(super::ParseError::of_file(reason));
    let per_slice = (length / RECORD as u64).div_ceil(SLICES as u64).max(1);
    let mut threads: Vec<RecordCounts> = Vec::new();
    let (mut begin, mut n_of_first): (Vec<Sample>, usize) = Default::default();
    let (mut buffer, mut held, mut n) = (vec![0; RECORD * 65_536], 0, 0_u64);
    let mut unit: Option<Unit> = stated.unit;
    loop {
        let read = file.read(&mut buffer[held..]).map_err(RawError::Io)?;
        let filled = held + read;
        let whole = filled - filled % RECORD;
        let is_end = read == 0;
        for record in buffer[..whole].chunks_exact(RECORD) {
            let sample = sample(record).map_err(|reason| flaw(format!("record {}: {reason}", n + 1)))?;
            n += 1;
            if record.iter().all(|byte| *byte == 0) {
                return Err(flaw(only_zeros(n)));
            }
            if let Some(unit) = unit {
                count(&mut threads, sample, unit, n, per_slice).map_err(flaw)?;
                continue;
            }
            // Held only until the unit is known.
            if begin.len() >= MAX_PROBED {
                return Err(flaw(UNCLEAR.to_owned()));
            }
            begin.push(sample);
            n_of_first += usize::from(sample.thread == begin[0].thread);
            if n_of_first >= PROBED_RECORDS {
                let found = unit_of(&begin).map_err(flaw)?;
                replay(&mut threads, &begin, found, per_slice).map_err(flaw)?;
                unit = Some(found);
            }
        }
        buffer.copy_within(whole..filled, 0);
        held = filled - whole;
        if is_end {
            break;
        }
    }
    if n == 0 {
        return Err(flaw("no complete record of 28 bytes".to_owned()));
    }
    let unit = match unit {
        Some(unit) => unit,
        None => {
            let found = unit_of(&begin).map_err(flaw)?;
            replay(&mut threads, &begin, found, per_slice).map_err(flaw)?;
            found
        }
    };
    threads.iter_mut().for_each(|thread| thread.settle(unit));
    let mut remarks = vec![EVERY_DUE_TIME.to_owned(), NUMBERS.to_owned()];
    if held > 0 {
        remarks.push(format!("truncated last record: {held} bytes ignored"));
    }
    let period = if begin.is_empty() { None } else { period_of(&begin, unit) };
    Ok(vec![imported(threads, (unit, period), name, remarks)])
}

/// Error for the `n`th record if it is all zeros: it would be a wake-up at boot with a latency of 0.
fn only_zeros(n: u64) -> String {
    let zeros = format!("record {n} is only zeros, as after a power failure");
    match n - 1 {
        0 => format!("{zeros}; there is nothing to import"),
        whole => format!("{zeros}; keep the records before it: truncate -s {} FILE", whole * RECORD as u64),
    }
}

impl RecordCounts {
    fn new(number: u32) -> RecordCounts {
        let table = vec![0; TABLE];
        RecordCounts { number, slices: Vec::new(), table, used: 0, due_ns: (u64::MAX, 0), woke_ns: (u64::MAX, 0), n: 0 }
    }

    /// Number of due times between the first and the last one that have no record.
    fn lost(&self, period: Period) -> u64 {
        let (first_ns, last_ns) = self.due_ns;
        let due = (last_ns.saturating_sub(first_ns) + period.ns() / 2) / period.ns() + 1;
        due.saturating_sub(self.n)
    }

    /// Moves the counts of the table into the last slice.
    fn settle(&mut self, unit: Unit) {
        let counts = (0_i64..).zip(&mut self.table[..self.used]).filter(|(_, n)| **n > 0);
        if let Some(slice) = self.slices.last_mut() {
            let unit_ns = i64::try_from(unit.ns()).unwrap_or(1);
            counts.for_each(|(value, n)| slice.histogram.record_n(value * unit_ns, u64::from(std::mem::take(n))));
        }
        self.used = 0;
    }
}

/// Whether these bytes begin with a record: a small number of a thread, a time, and a latency.
pub(super) fn is_record(head: &[u8]) -> bool {
    let record = head.get(..RECORD).map(sample);
    record.is_some_and(|sample| sample.is_ok_and(|sample| sample.thread < 1 << 16))
}

fn sample(record: &[u8]) -> Result<Sample, String> {
    let word = |from: usize| {
        let bytes = record.get(from..from + 8).and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    let thread = record.get(..4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
    let (seconds, nanoseconds, latency) = (word(4), word(12), word(20));
    let woke_ns = seconds.checked_mul(Span::SECOND.ns()).and_then(|ns| ns.checked_add(nanoseconds));
    let woke_ns = woke_ns.filter(|ns| nanoseconds < Span::SECOND.ns() && i64::try_from(*ns).is_ok());
    let woke_ns =
        woke_ns.ok_or("invalid time of the monotonic clock; expected samples.raw of a little-endian machine")?;
    if latency > Span::MAX.ns() {
        return Err(format!("invalid latency {latency}: longer than a year"));
    }
    Ok(Sample { thread, woke_ns, latency })
}

fn replay(threads: &mut Vec<RecordCounts>, begin: &[Sample], unit: Unit, per_slice: u64) -> Result<(), String> {
    (1..).zip(begin).try_for_each(|(n, sample)| count(threads, *sample, unit, n, per_slice))
}

/// Counts a sample, the `n`th of the file.
fn count(threads: &mut Vec<RecordCounts>, sample: Sample, unit: Unit, n: u64, per_slice: u64) -> Result<(), String> {
    let Sample { thread: number, woke_ns, latency } = sample;
    let at = match threads.iter().position(|thread| thread.number == number) {
        Some(at) => at,
        None if threads.len() < MAX_THREADS => {
            threads.push(RecordCounts::new(number));
            threads.len() - 1
        }
        None => return Err(format!("record {n}: more threads than {MAX_THREADS}")),
    };
    let thread = &mut threads[at];
    let begin = n - 1;
    if thread.slices.last().is_none_or(|last| begin / per_slice != last.first_cycle / per_slice) {
        thread.settle(unit);
        thread.slices.push(Slice { first_cycle: begin, cycles: 0, histogram: Histogram::default() });
    }
    let Some(slice) = thread.slices.last_mut() else { return Ok(()) };
    match usize::try_from(latency).ok().and_then(|index| Some((index, thread.table.get_mut(index)?))) {
        // A slice of 2^32 equal latencies would be a file of 7 TB.
        Some((index, count)) if *count < u32::MAX => {
            *count += 1;
            thread.used = thread.used.max(index + 1);
        }
        _ => {
            let ns = latency.checked_mul(unit.ns()).filter(|ns| *ns <= Span::MAX.ns());
            let ns = ns.and_then(|ns| i64::try_from(ns).ok());
            let too_long = || format!("record {n}: invalid latency {latency}: longer than a year");
            slice.histogram.record(ns.ok_or_else(too_long)?);
        }
    }
    slice.cycles += 1;
    let span = |(first_ns, last_ns): (u64, u64), ns: u64| (first_ns.min(ns), last_ns.max(ns));
    thread.woke_ns = span(thread.woke_ns, woke_ns);
    thread.due_ns = span(thread.due_ns, sample.due_ns(unit));
    thread.n += 1;
    Ok(())
}

/// Due times of the first thread's records, ns, if latencies have this unit.
fn due_times(begin: &[Sample], unit: Unit) -> Vec<u64> {
    let first = begin.first().map(|sample| sample.thread);
    begin.iter().filter(|sample| Some(sample.thread) == first).map(|sample| sample.due_ns(unit)).collect()
}

/// The median distance between due times, rounded to microseconds, because periods are whole microseconds; and the
/// share of distances that are exactly a whole number of microseconds.
fn distances(begin: &[Sample], unit: Unit) -> Option<(u64, f64)> {
    let due = due_times(begin, unit);
    let all: Vec<u64> = due.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let mut us: Vec<u64> = all.iter().map(|ns| (ns + 500) / 1_000).collect();
    us.sort_unstable();
    let exact = all.iter().filter(|ns| *ns % 1_000 == 0).count();
    Some((*us.get(us.len() / 2)?, exact as f64 / all.len() as f64))
}

/// Latencies in ns give due times exactly a period apart; latencies truncated to us add noise below 1 us.
fn unit_of(begin: &[Sample]) -> Result<Unit, String> {
    let (_, exact) = distances(begin, Unit::Ns).ok_or_else(|| UNCLEAR.to_owned())?;
    if exact > 0.9 { Ok(Unit::Ns) } else { Ok(Unit::Us) }
}

/// The period, if the due times are periodic.
fn period_of(begin: &[Sample], unit: Unit) -> Option<Period> {
    let (us, _) = distances(begin, unit)?;
    let due = due_times(begin, unit);
    let keeps = |pair: &&[u64]| pair[1].saturating_sub(pair[0]).abs_diff(us * 1_000) < 2_000;
    let kept = due.windows(2).filter(keeps).count();
    let mostly = kept * 10 >= due.len().saturating_sub(1) * 9;
    Period::try_from(Span(us.checked_mul(1_000)?)).ok().filter(|_| mostly)
}

fn imported(
    mut threads: Vec<RecordCounts>,
    (unit, period): (Unit, Option<Period>),
    name: &str,
    mut remarks: Vec<String>,
) -> Imported {
    threads.order_by_key(|thread| thread.number);
    let (first, last) =
        (threads.iter().map(|thread| thread.woke_ns.0).min(), threads.iter().map(|thread| thread.woke_ns.1).max());
    let lost = |thread: &RecordCounts| period.map_or(0, |period| thread.lost(period));
    for thread in &threads {
        if let lost @ 1.. = lost(thread) {
            let number = thread.number;
            remarks.push(format!(
                "thread {number}: {lost} due times have no record, as if jitterdebugger's buffer was full"
            ));
        }
    }
    // Each due time has a record, or is a missing sample.
    let of_thread = |thread: RecordCounts| ImportedThread {
        samples: Some(thread.n + lost(&thread)),
        missed: period.map(|_| 0),
        ..samples::of_slices(thread.number, thread.slices)
    };
    Imported {
        conditions: StatedConditions { period, ..StatedConditions::of("wake-up") },
        measured: last.zip(first).map(|(last, first)| Span(last - first)).filter(|span| *span <= Span::MAX),
        threads: threads.into_iter().map(of_thread).collect(),
        remarks,
        ..Imported::of(Source::of("jitterdebugger", name), unit.ns())
    }
}
