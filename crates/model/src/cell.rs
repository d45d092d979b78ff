//! One point of the matrix, complete: everything needed to carry it out.

mod check;

use crate::hash::fnv1a;
use crate::{Conditions, CpuSet, Kernel, Load, Period, Policy, Span, Task};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One measurement that can be carried out, here, in a guest or on another machine.
///
/// Invariant: it carries *all* dimensions, so two equal cells ask for the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The kernel it runs on.
    pub kernel: Kernel,
    /// Background work while measuring.
    pub load: Load,
    /// How the measured thread is scheduled.
    pub policy: Policy,
    /// Distance between due times, ns.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// What is measured.
    #[serde(rename = "method")]
    pub task: Task,
    /// One measured thread runs on each of these CPUs, pinned. A deadline thread cannot be pinned: then it is one
    /// thread for each of these CPUs, on any CPU.
    pub cpus: CpuSet,
    /// Measured time, ns, after the warm-up.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
    /// Lateness, ns, above which a wake-up counts as a miss. `null`: the period.
    #[serde(rename = "deadline_ns")]
    pub deadline: Option<Span>,
    /// Whether all memory must be locked, `mlockall(2)`.
    pub lock_memory: bool,
    /// CPUs of the load. `null`: every CPU that may be used.
    #[serde(default)]
    pub load_cpus: Option<CpuSet>,
    /// What holds for every cell of the plan, as far as it applies to this one.
    #[serde(flatten)]
    pub conditions: Conditions,
}

impl Cell {
    /// The first measured cycle; those before it are warm-up.
    #[must_use]
    pub fn first_cycle(&self) -> u64 {
        self.period.cycles_in(self.conditions.warm_up)
    }

    /// One past the last cycle: warm-up and measured cycles together.
    #[must_use]
    pub fn end_cycle(&self) -> u64 {
        self.first_cycle() + self.period.cycles_in(self.duration)
    }

    /// The lateness above which a wake-up is a miss.
    #[must_use]
    pub fn deadline(&self) -> Span {
        self.deadline.unwrap_or(self.period.span())
    }

    /// The identity: a hash of the contents.
    #[must_use]
    pub fn id(&self) -> CellId {
        CellId(format!("{:016x}", fnv1a(&canonical_text(self))))
    }

    /// What people call the cell: the axes that a table shows.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{}", self.load.label(), self.policy)
    }
}

/// All dimensions in a fixed order, independent of any serializer's version.
fn canonical_text(cell: &Cell) -> String {
    let Cell { kernel, load, policy, period, task, cpus, duration, deadline, lock_memory, conditions, .. } = cell;
    let Conditions { warm_up, timer_slack, cpu_dma_latency_us, .. } = conditions;
    let optional = |span: &Option<Span>| span.map_or_else(|| "-".to_owned(), |span| span.to_string());
    let (deadline, timer_slack) = (optional(deadline), optional(timer_slack));
    let dma = cpu_dma_latency_us.map_or_else(|| "-".to_owned(), |us| us.to_string());
    let others = conditions.canonical_text(cell.load_cpus.as_ref());
    format!(
        "{kernel} {load} {policy} {period} {task} {cpus} {duration} {warm_up} {deadline} {timer_slack} {lock_memory} {dma}{others}"
    )
}

/// Identity of a [`Cell`]: 16 hexadecimal digits that follow from its contents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CellId(String);

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
pub(crate) mod tests;
