//! False alarms on real recordings: results of methods on one configuration compared with itself.
//!
//! A recording is a run in many blocks; the configuration of each of its cells never changed. A pseudo-experiment takes
//! consecutive measurements of a cell, labels half of them A and half of them B, and tests for a difference. There is
//! none.
//!
//! Precision of the rates: windows of measurements overlap, so a recording holds only as many independent intervals of
//! the machine as there are adjacent windows, which is printed. Where A and B are drawn within pairs, each experiment
//! draws anew, so that experiments on one recording are conditionally independent, and the error of a rate is that of
//! its number of experiments. Where A lies before B, nothing is drawn: there the rate is known no better than from the
//! adjacent windows.

use super::noise::Noise;
use super::scaled::scaled;
use super::{Expected, ResultRow, counted, merged, relabelled, tuned};
use punctual_analysis::comparison::{Arm, Comparison, Decision, Question, compare};
use punctual_analysis::paired::{decided_after, signed_rank};
use punctual_analysis::{BaselineGate, Level};
use punctual_model::{Ended, Entry, Header, Histogram};
use std::path::Path;

/// Pseudo-experiments of each layout with each cell.
const EXPERIMENTS: u32 = 400;

/// Number of blocks of an experiment: a measurement of A and one of B.
const BLOCKS: usize = 8;

/// Blocks and margin of the gate in docs/ci.md.
const GATE_BLOCKS: usize = 12;
const GATE_MARGIN: f64 = 1.25;

/// Number of blocks of a sequence that is evaluated after every block.
const SEQUENCE: usize = 20;

/// Significance level of every method, and the limit of false alarms of `compare`.
const LEVEL: f64 = 0.05;
const PROMISE: f64 = 0.07;

/// Counts false alarms on the recordings in these directories.
pub(super) fn run(dirs: &[&str]) -> Result<Vec<ResultRow>, String> {
    let mut rows = Vec::new();
    for dir in dirs {
        for (name, entries) in read(Path::new(dir))? {
            if entries.len() < tuned::LONGEST {
                let (have, need) = (entries.len(), tuned::LONGEST);
                return Err(format!("{dir}: {have} measurements of {name} are too few; record {need} at least"));
            }
            let apart = entries.len() / (2 * BLOCKS);
            println!("{name}: {} measurements, {apart} windows of {} beside each other", entries.len(), 2 * BLOCKS);
            rows.extend(of_recording(&name, &entries));
        }
    }
    Ok(rows)
}

/// The complete measurements of each cell, by its name, in order of time.
fn read(dir: &Path) -> Result<Vec<(String, Vec<Entry>)>, String> {
    let (header, entries) = entries_of(dir)?;
    let of_cell = |(cell, name): (usize, String)| {
        let is_whole = |entry: &&Entry| entry.planned.cell_index == cell && entry.record.ended == Ended::Completed;
        (name, entries.iter().filter(is_whole).cloned().collect())
    };
    Ok(punctual_analysis::cell_names(&header.cells).into_iter().enumerate().map(of_cell).collect())
}

/// The header and all measurements of a run.
pub(super) fn entries_of(dir: &Path) -> Result<(Header, Vec<Entry>), String> {
    let path = dir.join("run.jsonl");
    let text = std::fs::read_to_string(&path).map_err(|err| format!("{}: {err}", path.display()))?;
    let mut lines = text.lines();
    let damaged = |err: serde_json::Error| format!("{}: {err}", path.display());
    let header: Header = serde_json::from_str(lines.next().unwrap_or_default()).map_err(damaged)?;
    Ok((header, lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(damaged)?))
}

/// Assignment of the labels A and B.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    /// All of A before all of B.
    Sequence,
    /// One of each in every pair, in random order.
    Pairs,
}

fn of_recording(name: &str, entries: &[Entry]) -> Vec<ResultRow> {
    let mut rows = Vec::new();
    for (layout, called) in [(Layout::Sequence, "A before B"), (Layout::Pairs, "random pairs")] {
        // Separate runs are rejected unless forced.
        let (forced, ours) = match layout {
            Layout::Sequence => (", forced", Expected::Unknown),
            Layout::Pairs => ("", Expected::AtMost(PROMISE)),
        };
        let compare = format!("punctual compare, p99: DIFFERENT{forced}");
        let methods = [
            ("pooled Kolmogorov-Smirnov", Expected::Unknown),
            ("pooled Mann-Whitney", Expected::Unknown),
            ("pooled Welch t", Expected::Unknown),
            ("maxima differ by more than 20 %", Expected::Unknown),
            ("signed-rank of p99", ours),
            (&*compare, ours),
        ];
        rows.extend(counted(&format!("{name}, {called}: "), EXPERIMENTS, 3_303, methods, |noise| {
            let (a, b) = called_a_and_b(drawn(entries, 2 * BLOCKS, noise), layout, noise);
            alarms_of(&a, &b)
        }));
    }
    rows.extend(gated(name, entries));
    rows.extend(looked_at(name, entries));
    rows.extend(tuned::of_recording(name, entries));
    rows.extend(relabelled::of_recording(name, entries));
    rows
}

/// The gate of docs/ci.md, two runs in alternation: a version and itself, and with one of them later by a half.
fn gated(name: &str, entries: &[Entry]) -> Vec<ResultRow> {
    let mut rows = Vec::new();
    for (factor, what) in [(1.0, "the same"), (1.5, "50 % later")] {
        let expected = match factor {
            1.0 => [("FAIL", Expected::AtMost(0.01)), ("PASS", Expected::Unknown)],
            _ => [("FAIL", Expected::AtLeast(0.95)), ("PASS", Expected::AtMost(0.01))],
        };
        rows.extend(counted(&format!("{name}, gate on p50, {what}: "), EXPERIMENTS, 3_305, expected, |noise| {
            let (old, new) = called_a_and_b(drawn(entries, 2 * GATE_BLOCKS, noise), Layout::Pairs, noise);
            let new: Vec<Entry> = new.iter().map(|entry| scaled(entry, factor)).collect();
            let comparison = comparison(&old, &new.iter().collect::<Vec<_>>(), Level::P50, Some(GATE_MARGIN));
            let gate = BaselineGate::of(&comparison, comparison.primary.ratio.map_or(1.0, |ratio| ratio.p));
            [gate == BaselineGate::Later, gate == BaselineGate::NotLater]
        }));
    }
    rows
}

/// Consecutive measurements, from anywhere.
fn drawn<'a>(entries: &'a [Entry], n: usize, noise: &mut Noise) -> &'a [Entry] {
    let from = noise.below(entries.len() - n + 1);
    &entries[from..from + n]
}

/// The labels of a window: one A and one B in each pair, or the first half A.
fn called_a_and_b<'a>(window: &'a [Entry], layout: Layout, noise: &mut Noise) -> (Vec<&'a Entry>, Vec<&'a Entry>) {
    match layout {
        Layout::Sequence => {
            let (a, b) = window.split_at(window.len() / 2);
            (a.iter().collect(), b.iter().collect())
        }
        Layout::Pairs => {
            let pair = |pair: &'a [Entry]| if noise.chance(0.5) { (&pair[0], &pair[1]) } else { (&pair[1], &pair[0]) };
            window.chunks_exact(2).map(pair).unzip()
        }
    }
}

fn alarms_of(a: &[&Entry], b: &[&Entry]) -> [bool; 6] {
    let (pooled_a, pooled_b) = (pooled(a), pooled(b));
    let maxima = [&pooled_a, &pooled_b].map(|histogram| histogram.max_ns.unwrap_or(1) as f64);
    [
        kolmogorov_smirnov(&pooled_a, &pooled_b) < LEVEL,
        mann_whitney(&pooled_a, &pooled_b) < LEVEL,
        welch(&pooled_a, &pooled_b) < LEVEL,
        (maxima[0] / maxima[1]).ln().abs() > 1.2f64.ln(),
        signed_rank(&differences(a, b)).is_some_and(|test| test.p < LEVEL),
        compared(a, b) == Decision::Different,
    ]
}

/// The latencies of one measurement, all CPUs together.
fn histogram(entry: &Entry) -> Histogram {
    merged(entry.record.threads.iter().map(|thread| &thread.histogram))
}

fn pooled(entries: &[&Entry]) -> Histogram {
    merged(&entries.iter().map(|entry| histogram(entry)).collect::<Vec<_>>())
}

fn differences(a: &[&Entry], b: &[&Entry]) -> Vec<f64> {
    let p99 = |entry: &Entry| punctual_analysis::quantile(&histogram(entry), Level::P99.p()).unwrap_or(1) as f64;
    a.iter().zip(b).map(|(a, b)| (p99(b) / p99(a)).ln()).collect()
}

/// Result of `punctual compare` on the pairs, given as interleaved.
fn compared(a: &[&Entry], b: &[&Entry]) -> Decision {
    comparison(a, b, Level::P99, None).decision
}

fn comparison(a: &[&Entry], b: &[&Entry], metric: Level, margin: Option<f64>) -> Comparison {
    let in_blocks = |entries: &[&Entry]| -> Vec<Entry> {
        let of = |(block, entry): (u32, &&Entry)| {
            let mut entry = (*entry).clone();
            entry.planned.block = block;
            entry
        };
        (0..).zip(entries).map(of).collect()
    };
    let (a, b) = (in_blocks(a), in_blocks(b));
    let question = Question { metric: Some(metric), margin, force: true, ..Question::default() };
    let [a, b] =
        [("A", &a), ("B", &b)].map(|(name, entries)| Arm { name: name.to_owned(), entries: entries.iter().collect() });
    compare(&a, &b, None, &question)
}

/// Evaluation after every block: the signed-rank test, and the sequential e-process.
fn looked_at(name: &str, entries: &[Entry]) -> [ResultRow; 3] {
    let methods = [
        ("signed-rank after every block", Expected::Unknown),
        ("signed-rank once, after 20", Expected::AtMost(PROMISE)),
        ("run --until decided", Expected::AtMost(LEVEL)),
    ];
    counted(&format!("{name}: "), EXPERIMENTS, 3_304, methods, |noise| {
        let (a, b) = called_a_and_b(drawn(entries, 2 * SEQUENCE, noise), Layout::Pairs, noise);
        let all = differences(&a, &b);
        let p = |n: usize| signed_rank(&all[..n]).map_or(1.0, |test| test.p);
        [(6..=SEQUENCE).any(|n| p(n) < LEVEL), p(SEQUENCE) < LEVEL, decided_after(&all).is_some()]
    })
}

/// P-value of the distance between two pooled distributions (Kolmogorov 1933, Smirnov 1939; asymptotic).
fn kolmogorov_smirnov(a: &Histogram, b: &Histogram) -> f64 {
    let (n, m) = (a.n as f64, b.n as f64);
    let mut edges: Vec<u64> = a.buckets().chain(b.buckets()).map(|bucket| bucket.upper_ns).collect();
    edges.sort_unstable();
    edges.dedup();
    let above = |histogram: &Histogram, edge: u64| histogram.count_above(edge) as f64 / histogram.n as f64;
    let distance = edges.iter().map(|edge| (above(a, *edge) - above(b, *edge)).abs()).fold(0.0, f64::max);
    let lambda = distance * (n * m / (n + m)).sqrt();
    let terms = (1..=100u8).map(|k| {
        let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
        sign * (-2.0 * f64::from(k).powi(2) * lambda * lambda).exp()
    });
    if lambda < 0.2 { 1.0 } else { (2.0 * terms.sum::<f64>()).clamp(0.0, 1.0) }
}

/// P-value of the rank sum (Mann & Whitney 1947; normal approximation, corrected for ties).
fn mann_whitney(a: &Histogram, b: &Histogram) -> f64 {
    let (n, m) = (a.n as f64, b.n as f64);
    let mut counts: std::collections::BTreeMap<u64, (f64, f64)> = std::collections::BTreeMap::new();
    a.buckets().for_each(|bucket| counts.entry(bucket.lower_ns).or_default().0 += bucket.count as f64);
    b.buckets().for_each(|bucket| counts.entry(bucket.lower_ns).or_default().1 += bucket.count as f64);
    let (mut below, mut u, mut ties) = (0.0, 0.0, 0.0);
    for (in_a, in_b) in counts.values() {
        u += in_b * (below + 0.5 * in_a);
        below += in_a;
        ties += (in_a + in_b).powi(3) - (in_a + in_b);
    }
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance > 0.0 { punctual_analysis::normal_beyond((u - n * m / 2.0) / variance.sqrt()) } else { 1.0 }
}

/// P-value of the difference of means (Welch 1947; normal, because there are thousands of samples).
fn welch(a: &Histogram, b: &Histogram) -> f64 {
    let mean = |h: &Histogram| h.sum_ns as f64 / h.n as f64;
    let variance = |h: &Histogram| h.sum_of_squares_ns2 as f64 / h.n as f64 - mean(h).powi(2);
    let error = (variance(a) / a.n as f64 + variance(b) / b.n as f64).sqrt();
    if error > 0.0 { punctual_analysis::normal_beyond((mean(a) - mean(b)) / error) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(n: u32, mean: f64, seed: u64) -> Histogram {
        let mut noise = Noise::new(seed);
        let mut histogram = Histogram::default();
        for _ in 0..n {
            #[expect(clippy::cast_possible_truncation, reason = "some thousands")]
            histogram.record((mean + 1_000.0 * noise.normal()) as i64);
        }
        histogram
    }

    #[test]
    fn naive_tests_are_right_where_samples_are_independent() {
        let tests = [kolmogorov_smirnov, mann_whitney, welch];
        let mut alarms = [0u32; 3];
        for seed in 0..200 {
            let (a, b) = (normal(2_000, 50_000.0, seed), normal(2_000, 50_000.0, seed + 1_000));
            alarms.iter_mut().zip(tests).for_each(|(count, test)| *count += u32::from(test(&a, &b) < LEVEL));
        }
        assert!(alarms.iter().all(|count| (1..=24).contains(count)), "{alarms:?} of 200");
        let (a, b) = (normal(2_000, 50_000.0, 1), normal(2_000, 50_200.0, 2));
        assert!(tests.iter().all(|test| test(&a, &b) < 1e-3), "a fifth of a standard deviation");
    }
}
