//! Counters of the kernel: `/proc/stat` for all CPUs together, `/proc/interrupts` and `/proc/softirqs` by kind and CPU.

use punctual_model::CpuSet;
use std::collections::BTreeMap;

/// `USER_HZ` of every Linux architecture that this program runs on: 100 ticks a second (proc_stat(5)).
pub(super) const TICK_MS: u64 = 10;

/// Counters since boot; `None` where the kernel does not provide them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stat {
    pub(super) idle_ms: Option<u64>,
    pub(super) steal_ms: Option<u64>,
    pub(super) context_switches: Option<u64>,
    pub(super) interrupts: Option<u64>,
    pub(super) soft_interrupts: Option<u64>,
    pub(super) forks: Option<u64>,
}

impl Stat {
    pub(super) fn parse(text: &str) -> Stat {
        let value = |name: &str, index: usize| -> Option<u64> {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name))?;
            line.split_whitespace().nth(1 + index)?.parse().ok()
        };
        let ticks = |index| value("cpu", index).map(|ticks| ticks.saturating_mul(TICK_MS));
        Stat {
            idle_ms: ticks(3),
            steal_ms: ticks(7),
            context_switches: value("ctxt", 0),
            interrupts: value("intr", 0),
            soft_interrupts: value("softirq", 0),
            forks: value("processes", 0),
        }
    }
}

/// The counts of each kind, summed over `cpus`. A kind is the kernel's name for it; for a numbered interrupt, its
/// number and device: `26:ttyS0`.
pub(super) fn interrupts_of_cpus(text: &str, cpus: &CpuSet) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let cpu = |name: &str| name.strip_prefix("CPU")?.parse::<u32>().ok();
    let columns: Vec<bool> =
        header.split_whitespace().map(|name| cpu(name).is_some_and(|cpu| cpus.contains(cpu))).collect();
    let mut kinds = BTreeMap::new();
    for line in lines {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let mut words = rest.split_whitespace();
        let counts = columns.iter().map_while(|counted| Some((*counted, words.next()?.parse::<u64>().ok()?)));
        // Some lines, like ERR, have one number for all CPUs, which cannot be counted for some of them.
        let counts: Vec<_> = counts.collect();
        if counts.len() < columns.len() {
            continue;
        }
        let sum =
            counts.iter().filter(|(counted, _)| *counted).map(|(_, n)| n).fold(0, |sum: u64, n| sum.saturating_add(*n));
        let name = name.trim();
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        let kind = match words.next_back().filter(|_| is_number) {
            Some(device) => format!("{name}:{device}"),
            None => name.to_owned(),
        };
        kinds.insert(kind, sum);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_and_missing_ones_are_unknown() {
        let text =
            "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4\nintr 500 1 2\nctxt 600\nprocesses 7\nsoftirq 8 1";
        let now = Stat::parse(text);
        assert_eq!((now.idle_ms, now.steal_ms), (Some(400), Some(800)));
        assert_eq!((now.interrupts, now.context_switches, now.soft_interrupts), (Some(500), Some(600), Some(8)));
        assert_eq!(Stat::parse("cpu  1 2"), Stat::default());
        assert_eq!(Stat::parse("cpu  1 2 3 18446744073709551615").idle_ms, Some(u64::MAX));
    }

    #[test]
    fn kinds_are_summed_over_the_cpus_that_are_asked_for() {
        let text = "           CPU0       CPU1       CPU3\n 26:   1   15   4  IO-APIC   4-edge      ttyS0\n\
                    LOC:   100   200  300   Local timer interrupts\nERR:          7\nMIS: x\nbroken\n";
        let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
        let found = interrupts_of_cpus(text, &cpus("1,3"));
        let pairs: Vec<_> = found.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
        assert_eq!(pairs, [("26:ttyS0", 19), ("LOC", 500)]);
        assert_eq!(interrupts_of_cpus("   CPU0\n  TIMER:  5\n", &cpus("0")).get("TIMER"), Some(&5));
        assert_eq!((interrupts_of_cpus("", &cpus("0")).len(), interrupts_of_cpus("x\n1: 2", &cpus("0")).len()), (0, 1));
    }
}
