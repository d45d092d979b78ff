//! Costs of synthetic batches, and the rate of false differences between two equal configurations.

use super::*;
use crate::comparison::{Arm, Question, Refusal};
use crate::summary::cost::summary;
use crate::summary::trade_offs::trade_offs;
use crate::testing::RunBuilder;
use punctual_model::{
    CostOperation, CostRecord, CostScope, CpuSet, OperationRecord, Policy, SkippedOperation, SplitMix64, Task,
};

/// A run of two cost cells in alternating order. `ns(cell, block, operation)` returns the cost of each operation.
fn run(blocks: u32, scope: CostScope, ns: impl Fn(usize, u32, usize) -> f64) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "other").cell("none", "fifo:80");
    for cell in &mut run.header.cells {
        (cell.task, cell.lock_memory, cell.cpus) = (Task::Cost(scope), false, CpuSet::from_iter([0]));
    }
    for block in 0..blocks {
        // Alternating order.
        for cell in [0, 1].map(|cell| (cell + block as usize) % 2) {
            run.measure(block, cell, |_, _| 0);
            let record = &mut run.entries.last_mut().unwrap().record;
            record.threads.clear();
            let operation = |(place, operation): (usize, &'static CostOperation)| OperationRecord {
                all: None,
                name: operation.name.to_owned(),
                per_batch: 100,
                batches_ns: (0..5)
                    .map(|n| crate::stats::special::whole(100.0 * ns(cell, block, place)) + 20 + n)
                    .collect(),
            };
            record.cost = Some(CostRecord {
                policy: Policy::OTHER,
                cpus: CpuSet::from_iter([0]),
                cpu_dma_latency_us: Some(0),
                clock_ns: 20,
                operations: punctual_model::COST_OPERATIONS.iter().enumerate().map(operation).collect(),
                skipped: Vec::new(),
            });
        }
    }
    run
}

fn compared(run: &RunBuilder) -> CostComparison {
    let of = |cell| run.entries.iter().filter(|entry| entry.planned.cell_index == cell).collect();
    let [a, b] = [0, 1].map(|cell| Arm { name: ["a", "b"][cell].to_owned(), entries: of(cell) });
    compare_costs(&a, &b, &Question { asked: &["policy"], ..Question::default() }).unwrap()
}

#[test]
fn the_clock_is_subtracted_and_the_batch_divided() {
    let run = run(1, CostScope::All, |_, _, place| if place == 1 { 300.0 } else { 50.0 });
    let summary = summary(run.entries.iter().map(|entry| &entry.record)).unwrap();
    let read = summary.operations.iter().find(|one| one.name == "syscall/read").unwrap();
    assert_eq!((summary.clock_ns, read.per_batch, read.batches), (20, 100, 10));
    // Batches of 30 020 to 30 024 ns.
    assert!((read.median_ns - 300.02).abs() < 1e-9 && (read.worst_ns - 300.04).abs() < 1e-9, "{read:?}");
    assert!(read.mb_per_s.is_none() && summary.total_ns.is_none());
    let blocks = summary.operations.iter().find(|one| one.name == "ipc/pipe_bandwidth").unwrap();
    assert!((blocks.mb_per_s.unwrap() - 65_536.0 / 50.02 * 1e3).abs() < 1.0, "{blocks:?}");
    let group = &summary.groups[0];
    assert_eq!((group.group.as_str(), group.operations), ("syscall", 10));
    assert!((group.geometric_mean_ns - 50.02 * 6.0_f64.powf(0.1)).abs() < 0.1, "{group:?}");
}

#[test]
fn the_fixed_amount_of_work_is_the_sum_of_all_or_nothing() {
    let mut run = run(3, CostScope::Total, |_, _, _| 50.0);
    let totals = |run: &RunBuilder| total_of(&run.entries[0].record);
    // 49 operations of 5 batches of 5020 to 5024 ns.
    assert_eq!(totals(&run), Some(49.0 * (5.0 * 5020.0 + 10.0)));
    assert!(compared(&run).total.is_some());
    let skipped = SkippedOperation { name: "process/shell".to_owned(), reason: "no /bin/sh".to_owned() };
    run.entries[0].record.cost.as_mut().unwrap().skipped.push(skipped);
    assert_eq!(totals(&run), None, "less work is not the same work");
}

#[test]
fn what_costs_more_is_found_and_named() {
    let mut random = SplitMix64::new(4);
    let noise: Vec<f64> = (0..24).map(|_| random.below(1000) as f64 / 1e5).collect();
    let run = run(12, CostScope::All, |cell, block, place| {
        let noise = noise[2 * block as usize + cell];
        1000.0 * (1.0 + noise) * if cell == 1 && place < 10 { 1.1 } else { 1.0 }
    });
    let comparison = compared(&run);
    let different: Vec<_> = comparison.operations.iter().filter(|one| one.is_different).map(|one| &one.name).collect();
    assert_eq!(different.len(), 10, "{different:?}");
    assert!(different.iter().all(|name| name.starts_with("syscall/")));
    let read = &comparison.operations[1].change;
    let (lower, upper) = read.interval_percent.unwrap();
    assert!(lower < 10.0 && 10.0 < upper && upper - lower < 1.5 && (read.percent - 10.0).abs() < 0.6, "{read}");
    assert!(comparison.groups[0].is_different && comparison.groups[1..].iter().all(|group| !group.is_different));
    assert!(comparison.sentence().starts_with("DIFFERENT: 10 of 49 operations (12 blocks; "));
    assert_eq!((comparison.exit_status(), comparison.blocks_needed), (2, 11));
}

#[test]
fn too_few_blocks_are_undecided_and_not_the_same() {
    let comparison = compared(&run(10, CostScope::All, |cell, _, _| 1000.0 + 500.0 * cell as f64));
    assert_eq!((comparison.blocks_needed, comparison.exit_status()), (11, 3));
    assert!(comparison.groups.iter().all(|group| group.is_different), "groups need fewer");
    assert!(comparison.operations.iter().all(|one| !one.is_different));
    assert!(comparison.sentence().contains("11 are needed to show that one of 49 operations differs"));
    let few = compared(&run(3, CostScope::All, |cell, _, _| 1000.0 + 500.0 * cell as f64));
    assert_eq!((few.exit_status(), few.refused.clone()), (3, Some(Refusal::FewBlocks { blocks: 3 })));
    assert!(few.operations[0].change.interval_percent.is_none());
}

#[test]
fn equal_configurations_are_seldom_said_to_differ() {
    let mut random = SplitMix64::new(11);
    let mut wrong = 0;
    for _ in 0..200 {
        // Effects of each block, each measurement and each operation.
        let mut draw = |n: usize| (0..n).map(|_| random.below(1000) as f64 / 1e4).collect::<Vec<f64>>();
        let (of_block, of_cell, of_one) = (draw(12), draw(24), draw(24 * 49));
        let run = run(12, CostScope::All, |cell, block, place| {
            let cell = 2 * block as usize + cell;
            1000.0 * (1.0 + of_block[block as usize] + 0.2 * of_cell[cell] + of_one[49 * cell + place])
        });
        wrong += u32::from(compared(&run).operations.iter().any(|one| one.is_different));
    }
    // At most 5 %, so 10 of 200; more than 19 have a probability below 1 in 200.
    assert!(wrong <= 19, "{wrong} of 200");
}

#[test]
fn a_configuration_has_a_latency_and_the_throughput_of_ordinary_work() {
    let mut run = run(1, CostScope::All, |cell, _, _| if cell == 1 { 500.0 } else { 400.0 });
    // The second costs are of another kernel. Both kernels occur again as cells that wait, and one cell has a load
    // without costs.
    run.header.cells[1].kernel = "debian:6.1-rt clock=kvm".parse().unwrap();
    run.header.cells[0].kernel = "debian:6.1 clock=kvm".parse().unwrap();
    run.header.cells[1].policy = Policy::OTHER;
    run.cell("none", "fifo:80").cell("none", "fifo:80").cell("messaging", "fifo:80").cell("none", "fifo:80");
    for (cell, of) in [(2, 0), (3, 1), (4, 1)] {
        run.header.cells[cell].kernel = run.header.cells[of].kernel.clone();
    }
    for cell in 2..6 {
        run.measure(0, cell, |_, _| 1_000 * i64::try_from(cell).unwrap());
    }
    let summary = crate::summarise(&run.header, &run.entries);
    let cells: Vec<_> = summary.cells.iter().map(|cell| (cell.name.clone(), cell)).collect();
    let found = trade_offs(&cells);
    let points: Vec<_> = found.iter().map(|point| (point.worst_ns, point.throughput_percent.round())).collect();
    assert_eq!(points, [(2_000, 100.0), (3_000, 80.0), (4_000, 80.0)], "of the last cell's kernel there are no costs");
    assert!(found.iter().all(|point| point.clock.is_some() && !point.at_least));
}
