//! Sample files, read back with the reader of the parquet library.

use super::*;
use parquet::basic::Encoding;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::RowAccessor;
use proptest::prelude::*;
use punctual_analysis::testing::RunBuilder;
use punctual_host::testing::Scratch;
use punctual_model::{MonoTime, Span};
use std::fs::File;

/// A row: CPU, cycle, latency.
type Row = (u32, u64, i64);

/// A record that started 5 ns after boot, with an additional CPU 7 ns later.
fn record() -> Record {
    let mut run = RunBuilder::new();
    run.cell("messaging", "fifo:80").measure(0, 0, |_, _| 1);
    let mut record = run.entries.remove(0).record;
    record.started = MonoTime(5);
    let further =
        ThreadRecord { cpu: 9, offset: Span(7), period: Some("1500us".parse().unwrap()), ..record.threads[0].clone() };
    record.threads.push(further);
    record
}

fn push(writer: &mut SampleWriter, rows: &[Row]) {
    rows.iter().for_each(|(cpu, cycle, latency_ns)| writer.rows(*cpu).push(*cycle, *latency_ns));
}

fn write_file(path: &Path, rows: &[Row]) {
    let mut writer = SampleWriter::create(path).unwrap();
    push(&mut writer, rows);
    writer.finish(&record()).unwrap();
}

fn reader(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

fn read(path: &Path) -> Vec<Row> {
    let row = |row: parquet::record::Row| {
        (row.get_uint(0).unwrap(), row.get_long(1).unwrap().cast_unsigned(), row.get_long(2).unwrap())
    };
    reader(path).get_row_iter(None).unwrap().map(|found| row(found.unwrap())).collect()
}

#[test]
fn what_was_written_is_read_back() {
    let scratch = Scratch::make();
    let path = scratch.path("a.parquet");
    let extremes = [i64::MIN, i64::MAX, 0, -1, 1, i64::MAX, i64::MIN];
    let cases: [Vec<Row>; 8] = [
        vec![],
        vec![(0, 0, 0)],
        vec![(0, 0, -5)],
        vec![(3, 1, 2), (3, 2, 3), (3, 900, 4), (3, 1_000_000_000_000, 5)],
        (0..).zip(extremes).map(|(cycle, latency_ns)| (u32::MAX, cycle, latency_ns)).collect(),
        (0..200).map(|cpu| (cpu, u64::from(cpu), -i64::from(cpu))).collect(),
        // Near the block sizes of the encodings.
        (0..257_u64).map(|cycle| (1, cycle, i64::MAX - cycle.cast_signed())).collect(),
        (0..20_001_u64).map(|cycle| (1, cycle * 3, cycle.cast_signed() % 7)).collect(),
    ];
    for rows in cases {
        write_file(&path, &rows);
        assert_eq!(read(&path), rows);
        assert_eq!(scratch.names(), ["a.parquet"]);
        discard(&path);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_samples_are_read_back(latencies in proptest::collection::vec(any::<(u8, i64)>(), 0..600)) {
        let scratch = Scratch::make();
        let mut rows: Vec<Row> =
            (0..).zip(latencies).map(|(cycle, (cpu, ns))| (u32::from(cpu % 3), cycle, ns)).collect();
        write_file(&scratch.path("a.parquet"), &rows);
        rows.sort_unstable();
        prop_assert_eq!(read(&scratch.path("a.parquet")), rows);
    }
}

#[test]
fn a_row_group_holds_one_cpu_and_is_written_once_it_is_large_enough() {
    let scratch = Scratch::make();
    let mut writer = SampleWriter::create(&scratch.path("a.parquet")).unwrap();
    let rows: Vec<Row> =
        (0..GROUP as u64).map(|cycle| (1, cycle, 12_000 + (cycle * 7919 % 6007).cast_signed())).collect();
    push(&mut writer, &rows[1..]);
    push(&mut writer, &[(0, 5, 6)]);
    writer.write_full().unwrap();
    assert_eq!(writer.rows(1).cycles.len(), GROUP - 1, "one row too few");
    push(&mut writer, &[(1, GROUP as u64, 1)]);
    writer.write_full().unwrap();
    assert_eq!((writer.rows(0).cycles.len(), writer.rows(1).cycles.len()), (1, 0));
    writer.finish(&record()).unwrap();
    let reader = reader(&scratch.path("a.parquet"));
    let whole = i64::try_from(GROUP).unwrap();
    let groups = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect::<Vec<_>>();
    assert_eq!(groups, [whole, 1]);
    let [_, cycle, latency] = [0, 1, 2].map(|column| reader.metadata().row_group(0).column(column));
    assert!(cycle.encodings().any(|encoding| encoding == Encoding::DELTA_BINARY_PACKED));
    // 6007 equally frequent values need 12.6 bits.
    let (cycle, latency) = (cycle.compressed_size(), latency.compressed_size());
    assert!(cycle < whole / 50 && latency < 2 * whole, "{cycle} and {latency} bytes");
}

#[test]
fn a_file_says_what_it_is_of_and_when_a_cycle_was_due() {
    let scratch = Scratch::make();
    write_file(&scratch.path("a.parquet"), &[(0, 0, 1)]);
    let reader = reader(&scratch.path("a.parquet"));
    let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let value = |key: &str| metadata.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
    assert_eq!(value("name"), Some("messaging/fifo:80/1ms/clock_nanosleep"));
    assert_eq!((value("format"), value("period_ns"), value("ended")), (Some("1"), Some("1000000"), Some("completed")));
    assert_eq!((value("started_mono_ns"), value("offsets_ns")), (Some("5"), Some(r#"{"0":0,"1":0,"9":7}"#)));
    assert!(value("due").unwrap().starts_with("due_ns = started_mono_ns + offsets_ns[cpu] + cycle * periods_ns[cpu]"));
    assert_eq!(value("periods_ns"), Some(r#"{"0":1000000,"1":1000000,"9":1500000}"#));
    let cell: punctual_model::Cell = serde_json::from_str(value("cell").unwrap()).unwrap();
    assert_eq!(cell, record().cell);
}

#[test]
fn a_file_of_activations_has_no_period_but_those_of_its_threads() {
    let scratch = Scratch::make();
    let path = scratch.path("a.parquet");
    ActivationWriter::create(&path).unwrap().finish(&record().cell, MonoTime(5)).unwrap();
    let file = reader(&path);
    let metadata = file.metadata().file_metadata().key_value_metadata().unwrap();
    let cell = metadata.iter().find(|pair| pair.key == "cell").and_then(|pair| pair.value.as_deref()).unwrap();
    assert!(cell.contains("\"duration_ns\"") && !cell.contains("\"period_ns\""), "{cell}");
}

#[test]
fn activations_are_read_back_with_each_number_in_its_column() {
    let scratch = Scratch::make();
    let path = scratch.path("a.parquet");
    let row = |n: u32| {
        let of = |column: u64| u64::from(n) * 100 + column;
        ActivationRow {
            tid: n,
            activation: of(1),
            released_by: u8::try_from(n % 4).unwrap(),
            cpu: n + 3,
            release_ns: -of(4).cast_signed(),
            latency_ns: of(5),
            run_ns: of(6),
            preempted_ns: of(7),
            blocked_ns: of(8),
            response_ns: of(9),
            page_faults: n + 10,
            migrations: n + 11,
        }
    };
    // The first two fill a row group.
    let all: Vec<_> = (0..70_000).map(row).collect();
    let mut writer = ActivationWriter::create(&path).unwrap();
    [&all[..5], &all[5..69_000], &[], &all[69_000..]].into_iter().for_each(|rows| writer.add(rows).unwrap());
    writer.finish(&record().cell, MonoTime(5)).unwrap();
    let read = |row: parquet::record::Row| {
        let long = |column| row.get_long(column).unwrap().cast_unsigned();
        ActivationRow {
            tid: row.get_uint(0).unwrap(),
            activation: long(1),
            released_by: row.get_int(2).unwrap().try_into().unwrap(),
            cpu: row.get_uint(3).unwrap(),
            release_ns: row.get_long(4).unwrap(),
            latency_ns: long(5),
            run_ns: long(6),
            preempted_ns: long(7),
            blocked_ns: long(8),
            response_ns: long(9),
            page_faults: row.get_uint(10).unwrap(),
            migrations: row.get_uint(11).unwrap(),
        }
    };
    let file = reader(&path);
    assert_eq!(file.metadata().num_row_groups(), 2);
    assert!(file.get_row_iter(None).unwrap().map(|found| read(found.unwrap())).eq(all));
}

#[test]
fn parts_of_other_processes_are_moved_in_as_they_are() {
    let scratch = Scratch::make();
    let mut whole = SampleWriter::create(&scratch.path("a.parquet")).unwrap();
    let rows: [Vec<Row>; 3] =
        [vec![(0, 0, 5), (0, 1, 6)], vec![], (0..30_000_u64).map(|cycle| (2, cycle, -cycle.cast_signed())).collect()];
    for (cpu, rows) in (0..).zip(&rows) {
        let part = whole.part(&CpuSet::from_iter([cpu]));
        write_file(&part, rows);
        whole.append(&part).unwrap();
    }
    whole.finish(&record()).unwrap();
    assert_eq!(read(&scratch.path("a.parquet")), rows.concat());
    assert_eq!(scratch.names(), ["a.parquet"], "the parts are gone");
}

#[test]
fn nothing_is_overwritten_and_nothing_unfinished_is_left() {
    let scratch = Scratch::make();
    let writer = SampleWriter::create(&scratch.path("a.parquet")).unwrap();
    assert_eq!(scratch.names(), ["a.parquet.partial"]);
    drop(writer);
    assert_eq!(scratch.names(), [""; 0]);
    std::fs::write(scratch.path("a.parquet"), "mine").unwrap();
    let said = SampleWriter::create(&scratch.path("a.parquet")).unwrap_err().to_string();
    assert_eq!(
        said,
        format!(
            "cannot create {}: it exists; name another file with --samples, or remove it",
            scratch.path("a.parquet").display()
        )
    );
    assert_eq!(std::fs::read_to_string(scratch.path("a.parquet")).unwrap(), "mine");
}
