//! Cost cells in runs: interrupted, killed, compared, under a load, as a load, in the lab.

use crate::program::{
    Scratch, a_cpu, cell, comes_true, command, entries, kill_and_wait, machine, machine_and_scratch, punctual, record,
    run, run_seeded, running, start_cell,
};
use crate::vm::kernel;
use model::{Cell, Conditions, CostScope, Ended, Task};
use std::path::Path;
use std::process::{Child, Stdio};
use sys::process;

/// A cell of the suite on one CPU.
fn suite(scope: CostScope, load: &str, duration: &str) -> Cell {
    Cell {
        task: Task::Cost(scope),
        conditions: Conditions { warm_up: model::Span(0), ..Conditions::default() },
        ..cell("other", load, &a_cpu().to_string(), duration)
    }
}

/// Whether some descendant of `pid` is the shell that `process/shell` starts.
fn runs_a_shell(pid: u32) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).any(|child: u32| {
        let name = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        name.trim_end() == "sh" || runs_a_shell(child)
    })
}

fn start(scratch: &Scratch, cell: &Cell) -> Child {
    let mut command = command("cell");
    command.env("TMPDIR", scratch.dir());
    start_cell(command, cell)
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn an_interrupted_suite_keeps_what_it_has() {
    let (_machine, scratch) = machine_and_scratch("cost-interrupted");
    let cell = start(&scratch, &suite(CostScope::Total, "none", "40s"));
    // The groups before this one are recorded by now.
    assert!(comes_true(|| runs_a_shell(cell.id())), "the suite comes to its shells");
    process::signal(cell.id(), libc::SIGINT).unwrap();
    let record = record(cell);
    let cost = record.cost.unwrap();
    assert_eq!((record.ended, record.threads.len()), (Ended::Interrupted, 0));
    assert!(cost.operations.len() >= 14, "{cost:?}");
    assert!(cost.operations.iter().any(|one| one.name == "syscall/read"));
    assert!(cost.skipped.iter().any(|one| one.name == "sched/yield" && one.reason == workload::cost::NOT_REACHED));
    assert!(running().is_empty() && is_empty(scratch.dir()), "{:?}", running());
}

#[test]
fn a_killed_suite_leaves_no_process_and_recover_removes_its_files() {
    let (_machine, scratch) = machine_and_scratch("cost-killed");
    let mut cell = start(&scratch, &suite(CostScope::Total, "none", "40s"));
    assert!(comes_true(|| runs_a_shell(cell.id())), "the suite comes to its shells");
    kill_and_wait(&mut cell);
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
    let said = run(command("recover --wait").env("TMPDIR", scratch.dir()));
    assert!(said.status == 0 && is_empty(scratch.dir()), "{said:?}");
}

#[test]
fn two_policies_are_compared_operation_by_operation() {
    let (_machine, scratch) = machine_and_scratch("cost-compared");
    let plan = "repetitions = 8\nduration = \"200ms\"\naa = true\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n\
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
    // Chance finds a difference in 5 % of comparisons, so either answer may come, with its status.
    let is_different =
        operations.iter().chain(json["groups"].as_array().unwrap()).any(|one| one["is_different"] == true);
    assert_eq!(compared.status, if is_different { 2 } else { 0 }, "{compared:?}");
    let text = punctual(&format!("compare {}", out.display()));
    assert!(text.stdout.contains("signal/fault") && text.stdout.contains("(Holm)"), "{text:?}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<h2>Cost of operations"), "the page has the table");
}

#[test]
fn the_suite_is_measured_under_a_load_and_is_one() {
    let _machine = machine();
    let beside =
        record(start_cell(command("cell"), &suite(CostScope::Group(model::CostGroup::Syscall), "pipe", "300ms")));
    assert_eq!(beside.cost.unwrap().operations.len(), 10);
    assert!(beside.loads[0].failure.is_none(), "{:?}", beside.loads);
    let under = record(start_cell(command("cell"), &cell("other", "cost", &a_cpu().to_string(), "3s")));
    let [load] = &under.loads[..] else { panic!("one load") };
    assert_eq!((load.operation.as_str(), load.failure.as_ref()), ("batch", None));
    assert!(load.seconds.iter().any(|second| second.operations > Some(0)), "{load:?}");
    assert!(under.threads[0].is_consistent() && comes_true(|| running().is_empty()), "{:?} left", running());
}

#[test]
#[ignore = "long: boots guests"]
fn vm_costs_in_the_lab_are_identical_and_distinguish_kernels() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("cost-lab");
    let kernel = format!("{} preempt=none", kernel.display());
    let fetched = punctual("lab fetch debian:6.1-rt");
    let other = if fetched.status == 0 {
        "debian:6.1-rt".to_owned()
    } else {
        eprintln!("skipped: PREEMPT_RT against none: {}", fetched.stderr.trim_end());
        kernel.replace("none", "full")
    };
    let plan = format!(
        "repetitions = 1\nduration = \"200ms\"\n[axes]\nkernel = [\"{kernel}\", \"{other}\"]\n\
         load = [\"none\"]\npolicy = [\"other\"]\nperiod = [\"1ms\"]\nmethod = [\"cost:syscall\", \"cost:ipc\"]\n"
    );
    let plan = scratch.file("plan.toml", plan);
    let runs = ["first", "second"].map(|name| {
        let out = scratch.path(name);
        run_seeded(plan.to_str().unwrap(), &out);
        entries(&out)
    });
    assert_eq!(runs[0].len(), 4);
    assert_eq!(runs[0], runs[1], "instructions do not depend on what else the machine does");
    if fetched.status != 0 {
        return;
    }
    let cost = |is_rt: bool, name: &str| {
        let of_model = runs[0].iter().filter(|entry| entry.record.cell.kernel.to_string().contains("-rt") == is_rt);
        let costs = of_model.filter_map(|entry| entry.record.cost.as_ref());
        let found = costs.flat_map(|cost| cost.operations.iter().map(|one| (one, cost.clock_ns)));
        let (one, clock_ns) = found.clone().find(|(one, _)| one.name == name).unwrap();
        analysis::cost::cost_of(one, clock_ns).unwrap()
    };
    // A call without locks costs the same number of instructions; sleeping locks and wake-ups cost more.
    let more = |name| cost(true, name) / cost(false, name);
    assert!((cost(true, "syscall/null") - cost(false, "syscall/null")).abs() < 1.0);
    assert!(more("syscall/fstat") > 1.05 && more("ipc/pipe") > 1.2 && more("ipc/unix") > 1.2);
}

#[test]
#[ignore = "long: boots guests"]
fn vm_a_bisection_can_ask_for_the_cost_of_an_operation() {
    let Some(kernel) = kernel() else { return };
    let _machine = machine();
    let step = |rest: &str| {
        let mut bisect = command("lab bisect-step --phases 1 --duration 50ms --kernel");
        run(bisect.arg(&kernel).args(rest.split_whitespace()).stdin(Stdio::null()))
    };
    let good = step("--cost syscall/null --max 2us");
    assert!(good.status == 0 && good.stdout.starts_with("good: median cost "), "{good:?}");
    assert!(good.stdout.contains("syscall/null, none, other; instructions, not time"), "{good:?}");
    let bad = step("--cost syscall/null --max 10ns");
    assert!(bad.status == 1 && bad.stdout.contains(" is above 10ns"), "{bad:?}");
    let missing = step("--cost process/shell --max 1ms");
    assert!(missing.status == 125 && missing.stdout.contains("no /bin/sh"), "{missing:?}");
    let several = step("--cost syscall --max 1ms");
    assert!(
        several.status == 128 && several.stderr.contains("expected one operation, like syscall/read"),
        "{several:?}"
    );
}
