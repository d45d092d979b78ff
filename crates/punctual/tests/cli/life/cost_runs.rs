//! Cost cells in runs: interrupted, killed, compared, under a load, as a load.

use crate::places::{Places, go_on, names};
use crate::program::{
    Scratch, a_cpu, cell, command, inconclusive, machine, machine_and_scratch, punctual, record, run, running,
    start_cell,
};
use punctual_model::{Cell, Conditions, CostGroup, CostScope, Ended, Task};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::path::Path;

/// A cell of the suite on one CPU.
fn suite(scope: CostScope, load: &str, duration: &str) -> Cell {
    Cell {
        task: Task::Cost(scope),
        conditions: Conditions { warm_up: punctual_model::Span(0), ..Conditions::default() },
        ..cell("other", load, &a_cpu().to_string(), duration)
    }
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn an_interrupted_suite_keeps_what_it_has() {
    let (_machine, scratch, places) = (machine(), Scratch::new("cost-interrupted"), Places::new());
    let mut command = command("cell");
    places.act(command.env("TMPDIR", scratch.dir()), "stop:suite-turn@20");
    let mut cell = start_cell(command, &suite(CostScope::Total, "none", "40s"));
    let suite = places.stopped(&mut cell, "suite-turn@20");
    process::signal(cell.id(), libc::SIGINT).unwrap();
    assert!(comes_true(|| places.has("suite-stopped")), "{:?}", places.passed(None));
    go_on(suite);
    let record = record(cell);
    let cost = record.cost.unwrap();
    assert_eq!((record.ended, record.threads.len()), (Ended::Interrupted, 0));
    // Those of the turns before, one each.
    assert_eq!(cost.operations.len(), 19, "{cost:?}");
    assert!(cost.operations.iter().any(|one| one.name == "syscall/read"));
    assert!(
        cost.skipped.iter().any(|one| one.name == "sched/yield" && one.reason == punctual_workload::cost::NOT_REACHED)
    );
    assert!(comes_true(|| running().is_empty() && is_empty(scratch.dir())), "{:?}", running());
}

#[test]
fn a_suite_killed_at_any_place_leaves_no_process_and_recover_removes_its_files() {
    let (_machine, scratch, places) = (machine(), Scratch::new("cost-killed"), Places::new());
    let start = |action: &str| {
        let mut command = command("cell");
        places.act(command.env("TMPDIR", scratch.dir()), action);
        places.start_cell(command, &suite(CostScope::Group(CostGroup::Syscall), "none", "20ms"))
    };
    assert!(start("").wait().unwrap().success());
    let needed = ["cell-begun", "suite-directory-made", "suite-ready", "cell-armed", "suite-turn", "cell-measured"];
    for place in names(places.all(None, &needed)) {
        places.killed(&mut start(&format!("kill:{place}")), &place);
        assert!(comes_true(|| running().is_empty()), "killed at {place}: {:?} left", running());
        let said = run(command("recover --wait").env("TMPDIR", scratch.dir()));
        assert!(said.status == 0 && is_empty(scratch.dir()), "killed at {place}: {said:?}");
    }
}

#[test]
fn two_policies_are_compared_operation_by_operation() {
    let (_machine, scratch) = machine_and_scratch("cost-compared");
    let plan = "repetitions = 8\nduration = \"50ms\"\naa = true\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n\
                period = [\"1ms\"]\nmethod = [\"cost:signal\"]\n";
    let (plan, out) = (scratch.file("plan.toml", plan), scratch.path("run"));
    punctual(&format!("run {} --wait --out {}", plan.display(), out.display())).expect_success();
    let compared = punctual(&format!("compare {} --format json", out.display()));
    let json = compared.json();
    assert_eq!((json["blocks"].as_u64(), json["blocks_needed"].as_u64()), (Some(8), Some(7)));
    let operations = json["operations"].as_array().unwrap();
    assert_eq!(operations.len(), 3, "{json}");
    for one in operations {
        let [lower, upper] = [0, 1].map(|end| one["change"]["interval_percent"][end].as_f64().unwrap());
        let percent = one["change"]["percent"].as_f64().unwrap();
        assert!(lower <= percent && percent <= upper, "{one}");
        assert_eq!(one["is_different"], one["change"]["p"].as_f64().unwrap() < 0.05, "{one}");
    }
    // Chance finds a difference in 5 % of comparisons, so either answer may come, with its status. It is that of the
    // operations: a group that differs adds no false alarms.
    let is_different = operations.iter().any(|one| one["is_different"] == true);
    assert_eq!(compared.status, if is_different { 2 } else { 0 }, "{compared:?}");
    let text = punctual(&format!("compare {}", out.display()));
    assert!(text.stdout.contains("signal/fault") && text.stdout.contains("(Holm)"), "{text:?}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<h2>Cost of operations"), "the page has the table");
}

#[test]
fn the_suite_is_measured_under_a_load_and_is_one() {
    let _machine = machine();
    let scope = CostScope::Group(CostGroup::Syscall);
    let beside = record(start_cell(command("cell"), &suite(scope, "pipe", "300ms")));
    assert_eq!(beside.cost.unwrap().operations.len(), 10);
    assert_eq!(beside.loads.len(), 1);
    let under = record(start_cell(command("cell"), &cell("other", "cost", &a_cpu().to_string(), "3s")));
    let [load] = &under.loads[..] else { panic!("one load") };
    assert_eq!(load.operation, "batch");
    if !load.seconds.iter().any(|second| second.operations > Some(0)) {
        inconclusive("no batch in the measured time");
    }
    assert!(under.threads[0].is_consistent() && comes_true(|| running().is_empty()), "{:?} left", running());
}
