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
    /// Takes the CPU with the fewest guests among those that the thread may use, the one that it runs on if there are
    /// several: guests of other processes are not counted. `None` if the affinity cannot be set.
    pub(super) fn take() -> Option<OneCpu> {
        let before = sched::affinity(0).ok()?;
        let mut in_use = CPUS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let cpu = freest(&before, &in_use, sched::current_cpu())?;
        sched::set_affinity(0, &[cpu].into_iter().collect()).ok()?;
        in_use.push(cpu);
        Some(OneCpu { cpu, before })
    }
}

fn freest(cpus: &CpuSet, in_use: &[u32], here: Option<u32>) -> Option<u32> {
    let guests = |cpu: u32| in_use.iter().filter(|other| **other == cpu).count();
    cpus.iter().min_by_key(|cpu| (guests(*cpu), Some(*cpu) != here))
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
    fn a_guest_stays_where_it_is_unless_another_cpu_has_fewer() {
        let cpus = [0, 1, 3].into_iter().collect();
        for (in_use, here, cpu) in [(&[][..], Some(1), 1), (&[1], Some(1), 0), (&[0, 1], Some(0), 3), (&[], None, 0)] {
            assert_eq!(freest(&cpus, in_use, here), Some(cpu), "{in_use:?} {here:?}");
        }
    }

    #[test]
    fn a_second_guest_takes_another_cpu_and_affinity_is_restored() {
        let before = sched::affinity(0).unwrap();
        let first = OneCpu::take().unwrap();
        assert_eq!(sched::affinity(0).unwrap(), [first.cpu].into_iter().collect());
        sched::set_affinity(0, &before).unwrap();
        let second = OneCpu::take().unwrap();
        assert!(before.len() == 1 || second.cpu != first.cpu, "{second:?}");
        drop((second, first));
        assert_eq!(sched::affinity(0).unwrap(), before);
    }
}
