//! Reading where interrupts go.

use crate::host::HostFs;
use model::{CpuSet, Interrupts, IrqGroup};

pub(super) fn read(fs: &HostFs) -> Interrupts {
    let mut groups: Vec<(CpuSet, Option<CpuSet>, Vec<u32>)> = Vec::new();
    for irq in fs.numbered("proc/irq", "") {
        let Some(cpus) = fs.cpu_list(&format!("proc/irq/{irq}/smp_affinity_list")) else { continue };
        // One that nobody handles has no effective affinity.
        let effective = fs.cpu_list(&format!("proc/irq/{irq}/effective_affinity_list")).filter(|cpus| !cpus.is_empty());
        match groups.iter_mut().find(|group| (&group.0, &group.1) == (&cpus, &effective)) {
            Some((.., irqs)) => irqs.push(irq),
            None => groups.push((cpus, effective, vec![irq])),
        }
    }
    let group = |(cpus, effective, irqs): (_, _, Vec<u32>)| IrqGroup {
        count: u32::try_from(irqs.len()).unwrap_or(u32::MAX),
        irqs: ranges(&irqs),
        cpus,
        effective,
    };
    Interrupts {
        default_cpus: fs.cpu_mask("proc/irq/default_smp_affinity"),
        groups: groups.into_iter().map(group).collect(),
    }
}

/// Ascending numbers as `24-26,30`.
fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match parts.last_mut().filter(|(_, last)| last.checked_add(1) == Some(*number)) {
            Some((_, last)) => *last = *number,
            None => parts.push((*number, *number)),
        }
    }
    let text = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.into_iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_ranges() {
        for (numbers, text) in
            [(&[][..], ""), (&[7], "7"), (&[0, 1, 2, 5, 7, 8], "0-2,5,7-8"), (&[u32::MAX], "4294967295")]
        {
            assert_eq!(ranges(numbers), text);
        }
    }
}
