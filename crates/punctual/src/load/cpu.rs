//! The load `cpu`: a process for each CPU that only computes, and never sleeps.

use super::{Crew, LoadError};
use model::Load;
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Steps of one operation: some 10 us, so that counting costs nothing.
const STEPS: u64 = 10_000;

/// Starts a process for each of `n_cpus` and waits until every one works. The scheduler spreads them.
pub(super) fn start(load: &Load, n_cpus: usize) -> Result<Crew, LoadError> {
    let mut crew = Crew::new(load, "round", n_cpus, n_cpus)?;
    for counter in 0..n_cpus {
        crew.hire(Some(counter), compute)?;
    }
    crew.wait_until_all_work()?;
    Ok(crew)
}

fn compute(count: Option<&AtomicU64>) -> std::io::Result<()> {
    let mut value = 1_u64;
    loop {
        for step in 0..STEPS {
            // Knuth's multiplier (MMIX): a chain of dependent multiplications, which fills no cache.
            value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
        }
        if let Some(count) = count {
            // The only writer of this counter.
            count.store(count.load(Relaxed) + 1, Relaxed);
        }
    }
}
