//! Runs of other conditions or of another machine: differences are shown, and incomparable runs are refused.

use crate::life::comparability::altered;
use crate::session::play;
use analysis::testing::RunBuilder;

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
