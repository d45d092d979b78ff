//! The plan: axes, repetitions, duration, requirement.

mod axes;
mod keys;
mod knob;
mod knobs;
mod parse;
mod requirement;
mod setting;
mod tables;
mod until;
mod values;
mod write;

use crate::{
    Conditions, CpuSet, Kernel, Load, LoadCpus, Period, Policy, Prepare, RtPriority, Runtime, Selector, Span, Study,
    Task,
};
use serde::{Deserialize, Serialize};

pub use knob::Knob;
pub use parse::{ChangedPlanError, PlanError};
pub use requirement::Requirement;
pub use setting::Setting;
pub use until::Until;

/// A campaign as requested. It holds no host facts, so the same plan can be run on another machine.
///
/// Invariant of a parsed plan: every axis has at least one value and no value twice, `repetitions` is 1 or more, and
/// every cell has room for at least one cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Title of the campaign.
    pub title: String,
    /// The published study that it repeats; `None`: not a repetition.
    #[serde(default)]
    pub study: Option<Study>,
    /// Number of blocks: passes over all cells.
    pub repetitions: u32,
    /// Whether every cell is measured twice in each block, so that the difference between equal cells is known (A/A).
    #[serde(default)]
    pub aa: bool,
    /// Condition that ends the run before all blocks are measured; `None`: no such condition.
    #[serde(default)]
    pub until: Option<Until>,
    /// Measured time of one cell in one block.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
    /// Measured cycles of one cell in one block, in place of `duration`; `None`: as many as fit into the duration.
    #[serde(default)]
    pub cycles: Option<u64>,
    /// Minimum number of cycles of a cell, if `duration` has room for fewer; `None`: the duration alone decides.
    #[serde(default)]
    pub min_cycles: Option<u64>,
    /// Seed of the order of the cells; `None`: drawn when the run starts, and recorded.
    pub seed: Option<u64>,
    /// CPUs to measure on; `None`: every CPU that may be used.
    pub cpus: Option<CpuSet>,
    /// CPUs of the loads.
    #[serde(default)]
    pub load_cpus: LoadCpus,
    /// Conditions of every cell.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// The matrix.
    pub axes: Axes,
    /// Settings whose effects `punctual tune` determines; empty in a plan of `punctual run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knobs: Vec<Knob>,
    /// Limits that the machine must meet; empty when nothing is required.
    pub require: Requirement,
}

/// The axes of the matrix: their product is the list of cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axes {
    /// Kernels to measure.
    pub kernel: Vec<Kernel>,
    /// Loads to measure under.
    pub load: Vec<Load>,
    /// Policies of the measured thread.
    pub policy: Vec<Policy>,
    /// Periods of the measured thread.
    #[serde(rename = "period_ns")]
    pub period: Vec<Period>,
    /// Tasks to measure.
    #[serde(rename = "method")]
    pub task: Vec<Task>,
    /// Languages whose ordinary sleep is measured, in place of `task`; empty when there is none.
    #[serde(default)]
    pub runtime: Vec<Runtime>,
    /// Settings of the machine during a cell, in place of those of [`Conditions`]; empty when they are no axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<Prepare>,
    /// Combinations to measure: those that one of these matches; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<Selector>,
}

/// One point of the axes, without the rest of a cell. Its settings are `None` if they are no axis.
pub type Point = (Kernel, Load, Policy, Period, Task, Option<Prepare>);

/// Whether the point has the values that the selector names.
fn matches(only: &Selector, (kernel, load, policy, period, task, prepare): &Point) -> bool {
    only.has((kernel, load, *policy, *period, task, prepare.as_ref()))
}

impl Axes {
    /// One combination: on the running kernel, and without loads.
    pub fn one(policy: Policy, period: Period, task: Task) -> Axes {
        Axes { load: Vec::new(), policy: vec![policy], period: vec![period], task: vec![task], ..Axes::default() }
    }

    /// The number of combinations, saturating; those that `only` leaves out count, too.
    pub fn n_points(&self) -> usize {
        let n_tasks = if self.runtime.is_empty() { self.task.len() } else { self.runtime.len() };
        let n_prepared = self.prepare.len().max(1);
        let lengths = [self.kernel.len(), self.load.len(), self.policy.len(), self.period.len(), n_tasks, n_prepared];
        lengths.into_iter().fold(1, usize::saturating_mul)
    }

    /// Every combination that is to be measured. Settings vary fastest, then policies and loads, as in tables.
    pub fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        let sleeps: Vec<_> = self.runtime.iter().copied().map(Task::Sleep).collect();
        let tasks = if sleeps.is_empty() { &self.task } else { &sleeps };
        let prepared =
            if self.prepare.is_empty() { vec![None] } else { self.prepare.iter().cloned().map(Some).collect() };
        for kernel in &self.kernel {
            for period in &self.period {
                for task in tasks {
                    for load in &self.load {
                        for policy in &self.policy {
                            let point = |prepare: &Option<Prepare>| {
                                (kernel.clone(), load.clone(), *policy, *period, task.clone(), prepare.clone())
                            };
                            points.extend(prepared.iter().map(point));
                        }
                    }
                }
            }
        }
        points.retain(|point| self.only.is_empty() || self.only.iter().any(|only| matches(only, point)));
        points
    }
}

impl Default for Axes {
    /// Idle and loaded, as a normal and as a real-time thread, once a millisecond.
    fn default() -> Self {
        Axes {
            kernel: vec![Kernel::Running],
            load: vec![Load::NONE, Load::messaging()],
            policy: RtPriority::new(80).map_or(vec![Policy::OTHER], |high| vec![Policy::OTHER, Policy::Fifo(high)]),
            period: Period::try_from(Span(1_000_000)).into_iter().collect(),
            task: vec![Task::CLOCK_NANOSLEEP],
            runtime: Vec::new(),
            prepare: Vec::new(),
            only: Vec::new(),
        }
    }
}

impl Default for Plan {
    /// A first overview of a machine, in about a minute.
    fn default() -> Self {
        Plan {
            title: "How late can this machine be?".to_owned(),
            study: None,
            repetitions: 6,
            aa: false,
            until: None,
            duration: Span(2_000_000_000),
            cycles: None,
            min_cycles: None,
            seed: None,
            cpus: None,
            load_cpus: LoadCpus::All,
            conditions: Conditions { warm_up: Span(200_000_000), cpu_dma_latency_us: Some(0), ..Conditions::default() },
            axes: Axes::default(),
            knobs: Vec::new(),
            require: Requirement::default(),
        }
    }
}

impl Plan {
    /// Valid numbers of blocks.
    pub const REPETITIONS: std::ops::RangeInclusive<u32> = 1..=10_000;

    /// Default number of blocks if all kernels are in virtual time. There only the phase of a cell against the kernel's
    /// tick varies, and it differs in each block.
    pub const PHASES: u32 = 8;

    /// Valid numbers of cycles of a cell.
    pub const CYCLES: std::ops::RangeInclusive<u64> = 1..=1_000_000_000_000;

    /// The measured time of a cell with this period.
    pub fn duration_of(&self, period: Period) -> Span {
        let span = |cycles: u64| Span(cycles.saturating_mul(period.ns()));
        self.cycles.map_or(self.duration.max(span(self.min_cycles.unwrap_or(0))), span)
    }

    /// Every setting of the machine that one of its cells changes, with one of its values.
    pub fn settings(&self) -> Prepare {
        let mut all = self.conditions.prepare.clone();
        let words = self.axes.prepare.iter().flat_map(Prepare::words);
        // A written setting is read back.
        words.for_each(|word| drop(word.split_once('=').map(|(key, value)| all.set(key, value))));
        all
    }

    /// Whether it measures in virtual time only.
    pub fn is_virtual(&self) -> bool {
        self.axes.kernel.iter().all(Kernel::is_virtual)
    }

    /// The same plan in its short form: 2 blocks, at most 1 s a cell, or one period if that is longer. Enough for a
    /// trial, not for conclusions. In virtual time, which has no noise, 4 blocks of at most 300 ms.
    pub fn quick(mut self) -> Plan {
        let (blocks, duration) = if self.is_virtual() { (4, Span(300_000_000)) } else { (2, Span::SECOND) };
        self.repetitions = self.repetitions.min(blocks);
        self.duration = self.duration.min(duration);
        (self.cycles, self.min_cycles) = (None, Some(1));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plan_is_the_documented_one() {
        let labels: Vec<_> =
            Axes::default().points().iter().map(|(_, load, policy, ..)| format!("{load}/{policy}")).collect();
        assert_eq!(labels, ["none/other", "none/fifo:80", "messaging/other", "messaging/fifo:80"]);
        assert!(Plan::default().repetitions >= 6);
    }

    #[test]
    fn settings_are_an_axis_of_their_own_that_varies_fastest() {
        let plan = "[axes]\nload = [\"none\", \"cpu\"]\npolicy = [\"other\"]\n\
                    prepare = [\"leave\", \"irq_cpus=0,2,timer_migration=off\"]\n";
        let arms = |text: &str| -> Vec<String> {
            let points = Plan::parse(text).unwrap().axes.points();
            points.iter().map(|(_, load, .., prepare)| format!("{load} {}", prepare.as_ref().unwrap())).collect()
        };
        let [leave, treated] = ["leave", "timer_migration=off,irq_cpus=0,2"];
        let all = ["none", "cpu"].map(|load| [leave, treated].map(|arm| format!("{load} {arm}"))).concat();
        assert_eq!(arms(plan), all);
        assert_eq!(arms(&format!("{plan}only = [\"load=cpu,prepare={treated}\"]")), all[3..]);
        let plan = Plan::parse(plan).unwrap();
        assert_eq!((plan.axes.n_points(), plan.settings().to_string()), (4, treated.to_owned()));
        assert!(Axes::default().points().iter().all(|(.., prepare)| prepare.is_none()), "the plan's own");
        let plain = serde_json::to_string(&Plan::default()).unwrap();
        assert_eq!(plain.matches("prepare").count(), 1, "plans without the axis keep their text");
    }

    #[test]
    fn runtimes_stand_in_for_methods() {
        let axes = Axes { runtime: vec![Runtime::C, Runtime::Go], ..Axes::default() };
        let methods: Vec<_> = axes.points().iter().map(|(.., method, _)| method.to_string()).collect();
        assert_eq!((methods.len(), &methods[0], &methods[7]), (8, &"sleep:c".to_owned(), &"sleep:go".to_owned()));
    }

    #[test]
    fn quick_keeps_room_for_one_cycle() {
        let mut plan = Plan { repetitions: 1, ..Plan::default() };
        plan.axes.period = vec!["10s".parse().unwrap()];
        plan.duration = Span(60_000_000_000);
        plan.cycles = Some(1_000_000);
        assert_eq!(plan.duration_of(plan.axes.period[0]), Span(10_000_000_000_000_000));
        let quick = plan.quick();
        assert_eq!((quick.repetitions, quick.duration_of(quick.axes.period[0])), (1, Span(10_000_000_000)));
        assert_eq!(quick.duration_of("1ms".parse().unwrap()), Span::SECOND);
    }

    #[test]
    fn virtual_time_has_phases_in_place_of_noise() {
        let plan = |text: &str| Plan::parse(&format!("{text}[axes]\nkernel = [\"debian:6.1\", \"/k\"]")).unwrap();
        assert_eq!(plan("").repetitions, Plan::PHASES);
        assert_eq!(plan("repetitions = 3\n").repetitions, 3);
        let quick = plan("duration = \"1s\"\n").quick();
        assert_eq!((quick.repetitions, quick.duration), (4, Span(300_000_000)));
        let mixed = Plan::parse("[axes]\nkernel = [\"running\", \"/k\"]").unwrap();
        assert_eq!((mixed.repetitions, mixed.quick().repetitions), (Plan::default().repetitions, 2));
    }

    #[test]
    fn only_cells_with_room_for_fewer_cycles_are_longer() {
        let mut plan = Plan { duration: Span(2_000_000_000), ..Plan::default() };
        let of = |plan: &Plan, period: &str| plan.duration_of(period.parse().unwrap()).to_string();
        assert_eq!((of(&plan, "100us"), of(&plan, "10s")), ("2s".to_owned(), "2s".to_owned()));
        plan.min_cycles = Some(3);
        assert_eq!((of(&plan, "100us"), of(&plan, "666ms")), ("2s".to_owned(), "2s".to_owned()));
        assert_eq!((of(&plan, "667ms"), of(&plan, "10s")), ("2001ms".to_owned(), "30s".to_owned()));
    }
}
