//! Runs of other conditions or of another machine: differences are shown, and incomparable runs are refused.

use crate::program::Scratch;
use crate::session::play;
use punctual_analysis::testing::RunBuilder;
use std::path::Path;

/// Copies the run to `name` with another value of `key` wherever that key occurs in its file.
fn altered(scratch: &Scratch, from: &Path, name: &str, key: &str, value: &serde_json::Value) {
    let text = std::fs::read_to_string(from.join("run.jsonl")).unwrap();
    let lines = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(set(&mut line, key, value), "{key} stands in every line");
        // The checksum belongs to the original line.
        line.as_object_mut().unwrap().remove("xxh3");
        line.to_string() + "\n"
    });
    scratch.file(&format!("{name}/run.jsonl"), lines.collect::<String>());
}

/// Sets every `key` below `json` and returns whether there was one.
fn set(json: &mut serde_json::Value, key: &str, value: &serde_json::Value) -> bool {
    match json {
        serde_json::Value::Object(members) => {
            // The plan has an array of values under the same key.
            let old = members.get_mut(key).filter(|old| !old.is_array());
            let here = old.map(|old| *old = value.clone()).is_some();
            members.values_mut().map(|member| usize::from(set(member, key, value))).sum::<usize>() > 0 || here
        }
        serde_json::Value::Array(items) => {
            items.iter_mut().map(|item| usize::from(set(item, key, value))).sum::<usize>() > 0
        }
        _ => false,
    }
}

#[test]
fn another_period_or_machine_needs_force_and_another_kernel_does_not() {
    let mut run = RunBuilder::new();
    run.cell("none", "other").header.plan.repetitions = 6;
    for block in 0..6 {
        run.measure(block, 0, |cpu, cycle| {
            5_000 + i64::try_from((cycle * 31 + u64::from(cpu) + 7 * u64::from(block)) % 97).unwrap()
        });
    }
    play(|scratch, _| {
        let here = scratch.run("here", &run);
        altered(scratch, &here, "slow", "period_ns", &2_000_000.into());
        altered(scratch, &here, "there", "cpu_model", &"Elbrus 8C".into());
        altered(scratch, &here, "kernel", "kernel_release", &"7.0-rc1".into());
    });
}
