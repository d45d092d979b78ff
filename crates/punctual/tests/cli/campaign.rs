//! Whole campaigns (complete, killed and resumed, interrupted) and the plans of this repository.

use crate::program::{Start, comes_true, command, finish, machine, machine_and_scratch, run, running};
use model::{Entry, Header, LoadPart, Plan, Program, Tool};
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use sys::process;

const PLAN: &str = r#"
title = "Small"
repetitions = 3
duration = "200ms"
warm_up = "20ms"
seed = 7
[axes]
load = ["none", "messaging:groups=1"]
policy = ["other"]
period = ["1ms", "2ms"]
"#;

fn entries(dir: &Path) -> (Header, Vec<Entry>) {
    let text = std::fs::read_to_string(dir.join("run.jsonl")).unwrap();
    let mut lines = text.lines();
    let header = serde_json::from_str(lines.next().unwrap()).unwrap();
    (header, lines.filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[test]
fn a_plan_becomes_a_run_that_can_be_shown() {
    let (_machine, scratch) = machine_and_scratch("run");
    let (plan, dir) = (scratch.file("plan.toml", PLAN), scratch.path("out"));
    let said = run(command("run --wait --format json --out").arg(&dir).arg(&plan)).expect_success();
    let (header, entries) = entries(&dir);
    assert_eq!((header.cells.len(), entries.len(), header.seed), (4, 12, 7));
    let json = said.json();
    assert_eq!(json["cells"].as_array().unwrap().len(), 4);
    for cell in json["cells"].as_array().unwrap() {
        let summary = &cell["summary"];
        let due = 600 / (cell["cell"]["period_ns"].as_u64().unwrap() / 1_000_000);
        let cpus = header.cells[0].cpus.len() as u64;
        assert_eq!(summary["samples"].as_u64().unwrap() + summary["missed"].as_u64().unwrap(), due * cpus);
        assert!(summary["p50_ns"].as_i64() <= summary["max_ns"].as_i64());
    }
    let shown = run(command("show --format json").arg(&dir));
    assert_eq!(shown.json(), json, "show says what run said");
    let text = run(command("show").arg(&dir));
    assert!(text.stdout.contains("messaging:groups=1") && text.stdout.contains("Verdict: none"), "{}", text.stdout);
}

#[test]
fn a_requirement_decides_the_exit_status() {
    let _machine = machine();
    let measure = "measure --wait --duration 300ms --format json --require";
    assert_eq!(run(command(measure).arg("max=100s")).status, 0);
    assert_eq!(run(command(measure).arg("max=1ns")).status, 2);
    assert_eq!(run(command(measure).arg("max=100s,misses_per_hour=0.001")).status, 3);
}

#[test]
fn a_campaign_killed_anywhere_and_resumed_equals_an_uninterrupted_one() {
    let (_machine, scratch) = machine_and_scratch("killed");
    let (plan, dir) = (scratch.file("plan.toml", PLAN), scratch.path("out"));
    let mut campaign = command("run --wait --out");
    campaign.arg(&dir).arg(&plan).process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    for ms in [900, 400, 700] {
        let mut child = campaign.spawn().unwrap();
        assert!(comes_true(|| dir.join("run.jsonl").exists()));
        std::thread::sleep(Duration::from_millis(ms));
        process::signal_group(child.id(), libc::SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(comes_true(|| running().is_empty()), "{:?} left", running());
        campaign = command("run --wait --resume --out");
        campaign.arg(&dir).process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    }
    let said = run(command("run --wait --resume --format json --out").arg(&dir)).expect_success();
    let (header, entries) = entries(&dir);
    let made: BTreeSet<_> = entries.iter().map(|entry| entry.planned).collect();
    assert_eq!((entries.len(), made.len()), (12, 12), "every measurement, none twice");
    for block in 0..3 {
        let cells: BTreeSet<_> = made.iter().filter(|p| p.block == block).map(|p| p.cell_index).collect();
        assert_eq!(cells.len(), header.cells.len(), "every cell in block {block}");
    }
    for cell in said.json()["cells"].as_array().unwrap() {
        assert_eq!(cell["summary"]["blocks"], 3);
    }
}

#[test]
fn ctrl_c_ends_a_campaign_with_the_way_to_go_on() {
    let (_machine, scratch) = machine_and_scratch("interrupted");
    let (plan, dir) = (scratch.file("plan.toml", PLAN), scratch.path("out"));
    let mut campaign = command("run --wait --out");
    let child = campaign.arg(&dir).arg(&plan).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(comes_true(|| dir.join("run.jsonl").exists()));
    std::thread::sleep(Duration::from_millis(700));
    process::signal(child.id(), libc::SIGINT).unwrap();
    let said = finish(child);
    let last = said.last_line();
    assert_eq!(said.status, 130);
    let go_on = format!("continue with: punctual run --resume --out {}", dir.display());
    assert!(last.contains("interrupted after ") && last.ends_with(&go_on), "{said:?}");
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
}

#[test]
fn ctrl_c_ends_a_measurement_with_what_was_measured() {
    let _machine = machine();
    let mut measure = command("measure --wait --duration 60s --format json");
    let child = measure.start_piped();
    // Two processes, `measure` and its child, then a second of measurement.
    assert!(comes_true(|| running().len() >= 2));
    std::thread::sleep(Duration::from_millis(1500));
    process::signal(child.id(), libc::SIGINT).unwrap();
    let said = finish(child);
    let json = said.json();
    assert!(json["cells"][0]["summary"]["samples"].as_u64().unwrap() > 0);
    assert!(json["run"]["findings"].to_string().contains("interrupted"), "{}", json["run"]["findings"]);
    assert_eq!(said.status, 130);
}

#[test]
fn two_that_resume_the_same_run_make_nothing_twice() {
    let (_machine, scratch) = machine_and_scratch("two");
    let (plan, dir) = (scratch.file("plan.toml", PLAN), scratch.path("out"));
    let first = command("run --wait --out").arg(&dir).arg(&plan).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut first = first.unwrap();
    assert!(comes_true(|| dir.join("run.jsonl").exists()));
    let resume = || {
        command("run --wait --resume --format json --out")
            .arg(&dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    };
    let others = [resume().unwrap(), resume().unwrap()];
    assert!(first.wait().unwrap().success());
    for other in others {
        finish(other).expect_success();
    }
    assert_eq!(entries(&dir).1.len(), 12);
}

#[test]
fn nobody_reading_stderr_is_no_reason_to_stop() {
    let _machine = machine();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let said = command("measure --wait --duration 1500ms --format json").stderr(full()).output().unwrap();
    assert_eq!(said.status.code(), Some(0));
    let mistake = command("measure --duration foo").stderr(full()).output().unwrap();
    assert_eq!(mistake.status.code(), Some(1));
}

#[test]
fn a_cell_that_fails_is_left_out_and_tried_again_when_the_run_goes_on() {
    let (_machine, scratch) = machine_and_scratch("failed-cell");
    let go = scratch.path("go");
    let plan = format!(
        "repetitions = 2\nduration = \"300ms\"\nwarm_up = \"20ms\"\nload_must_hold = 1\n[require]\nmax = \"100s\"\n[axes]\n\
         load = [\"none\", \"cmd:[ -e {} ] && while :; do :; done\"]\npolicy = [\"other\"]\nperiod = [\"1ms\"]\n",
        go.display()
    );
    let (plan, dir) = (scratch.file("plan.toml", plan), scratch.path("out"));
    let said = run(command("run --wait --yes --format json --out").arg(&dir).arg(&plan));
    assert_eq!((said.status, entries(&dir).1.len()), (3, 2), "never passed without it: {said:?}");
    assert_eq!(said.stderr.matches("; retried at the end").count(), 2, "{said:?}");
    assert_eq!(said.stderr.matches("; skipped").count(), 2, "{said:?}");
    assert!(said.stderr.contains("2 measurements failed; try again with: punctual run --resume --out "), "{said:?}");
    let shown = run(command("show --format json").arg(&dir));
    let findings = shown.json()["run"]["findings"].clone();
    let failed = findings.as_array().unwrap().iter().find(|finding| finding["kind"] == "measurements_failed");
    assert_eq!(failed.unwrap()["measurements"], 2, "{findings}");

    std::fs::write(go, "").unwrap();
    let said = run(command("run --wait --yes --resume --format json --out").arg(&dir));
    assert_eq!((said.status, entries(&dir).1.len()), (0, 4), "{said:?}");
    assert!(!dir.join("failed.jsonl").exists());
}

/// Each plan parses, runs no foreign program and states its number of measurements.
#[test]
fn every_plan_is_what_it_and_the_readme_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let paths: Vec<_> = std::fs::read_dir(root.join("plans")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let plan = Plan::parse(&text).unwrap_or_else(|err| panic!("{name}: {err}"));
        assert!(readme.contains(&format!("](plans/{name})")), "{name} is not in README.md");
        let mut parts = plan.axes.load.iter().flat_map(|load| load.parts());
        // Only `ping` lets the host disturb another machine.
        let is_host = |program: &Program| plan.conditions.roles.host.is_some() && program.tool == Tool::Ping;
        let is_foreign = |part: &LoadPart| matches!(part, LoadPart::Program(program) if !is_host(program));
        assert!(!parts.any(is_foreign), "{name} runs a program of somebody else");
        let axes = &plan.axes;
        let ways = if axes.runtime.is_empty() { axes.task.len() } else { axes.runtime.len() };
        let cells = axes.kernel.len() * axes.load.len() * axes.policy.len() * axes.period.len() * ways;
        let measurements = cells as u64 * u64::from(plan.repetitions);
        let says = format!(" {measurements} measurements, about ");
        assert!(text.contains(&says) || !text.contains(" measurements, about "), "{name}: it is{says}...");
    }
}
