//! Tests of every format: golden summaries, consistency with the tools' own figures, and errors with their line.

use super::*;
use expect_test::expect_file;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::PathBuf;

/// Path of a file of `tests/files`. Those of cyclictest, jitterdebugger and rtla 6.1 were written by the tools (rtla in
/// an emulated guest with Debian's PREEMPT_RT kernel), the others by hand from documentation and sources.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn read(name: &str) -> Vec<Imported> {
    // Those whose names end in -us do not state their unit.
    let unit = name.contains("-us.").then_some(Unit::Us).filter(|_| !name.ends_with(".raw"));
    let stated = ImportOptions { unit, ..ImportOptions::default() };
    import(&fixture(name), &stated).unwrap_or_else(|err| panic!("{err}"))
}

/// Summary of an imported file in a few lines.
fn summary(name: &str) -> String {
    let mut text = format!("== {name}\n");
    for imported in read(name) {
        let Imported { source, conditions, measured, resolution, host, threads, remarks, started_unix_ms, .. } =
            imported;
        let punctual_model::Source { tool, version, command_line, .. } = source;
        writeln!(text, "{tool}, version {version:?}, called {command_line:?}").unwrap();
        writeln!(text, "{conditions:?}").unwrap();
        writeln!(text, "started {started_unix_ms:?}, measured {measured:?}, resolution {} ns", resolution.ns())
            .unwrap();
        let punctual_model::Host { hostname, kernel_release, architecture, preemption, .. } = host;
        writeln!(text, "{hostname:?} {kernel_release:?} {architecture:?} {preemption:?}").unwrap();
        for thread in threads {
            let histogram = thread.histogram.as_ref();
            let known = histogram.map(|h| (h.n, h.min_ns, h.max_ns, h.mean_ns(), h.buckets().count()));
            let punctual_model::ImportedThread {
                number,
                cpu,
                samples,
                beyond,
                min_ns,
                max_ns,
                mean_ns,
                missed,
                slices,
                ..
            } = thread;
            let slices = slices.len();
            writeln!(text, "  {number} cpu {cpu:?}: {samples:?} samples, known {known:?}, {beyond:?}").unwrap();
            writeln!(text, "    min {min_ns:?} mean {mean_ns:?} max {max_ns:?} missed {missed:?} slices {slices}")
                .unwrap();
        }
        remarks.iter().for_each(|remark| writeln!(text, "  - {remark}").unwrap());
    }
    text
}

#[test]
fn every_kind_of_file_is_read() {
    let names = [
        "cyclictest-q.txt",
        "cyclictest-q-ns.txt",
        "cyclictest-h.txt",
        "cyclictest-H-all.txt",
        "cyclictest-h-2.7.txt",
        "cyclictest-view-h.txt",
        "cyclictest-prompt.txt",
        "cyclictest-pod.txt",
        "cyclictest-pasted.txt",
        "cyclictest-ticks.txt",
        "cyclictest-v.txt",
        "cyclictest.json",
        "cyclictest-no-histogram.json",
        "jitterdebugger.json",
        "jitterdebugger-us.raw",
        "jitterdebugger-ns.raw",
        "rtla-timerlat.txt",
        "rtla-osnoise.txt",
        "rtla-6.1-timerlat.txt",
        "rtla-6.1-ns.txt",
        "rtla-6.1-stopped.txt",
        "rtla-6.1-osnoise.txt",
        "rtla-osnoise-none.txt",
        "rteval-cyclictest.xml",
        "rteval-timerlat.xml",
        "xenomai-latency.txt",
        "xenomai-plot.txt",
        "xenomai-plot-full.txt",
        "latmus-live.txt",
        "latmus-plot.txt",
        "oslat.txt",
        "oslat.json",
        "osadl-table.txt",
        "osadl-rt-dataset.json",
        "hdr-v0.hlog",
        "hdr-v1.hlog",
        "hdr-v2-tagged.hlog",
        "hdr-us.hlog",
        "ros2-rttest.txt",
        "ros2-performance-test.json",
        "ros2-performance-test.csv",
        "samples-us.txt",
    ];
    let all: String = names.iter().map(|name| summary(name).replace(env!("CARGO_MANIFEST_DIR"), "")).collect();
    expect_file!["../tests/golden.txt"].assert_eq(&all);
    let found = std::fs::read_dir(fixture("")).unwrap().count();
    assert_eq!(found, names.len(), "every file of tests/files is read here");
}

/// The result of a program in a file of `tests/files`, cut off after `bytes`.
fn result_of(name: &str, read: &str, bytes: usize) -> Result<Imported, String> {
    let text = std::fs::read(fixture(name)).unwrap();
    result(&text[..bytes.min(text.len())], &read.parse().unwrap(), name)
}

#[test]
fn results_of_programs_are_read_only_in_the_format_that_is_expected() {
    const ALL: usize = usize::MAX;
    for (name, read, expected) in [
        ("cyclictest-h.txt", "cyclictest", None),
        ("cyclictest.json", "cyclictest", None),
        ("jitterdebugger.json", "jitterdebugger", None),
        ("jitterdebugger-us.raw", "jitterdebugger", None),
        ("oslat.txt", "oslat", None),
        ("oslat.json", "oslat", None),
        ("xenomai-latency.txt", "xenomai-latency", None),
        ("latmus-plot.txt", "latmus", None),
        ("osadl-table.txt", "table-us", None),
        ("rtla-timerlat.txt", "rtla/thread", None),
        ("rtla-timerlat.txt", "rtla", Some("latencies of several kinds (irq, thread")),
        ("rtla-timerlat.txt", "rtla/noise", Some("it has latencies of kind irq, thread")),
        ("cyclictest-h.txt", "oslat", Some("no result of oslat: the output is in another format")),
        ("osadl-table.txt", "cyclictest", Some("another format")),
        ("jitterdebugger-us.raw", "cyclictest", Some("another format")),
    ] {
        match (result_of(name, read, ALL), expected) {
            (Ok(_), None) => {}
            (Err(reason), Some(expected)) => assert!(reason.contains(expected), "{name} as {read}: {reason}"),
            (found, _) => panic!("{name} as {read}: {found:?}"),
        }
    }
    assert_eq!(result_of("oslat.txt", "oslat", 0), Err("no result of oslat: nothing was written".to_owned()));
    // The last line but one: half a result is none.
    let text = std::fs::read_to_string(fixture("oslat.txt")).unwrap();
    let cut = text.find("    Duration").unwrap();
    let reason = result_of("oslat.txt", "oslat", cut).unwrap_err();
    assert!(reason.contains("the output may be truncated"), "{reason}");
}

#[test]
fn oslats_json_that_contradicts_itself_is_refused() {
    let json = std::fs::read_to_string(fixture("oslat.json")).unwrap();
    for (old, new, reason) in [
        ("\"cpu\": 1", "\"cpu\": 0", "the same CPU twice"),
        ("\"cpu\": 1", "\"cpu\": -1", "thread 1: invalid `cpu`"),
        ("\"1\": {", "\"one\": {", "thread one: invalid number"),
        ("\"avg\"", "\"mean\"", "thread 0: expected `histogram`, `min`, `avg` and `max`"),
        ("\"duration\": 1.953", "\"duration\": 1e12", "thread 0: invalid `duration`"),
    ] {
        assert_eq!(refused(&json.replacen(old, new, 1)), format!("-: {reason}"), "{new}");
    }
}

#[test]
fn xenomais_latency_without_statistics_is_refused_and_negative_latencies_have_no_histogram() {
    let head = "RTT|  00:00:01  (periodic user-mode task, 1000 us period, priority 99)\n\
                RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst\n";
    let read = |text: &str| result(format!("{head}{text}").as_bytes(), &"xenomai-latency".parse().unwrap(), "latency");
    let too_short = "RTS|  10000.000|      0.000| -10000.000|       0|     0|    00:00:01/00:00:01\n";
    let reason = read(too_short).unwrap_err();
    assert!(reason.contains("measure 3 s at least (-T 3)"), "{reason}");
    let rows = "HSD|    avg|   0 -  1 |     2998\nHSD|    avg|   1 -  2 |        1\n";
    let early = read(&format!("{rows}RTS|     -0.482|     -0.474|     -0.447|       0|     0|    00:00:03/00:00:03\n"));
    let early = early.unwrap();
    assert_eq!((early.threads[0].min_ns, early.threads[0].max_ns), (Some(-482), Some(-447)));
    assert_eq!((&early.threads[0].histogram, early.threads[0].samples), (&None, None));
    assert!(
        early.remarks[0].contains("the histogram is left out; set the clock's gravity to 0"),
        "{:?}",
        early.remarks
    );
}

/// Cyclictest's own figures below its histogram, read by an independent parser.
#[test]
fn a_histogram_agrees_with_the_lines_below_it() {
    for name in [
        "cyclictest-h.txt",
        "cyclictest-H-all.txt",
        "cyclictest-h-2.7.txt",
        "cyclictest-view-h.txt",
        "cyclictest-prompt.txt",
    ] {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let below = |start: &str, i: usize| -> Option<i64> {
            let line = text.lines().find(|line| line.starts_with(start))?;
            line[start.len()..].split_whitespace().nth(i)?.parse().ok()
        };
        for (i, thread) in read(name)[0].threads.iter().enumerate() {
            let histogram = thread.histogram.as_ref().unwrap();
            assert_eq!(thread.min_ns, below("# Min Latencies:", i).map(|us| us * 1_000), "{name}");
            assert_eq!(thread.max_ns, below("# Max Latencies:", i).map(|us| us * 1_000), "{name}");
            let overflows = below("# Histogram Overflows:", i);
            assert_eq!(thread.beyond.and_then(|b| b.samples).map(|n| i64::try_from(n).unwrap()), overflows, "{name}");
            if let Some(total) = below("# Total:", i) {
                assert_eq!(i64::try_from(histogram.n).unwrap(), total, "{name}");
            }
            assert_eq!(thread.samples.unwrap(), histogram.n + thread.beyond.unwrap().samples.unwrap(), "{name}");
        }
    }
}

/// A file without -q in the layout of rt-tests 1: its `T:` lines are one redraw older than the histogram below them.
#[test]
fn the_histogram_counts_where_the_status_lines_are_older() {
    let text = "T: 0 ( 2212) P:95 I:200 C:2999375 Min:      2 Act:    4 Avg:    5 Max:      93\n\
                # Histogram\n000004 2000000\n000005 998821\n# Total: 002998821\n# Min Latencies: 00002\n\
                # Avg Latencies: 00006\n# Max Latencies: 00103\n# Histogram Overflows: 00604\n";
    let read = |text: &str| super::text(text.as_bytes(), "x", &ImportOptions::default());
    let thread = read(text).unwrap().remove(0).threads.remove(0);
    assert_eq!((thread.samples, thread.beyond.unwrap().samples), (Some(2_999_425), Some(604)));
    let ends = (thread.min_ns, thread.mean_ns, thread.max_ns);
    assert_eq!(ends, (Some(2_000), Some(6_000.0), Some(103_000)), "those below the histogram");
    // More cycles than in the histogram indicate two runs, or a damaged file.
    assert_eq!(
        refused(&text.replace("C:2999375", "C:2999426")),
        "-: thread 0: its T: line has 2999426 cycles, its histogram 2999425"
    );
    // Without the overflow line the histogram may be incomplete.
    let bare = text.replace("# Histogram Overflows: 00604\n", "");
    assert_eq!(read(&bare).unwrap()[0].threads[0].samples, Some(2_999_375));
}

#[test]
fn a_copied_console_tells_the_command_line() {
    let status = "T: 0 ( 1) P:80 I:1000 C: 5 Min: 1 Act: 1 Avg: 1 Max: 1\n";
    for prompt in [
        "$ cyclictest -p80",
        "pi@pi:~ $ sudo ./rt-tests/cyclictest -p80",
        "[root@rt ~]# chrt -f 99 cyclictest",
        "# cyclictest -q",
        "^C",
    ] {
        let text = format!("{prompt}\n{status}^Croot@pi:~# \n");
        assert_eq!(
            super::text(text.as_bytes(), "x", &ImportOptions::default()).unwrap()[0].threads[0].samples,
            Some(5),
            "{prompt}"
        );
    }
    for line in ["$ make", "make > log", "100%", "hello"] {
        assert_eq!(refused(&format!("{status}{line}\n")), "2: invalid line: expected output of cyclictest", "{line}");
    }
}

/// The count of a class is that of its row less one (`dump_histo_gnuplot` of Xenomai); samples are placed at its edge,
/// not its middle.
#[test]
fn classes_of_xenomais_plot_are_exact() {
    let imported = read("xenomai-plot.txt").remove(0);
    let thread = &imported.threads[0];
    let histogram = thread.histogram.as_ref().unwrap();
    let samples = [(0, 5_500), (1_000, 4_200), (2_000, 250), (4_000, 40), (5_000, 11)];
    let mut mine = punctual_model::Histogram::default();
    samples.iter().for_each(|(ns, n)| mine.record_n(*ns, *n));
    assert_eq!((histogram, thread.samples, thread.beyond), (&mine, Some(10_001), None));
    let summary = punctual_analysis::summarise_imported(&[imported], &punctual_model::Requirement::default());
    let p50 = summary.cells[0].quantiles.at(punctual_model::Level::P50).value_ns().unwrap();
    assert!((0..8).contains(&p50), "the edge of the class 0 to 1 us, as for the other histograms: {p50}");
    assert_eq!(summary.cells[0].mean_ns, Some(636.0), "not that of values cut to their class");
    let rows = |of: &dyn Fn(&mut Vec<String>)| {
        let text = std::fs::read_to_string(fixture("xenomai-plot.txt")).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        of(&mut lines);
        refused(&(lines.join("\n") + "\n"))
    };
    for (of, reason) in [
        (
            &(|lines: &mut Vec<String>| drop(lines.remove(13))) as &dyn Fn(&mut Vec<String>),
            "14: class that does not follow the one before",
        ),
        (
            &|lines| lines.truncate(16),
            "-: no rows between the outer edges of its classes: truncated, or nothing was measured",
        ),
        (&|lines| lines[17] = "7 1".to_owned(), "18: an end that is not the edge of the last class"),
        (&|lines| lines[13] = "2.5 0".to_owned(), "14: a class with 0, where each has its samples and one"),
        (&|lines| lines[13] = "2.5".to_owned(), "14: invalid row of latency -g: expected a latency in us and a number"),
        (&|lines| drop(lines.remove(2)), "-: no line of figures below `# ----lat min|`"),
        (&|lines| lines[2] = "# 1|2|3|".to_owned(), "3: invalid number of overruns ``"),
    ] {
        assert_eq!(rows(of), reason);
    }
}

#[test]
fn a_data_set_of_osadl_says_what_it_says_and_no_more() {
    let text = std::fs::read_to_string(fixture("osadl-rt-dataset.json")).unwrap();
    for (from, to, reason) in [
        ("\"1.0\"", "\"2.0\"", "-: unsupported: version 2.0 of RT Dataset; expected 1"),
        ("microseconds", "ticks", "-: invalid granularity `ticks`: expected microseconds or nanoseconds"),
        ("[ 41, 9 ]", "[ 41 ]", "-: latency.maxima has 1 values for 2 cores"),
        ("[ 41, 9 ]", "[ 41, 8 ]", "-: latency.cores[2]: its maximum is 8000 ns, its histogram goes to 9000 ns"),
        ("[ 0, 1, 2,", "[ 0, 1, 1,", "-: latency.cores begins with latency classes in descending order"),
        ("[ 0, 0, 5444,", "[ 0, 5444,", "-: latency.cores[1]: 9 counts for 10 latency classes"),
    ] {
        assert_eq!(refused(&text.replace(from, to)), reason);
    }
    let without =
        super::text(text.replace("[ 41, 9 ]", "[]").as_bytes(), "x", &ImportOptions::default()).unwrap().remove(0);
    assert_eq!((without.threads[0].max_ns, without.threads[0].beyond), (Some(8_000), None));
    assert!(without.remarks.iter().any(|remark| remark.starts_with("no maxima in the file")));
}

#[test]
fn no_noise_is_a_result_only_of_a_whole_file_of_osnoise() {
    let text = std::fs::read_to_string(fixture("rtla-osnoise-none.txt")).unwrap();
    let imported = super::text(text.as_bytes(), "x", &ImportOptions::default()).unwrap().remove(0);
    assert_eq!((imported.threads.len(), imported.threads[0].samples), (1, Some(0)));
    let summary = punctual_analysis::summarise_imported(&[imported], &punctual_model::Requirement::default());
    assert_eq!((summary.cells[0].samples, summary.cells[0].mean_ns, summary.cells[0].max_ns), (Some(0), None, None));
    let none = "-: no column: nothing was measured, or the output is truncated";
    assert_eq!(refused(text.split_once("avg:").unwrap().0), none);
    assert_eq!(refused(&text.replace("osnoise", "timerlat")), none);
}

#[test]
fn several_results_in_one_file_are_refused() {
    for (name, first) in [
        ("cyclictest-h.txt", "# Histogram"),
        ("cyclictest-h-2.7.txt", "# Histogram"),
        ("oslat.txt", "        Core:"),
        ("rtla-timerlat.txt", "Index"),
        ("rtla-osnoise-none.txt", "Index"),
        ("xenomai-latency.txt", "RTT|"),
        ("latmus-plot.txt", "# sample count"),
    ] {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let line = text.lines().position(|line| line.starts_with(first)).unwrap() + text.lines().count() + 1;
        let expected = format!("{line}: several results in one file; import them one by one");
        assert_eq!(refused(&text.repeat(2)), expected, "{name}");
    }
}

/// Old versions of rteval take the rows of cyclictest's histogram for all samples.
#[test]
fn rteval_may_drop_samples_of_cyclictest_in_old_versions() {
    let text = std::fs::read_to_string(fixture("rteval-cyclictest.xml")).unwrap();
    for (version, command, at_least_ns) in [
        (" version=\"3.7\"", "-h 3500", None),
        (" version=\"3.10\"", "-h 3500", None),
        (" version=\"2.14\"", "-h 2000", Some(2_000_000)),
        (" version=\"3.6\"", "-h 3500", Some(3_500_000)),
        ("", "", Some(0)),
    ] {
        let text = text.replace(" version=\"3.7\"", version).replace("-h 3500", command);
        let imported = super::text(text.as_bytes(), "x", &ImportOptions::default()).unwrap().remove(0);
        let beyond = at_least_ns.map(|at_least_ns| punctual_model::Beyond { samples: None, at_least_ns });
        assert!(imported.threads.iter().all(|thread| thread.beyond == beyond), "{version}: {:?}", imported.threads);
        let is_drop = |remark: &String| remark.starts_with("rteval drops samples beyond cyclictest's histogram");
        assert_eq!(imported.remarks.iter().any(is_drop), beyond.is_some(), "{version}");
    }
}

#[test]
fn samples_that_a_tool_counted_and_the_file_lacks_are_missing() {
    for (name, from, to, missing) in [
        ("latmus-plot.txt", "# sample count: 59997", "# sample count: 60000", [3].as_slice()),
        ("rtla-timerlat.txt", "count:   100000    100000", "count:   100005     99999", &[5, 0, 0, 0, 0, 0]),
    ] {
        let text = std::fs::read_to_string(fixture(name)).unwrap().replacen(from, to, 1);
        let all = super::text(text.as_bytes(), "x", &ImportOptions::default()).unwrap();
        let found: Vec<u64> = all.iter().flat_map(|one| &one.threads).map(ImportedThread::missing).collect();
        assert_eq!(found, missing, "{name}");
    }
}

#[test]
fn input_that_would_take_much_memory_is_refused() {
    // One record of the first thread, and then those of another: the unit stays unknown.
    let record =
        |thread: u32| [&thread.to_le_bytes()[..], &1_u64.to_le_bytes(), &[0; 8], &5_u64.to_le_bytes()].concat();
    let raw = [record(1), record(2).repeat(512 * 4_096)].concat();
    let Err(raw::RawError::ParseError(flaw)) = raw::read(&raw[..], raw.len() as u64, "x", &ImportOptions::default())
    else {
        panic!("read")
    };
    assert_eq!(flaw.reason, "too few samples to tell us from ns; add --unit us or --unit ns");
    // All buckets of 700 tags.
    let word = |value: u64| value.to_be_bytes();
    let mut histogram = [0x1c84_9328_u32, 2].map(u32::to_be_bytes).concat();
    histogram.extend([word(1), word(1 << 54), word(0)].concat());
    histogram.extend([0, 1].repeat(47 * 128));
    let mut packed = 0x1c84_9309_0000_0000_u64.to_be_bytes().to_vec();
    let mut encoder = flate2::read::ZlibEncoder::new(&histogram[..], flate2::Compression::fast());
    encoder.read_to_end(&mut packed).unwrap();
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, packed);
    let lines = |n: usize| -> String { (0..n).map(|tag| format!("Tag=t{tag},0,1,1,{encoded}\n")).collect() };
    let log = |n| format!("#[Logged with jHiccup version 2]\n#[Histogram log format version 1.2]\n{}", lines(n));
    let whole = super::text(log(2).as_bytes(), "x", &ImportOptions::default()).unwrap();
    assert_eq!(whole[1].threads[0].samples, Some(47 * 128));
    assert_eq!(refused(&log(700)), "700: its histograms have more than 4194304 buckets");
}

/// Inputs of 1 MB that would take minutes of CPU time if the cost were quadratic.
#[test]
fn large_files_are_read_or_refused_in_linear_time() {
    let began = punctual_sys::testing::cpu_us();
    let report = |inner: &str| format!("<rteval>{inner}</rteval>");
    let core = |id: usize, inner: &str| format!("<core id=\"{id}\"><histogram>{inner}</histogram></core>\n");
    let buckets: String = (0..40_000).map(|i| format!("<bucket index=\"{i}\" value=\"1\"/>\n")).collect();
    let cores: String = (0..20_000).map(|i| core(i, "<bucket index=\"1\" value=\"1\"/>")).collect();
    let tool = |inner: &str| format!("<cyclictest command_line=\"x\">{inner}</cyclictest>\n");
    let of = |text: &str| super::text(text.as_bytes(), "x", &ImportOptions::default());
    let read = of(&report(&tool(&core(0, &buckets)))).unwrap();
    assert_eq!(read[0].threads[0].samples, Some(40_000));
    assert_eq!(of(&report(&tool(&cores))).unwrap()[0].threads.len(), 20_000);
    assert_eq!(of(&report(&tool(&core(0, "")).repeat(15_000))).unwrap().len(), 15_000);
    let attributes: String = (0..60_000).map(|i| format!(" a{i}=\"\"")).collect();
    let refused_for = "1: an element with more than 64 attributes";
    assert_eq!(refused(&report(&format!("<a{attributes}/>"))), refused_for);
    let took_us = punctual_sys::testing::cpu_us() - began;
    assert!(took_us < 120_000_000, "{took_us} us");
}

/// rtla's own figures below its histogram, read by an independent parser.
#[test]
fn a_histogram_of_rtla_agrees_with_the_lines_below_it() {
    for (name, unit_ns) in [
        ("rtla-6.1-timerlat.txt", 1_000),
        ("rtla-6.1-ns.txt", 1),
        ("rtla-6.1-stopped.txt", 1_000),
        ("rtla-6.1-osnoise.txt", 1_000),
    ] {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let words = |start: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.starts_with(start)).unwrap();
            line.split_whitespace().skip(1).collect()
        };
        let heads = words("Index");
        let kinds = [("irq", "IRQ"), ("thread", "Thr"), ("noise", "CPU")];
        let mut columns = 0;
        for imported in read(name) {
            let (_, kind) = kinds.iter().find(|(what, _)| *what == imported.conditions.what).unwrap();
            for thread in &imported.threads {
                let column = heads.iter().position(|head| *head == format!("{kind}-{:03}", thread.number)).unwrap();
                let foot = |start: &str| words(start)[column].parse::<i64>().unwrap();
                assert_eq!(thread.samples.map(i64::try_from), Some(Ok(foot("count:"))), "{name}");
                let ends = [thread.min_ns, thread.max_ns].map(|ns| ns.unwrap() / unit_ns);
                assert_eq!(ends, [foot("min:"), foot("max:")], "{name}");
                assert!((thread.mean_ns.unwrap() - (foot("avg:") * unit_ns) as f64).abs() < 1e-9, "{name}");
                let beyond = thread.beyond.map_or(0, |beyond| i64::try_from(beyond.samples.unwrap()).unwrap());
                assert_eq!(beyond, foot("over:"), "{name}");
                columns += 1;
            }
        }
        assert_eq!(columns, heads.len(), "{name}");
    }
}

/// A row of ten microseconds begins at 0, below the minimum; the mean is the tool's own.
#[test]
fn rows_of_rtla_that_span_microseconds_agree_with_its_statistics() {
    let imported = read("rtla-osnoise.txt").remove(0);
    assert_eq!(imported.resolution, punctual_model::Span(10_000));
    let requirement = punctual_model::Requirement::default();
    let summary = punctual_analysis::summarise_imported(&[imported], &requirement);
    let cell = &summary.cells[0];
    // A quantile is the upper edge of its bucket.
    assert_eq!((cell.min_ns, cell.quantiles.at(punctual_model::Level::P50).value_ns()), (Some(1_000), Some(1_003)));
    let mean_ns = (4_000.0 * 55_214.0 + 3_000.0 * 54_646.0) / 109_860.0;
    assert!((cell.mean_ns.unwrap() - mean_ns).abs() < 1.0, "{:?}", cell.mean_ns);
}

#[test]
fn raw_samples_are_those_that_are_in_the_file() {
    for (name, unit_ns, period) in [("jitterdebugger-us.raw", 1_000, "1ms"), ("jitterdebugger-ns.raw", 1, "500us")] {
        let bytes = std::fs::read(fixture(name)).unwrap();
        let records: Vec<(u32, i64)> = bytes
            .chunks_exact(28)
            .map(|record| {
                let thread = u32::from_le_bytes(record[..4].try_into().unwrap());
                (thread, i64::from_le_bytes(record[20..28].try_into().unwrap()) * unit_ns)
            })
            .collect();
        let imported = read(name).remove(0);
        assert_eq!(imported.conditions.period, Some(period.parse().unwrap()), "{name}");
        for thread in &imported.threads {
            let mine: Vec<i64> = records.iter().filter(|r| r.0 == thread.number).map(|r| r.1).collect();
            assert_eq!(thread.histogram, Some(punctual_model::Histogram::of(&mine)), "{name}");
            let of_slices: u64 = thread.slices.iter().map(|slice| slice.histogram.n).sum();
            assert_eq!(of_slices, thread.samples.unwrap(), "{name}");
        }
    }
}

#[test]
fn due_times_without_a_raw_record_are_missing_samples() {
    let whole = std::fs::read(fixture("jitterdebugger-ns.raw")).unwrap();
    let records: Vec<&[u8]> = whole.chunks_exact(28).collect();
    let first = records[0][..4].to_vec();
    let is_first = |record: &[u8]| record[..4] == first;
    // Three of the first thread's in the middle.
    let middle: Vec<usize> = (records.len() / 2..).filter(|i| is_first(records[*i])).take(3).collect();
    let kept: Vec<u8> = records
        .iter()
        .enumerate()
        .filter(|(i, _)| !middle.contains(i))
        .flat_map(|(_, record)| record.to_vec())
        .collect();
    let of = |bytes: &[u8]| {
        let imported = raw::read(bytes, bytes.len() as u64, "x", &ImportOptions::default()).unwrap().remove(0);
        let number = u32::from_le_bytes(first.clone().try_into().unwrap());
        let thread = imported.threads.into_iter().find(|thread| thread.number == number).unwrap();
        (
            thread.missing(),
            thread.missed,
            imported.remarks.into_iter().filter(|remark| remark.contains("no record")).count(),
        )
    };
    assert_eq!([of(&whole), of(&kept)], [(0, Some(0), 0), (3, Some(0), 1)]);
}

#[test]
fn raw_records_of_zeros_are_refused() {
    let whole = std::fs::read(fixture("jitterdebugger-us.raw")).unwrap();
    let refused = |bytes: &[u8]| match raw::read(bytes, bytes.len() as u64, "x", &ImportOptions::default()) {
        Err(raw::RawError::ParseError(flaw)) => flaw.reason,
        other => panic!("{other:?}"),
    };
    let zeros = "is only zeros, as after a power failure";
    assert_eq!(refused(&[0; 2800]), format!("record 1 {zeros}; there is nothing to import"));
    let cut = [&whole[..50 * 28], &[0; 4096]].concat();
    assert_eq!(refused(&cut), format!("record 51 {zeros}; keep the records before it: truncate -s 1400 FILE"));
}

#[test]
fn what_is_stated_fills_only_what_the_file_leaves_open() {
    let stated = ImportOptions {
        unit: None,
        period: Some("200us".parse().unwrap()),
        policy: Some("fifo:99".parse().unwrap()),
        load: Some("none".parse().unwrap()),
    };
    let of = |name: &str| import(&fixture(name), &stated).unwrap().remove(0).conditions;
    let json = of("cyclictest.json");
    assert_eq!((json.period, json.policy), ("1ms".parse().ok(), "fifo:80".parse().ok()), "the file says them");
    assert_eq!(json.stated, ["load"]);
    let osadl = of("osadl-rt-dataset.json");
    assert_eq!((osadl.load.unwrap().to_string().as_str(), osadl.stated.len()), ("idle", 0), "the file says it");
    let table = of("osadl-table.txt");
    assert_eq!((table.period, table.stated), (stated.period, vec!["period".into(), "policy".into(), "load".into()]));
    let ns = ImportOptions { unit: Some(Unit::Ns), ..ImportOptions::default() };
    assert_eq!(import(&fixture("osadl-table.txt"), &ns).unwrap()[0].threads[0].max_ns, Some(187));
}

/// Message for a text without a signature.
const UNKNOWN: &str = "-: unknown format: expected output of cyclictest, jitterdebugger, rtla, rteval, oslat, latency, \
                       latmus, rttest or performance_test, an HdrHistogram log, or latencies with --unit";

/// The error message for a rejected text.
fn refused(text: &str) -> String {
    match super::text(text.as_bytes(), "x", &ImportOptions::default()) {
        Ok(read) => panic!("read: {read:?}"),
        Err(ParseError { line, reason }) => {
            format!("{}: {reason}", line.map_or("-".to_owned(), |line| line.to_string()))
        }
    }
}

#[test]
fn mistakes_are_named_with_their_line() {
    let of = |name: &str| std::fs::read_to_string(fixture(name)).unwrap();
    let (h, rtla) = (of("cyclictest-h-2.7.txt"), of("rtla-timerlat.txt"));
    for (text, reason) in [
        ("", UNKNOWN),
        ("hello\n", UNKNOWN),
        ("{}", UNKNOWN),
        ("{\"a\":\n", "2: EOF while parsing a value"),
        (
            "{\"cmdline\": \"cyclictest\", \"thread\": {\n \"0\": {\"cycles\": -1}}}",
            "2: invalid value: integer `-1`, expected u64",
        ),
        (
            "{\"cmdline\": \"cyclictest\", \"thread\": {\"0\": {\"histogram\": {\"x\": 1}}}}",
            "-: thread 0: invalid latency `x`",
        ),
        ("{\"version\": 2, \"cpu\": {}}", "-: unsupported: version 2 of results.json; expected 3"),
        (
            "{\"version\": 3, \"cpu\": {\"0\": {\"histogram\": {\"5\": 2}, \"count\": 1, \"min\": 5, \"max\": 5, \"avg\": 5}}}",
            "-: cpu 0: 2 samples, more than its count",
        ),
        (&h.replace("000034", "00x034"), "4: invalid count `00x034`"),
        (&h.replace("000003 000034\t", "000003 "), "4: expected as many counts as in the rows before (2), found 1"),
        (
            &h.replace("# Min Latencies: 00003 ", "# Min Latencies: 00003 1 1 "),
            "-: the rows have 2 counts, the lines below them 4 threads",
        ),
        (&h.replace("# Histogram\n", "# Histogram\nfoo bar\n"), "3: invalid line: expected output of cyclictest"),
        ("T: 0 ( 1) P:80 I:1000 C: 5 Min: 1 Act: 1 Avg: 1\n", "1: T: line without Max:"),
        ("T: 0 ( 1) P:80 I:1000 C: x Min: 1 Act: 1 Avg: 1 Max: 1\n", "1: invalid number `x`"),
        ("       0:       1:      21\n       0:       x:      21\n", "2: invalid cycle `x`"),
        (&rtla.replace("38990     52000 ", "38990 "), "6: 5 counts for 6 columns"),
        (&rtla.replace("Usr-001", "Foo-001"), "4: invalid column `Foo-001` of rtla"),
        (
            &rtla.replace("Index   IRQ-000   Thr-000   Usr-000   IRQ-001   Thr-001   Usr-001\n", ""),
            "4: a row before the line `Index ...`; unsupported: --no-index and --no-header",
        ),
        (
            "# RTLA timerlat histogram\nIndex IRQ-000\n0 1\n",
            "-: no line `# Time unit is ...`; unsupported: --no-header",
        ),
        ("<rteval>\n<a></b></rteval>", "2: invalid XML: expected 'a' tag, not 'b'"),
        ("<foo/>", "1: invalid root element <foo>: expected a report of rteval"),
        ("<rteval/>", "-: no measurement of cyclictest or timerlat"),
        ("RTH|--\nRTD| 1|2\n", "2: line RTD with fewer than seven columns"),
        ("RTT| x\n", "-: no line RTD or RTS: nothing was measured, or the output is truncated"),
        ("# context: user\n1\n", "2: invalid histogram row: expected a latency and a count"),
        ("# latency\n1 2\n2 3 4\n", "3: expected as many counts as in the rows before (1), found 2"),
        ("# latency\n1 2\n2\n", "3: latency class without a count"),
        (
            "# latency\n1 18446744073709551615\n",
            "2: invalid count 18446744073709551615: more samples than a measurement can have",
        ),
        ("# latency\n99999999999999999 1\n", "-: invalid latency 99999999999999999: longer than a year"),
    ] {
        assert_eq!(refused(text), reason, "{text:?}");
    }
}

#[test]
fn what_is_not_there_or_not_text_is_named() {
    let latin1 = import(&fixture("nowhere"), &ImportOptions::default()).unwrap_err().to_string();
    assert!(latin1.starts_with("cannot read ") && latin1.contains("nowhere: No such file"), "{latin1}");
    let invalid = super::text(b"T: 0\n\xff\n", "x", &ImportOptions::default()).unwrap_err();
    assert_eq!(invalid, ParseError::at(2, "expected text, or samples.raw of jitterdebugger"));
}

/// A file by its content: what it is, and what reads it.
#[test]
fn what_another_program_reads_is_named() {
    let of = |bytes: &[u8]| match detect::content(bytes) {
        Ok(Content::Text) => refused(std::str::from_utf8(bytes).unwrap()),
        Ok(Content::Raw) => "raw".to_owned(),
        Err(ParseError { line, reason }) => format!("{}: {reason}", line.map_or(0, |line| line)),
    };
    let mut page = [0; 512];
    (page[0], page[8], page[9]) = (7, 0xf0, 0x0f);
    let mut tar = [b' '; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let json = |command: &str| format!("{{\"cmdline:\": \"{command}\", \"thread\": {{\"0\": {{\"cycles\": 1}}}}}}");
    let [oslat, signaltest, pmqtest] = ["/x/my-oslat -D 1", "/usr/bin/signaltest -l 9", "./pmqtest"].map(json);
    let reads = "punctual watch --from FILE reads it";
    for (bytes, what, remedy) in [
        (&b"\x17\x08\x44tracing6\0"[..], "trace.dat of trace-cmd", reads),
        (b"PERFILE2", "perf.data", reads),
        (b"# tracer: nop\n#\n", "text of ftrace", reads),
        (b"          <idle>-0     [001] d..2.  52.123456: sched_switch: a=b\n", "text of ftrace", reads),
        (b"     a b-7 (7) [001] 52.123456: sched_switch: a=b\n", "text of ftrace", reads),
        (b"cpus=2\n", "text of ftrace", reads),
        (&page, "raw pages of the kernel's ring buffer", "punctual watch --from DIRECTORY"),
        (b"\x1f\x8b\x08\0", "compressed data", "gzip -d FILE first"),
        (b"\x28\xb5\x2f\xfd", "zstd data", "punctual explain FILE --again"),
        (b"PK\x03\x04", "an archive", "unzip FILE first"),
        (&tar, "an archive", "tar xf FILE first"),
        (b"\x89PNG\r\n\x1a\n\0", "a picture", "import the file that it was drawn from"),
        (b"<svg xmlns='x'/>", "a picture", "import the file that it was drawn from"),
        (b"<!doctype html>", "a web page", "save the file itself"),
        (b"\xff\xfeT\0:\0", "UTF-16 text", "iconv"),
        (b"\x01\0\x02", "unknown binary format", "expected text, or samples.raw"),
        (b"                   Timer Latency\n  0 00:00:59\n", "rtla top", "rtla timerlat hist"),
        (b"hwlatdetect:  test duration 10 seconds\n", "hwlatdetect", "without a distribution"),
        (b"     usecs               : count\n", "bcc or bpftrace", "powers of two"),
        (b"@us:\n[2, 4)   1 |@@@@|\n", "bcc or bpftrace", "powers of two"),
        (b"TSC: 3500 MHz\npolicy: fifo\nT: 0 P:10 I:1000 C: 4\n", "ticks of the TSC", "divide them"),
        (b"T: 0 (17239) P:10 C:     50 Min:     41 Act:   85 Avg:   56 Max:     118\n", "rt-tests", "oslat are read"),
        (b"T: 0 ( 7) I:1000 C: 50 Min: 4 Act: 8 Avg: 5 Max: 11\n", "another program of rt-tests", "oslat are read"),
        (b"#0: ID17249, P10, CPU0, I1000; #1: ID17250, P10, CPU1, Cycles 50\n", "rt-tests", "oslat are read"),
        (b"Min latency: 7049\n", "the statistics of rttest", "import the samples"),
        (b"{\"format\": 9, \"tool\": \"punctual 0.1.0\"}\n{}\n", "a result of punctual", "punctual show DIR"),
        (oslat.as_bytes(), "JSON of my-oslat of rt-tests", "only those of cyclictest"),
        (signaltest.as_bytes(), "JSON of signaltest of rt-tests", "only those of cyclictest"),
        (pmqtest.as_bytes(), "JSON of pmqtest of rt-tests", "only those of cyclictest"),
        (b"{\"thread\": {\"0\": {\"cycles\": 1}}}", "no `cmdline:` in its JSON", "expected that of cyclictest"),
        (b"{\"id\":\"x\",\"rate\":100,\"analysis_results\":[]}", "unknown format", "expected output of"),
    ] {
        let said = of(bytes);
        assert!(said.contains(what) && said.contains(remedy), "{}: {said}", String::from_utf8_lossy(bytes));
    }
    for (at, magic, foreign) in detect::MAGIC {
        let bytes = [&vec![b' '; *at], *magic].concat();
        assert_eq!(detect::content(&bytes), Err((*foreign).into()));
    }
}

/// Numbers without a head may be times, and are latencies only if that is stated, and plausible.
#[test]
fn numbers_are_latencies_only_where_that_is_stated_and_plausible() {
    let of = |text: &str, unit: Option<Unit>| {
        let stated = ImportOptions { unit, ..ImportOptions::default() };
        super::text(text.as_bytes(), "x", &stated).map(|mut all| all.remove(0)).map_err(|err| err.reason)
    };
    let refused = |text: &str, unit: Option<Unit>| of(text, unit).unwrap_err();
    let times: String = (0..9).map(|i| format!("{i} {i}000000 9893 0 0\n")).collect();
    assert!(refused(&times, None).starts_with("a table without a head `# Latency` may be anything"));
    let rising = "not a histogram: its counts rise with the class, as times do";
    let apart = "not a histogram: its classes are 1000 units apart, as times are";
    let course = "0,12\n1000,15\n2000,11\n3000,250\n";
    let slope: String = (1_u64..17).map(|i| format!("{i} {}\n", i * i)).collect();
    let hill: String = (1_u64..17).map(|i| format!("{i} {}\n", i * (20 - i))).collect();
    for (text, unit, reason) in [
        (times.as_str(), Unit::Us, Some(rising)),
        (course, Unit::Us, Some(apart)),
        (course, Unit::Ns, None),
        ("1 2000000000000\n", Unit::Us, Some("not a histogram: 2000000000000 samples")),
        ("1 1000000000000\n", Unit::Us, None),
        (&slope, Unit::Us, Some(rising)),
        (&hill, Unit::Us, None),
        ("1 10\n2 20\n", Unit::Us, None),
        ("1 10\n2 20\n3 30\n", Unit::Us, Some(rising)),
    ] {
        match (of(text, Some(unit)), reason) {
            (Ok(_), None) => {}
            (Err(found), Some(reason)) => assert!(found.starts_with(reason), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
    let lines = "12.5\n13.1\n250.0\n";
    assert_eq!(refused(lines, None), "one latency a line does not state its unit: add --unit ns, us, ms or s");
    let max_ns = |unit| of(lines, Some(unit)).unwrap().threads[0].max_ns;
    assert_eq!(
        [Unit::Ns, Unit::Us, Unit::Ms, Unit::S].map(max_ns),
        [Some(250), Some(250_000), Some(250_000_000), Some(250_000_000_000)]
    );
    assert_eq!(refused("1\n2 3\n", Some(Unit::Us)), "expected one latency");
    assert_eq!(
        refused("1\nnan\n", None),
        "unknown format: rows of numbers with `nan`; one column of latencies can be \
        imported with --unit"
    );
    assert_eq!(refused("1e30\n", Some(Unit::S)), "invalid latency `1e30`: longer than a year");
}

/// Defects of an interval log, each in one line.
#[test]
fn damaged_interval_logs_are_refused() {
    let of = |name: &str| std::fs::read_to_string(fixture(name)).unwrap();
    let (v2, us) = (of("hdr-v2-tagged.hlog"), of("hdr-us.hlog"));
    let head = "#[Histogram log format version 1.3]\n\"StartTimestamp\",\"Interval_Length\"\n";
    let line = v2.lines().nth(4).unwrap();
    let (place, encoded) = line.rsplit_once(',').unwrap();
    for (text, reason) in [
        (head.to_owned(), "-: no interval in the HdrHistogram log: nothing was measured"),
        (us, "5: an HdrHistogram log does not state the unit of its values: add --unit ns, us, ms or s"),
        (v2.replace("0.127,1.001,", "0.127,"), "5: expected start, length, maximum and histogram"),
        (v2.replace("0.127,1.001,", "x,1.001,"), "5: invalid start `x`"),
        (v2.replace("0.127,1.001,", "-1,1.001,"), "5: invalid start or length of an interval"),
        (v2.replace(encoded, "HIST"), "5: truncated histogram"),
        (v2.replace(encoded, "AAAAAAAA"), "5: not a compressed HdrHistogram (version 0, 1 or 2)"),
        (v2.replace(encoded, &encoded[..40]), "5: damaged histogram: "),
        (v2.replace(encoded, "!"), "5: invalid base64: "),
        (v2.replace(line, &format!("Tag=x{place}")), "5: "),
    ] {
        assert!(refused(&text).starts_with(reason), "{reason}: {}", refused(&text));
    }
}

#[test]
fn lines_before_the_table_are_skipped_and_those_within_are_not() {
    let status = "T: 0 ( 1) P:80 I:1000 C: 5 Min: 1 Act: 1 Avg: 1 Max: 1\n";
    let read = |head: &str| {
        let text = format!("{head}\n{status}");
        super::text(text.as_bytes(), "x", &ImportOptions::default()).unwrap().remove(0).source
    };
    for (head, command, version) in [
        ("cyclictest V 2.40", None, Some("2.40")),
        ("cgexec -g cpuset:rt cyclictest -m -p 95", Some("cyclictest -m -p 95"), None),
        ("cmd to run: /usr/bin/cyclictest -q", Some("cyclictest -q"), None),
        ("we start cyclictest now", None, None),
        ("2026-11-28 10:00:00 begin\n### env ###\nplugin 'wakeup_rt'\nHOME=/root", None, None),
    ] {
        let source = read(head);
        assert_eq!((source.command_line.as_deref(), source.version.as_deref()), (command, version), "{head}");
    }
    assert_eq!(refused(&format!("{status}HOME=/root\n")), "2: invalid line: expected output of cyclictest");
}

#[test]
fn a_record_that_is_cut_off_is_said() {
    let bytes = std::fs::read(fixture("jitterdebugger-ns.raw")).unwrap();
    let cut = bytes.len() - 5;
    let all = raw::read(&bytes[..cut], cut as u64, "x", &ImportOptions::default()).unwrap();
    assert_eq!(all[0].threads.iter().filter_map(|thread| thread.samples).sum::<u64>(), 499);
    assert_eq!(all[0].remarks.last().unwrap(), "truncated last record: 23 bytes ignored");
}

proptest! {
    #[test]
    fn a_table_is_read_back(rows in prop::collection::btree_map(0_u64..5_000_000, prop::collection::vec(0_u64..1_000_000, 3), 1..50)) {
        let row = |(value, counts): (&u64, &Vec<u64>)| format!("{value}\t{} {}, {}\n", counts[0], counts[1], counts[2]);
        let text: String = std::iter::once("# Latency\n".to_owned()).chain(rows.iter().map(row)).collect();
        let imported = super::text(text.as_bytes(), "x", &ImportOptions::default()).unwrap().remove(0);
        for (i, thread) in imported.threads.iter().enumerate() {
            let mut histogram = punctual_model::Histogram::default();
            rows.iter().for_each(|(value, counts)| histogram.record_n(i64::try_from(*value).unwrap() * 1_000, counts[i]));
            prop_assert_eq!(thread.histogram.as_ref(), Some(&histogram));
        }
    }

    #[test]
    fn a_histogram_of_cyclictest_is_read_back(
        columns in prop::collection::vec(prop::collection::vec(0_u64..9, 40), 1..5),
        with_zeros in any::<bool>(),
    ) {
        let mut text = String::from("# Histogram\n");
        for value in 0..40 {
            let counts: Vec<_> = columns.iter().map(|column| column[value]).collect();
            if with_zeros || counts.iter().any(|n| *n > 0) {
                let fields: Vec<_> = counts.iter().map(|n| format!("{n:06}")).collect();
                text += &format!("{value:06} {}\n", fields.join("\t"));
            }
        }
        let zeros = vec!["00000"; columns.len()].join(" ");
        text += &format!("# Min Latencies: {zeros}\n# Histogram Overflows: {zeros}\n");
        let imported = super::text(text.as_bytes(), "x", &ImportOptions::default()).unwrap().remove(0);
        prop_assert_eq!(imported.threads.len(), columns.len());
        for (thread, column) in imported.threads.iter().zip(&columns) {
            prop_assert_eq!(thread.samples, Some(column.iter().sum::<u64>()));
            prop_assert_eq!(thread.histogram.as_ref().map(|histogram| histogram.n), thread.samples);
        }
    }
}
