//! `punctual lab check`: tests whether virtual time is independent of other work on this machine.

use super::TestCell;
use crate::cli::arguments::{Format, GUEST_LOAD, GUEST_POLICY, LabCheckArguments};
use crate::cli::terminal::{ERROR, Outcome, note, output};
use punctual_campaign::{Executor, LocalOrLab};
use punctual_model::{CpuSet, Load, Period, Policy, Record, Span};
use punctual_report::json::{LabCheckDocument, RecordDifference};
use punctual_sys::sched;
use punctual_workload::load::{self, Place};
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;

/// Number of differences in the text; the first shows their kind.
const MAX_SHOWN: usize = 5;
/// Time limit of the load beside the second guest, in case it is not stopped.
const LOAD_TIMEOUT: Span = Span(600_000_000_000);

type Difference = RecordDifference<Value>;

pub(super) fn check(arguments: LabCheckArguments) -> Outcome {
    let kernel = arguments.kernel.to_string();
    let asked = TestCell {
        kernel: arguments.kernel,
        load: GUEST_LOAD.parse()?,
        policy: GUEST_POLICY.parse()?,
        period: Period::try_from(Span(1_000_000))?,
        task: punctual_model::Task::CLOCK_NANOSLEEP,
        duration: Span(300_000_000),
        blocks: 1,
    };
    let session = asked.begin("lab check", arguments.wait)?;
    session.announce(2);
    let (cell, stop) = (session.cell(), session.stop());
    let mut lab = LocalOrLab::new(Arc::new(|line| note(line)));
    let mut measure = || lab.execute(cell, 0, None, stop, &mut |_| ()).map_err(|err| format!("{kernel}: {err}"));
    note(format_args!("1 of 2: a cell of {} under load {GUEST_LOAD} on {kernel}", cell.duration));
    let alone = measure()?;
    let cpus = sched::affinity(0)?;
    note(format_args!("2 of 2: the same cell under a host load on {}", cpus_of(&cpus)));
    let loaded = {
        let _load = beside(&cpus)?;
        measure()?
    };
    let differences = differences(&alone, &loaded)?;
    let is_same = differences.is_empty();
    let mut text = Vec::new();
    match arguments.format {
        Format::Json => output::json(
            &mut text,
            &LabCheckDocument { kernel, identical: is_same, differences: &differences, alone: &alone, loaded: &loaded },
        )?,
        Format::Text => text = said(&kernel, &alone, &cpus, &differences).into_bytes(),
    }
    output::write(&text)?;
    Ok(if is_same { 0 } else { ERROR })
}

/// Starts a busy loop on every CPU, until dropped: as nice as this program and its guest, and never in real time.
fn beside(cpus: &CpuSet) -> Result<Vec<load::Running>, Box<dyn Error>> {
    let cpu: Load = "cpu".parse()?;
    let policy = sched::known_policy(0).filter(|policy| !policy.is_realtime()).unwrap_or(Policy::OTHER);
    Ok(load::start(&cpu, &Place { cpus, policy, at_most: LOAD_TIMEOUT })?)
}

fn cpus_of(cpus: &CpuSet) -> String {
    punctual_analysis::wording::things(cpus.len().try_into().unwrap_or(u64::MAX), "CPU")
}

fn said(kernel: &str, alone: &Record, cpus: &CpuSet, differences: &[Difference]) -> String {
    if differences.is_empty() {
        let histogram = alone.threads.first().map(|thread| &thread.histogram);
        let numbers = histogram.and_then(|histogram| Some((histogram.n, histogram.max_ns?)));
        let numbers = numbers.map(|(n, max_ns)| format!(", {n} cycles with a maximum of {max_ns} virtual ns"));
        let numbers = numbers.unwrap_or_default();
        return format!("{kernel}: identical, alone and under a host load on {}{numbers}\n", cpus_of(cpus));
    }
    let mut text = format!("{kernel}: DIFFERENT in {}\n", things(differences.len()));
    for Difference { path, alone, loaded } in differences.iter().take(MAX_SHOWN) {
        text += &format!("  {path}: {alone} alone, {loaded} under a host load\n");
    }
    if differences.len() > MAX_SHOWN {
        text += &format!("  and {} more; --format json has all\n", differences.len() - MAX_SHOWN);
    }
    text
}

fn things(places: usize) -> String {
    punctual_analysis::wording::things(places.try_into().unwrap_or(u64::MAX), "place")
}

/// Differences of two records.
fn differences(alone: &Record, loaded: &Record) -> Result<Vec<Difference>, serde_json::Error> {
    let mut found = Vec::new();
    compare("", &serde_json::to_value(alone)?, &serde_json::to_value(loaded)?, &mut found);
    Ok(found)
}

fn compare(path: &str, alone: &Value, loaded: &Value, found: &mut Vec<Difference>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (alone, loaded) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                compare(&below(name), value, b.get(name).unwrap_or(&Value::Null), found);
            }
            for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                compare(&below(name), &Value::Null, value, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&below(&i.to_string()), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(Difference { path: path.to_owned(), alone: a.clone(), loaded: b.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_place_that_differs_is_named() {
        let found = |a: Value, b: Value| {
            let mut found = Vec::new();
            compare("", &a, &b, &mut found);
            found.into_iter().map(|difference| difference.path).collect::<Vec<_>>()
        };
        assert_eq!(found(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 2}]})), Vec::<String>::new());
        assert_eq!(found(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 3}]})), ["a.1.b"]);
        assert_eq!(found(json!({"a": [1], "c": 0}), json!({"a": [1, 2], "d": 0})), ["a", "c", "d"]);
    }
}
