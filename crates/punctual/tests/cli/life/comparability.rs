//! Runs of another machine are not resumed; `pure/comparability.rs` compares runs.

use crate::program::{ProgramOutput, Scratch, command, machine_and_scratch, run};
use std::path::{Path, PathBuf};

const PLAN: &str =
    "repetitions = 6\nduration = \"20ms\"\nwarm_up = \"5ms\"\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n";

/// Makes a real run of [`PLAN`] in `name`, with `options`.
fn measured(scratch: &Scratch, name: &str, options: &str) -> PathBuf {
    let (plan, dir) = (scratch.file("plan.toml", PLAN), scratch.path(name));
    run(command(&format!("run --wait {options} --out")).arg(&dir).arg(&plan)).expect_success();
    dir
}

/// Copies the run to `name` with another value of `key` wherever that key occurs in its file.
pub(crate) fn altered(scratch: &Scratch, from: &Path, name: &str, key: &str, value: &serde_json::Value) -> PathBuf {
    let text = std::fs::read_to_string(from.join("run.jsonl")).unwrap();
    let lines = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(set(&mut line, key, value), "{key} stands in every line");
        // The checksum belongs to the original line.
        line.as_object_mut().unwrap().remove("xxh3");
        line.to_string() + "\n"
    });
    scratch.file(&format!("{name}/run.jsonl"), lines.collect::<String>());
    scratch.path(name)
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

pub(crate) fn on(arguments: &str, dirs: &[&Path], more: &str) -> ProgramOutput {
    run(command(arguments).args(dirs).args(more.split_whitespace()))
}

#[test]
fn a_run_resumes_only_on_its_own_machine_unless_forced() {
    let (_machine, scratch) = machine_and_scratch("resume-elsewhere");
    let begun = measured(&scratch, "begun", "--blocks 1");
    let n_lines = |dir: &Path| std::fs::read_to_string(dir.join("run.jsonl")).unwrap().lines().count();
    let elsewhere = altered(&scratch, &begun, "elsewhere", "cpu_model", &"Elbrus 8C".into());
    let resume = |dir: &Path, more: &str| on(&format!("run --wait --resume --blocks 1 {more} --out"), &[dir], "");

    let refused = resume(&elsewhere, "");
    assert_eq!((refused.status, refused.stderr.lines().count(), n_lines(&elsewhere)), (1, 1, 2), "{refused:?}");
    let begin = "punctual: cannot resume: this machine has changed since the run began: CPU model (Elbrus 8C and ";
    assert!(refused.stderr.starts_with(begin) && refused.stderr.ends_with("; --force resumes anyway\n"), "{refused:?}");

    let forced = resume(&elsewhere, "--force");
    assert_eq!((forced.status, n_lines(&elsewhere)), (0, 3), "{forced:?}");
    assert!(forced.stderr.contains("changed since the run began: CPU model (Elbrus 8C and "), "{forced:?}");
    let findings = on("show --format json", &[&elsewhere], "").json()["run"]["findings"].clone();
    let is_found = |finding: &serde_json::Value| finding["kind"] == "host_changed" && finding["fact"] == "CPU model";
    assert!(findings.as_array().unwrap().iter().any(is_found), "{findings}");

    // A complete run, and a run in guests, which do not depend on this machine.
    let whole = measured(&scratch, "whole", "");
    let finished = altered(&scratch, &whole, "finished", "cpu_model", &"Elbrus 8C".into());
    let ended = resume(&finished, "");
    assert_eq!((ended.status, n_lines(&finished)), (0, 7), "{ended:?}");
    let lab = altered(&scratch, &begun, "lab", "cpu_model", &"Elbrus 8C".into());
    let text = std::fs::read_to_string(lab.join("run.jsonl")).unwrap();
    let in_guests = text.replace("\"kernel\":\"running\"", "\"kernel\":\"/nowhere/vmlinuz\"");
    std::fs::write(lab.join("run.jsonl"), in_guests).unwrap();
    let gone_on = resume(&lab, "");
    assert!(gone_on.stderr.contains("/nowhere/vmlinuz: No such file or directory"), "{gone_on:?}");
    assert!(!gone_on.stderr.contains("is not what it was"), "{gone_on:?}");

    // The same machine resumes without --force; --force without --resume is an error.
    let same = resume(&begun, "");
    assert_eq!((same.status, n_lines(&begun)), (0, 3), "{same:?}");
    assert!(!same.stderr.contains("not as when"), "{same:?}");
    let alone = run(&mut command("run --force"));
    assert!(alone.status == 1 && alone.stderr.contains("--resume"), "{alone:?}");
}

#[test]
fn what_the_plan_sets_itself_does_not_keep_a_run_from_going_on() {
    let (_machine, scratch) = machine_and_scratch("resume-prepared");
    let file = scratch.file("proc/sys/kernel/timer_migration", "1\n");
    let plan = |prepare: &str| scratch.file("plan.toml", format!("{prepare}{PLAN}").replace("= 6", "= 3"));
    let run_here = |name: &str, more: &str, plan: Option<PathBuf>| {
        let mut command = command(&format!("run --wait --blocks 1 --cpus 0 {more} --out"));
        command.arg(scratch.path(name)).args(plan).env("PUNCTUAL_ROOT", scratch.dir());
        run(&mut command)
    };
    let resume = |name: &str| {
        let mut command = command("run --wait --resume --blocks 1 --out");
        run(command.arg(scratch.path(name)).env("PUNCTUAL_ROOT", scratch.dir()))
    };
    let begun =
        [run_here("bare", "", Some(plan(""))), run_here("set", "--prepare timer_migration=off", Some(plan("")))];
    assert!(begun.iter().all(|said| said.status == 0), "{begun:?}");
    std::fs::write(&file, "0\n").unwrap();
    let refused = resume("bare");
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stderr.contains("since the run began: timer migration (on and off); restore it"), "{refused:?}");
    resume("set").expect_success();
}
