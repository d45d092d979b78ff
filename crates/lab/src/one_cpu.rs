//! One host CPU for each guest in virtual time.
//!
//! QEMU's main loop checks its timers when a CPU of its guest halts. If the main loop runs on another host CPU at the
//! same time, it may check just before the last instructions are counted: time then jumps by a microsecond or two (seen
//! in one of 320 guests, under load). On one CPU only one of the two runs.

use punctual_model::CpuSet;
use punctual_sys::sched;
use std::sync::{Mutex, PoisonError};

/// CPUs in use by guests of this process, one entry for each guest.
static CPUS_IN_USE: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Pins the calling thread, and the processes it starts, to one CPU until this value is dropped.
#[derive(Debug)]
pub(super) struct OneCpu {
    cpu: u32,
    before: CpuSet,
}

impl OneCpu {
    /// Takes the CPU with the fewest guests among those that the thread may use; `None` if the affinity cannot be set.
    pub(super) fn take() -> Option<OneCpu> {
        let before = sched::affinity(0).ok()?;
        let mut in_use = CPUS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let guests = |cpu: u32| in_use.iter().filter(|other| **other == cpu).count();
        let cpu = before.iter().min_by_key(|cpu| guests(*cpu))?;
        sched::set_affinity(0, &[cpu].into_iter().collect()).ok()?;
        in_use.push(cpu);
        Some(OneCpu { cpu, before })
    }
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        let mut in_use = CPUS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = in_use.iter().position(|cpu| *cpu == self.cpu) {
            in_use.swap_remove(place);
        }
        // Restores the previous affinity.
        let _ = sched::set_affinity(0, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_share_a_cpu_only_when_outnumbering_and_affinity_is_restored() {
        let before = sched::affinity(0).unwrap();
        let first = OneCpu::take().unwrap();
        assert_eq!(sched::affinity(0).unwrap().len(), 1);
        let second = std::thread::spawn({
            let before = before.clone();
            move || {
                sched::set_affinity(0, &before).unwrap();
                OneCpu::take().unwrap().cpu
            }
        });
        let second = second.join().unwrap();
        assert!(before.len() == 1 || second != first.cpu, "{second}");
        drop(first);
        assert_eq!(sched::affinity(0).unwrap(), before);
    }
}
