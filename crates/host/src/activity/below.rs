//! Counts of what takes a CPU from below the kernel: system management interrupts, and time that a hypervisor took.

use super::counters::TICK_MS;
use super::sensors::smi_counter;
use crate::{HostFs, SmiCounter};
use punctual_model::CpuSet;
use std::collections::BTreeMap;

/// Counts since the reading before; they never interrupt a measured CPU.
#[derive(Debug)]
pub struct BelowKernel {
    fs: HostFs,
    /// The counter of a CPU that is not measured.
    smis: Option<SmiCounter>,
    last: Counts,
}

/// Counts of an interval, or since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// System management interrupts; `None`: they cannot be counted, or only by interrupting a measured CPU.
    pub smis: Option<u64>,
    /// Stolen time of each CPU, ns.
    stolen_ns: BTreeMap<u32, u64>,
}

impl Counts {
    /// Time that a hypervisor took from a CPU, ns; `None`: it is not counted.
    pub fn stolen_ns(&self, cpu: u32) -> Option<u64> {
        self.stolen_ns.get(&cpu).copied()
    }
}

impl BelowKernel {
    /// The first reading, while the CPUs are `measured`.
    pub fn begin(measured: &CpuSet) -> BelowKernel {
        let fs = HostFs::here();
        let smis = smi_counter(&fs, measured);
        let mut below = BelowKernel { fs, smis, last: Counts::default() };
        below.read();
        below
    }

    /// The counts since the reading before.
    pub fn read(&mut self) -> Counts {
        let now = Counts {
            smis: self.smis.as_ref().and_then(|counter| counter.count().ok()),
            stolen_ns: stolen(&self.fs.text("proc/stat").unwrap_or_default()),
        };
        let before = std::mem::replace(&mut self.last, now.clone());
        let since = |(cpu, ns): (u32, u64)| Some((cpu, ns.saturating_sub(*before.stolen_ns.get(&cpu)?)));
        Counts {
            smis: now.smis.zip(before.smis).map(|(now, before)| now.saturating_sub(before)),
            stolen_ns: now.stolen_ns.into_iter().filter_map(since).collect(),
        }
    }
}

/// Stolen time of each CPU in `/proc/stat`, ns.
fn stolen(text: &str) -> BTreeMap<u32, u64> {
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu = words.next()?.parse().ok().filter(|_| !line.starts_with("cpu "))?;
        Some((cpu, words.nth(7)?.parse::<u64>().ok()?.saturating_mul(TICK_MS * 1_000_000)))
    };
    text.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_that_of_each_cpu() {
        let text = "cpu  9 9 9 9 9 9 9 80 0 0\ncpu0 1 2 3 4 5 6 7 30 0 0\ncpu3 1 2 3 4 5 6 7 50 0 0\ncpu4 1\nintr 5\n";
        assert_eq!(stolen(text), [(0, 300_000_000), (3, 500_000_000)].into());
        let mut below = BelowKernel { fs: HostFs::here(), smis: None, last: Counts::default() };
        assert_eq!((below.read(), below.read().smis), (Counts::default(), None));
    }
}
