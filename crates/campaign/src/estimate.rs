//! Estimates of the duration of measurements.

use punctual_model::{Cell, Header, TRACERS, Task};
use std::time::Duration;

/// Overhead of a cell besides its warm-up and duration: start, load, end. Measured: 0.1 s idle, 1 s under load.
const CELL_OVERHEAD: Duration = Duration::from_millis(600);

/// The same overhead with the start of a language runtime. Measured: 0.5 s for C to 2 s for Java.
const LANGUAGE_OVERHEAD: Duration = Duration::from_millis(1500);

/// The same overhead with roles on other machines. Measured: 1 s, with ssh to this one.
const ROLES_OVERHEAD: Duration = Duration::from_secs(2);

/// The same overhead for a lab guest in virtual time, with the work of a short cell and one more beside it. Measured: 1
/// to 2 s.
const GUEST_OVERHEAD: Duration = Duration::from_secs(2);
/// The same overhead for a guest that boots first. Measured: 15 to 25 s.
const BOOT_OVERHEAD: Duration = Duration::from_secs(20);

/// Size of the two snapshots of the host in a record, and of its other tables. Measured on 2 CPUs: 10 kB.
const RECORD_BYTES: u64 = 10_000;
/// Size of what a record holds of a thread: the histogram, a slice, a late wake-up. Measured: 3 kB, 340 B and 34 B.
const THREAD_BYTES: u64 = 3_000;
const SLICE_BYTES: u64 = 340;
const LATE_BYTES: u64 = 34;
/// Size of a raw sample in a Parquet file. Measured: 2.2 bytes; rounded up.
pub(super) const SAMPLE_BYTES: u64 = 3;

/// Expected duration of `n` measurements of a run, from the mean over its cells.
pub fn expected(header: &Header, n: usize) -> Duration {
    expected_of(&header.cells, n)
}

/// Expected size of the files of a run, bytes: its records, and its samples if they are kept.
pub(super) fn disk_bytes(header: &Header) -> u64 {
    let of_cell = |cell: &Cell| {
        let cycles = cell.period.cycles_in(cell.duration);
        // The tables of a record are bounded: 64 slices, and of the late wake-ups one in 20, 100 to 1000.
        let tables = SLICE_BYTES * (cycles / 20).min(64) + LATE_BYTES * (cycles / 20).clamp(100, 1000).min(cycles);
        let samples = if header.samples { cycles.saturating_mul(SAMPLE_BYTES) } else { 0 };
        let threads = u64::try_from(cell.cpus.len()).unwrap_or(u64::MAX);
        RECORD_BYTES.saturating_add(threads.saturating_mul((THREAD_BYTES + tables).saturating_add(samples)))
    };
    let of_block = header.cells.iter().map(of_cell).fold(0, u64::saturating_add);
    let n = u64::try_from(header.n_measurements()).unwrap_or(u64::MAX);
    of_block.saturating_mul(n) / u64::try_from(header.cells.len().max(1)).unwrap_or(u64::MAX)
}

/// Time from the start of a cell of this machine after which it has measured, as planned, or its program has timed out.
pub(super) fn measured_after(cell: &Cell) -> Duration {
    let measured = cell.task.instrument().map_or(cell.duration, |program| cell.timeout_of(program));
    Duration::from_nanos(cell.conditions.warm_up.ns().saturating_add(measured.ns()))
}

/// Expected duration of `n` measurements, from the mean over these cells.
pub(super) fn expected_of(cells: &[Cell], n: usize) -> Duration {
    let overhead = |cell: &Cell| match &cell.task {
        _ if cell.kernel.is_virtual() => GUEST_OVERHEAD,
        _ if !cell.kernel.is_here() => BOOT_OVERHEAD,
        _ if !cell.conditions.roles.is_empty() => ROLES_OVERHEAD,
        Task::Sleep(_) => LANGUAGE_OVERHEAD,
        // The driver warms up for a second.
        Task::Timerbench(_) => CELL_OVERHEAD.saturating_add(Duration::from_secs(1)),
        _ => CELL_OVERHEAD,
    };
    let of_cell = |cell: &Cell| {
        // Each of the tracers takes as long again.
        let times = if cell.conditions.tracers { 1 + TRACERS.len() as u128 } else { 1 };
        u128::from(cell.conditions.warm_up.ns().saturating_add(cell.duration.ns())) * times + overhead(cell).as_nanos()
    };
    let all_ns: u128 = cells.iter().map(of_cell).sum::<u128>() / cells.len().max(1) as u128;
    let one = Duration::from_nanos(u64::try_from(all_ns).unwrap_or(u64::MAX));
    one.saturating_mul(u32::try_from(n).unwrap_or(u32::MAX))
}
