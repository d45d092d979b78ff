//! Every format against golden files and the rules of its readers. `UPDATE_EXPECT=1` renews the files.

use super::GnuplotKind::{Ccdf, Histogram};
use super::*;
use crate::tests::{lab, own, run, starved};
use expect_test::{ExpectFile, expect_file};
use punctual_analysis::testing::RunBuilder;
use punctual_analysis::{histograms, summarise};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs that cover all outcomes: no requirement, a violated limit, an inconclusive one, and no measurement.
fn runs() -> [RunBuilder; 4] {
    let mut failed = run();
    failed.header.plan.title = "\"Quick\" <look> | 1 & 2 # a_b".to_owned();
    failed.header.plan.require.set_all("max=30us,p999=1ms,misses_per_hour=9").unwrap();
    let mut empty = RunBuilder::new();
    empty.cell("cmd:true # x", "other").require("max=1ms");
    [run(), failed, starved(), empty]
}

fn in_all(form: fn(&Page<'_>) -> String) -> [String; 4] {
    runs().map(|run| form(&Page::of(&own("run", &run, &summarise(&run.header, &run.entries)), false)))
}

fn check(text: &str, golden: ExpectFile) {
    golden.assert_eq(text);
}

#[test]
fn csv_has_as_many_fields_as_heads() {
    let [unasked, ..] = in_all(csv);
    check(&unasked, expect_file!["../../tests/golden/formats/run.csv"]);
    let mut lines = unasked.lines();
    let heads: Vec<_> = lines.next().unwrap().split(',').collect();
    assert_eq!(heads.iter().collect::<BTreeSet<_>>().len(), heads.len(), "no head twice");
    for row in lines {
        // A CPU list like 0,2 would be quoted; these runs have none.
        assert_eq!(row.split(',').count(), heads.len(), "{row}");
    }
}

#[test]
fn markdown_is_a_table_with_a_verdict() {
    let [unasked, failed, ..] = in_all(markdown);
    check(&unasked, expect_file!["../../tests/golden/formats/run.md"]);
    check(&failed, expect_file!["../../tests/golden/formats/run-fail.md"]);
    for text in [unasked, failed] {
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        let table: Vec<_> = text.lines().filter(|line| line.starts_with('|')).map(bars).collect();
        assert!(table.len() == 6 && table.iter().all(|n| *n == table[0]), "{text}");
    }
}

#[test]
fn junit_keeps_the_rules_of_its_schema() {
    let [unasked, failed, starved, empty] = in_all(junit);
    check(&failed, expect_file!["../../tests/golden/formats/run-fail.xml"]);
    check(&unasked, expect_file!["../../tests/golden/formats/run.xml"]);
    for text in [unasked, failed, starved, empty] {
        junit_counts(&text);
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/formats/junit.xsd");
        accepted("xmllint", &["--noout", "--nonet", "--schema", schema, "-"], &text);
    }
}

#[test]
fn kcidb_keeps_its_schema() {
    let [unasked, failed, starved, empty] = in_all(kcidb);
    let statuses = |text: &str| -> BTreeSet<String> {
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        let tests = document["tests"].as_array().unwrap();
        let ids: BTreeSet<_> = tests.iter().map(|test| test["id"].to_string()).collect();
        assert_eq!(ids.len(), tests.len(), "identifiers are unique");
        let builds: BTreeSet<_> =
            document["builds"].as_array().unwrap().iter().map(|build| &build["id"]).map(ToString::to_string).collect();
        assert!(tests.iter().all(|test| builds.contains(&test["build_id"].to_string())), "{text}");
        tests.iter().map(|test| test["status"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(statuses(&unasked), BTreeSet::from(["DONE".to_owned()]));
    assert!(statuses(&failed).is_superset(&BTreeSet::from(["FAIL".to_owned(), "PASS".to_owned()])), "{failed}");
    assert!(statuses(&starved).contains("ERROR"), "{starved}");
    let lab = lab(&["preempt=none"]);
    let virtually = kcidb(&Page::of(&own("lab", &lab, &summarise(&lab.header, &lab.entries)), false));
    assert!(virtually.contains("\"virtual-us\"") && !virtually.contains("\"us\""), "{virtually}");
    let script = "import sys\ntry:\n  from kcidb_io.schema import V5_3\nexcept ImportError:\n  print('skipped: needs kcidb-io (PyPI)'); sys.exit()\n\
                  import json; V5_3.validate_exactly(json.load(sys.stdin)); print('valid')";
    for text in [unasked, failed, starved, empty, virtually] {
        accepted(&python(), &["-c", script], &text);
    }
}

/// The Python that has the readers of the formats: that of `scripts/setup test`, or the system's.
fn python() -> String {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin/python3");
    if std::path::Path::new(ours).exists() { ours.to_owned() } else { "python3".to_owned() }
}

/// Output of an external program for the text, on stdout and stderr; `None` if it is not installed.
#[track_caller]
fn output(program: &str, arguments: &[&str], text: &str) -> Option<[String; 2]> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        println!("skipped: needs {program}");
        return None;
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let written = [output.stdout, output.stderr].map(|written| String::from_utf8_lossy(&written).into_owned());
    assert!(output.status.success(), "{program}: {written:?}\n{text}");
    Some(written)
}

/// Asserts that an external program, if installed, accepts the text.
#[track_caller]
fn accepted(program: &str, arguments: &[&str], text: &str) {
    let written = output(program, arguments, text).unwrap_or_default().concat();
    written.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("{line}"));
}

/// Asserts that the numbers of a suite are those of its elements, which its schema cannot require.
#[track_caller]
fn junit_counts(text: &str) {
    let suite = text.split_once("<testsuite ").and_then(|(_, rest)| rest.split_once('>')).expect("a suite").0;
    for (attribute, element) in
        [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")]
    {
        let counted = text.matches(&format!("<{element} ")).count();
        assert!(suite.contains(&format!(" {attribute}=\"{counted}\"")), "{counted} {attribute}: {suite}");
    }
}

#[test]
fn tap_counts_its_lines() {
    let texts = in_all(tap);
    check(&texts[1], expect_file!["../../tests/golden/formats/run-fail.tap"]);
    for text in texts {
        let plan = text.lines().nth(1).and_then(|line| line.strip_prefix("1..")).expect("a plan");
        let tests: Vec<_> =
            text.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).collect();
        assert_eq!(plan.split(' ').next(), Some(tests.len().to_string().as_str()), "{text}");
        for (line, number) in tests.iter().zip(1..) {
            let rest = line.trim_start_matches("not ").strip_prefix(&format!("ok {number} - ")).expect("in order");
            let hash = rest.replace("\\#", "").find('#');
            assert_eq!(hash.is_some(), line.ends_with("# SKIP nothing was required"), "{line}");
        }
        assert!(text.lines().filter(|line| *line == "  ---").count() == text.lines().filter(|l| *l == "  ...").count());
    }
}

#[test]
fn lava_takes_every_signal() {
    let texts = in_all(lava);
    check(&texts[1], expect_file!["../../tests/golden/formats/run-fail.lava"]);
    for text in texts {
        let mut ids = BTreeSet::new();
        for line in text.lines() {
            // The dispatcher's pattern: `<LAVA_SIGNAL_(\S+) ([^>]+)>`; parameters separated by blanks, each with one
            // `=`.
            let signal = line.strip_prefix("<LAVA_SIGNAL_").and_then(|rest| rest.strip_suffix('>')).expect(line);
            let (name, parameters) = signal.split_once(' ').unwrap();
            assert!(name == "TESTCASE" && !parameters.contains('>'), "{line}");
            let pairs: BTreeMap<_, _> = parameters
                .split_whitespace()
                .map(|parameter| match parameter.split('=').collect::<Vec<_>>()[..] {
                    [key, value] => (key.to_lowercase(), value),
                    _ => panic!("malformed parameter in {line}"),
                })
                .collect();
            assert!(ids.insert(pairs["test_case_id"].to_owned()), "twice: {line}");
            assert!(["pass", "fail", "skip", "unknown"].contains(&pairs["result"]), "{line}");
            let is_decimal = |text: &&str| {
                let digits = text.trim_start_matches('-');
                digits.chars().all(|c| c.is_ascii_digit() || c == '.') && text.parse::<f64>().is_ok()
            };
            assert!(pairs.get("measurement").is_none_or(is_decimal), "{line}");
            assert_eq!(pairs.contains_key("measurement"), pairs.contains_key("units"), "{line}");
        }
    }
}

#[test]
fn hgrm_is_as_the_original_writes_it() {
    let run = run();
    let summary = summarise(&run.header, &run.entries);
    let text = hgrm(&own("run", &run, &summary).rows()[1], &histograms(&run.header, &run.entries)[1]);
    check(&text, expect_file!["../../tests/golden/formats/run.hgrm"]);
}

/// Draws a script with gnuplot, if it is installed, as an SVG picture.
fn drawn(script: &str) -> Option<String> {
    let [picture, warnings] = output("gnuplot", &["-e", "set terminal svg", "-"], script)?;
    assert!(warnings.is_empty(), "gnuplot: {warnings}\n{script}");
    Some(picture)
}

#[test]
fn gnuplot_draws_a_curve_for_each_cell() {
    let run = run();
    let summary = summarise(&run.header, &run.entries);
    for (kind, side) in [(Histogram, "wake-ups per bin"), (Ccdf, "share of wake-ups later")] {
        let script = gnuplot(&[own("runs/x", &run, &summary)], kind).unwrap();
        if kind == Ccdf {
            check(&script, expect_file!["../../tests/golden/formats/run.gnuplot"]);
        }
        let Some(picture) = drawn(&script) else { return };
        assert_eq!(picture.matches("id=\"gnuplot_plot_").count(), 4, "{picture}");
        for text in ["none/other", "messaging/fifo:80", "latency (us)", side] {
            assert!(picture.contains(text), "{text}");
        }
    }
}

#[test]
fn gnuplot_draws_the_cpus_of_a_single_cell() {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:99").header.cells[0].kernel = "debian:6.1".parse().unwrap();
    run.measure(0, 0, |cpu, cycle| 4_000 + i64::from(cpu) * 700 + i64::try_from(cycle % 9).unwrap() * 100);
    let summary = summarise(&run.header, &run.entries);
    let one = own("runs/x", &run, &summary);
    let script = gnuplot(&[one], Histogram).unwrap();
    for line in ["virtual us: 1000 instructions", "per bin'", "/fifo:99, CPU 0'", "/fifo:99, CPU 1'"] {
        assert!(script.contains(line), "{line}: {script}");
    }
    // The counts of both CPUs, read back from the script.
    let counts = script.lines().filter_map(|line| line.split_once(' ')?.1.parse::<u64>().ok());
    assert_eq!(counts.sum::<u64>(), histograms(&run.header, &run.entries)[0].n);
    drawn(&script);
    let both = gnuplot(&[one, one], Ccdf).unwrap();
    assert!(both.contains("title 'A ") && both.contains("title 'B ") && !both.contains(", CPU "), "{both}");
    drawn(&both);
}

#[test]
fn each_picture_of_the_page_is_a_file_of_its_own() {
    let mut run = run();
    run.header.cells[0].load = "cmd:<i> & \"x\"".parse().unwrap();
    let summary = summarise(&run.header, &run.entries);
    let pictures = crate::pictures(&[own("runs/x", &run, &summary)]);
    let names: Vec<_> = pictures.iter().take(4).map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["1-share-of-wake-ups-later-than", "2-percentiles", "3-worst-so-far", "4-latency-histogram"]);
    for picture in &pictures {
        let svg = &picture.svg;
        assert!(!svg.contains("var(") && !svg.contains("<use") && !svg.contains("<a "), "{svg}");
        assert_eq!(svg.matches("<g").count() - svg.matches("<g/").count(), svg.matches("</g>").count(), "{svg}");
        if let Some([_, errors]) = output("xmllint", &["--noout", "-"], svg) {
            assert!(errors.is_empty(), "{errors}");
        }
    }
    assert!(pictures[0].svg.contains(">messaging/fifo:80</text>") && pictures[0].svg.contains("10⁻¹"));
}

#[test]
fn gnuplot_executes_no_foreign_text() {
    let directory = tempfile();
    let mark = directory.join("mark");
    let evil = format!("'`touch {0}`\"$(touch {0})' . system('touch {0}')\\\n!touch {0}\n@touch\\", mark.display());
    let mut run = run();
    run.header.plan.title.clone_from(&evil);
    run.header.tool.clone_from(&evil);
    run.header.cells[0].load = "cmd:true '`touch x`' \\".parse().unwrap();
    let summary = summarise(&run.header, &run.entries);
    let script = gnuplot(&[own(&evil, &run, &summary)], Ccdf).unwrap();
    let commands: Vec<_> = script.lines().filter(|line| line.trim_start().starts_with('!')).collect();
    assert!(commands.is_empty(), "{commands:?}");
    drawn(&script);
    assert!(!mark.exists(), "{script}");
    std::fs::remove_dir_all(directory).unwrap();
}

/// A new directory for one test.
fn tempfile() -> std::path::PathBuf {
    let directory = std::env::temp_dir().join(format!("punctual-gnuplot-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn gnuplot_without_samples_is_no_script() {
    let mut run = RunBuilder::new();
    run.cell("none", "other");
    let summary = summarise(&run.header, &run.entries);
    assert_eq!(gnuplot(&[own("x", &run, &summary)], Histogram), None);
    assert_eq!(gnuplot(&[], Ccdf), None);
}

#[test]
fn numbers_have_no_more_digits_than_they_need() {
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "0"),
        (15_039.0 * 1e-9, "0.000015039"),
        (1_795_261_632_135.0 / 1e3, "1795261632.135"),
        (1e-12, "0"),
        (44_000.0, "44000"),
        (0.1 + 0.2, "0.3"),
    ] {
        assert_eq!(decimal(value), text);
    }
}

#[test]
fn prometheus_keeps_its_grammar() {
    let texts = in_all(prometheus);
    check(&texts[1], expect_file!["../../tests/golden/formats/run-fail.prom"]);
    for text in texts {
        prometheus_grammar(&text);
        accepted("promtool", &["check", "metrics"], &text);
    }
}

/// Asserts the text format 0.0.4: each family once, HELP and TYPE before its samples, valid names and labels, no
/// duplicate samples, and the naming rules of `promtool check metrics`.
#[track_caller]
fn prometheus_grammar(text: &str) {
    assert!(text.ends_with('\n'));
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
    let (mut helped, mut family) = (String::new(), (String::new(), String::new()));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped = rest.split(' ').next().unwrap().to_owned();
            assert!(is_name(&helped) && families.insert(helped.clone()), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(name == helped && ["gauge", "summary"].contains(&kind), "{line}");
            let reserved = ["_total", "_count", "_sum", "_bucket"];
            assert!(!reserved.iter().any(|end| name.ends_with(end)), "{line}");
            family = (name.to_owned(), kind.to_owned());
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            assert!(value == "NaN" || value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            let (name, labels) = series.split_once('{').map_or((series, ""), |(name, rest)| (name, rest));
            let base =
                if family.1 == "summary" { name.trim_end_matches("_sum").trim_end_matches("_count") } else { name };
            assert_eq!(base, family.0, "{line}");
            assert!(samples.insert(series.to_owned()), "twice: {line}");
            if !labels.is_empty() {
                let labels = labels.strip_suffix('}').expect("a closing brace").replace("\\\\", "").replace("\\\"", "");
                let parts: Vec<_> = labels.split('"').collect();
                assert!(parts.len() % 2 == 1 && parts.last() == Some(&""), "{line}");
                for name in parts.iter().step_by(2).filter(|part| !part.is_empty()) {
                    let name = name.trim_start_matches(',').strip_suffix('=').expect("an equals sign");
                    assert!(is_name(name) && !name.starts_with("__"), "{line}");
                }
            }
        }
    }
}

#[test]
fn virtual_time_is_called_that_in_every_format() {
    let mut run = lab(&["preempt=none", "clock=emulated"]);
    run.require("max=1s");
    let summary = summarise(&run.header, &run.entries);
    let page = Page::of(&own("run", &run, &summary), false);
    let csv = csv(&page);
    let mut lines = csv.lines();
    let index = lines.next().unwrap().split(',').position(|head| head == "time").unwrap();
    let times: Vec<_> = lines.map(|line| line.split(',').nth(index).unwrap()).collect();
    assert_eq!(times, ["virtual", "emulated", "virtual", "emulated"]);
    let is_virtual = |line: &&str| line.contains("preempt=none") || line.contains("preempt-none");
    let all = |text: &str, of: &str, virtually: &str, otherwise: &str| {
        let lines: Vec<_> = text.lines().filter(|line| line.contains(of)).collect();
        assert!(lines.len() >= 4, "{text}");
        for line in lines {
            let (is, is_not) = if is_virtual(&line) { (virtually, otherwise) } else { (otherwise, virtually) };
            assert!(line.contains(is) && !line.contains(is_not), "{line}");
        }
    };
    all(&prometheus(&page), "punctual_latency_seconds{", "time=\"virtual\"", "time=\"emulated\"");
    all(&lava(&page), "-p50 ", "UNITS=virtual-us ", "UNITS=us ");
    for text in [junit(&page), tap(&page)] {
        let verdicts: Vec<_> =
            text.lines().filter(|line| line.contains("PASS max ") && !line.contains("<property")).collect();
        assert_eq!(verdicts.len(), 4, "{text}");
        assert_eq!(verdicts.iter().filter(|line| line.contains(" (virtual time)")).count(), 2, "{verdicts:?}");
    }
    assert!(markdown(&page).contains("of lab kernels in virtual time: 1000 instructions"));
}
