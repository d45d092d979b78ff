//! `punctual check`: exit status and reports of runs against limits and older runs.

use crate::session::play;
use punctual_analysis::testing::RunBuilder;

/// A run of two cells in 6 blocks of 200 ms, `hours` after another one.
fn gate(hours: u64) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "other").cell("none", "other:nice=5");
    run.header.plan.repetitions = 6;
    run.header.started_unix_ms += hours * 3_600_000;
    for cell in &mut run.header.cells {
        (cell.cpus, cell.duration) = ("0".parse().unwrap(), "200ms".parse().unwrap());
    }
    for (block, cell) in (0..6).flat_map(|block| [(block, 0), (block, 1)]) {
        run.measure(block, cell, |_, cycle| 50_000 + i64::try_from(cycle * 7_919 % 1_000).unwrap());
    }
    run
}

#[test]
fn a_run_is_checked_against_limits_and_an_older_run() {
    play(|scratch, _| {
        scratch.run("old", &gate(0));
        scratch.run("new", &gate(1));
    });
}
