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
    Interrupts {
        default_cpus: fs.cpu_mask("proc/irq/default_smp_affinity"),
        groups: groups.into_iter().map(|(cpus, effective, irqs)| IrqGroup::new(&irqs, cpus, effective)).collect(),
    }
}
