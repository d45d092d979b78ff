//! In what two measurements differ, and whether their latencies can be compared at all.
//!
//! What somebody changes on purpose, to see what it does, is shown beside the answer: kernel, governor, policy, load.
//! What makes a latency be of something else prevents an answer: how often and by what the thread waits, and on which
//! machine. One of these that is asked about by name is allowed.

use crate::facts;
use crate::wording::texts_apart;
use model::{Cell, Explain, Header, Host};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Conditions that prevent a comparison unless they are asked about. The method names its clock, too; roles name machines.
const PREVENTING: &[&str] = &["time", "period", "method", "roles"];

/// A condition, or a fact about the machine, that is not the same for both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Which.
    pub fact: &'static str,
    /// What it was for the first; `None`: unknown.
    pub a: Option<String>,
    /// What it was for the second; `None`: unknown.
    pub b: Option<String>,
    /// What it means for the comparison.
    pub role: Role,
}

/// What a difference means for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A ratio of such latencies is of nothing.
    Prevents,
    /// Part of the ratio, beside what is asked.
    Beside,
    /// It is what is asked about.
    Asked,
}

/// `period (1ms and 200us)`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = [&self.a, &self.b].map(|value| value.as_deref().unwrap_or("unknown"));
        let (a, b) = texts_apart(a, b);
        write!(f, "{} ({a} and {b})", self.fact)
    }
}

/// In what two measurements differ, each a cell on a machine; `asked`: the axes of [`model::Selector::AXES`] that are asked
/// about.
#[must_use]
pub fn differences(a: (&Cell, &Host), b: (&Cell, &Host), asked: &[&str]) -> Vec<Difference> {
    let conditions = conditions(a.0).into_iter().zip(conditions(b.0)).filter(|(a, b)| a != b);
    let conditions = conditions.map(|((fact, a), (_, b))| {
        let role = match () {
            () if asked.contains(&fact) => Role::Asked,
            () if PREVENTING.contains(&fact) => Role::Prevents,
            () => Role::Beside,
        };
        Difference { fact, a: Some(a), b: Some(b), role }
    });
    conditions.chain(of_machines(a.1, b.1)).collect()
}

/// In what a machine is no longer what it was at the start of a run, but what the run's plan sets itself.
#[must_use]
pub fn since(header: &Header, now: &Host) -> Vec<Difference> {
    with_roles(facts::differences_but_made(&header.host, now, &header.plan.prepare))
}

/// In what two machines differ.
fn of_machines(a: &Host, b: &Host) -> Vec<Difference> {
    // Most pairs are of one machine, and thousands of records have the same.
    if a == b { Vec::new() } else { with_roles(facts::differences(a, b)) }
}

fn with_roles(facts: Vec<facts::Difference>) -> Vec<Difference> {
    let role = |fact| if facts::tells_machines_apart(fact) { Role::Prevents } else { Role::Beside };
    facts.into_iter().map(|(fact, a, b)| Difference { fact, a, b, role: role(fact) }).collect()
}

/// In what two runs differ as a whole: where their sets of values are not the same, and the machines they began on.
#[must_use]
pub fn of_runs(a: &Header, b: &Header) -> Vec<Difference> {
    let values = |header: &Header, index: usize| -> String {
        let of_cell = |cell| conditions(cell).into_iter().nth(index).map(|(_, value)| value);
        let values: BTreeSet<String> = header.cells.iter().filter_map(of_cell).collect();
        values.into_iter().collect::<Vec<_>>().join(", ")
    };
    let names = a.cells.first().map(conditions).unwrap_or_default();
    let conditions = names.iter().enumerate().filter(|_| !b.cells.is_empty()).filter_map(|(index, (fact, _))| {
        let (a, b) = (values(a, index), values(b, index));
        let role = if PREVENTING.contains(fact) { Role::Prevents } else { Role::Beside };
        (a != b).then_some(Difference { fact, a: Some(a), b: Some(b), role })
    });
    conditions.chain(of_machines(&a.host, &b.host)).collect()
}

/// All conditions of a cell, as texts in one order.
fn conditions(cell: &Cell) -> Vec<(&'static str, String)> {
    let Cell {
        kernel,
        load,
        policy,
        period,
        method,
        cpus,
        duration,
        warm_up,
        deadline: _,
        timer_slack,
        align,
        distance,
        lock_memory,
        cpu_dma_latency_us,
        load_cpus,
        load_policy,
        load_must_hold: _,
        prepare,
        explain,
        stop_above: _,
        // It runs outside the measured CPUs.
        on_spike: _,
        // They run when the cell is over.
        tracers: _,
        roles,
    } = cell;
    fn or<T: ToString>(value: Option<&T>, otherwise: &str) -> String {
        value.map_or(otherwise.to_owned(), ToString::to_string)
    }
    let prepare = if prepare.is_empty() { "nothing".to_owned() } else { prepare.to_string() };
    vec![
        ("time", kernel.time().to_owned()),
        ("kernel", kernel.to_string()),
        ("load", load.to_string()),
        ("policy", policy.to_string()),
        ("period", period.to_string()),
        ("method", method.to_string()),
        ("measured CPUs", cpus.to_string()),
        ("duration", duration.to_string()),
        ("warm-up", warm_up.to_string()),
        ("deadline", cell.deadline().to_string()),
        ("timer slack", or(timer_slack.as_ref(), "the kernel's")),
        ("align", or(align.as_ref(), "none")),
        ("distance", or(distance.as_ref(), "none")),
        ("memory", if *lock_memory { "locked" } else { "not locked" }.to_owned()),
        ("cpu_dma_latency, us", or(cpu_dma_latency_us.as_ref(), "left alone")),
        ("CPUs of the load", or(load_cpus.as_ref(), "all")),
        ("policy of the load", or(load_policy.as_ref(), "other")),
        ("settings made", prepare),
        ("roles", if roles.is_empty() { "none".to_owned() } else { roles.to_string() }),
        ("traced", explain.as_ref().map_or("no", traced).to_owned()),
    ]
}

/// What tracing adds to every wake-up; which of them are explained adds nothing.
fn traced(asked: &Explain) -> &'static str {
    match (asked.stacks, asked.witness.is_some()) {
        (false, false) => "yes",
        (true, false) => "with stacks",
        (false, true) => "with a witness",
        (true, true) => "with stacks and a witness",
    }
}

/// One sentence that says what prevents a comparison; `None` when nothing does.
#[must_use]
pub fn why_not(differences: &[Difference]) -> Option<String> {
    let preventing: Vec<_> = differences.iter().filter(|difference| difference.role == Role::Prevents).collect();
    let named = preventing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    (!preventing.is_empty()).then(|| format!("not comparable: they differ in {named}, so a ratio would be of nothing"))
}

#[cfg(test)]
mod tests;
