//! Sleeps of all languages in guests.

use crate::guest::lab_sleep::{expect_the_same, installed, plan, slept};
use crate::guest::vm::kernel;
use crate::program::{machine_and_scratch, punctual};

#[test]
#[ignore = "field: each language in guests"]
fn vm_every_installed_language_sleeps_in_a_guest() {
    let Some(kernel) = kernel() else { return };
    let all = installed(&["c", "python3", "node", "go", "java"]);
    let (_machine, scratch) = machine_and_scratch("lab-sleep-all");
    let file = scratch.file("plan.toml", plan(&kernel, "clock=emulated", &all));
    let out = scratch.path("run");
    punctual(&format!("run {} --seed 1 --wait --out {}", file.display(), out.display())).expect_success();
    slept(&out, &all);
    expect_the_same(&scratch, &kernel, &installed(&["go"]));
}
