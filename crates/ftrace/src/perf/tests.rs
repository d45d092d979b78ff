//! Files as perf writes them, with all that a sample can hold.

use super::super::dat::DatHead;
use super::super::testing::{data, layouts};
use super::*;
use punctual_analysis::explain::{CpuEvents, What};
use punctual_analysis::recorded::Recording;
use std::io::Cursor;

/// Parts of the samples of [`file`].
const PARTS: u64 = IDENTIFIER | IP | TID | TIME | CPU | PERIOD | RAW;
const ID_OF: [u64; 2] = [77, 78];

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn halves(low: u32, high: u32) -> [u8; 8] {
    (u64::from(low) | u64::from(high) << 32).to_ne_bytes()
}

pub(crate) fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 8).unwrap();
    [&halves(kind, size << 16)[..], body].concat()
}

/// The raw data at the end of a sample.
fn raw(data: &[u8]) -> Vec<u8> {
    let padded = (data.len() + 4).next_multiple_of(8) - 4;
    let mut raw = u32::try_from(padded).unwrap().to_ne_bytes().to_vec();
    raw.extend(data);
    raw.resize(padded + 4, 0);
    raw
}

pub(crate) fn sample(at_ns: u64, cpu: u32, data: &[u8]) -> Vec<u8> {
    let id = ID_OF[cpu as usize % 2];
    record(SAMPLE, &[&words(&[id, 0, 0, at_ns])[..], &halves(cpu, 0), &words(&[1]), &raw(data)].concat())
}

pub(crate) fn round() -> Vec<u8> {
    record(FINISHED_ROUND, &[])
}

/// A file with one kind of tracepoints, by the monotonic clock, and one of another kind.
pub(crate) fn file(records: &[Vec<u8>]) -> Vec<u8> {
    of_parts(PARTS, 0, records)
}

fn of_parts(parts: u64, read_format: u64, records: &[Vec<u8>]) -> Vec<u8> {
    const EACH: u64 = 128 + 16;
    let (attributes_at, ids_at) = (104, 104 + 2 * EACH);
    let data_at = ids_at + 24;
    let records: Vec<u8> = records.concat();
    let attribute = |kind: u32, parts: u64, ids: [u64; 2]| {
        let mut bytes = [&halves(kind, 128)[..], &words(&[0, 1, parts, read_format, IN_ALL | WITH_CLOCK])].concat();
        bytes.resize(92, 0);
        bytes.extend(1_u32.to_ne_bytes());
        bytes.resize(128, 0);
        [bytes, words(&ids)].concat()
    };
    // perf writes no functions.
    let head = DatHead { layouts: layouts(), ..DatHead::default() };
    let formats = head.file(&[]);
    let features_at = data_at + records.len() as u64 + 32;
    [
        PERF.to_vec(),
        words(&[104, EACH, attributes_at, 2 * EACH, data_at, records.len() as u64, 0, 0]),
        words(&[1 << TRACING_DATA | 1 << CPUS, 0, 0, 0]),
        attribute(TRACEPOINT, parts, [ids_at, 16]),
        attribute(1, parts & !RAW, [ids_at + 16, 8]),
        words(&[ID_OF[0], ID_OF[1], 79]),
        records,
        words(&[features_at, formats.len() as u64, features_at + formats.len() as u64, 8]),
        formats,
        halves(2, 2).to_vec(),
    ]
    .concat()
}

fn opened(file: &[u8]) -> Stream<Cursor<Vec<u8>>, PerfRecords> {
    open(Parser::new(Cursor::new(file.to_vec())).unwrap()).unwrap().0
}

fn waking(pid: i32) -> Vec<u8> {
    data(2, 8, 28, &[(24, &pid.to_ne_bytes())])
}

/// All events with the times before which each part makes them complete.
fn read(stream: &mut Stream<Cursor<Vec<u8>>, PerfRecords>) -> (Trace, Vec<u64>) {
    let mut all = Trace { cpus: vec![CpuEvents::default(); stream.n_cpus()], ..Trace::default() };
    let mut known = Vec::new();
    while let Some(known_ns) = stream.next(&mut all).unwrap() {
        known.push(known_ns);
    }
    (all, known)
}

#[test]
fn events_are_complete_a_round_later_names_and_gaps_included() {
    let second = 1_000_000_000;
    let comm = record(COMM, &[&halves(8, 9)[..], b"servo\0\0\0"].concat());
    // Identifier, number; then thread, time, CPU, identifier.
    let lost = record(LOST, &[words(&[77, 5, 0, 2 * second + 5]), halves(1, 0).to_vec(), words(&[77])].concat());
    let records = [
        comm,
        sample(2 * second, 1, &waking(9)),
        sample(second, 0, &waking(9)),
        round(),
        lost,
        sample(2 * second + 9, 1, &waking(9)),
        // Of a kind other than a tracepoint; with an unknown identifier; of an unknown type.
        record(SAMPLE, &words(&[79, 0, 0, 7])),
        record(SAMPLE, &words(&[80, 0, 0, 7])),
        record(99, &[]),
        sample(2 * second - 5, 0, &waking(7)),
        round(),
    ];
    let mut stream = opened(&file(&records));
    let (all, known) = read(&mut stream);
    let times = |cpu: usize| all.cpus[cpu].events.iter().map(|event| event.at_ns).collect::<Vec<_>>();
    assert_eq!((times(0), times(1)), (vec![second, 2 * second - 5], vec![2 * second, 2 * second + 9]));
    assert_eq!((&all.cpus[1].lost_ns, known), (&vec![2 * second + 5], vec![u64::MAX]));
    assert_eq!(all.names.get(&9).map(String::as_str), Some("servo"));
    let window = stream.window(&(2 * second - 5..2 * second + 1)).unwrap().unwrap();
    // The event before is kept: it shows that the trace covers the CPU.
    assert_eq!(window.cpus[0].events.len(), 2);
    assert_eq!(window.cpus[1].events.first().map(|event| event.what), Some(What::Waking { pid: 9 }));
    stream.rewind();
    assert_eq!(stream.share(), 0.0);
    assert_eq!(read(&mut stream).0.cpus[0].events.len(), 2);
}

#[test]
fn every_part_of_a_sample_is_passed_over() {
    let parts = PARTS | ADDR | ID | STREAM_ID | READ | CALLCHAIN;
    let begin = [words(&[77, 0, 0, 5, 0, 77, 0]), halves(1, 0).to_vec(), words(&[1])].concat();
    let chain = words(&[2, 0x11, 0x22]);
    let group = [vec![2, 0, 0], vec![1, 77, 0], vec![2, 78, 0]].concat();
    for (read_format, values) in [(0, vec![1]), (1 | 2 | 4 | 16, vec![1, 2, 3, 77, 0]), (1 | 2 | 4 | 8 | 16, group)] {
        let body = [&begin[..], &words(&values), &chain, &raw(&waking(9))].concat();
        let (all, _) = read(&mut opened(&of_parts(parts, read_format, &[record(SAMPLE, &body)])));
        let events: Vec<_> = all.cpus[1].events.iter().map(|event| (event.at_ns, event.what)).collect();
        assert_eq!(events, [(5, What::Waking { pid: 9 })], "{read_format}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let whole = file(&[sample(5, 0, &waking(9))]);
    let error = |file: &[u8]| match open(Parser::new(Cursor::new(file.to_vec())).unwrap()) {
        Err(err) => err.to_string(),
        Ok((mut stream, ..)) => {
            let mut trace = Trace::default();
            loop {
                match stream.next(&mut trace) {
                    Err(err) => break err.to_string(),
                    Ok(None) => break "nothing".to_owned(),
                    Ok(Some(_)) => {}
                }
            }
        }
    };
    let with = |at: usize, byte: u8| {
        let mut file = whole.clone();
        file[at] = byte;
        file
    };
    let (data_at, features_at) = (416, 72);
    for (file, said) in [
        (whole.clone(), "nothing"),
        (with(8, 16), "unsupported: perf.data of a pipe; read its text: perf script --ns -i FILE > FILE.txt"),
        (
            with(features_at + 3, 8),
            "unsupported: compressed perf.data; read its text: perf script --ns -i FILE > FILE.txt",
        ),
        (
            with(features_at + 3, 1),
            "unsupported: perf.data in a directory; read its text: perf script --ns -i FILE > FILE.txt",
        ),
        (with(features_at, 0), "unsupported: perf.data without tracepoints, or of a perf that was killed"),
        (with(104, 1), "unsupported: perf.data without tracepoints"),
        (with(104 + 24 + 1, 0), "unsupported: perf.data without times, CPUs or raw data of tracepoints"),
        (with(104 + 24 + 2, 0), "unsupported: perf.data of several kinds of samples without identifiers"),
        (with(104 + 92, 9), "unsupported: the clock of this perf.data; record it with perf record -k mono"),
        (with(16, 1), "damaged: kinds of events"),
        (with(data_at + 6, 0), "damaged: a record without length"),
        (with(data_at + 6, 200), "damaged: a record beyond its end"),
        (with(data_at + 6, 24), "damaged: a sample"),
        (with(data_at, 81), "unsupported: compressed perf.data; read its text: perf script --ns -i FILE > FILE.txt"),
        (with(data_at, 71), "damaged: a record beyond its end"),
        (whole[..whole.len() - 1].to_vec(), "damaged: content beyond its end"),
    ] {
        assert_eq!(error(&file), said);
    }
}
