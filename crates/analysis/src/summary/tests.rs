//! Summaries of built runs.

use super::*;
use crate::due_time::by_due_time;
use crate::pool::merged;
use crate::testing::RunBuilder;
use crate::woodruff::Refusal;
use model::{LoadRecord, LoadSecond};

fn run(latency_ns: impl Fn(u32, u64) -> i64 + Copy) -> CellSummary {
    let mut run = RunBuilder::new();
    run.cell("none", "other");
    run.header.plan.repetitions = 2;
    run.measure(0, 0, latency_ns).measure(1, 0, latency_ns);
    summarise(&run.header, &run.entries).cells.remove(0)
}

#[test]
fn a_cell_without_records_has_no_numbers() {
    let mut builder = RunBuilder::new();
    builder.cell("none", "other");
    let cell = &summarise(&builder.header, &[]).cells[0];
    assert_eq!((cell.blocks, cell.samples, cell.measured), (0, 0, Span(0)));
    assert_eq!((cell.min_ns, cell.mean_ns, cell.stddev_ns, cell.max, cell.misses), (None, None, None, None, None));
    assert_eq!(cell.quantiles.p50, Quantile::Refused(Refusal::NoSamples));
    assert_eq!(cell.n_eff, None);
}

#[test]
fn blocks_and_cpus_are_added_up_but_time_only_by_block() {
    let cell = run(|cpu, _| if cpu == 0 { 5_000 } else { 7_000 });
    assert_eq!((cell.blocks, cell.samples, cell.measured), (2, 8_000, Span(4_000_000_000)));
    assert_eq!((cell.min_ns, cell.mean_ns), (Some(5_000), Some(6_000.0)));
    let stddev = cell.stddev_ns.unwrap();
    assert!((stddev - 1_000.0 * (8_000.0f64 / 7_999.0).sqrt()).abs() < 1e-9, "{stddev}");
    assert_eq!(cell.quantiles.p99.value_ns(), Some(7_000));
    assert_eq!(cell.due_times.quantiles, cell.quantiles, "nothing was missed");
}

#[test]
fn the_maximum_knows_its_moment() {
    let cell = run(|cpu, cycle| if (cpu, cycle) == (1, 1_500) { 80_000 } else { 5_000 });
    // The run's first measurement begins 1 s after it, and the wake-up was due 1.5 s after that; of equal ones the first.
    let expected = Max { latency_ns: 80_000, at_least: false, block: 0, cpu: 1, run_ms: Some(2_500) };
    assert_eq!(cell.max, Some(expected));
    assert_eq!(cell.quantiles.p99.value_ns(), Some(5_023), "the upper edge of the bucket of 5000 ns");
}

#[test]
fn an_open_wait_makes_the_maximum_a_lower_bound() {
    let cell = run(|cpu, cycle| if cpu == 1 && cycle >= 1_500 { i64::MAX } else { 5_000 });
    let expected = Max { latency_ns: 500_000_000, at_least: true, block: 0, cpu: 1, run_ms: Some(2_500) };
    assert_eq!(cell.max, Some(expected));
    assert_eq!(cell.censored, Some(Open { waits: 2, at_least_ns: 500_000_000 }));
    assert_eq!((cell.samples, cell.missed), (7_000, 998));
    assert!(cell.due_times.at_least);
    assert_eq!(cell.due_times.n, 8_000, "each due time once");
    assert_eq!(cell.misses.map(|rate| rate.episodes), Some(2));
}

#[test]
fn missed_due_times_show_in_the_second_view_only() {
    // One stall of 400 ms in each block: 0.05 % of the wake-ups, but a fifth of the time.
    let cell = run(|_, cycle| if cycle == 1_000 { 400_000_000 } else { 5_000 });
    assert_eq!((cell.samples, cell.missed), (4 * 1_601, 4 * 399));
    assert_eq!(cell.due_times.n, 8_000);
    let max_ns = cell.max.map(|max| max.latency_ns);
    assert_eq!(max_ns, Some(400_000_000));
    assert!(cell.quantiles.p99.value_ns() < Some(6_000), "{:?}", cell.quantiles.p99);
    let by_due_time = by_due_time(&merged([&one_stall()].into_iter()), cell.cell.period);
    assert!(crate::quantile(&by_due_time, 0.9) > Some(190_000_000));
    assert!(!cell.due_times.at_least);
}

fn one_stall() -> Histogram {
    let mut histogram = Histogram::default();
    histogram.record_n(5_000, 1_600);
    histogram.record(400_000_000);
    histogram
}

#[test]
fn episodes_on_two_cpus_at_once_are_one() {
    let cell = run(|_, cycle| if cycle == 100 || cycle == 1_900 { 3_000_000 } else { 5_000 });
    let rate = cell.misses.unwrap();
    assert_eq!(rate.episodes, 4, "two in each block, on both CPUs");
    assert!((rate.per_hour - 3600.0).abs() < 1e-9);
}

#[test]
fn equal_squares_do_not_break_the_deviation() {
    let mut histogram = Histogram::default();
    assert_eq!(standard_deviation(&histogram), None);
    histogram.record(i64::MAX);
    assert_eq!(standard_deviation(&histogram), None);
    histogram.record(i64::MAX);
    assert_eq!(standard_deviation(&histogram), Some(0.0));
    histogram.record_n(1, 1 << 40);
    assert!(standard_deviation(&histogram).unwrap() > 0.0, "beyond what integers hold");
}

#[test]
fn the_load_is_summed_over_blocks() {
    let mut builder = RunBuilder::new();
    builder.cell("messaging", "other").measure(0, 0, |_, _| 5_000).measure(1, 0, |_, _| 5_000);
    for (entry, operations) in builder.entries.iter_mut().zip([400, 1200]) {
        let second = LoadSecond { elapsed: Span(2_000_000_000), operations: Some(operations), cpu_us: Some(1_000_000) };
        let later = LoadSecond { operations: Some(operations / 2), ..second };
        let seconds = vec![second, second, later, later];
        entry.record.loads = vec![LoadRecord { operation: "message".to_owned(), seconds, ..LoadRecord::default() }];
    }
    let cell = summarise(&builder.header, &builder.entries).cells.remove(0);
    assert_eq!(
        cell.loads,
        [LoadRate {
            load: String::new(),
            operation: "message".to_owned(),
            per_second: Some(300.0),
            cpus_used: Some(0.5),
            lowest_share: Some(0.5),
        }]
    );
}

#[test]
fn mean_and_deviation_are_the_certified_ones_of_nist() {
    // NIST StRD, univariate summary statistics. NumAcc1.dat as it is, Michelso.dat in units of 0.01.
    let accuracy = Histogram::of(&[10_000_001, 10_000_003, 10_000_002]);
    assert_eq!((accuracy.mean_ns(), standard_deviation(&accuracy)), (Some(10_000_002), Some(1.0)));
    let light = Histogram::of(&[
        29985, 29974, 29990, 30007, 29993, 29985, 29995, 29998, 29998, 29988, 30000, 29998, 29993, 29965, 29976, 29981,
        30000, 30000, 29996, 29996, 29996, 29994, 29996, 29994, 29988, 29980, 29985, 29988, 29990, 29984, 29983, 29979,
        29981, 29988, 29988, 29983, 29980, 29979, 29976, 29980, 29988, 29988, 29988, 29986, 29972, 29972, 29962, 29986,
        29997, 29995, 29988, 29991, 29985, 29987, 29984, 29984, 29985, 29984, 29984, 29984, 29989, 29981, 29981, 29982,
        29980, 29977, 29976, 29974, 29975, 29976, 29991, 29992, 29989, 29986, 29988, 29972, 29984, 29985, 29985, 29978,
        29989, 29984, 29978, 29981, 29976, 29981, 29979, 29981, 29982, 29985, 29987, 29987, 29981, 29974, 29981, 29994,
        29995, 29980, 29981, 29987,
    ]);
    let mean = light.sum_ns as f64 / light.n as f64 / 100.0;
    assert!((mean - 299.852_4).abs() < 1e-12, "{mean}");
    let deviation = standard_deviation(&light).unwrap() / 100.0;
    assert!((deviation - 0.079_010_547_819_051_8).abs() < 1e-15, "{deviation}");
}
