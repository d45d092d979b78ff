//! Estimates of the duration of measurements.

use model::{Cell, Header, Kernel, Task};
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

/// Expected duration of `n` measurements of a run, from the mean over its cells.
pub fn expected(header: &Header, n: usize) -> Duration {
    let overhead = |cell: &Cell| match cell.task {
        _ if cell.kernel.is_virtual() => GUEST_OVERHEAD,
        _ if cell.kernel != Kernel::Running => BOOT_OVERHEAD,
        _ if !cell.conditions.roles.is_empty() => ROLES_OVERHEAD,
        Task::Sleep(_) => LANGUAGE_OVERHEAD,
        _ => CELL_OVERHEAD,
    };
    let of_cell = |cell: &Cell| {
        // Each of the two tracers takes as long again.
        let times = if cell.conditions.tracers { 3 } else { 1 };
        u128::from(cell.conditions.warm_up.ns().saturating_add(cell.duration.ns())) * times + overhead(cell).as_nanos()
    };
    let all_ns: u128 = header.cells.iter().map(of_cell).sum::<u128>() / header.cells.len().max(1) as u128;
    let one = Duration::from_nanos(u64::try_from(all_ns).unwrap_or(u64::MAX));
    one.saturating_mul(u32::try_from(n).unwrap_or(u32::MAX))
}
