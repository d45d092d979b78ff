//! `punctual check`: exit status and reports of runs against limits and older runs.

use crate::program::{Scratch, punctual};
use analysis::testing::RunBuilder;

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
    let scratch = Scratch::new("check");
    for (name, hours) in [("old", 0), ("new", 1)] {
        scratch.run(name, &gate(hours));
    }
    let of = |name: &str| scratch.path(name).display().to_string();
    let check = |words: &str| punctual(&format!("check {} {words}", of("new")));
    // Of 1200 samples one or two lie above p99.9, which is too few.
    for (words, status, verdict) in [
        ("--require max=1h", 0, "Verdict: PASS max "),
        ("--require max<=1h", 0, "Verdict: PASS "),
        ("--require max=1ns", 2, "Verdict: FAIL none/other"),
        ("--require p999=1h", 3, "Verdict: INCONCLUSIVE: none/other"),
        ("--require p999=1h,max=1ns", 2, "Verdict: FAIL none/other"),
    ] {
        let said = check(words);
        assert_eq!((said.status, said.stderr.as_str()), (status, ""), "{words}: {said:?}");
        assert!(said.stdout.contains(verdict), "{words}: {said:?}");
    }
    let junit = check("--require max=1ns --format junit");
    assert_eq!(junit.status, 2);
    for part in [
        "<testsuites name=\"punctual\" tests=\"3\" failures=\"2\" errors=\"0\" ",
        "<testcase classname=\"punctual.run\" name=\"complete\" ",
        "<testcase classname=\"punctual.none/other\" name=\"max=1ns\" ",
        "<failure type=\"violated\" message=\"FAIL none/other: max ",
    ] {
        assert!(junit.stdout.contains(part), "{part}: {junit:?}");
    }

    // Runs made one after the other show nothing, unless forced.
    let baseline = |words: &str| check(&format!("--baseline {} --metric p50 {words}", of("old")));
    let separate = baseline("--format tap");
    assert_eq!(separate.status, 3, "{separate:?}");
    assert!(separate.stdout.contains("not ok 1 - none/other baseline\n"), "{separate:?}");
    // Within a margin of 100 no run is later; a run compared with itself has no difference.
    let forced = baseline("--force --margin 100");
    assert!([0, 3].contains(&forced.status) && !forced.stdout.contains("FAIL"), "{forced:?}");
    let both = baseline("--require max=1ns");
    assert!(both.status == 2 && both.stdout.contains("none/other baseline: INCONCLUSIVE"), "{both:?}");
    let lava = check("--require max=1h --format lava");
    assert!(lava.stdout.contains("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=none-other-max-1h RESULT=pass>\n"), "{lava:?}");

    check("").expect_error(
        "nothing to check: the run was measured without limits; name some with --require, like max=1ms,p999=200us, or \
         an older run with --baseline",
    );
    check("--require max=1ns,misses_per_hour=1").expect_error(
        "misses were counted against 1ms while measuring, not against max=1ns; check them apart, or measure with \
         --require max=1ns",
    );
    check("--require max=1h --format hgrm")
        .expect_error("unsupported: --format hgrm for a verdict; use another format");
    let nowhere = of("nowhere");
    punctual(&format!("check {nowhere} --require max=1ms")).expect_error(&format!(
        "invalid run {nowhere}: it has no run.jsonl; name a directory written by `punctual run`"
    ));
    check(&format!("--baseline {nowhere}")).expect_error(&format!(
        "invalid run {nowhere}: it has no run.jsonl; name a directory written by `punctual run`"
    ));
}
