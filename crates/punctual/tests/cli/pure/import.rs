//! `punctual import`: what is imported is like a run, and files that it refuses.

use crate::program::{ProgramOutput, Scratch, command, import_fixture, punctual, run};
use crate::pure::schema::assert_conforms;
use serde_json::json;
use std::path::Path;

pub(crate) fn import(file: &Path, words: &str) -> ProgramOutput {
    let name = file.file_name().unwrap().to_str().unwrap();
    let kept = file.with_file_name(format!("of-{name}"));
    punctual(&format!("import {} --out {} {words}", file.display(), kept.display()))
}

#[test]
fn what_is_imported_is_shown_listed_and_checked_like_a_run() {
    let scratch = Scratch::new("imported");
    let kept = scratch.path("old");
    let names = ["cyclictest.json", "rtla-timerlat.txt"].map(|name| import_fixture(name).display().to_string());
    let words = format!("{} --title years --load none --format csv --out {}", names.join(" "), kept.display());
    let said = punctual(&format!("import {words}"));
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{said:?}");
    let show = |words: &str| punctual(&format!("show {} {words}", kept.display()));
    assert_eq!(show("--format csv").stdout, said.stdout, "what is kept says the same");
    assert_eq!(said.stdout.lines().count(), 1 + 1 + 3, "a head, cyclictest, three kinds of timerlat");
    for (format, start) in [
        ("text", "punctual "),
        ("json", "{\n"),
        ("md", "### years\n\nLargest latency in "),
        ("junit", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"punctual\" tests=\"4\""),
        ("tap", "TAP version 13\n1..4\nok 1 - cyclictest.json measured # SKIP nothing was required\n"),
        ("lava", "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=cyclictest.json-min RESULT=pass UNITS=us MEASUREMENT="),
        ("hgrm --cell cyclictest.json", "# cyclictest.json: latency by wake-up, us\n"),
        ("gnuplot", "# years\n#   source: "),
        ("prom", "# HELP punctual_run_info "),
    ] {
        let said = show(&format!("--format {format}"));
        assert!(said.stdout.starts_with(start) && said.status == 0 && said.stderr.is_empty(), "{format}: {said:?}");
    }
    assert_conforms("imported", &show("--format json").json());

    let listed = punctual(&format!("list {} --format json", scratch.dir().display())).json();
    let listed = &listed["runs"][0];
    assert_eq!(
        json!([listed["title"], listed["measurements"], listed["verdict"], listed["host"]]),
        json!(["imported: years", 4, "none", null]),
        "two machines, or one that only one file names"
    );

    let check = |words: &str| punctual(&format!("check {} {words}", kept.display()));
    let late = check("--require max=1us");
    assert!(late.status == 2 && late.stdout.contains("Verdict: FAIL "), "{late:?}");
    let case = "cyclictest.json max=1us: FAIL ";
    assert!(late.stdout.starts_with(case) && late.stdout.matches(" max=1us: ").count() == 4, "{late:?}");
    check("--require max=1us --format hgrm")
        .expect_error("unsupported: --format hgrm for a verdict; use another format");
    let open = check("--require misses_per_hour=1 --format junit");
    assert!(open.status == 3 && open.stdout.contains("errors=\"4\""), "{open:?}");
    check("").expect_error(
        "nothing to check: the run was measured without limits; name some with --require, like max=1ms,p999=200us, or \
         an older run with --baseline",
    );
    check(&format!("--require max=1s --baseline {}", kept.display()))
        .expect_error("unsupported: --baseline with imported measurements, which have no blocks; leave it out");
}

#[test]
fn a_load_in_other_words_is_kept_and_shown() {
    let scratch = Scratch::new("import-load");
    let table = import_fixture("osadl-table.txt").display().to_string();
    for (index, load) in ["idle", "kernel compile, \"8\" jobs", "messaging"].into_iter().enumerate() {
        let kept = scratch.path(&index.to_string());
        let said = run(command(&format!("import {table} --format json --out")).arg(&kept).arg("--load").arg(load));
        let document = said.json();
        assert_conforms("imported", &document);
        let conditions = &document["cells"][0]["conditions"];
        assert_eq!(json!([conditions["load"], conditions["stated"]]), json!([load, ["load"]]));
        for format in ["text", "csv", "prom"] {
            let shown = punctual(&format!("show {} --format {format}", kept.display())).stdout.replace("\\\"", "\"");
            assert!(shown.replace("\"\"", "\"").contains(load), "{format}: {shown}");
        }
        let page = scratch.path(&format!("{index}.html"));
        let made = punctual(&format!("report {} -o {}", kept.display(), page.display()));
        let page = std::fs::read_to_string(page).unwrap();
        assert!(made.status == 0 && page.replace("&quot;", "\"").contains(load), "{made:?}");
    }
    let said = run(command(&format!("import {table} --out")).arg(scratch.path("x")).args(["--load", " "]));
    said.expect_error("--load: invalid load ``: expected one line of 1 to 200 characters");
}

/// What a file says of itself that its numbers depend on.
#[test]
fn a_wrong_unit_and_threads_that_share_a_cpu_are_findings() {
    let scratch = Scratch::new("import-doubts");
    for (name, sentence) in [
        ("cyclictest-ticks.txt", "mean 10.7 ms above the period of 1 ms: the values may be ticks or another unit"),
        ("cyclictest-no-histogram.json", "CPU 0 measured by 2 threads, which delay each other"),
        ("cyclictest-no-histogram.json", "no histogram (-h): no quantile is known"),
    ] {
        let file = scratch.file(name, std::fs::read(import_fixture(name)).unwrap());
        let said = punctual(&format!("import {} --out {}", file.display(), scratch.path("kept").display()));
        let shown = punctual(&format!("show {} --all", scratch.path("kept").display()));
        assert!(said.status == 0 && shown.stdout.contains(sentence), "{name}: {shown:?}");
        assert!(!shown.stdout.contains("histogram overflow"), "{name}: {shown:?}");
        std::fs::remove_dir_all(scratch.path("kept")).unwrap();
    }
}

#[test]
fn what_cannot_be_imported_is_named_with_file_line_and_reason() {
    let scratch = Scratch::new("import-bad");
    let h = std::fs::read_to_string(import_fixture("cyclictest-h-2.7.txt")).unwrap();
    let raw = std::fs::read(import_fixture("jitterdebugger-us.raw")).unwrap();
    let mut broken_raw = raw.clone();
    // The nanoseconds of the third record exceed a second.
    broken_raw[2 * 28 + 12..2 * 28 + 20].copy_from_slice(&2_000_000_000_u64.to_le_bytes());
    let unknown = "unknown format: expected output of cyclictest, jitterdebugger, rtla, rteval, oslat, latency, latmus, \
                   rttest or performance_test, an HdrHistogram log, or latencies with --unit";
    for (name, bytes, place, reason) in [
        ("empty.txt", Vec::new(), "", unknown),
        ("prose.txt", b"hello\n".to_vec(), "", unknown),
        ("count.txt", h.replace("000034", "00x034").into_bytes(), ":4", "invalid count `00x034`"),
        (
            "key.json",
            b"{\"cmdline:\": \"cyclictest\", \"thread\": {\n \"0\": {\"cycles\": -1}}}".to_vec(),
            ":2",
            "invalid value: integer `-1`, expected u64",
        ),
        ("tag.xml", b"<rteval>\n<a></b></rteval>".to_vec(), ":2", "invalid XML: expected 'a' tag, not 'b'"),
        ("binary.txt", b"T: 0\n\xff\n".to_vec(), ":2", "expected text, or samples.raw of jitterdebugger"),
        (
            "big-endian.raw",
            broken_raw,
            "",
            "record 3: invalid time of the monotonic clock; expected samples.raw of a little-endian machine",
        ),
        (
            "cut.raw",
            raw[..20].to_vec(),
            "",
            "unknown binary format: expected text, or samples.raw of a little-endian machine",
        ),
        (
            "trace.dat",
            b"\x17\x08\x44tracing6\0".to_vec(),
            "",
            "unsupported: trace.dat of trace-cmd; punctual watch --from FILE reads it",
        ),
    ] {
        let file = scratch.file(name, bytes);
        import(&file, "").expect_error(&format!("{}{place}: {reason}", file.display()));
        assert!(!scratch.path(&format!("of-{name}")).exists(), "nothing is left of {name}");
    }
    let of = |name: &str| scratch.path(name).display().to_string();
    import(&scratch.path("nowhere"), "")
        .expect_error(&format!("cannot read {}: No such file or directory (os error 2)", of("nowhere")));
    import(scratch.dir(), "")
        .expect_error(&format!("cannot read {}: Is a directory (os error 21)", scratch.dir().display()));
    let table = import_fixture("osadl-table.txt").display().to_string();
    punctual(&format!("import {table} {table} --out {}", of("twice")))
        .expect_error(&format!("duplicate file {table}; name each file once"));
}
