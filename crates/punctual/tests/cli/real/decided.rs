//! Runs that end when two cells are decided, and cells that are measured twice: they say what their records say.

use crate::program::{Scratch, a_cpu, command, header, inconclusive, machine, machine_and_scratch, punctual, run};
use punctual_model::Until;

/// A plan of one load and these policies; blocks of a second.
pub(crate) fn plan(load: &str, policies: &str) -> String {
    format!(
        "repetitions = 6\nduration = \"500ms\"\nwarm_up = \"50ms\"\n[axes]\nload = [\"{load}\"]\n\
         policy = [{policies}]\nperiod = [\"200us\"]\n"
    )
}

/// Compares the p99 of the runs `before` and `after`; returns the exit status and the comparison.
pub(crate) fn compared(scratch: &Scratch, metric: &str) -> (i32, serde_json::Value) {
    let dirs = ["before", "after"].map(|side| scratch.path(side));
    let said = run(command("compare --format json --metric").arg(metric).args(dirs));
    let json = said.json();
    (said.status, json)
}

/// The interval of the ratio; `None` where it is refused.
pub(crate) fn interval(json: &serde_json::Value) -> Option<(f64, f64)> {
    let end = |end: usize| json["primary"]["ratio"]["interval"][end].as_f64();
    Some((end(0)?, end(1)?))
}

/// The exit status of an answer.
#[track_caller]
fn status_of(json: &serde_json::Value) -> i32 {
    match json["decision"]["kind"].as_str() {
        Some("equivalent") => 0,
        Some("different") => 2,
        _ => 3,
    }
}

#[test]
fn a_run_that_ends_with_its_time_gives_the_answer_of_its_records() {
    let (_machine, scratch) = machine_and_scratch("undecided");
    let (plan, out) = (scratch.file("plan.toml", plan("none", "\"other\", \"batch\"")), scratch.path("out"));
    let said = run(command("run --wait --until decided --at-most 20s --out").arg(&out).arg(&plan)).expect_success();
    let compared = run(command("compare --format json").arg(&out));
    let json = compared.json();
    let sentence = json["answer"].as_str().unwrap();
    assert!(said.stderr.contains(sentence), "{sentence}: {said:?}");
    assert_eq!(compared.status, status_of(&json), "{json}");
    assert_eq!(header(&out).plan.until, Some(Until::Decided));
    let most = u64::from(header(&out).plan.repetitions);
    let blocks = json["blocks"].as_u64().unwrap();
    assert!(most >= 8 && blocks <= most, "{blocks} of {most}");
    // Fewer than 8 blocks decide nothing.
    assert!(blocks >= 8 || compared.status == 3, "{json}");
    assert!(!said.stdout.contains("are complete"), "the time was over, nothing is missing: {said:?}");
}

/// A run in `before` whose only cell is measured twice, and in `after` the same with both exchanged.
pub(crate) fn measured_twice(scratch: &Scratch) {
    let one = plan("none", "\"other\"").replace("[axes]", "aa = true\n[axes]").replace("= 6", "= 8");
    let (plan, out) = (scratch.file("plan.toml", one), scratch.path("before"));
    let _ = std::fs::remove_dir_all(&out);
    run(command("run --wait --out").arg(&out).arg(&plan)).expect_success();
    let text = std::fs::read_to_string(out.join("run.jsonl")).unwrap();
    scratch.file("after/run.jsonl", exchanged(&text));
}

#[test]
fn what_is_measured_twice_is_its_own_noise_floor() {
    let (_machine, scratch) = machine_and_scratch("twice");
    measured_twice(&scratch);
    let out = scratch.path("before");
    // The only cell is compared with itself without being named.
    let only = run(command("compare --format json --metric p99").arg(&out));
    let floor = only.json();
    assert_eq!((only.status, &floor["is_again"]), (status_of(&floor), &true.into()), "{floor}");
    assert_eq!(floor["b"], "none/other/again", "{floor}");
    if interval(&floor).is_none() {
        return inconclusive("too few wake-ups for a p99");
    }
    assert_eq!(floor["blocks"], 8, "{floor}");
    assert_eq!(floor["noise_floor"], floor["primary"]["ratio"]["interval"], "{floor}");
    // The cell and its repetition, as two runs.
    let (status, json) = compared(&scratch, "p99");
    assert_eq!((status, &json["blocks"]), (status_of(&json), &8.into()), "{json}");
    assert_eq!(json["noise_floor"], json["primary"]["ratio"]["interval"], "the same measurements: {json}");
    let text = run(command("compare --metric p99").arg(&out).arg(scratch.path("after"))).stdout.replace('\n', " ");
    assert!(text.contains("Noise floor: two measurements of none/other in "), "{text}");
}

/// The run with the first and second measurement of its cell exchanged.
fn exchanged(text: &str) -> String {
    let exchange = |line: &str| {
        let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
        // The checksum belongs to the original line.
        entry.as_object_mut().unwrap().remove("xxh3");
        if let Some(cell) = entry["cell_index"].as_u64() {
            entry["cell_index"] = (1 - cell).into();
        }
        entry.to_string() + "\n"
    };
    text.lines().map(exchange).collect()
}

#[test]
fn a_cell_ends_at_a_wake_up_above_its_limit_with_a_complete_record() {
    let _machine = machine();
    let arguments = format!("measure --cpus {} --no-keep --duration 20s --warm-up 0ms --wait", a_cpu());
    let due = |summary: &serde_json::Value| {
        let number = |key: &str| summary[key].as_u64().unwrap_or_else(|| panic!("{key}: {summary}"));
        number("samples") + number("missed")
    };
    // Every wake-up is later than 1 ns, none later than an hour.
    let said = punctual(&format!("{arguments} --stop-above 1ns --require max=1ns --format json"));
    let summary = said.json()["cells"][0]["summary"].clone();
    assert_eq!((said.status, &summary["samples"]), (2, &1.into()), "{said:?}");
    // The due times that passed before that wake-up, and no others.
    assert!(due(&summary) <= 20_000, "{said:?}");
    let text = said.json()["run"]["findings"].to_string();
    assert!(text.contains("ended early at a wake-up beyond the limit"), "{text}");
    let said = punctual(&format!("{arguments} --stop-above 1h --format json").replace("20s", "50ms"));
    assert_eq!(due(&said.json()["cells"][0]["summary"]), 50, "{said:?}");
}
