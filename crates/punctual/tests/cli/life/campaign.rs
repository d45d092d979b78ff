//! Whole campaigns (complete, killed and resumed, interrupted) and the plans of this repository.

use crate::places::{Places, go_on, names};
use crate::program::{Start, a_cpu, command, finish, inconclusive, machine, machine_and_scratch, run, running};
use punctual_model::{Entry, Header, LoadPart, Plan, Program, Tool};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

const PLAN: &str = r#"
title = "Small"
repetitions = 3
duration = "60ms"
warm_up = "10ms"
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
        let period_ns = cell["cell"]["period_ns"].as_u64().unwrap();
        let of_cell = entries.iter().filter(|entry| entry.record.cell.period.span().ns() == period_ns);
        let of_cell = of_cell.filter(|entry| entry.record.cell.load.to_string() == cell["cell"]["load"]);
        let threads: Vec<_> = of_cell.flat_map(|entry| &entry.record.threads).collect();
        let sum = |of: fn(&punctual_model::ThreadRecord) -> u64| threads.iter().map(|thread| of(thread)).sum::<u64>();
        assert!(threads.iter().all(|thread| thread.is_consistent()), "{threads:?}");
        let cpus = header.cells[0].cpus.len() as u64;
        assert_eq!(sum(|thread| thread.cycles_due), 180_000_000 / period_ns * cpus);
        assert_eq!(summary["samples"], sum(|thread| thread.recorded));
        assert_eq!(summary["missed"], sum(|thread| thread.missed));
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
    let measure = format!("measure --wait --no-keep --cpus {} --duration 50ms --format json --require", a_cpu());
    for (require, kind, status) in
        [("max=1000h", "pass", 0), ("max=1ns", "fail", 2), ("max=1000h,misses_per_hour=0.001", "inconclusive", 3)]
    {
        let said = run(command(&measure).arg(require));
        let json = said.json();
        let found = json["verdict"]["kind"].as_str().unwrap();
        let statuses = [("pass", 0), ("fail", 2), ("inconclusive", 3)];
        assert!(statuses.contains(&(found, said.status)), "{require}: {said:?}");
        let summary = &json["cells"][0]["summary"];
        if summary["samples"] == 0 || summary["missed"] != 0 {
            inconclusive(&format!("the machine stood still: {}", summary["ledger"]));
        } else {
            assert_eq!((found, said.status), (kind, status), "{require}: {json}");
        }
    }
}

/// A plan of two cells, three times.
const SMALLER: &str = r#"
repetitions = 3
duration = "20ms"
warm_up = "0s"
seed = 7
[axes]
load = ["none"]
policy = ["other"]
period = ["1ms", "2ms"]
"#;

#[test]
fn a_campaign_killed_at_any_place_and_resumed_equals_an_uninterrupted_one() {
    let (_machine, scratch) = machine_and_scratch("killed");
    let (plan, places) = (scratch.file("plan.toml", SMALLER), Places::new());
    let begin = |dir: &Path, action: &str| {
        let mut campaign = command("run --wait --out");
        places.act(campaign.arg(dir).arg(&plan), action).start_silent()
    };
    let mut whole = begin(&scratch.path("whole"), "");
    let campaign = whole.id();
    assert!(whole.wait().unwrap().success());
    let needed = [
        "lock-taken", "run-directory-made", "header-half", "header-unnamed", "run-made", "cell-started", "cell-given",
        "cell-ended", "record-half", "record-kept", "campaign-made",
    ];
    let all = names(places.all(Some(campaign), &needed));
    let dir = scratch.path("out");
    // Until the run has its name it begins again; then it is resumed. The last place comes when everything is measured.
    for place in &all {
        let action = format!("kill:{place}");
        let mut child = if dir.join("run.jsonl").exists() {
            let mut campaign = command("run --wait --resume --out");
            places.act(campaign.arg(&dir), &action).start_silent()
        } else {
            begin(&dir, &action)
        };
        places.killed(&mut child, place);
        assert!(comes_true(|| running().is_empty()), "killed at {place}: {:?} left", running());
    }
    let said = run(command("run --wait --resume --format json --out").arg(&dir)).expect_success();
    let (header, entries) = entries(&dir);
    let made: BTreeSet<_> = entries.iter().map(|entry| entry.planned).collect();
    assert_eq!((entries.len(), made.len()), (6, 6), "every measurement, none twice");
    for block in 0..3 {
        let cells: BTreeSet<_> = made.iter().filter(|p| p.block == block).map(|p| p.cell_index).collect();
        assert_eq!(cells.len(), header.cells.len(), "every cell in block {block}");
    }
    for cell in said.json()["cells"].as_array().unwrap() {
        assert_eq!(cell["summary"]["blocks"], 3);
    }
}

#[test]
fn a_full_disk_costs_one_measurement() {
    let (_machine, scratch) = machine_and_scratch("full");
    let (plan, dir, places) = (scratch.file("plan.toml", SMALLER), scratch.path("out"), Places::new());
    let mut campaign = command("run --wait --out");
    let full = run(places.act(campaign.arg(&dir).arg(&plan), "full:record-half@3"));
    let reason = format!("cannot write {}: No space left on device (os error 28)", dir.join("run.jsonl").display());
    assert!(full.status == 1 && full.last_line().contains(&reason), "{full:?}");
    assert_eq!(entries(&dir).1.len(), 2, "{full:?}");
    run(command("run --wait --resume --out").arg(&dir)).expect_success();
    assert_eq!(entries(&dir).1.len(), 6);
    let other = scratch.path("other");
    let mut campaign = command("run --wait --out");
    let full = run(places.act(campaign.arg(&other).arg(&plan), "full:header-half"));
    assert_eq!((full.status, other.join("run.jsonl").exists()), (1, false), "{full:?}");
}

#[test]
fn a_record_without_a_reader_is_an_error() {
    let (_machine, places) = (machine(), Places::new());
    let mut measure = command("measure --wait --no-keep --duration 20ms");
    let lost = run(places.act(&mut measure, "lost:cell-half-said"));
    let reason = "cannot write the record to stdout: Broken pipe (os error 32)";
    assert!(lost.status == 1 && lost.last_line().ends_with(reason), "{lost:?}");
    assert_eq!(places.acted("lost:cell-half-said").len(), 1);
}

#[test]
fn ctrl_c_ends_a_campaign_with_the_way_to_go_on() {
    let (_machine, scratch) = machine_and_scratch("interrupted");
    let (plan, dir, places) = (scratch.file("plan.toml", PLAN), scratch.path("out"), Places::new());
    let mut campaign = command("run --wait --out");
    let mut child = places.act(campaign.arg(&dir).arg(&plan), "stop:record-kept@2").start_piped();
    let stopped = places.stopped(&mut child, "record-kept@2");
    process::signal(child.id(), libc::SIGINT).unwrap();
    go_on(stopped);
    let said = finish(child);
    let last = said.last_line();
    assert_eq!(said.status, 130);
    let go_on = format!("continue with: punctual run --resume --out {}", dir.display());
    assert!(last.contains("interrupted after 2 of 12 measurements") && last.ends_with(&go_on), "{said:?}");
    assert!(said.stdout.contains("incomplete run: 2 of 12"), "the numbers so far: {said:?}");
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
}

#[test]
fn ctrl_c_ends_a_measurement_with_what_was_measured() {
    let (_machine, places) = (machine(), Places::new());
    let mut measure = command("measure --wait --no-keep --duration 10min --format json");
    // A second after the first due time.
    let mut child = places.act(&mut measure, "stop:cell-looked@2").start_piped();
    let cell = places.stopped(&mut child, "cell-looked@2");
    process::signal(child.id(), libc::SIGINT).unwrap();
    go_on(cell);
    let said = finish(child);
    let json = said.json();
    let summary = &json["cells"][0]["summary"];
    assert!(summary["samples"].as_u64().unwrap() + summary["missed"].as_u64().unwrap() > 0, "{summary}");
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
    let said = command("measure --wait --no-keep --duration 50ms --format json").stderr(full()).output().unwrap();
    assert_eq!(said.status.code(), Some(0));
    let mistake = command("measure --duration foo").stderr(full()).output().unwrap();
    assert_eq!(mistake.status.code(), Some(1));
}

#[test]
fn a_cell_that_fails_is_left_out_and_tried_again_when_the_run_goes_on() {
    let (_machine, scratch) = machine_and_scratch("failed-cell");
    // A load whose directory does not exist.
    let go = scratch.path("go");
    let plan = format!(
        "repetitions = 2\nduration = \"50ms\"\nwarm_up = \"0s\"\n[require]\nmax = \"1000h\"\n[axes]\n\
         load = [\"none\", \"files:{}\"]\npolicy = [\"other\"]\nperiod = [\"1ms\"]\n",
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

    std::fs::create_dir(go).unwrap();
    let said = run(command("run --wait --yes --resume --format json --out").arg(&dir));
    assert_eq!(entries(&dir).1.len(), 4, "{said:?}");
    match said.json()["verdict"]["kind"].as_str().unwrap() {
        "pass" => assert_eq!(said.status, 0),
        _ => inconclusive("a cell has no samples, or was starved"),
    }
    assert!(!dir.join("failed.jsonl").exists());
}

/// Each plan parses, runs no foreign program and states its number of measurements.
#[test]
fn every_plan_is_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let paths: Vec<_> = std::fs::read_dir(root.join("plans")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let plan = Plan::parse(&text).unwrap_or_else(|err| panic!("{name}: {err}"));
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
