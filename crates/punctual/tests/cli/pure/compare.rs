//! Comparisons of cells of one run and of separate runs.

use crate::session::play;
use punctual_analysis::testing::RunBuilder;

/// A run of 6 blocks, begun so many hours after another one, in which wake-ups of the second cell take half as long
/// again.
fn six_blocks(hours: u64, policies: [&str; 2]) -> RunBuilder {
    let mut run = RunBuilder::new();
    for policy in policies {
        run.cell("none", policy);
    }
    run.header.plan.repetitions = 6;
    run.header.started_unix_ms += hours * 3_600_000;
    for (block, cell) in (0..6).flat_map(|block| [(block, 0), (block, 1)]) {
        let longer = if policies[cell] == policies[0] { 2 } else { 3 };
        run.measure(block, cell, |cpu, cycle| {
            let usual = 20_000 + (cycle * 7_919 + u64::from(cpu) + u64::from(block) * 31) % 5_000;
            i64::try_from(usual * longer).unwrap()
        });
    }
    run
}

/// The same run twice, each cell measured twice in each block, with the blocks of both in turns.
fn in_turn(nth: u64) -> RunBuilder {
    let mut run = six_blocks(0, ["other", "other"]);
    for (entry, position) in run.entries.iter_mut().zip(0..) {
        let turn: u64 = position / 2 * 4 + position % 2 + 2 * nth;
        entry.record.started_unix_ms = run.header.started_unix_ms + 1_000 + 3_000 * turn;
        entry.record.started = punctual_model::MonoTime(1_000_000_000_000 + 3_000_000_000 * turn);
    }
    run
}

/// A run of these cells without measurements.
fn of_cells(cells: &[(&str, &str)]) -> RunBuilder {
    let mut run = RunBuilder::new();
    for (load, policy) in cells {
        run.cell(load, policy);
    }
    run
}

#[test]
fn cells_and_runs_are_compared_or_refused() {
    play(|scratch, _| {
        scratch.run("a", &six_blocks(0, ["other", "other:nice=5"]));
        scratch.run("b", &six_blocks(1, ["other", "other:nice=5"]));
        scratch.run("in-turn-a", &in_turn(0));
        scratch.run("in-turn-b", &in_turn(1));
        scratch.run("named", &of_cells(&[("none", "other"), ("hog=cmd:taskset -c 0,1 stress", "other")]));
        scratch.run("three", &of_cells(&[("none", "other"), ("none", "fifo:80"), ("messaging", "other")]));
    });
}
