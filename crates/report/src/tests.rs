//! Whole reports against golden files; `UPDATE_EXPECT=1` renews them.

use super::*;
use expect_test::{ExpectFile, expect_file};
use punctual_analysis::summarise;
use punctual_analysis::testing::RunBuilder;
use punctual_model::{
    Histogram, HwlatGaps, HwlatRecord, LoadRecord, LoadSecond, MachineSecond, OsnoiseRecord, Preemption, RuntimeRecord,
    Skipped, Span, TimerlatRecord, TracersRecord,
};

/// Deterministic latencies by CPU and cycle: most near `middle_ns`, a tail up to 16 times that.
fn spread(middle_ns: i64, cpu: u32, cycle: u64) -> i64 {
    let noise = (cycle * 7919 + u64::from(cpu) * 104_729) % 1009;
    let noise = i64::try_from(noise).unwrap();
    let tail = if noise > 990 { middle_ns * (noise - 990) / 2 } else { 0 };
    middle_ns / 2 + middle_ns * noise / 1009 + tail
}

/// A misconfigured machine under two loads and two policies, measured in four blocks.
pub(super) fn run() -> RunBuilder {
    let mut run = RunBuilder::new();
    run.header.host.preemption = Some(Preemption::Voluntary);
    run.header.host.rt_runtime_us = Some(950_000);
    run.header.host.governors = vec!["powersave".to_owned()];
    run.header.plan.repetitions = 4;
    run.cell("none", "other").cell("none", "fifo:80").cell("messaging", "other").cell("messaging", "fifo:80");
    for block in 0..4 {
        run.measure(block, 0, |cpu, cycle| 50_000 + spread(8_000, cpu, cycle));
        run.measure(block, 1, |cpu, cycle| spread(4_000, cpu, cycle));
        run.measure(block, 2, move |cpu, cycle| match (block, cpu, cycle) {
            (2, 1, 1_000) => 44_000_000,
            _ => 50_000 + spread(260_000, cpu, cycle),
        });
        run.measure(block, 3, |cpu, cycle| spread(6_000, cpu, cycle));
    }
    for entry in run.entries.iter_mut().filter(|entry| entry.planned.cell_index >= 2) {
        entry.record.machine = vec![MachineSecond {
            elapsed: Span::SECOND,
            idle_ms: Some(320),
            steal_ms: Some(0),
            ..MachineSecond::default()
        }];
        let second = LoadSecond { elapsed: Span::SECOND, operations: Some(200_000), cpu_us: Some(1_500_000) };
        entry.record.loads = vec![LoadRecord {
            load: "messaging".to_owned(),
            operation: "message".to_owned(),
            workers: 400,
            seconds: vec![second; 2],
            ..LoadRecord::default()
        }];
    }
    run
}

fn check(run: &RunBuilder, width: usize, golden: ExpectFile) {
    let summary = summarise(&run.header, &run.entries);
    let mut out = Vec::new();
    text(
        &mut out,
        &own("run", run, &summary),
        Style { width, colour: false, unicode: true, all_findings: false, spikes: 0, columns: None },
    )
    .unwrap();
    let out = String::from_utf8(out).unwrap();
    for line in out.lines() {
        assert!(line.chars().count() <= width && !line.ends_with(' '), "{line:?}");
    }
    golden.assert_eq(&out);
}

#[test]
fn chosen_columns_are_shown_in_full_on_a_narrow_terminal() {
    let run = run();
    let summary = summarise(&run.header, &run.entries);
    let shown = |columns: &str| {
        let mut out = Vec::new();
        let style = Style { columns: Some(columns.parse().unwrap()), ..Style::plain(60) };
        text(&mut out, &own("run", &run, &summary), style).unwrap();
        let text = String::from_utf8(out).unwrap();
        let table = text.lines().skip_while(|line| !line.trim_start().starts_with("load ")).take(6);
        table.map(str::to_owned).collect::<Vec<_>>()
    };
    let table = shown("max,sd,mean,min");
    assert_eq!(table[0].split_whitespace().collect::<Vec<_>>(), ["load", "policy", "min", "mean", "sd", "max"]);
    let worst = table.iter().find(|line| line.contains("44 000.0")).expect("a maximum in full");
    let [.., mean, deviation, _, _] = worst.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{worst}") };
    let cell = &summary.cells[2];
    assert_eq!(mean, format!("{:.1}", cell.mean_ns.unwrap() / 1e3));
    assert_eq!(deviation, format!("{:.1}", cell.stddev_ns.unwrap() / 1e3));
    assert_eq!(table[5], " us unless marked; sd: standard deviation");
    let every = shown("wake-ups,n_eff,missed,min,mean,sd,p50,p99,p99.9,max,when");
    assert_eq!(every[0].split_whitespace().count(), 13, "wider than the terminal: {every:?}");
}

/// Cells of lab kernels that differ in these words, under a light and a heavy load.
pub(super) fn lab(kernels: &[&str]) -> RunBuilder {
    let mut run = RunBuilder::new();
    for load in ["light", "cpu+sync+mmap"] {
        for words in kernels {
            run.cell(load, "fifo:99");
            run.header.cells.last_mut().unwrap().kernel = format!("/boot/vmlinuz {words}").parse().unwrap();
        }
    }
    for cell in 0..run.header.cells.len() {
        let later = i64::try_from(cell + 1).unwrap();
        run.measure(0, cell, move |_, cycle| later * (4_000 + i64::try_from(cycle % 97).unwrap() * 40));
    }
    run
}

pub(crate) fn own<'a>(name: &'a str, run: &'a RunBuilder, summary: &'a RunSummary) -> Results<'a> {
    Results::Own(OwnRun { name, header: &run.header, entries: &run.entries, summary })
}

#[test]
fn a_run_at_80_columns() {
    check(&run(), 80, expect_file!["../tests/golden/run-80.txt"]);
}

/// The path of the run and the page follow on stderr: the answer, a blank line for the prompt included, has 24 rows.
#[test]
fn the_answer_fits_one_screen() {
    for (mut run, name) in [(run(), "four cells"), (one_cell(), "one cell")] {
        run.header.host.hypervisor = Some("KVM".to_owned());
        let summary = summarise(&run.header, &run.entries);
        let shown = |style: Style| {
            let mut out = Vec::new();
            text(&mut out, &own("runs/2026-11-22-040855", &run, &summary), style).unwrap();
            String::from_utf8(out).unwrap()
        };
        let screen = shown(Style::plain(80));
        assert!(screen.lines().count() <= 22, "{name}:\n{screen}");
        assert!(screen.contains("; all: punctual show runs/2026-11-22-040855 --all)"), "{screen}");
        assert!(shown(Style { all_findings: true, ..Style::plain(80) }).lines().count() > 24, "{name}");
    }
}

/// The cell of `measure`: a real-time thread under a load.
fn one_cell() -> RunBuilder {
    let mut run = run();
    run.header.cells.drain(..3);
    run.entries.retain(|entry| entry.planned.cell_index == 3);
    for entry in &mut run.entries {
        entry.planned.cell_index = 0;
    }
    run
}

#[test]
fn a_run_at_120_columns() {
    check(&run(), 120, expect_file!["../tests/golden/run-120.txt"]);
}

#[test]
fn a_run_in_json() {
    let run = run();
    let document = crate::json::of_results(&own("run", &run, &summarise(&run.header, &run.entries)));
    expect_file!["../tests/golden/run.json"].assert_eq(&(serde_json::to_string_pretty(&document).unwrap() + "\n"));
}

#[test]
fn a_violated_requirement() {
    let mut run = run();
    run.header.plan.require.set_all("max=30us,p999=1ms").unwrap();
    check(&run, 100, expect_file!["../tests/golden/run-fail.txt"]);
}

/// A guest with one thread that never woke again, and half of the cells skipped.
pub(super) fn starved() -> RunBuilder {
    let mut run = RunBuilder::new();
    run.header.host.hypervisor = Some("QEMU Standard PC".to_owned());
    run.cell("messaging", "other");
    run.header.plan.require.set_all("max=10s").unwrap();
    let mut skipped = run.header.cells[0].clone();
    skipped.policy = "fifo:80".parse().unwrap();
    let reason = "fifo:80 needs CAP_SYS_NICE: run as root".to_owned();
    run.header.skipped.push(Skipped { cell: skipped, reason });
    run.measure(0, 0, |cpu, cycle| if cpu == 1 && cycle > 800 { i64::MAX } else { 60_000 });
    run
}

#[test]
fn a_starved_thread_in_a_guest_without_privileges() {
    check(&starved(), 80, expect_file!["../tests/golden/run-starved.txt"]);
}

#[test]
fn sleeps_of_languages_have_a_table_of_their_own() {
    let mut run = RunBuilder::new();
    for (period, language) in [("100us", "node"), ("1ms", "node"), ("1ms", "c"), ("100us", "c"), ("1ms", "java")] {
        run.cell("none", "other");
        let cell = run.header.cells.last_mut().unwrap();
        (cell.period, cell.task) = (period.parse().unwrap(), format!("sleep:{language}").parse().unwrap());
        cell.lock_memory = false;
    }
    let mut skipped = run.header.cells.pop().unwrap();
    skipped.policy = "other:nice=-20".parse().unwrap();
    let reason = "java is not installed: no working `java`; on Debian: apt-get install default-jdk-headless";
    run.header.skipped.push(Skipped { cell: skipped, reason: reason.to_owned() });
    run.measure(0, 0, |cpu, cycle| 950_000 + spread(8_000, cpu, cycle));
    run.measure(0, 1, |cpu, cycle| if cycle == 7 { -900_000 } else { 60_000 + spread(8_000, cpu, cycle) });
    run.measure(0, 2, |cpu, cycle| 50_000 + spread(8_000, cpu, cycle));
    run.measure(0, 3, |cpu, cycle| 50_000 + spread(4_000, cpu, cycle));
    for entry in &mut run.entries {
        let program = if entry.planned.cell_index < 2 { "/usr/bin/node" } else { "/usr/bin/cc" };
        let version = if entry.planned.cell_index < 2 { "Node.js 18.19.0" } else { "glibc 2.36" };
        entry.record.runtime = Some(RuntimeRecord { version: version.to_owned(), program: program.to_owned() });
        entry.record.threads.iter_mut().for_each(|thread| thread.achieved.memory_locked_bytes = 0);
    }
    check(&run, 80, expect_file!["../tests/golden/run-sleeps.txt"]);
}

/// Guests on a kernel with tracers and on one without; one trace was too small.
fn traced() -> RunBuilder {
    let mut run = RunBuilder::new();
    for kernel in ["debian:6.1-rt", "debian:6.1"] {
        run.cell("exec", "fifo:90");
        let cell = run.header.cells.last_mut().unwrap();
        (cell.kernel, cell.conditions.tracers, cell.cpus) = (kernel.parse().unwrap(), true, [0].into_iter().collect());
    }
    run.measure(0, 0, |cpu, cycle| spread(4_000, cpu, cycle)).measure(0, 1, |cpu, cycle| spread(9_000, cpu, cycle));
    let latencies = |middle: i64| -> Vec<i64> { (0..2_000).map(|cycle| spread(middle, 0, cycle)).collect() };
    let [irq, thread] = [700, 4_000].map(|middle| Histogram::of(&latencies(middle)));
    let osnoise = OsnoiseRecord {
        cpu: 0,
        samples: 2,
        runtime_us: 2_000_000,
        noise_us: 856_400,
        max_single_us: Some(4_047),
        hardware: 0,
        nmi: 0,
        irq: 500,
        softirq: 3,
        thread: 2_796,
    };
    let timerlat = TimerlatRecord { cpu: 0, irq, thread, lost: 1_200 };
    let gaps = HwlatGaps {
        watched_us: Some(998_000),
        threshold_us: 10,
        gaps: 7,
        longest_us: Some(1_204),
        ..HwlatGaps::default()
    };
    let hwlat = HwlatRecord { cpu: 0, gaps };
    let (timerlat, osnoise, hwlat) = (Some(vec![timerlat]), Some(vec![osnoise]), Some(vec![hwlat]));
    run.entries[0].record.tracers = Some(TracersRecord { timerlat, osnoise, hwlat });
    run.entries[1].record.tracers = Some(TracersRecord::default());
    run
}

#[test]
fn threads_of_different_periods_have_a_table_of_their_own() {
    let mut run = RunBuilder::new();
    run.header.plan.repetitions = 2;
    run.cell("none", "fifo:49").cell("messaging", "fifo:49");
    for cell in &mut run.header.cells {
        (cell.conditions.period_step, cell.duration) = (Some(Span(500_000)), Span(3_000_000_000));
    }
    for block in 0..2 {
        run.measure(block, 0, |cpu, cycle| spread(4_000, cpu, cycle));
        run.measure(block, 1, move |cpu, cycle| match (block, cpu, cycle) {
            (1, 1, 70) => 4_600_000,
            (1, 0, 2_990) => i64::MAX,
            _ => spread(9_000, cpu, cycle),
        });
    }
    check(&run, 80, expect_file!["../tests/golden/run-threads.txt"]);
    let summary = summarise(&run.header, &run.entries);
    let page = Page::of(&own("run", &run, &summary), false);
    expect_file!["../tests/golden/run-threads.md"].assert_eq(&markdown(&page));
    expect_file!["../tests/golden/run-threads.csv"].assert_eq(&csv(&page));
    let document = crate::json::of_results(&own("run", &run, &summary));
    let threads = document["cells"][1]["summary"]["by_thread"].as_array().unwrap().clone();
    let figures = |thread: &serde_json::Value| {
        (thread["period_ns"].as_u64(), thread["samples"].as_u64(), thread["missed"].as_u64(), thread["max_ns"].as_i64())
    };
    let want = [
        (Some(1_000_000), Some(5_990), Some(9), Some(10_000_000)),
        (Some(1_500_000), Some(3_997), Some(3), Some(4_600_000)),
    ];
    assert_eq!(threads.iter().map(figures).collect::<Vec<_>>(), want);
    assert_eq!((&threads[0]["max_is_lower_bound"], &threads[1]["blocks"][0]["missed"]), (&true.into(), &0.into()));
    let html = html(&[own("run", &run, &summary)]);
    assert!(
        html.contains("<th scope=col class=n>CPU")
            && html.contains("Threads of different periods, measured at the same")
    );
    assert!(html.contains("T: 1 (    -) P:49 I:1500"), "as cyclictest shows them");
    // With one period there is neither.
    run.header.cells.iter_mut().for_each(|cell| cell.conditions.period_step = None);
    run.entries.clear();
    for cell in 0..2 {
        run.measure(0, cell, |cpu, cycle| spread(4_000, cpu, cycle));
    }
    let summary = summarise(&run.header, &run.entries);
    assert!(crate::json::of_results(&own("run", &run, &summary))["cells"][0]["summary"].get("by_thread").is_none());
    assert!(!csv(&Page::of(&own("run", &run, &summary), false)).contains("thread_"));
}

#[test]
fn what_the_kernels_tracers_saw_has_a_table_of_its_own() {
    let run = traced();
    check(&run, 80, expect_file!["../tests/golden/run-tracers-80.txt"]);
    check(&run, 120, expect_file!["../tests/golden/run-tracers-120.txt"]);
    let summary = summarise(&run.header, &run.entries);
    let page = Page::of(&own("run", &run, &summary), false);
    expect_file!["../tests/golden/run-tracers.md"].assert_eq(&markdown(&page));
    expect_file!["../tests/golden/run-tracers.csv"].assert_eq(&csv(&page));
    let document = crate::json::of_results(&own("run", &run, &summary));
    let seen = |cell: usize| document["cells"][cell]["summary"]["tracers"].clone();
    assert_eq!(seen(0)["timerlat"]["irq"]["samples"], 2_000);
    assert_eq!(seen(1), serde_json::json!({ "timerlat": null, "osnoise": null, "hwlat": null }));
    let html = html(&[own("run", &run, &summary)]);
    assert!(
        html.contains("<th scope=col class=n>irq p50") && html.contains("<p class=quiet>No tracers in debian:6.1: ")
    );
}

#[test]
fn nothing_measured_is_no_panic() {
    let mut run = RunBuilder::new();
    let summary = |run: &RunBuilder| {
        let mut out = Vec::new();
        let style = Style { width: 0, colour: true, unicode: false, all_findings: false, spikes: 0, columns: None };
        text(&mut out, &own("run", run, &summarise(&run.header, &run.entries)), style).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(summary(&run).contains("nothing was measured"));
    run.cell("none", "other").require("max=1ms");
    assert!(
        summary(&run).starts_with("Verdict: \x1b[1;33mINCONCLUSIVE\x1b[0m: only 0 of 1 measurement complete\n"),
        "{}",
        summary(&run)
    );
}

#[test]
fn changes_and_regular_spikes_are_said() {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80").cell("messaging", "fifo:80").cell("none", "other");
    for cell in &mut run.header.cells {
        (cell.duration, cell.period) = (Span(600_000_000_000), "10ms".parse().unwrap());
    }
    let noise = |cpu: u32, cycle: u64| {
        let mut random = punctual_model::SplitMix64::new(cycle * 2 + u64::from(cpu));
        4_000 + i64::try_from(random.below(2_000_000)).unwrap() / 1_000
    };
    run.measure(0, 0, |cpu, cycle| noise(cpu, cycle) + if cycle >= 25_000 { 8_000 } else { 0 });
    run.measure(0, 1, |cpu, cycle| noise(cpu, cycle) + if cycle % 6_000 == 99 { 90_000 } else { 0 });
    run.measure(0, 2, |cpu, cycle| 55_000 + noise(cpu, cycle));
    check(&run, 80, expect_file!["../tests/golden/run-course.txt"]);
}

#[test]
fn every_number_has_a_date() {
    for (ms, date) in [
        (0, "1970-01-01T00:00:00Z"),
        (1_795_333_445_999, "2026-11-22T07:44:05Z"),
        (punctual_model::LAST_UNIX_MS, "9999-12-31T23:59:59Z"),
        (punctual_model::LAST_UNIX_MS + 1, "9999-12-31T23:59:59Z"),
        (u64::MAX, "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(rfc3339(ms), date);
    }
}
