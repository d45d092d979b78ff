//! Reading of perf.data: the samples of tracepoints, whose raw data is that of the same events of ftrace.
//!
//! Layout: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h of Linux 6.12.

use super::dat::{DatError, DatHead, MAGIC, MOST_CPUS, Parser, byte_order, head_in_a_row};
use super::decode::{Decoder, Names};
use super::recording::{MONOTONIC, RecordingError, function_at, lacks_wakings, only_waking_timers, waking_timers};
use super::stream::{Part, Records, Stream};
use punctual_analysis::explain::Trace;
use std::collections::HashMap;
use std::io::{Read, Seek};

/// Bytes that a file begins with, and those of other byte orders and of version 1.
pub(super) const PERF: &[u8] = b"PERFILE2";
pub(super) const OTHERS: [&[u8]; 2] = [b"2ELIFREP", b"PERFFILE"];
/// Bytes of the head of a pipe's output.
const PIPE_HEAD: u64 = 16;
/// Numbers of features: formats of tracepoints, the architecture, numbers of CPUs, several files, compressed records.
const TRACING_DATA: usize = 1;
const ARCHITECTURE: usize = 6;
const CPUS: usize = 7;
const DIRECTORY: usize = 24;
const COMPRESSED: usize = 27;
/// Most kinds of events.
const MOST_KINDS: u64 = 1 << 16;
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// Types of records (`enum perf_event_type`, and tools/lib/perf/include/perf/event.h).
const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const COMPRESSED_RECORDS: [u32; 2] = [81, 83];
/// Parts of a sample (`PERF_SAMPLE_*`).
mod sampled {
    pub(super) const IP: u64 = 1;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const RAW: u64 = 1 << 10;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}
use sampled::{ADDR, CALLCHAIN, CPU, ID, IDENTIFIER, IP, PERIOD, RAW, READ, STREAM_ID, TID, TIME};
/// Bits of the flags of a kind: times and CPUs in all records; a clock was chosen.
const IN_ALL: u64 = 1 << 18;
const WITH_CLOCK: u64 = 1 << 25;

/// What is recorded of one kind of event (`struct perf_event_attr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attribute {
    is_tracepoint: bool,
    /// Parts of its samples.
    parts: u64,
    read_format: u64,
    flags: u64,
    clock: i32,
}

/// How to read its records.
#[derive(Debug)]
pub(super) struct PerfRecords {
    decoder: Decoder,
    functions: Vec<(u64, String)>,
    attributes: Vec<Attribute>,
    /// The attribute of each identifier, by index.
    ids: HashMap<u64, usize>,
}

/// A file with its clock, names of threads, and its architecture if that is not ours.
pub(super) type PerfFile<R> = (Stream<R, PerfRecords>, &'static str, HashMap<i32, String>, Option<String>);

/// Reads the head of a file. Errors: when it is not of this machine's byte order, is compressed, lacks times, or is
/// damaged.
pub(super) fn open<R: Read + Seek>(mut input: Parser<R>) -> Result<PerfFile<R>, RecordingError> {
    let unsupported = |what: &str| Err(DatError::Unsupported(what.to_owned()).into());
    input.seek(PERF.len() as u64)?;
    if input.number_64()? == PIPE_HEAD {
        return Err(only_perf("perf.data of a pipe").into());
    }
    let attribute_bytes = input.number_64()?;
    let (attributes, data) = (section(&mut input)?, section(&mut input)?);
    section(&mut input)?;
    let features: [u8; 32] = input.array()?;
    let has = |feature: usize| features.get(feature / 8).is_some_and(|byte| byte >> (feature % 8) & 1 != 0);
    if has(COMPRESSED) {
        return Err(only_perf("compressed perf.data").into());
    }
    if has(DIRECTORY) {
        return Err(only_perf("perf.data in a directory").into());
    }
    if !has(TRACING_DATA) {
        return unsupported("perf.data without tracepoints, or of a perf that was killed");
    }
    let (attributes, ids) = kinds(&mut input, attributes, attribute_bytes)?;
    let Some(Attribute { flags, clock, .. }) = attributes.iter().find(|one| one.is_tracepoint).copied() else {
        return unsupported("perf.data without tracepoints");
    };
    let clock = match clock {
        _ if flags & WITH_CLOCK == 0 => "perf",
        0 => "realtime",
        1 => MONOTONIC,
        4 => "mono_raw",
        7 => "boot",
        11 => "tai",
        _ => return unsupported("the clock of this perf.data; record it with perf record -k mono"),
    };
    // The places of features follow the data, in the order of their numbers.
    let (mut head, mut n_cpus, end) = (DatHead::default(), 0, data.0.saturating_add(data.1));
    let mut architecture = String::new();
    for (index, feature) in (0..).zip((0..features.len() * 8).filter(|feature| has(*feature))) {
        input.seek(end.saturating_add(index * 16))?;
        let (at, _) = section(&mut input)?;
        input.seek(at)?;
        match feature {
            CPUS => n_cpus = input.number_32()?.max(input.number_32()?).min(MOST_CPUS),
            TRACING_DATA => head = tracing_data(&mut input)?,
            ARCHITECTURE => {
                let length = u64::from(input.number_32()?);
                architecture = input.text(length)?.trim_matches('\0').to_owned();
            }
            _ => {}
        }
    }
    head.uname = architecture;
    let foreign = head.foreign_architecture();
    let DatHead { layouts, functions, names, .. } = head;
    let mut decoder = layouts.decoder()?;
    only_waking_timers(&mut decoder, &functions);
    if foreign.is_some() {
        decoder.without_calls();
    }
    let is_named = !functions.is_empty();
    let records = PerfRecords { decoder, functions, attributes, ids };
    let n_cpus = usize::try_from(n_cpus).unwrap_or(0);
    let mut stream = Stream::new(input, records, data.0..end, n_cpus, clock != MONOTONIC);
    if lacks_wakings(&mut stream)? {
        stream.records.decoder.take_wakeups();
    }
    // perf keeps the addresses of functions, and not their names.
    if !is_named && let Some(timers) = waking_timers(&mut stream)? {
        stream.records.decoder.only_timers_of(timers);
    }
    Ok((stream, clock, names, foreign))
}

/// The refusal of a file that only perf reads.
pub(super) fn only_perf(what: &str) -> DatError {
    DatError::Unsupported(format!("{what}; read its text: perf script --ns -i FILE > FILE.txt"))
}

/// A place in the file, and the bytes there.
fn section<R: Read + Seek>(input: &mut Parser<R>) -> Result<(u64, u64), DatError> {
    let (at, bytes) = (input.number_64()?, input.number_64()?);
    input.check(at, bytes)?;
    Ok((at, bytes))
}

/// Formats of tracepoints: as in version 6 of trace.dat.
fn tracing_data<R: Read + Seek>(input: &mut Parser<R>) -> Result<DatHead, DatError> {
    if input.bytes(MAGIC.len() as u64)? != MAGIC {
        return Err(DatError::Damaged("no formats of tracepoints"));
    }
    input.word()?;
    let page_bytes = byte_order(input)?;
    head_in_a_row(input, page_bytes)
}

/// The kinds of events, and which of them an identifier means, by index.
type Kinds = (Vec<Attribute>, HashMap<u64, usize>);

fn kinds<R: Read + Seek>(input: &mut Parser<R>, (at, bytes): (u64, u64), each: u64) -> Result<Kinds, DatError> {
    // Up to the clock, and the place of the identifiers.
    const LEAST: u64 = 96 + 16;
    let (mut attributes, mut ids) = (Vec::new(), HashMap::new());
    if each < LEAST || bytes / each > MOST_KINDS {
        return Err(DatError::Damaged("kinds of events"));
    }
    for index in 0..bytes / each {
        input.seek(at + index * each)?;
        let is_tracepoint = input.number_32()? == TRACEPOINT;
        input.bytes(4 + 8 + 8)?;
        let (parts, read_format, flags) = (input.number_64()?, input.number_64()?, input.number_64()?);
        input.bytes(44)?;
        let clock = input.number_32()?.cast_signed();
        input.seek(at + (index + 1) * each - 16)?;
        let (ids_at, ids_bytes) = section(input)?;
        input.seek(ids_at)?;
        input.count(ids_bytes)?;
        for id in input.bytes(ids_bytes)?.chunks_exact(8) {
            ids.insert(Words(id).word().unwrap_or_default(), attributes.len());
        }
        if is_tracepoint && parts & (TIME | CPU | RAW) != TIME | CPU | RAW {
            return Err(DatError::Unsupported("perf.data without times, CPUs or raw data of tracepoints".to_owned()));
        }
        attributes.push(Attribute { is_tracepoint, parts, read_format, flags, clock });
    }
    let has_ids = attributes.iter().all(|one| one.parts & IDENTIFIER != 0);
    if !has_ids
        && attributes
            .windows(2)
            .any(|two| matches!(two, [a, b] if (a.parts, a.read_format) != (b.parts, b.read_format)))
    {
        return Err(DatError::Unsupported("perf.data of several kinds of samples without identifiers".to_owned()));
    }
    Ok((attributes, ids))
}

/// The words of a record, from the first on.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }

    fn halves(&mut self) -> Option<(u32, u32)> {
        let ([a, b, c, d], rest) = self.0.split_first_chunk()?;
        let (low, rest) = (u32::from_ne_bytes([*a, *b, *c, *d]), rest.split_first_chunk()?);
        self.0 = rest.1;
        Some((low, u32::from_ne_bytes(*rest.0)))
    }

    fn skip(&mut self, words: u64) -> Option<()> {
        let bytes = usize::try_from(words).ok()?.checked_mul(8)?;
        self.0 = self.0.get(bytes..)?;
        Some(())
    }
}

impl PerfRecords {
    /// The time, the CPU and the raw data of a sample; `Some(None)` if it is not that of a tracepoint.
    fn sample<'a>(&self, body: &'a [u8]) -> Option<Option<(u64, u32, &'a [u8])>> {
        let first = self.attributes.first()?;
        let attribute = match first.parts & IDENTIFIER {
            0 => first,
            _ => match self.ids.get(&Words(body).word()?).and_then(|index| self.attributes.get(*index)) {
                Some(attribute) => attribute,
                None => return Some(None),
            },
        };
        if !attribute.is_tracepoint {
            return Some(None);
        }
        let (has, mut words) = (|part: u64| attribute.parts & part != 0, Words(body));
        words.skip([IDENTIFIER, IP, TID].into_iter().filter(|part| has(*part)).count() as u64)?;
        let at_ns = words.word()?;
        words.skip([ADDR, ID, STREAM_ID].into_iter().filter(|part| has(*part)).count() as u64)?;
        let (cpu, _) = words.halves()?;
        words.skip(u64::from(has(PERIOD)))?;
        if has(READ) {
            // Bits: two times, the identifier, a group, the number of lost samples.
            let bit = |bit: u32| u64::from(attribute.read_format >> bit & 1 != 0);
            let values = if bit(3) == 0 { 1 } else { words.word()? };
            let each = 1 + bit(2) + bit(4);
            words.skip((bit(0) + bit(1)).checked_add(values.checked_mul(each)?)?)?;
        }
        if has(CALLCHAIN) {
            let length = words.word()?;
            words.skip(length)?;
        }
        let (bytes, rest) = words.0.split_first_chunk()?;
        let bytes = usize::try_from(u32::from_ne_bytes(*bytes)).ok()?;
        Some(Some((at_ns, cpu, rest.get(..bytes)?)))
    }

    /// The time and the CPU at the end of another record.
    fn place(&self, body: &[u8]) -> Option<(u64, u32)> {
        let Attribute { parts, flags, .. } = *self.attributes.first()?;
        let has = |part: u64| usize::from(parts & part != 0);
        let after_cpu = has(IDENTIFIER) * 8;
        let after_time = after_cpu + (has(CPU) + has(STREAM_ID) + has(ID)) * 8;
        let from_end = |after: usize| Some(Words(body.get(body.len().checked_sub(after + 8)?..)?));
        if flags & IN_ALL == 0 || parts & (TIME | CPU) != TIME | CPU {
            return None;
        }
        Some((from_end(after_time)?.word()?, from_end(after_cpu)?.halves()?.0))
    }
}

impl Records for PerfRecords {
    fn read(&mut self, bytes: &[u8], part: &mut Part<'_>) -> Result<u64, DatError> {
        /// Type, flags and size of a record.
        const HEAD: usize = 8;
        let (mut at, mut names) = (0, Names::default());
        while let Some((kind, size)) = bytes.get(at..).and_then(|rest| Words(rest).halves()) {
            let size = usize::try_from(size >> 16).unwrap_or(usize::MAX);
            if size < HEAD {
                return Err(DatError::Damaged("a record without length"));
            }
            let Some(body) = bytes.get(at + HEAD..at + size) else { break };
            match kind {
                SAMPLE => {
                    let sample = self.sample(body).ok_or(DatError::Damaged("a sample"))?;
                    if let Some((at_ns, cpu, data)) = sample {
                        let event = self.decoder.event(at_ns, data, part.trace, &mut names);
                        event.into_iter().for_each(|event| part.add(cpu, event));
                        self.decoder.expiry(data).into_iter().for_each(|now_ns| part.expiry(cpu, at_ns, now_ns));
                    }
                }
                LOST => {
                    let (at_ns, cpu) = self.place(body).unwrap_or((part.latest_ns(), 0));
                    part.lost(cpu, at_ns);
                }
                COMM => {
                    if let Some((_, tid)) = Words(body).halves().filter(|(_, tid)| *tid > 0) {
                        let name = super::decode::text(body.get(HEAD..).unwrap_or_default());
                        let at_ns = self.place(body).map_or_else(|| part.latest_ns(), |(at_ns, _)| at_ns);
                        part.trace.note_name(tid.cast_signed(), at_ns, name);
                    }
                }
                FINISHED_ROUND => part.end_round(),
                AUXTRACE => {
                    // Its data follows it.
                    let skipped = Words(body).word().ok_or(DatError::Damaged("a record without length"))?;
                    return Ok(skipped.saturating_add((at + size) as u64));
                }
                kind if COMPRESSED_RECORDS.contains(&kind) => {
                    return Err(only_perf("compressed perf.data"));
                }
                _ => {}
            }
            at += size;
        }
        Ok(at as u64)
    }

    fn begin(&self) -> Trace {
        self.decoder.begin(0)
    }

    fn function(&self, address: u64) -> Option<String> {
        function_at(&self.functions, address)
    }
}

#[cfg(test)]
pub(super) mod tests;
