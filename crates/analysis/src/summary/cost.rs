//! Costs of operations: the distribution of each over its batches, and groups of them.

use punctual_model::{
    AllBatches, CostOperation, CostRecord, CostScope, OperationRecord, Record, SkippedOperation, Task,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The pooled blocks of a cost cell, or of a load that timed its operations.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CostSummary {
    /// Measured time to read the clock, ns, which is subtracted from every batch: the largest of all blocks.
    pub clock_ns: u64,
    /// In the order of the suite.
    pub operations: Vec<OperationCost>,
    /// Groups of operations.
    pub groups: Vec<GroupCost>,
    /// Time, ns, of the fixed amount of work, the median over the blocks; `None` unless all of it was measured.
    pub total_ns: Option<f64>,
    /// Operations not measured in any block.
    pub skipped: Vec<SkippedOperation>,
}

/// The cost of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OperationCost {
    /// Group and name: `syscall/read`.
    pub name: String,
    /// Meaning of one operation.
    pub unit: String,
    /// Batches of all blocks.
    pub batches: u64,
    /// Operations in a batch: the smallest number of all blocks.
    pub per_batch: u64,
    /// Time of one operation, ns: the median batch divided by its operations, and the median of those over the blocks.
    pub median_ns: f64,
    /// Time of one operation, ns: the time of all batches divided by all operations in them, over all blocks. It
    /// includes whatever interrupted them, in its share of the time.
    pub mean_ns: f64,
    /// Time of one operation in the batch that 99 % do not exceed, over all blocks, ns.
    pub p99_ns: f64,
    /// Time of one operation in the longest batch, ns.
    pub worst_ns: f64,
    /// Throughput by the median, million bytes a second; `None` for operations that move no bytes.
    pub mb_per_s: Option<f64>,
}

/// The cost of one group of operations.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GroupCost {
    /// The group.
    pub group: String,
    /// Number of its measured operations.
    pub operations: u64,
    /// Geometric mean of their medians, ns: only its ratios are meaningful.
    pub geometric_mean_ns: f64,
}

/// Change of the costs of the operations of a load, relative to a cell of method `cost`.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoadCostChange {
    /// Name of the cell of method `cost`.
    pub against: String,
    /// Operations that both have: all of that cell.
    pub operations: u64,
    /// Change of the geometric mean of their medians, percent: what an operation costs between interruptions.
    pub medians_percent: f64,
    /// Change of the geometric mean of their means, percent: with the time of interrupts, of the measured thread and of
    /// other parts of the load.
    pub means_percent: f64,
}

/// Time of one operation in a batch, ns, without that of the clock.
fn each(batch_ns: u64, per_batch: u64, clock_ns: u64) -> f64 {
    batch_ns.saturating_sub(clock_ns) as f64 / per_batch.max(1) as f64
}

/// Quantile of ascending values: the smallest that `share` of them do not exceed.
fn at(ascending: &[f64], share: f64) -> Option<f64> {
    let rank = crate::stats::special::whole((ascending.len() as f64 * share).ceil()).max(1);
    usize::try_from(rank - 1).ok().and_then(|index| ascending.get(index)).copied()
}

/// The median.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(0.5 * (values.get(last / 2)? + values.get(values.len() / 2)?))
}

/// The geometric mean; `None` without values, or if one is 0.
pub(crate) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let is_known = !values.is_empty() && values.iter().all(|value| *value > 0.0);
    is_known.then(|| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// Geometric mean of the costs of the second relative to the first. `None` unless the second has every operation of the
/// first: where some had no turn, a mean would be of other work.
pub fn ratio(first: &CostSummary, second: &CostSummary, of: fn(&OperationCost) -> f64) -> Option<f64> {
    let ratios: Option<Vec<f64>> = first
        .operations
        .iter()
        .map(|one| {
            let other = second.operations.iter().find(|other| other.name == one.name)?;
            Some(of(other) / of(one))
        })
        .collect();
    geometric_mean(&ratios?).filter(|ratio| ratio.is_finite())
}

/// The cost of an operation in one record: the median of its batches, ns.
pub fn cost_of(operation: &OperationRecord, clock_ns: u64) -> Option<f64> {
    median(operation.batches_ns.iter().map(|ns| each(*ns, operation.per_batch, clock_ns)).collect())
}

/// Costs of the operations of a record's load, if it has timed them.
pub(crate) fn of_load(record: &Record) -> Option<&CostRecord> {
    record.loads.iter().find_map(|load| load.cost.as_deref())
}

/// Summarizes the records of one cell; `None` if none of them is of the cost suite.
pub(crate) fn summary<'a>(records: impl Iterator<Item = &'a Record> + Clone) -> Option<CostSummary> {
    let costs = pooled(records.clone().filter_map(|record| record.cost.as_ref()))?;
    let is_total = records.clone().any(|record| record.cell.task == Task::Cost(CostScope::Total));
    let total = |record: &Record| total_of(record).filter(|_| is_total);
    Some(CostSummary { total_ns: median(records.filter_map(total).collect()), ..costs })
}

/// Summarizes the costs of the operations of a load; `None` unless it has timed them.
pub(crate) fn summary_of_load<'a>(records: impl Iterator<Item = &'a Record> + Clone) -> Option<CostSummary> {
    pooled(records.filter_map(of_load))
}

fn pooled<'a>(costs: impl Iterator<Item = &'a CostRecord> + Clone) -> Option<CostSummary> {
    let clock_ns = costs.clone().map(|cost| cost.clock_ns).max()?;
    let mut by_name: BTreeMap<usize, Vec<(u64, &OperationRecord)>> = BTreeMap::new();
    let mut skipped: Vec<SkippedOperation> = Vec::new();
    for cost in costs {
        for operation in &cost.operations {
            let place = punctual_model::COST_OPERATIONS.iter().position(|known| known.name == operation.name);
            by_name.entry(place.unwrap_or(usize::MAX)).or_default().push((cost.clock_ns, operation));
        }
        for one in &cost.skipped {
            if !skipped.contains(one) {
                skipped.push(one.clone());
            }
        }
    }
    let operations: Vec<OperationCost> = by_name.values().filter_map(|blocks| operation_cost(blocks)).collect();
    // An operation whose turn came in some of the blocks only is measured.
    skipped.retain(|one| operations.iter().all(|measured| measured.name != one.name));
    Some(CostSummary { clock_ns, groups: groups(&operations), operations, total_ns: None, skipped })
}

/// Time of the fixed amount of work, ns; `None` if a part of it was not carried out, or the amount was not fixed.
pub fn total_of(record: &Record) -> Option<f64> {
    let cost = record.cost.as_ref()?;
    let is_whole = record.cell.task == Task::Cost(CostScope::Total) && cost.skipped.is_empty();
    is_whole.then(|| cost.operations.iter().flat_map(|operation| &operation.batches_ns).map(|ns| *ns as f64).sum())
}

fn operation_cost(blocks: &[(u64, &OperationRecord)]) -> Option<OperationCost> {
    let (_, first) = blocks.first()?;
    let known = CostOperation::named(&first.name);
    let median_ns = median(blocks.iter().filter_map(|(clock_ns, operation)| cost_of(operation, *clock_ns)).collect())?;
    let mut sample: Vec<f64> = Vec::new();
    let (mut batches, mut operations, mut total_ns, mut worst_ns) = (0, 0.0, 0.0, 0.0_f64);
    for (clock_ns, operation) in blocks {
        sample.extend(operation.batches_ns.iter().map(|ns| each(*ns, operation.per_batch, *clock_ns)));
        let all = all_batches(operation);
        batches += all.batches;
        operations += all.batches as f64 * operation.per_batch.max(1) as f64;
        total_ns += all.total_ns.saturating_sub(all.batches.saturating_mul(*clock_ns)) as f64;
        worst_ns = worst_ns.max(each(all.worst_ns, operation.per_batch, *clock_ns));
    }
    sample.sort_by(f64::total_cmp);
    // One byte a nanosecond is 1 000 million bytes a second.
    let mb_per_s = known.and_then(|known| known.bytes).filter(|_| median_ns > 0.0);
    Some(OperationCost {
        name: first.name.clone(),
        unit: known.map_or_else(|| "operation".to_owned(), |known| known.unit.to_owned()),
        batches,
        per_batch: blocks.iter().map(|(_, operation)| operation.per_batch).min()?,
        median_ns,
        mean_ns: total_ns / operations,
        p99_ns: at(&sample, 0.99)?,
        worst_ns,
        mb_per_s: mb_per_s.map(|bytes| bytes as f64 / median_ns * 1e3),
    })
}

/// Sums over all batches of an operation, also where they are kept one by one.
fn all_batches(operation: &OperationRecord) -> AllBatches {
    let kept = &operation.batches_ns;
    operation.all.unwrap_or_else(|| AllBatches {
        batches: kept.len() as u64,
        total_ns: kept.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns)),
        worst_ns: kept.iter().copied().max().unwrap_or(0),
    })
}

/// The name of an operation's group.
pub(crate) fn group_of(name: &str) -> &str {
    name.split_once('/').map_or(name, |(group, _)| group)
}

fn groups(operations: &[OperationCost]) -> Vec<GroupCost> {
    let mut groups: Vec<GroupCost> = Vec::new();
    for of_group in operations.chunk_by(|a, b| group_of(&a.name) == group_of(&b.name)) {
        let medians: Vec<f64> = of_group.iter().map(|operation| operation.median_ns).collect();
        let mean = of_group.first().zip(geometric_mean(&medians));
        groups.extend(mean.map(|(first, geometric_mean_ns)| GroupCost {
            group: group_of(&first.name).to_owned(),
            operations: medians.len() as u64,
            geometric_mean_ns,
        }));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{CpuSet, Policy};

    fn cost(operations: &[(&str, &[u64], Option<AllBatches>)]) -> CostRecord {
        let operation = |(name, ns, all): &(&str, &[u64], Option<AllBatches>)| OperationRecord {
            name: (*name).to_owned(),
            per_batch: 10,
            batches_ns: ns.to_vec(),
            all: *all,
        };
        CostRecord {
            policy: Policy::OTHER,
            cpus: CpuSet::default(),
            cpu_dma_latency_us: None,
            clock_ns: 10,
            operations: operations.iter().map(operation).collect(),
            skipped: Vec::new(),
        }
    }

    #[test]
    fn means_and_the_longest_are_of_all_batches_and_not_of_the_sample() {
        let all = Some(AllBatches { batches: 4, total_ns: 4 * 10 + 4_000, worst_ns: 2_510 });
        for (all, batches, mean_ns, worst_ns) in [(None, 2, 60.0, 70.0), (all, 4, 100.0, 250.0)] {
            let summary = pooled(std::iter::once(&cost(&[("syscall/read", &[510, 710], all)]))).unwrap();
            let one = &summary.operations[0];
            assert_eq!((one.batches, one.mean_ns, one.worst_ns, one.median_ns), (batches, mean_ns, worst_ns, 60.0));
        }
    }

    #[test]
    fn costs_are_compared_where_the_second_has_all_of_the_first() {
        let of =
            |operations: &[(&str, &[u64], Option<AllBatches>)]| pooled(std::iter::once(&cost(operations))).unwrap();
        let (read, write) = (("syscall/read", &[110_u64][..], None), ("syscall/write", &[110_u64][..], None));
        let (read4, write1) = (("syscall/read", &[410_u64][..], None), ("syscall/write", &[110_u64][..], None));
        let ratio = |first: &[_], second: &[_]| ratio(&of(first), &of(second), |one| one.median_ns);
        assert!((ratio(&[read, write], &[read4, write1]).unwrap() - 2.0).abs() < 1e-9);
        assert!((ratio(&[read], &[read4, write1]).unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(ratio(&[read, write], &[read4]), None);
        assert_eq!(ratio(&[read], &[("syscall/read", &[10], None)]), None, "a cost of 0 has no ratio");
    }
}
