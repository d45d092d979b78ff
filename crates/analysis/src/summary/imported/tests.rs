//! Imported measurements with parts missing.

use super::*;
use crate::findings::{ImportedFinding, of_imported};
use crate::summarise_imported;
use crate::testing::{self, imported_thread as thread};
use punctual_model::{Beyond, Level, Requirement, Slice, Source, Span};

pub(crate) fn imported(threads: Vec<ImportedThread>) -> Imported {
    Imported { host: testing::host(), threads, ..Imported::of(Source::of("cyclictest", "a/h.txt"), 1_000) }
}

fn of(threads: Vec<ImportedThread>) -> ImportedCell {
    cells(&[imported(threads)]).remove(0)
}

#[test]
fn a_histogram_alone_gives_quantiles_without_intervals() {
    let latencies: Vec<i64> = (0..20_000).map(|i| 1_000 * (i % 100)).collect();
    let cell = of(vec![thread(&latencies)]);
    assert_eq!(cell.quantiles.at(Level::P50).value_ns(), crate::quantile(&Histogram::of(&latencies), 0.5));
    assert!(
        cell.quantiles.at(Level::P999).value_ns().is_some() && cell.quantiles.at(Level::P50).interval_ns().is_none()
    );
    assert_eq!((cell.samples, cell.missed, cell.mean_ns), (Some(20_000), None, Some(49_500.0)));
    assert!(of_imported(&cell).contains(&ImportedFinding::NoCourse), "{:?}", of_imported(&cell));
}

#[test]
fn no_distribution_is_no_quantile() {
    let bare =
        ImportedThread { samples: Some(9), min_ns: Some(1), max_ns: Some(5), mean_ns: Some(2.0), ..Default::default() };
    let other = ImportedThread { samples: Some(3), mean_ns: Some(6.0), max_ns: Some(7), number: 4, ..bare.clone() };
    let cell = of(vec![bare, other]);
    assert_eq!(*cell.quantiles.at(Level::P50), Quantile::Refused(Refusal::NoDistribution));
    assert_eq!((cell.mean_ns, cell.max_ns, cell.max_thread), (Some(3.0), Some(7), Some(4)));
}

#[test]
fn what_is_beyond_has_a_rank_and_no_value() {
    let mut some = thread(&vec![5_000; 97_000]);
    some.beyond = Some(Beyond { samples: Some(3_000), at_least_ns: 30_000 });
    (some.samples, some.max_ns) = (Some(100_000), Some(900_000));
    let cell = of(vec![some.clone()]);
    assert_eq!(cell.quantiles.at(Level::P50).value_ns(), Some(5_023), "the upper edge of its bucket");
    assert_eq!(*cell.quantiles.at(Level::P99), Quantile::Refused(Refusal::Beyond { at_least_ns: 30_000 }));
    assert_eq!((cell.mean_ns, cell.stddev_ns), (None, None), "the sum is not known");
    let said = of_imported(&cell)[0].to_string();
    assert_eq!(said, "histogram overflow: 3 000 samples at 30 us or later; quantiles there are unknown");
    some.beyond = Some(Beyond { samples: None, at_least_ns: 30_000 });
    let cell = of(vec![some]);
    assert_eq!(cell.quantiles.at(Level::P99).value_ns(), Some(5_000));
    assert!(of_imported(&cell)[0].to_string().starts_with("missing samples: an unknown number at 30 us"));
}

#[test]
fn stretches_give_intervals() {
    let mut threads = Vec::new();
    for number in 0..2 {
        let latency = |i: i64| 1_000 + (i * 7_919 + i64::from(number)) % 1_009;
        let slice = |at: i64| {
            let histogram = Histogram::of(&(at * 500..(at + 1) * 500).map(latency).collect::<Vec<_>>());
            Slice { first_cycle: at.unsigned_abs() * 500, cycles: 500, histogram }
        };
        let mut all = thread(&(0..20_000).map(latency).collect::<Vec<_>>());
        (all.slices, all.number) = ((0..40).map(slice).collect(), number);
        threads.push(all);
    }
    // One of them has half as many stretches.
    threads[1].slices = threads[1]
        .slices
        .chunks(2)
        .map(|pair| {
            let mut slice = pair[0].clone();
            slice.histogram.merge(&pair[1].histogram);
            slice
        })
        .collect();
    let of_slices: u64 = slices(&threads).iter().map(|slice| slice.n).sum();
    assert_eq!((slices(&threads).len(), of_slices), (40, 40_000), "every sample is in one stretch");
    let cell = of(threads);
    let (lower, upper) = cell.quantiles.at(Level::P99).interval_ns().expect("an interval");
    assert!(lower <= upper && !of_imported(&cell).contains(&ImportedFinding::NoCourse));
}

#[test]
fn a_file_can_violate_a_limit_and_seldom_keep_it() {
    let verdict = |text: &str, change: fn(&mut Imported)| {
        let mut require = Requirement::default();
        require.set_all(text).unwrap();
        let mut imported = imported(vec![thread(&[5_000; 20_000])]);
        change(&mut imported);
        let summary = summarise_imported(&[imported], &require);
        let status = summary.cases.iter().map(|case| case.verdict.exit_status()).max();
        assert_eq!(status, Some(summary.verdict.exit_status()));
        summary.verdict.to_string()
    };
    let told = |imported: &mut Imported| imported.measured = Some(Span::SECOND);
    for (text, change, said) in [
        ("max=4us", told as fn(&mut Imported), "Verdict: FAIL h.txt: max 5 us > 4 us"),
        (
            "max=5us",
            told,
            "Verdict: INCONCLUSIVE: h.txt: its values are truncated, so the largest may be above the limit",
        ),
        (
            "max=6us",
            told,
            "Verdict: PASS max 5 us <= 6 us (worst: h.txt); none later in 1 s of each cell: their rate is below 10 \
             785/h (95 %), not zero",
        ),
        ("max=6us", |_| {}, "Verdict: INCONCLUSIVE: h.txt: the file has no measured time, so no rate is excluded"),
        ("p99=6us", told, "Verdict: INCONCLUSIVE: h.txt: the file has no time series, so quantiles have no intervals"),
        ("misses_per_hour=1", told, "Verdict: INCONCLUSIVE: h.txt: the file has no time series of misses"),
        ("max=6us", |all| all.threads[0].max_ns = None, "Verdict: INCONCLUSIVE: h.txt: the file has no samples"),
        (
            "max=6us",
            |all| (all.measured, all.threads[0].samples) = (Some(Span::SECOND), Some(20_003)),
            "Verdict: INCONCLUSIVE: h.txt: 3 of 20 003 samples have no value in the file",
        ),
    ] {
        assert_eq!(verdict(text, change), said, "{text}");
    }
}

#[test]
fn names_tell_files_and_kinds_apart() {
    let of = |file: &str, what: &str| {
        let mut imported = imported(Vec::new());
        (imported.source.file, imported.conditions.what) = (file.to_owned(), what.to_owned());
        imported
    };
    assert_eq!(
        names(&[of("a/h.txt", "wake-up"), of("b/t.txt", "irq"), of("b/t.txt", "user")]),
        ["h.txt", "t.txt/irq", "t.txt/user"]
    );
    assert_eq!(names(&[of("a/h.txt", "wake-up"), of("b/h.txt", "wake-up")]), ["a/h.txt", "b/h.txt"]);
}

/// A file of so many seconds at 10 ms, with 64 stretches as records have.
fn with_course(seconds: u64, latency_ns: impl Fn(u64) -> i64) -> Imported {
    let n = seconds * 100;
    let of = |from: u64, to: u64| Histogram::of(&(from..to).map(&latency_ns).collect::<Vec<_>>());
    let slice = |i: u64| Slice { first_cycle: i * n / 64, cycles: n / 64, histogram: of(i * n / 64, (i + 1) * n / 64) };
    let mut all = thread(&(0..n).map(&latency_ns).collect::<Vec<_>>());
    all.slices = (0..64).map(slice).collect();
    all.missed = Some(0);
    Imported { measured: Some(Span(seconds * 1_000_000_000)), ..imported(vec![all]) }
}

fn noise(cycle: u64) -> i64 {
    5_000 + i64::try_from(punctual_model::SplitMix64::new(cycle).below(1_000)).unwrap()
}

#[test]
fn a_course_of_time_is_tested_as_records_of_ours_are() {
    let mut require = Requirement::default();
    require.set_all("p99=12us").unwrap();
    let said = |imported: Imported| {
        let mut summary = summarise_imported(&[imported], &require);
        let cell = summary.cells.remove(0);
        let findings: Vec<_> = of_imported(&cell).iter().map(ToString::to_string).collect();
        (summary.verdict.to_string(), findings.join("\n"), cell)
    };
    let (verdict, findings, cell) = said(with_course(120, noise));
    assert!(
        verdict.starts_with("Verdict: PASS p99") && cell.steadiness.courses.stayed_the_same(),
        "{verdict} {findings}"
    );
    // Everything rises by 60 %: p99 is below the limit overall, and not at the end.
    let drift = |cycle: u64| noise(cycle) + i64::try_from(cycle).unwrap() * 3_600 * 2 / 12_000;
    let (verdict, findings, cell) = said(with_course(120, drift));
    assert_eq!(
        verdict,
        "Verdict: INCONCLUSIVE: h.txt: latency is not stationary, so no p99 is valid for the whole cell"
    );
    assert!(findings.contains("drift: p50 ") && findings.contains("in the first quarter"), "{findings}");
    assert!(cell.quantiles.at(Level::P99).interval_ns().is_none());
    let step = |cycle: u64| noise(cycle) + if cycle < 6_000 { 0 } else { 2_000 };
    let (_, findings, _) = said(with_course(120, step));
    assert!(findings.contains("level shift: p99 after 50 % of the file (6 us before, 8 us after)"), "{findings}");
    let (_, findings, cell) = said(with_course(20, noise));
    assert!(!cell.steadiness.courses.is_tested() && findings.contains("not tested: needs 30 s"), "{findings}");
}

#[test]
fn due_times_that_a_tool_hides_let_no_quantile_pass() {
    let verdict = |text: &str, missed: Option<u64>, change: fn(&mut Imported)| {
        let mut require = Requirement::default();
        require.set_all(text).unwrap();
        let mut imported = with_course(120, noise);
        imported.threads[0].missed = missed;
        change(&mut imported);
        summarise_imported(&[imported], &require).verdict.to_string()
    };
    let as_it_is = |_: &mut Imported| {};
    let uncounted = "Verdict: INCONCLUSIVE: h.txt: cyclictest does not count missed due times";
    assert_eq!(verdict("p99=12us", None, as_it_is), uncounted);
    let missed = "Verdict: INCONCLUSIVE: h.txt: 2 missed due times are in no quantile";
    assert_eq!(verdict("p99=12us", Some(2), as_it_is), missed);
    assert!(verdict("p99=12us", None, |all| all.conditions.what = "noise".to_owned()).starts_with("Verdict: PASS"));
    // What is hidden is late.
    assert!(verdict("p99=2us", None, as_it_is).starts_with("Verdict: FAIL h.txt: p99"));
    let lost: fn(&mut Imported) = |all| *all.threads[0].samples.as_mut().unwrap() += 500;
    let said = "Verdict: INCONCLUSIVE: h.txt: 500 of 12 500 samples have no value in the file";
    assert_eq!([verdict("p99=12us", Some(0), lost), verdict("p99=2us", Some(0), lost)], [said; 2]);
}
