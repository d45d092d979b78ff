//! Whether threads of Cobalt stayed in its primary mode, and the gravity of their timers.

use super::pool::Pool;
use model::SwitchReason;

/// What is known of the threads of a cell that Cobalt schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CobaltThreads {
    /// Switches to secondary mode during the cycles, as far as counted.
    pub(crate) mode_switches: u64,
    /// Why the first of them happened; `None` if Cobalt did not say.
    pub(crate) reason: Option<SwitchReason>,
    /// Number of threads whose switches are unknown, because they did not end.
    pub(crate) unknown: u64,
    /// Largest gravity for threads of programs, ns; `None` if a block does not know its own.
    pub(crate) gravity_ns: Option<i64>,
}

/// Sums over all blocks; `None` for other threads.
pub(super) fn of(pool: &Pool<'_>) -> Option<CobaltThreads> {
    pool.cell.task.is_of_cobalt().then(|| CobaltThreads {
        mode_switches: pool.sum(|thread| thread.cobalt.map_or(0, |cobalt| cobalt.mode_switches)),
        reason: pool.threads().find_map(|(_, thread)| thread.cobalt?.reason),
        unknown: pool.sum(|thread| u64::from(thread.cobalt.is_none())),
        gravity_ns: gravity_ns(pool),
    })
}

/// Gravity for threads of programs while the cell was measured.
fn gravity_ns(pool: &Pool<'_>) -> Option<i64> {
    let of_block = |entry: &&model::Entry| entry.record.host_before.cokernel.as_ref()?.gravity()?.user_ns;
    let all: Option<Vec<i64>> = pool.entries.iter().map(of_block).collect();
    all?.into_iter().max()
}
