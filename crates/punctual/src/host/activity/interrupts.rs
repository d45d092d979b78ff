//! `/proc/interrupts` and `/proc/softirqs`: how often each kind came to which CPU.

use model::CpuSet;
use std::collections::BTreeMap;

/// The counts of each kind, summed over `cpus`. A kind is the name that the kernel gives it; behind a number, who it
/// is for: `26:ttyS0`.
pub(super) fn of_cpus(text: &str, cpus: &CpuSet) -> BTreeMap<String, u64> {
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
        // Some lines, like ERR, have one number for all CPUs: it is no CPU's.
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
    fn kinds_are_summed_over_the_cpus_that_are_asked_for() {
        let text = "           CPU0       CPU1       CPU3\n 26:   1   15   4  IO-APIC   4-edge      ttyS0\n\
                    LOC:   100   200  300   Local timer interrupts\nERR:          7\nMIS: x\nbroken\n";
        let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
        let found = of_cpus(text, &cpus("1,3"));
        let pairs: Vec<_> = found.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
        assert_eq!(pairs, [("26:ttyS0", 19), ("LOC", 500)]);
        assert_eq!(of_cpus("   CPU0\n  TIMER:  5\n", &cpus("0")).get("TIMER"), Some(&5));
        assert_eq!((of_cpus("", &cpus("0")).len(), of_cpus("x\n1: 2", &cpus("0")).len()), (0, 1));
    }
}
