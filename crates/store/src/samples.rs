//! Raw samples as a Parquet file: one row for each wake-up, written while the cell is measured.
//!
//! A row is `cpu`, `cycle` and `latency_ns`. Due times are not stored, because they follow from the cycle; the metadata
//! contains the formula. A cycle without a row was missed, lost or still waited for. A row group belongs to one CPU,
//! and its rows are in order of their cycles. The file is renamed when it is complete.

mod activations;
#[cfg_attr(not(feature = "samples"), path = "samples/left_out.rs")]
mod file;

pub use activations::{ActivationRow, ActivationWriter};

use super::StoreError;
use file::{Column, Kind, SampleFile};
use punctual_host::file::with_suffix;
use punctual_model::{CpuSet, Record, ThreadRecord};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    file: SampleFile,
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
        let file = SampleFile::begin(path, SCHEMA, Kind::Samples)?;
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
        self.file.splice(part)?;
        discard(part);
        Ok(())
    }

    /// Writes the remaining rows and the metadata from `record`; then renames the file and syncs it to disk. Errors: on
    /// a write error, such as a full disk. There is no file then.
    pub fn finish(mut self, record: &Record) -> Result<(), StoreError> {
        self.write_from(1)?;
        self.file.complete(about(record))
    }

    fn write_from(&mut self, least: usize) -> Result<(), StoreError> {
        for (cpu, rows) in self.rows.iter_mut().filter(|(_, rows)| rows.cycles.len() >= least) {
            let cpus = vec![cpu.cast_signed(); rows.cycles.len()];
            self.file.write(&[Column::Ints(cpus), Column::Longs(&rows.cycles), Column::Longs(&rows.latencies_ns)])?;
            rows.cycles.clear();
            rows.latencies_ns.clear();
        }
        Ok(())
    }
}

/// Checks that this program can keep samples. Errors: if it is built without them.
pub fn check_samples() -> Result<(), StoreError> {
    if cfg!(feature = "samples") { Ok(()) } else { Err(left_out()) }
}

fn left_out() -> StoreError {
    StoreError::LeftOut(punctual_model::left_out("sample files", "samples"))
}

/// Removes the sample file of a discarded measurement, complete or not, if there is one.
pub fn discard(path: &Path) {
    for file in [path, &with_suffix(path, UNFINISHED)] {
        let _ = std::fs::remove_file(file);
    }
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

#[cfg(test)]
#[cfg(feature = "samples")]
mod tests;
