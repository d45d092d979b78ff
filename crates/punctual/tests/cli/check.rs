//! `punctual check`: exit status and reports of real runs against limits and older runs.

use crate::program::{a_cpu, machine_and_scratch, punctual};

const PLAN: &str = "title = \"gate\"\nrepetitions = 6\nduration = \"200ms\"\nwarm_up = \"20ms\"\n\
    [axes]\nload = [\"none\"]\npolicy = [\"other\", \"other:nice=5\"]\n";

#[test]
fn a_run_is_checked_against_limits_and_an_older_run() {
    let (_machine, scratch) = machine_and_scratch("check");
    let plan = scratch.file("plan.toml", PLAN);
    let of = |name: &str| scratch.path(name).display().to_string();
    for name in ["old", "new"] {
        let words = format!("run {} --wait --cpus {} --out {} --format csv", plan.display(), a_cpu(), of(name));
        assert_eq!(punctual(&words).status, 0);
    }
    let check = |words: &str| punctual(&format!("check {} {words}", of("new")));
    // No latency exceeds an hour and few are 1 ns; of 1200 samples one or two lie above p99.9, which is too few.
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
