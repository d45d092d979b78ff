//! Work of the same load in two configurations: the latencies of both are comparable only with the same work.

use punctual_model::{Entry, LoadRecord};
use serde::Serialize;

/// Factor between two rates from which the work differs: the margin within which two p99 count as equivalent, so that
/// smaller differences in work are left to the ratio itself.
const MIN_WORK_FACTOR: f64 = 1.25;

/// Distance of two counts, in standard errors of the logarithm of their ratio, from which chance does not explain it.
const BEYOND_CHANCE: f64 = 3.0;

/// Work of one part of a load in two configurations that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ComparedLoad {
    /// The part as it is typed.
    pub load: String,
    /// Meaning of one operation; of an outside program a second of CPU time, because its runs may be long.
    pub operation: String,
    /// Operations a second in the first; `null`: unknown.
    pub a_per_second: Option<f64>,
    /// Operations a second in the second; `null`: unknown.
    pub b_per_second: Option<f64>,
    /// Whether the work differs: by 25 % or more, in every block, and beyond the chance variation of counts.
    pub differs: bool,
}

impl ComparedLoad {
    /// The larger rate divided by the smaller; `None` if one is unknown or 0.
    pub fn factor(&self) -> Option<f64> {
        let (a, b) = (self.a_per_second?, self.b_per_second?);
        (a > 0.0 && b > 0.0).then(|| (a / b).max(b / a))
    }
}

/// Work of one part of a load over the blocks of a cell.
#[derive(Debug, Default)]
struct Work {
    /// Operations, or seconds of CPU time.
    amount: f64,
    seconds: f64,
    /// Lowest and highest rate of a block, a second.
    lowest: f64,
    highest: f64,
    /// Whether operations are counted one by one.
    is_counted: bool,
}

impl Work {
    fn per_second(&self) -> f64 {
        self.amount / self.seconds
    }

    /// Work of this part in the blocks in which it lasted; `None` if unknown in one of them, or never measured.
    fn of<'a>(records: impl Iterator<Item = &'a LoadRecord>) -> Option<Work> {
        let mut all: Option<Work> = None;
        for record in records.filter(|record| record.failure.is_none() && !record.seconds.is_empty()) {
            let is_program = record.program.is_some();
            let amounts =
                record.seconds.iter().map(|second| if is_program { second.cpu_us } else { second.operations });
            let sum = amounts.sum::<Option<u64>>()? as f64;
            let amount = if is_program { sum / 1e6 } else { sum };
            let seconds = record.seconds.iter().map(|second| second.elapsed.ns()).sum::<u64>() as f64 / 1e9;
            if seconds <= 0.0 {
                continue;
            }
            let rate = amount / seconds;
            let work =
                all.get_or_insert(Work { lowest: rate, highest: rate, is_counted: !is_program, ..Work::default() });
            (work.amount, work.seconds) = (work.amount + amount, work.seconds + seconds);
            (work.lowest, work.highest) = (work.lowest.min(rate), work.highest.max(rate));
        }
        all
    }

    /// Whether this is more work than `other`, beyond the spread over the blocks and the chance variation of counts.
    fn exceeds(&self, other: &Work) -> bool {
        if other.amount <= 0.0 {
            // That it did nothing is a finding of its own.
            return false;
        }
        let factor = self.per_second() / other.per_second();
        // Independent events: the variance of the logarithm of a count is about its inverse.
        let chance = if self.is_counted { (1.0 / self.amount + 1.0 / other.amount).sqrt() } else { 0.0 };
        factor >= MIN_WORK_FACTOR && self.lowest > other.highest && factor.ln() > BEYOND_CHANCE * chance
    }
}

/// Work of the first part of the load in one measurement, a second: operations, or of an outside program the share of a
/// CPU; `None` without a load, or if unknown.
pub(crate) fn first_rate(entry: &Entry) -> Option<f64> {
    Work::of(entry.record.loads.first().into_iter()).map(|work| work.per_second())
}

/// Work of the parts that the loads of two configurations have in common, in the order of the first.
pub(crate) fn compared(a: &[&Entry], b: &[&Entry]) -> Vec<ComparedLoad> {
    let parts = |entries: &[&Entry]| entries.iter().map(|entry| entry.record.loads.len()).max().unwrap_or(0);
    let first_of = |entries: &[&Entry], part: usize| -> Option<LoadRecord> {
        entries.iter().find_map(|entry| entry.record.loads.get(part)).cloned()
    };
    let work =
        |entries: &[&Entry], part: usize| Work::of(entries.iter().filter_map(|entry| entry.record.loads.get(part)));
    let (mut found, mut taken) = (Vec::new(), Vec::new());
    for part in 0..parts(a) {
        let Some(first) = first_of(a, part) else { continue };
        let is_same =
            |other: &usize| !taken.contains(other) && first_of(b, *other).is_some_and(|other| other.load == first.load);
        let Some(other) = (0..parts(b)).find(is_same) else { continue };
        taken.push(other);
        let (of_a, of_b) = (work(a, part), work(b, other));
        let differs =
            of_a.as_ref().zip(of_b.as_ref()).is_some_and(|(of_a, of_b)| of_a.exceeds(of_b) || of_b.exceeds(of_a));
        let is_program = first.program.is_some();
        found.push(ComparedLoad {
            load: first.load,
            operation: if is_program { "CPU second".to_owned() } else { first.operation },
            a_per_second: of_a.as_ref().map(Work::per_second),
            b_per_second: of_b.as_ref().map(Work::per_second),
            differs,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use punctual_model::{LoadFailure, LoadSecond, ProgramRecord, Span};

    /// Blocks of two cells whose loads did this many operations (thousandths of a CPU second) in two seconds each.
    fn blocks(counts: [&[u64]; 2], change: impl Fn(&mut LoadRecord)) -> Vec<ComparedLoad> {
        let mut run = RunBuilder::new();
        run.cell("messaging", "other").cell("messaging", "fifo:80");
        for (cell, counts) in counts.into_iter().enumerate() {
            for (block, n) in (0..).zip(counts) {
                run.measure(block, cell, |_, _| 5_000);
                let second =
                    LoadSecond { elapsed: Span::SECOND, operations: Some(n / 2), cpu_us: Some(n.saturating_mul(500)) };
                let mut load = LoadRecord {
                    load: "messaging".to_owned(),
                    operation: "message".to_owned(),
                    seconds: vec![second; 2],
                    ..LoadRecord::default()
                };
                change(&mut load);
                run.entries.last_mut().unwrap().record.loads = vec![load];
            }
        }
        let of = |cell| run.entries.iter().filter(|entry| entry.planned.cell_index == cell).collect::<Vec<_>>();
        compared(&of(0), &of(1))
    }

    fn differ(a: &[u64], b: &[u64]) -> bool {
        blocks([a, b], |_| ()).iter().any(|load| load.differs)
    }

    #[test]
    fn work_differs_by_a_factor_in_all_blocks_and_beyond_chance() {
        for (a, b, differs) in [
            (&[8_800, 8_800][..], &[3_980, 3_980][..], true),
            (&[3_980, 3_980], &[8_800, 8_800], true),
            (&[1_250, 1_250], &[1_000, 1_000], true),
            (&[1_248, 1_248], &[1_000, 1_000], false),
            (&[2_000, 1_000], &[1_000, 1_000], false),
            (&[2_000, 1_002], &[1_000, 1_000], true),
            (&[1_300], &[1_000], true),
            (&[60], &[30], true),
            (&[40], &[20], false),
            (&[1_000], &[0], false),
            (&[0], &[0], false),
            (&[], &[1_000], false),
        ] {
            assert_eq!(differ(a, b), differs, "{a:?} {b:?}");
        }
    }

    #[test]
    fn rates_stand_for_all_blocks_and_the_factor_has_no_direction() {
        let found = blocks([&[2_000, 4_000], &[1_000, 1_000]], |_| ());
        let [load] = &found[..] else { panic!("{found:?}") };
        assert_eq!((load.a_per_second, load.b_per_second, load.factor()), (Some(1_500.0), Some(500.0), Some(3.0)));
        assert_eq!((load.load.as_str(), load.operation.as_str()), ("messaging", "message"));
        assert_eq!(blocks([&[1_000], &[0]], |_| ())[0].factor(), None);
        let unknown = blocks([&[1_000], &[500]], |load| load.seconds[0].operations = None);
        assert_eq!((unknown[0].a_per_second, unknown[0].differs), (None, false));
    }

    #[test]
    fn a_program_is_compared_by_its_cpu_time_and_a_failed_load_not_at_all() {
        let program = |load: &mut LoadRecord| {
            load.program = Some(ProgramRecord { path: "/bin/x".to_owned(), version: None });
            load.seconds.iter_mut().for_each(|second| second.operations = None);
        };
        let found = blocks([&[3_000], &[1_000]], program);
        assert_eq!((found[0].a_per_second, found[0].differs), (Some(1.5), true));
        assert_eq!(found[0].operation, "CPU second");
        let failure = || Some(LoadFailure { at: Span(0), reason: String::new() });
        let failed = blocks([&[3_000], &[1_000]], |load| load.failure = failure());
        assert_eq!((failed[0].a_per_second, failed[0].differs), (None, false));
    }

    #[test]
    fn parts_are_matched_by_name() {
        let mut run = RunBuilder::new();
        run.cell("messaging", "other").measure(0, 0, |_, _| 5_000);
        let mut other = run.entries[0].clone();
        let part = |load: &str, n| LoadRecord {
            load: load.to_owned(),
            seconds: vec![LoadSecond { elapsed: Span::SECOND, operations: Some(n), cpu_us: None }],
            ..LoadRecord::default()
        };
        run.entries[0].record.loads = vec![part("cpu", 10), part("io", 20), part("io", 30), part("net", 1)];
        other.record.loads = vec![part("io", 20), part("cpu", 10), part("io", 60)];
        let found = compared(&[&run.entries[0]], &[&other]);
        let rates: Vec<_> =
            found.iter().map(|load| (load.load.as_str(), load.a_per_second, load.b_per_second)).collect();
        assert_eq!(
            rates,
            [("cpu", Some(10.0), Some(10.0)), ("io", Some(20.0), Some(20.0)), ("io", Some(30.0), Some(60.0))]
        );
    }
}
