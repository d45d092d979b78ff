//! The percentile distribution of HdrHistogram, which its plotters read.
//!
//! Layout of `HistogramLogProcessor`: four columns with five steps per halving of the distance to 100 %, then three
//! lines of `#`. Values are in microseconds with three decimals.

use punctual_analysis::{Row, quantile};
use punctual_model::Histogram;
use std::fmt::Write;

/// Steps per halving of the distance to 100 %, the default of the original.
const STEPS_PER_HALVING: i32 = 5;

/// The distribution of one cell. `Buckets` in the last line counts nonempty ones.
pub fn hgrm(row: &Row<'_>, histogram: &Histogram) -> String {
    let mut text = format!(
        "# {}: latency by wake-up, {}\n{:>12} {:>14} {:>10} {:>14}\n\n",
        row.name.replace(char::is_control, " "),
        if row.is_virtual() { "virtual us" } else { "us" },
        "Value",
        "Percentile",
        "TotalCount",
        "1/(1-Percentile)"
    );
    let us = |ns: f64| ns / 1e3;
    let mut step = 0_i32;
    let mut shown: Option<u64> = None;
    while let Some(ns) = quantile(histogram, share(step)) {
        let up_to = histogram.n - histogram.count_above(u64::try_from(ns).unwrap_or(0));
        if up_to >= histogram.n {
            break;
        }
        if shown != Some(up_to) {
            let _ = writeln!(
                text,
                "{:12.3} {:2.12} {up_to:10} {:14.2}",
                us(ns as f64),
                share(step),
                1.0 / (1.0 - share(step))
            );
        }
        shown = Some(up_to);
        step += 1;
    }
    if let Some(max_ns) = histogram.max_ns {
        let _ = writeln!(text, "{:12.3} {:2.12} {:10}", us(max_ns as f64), 1.0, histogram.n);
    }
    let (mean, stddev) = (row.mean_ns.map_or(f64::NAN, us), row.stddev_ns.map_or(f64::NAN, us));
    let max = histogram.max_ns.map_or(f64::NAN, |ns| us(ns as f64));
    let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {stddev:12.3}]");
    let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {:12}]", histogram.n);
    let _ = writeln!(text, "#[Buckets = {:12}, SubBuckets     = {:12}]", histogram.buckets().count(), 128);
    text
}

/// Share of samples at a step: 0, 0.1 ... 0.5, 0.55 ... 0.75, and so on towards 1.
fn share(step: i32) -> f64 {
    let (halvings, within) = (step / STEPS_PER_HALVING, step % STEPS_PER_HALVING);
    let left = 0.5_f64.powi(halvings);
    1.0 - left + left / 2.0 * f64::from(within) / f64::from(STEPS_PER_HALVING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::summarise;
    use punctual_analysis::testing::RunBuilder;

    /// A cell with this name, kernel and latencies.
    fn named(name: &str, kernel: &str, latencies_ns: &[i64]) -> String {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80").header.cells[0].kernel = kernel.parse().unwrap();
        let summary = summarise(&run.header, &[]);
        let row = Row { name, ..Row::of_run(&run.header, &summary.cells, &summary.cell_findings).remove(0) };
        hgrm(&row, &Histogram::of(latencies_ns))
    }

    #[test]
    fn virtual_microseconds_are_called_that() {
        let text = named("a kernel/none/fifo:80", "debian:6.1", &[]);
        assert!(text.starts_with("# a kernel/none/fifo:80: latency by wake-up, virtual us\n"), "{text}");
    }

    #[test]
    fn shares_go_to_one_by_halves() {
        let shares: Vec<_> = [0, 1, 5, 6, 10, 15].map(share).to_vec();
        assert_eq!(shares, [0.0, 0.1, 0.5, 0.55, 0.75, 0.875]);
    }

    #[test]
    fn rows_rise_and_end_with_the_maximum() {
        let latencies: Vec<i64> = (1..=10_000).map(|i| i * 100).collect();
        let text = named("none/other", "running", &latencies);
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(3)
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(rows.len() > 30, "{text}");
        assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][2] < pair[1][2]));
        assert_eq!(rows.last().unwrap(), &[1000.0, 1.0, 10_000.0]);
        for row in &rows[..rows.len() - 1] {
            assert!(row[2] >= row[1] * 10_000.0 && (row[3] - 1.0 / (1.0 - row[1])).abs() < 0.01, "{row:?}");
        }
    }

    #[test]
    fn no_samples_are_no_rows() {
        let text = named("x\ny", "running", &[]);
        assert!(text.starts_with("# x y: ") && text.contains("Total count    =            0]"), "{text}");
    }
}
