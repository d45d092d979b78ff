//! Work on many items by all CPUs.

use std::num::NonZero;
use std::panic::resume_unwind;

/// What `of` makes of each item, in their order, by as many threads as there are CPUs: a run may have thousands of cells.
pub fn on_all_cpus<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        let parts = items.chunks(items.len().div_ceil(threads).max(1));
        let parts: Vec<_> = parts.map(|part| scope.spawn(|| part.iter().map(&of).collect::<Vec<R>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
