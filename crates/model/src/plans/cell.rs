//! One point of the matrix, complete: everything needed to measure it.

mod applies;
mod check;
mod endless;
mod program;

pub use endless::check_endless;

use crate::words::plain::fnv1a;
use crate::{Conditions, CpuSet, Kernel, Load, Period, Policy, Span, Task};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// One measurement, to be made here, in a guest or on another machine.
///
/// Invariant: it holds *all* dimensions, so two equal cells specify the same measurement.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Kernel that it runs on.
    pub kernel: Kernel,
    /// Background work during the measurement.
    pub load: Load,
    /// Scheduling policy of the measured thread.
    pub policy: Policy,
    /// Distance between due times, ns.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// Task that is measured.
    #[serde(rename = "method")]
    pub task: Task,
    /// CPUs with one measured thread each, pinned. A deadline thread cannot be pinned: then there is one thread for
    /// each of these CPUs, on any CPU.
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
    /// Conditions of the plan, as far as they apply to this cell.
    #[serde(flatten)]
    pub conditions: Conditions,
}

impl Cell {
    /// The first measured cycle; those before it are warm-up.
    pub fn first_cycle(&self) -> u64 {
        self.period.cycles_in(self.conditions.warm_up)
    }

    /// One past the last cycle: warm-up plus measured cycles.
    pub fn end_cycle(&self) -> u64 {
        self.first_cycle() + self.period.cycles_in(self.duration)
    }

    /// The period of the `n`-th measured thread, from 0, in the order of the CPUs: [`Conditions::period_step`].
    pub fn period_of(&self, n: usize) -> Period {
        let step = self.conditions.period_step.unwrap_or_default().ns();
        let ns = u64::try_from(n).unwrap_or(u64::MAX).saturating_mul(step).saturating_add(self.period.ns());
        // A checked cell has no period out of range.
        Period::try_from(Span(ns)).unwrap_or(self.period)
    }

    /// The period of the thread on `cpu`; of a CPU that is not measured, that of the cell.
    pub fn period_on(&self, cpu: u32) -> Period {
        self.cpus.iter().position(|other| other == cpu).map_or(self.period, |n| self.period_of(n))
    }

    /// The period of the last measured thread, the longest.
    pub fn longest_period(&self) -> Period {
        self.period_of(self.cpus.len().saturating_sub(1))
    }

    /// Whether the threads have different periods.
    pub fn has_several_periods(&self) -> bool {
        self.conditions.period_step.is_some() && self.cpus.len() > 1
    }

    /// The measured cycles of a thread with this period: those due in the window of the first thread. Cycles before
    /// them are warm-up.
    pub fn cycles_of(&self, period: Period) -> Range<u64> {
        let at = |cycle: u64| Span(cycle.saturating_mul(self.period.ns()));
        period.cycles_in(at(self.first_cycle()))..period.cycles_in(at(self.end_cycle()))
    }

    /// Time from the first measured due time of the first thread to that of a thread with this period, if cycle 0 of
    /// both is due at the same time: less than its period.
    pub fn lead_of(&self, period: Period) -> Span {
        let at = |period: Period, cycle: u64| cycle.saturating_mul(period.ns());
        Span(at(period, self.cycles_of(period).start).saturating_sub(at(self.period, self.first_cycle())))
    }

    /// The measured cycles of all threads together, as requested.
    pub fn cycles_of_all(&self) -> u64 {
        let cycles = |n| {
            let Range { start, end } = self.cycles_of(self.period_of(n));
            end - start
        };
        (0..self.cpus.len()).map(cycles).fold(0, u64::saturating_add)
    }

    /// The lateness above which a wake-up of a thread with this period is a miss.
    pub fn deadline_at(&self, period: Period) -> Span {
        self.deadline.unwrap_or(period.span())
    }

    /// The lateness above which a wake-up of the first thread is a miss.
    pub fn deadline(&self) -> Span {
        self.deadline_at(self.period)
    }

    /// The identity: a hash of the contents.
    pub fn id(&self) -> CellId {
        CellId(format!("{:016x}", fnv1a(&canonical_text(self))))
    }

    /// Label of the cell: the axes that a table shows.
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

/// Identity of a [`Cell`]: a hash of its contents, 16 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct CellId(String);

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
pub(crate) mod tests;
