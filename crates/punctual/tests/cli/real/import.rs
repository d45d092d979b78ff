//! `punctual import` of what installed tools write here: it says of their files what the tools themselves say.

use crate::program::{
    Scratch, a_cpu, inconclusive, is_installed, is_root, machine_and_scratch, punctual, read_json, run, skip_unless,
};
use crate::pure::import::import;
use crate::pure::schema::assert_conforms;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Number of samples for each latency in the tool's unit.
type Counts = BTreeMap<u64, u64>;

/// Whether a tool that needs root is available here.
fn can_run(program: &str, package: &str) -> bool {
    is_root() && is_installed(program, package)
}

/// Standard output of a tool.
#[track_caller]
fn original(program: &str, words: &str, scratch: &Scratch) -> String {
    let said = run(Command::new(program).args(words.split_whitespace()).current_dir(scratch.dir()));
    assert_eq!(said.status, 0, "{program} {words}: {said:?}");
    said.stdout
}

/// The only measurement of a file, as JSON.
#[track_caller]
fn imported(file: &Path) -> Value {
    let said = import(file, "--format json");
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{said:?}");
    let document = said.json();
    assert_conforms("imported", &document);
    assert_eq!(document["cells"].as_array().unwrap().len(), 1, "{document}");
    document["cells"][0].clone()
}

/// Numbers after `start` in the line that begins with it.
#[track_caller]
fn behind(text: &str, start: &str) -> Vec<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(start));
    let line = line.unwrap_or_else(|| panic!("no line `{start}` in {text}"));
    line.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Number after `key` in a line of `KEY: NUMBER` pairs.
#[track_caller]
fn field(line: &str, key: &str) -> u64 {
    let (_, rest) = line.split_once(key).unwrap_or_else(|| panic!("no {key} in {line}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// Asserts that the quantiles are those of `counts` and of `beyond` larger samples without known values.
#[track_caller]
fn assert_quantiles(summary: &Value, counts: &Counts, beyond: u64, unit_ns: u64) {
    let n = counts.values().sum::<u64>() + beyond;
    for (key, per_thousand) in [("p50", 500), ("p99", 990)] {
        let rank = (n * per_thousand).div_ceil(1_000).max(1);
        let mut passed = 0;
        let exact = counts.iter().find(|(_, count)| {
            passed += **count;
            passed >= rank
        });
        let (value, refused) = (&summary[format!("{key}_ns")], &summary[format!("{key}_refused")]);
        match (exact, value.as_u64()) {
            // Buckets are at most 1/128 wide, and a quantile is the upper edge of one.
            (Some((exact, _)), Some(ns)) => {
                let exact_ns = exact * unit_ns;
                assert!(ns >= exact_ns && ns - exact_ns <= exact_ns / 128, "{key}: {ns} is not {exact_ns}");
            }
            // Delayed threads record fewer samples than requested: too few for any quantile.
            (None, None) if n * (1_000 - per_thousand) >= 10_000 => {
                assert_eq!(refused["reason"], "beyond", "{key}: {summary}");
            }
            // Consecutive samples are correlated: the effective sample size may be too small for this or a lower
            // quantile.
            (_, None) => {
                let reason = refused["reason"].as_str();
                assert!(matches!(reason, Some("few_exceedances" | "lower_refused")), "{key}: {summary}");
            }
            (None, Some(ns)) => panic!("{key}: {ns} of samples that nobody knows"),
        }
    }
}

/// Asserts the values that need no distribution.
#[track_caller]
fn assert_ends(summary: &Value, samples: u64, min: u64, max: u64, unit_ns: u64) {
    assert_eq!(
        [&summary["samples"], &summary["min_ns"], &summary["max_ns"]],
        [&json!(samples), &json!(min * unit_ns), &json!(max * unit_ns)]
    );
}

#[track_caller]
fn assert_mean(summary: &Value, expected_ns: f64) {
    let mean_ns = summary["mean_ns"].as_f64().unwrap();
    assert!((mean_ns - expected_ns).abs() < 1e-6 * expected_ns, "{mean_ns} is not {expected_ns}");
}

#[test]
fn root_cyclictest_text_says_the_same_here() {
    skip_unless!(can_run("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("import-cyclictest");
    for (words, unit_ns) in [("-q", 1_000), ("-q -N", 1), ("", 1_000)] {
        let text = original("cyclictest", &format!("{words} -p80 -i1000 -t1 -a{} -l500", a_cpu()), &scratch);
        let cell = imported(&scratch.file(&format!("text{}.txt", words.replace(' ', "")), &text));
        let last = text.lines().rfind(|line| line.contains("T: 0")).unwrap();
        let summary = &cell["summary"];
        assert_ends(summary, field(last, "C:"), field(last, "Min:"), field(last, "Max:"), unit_ns);
        assert_mean(summary, (field(last, "Avg:") * unit_ns) as f64);
        let conditions = &cell["conditions"];
        assert_eq!((&conditions["period_ns"], &cell["resolution_ns"]), (&json!(1_000_000), &json!(unit_ns)));
        // Only the status lines that are overwritten on a terminal contain the policy.
        let known = if words.is_empty() { json!(["fifo:80", 80]) } else { json!([null, 80]) };
        assert_eq!(json!([conditions["policy"], conditions["priority"]]), known, "{words}");
        assert_eq!(summary["p50_refused"]["reason"], "no_distribution", "{words}");
    }
}

/// Histogram rows of cyclictest, summed over all threads.
fn rows(text: &str, threads: usize) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let fields: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        *counts.entry(fields[0]).or_default() += fields[1..=threads].iter().sum::<u64>();
    }
    counts
}

#[test]
fn root_cyclictest_histograms_say_the_same_here() {
    skip_unless!(can_run("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("import-histogram");
    // Many latencies of most machines exceed 20 us, which yields overflows.
    for (words, unit_ns) in [("-h400", 1_000), ("-H400", 1_000), ("-h20", 1_000), ("-N -h400000", 1)] {
        let text = original("cyclictest", &format!("-q {words} -p80 -i1000 -d0 -t2 -l500"), &scratch);
        let file = scratch.file(&format!("h{}.txt", words.replace(' ', "")), &text);
        let said =
            import(&file, if unit_ns == 1 { "--unit ns --format json" } else { "--format json" }).expect_success();
        let document = said.json();
        assert_conforms("imported", &document);
        let cell = &document["cells"][0];
        let (min, max) = (behind(&text, "# Min Latencies:"), behind(&text, "# Max Latencies:"));
        let (overflows, total) = (behind(&text, "# Histogram Overflows:"), behind(&text, "# Total:"));
        let (beyond, known) = (overflows[..2].iter().sum::<u64>(), total[..2].iter().sum::<u64>());
        let (min, max) = (min[..2].iter().min().unwrap(), max[..2].iter().max().unwrap());
        let summary = &cell["summary"];
        assert_ends(summary, known + beyond, *min, *max, unit_ns);
        let counts = rows(&text, 2);
        assert_eq!(counts.values().sum::<u64>(), known, "the tool agrees with itself");
        assert_quantiles(summary, &counts, beyond, unit_ns);
        if beyond == 0 {
            let sum: u64 = counts.iter().map(|(value, n)| value * n * unit_ns).sum();
            assert_mean(summary, sum as f64 / known as f64);
        }
        let kinds: Vec<_> = cell["findings"].as_array().unwrap().iter().map(|finding| &finding["kind"]).collect();
        assert_eq!(kinds.contains(&&json!("beyond")), beyond > 0, "{words}: {beyond} overflows");
    }
}

/// Without -q the last status line is older than the histogram below it.
#[test]
fn root_cyclictest_histograms_below_a_view_say_the_same_here() {
    skip_unless!(can_run("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("import-view");
    for (words, unit_ns) in [
        ("-l 300 -m -S -p99 -h 400", 1_000),
        ("-h60 -i200 -D 1", 1_000),
        ("-Sp90 -H 300 -i 500 -D 1", 1_000),
        ("-t1 -m -p95 -h60 -i200 -D 1", 1_000),
        ("-Sp80 -h 200000 -i 1000 -D 1 -N", 1),
    ] {
        let text = original("cyclictest", words, &scratch);
        assert!(text.contains("policy: "), "{words}: a view");
        let cell = imported(&scratch.file(&format!("view{}.txt", words.replace(' ', "")), &text));
        let threads = behind(&text, "# Min Latencies:").len();
        let mut sums = ["# Total:", "# Histogram Overflows:"].map(|start| behind(&text, start));
        // -H adds a column for all threads.
        sums.iter_mut().for_each(|sums| sums.truncate(threads));
        if sums[0].iter().zip(&sums[1]).any(|(within, beyond)| within + beyond == 0) {
            inconclusive(&format!("{words}: a thread has not woken up"));
            continue;
        }
        let (min, max) = (behind(&text, "# Min Latencies:"), behind(&text, "# Max Latencies:"));
        let (min, max) = (min.iter().min().unwrap(), max.iter().max().unwrap());
        assert_ends(&cell["summary"], sums.iter().flatten().sum(), *min, *max, unit_ns);
        assert_quantiles(&cell["summary"], &rows(&text, threads), sums[1].iter().sum(), unit_ns);
        assert!(cell["conditions"]["period_ns"].is_u64(), "{words}");
    }
}

#[test]
fn root_cyclictest_values_say_the_same_here() {
    skip_unless!(can_run("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("import-values");
    let text = original("cyclictest", "-v -p80 -i1000 -d0 -t2 -l500", &scratch);
    let (mut counts, mut cycles) = (Counts::new(), BTreeMap::<u64, Vec<u64>>::new());
    for line in text.lines() {
        let fields: Vec<_> = line.split(':').map(|field| field.trim().parse::<u64>()).collect();
        if let [Ok(thread), Ok(cycle), Ok(value)] = fields[..] {
            *counts.entry(value).or_default() += 1;
            cycles.entry(thread).or_default().push(cycle);
        }
    }
    let cell = imported(&scratch.file("v.txt", &text));
    let n = counts.values().sum();
    assert_ends(&cell["summary"], n, *counts.keys().next().unwrap(), *counts.keys().next_back().unwrap(), 1_000);
    assert_mean(&cell["summary"], counts.iter().map(|(value, n)| value * n).sum::<u64>() as f64 * 1e3 / n as f64);
    assert_quantiles(&cell["summary"], &counts, 0, 1_000);
    assert_eq!(cell["conditions"]["period_ns"], 1_000_000);
    // The main thread of cyclictest may print too late for some values; those after the last printed one remain
    // unknown.
    let has_gap = cycles.values().any(|cycles| cycles.windows(2).any(|pair| pair[1] != pair[0] + 1));
    let is_told = cell["findings"].to_string().contains("are missing from the output of -v");
    assert_eq!((is_told, cycles.len()), (has_gap, 2));
}

/// Histograms in JSON of cyclictest or jitterdebugger, summed over all threads.
fn counts_of(threads: &Value) -> Counts {
    let mut counts = Counts::new();
    for thread in threads.as_object().unwrap().values() {
        for (value, n) in thread["histogram"].as_object().unwrap() {
            *counts.entry(value.parse().unwrap()).or_default() += n.as_u64().unwrap();
        }
    }
    counts
}

/// Value of `key` for every thread.
fn of_threads(threads: &Value, key: &str) -> Vec<u64> {
    threads.as_object().unwrap().values().map(|thread| thread[key].as_u64().unwrap()).collect()
}

/// Minimum and maximum over all threads.
fn ends_of(threads: &Value) -> (u64, u64) {
    let (min, max) = (of_threads(threads, "min"), of_threads(threads, "max"));
    (*min.iter().min().unwrap(), *max.iter().max().unwrap())
}

#[test]
fn root_cyclictest_json_says_the_same_here() {
    skip_unless!(can_run("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("import-json");
    original("cyclictest", "-q -h400 --json=c.json --policy=rr -p70 -i1000 -d0 -t2 -l500", &scratch);
    let theirs: Value = read_json(scratch.path("c.json"));
    let cell = imported(&scratch.path("c.json"));
    let (threads, counts) = (&theirs["thread"], counts_of(&theirs["thread"]));
    let (min, max) = ends_of(threads);
    let samples: u64 = of_threads(threads, "cycles").iter().sum();
    assert_ends(&cell["summary"], samples, min, max, 1_000);
    assert_quantiles(&cell["summary"], &counts, samples - counts.values().sum::<u64>(), 1_000);
    let conditions = &cell["conditions"];
    assert_eq!((&conditions["policy"], &conditions["period_ns"]), (&json!("rr:70"), &json!(1_000_000)));
    let (host, sysinfo) = (&cell["host"], &theirs["sysinfo"]);
    assert_eq!([&host["hostname"], &host["kernel_release"]], [&sysinfo["nodename"], &sysinfo["release"]]);
    assert_eq!(cell["source"]["version"], theirs["rt_test_version:"]);
}

#[test]
fn our_own_cyclictest_is_read_with_what_it_adds() {
    let (_machine, scratch) = machine_and_scratch("import-ours");
    let json = scratch.path("ours.json");
    let words = format!("-q -h400 --policy=other -i1000 -t1 -a{} -l300 --json={}", a_cpu(), json.display());
    let said = punctual(&format!("cyclictest {words}")).expect_success();
    let theirs: Value = read_json(&json);
    let thread = &theirs["thread"]["0"];
    let (of_text, of_json) = (imported(&scratch.file("ours.txt", &said.stdout)), imported(&json));
    for cell in [&of_text, &of_json] {
        let summary = &cell["summary"];
        assert_eq!([&summary["samples"], &summary["missed"]], [&thread["cycles"], &thread["missed"]]);
        assert_eq!(cell["conditions"]["policy"], "other");
    }
    assert_eq!(
        json!([of_json["conditions"]["period_ns"], of_json["host"]["hostname"]]),
        json!([1_000_000, theirs["sysinfo"]["nodename"]])
    );
    assert!(!of_json["findings"].to_string().contains("passes over due times"), "{of_json}");
}

#[test]
fn root_jitterdebugger_says_the_same_here() {
    skip_unless!(can_run("jitterdebugger", "jitterdebugger"));
    let (_machine, scratch) = machine_and_scratch("import-jitterdebugger");
    for (dir, option, unit_ns) in [("us", "", 1_000), ("ns", "-N", 1)] {
        original("jitterdebugger", &format!("{option} -s -p 80 -i 1000 -l 1000 -o {dir}"), &scratch);
        let file = scratch.path(dir).join("results.json");
        let theirs: Value = read_json(&file);
        let (threads, counts) = (&theirs["cpu"], counts_of(&theirs["cpu"]));
        let ((min, max), samples) = (ends_of(threads), of_threads(threads, "count").iter().sum::<u64>());
        let cell = imported(&file);
        assert_ends(&cell["summary"], samples, min, max, unit_ns);
        assert_quantiles(&cell["summary"], &counts, samples - counts.values().sum::<u64>(), unit_ns);
        assert_eq!(
            (&cell["resolution_ns"], &cell["host"]["hostname"]),
            (&json!(unit_ns), &theirs["sysinfo"]["nodename"])
        );

        let file = scratch.path(dir).join("samples.raw");
        let bytes = std::fs::read(&file).unwrap();
        let mut counts = Counts::new();
        for record in bytes.chunks_exact(28) {
            *counts.entry(u64::from_le_bytes(record[20..].try_into().unwrap())).or_default() += 1;
        }
        let cell = imported(&file);
        let (min, max) = (*counts.keys().next().unwrap(), *counts.keys().next_back().unwrap());
        assert_ends(&cell["summary"], counts.values().sum(), min, max, unit_ns);
        assert_quantiles(&cell["summary"], &counts, 0, unit_ns);
        // The file contains neither; both are inferred.
        assert_eq!(json!([cell["conditions"]["period_ns"], cell["resolution_ns"]]), json!([1_000_000, unit_ns]));
    }
}
