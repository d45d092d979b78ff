//! Interval logs of HdrHistogram (jHiccup, YCSB): a line for each interval and tag, with its histogram.
//!
//! `[Tag=TAG,]start,length,maximum,histogram`, times in seconds since the start of the log, or since 1970. A histogram
//! is base64 of a header and zlib data, encoded in one of three ways (`AbstractHistogram.java`). Crate `hdrhistogram`
//! reads the third one only.

use super::column::MAX_SAMPLES;
use super::fields::{ns, number, numbered, rounded};
use super::{ImportOptions, ParseError, Unit, samples};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::read::ZlibDecoder;
use punctual_model::{Histogram, Imported, LAST_UNIX_MS, Slice, Source, Span, StatedConditions};
use std::collections::BTreeMap;
use std::io::Read as _;

/// Limit of one unpacked histogram, bytes: five digits of any value have 8 million classes.
const MAX_UNPACKED: u64 = 1 << 23;
/// Limit of tags; each has its own histograms.
const MAX_TAGS: usize = 1_024;
/// Limit of the buckets of all slices of all tags, 16 bytes each: 64 MB.
const MAX_BUCKETS: usize = 1 << 22;
/// Intervals of a year in seconds are from times since 1970, not since the start of the log.
const YEAR_S: f64 = 365.0 * 86_400.0;

/// The intervals of one tag.
#[derive(Debug, Default)]
struct Series {
    /// Histograms of consecutive intervals, at most twice [`samples::SLICES`].
    slices: Vec<Slice>,
    /// Intervals in each slice.
    per_slice: usize,
    intervals: usize,
    /// Start of the first interval and end of the last one, s.
    begin_s: f64,
    end_s: f64,
    gaps: usize,
    longest_gap_s: f64,
    overlaps: usize,
    n: u64,
    /// Buckets of all slices.
    buckets: usize,
}

/// Parses a whole log: a measurement for each tag.
pub(super) fn read(text: &str, name: &str, stated: &ImportOptions) -> Result<Vec<Imported>, ParseError> {
    let (mut start_s, mut base_s, mut digits, mut version) = (None, None, 5, None);
    let mut tool = "HdrHistogram log";
    let mut unit = stated.unit;
    let mut buckets = 0_usize;
    let mut all: BTreeMap<&str, Series> = BTreeMap::new();
    for (line, text) in numbered(text) {
        if let Some(rest) = text.strip_prefix("#[") {
            let seconds = |rest: &str| number::<f64>(rest.split_whitespace().next().unwrap_or_default(), line, "time");
            if let Some(rest) = rest.strip_prefix("StartTime:") {
                start_s = Some(seconds(rest)?);
            } else if let Some(rest) = rest.strip_prefix("BaseTime:") {
                base_s = Some(seconds(rest)?);
            } else if let Some(rest) = rest.strip_prefix("Logged with jHiccup version ") {
                // It records nanoseconds; the interval's maximum is in milliseconds.
                (tool, version) = ("jHiccup", Some(rest.trim_end_matches(']').to_owned()));
                unit = unit.or(Some(Unit::Ns));
            }
            continue;
        }
        if text.is_empty() || text.starts_with(['#', '"']) {
            continue;
        }
        let unit = unit.ok_or_else(|| {
            ParseError::at(
                line,
                "an HdrHistogram log does not state the unit of its values: add --unit ns, us, ms or s",
            )
        })?;
        let (tag, rest) = text
            .strip_prefix("Tag=")
            .map_or(Some(("latency", text)), |tagged| tagged.split_once(','))
            .ok_or_else(|| ParseError::at(line, "a tag without an interval"))?;
        let [start, length, _, encoded] = rest.split(',').collect::<Vec<_>>()[..] else {
            return Err(ParseError::at(line, "expected start, length, maximum and histogram"));
        };
        let (start, length): (f64, f64) = (number(start, line, "start")?, number(length, line, "length")?);
        let decoded = histogram(encoded, unit).map_err(|reason| ParseError::at(line, reason))?;
        digits = digits.min(decoded.digits);
        if all.len() == MAX_TAGS && !all.contains_key(tag) {
            return Err(ParseError::at(line, format!("more tags than {MAX_TAGS}")));
        }
        let series = all.entry(tag).or_default();
        buckets -= series.buckets;
        series.add(start, length, decoded.histogram, line)?;
        buckets += series.buckets;
        if buckets > MAX_BUCKETS {
            return Err(ParseError::at(line, format!("its histograms have more than {MAX_BUCKETS} buckets")));
        }
    }
    if all.is_empty() {
        return Err(ParseError::of_file("no interval in the HdrHistogram log: nothing was measured"));
    }
    let source = Source { version, ..Source::of(tool, name) };
    let of_tag = |(tag, series): (&str, Series)| {
        let started_s = match (base_s, start_s) {
            (Some(base_s), _) => Some(base_s + series.begin_s),
            (None, Some(start_s)) if series.begin_s < start_s - YEAR_S => Some(start_s + series.begin_s),
            (None, _) => (series.begin_s > YEAR_S).then_some(series.begin_s),
        };
        series.imported(tag, started_s, digits, source.clone())
    };
    Ok(all.into_iter().map(of_tag).collect())
}

impl Series {
    /// The measurement of a tag, which began at `started_s` if that is a date.
    fn imported(self, tag: &str, started_s: Option<f64>, digits: u32, source: Source) -> Imported {
        let span_ns = |seconds: f64| rounded(seconds * 1e9).and_then(|ns| u64::try_from(ns).ok());
        let mut remarks = vec![format!("values are rounded up to {digits} significant digits")];
        if self.gaps > 0 {
            let longest = self.longest_gap_s;
            remarks.push(format!("gaps between intervals: {}, the longest of {longest:.1} s", self.gaps));
        }
        if self.overlaps > 0 {
            remarks.push(format!("intervals that begin before the end of the last one: {}", self.overlaps));
        }
        Imported {
            conditions: StatedConditions::of(tag),
            // A date has more digits than a time of ns.
            started_unix_ms: started_s.and_then(|s| span_ns(s / 1e6)).filter(|ms| *ms <= LAST_UNIX_MS),
            measured: span_ns(self.end_s - self.begin_s).map(Span),
            threads: vec![samples::of_slices(0, self.slices)],
            remarks,
            ..Imported::of(source, 1)
        }
    }

    fn add(&mut self, start_s: f64, length_s: f64, histogram: Histogram, line: usize) -> Result<(), ParseError> {
        let end_s = start_s + length_s;
        // A date in seconds, far in the future.
        if !(0.0..1e11).contains(&start_s) || !(0.0..1e11).contains(&length_s) {
            return Err(ParseError::at(line, "invalid start or length of an interval"));
        }
        if self.intervals == 0 {
            (self.begin_s, self.end_s, self.per_slice) = (start_s, start_s, 1);
        }
        // Times have milliseconds, and each interval is rounded by itself.
        let gap_s = start_s - self.end_s;
        let tolerance_s = 0.01 + length_s / 10.0;
        self.gaps += usize::from(gap_s > tolerance_s);
        self.overlaps += usize::from(gap_s < -tolerance_s);
        self.longest_gap_s = self.longest_gap_s.max(gap_s);
        (self.begin_s, self.end_s) = (self.begin_s.min(start_s), self.end_s.max(end_s));
        let first_cycle = self.n;
        let n = self.n.checked_add(histogram.n).filter(|n| *n <= MAX_SAMPLES);
        self.n = n.ok_or_else(|| ParseError::at(line, "more samples than a measurement can have"))?;
        let cycles = histogram.n;
        if self.intervals.is_multiple_of(self.per_slice) {
            if self.slices.len() == 2 * samples::SLICES {
                self.halve();
            }
            self.buckets += n_buckets(&histogram);
            self.slices.push(Slice { first_cycle, cycles, histogram });
        } else if let Some(last) = self.slices.last_mut() {
            self.buckets -= n_buckets(&last.histogram);
            last.histogram.merge(&histogram);
            last.cycles += cycles;
            self.buckets += n_buckets(&last.histogram);
        }
        self.intervals += 1;
        Ok(())
    }

    /// Joins neighbors, so that a log of any length has few slices of one length.
    fn halve(&mut self) {
        let mut joined = Vec::new();
        let mut slices = std::mem::take(&mut self.slices).into_iter();
        while let Some(mut slice) = slices.next() {
            if let Some(next) = slices.next() {
                slice.histogram.merge(&next.histogram);
                slice.cycles += next.cycles;
            }
            joined.push(slice);
        }
        (self.slices, self.per_slice) = (joined, self.per_slice * 2);
        self.buckets = self.slices.iter().map(|slice| n_buckets(&slice.histogram)).sum();
    }
}

fn n_buckets(histogram: &Histogram) -> usize {
    histogram.buckets().count()
}

/// A decoded interval.
#[derive(Debug)]
struct Decoded {
    histogram: Histogram,
    /// Significant digits of its values.
    digits: u32,
}

/// Big-endian fields of a header.
#[derive(Debug)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.bytes().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.bytes().map(u64::from_be_bytes)
    }

    /// A count in a word of this many bytes.
    fn word(&mut self, bytes: u32) -> Result<u64, String> {
        match bytes {
            2 => self.bytes().map(u16::from_be_bytes).map(u64::from),
            4 => self.u32().map(u64::from),
            8 => self.u64(),
            other => Err(format!("invalid histogram: words of {other} bytes")),
        }
    }

    /// A count in LEB128: seven bits a byte, and all eight of the ninth.
    fn leb128(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for index in 0..9 {
            let [byte] = self.bytes()?;
            let bits = if index == 8 { byte } else { byte & 0x7f };
            value |= u64::from(bits) << (7 * index);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(value)
    }
}

const TRUNCATED: &str = "truncated histogram";

/// The kind of a cookie, without its bits for the size of a word.
fn base(cookie: u32) -> u32 {
    cookie & !0xf0
}

/// Decodes a compressed histogram of version 0, 1 or 2.
fn histogram(encoded: &str, unit: Unit) -> Result<Decoded, String> {
    let packed = BASE64_STANDARD.decode(encoded).map_err(|err| format!("invalid base64: {err}"))?;
    let mut outer = Fields(&packed);
    let cookie = outer.u32()?;
    if ![0x1c84_9309, 0x1c84_9302, 0x1c84_9304].contains(&base(cookie)) {
        return Err("not a compressed HdrHistogram (version 0, 1 or 2)".to_owned());
    }
    outer.u32()?;
    let mut unpacked = Vec::new();
    let unpack = ZlibDecoder::new(outer.0).take(MAX_UNPACKED + 1).read_to_end(&mut unpacked);
    unpack.map_err(|err| format!("damaged histogram: {err}"))?;
    if unpacked.len() as u64 > MAX_UNPACKED {
        return Err("a histogram of more than 8 MiB".to_owned());
    }
    let mut fields = Fields(&unpacked);
    let cookie = fields.u32()?;
    let is_newer = match base(cookie) {
        0x1c84_9308 => false,
        0x1c84_9301 | 0x1c84_9303 => true,
        _ => return Err("not an HdrHistogram (version 0, 1 or 2)".to_owned()),
    };
    let (length, offset) = if is_newer { (Some(fields.u32()?), fields.u32()?) } else { (None, 0) };
    let (digits, lowest, _highest) = (fields.u32()?, fields.u64()?, fields.u64()?);
    // The ratio of a histogram of doubles, or the number of samples.
    let ratio = fields.u64()?;
    if offset != 0 || is_newer && f64::from_bits(ratio) != 1.0 {
        return Err("unsupported: a shifted histogram, or one of fractions".to_owned());
    }
    if digits > 5 || lowest == 0 || lowest > 1 << 40 {
        return Err(format!("invalid histogram: {digits} digits from {lowest}"));
    }
    if let Some(length) = length.and_then(|length| usize::try_from(length).ok()) {
        fields.0 = fields.0.get(..length).ok_or(TRUNCATED)?;
    }
    let mut histogram = Histogram::default();
    let values = Values::new(digits, lowest);
    let mut index = 0_u64;
    while !fields.0.is_empty() {
        let n = if base(cookie) == 0x1c84_9303 {
            // Zigzag: an odd word is a negative number, that of zeros.
            let word = fields.leb128()?;
            if word & 1 == 1 {
                index = index.saturating_add((word >> 1) + 1);
                continue;
            }
            word >> 1
        } else {
            fields.word(cookie >> 4 & 0xf)?
        };
        if n > 0 {
            let value = values.at(index).ok_or_else(|| format!("invalid histogram: no class {index}"))?;
            let all = histogram.n.checked_add(n).filter(|all| *all <= MAX_SAMPLES);
            all.ok_or_else(|| format!("invalid count {n}: more samples than a measurement can have"))?;
            let value = i64::try_from(value).map_err(|_| format!("invalid latency {value}: longer than a year"))?;
            histogram.record_n(ns(value, unit.ns())?, n);
        }
        index = index.saturating_add(1);
    }
    Ok(Decoded { histogram, digits })
}

/// Values of the classes: linear up to twice the precision, then twice as wide in each octave.
#[derive(Debug)]
struct Values {
    /// Half of the classes of an octave, as a power of two.
    half_bits: u32,
    unit_bits: u32,
}

impl Values {
    fn new(digits: u32, lowest: u64) -> Values {
        let classes = 2 * 10_u64.pow(digits);
        Values { half_bits: classes.next_power_of_two().ilog2().max(1) - 1, unit_bits: lowest.ilog2() }
    }

    /// Largest value of a class.
    fn at(&self, index: u64) -> Option<u64> {
        let octave = index >> self.half_bits;
        let within = index & ((1 << self.half_bits) - 1);
        let (octave, within) = if octave == 0 { (0, within) } else { (octave - 1, within + (1 << self.half_bits)) };
        let bits = u32::try_from(octave).ok()?.checked_add(self.unit_bits).filter(|bits| *bits < 63)?;
        (within + 1).checked_mul(1 << bits).map(|end| end - 1).filter(|_| (within + 1).leading_zeros() > bits)
    }
}
