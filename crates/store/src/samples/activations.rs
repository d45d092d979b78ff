//! Activations of watched threads as a Parquet file: one row for each, written while the cell is measured.

use super::FORMAT;
use super::file::{Column, Kind, SampleFile};
use crate::StoreError;
use punctual_model::{Cell, MonoTime};
use std::path::Path;

const SCHEMA: &str = "message activations {
    required int32 tid (INTEGER(32, false));
    required int64 activation;
    required int32 released_by;
    required int32 cpu (INTEGER(32, false));
    required int64 release_ns;
    required int64 latency_ns;
    required int64 run_ns;
    required int64 preempted_ns;
    required int64 blocked_ns;
    required int64 response_ns;
    required int32 page_faults (INTEGER(32, false));
    required int32 migrations (INTEGER(32, false));
}";
/// Rows that are buffered before they are written: 6 MiB.
const GROUP: usize = 1 << 16;

/// One activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivationRow {
    /// Thread ID.
    pub tid: u32,
    /// Index among the activations of the thread.
    pub activation: u64,
    /// What released it: 0 a timer, 1 a thread, 2 an interrupt, 3 nothing.
    pub released_by: u8,
    /// CPU on which it started.
    pub cpu: u32,
    /// Its release, ns after the start of the cell.
    pub release_ns: i64,
    /// From the release until the program ran, ns.
    pub latency_ns: u64,
    /// Time on the CPU, ns.
    pub run_ns: u64,
    /// Time in which it was to run and did not, ns.
    pub preempted_ns: u64,
    /// Time in which it slept, ns.
    pub blocked_ns: u64,
    /// From the release to the next wait, ns.
    pub response_ns: u64,
    /// Page faults.
    pub page_faults: u32,
    /// Changes of the CPU.
    pub migrations: u32,
}

/// Writer for the activations of one cell.
#[derive(Debug)]
pub struct ActivationWriter {
    file: SampleFile,
    rows: Vec<ActivationRow>,
}

impl ActivationWriter {
    /// Creates a file that is named `path` when it is complete. Errors: if the file exists or cannot be created.
    pub fn create(path: &Path) -> Result<ActivationWriter, StoreError> {
        let file = SampleFile::begin(path, SCHEMA, Kind::Activations)?;
        Ok(ActivationWriter { file, rows: Vec::new() })
    }

    /// Adds rows, and writes them when they fill a row group. Errors: on a write error, such as a full disk.
    pub fn add(&mut self, rows: &[ActivationRow]) -> Result<(), StoreError> {
        self.rows.extend_from_slice(rows);
        if self.rows.len() >= GROUP { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let ints = |of: fn(&ActivationRow) -> u32| Column::Ints(rows.iter().map(|row| of(row).cast_signed()).collect());
        let longs = |of: fn(&ActivationRow) -> i64| rows.iter().map(of).collect::<Vec<i64>>();
        let columns: [fn(&ActivationRow) -> i64; 6] = [
            |row| row.release_ns,
            |row| row.latency_ns.cast_signed(),
            |row| row.run_ns.cast_signed(),
            |row| row.preempted_ns.cast_signed(),
            |row| row.blocked_ns.cast_signed(),
            |row| row.response_ns.cast_signed(),
        ];
        let (activations, times) = (longs(|row| row.activation.cast_signed()), columns.map(longs));
        let mut all = vec![ints(|row| row.tid), Column::Longs(&activations)];
        all.extend([ints(|row| row.released_by.into()), ints(|row| row.cpu)]);
        all.extend(times.iter().map(|column| Column::Longs(column)));
        all.extend([ints(|row| row.page_faults), ints(|row| row.migrations)]);
        self.file.write(&all)
    }

    /// Writes the remaining rows and the metadata; then renames the file and syncs it to disk. Errors: on a write
    /// error, such as a full disk. There is no file then.
    pub fn finish(mut self, cell: &Cell, started: MonoTime) -> Result<(), StoreError> {
        self.write()?;
        let mut of_cell = serde_json::to_value(cell).unwrap_or_default();
        // Of the plan: watched threads have periods of their own.
        of_cell.as_object_mut().and_then(|cell| cell.remove("period_ns"));
        let about = [
            ("format", FORMAT.to_string()),
            ("tool", punctual_model::TOOL.to_owned()),
            ("cell", of_cell.to_string()),
            ("cell_id", cell.id().to_string()),
            ("started_mono_ns", started.0.to_string()),
            (
                "released_by",
                "0 a timer of the thread, 1 another thread, 2 an interrupt, 3 nothing: it did not wait".to_owned(),
            ),
            ("release", "release_ns counts from started_mono_ns, by CLOCK_MONOTONIC".to_owned()),
        ];
        self.file.complete(about)
    }
}
