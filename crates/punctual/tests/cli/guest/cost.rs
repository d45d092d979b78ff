//! Costs of operations in guests: the same to the bit, kernels distinguished, asked for by a bisection.

use crate::guest::vm::{in_virtual_time, kernel, run_seeded};
use crate::program::{Scratch, entries, punctual, run};
use std::process::Stdio;

#[test]
fn vm_costs_in_the_lab_are_identical_and_distinguish_kernels() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("cost-lab");
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
        punctual_analysis::cost::cost_of(one, clock_ns).unwrap()
    };
    // A call without locks costs the same number of instructions; sleeping locks and wake-ups cost more.
    let more = |name| cost(true, name) / cost(false, name);
    assert!((cost(true, "syscall/null") - cost(false, "syscall/null")).abs() < 1.0);
    assert!(more("syscall/fstat") > 1.05 && more("ipc/pipe") > 1.2 && more("ipc/unix") > 1.2);
}

#[test]
fn vm_a_bisection_can_ask_for_the_cost_of_an_operation() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("cost-bisect");
    let kernel = format!("{} preempt=none", kernel.display());
    let step = |rest: &str| {
        let mut bisect = in_virtual_time(&scratch, "lab bisect-step --phases 1 --duration 50ms --kernel");
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
