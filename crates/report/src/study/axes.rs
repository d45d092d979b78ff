//! Axes of a study's table: their values in the order of the study, with those that only runs have at the end.

use crate::published::Row;
use punctual_analysis::study::StudyMeasurement;
use punctual_analysis::wording::duration;
use punctual_model::{Load, Order, Policy, StudyAxis, StudyDefinition, StudyKernel, stands_for};
use std::collections::BTreeSet;

/// Place of a value on its axis, from 0.
pub(super) type Key = usize;

/// An axis with its values.
#[derive(Debug)]
pub(super) struct Axis<'a> {
    values: Vec<Value<'a>>,
}

/// A value of an axis.
#[derive(Debug)]
enum Value<'a> {
    Kernel(&'a StudyKernel),
    /// Published words, and our equivalent; `None`: published only.
    Load(String, Option<Load>),
    Policy(String, Option<Policy>),
    PeriodNs(u64),
    Cpu(usize),
}

impl<'a> Axis<'a> {
    pub(super) fn of(
        axis: StudyAxis,
        definition: &'a StudyDefinition,
        published: &[Row],
        ours: &[&StudyMeasurement<'_>],
    ) -> Axis<'a> {
        let mut axis_of = Axis { values: Vec::new() };
        if axis == StudyAxis::Kernel {
            axis_of.values.extend(definition.kernels.iter().map(Value::Kernel));
            return axis_of;
        }
        for row in published {
            let value = match axis {
                StudyAxis::Kernel => None,
                StudyAxis::Load => {
                    Some(Value::Load(row.text("load").to_owned(), row.get("our_load").and_then(|l| l.parse().ok())))
                }
                StudyAxis::Policy => {
                    let ours = row.get("our_policy").and_then(|policy| policy.parse().ok());
                    Some(Value::Policy(row.text("policy").to_owned(), ours))
                }
                StudyAxis::Period => period_ns(row).map(Value::PeriodNs),
                StudyAxis::Cpu => row.get("thread").and_then(|thread| thread.parse().ok()).map(Value::Cpu),
            };
            axis_of
                .add(value.filter(|value| !axis_of.values.iter().any(|known| known.has_row(row) && known.is(value))));
        }
        for one in ours {
            let value = match axis {
                StudyAxis::Kernel => None,
                StudyAxis::Load => Some(Value::Load(one.load.label(), Some(one.load.clone()))),
                StudyAxis::Policy => Some(Value::Policy(one.policy.to_string(), Some(one.policy))),
                StudyAxis::Period => Some(Value::PeriodNs(one.period.ns())),
                StudyAxis::Cpu => Some(Value::Cpu(one.cpu)),
            };
            axis_of.add(value.filter(|_| !axis_of.values.iter().any(|known| known.has(one))));
        }
        if matches!(axis, StudyAxis::Period | StudyAxis::Cpu) {
            axis_of.values.order_by_key(|value| match value {
                Value::PeriodNs(ns) => *ns,
                Value::Cpu(cpu) => *cpu as u64,
                _ => 0,
            });
        }
        axis_of
    }

    fn add(&mut self, value: Option<Value<'a>>) {
        self.values.extend(value);
    }
}

fn period_ns(row: &Row) -> Option<u64> {
    row.get("period_us")?.parse::<u64>().ok()?.checked_mul(1_000)
}

impl Value<'_> {
    /// Whether a published row has this value.
    fn has_row(&self, row: &Row) -> bool {
        match self {
            Value::Kernel(kernel) => {
                !kernel.published.is_empty()
                    && kernel.published.iter().all(|(column, value)| row.get(column) == Some(value))
            }
            Value::Load(published, _) => row.text("load") == published,
            Value::Policy(published, _) => row.text("policy") == published,
            Value::PeriodNs(ns) => period_ns(row) == Some(*ns),
            Value::Cpu(cpu) => row.get("thread").and_then(|thread| thread.parse().ok()) == Some(*cpu),
        }
    }

    /// Whether a measurement has this value.
    fn has(&self, one: &StudyMeasurement<'_>) -> bool {
        match self {
            Value::Kernel(kernel) => one.kernels.contains(&kernel.name.as_str()),
            Value::Load(_, ours) => ours.as_ref().is_some_and(|ours| stands_for(one.load, ours)),
            Value::Policy(_, ours) => *ours == Some(one.policy),
            Value::PeriodNs(ns) => one.period.ns() == *ns,
            Value::Cpu(cpu) => one.cpu == *cpu,
        }
    }

    /// Whether it is the same published value.
    fn is(&self, other: &Value<'_>) -> bool {
        self.label() == other.label()
    }

    fn label(&self) -> String {
        match self {
            Value::Kernel(kernel) => kernel.name.clone(),
            Value::Load(text, _) | Value::Policy(text, _) => text.clone(),
            Value::PeriodNs(ns) => duration(*ns as f64),
            Value::Cpu(cpu) => cpu.to_string(),
        }
    }
}

/// Names of the values at a place.
pub(super) fn labels(axes: &[Axis<'_>], key: &[Key]) -> Vec<String> {
    axes.iter().zip(key).filter_map(|(axis, key)| axis.values.get(*key)).map(Value::label).collect()
}

/// Whether a published row is at a place.
pub(super) fn has_row(axes: &[Axis<'_>], key: &[Key], row: &Row) -> bool {
    axes.iter().zip(key).all(|(axis, key)| axis.values.get(*key).is_some_and(|value| value.has_row(row)))
}

/// Whether a measurement is at a place.
pub(super) fn has(axes: &[Axis<'_>], key: &[Key], one: &StudyMeasurement<'_>) -> bool {
    axes.iter().zip(key).all(|(axis, key)| axis.values.get(*key).is_some_and(|value| value.has(one)))
}

/// The places of published rows.
pub(super) fn of_rows(axes: &[Axis<'_>], rows: &[Row]) -> BTreeSet<Vec<Key>> {
    rows.iter().flat_map(|row| places(axes, |value| value.has_row(row))).collect()
}

/// The places of measurements.
pub(super) fn of_measurements(axes: &[Axis<'_>], all: &[&StudyMeasurement<'_>]) -> BTreeSet<Vec<Key>> {
    all.iter().flat_map(|one| places(axes, |value| value.has(one))).collect()
}

/// Every combination of values, one of each axis, for which `has` holds.
fn places(axes: &[Axis<'_>], has: impl Fn(&Value<'_>) -> bool) -> Vec<Vec<Key>> {
    axes.iter().fold(vec![Vec::new()], |places, axis| {
        let held: Vec<Key> =
            axis.values.iter().enumerate().filter(|(_, value)| has(value)).map(|(key, _)| key).collect();
        let with = |place: &Vec<Key>, key: &Key| place.iter().copied().chain([*key]).collect();
        places.iter().flat_map(|place| held.iter().map(move |key| with(place, key))).collect()
    })
}
