//! Interrupt affinities.

use crate::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Affinities of interrupts (Documentation/core-api/irq/irq-affinity.rst).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Interrupts {
    /// Default affinity of new interrupts.
    pub default_cpus: Option<CpuSet>,
    /// Interrupts by affinity.
    pub groups: Vec<IrqGroup>,
}

/// Interrupts with the same affinity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IrqGroup {
    /// IRQ numbers, like `24-27,30`.
    pub irqs: String,
    /// Number of interrupts.
    pub count: u32,
    /// Affinity: CPUs that they may be delivered to.
    pub cpus: CpuSet,
    /// Effective affinity: CPUs that they are delivered to; `null` when unknown.
    pub effective: Option<CpuSet>,
}

/// A network device of hardware.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NetworkDevice {
    /// Name.
    pub name: String,
    /// Time, us, for which it holds back the interrupt of a received packet; `null` where it cannot tell.
    pub rx_delay_us: Option<u32>,
    /// Whether it adapts that time to the traffic; `null` where it cannot tell.
    pub rx_adapts: Option<bool>,
    /// Whether its link sleeps between packets (IEEE 802.3az); `null` where it cannot tell.
    pub link_sleeps: Option<bool>,
    /// CPUs to which its queues pass received packets on (RPS); none: they do not; `null` where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rps_cpus: Option<CpuSet>,
    /// Its interrupts; none where unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub irqs: Vec<u32>,
}

/// Upper bound for the number of interrupts of any machine.
const MOST: usize = 1 << 16;

impl Interrupts {
    /// The same without interrupts that `other` lacks: interrupts appear and disappear with their devices.
    pub fn shared_with(&self, other: &Interrupts) -> Interrupts {
        let theirs: BTreeSet<u32> = other.groups.iter().flat_map(IrqGroup::numbers).collect();
        let shared = |group: &IrqGroup| {
            let irqs: Vec<u32> = group.numbers().filter(|irq| theirs.contains(irq)).collect();
            (!irqs.is_empty()).then(|| IrqGroup::new(&irqs, group.cpus.clone(), group.effective.clone()))
        };
        Interrupts { default_cpus: self.default_cpus.clone(), groups: self.groups.iter().filter_map(shared).collect() }
    }
}

impl IrqGroup {
    /// Creates the group of these interrupts, given in ascending order.
    pub fn new(irqs: &[u32], cpus: CpuSet, effective: Option<CpuSet>) -> IrqGroup {
        IrqGroup { irqs: ranges(irqs), count: u32::try_from(irqs.len()).unwrap_or(u32::MAX), cpus, effective }
    }

    /// The IRQ numbers; malformed parts are skipped.
    fn numbers(&self) -> impl Iterator<Item = u32> {
        let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        };
        // A damaged record may hold any range.
        self.irqs.split(',').filter_map(range).flatten().take(MOST)
    }

    /// The effective affinity, or the affinity if that is unknown.
    pub fn reached(&self) -> &CpuSet {
        self.effective.as_ref().unwrap_or(&self.cpus)
    }
}

/// Formats ascending numbers as `24-26,30`.
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

    #[test]
    fn interrupts_that_another_machine_has_not_are_left_out() {
        let group = |irqs: &[u32], cpus: &str| IrqGroup::new(irqs, cpus.parse().unwrap(), None);
        let of = |groups: &[IrqGroup]| Interrupts { default_cpus: None, groups: groups.to_vec() };
        let before = of(&[group(&[0, 1, 2, 24], "0-1"), group(&[25], "1")]);
        let after = of(&[group(&[0, 1, 26], "0-1"), group(&[2, 25], "1")]);
        assert_eq!(before.shared_with(&after), of(&[group(&[0, 1, 2], "0-1"), group(&[25], "1")]));
        assert_eq!(after.shared_with(&before), of(&[group(&[0, 1], "0-1"), group(&[2, 25], "1")]));
        assert_eq!(before.shared_with(&Interrupts::default()), Interrupts::default());
    }
}
