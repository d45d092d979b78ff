//! Raw samples as a Parquet file: one row for each wake-up, written while the cell is measured.
//!
//! A row is `cpu`, `cycle` and `latency_ns`. Due times are not stored, because they follow from the cycle; the metadata
//! contains the formula. A cycle without a row was missed, lost or still waited for. A row group belongs to one CPU,
//! and its rows are in order of their cycles. The file is renamed when it is complete.

mod activations;

pub use activations::{ActivationRow, ActivationWriter};

use super::StoreError;
use host::file::{Replacement, with_suffix};
use model::{CpuSet, Record, ThreadRecord};
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Format version of the files, in their metadata as `format`.
const FORMAT: u32 = 1;
/// Suffix of an incomplete file.
const UNFINISHED: &str = ".partial";
const SCHEMA: &str = "message samples {
    required int32 cpu (INTEGER(32, false));
    required int64 cycle;
    required int64 latency_ns;
}";
/// Rows buffered for each CPU before they are written: 1 MiB.
const GROUP: usize = 1 << 16;

/// Writer for the samples of one cell.
#[derive(Debug)]
pub struct SampleWriter {
    path: PathBuf,
    file: SerializedFileWriter<Replacement>,
    /// Buffered rows of each CPU.
    rows: BTreeMap<u32, Rows>,
}

/// Rows of one CPU, in the order of their cycles.
#[derive(Debug, Default)]
pub struct Rows {
    cycles: Vec<i64>,
    latencies_ns: Vec<i64>,
}

impl Rows {
    /// Adds one row; `cycle` counts from the first measured one.
    pub fn push(&mut self, cycle: u64, latency_ns: i64) {
        // Periods are 10 us at least: 2^63 cycles take three million years.
        self.cycles.push(cycle.cast_signed());
        self.latencies_ns.push(latency_ns);
    }
}

impl SampleWriter {
    /// Creates a file that is named `path` when it is complete. Errors: if the file exists or cannot be created.
    pub fn create(path: &Path) -> Result<SampleWriter, StoreError> {
        let file = begin(path, SCHEMA, properties())?;
        Ok(SampleWriter { path: path.to_owned(), file, rows: BTreeMap::new() })
    }

    /// The row buffer of `cpu`.
    pub fn rows(&mut self, cpu: u32) -> &mut Rows {
        self.rows.entry(cpu).or_default()
    }

    /// Writes the buffered rows of each CPU that fill a row group. Errors: on a write error, such as a full disk.
    pub fn write_full(&mut self) -> Result<(), StoreError> {
        self.write_from(GROUP)
    }

    /// The file for another process that writes the samples of `cpus`, for [`SampleWriter::append`].
    pub fn part(&self, cpus: &CpuSet) -> PathBuf {
        with_suffix(&self.path, &format!(".cpu{cpus}"))
    }

    /// Moves the rows of `part`, a complete file, to the end of this one without recompression. Errors: if it cannot be
    /// read, or on a write error.
    pub fn append(&mut self, part: &Path) -> Result<(), StoreError> {
        self.splice(part).map_err(failed(&self.path))?;
        discard(part);
        Ok(())
    }

    fn splice(&mut self, part: &Path) -> Result<(), ParquetError> {
        let file = File::open(part)?;
        let reader = SerializedFileReader::new(file.try_clone()?)?;
        for rows in reader.metadata().row_groups() {
            let mut group = self.file.next_row_group()?;
            for column in rows.columns() {
                let close = ColumnCloseResult {
                    bytes_written: u64::try_from(column.compressed_size()).unwrap_or(0),
                    rows_written: u64::try_from(rows.num_rows()).unwrap_or(0),
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                group.append_column(&file, close)?;
            }
            group.close()?;
        }
        Ok(())
    }

    /// Writes the remaining rows and the metadata from `record`; then renames the file and syncs it to disk. Errors: on
    /// a write error, such as a full disk. There is no file then.
    pub fn finish(mut self, record: &Record) -> Result<(), StoreError> {
        self.write_from(1)?;
        complete(self.file, &self.path, about(record))
    }

    fn write_from(&mut self, least: usize) -> Result<(), StoreError> {
        for (cpu, rows) in self.rows.iter_mut().filter(|(_, rows)| rows.cycles.len() >= least) {
            write(&mut self.file, *cpu, rows).map_err(failed(&self.path))?;
            rows.cycles.clear();
            rows.latencies_ns.clear();
        }
        Ok(())
    }
}

/// Removes the sample file of a discarded measurement, complete or not, if there is one.
pub fn discard(path: &Path) {
    for file in [path, &with_suffix(path, UNFINISHED)] {
        let _ = std::fs::remove_file(file);
    }
}

/// Begins a file of this schema that is named `path` when it is complete.
fn begin(
    path: &Path,
    schema: &str,
    properties: WriterProperties,
) -> Result<SerializedFileWriter<Replacement>, StoreError> {
    if path.symlink_metadata().is_ok() {
        return Err(StoreError::SamplesExist(path.to_owned()));
    }
    let file = Replacement::new(path, UNFINISHED).map_err(StoreError::io("make", path))?;
    let schema = parse_message_type(schema).map_err(failed(path))?;
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(failed(path))
}

/// Writes the metadata; then renames the file and syncs it to disk.
fn complete(
    mut file: SerializedFileWriter<Replacement>,
    path: &Path,
    about: impl IntoIterator<Item = (&'static str, String)>,
) -> Result<(), StoreError> {
    for (key, value) in about {
        file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }
    let mut named = || {
        file.finish().map_err(io_error)?;
        file.inner_mut().commit()
    };
    named().map_err(StoreError::io("write samples to", path))
}

/// Storage options of the columns. Measured on this kind of data; see docs/decisions.md.
fn properties() -> WriterProperties {
    let [cycle, latency] = ["cycle", "latency_ns"].map(ColumnPath::from);
    WriterProperties::builder()
        .set_created_by(model::TOOL.to_owned())
        .set_compression(Compression::GZIP(Default::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_column_dictionary_enabled(cycle.clone(), false)
        .set_column_encoding(cycle, Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(latency.clone(), false)
        .set_column_encoding(latency, Encoding::BYTE_STREAM_SPLIT)
        .build()
}

fn write(file: &mut SerializedFileWriter<Replacement>, cpu: u32, rows: &Rows) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    column::<Int32Type>(&mut group, &vec![cpu.cast_signed(); rows.cycles.len()])?;
    column::<Int64Type>(&mut group, &rows.cycles)?;
    column::<Int64Type>(&mut group, &rows.latencies_ns)?;
    group.close().map(drop)
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Replacement>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| ParquetError::General("a column too many".to_owned()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// Metadata that describe a file independently of its run.
fn about(record: &Record) -> [(&'static str, String); 12] {
    let cell = &record.cell;
    let due = if cell.task.is_relative() {
        "the method waits relatively: a row's cycle is the period in which its wait was to end, not the instant itself"
    } else {
        "due_ns = started_mono_ns + offsets_ns[cpu] + cycle * periods_ns[cpu], by CLOCK_MONOTONIC; a cycle without a row was missed, lost or still waited for"
    };
    let offset = |thread: &ThreadRecord| (thread.cpu.to_string(), thread.offset.ns().into());
    let offsets = record.threads.iter().map(offset).collect::<serde_json::Map<_, _>>();
    let period = |thread: &ThreadRecord| (thread.cpu.to_string(), thread.period_in(cell).ns().into());
    let periods = record.threads.iter().map(period).collect::<serde_json::Map<_, _>>();
    let name = [cell.label(), cell.period.to_string(), cell.task.to_string()];
    let ended = serde_json::to_value(record.ended).unwrap_or_default();
    [
        ("format", FORMAT.to_string()),
        ("tool", record.tool.clone()),
        ("name", cell.conditions.prepare.after(name, "/")),
        ("cell", serde_json::to_string(cell).unwrap_or_default()),
        ("cell_id", record.cell_id.to_string()),
        ("started_mono_ns", record.started.0.to_string()),
        ("started_unix_ms", record.started_unix_ms.to_string()),
        ("period_ns", cell.period.ns().to_string()),
        ("periods_ns", serde_json::Value::Object(periods).to_string()),
        ("offsets_ns", serde_json::Value::Object(offsets).to_string()),
        ("ended", ended.as_str().unwrap_or_default().to_owned()),
        ("due", due.to_owned()),
    ]
}

fn failed(path: &Path) -> impl FnOnce(ParquetError) -> StoreError + use<> {
    let path = path.to_owned();
    move |err| StoreError::Io { action: "write samples to", path, source: io_error(err) }
}

/// The underlying I/O error, if there is one.
fn io_error(err: ParquetError) -> io::Error {
    match err {
        ParquetError::External(err) => err.downcast().map_or_else(io::Error::other, |err| *err),
        err => io::Error::other(err),
    }
}

#[cfg(test)]
mod tests;
