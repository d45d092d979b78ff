//! Pages of every kind: what is on them, what is not, and that nothing foreign gets in.

mod imported;
mod lab;
mod layout;

use super::*;
use crate::tests::own;
use punctual_analysis::summarise;
use punctual_analysis::testing::RunBuilder;
use punctual_model::{
    Ended, Entry, LoadRecord, LoadSecond, PreparedSetting, RuntimeRecord, Second, Skipped, Span, Study,
};
use std::collections::HashSet;
use std::sync::Arc;

fn page(run: &RunBuilder) -> String {
    let summary = summarise(&run.header, &run.entries);
    let page = html(&[own("runs/x", run, &summary)]);
    check(&page);
    page
}

/// Checks the properties of every page: the answer comes first, it loads nothing, its names are unique, its links lead
/// somewhere, and no number of a picture is none.
fn check(page: &str) {
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let body = page.split("</style>").nth(1).unwrap().split("<script>").next().unwrap();
    for loaded in ["http:", "https:", "src=", "url(", "<link", "<script", "<img", "@import"] {
        assert!(!body.contains(loaded), "{loaded}");
    }
    assert_eq!((page.matches("<script>").count(), page.matches("</script>").count()), (1, 1));
    // The answer is its first element.
    let (_, first) = body.split_once("<main id=top>\n").unwrap();
    let first = first.trim_start_matches("<header>\n");
    assert!(
        first.starts_with("<p class=answer>") || first.starts_with("<p class=\"answer verdict "),
        "{}",
        &first[..99]
    );
    assert!(!first.starts_with("<p class=answer></p>"));
    let values = |attribute: &str| {
        let value = |rest: &str| match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap().to_owned(),
            None => rest.split([' ', '>']).next().unwrap().to_owned(),
        };
        body.split(attribute).skip(1).map(value).collect::<Vec<_>>()
    };
    let ids = values(" id=");
    assert_eq!(ids.len(), ids.iter().collect::<HashSet<_>>().len(), "{ids:?}");
    for link in values(" href=#") {
        assert!(ids.contains(&link), "#{link} leads nowhere");
    }
    for data in values(" d=") {
        assert!(!data.is_empty() && !data.contains("NaN") && !data.contains("inf"), "{data:?}");
    }
    for tag in ["section", "figure", "svg", "table", "ul", "details", "div", "header"] {
        let opened = body.matches(&format!("<{tag}>")).count() + body.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, body.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

/// Two cells in two blocks, the second one later.
fn run() -> RunBuilder {
    let mut run = RunBuilder::new();
    run.header.plan.repetitions = 2;
    run.cell("none", "fifo:80").cell("messaging", "fifo:80");
    for block in 0..2 {
        for cell in 0..2 {
            let later = 1 + 9 * i64::try_from(cell).unwrap();
            run.measure(block, cell, move |cpu, cycle| {
                later * (4_000 + i64::from(cpu) * 500 + i64::try_from(cycle % 97).unwrap() * 40)
            });
        }
    }
    for thread in run.entries.iter_mut().flat_map(|entry| &mut entry.record.threads) {
        thread.seconds = (0..2)
            .map(|second| Second { second, n: 1_000, max_ns: thread.histogram.max_ns, ..Second::default() })
            .collect();
    }
    run
}

#[test]
fn a_page_has_every_part() {
    let mut run = run();
    let second = LoadSecond { elapsed: Span::SECOND, operations: Some(200_000), cpu_us: Some(1_500_000) };
    run.entries[1].record.loads = vec![LoadRecord {
        load: "messaging".into(),
        operation: "message".into(),
        workers: 400,
        seconds: vec![second; 2],
        ..LoadRecord::default()
    }];
    let setting = |at_end: &str| PreparedSetting {
        what: "timer_migration".into(),
        before: "1".into(),
        during: "0".into(),
        at_end: Some(at_end.into()),
    };
    run.entries[0].record.prepared = vec![setting("0")];
    run.require("max=1ms");
    let page = page(&run);
    for part in [
        "<h1>How late can this machine be?</h1>",
        "<p class=\"answer verdict pass\"><strong>PASS</strong> max",
        "<a href=#c1 aria-label=\"none/fifo:80\">none</a>",
        "<section class=\"set part later\" id=c2>",
        "Latency histogram: none/fifo:80, messaging/fifo:80",
        "<li>load: none, messaging",
        "<figcaption>Percentiles</figcaption>",
        "<figcaption>Worst so far</figcaption>",
        "<figcaption>Share of wake-ups later than a latency (CCDF)</figcaption>",
        "<figcaption>Maximum of each second</figcaption>",
        ">limit 1 ms</text>",
        "<summary>Kernel command line</summary><code>",
        "200 000 messages/s",
        "<td>1 -&gt; 0",
        "kernel<td>6.1.0-21-rt-arm64",
        "punctual run plan.toml --seed 7",
        "max = &quot;1ms&quot;",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn foreign_text_is_shown_and_never_obeyed() {
    let evil = "</title></style><script>alert(1)</script><img src=x onerror=alert(1)>\" onload=\"x";
    for mut run in [run(), of_eight_blocks()] {
        run.header.plan.title = evil.to_owned();
        run.header.tool = evil.to_owned();
        run.header.host.hostname = Some(evil.to_owned());
        run.header.host.command_line = Some(evil.to_owned());
        run.header.cells.iter_mut().for_each(|cell| cell.load = format!("cmd:{evil}").parse().unwrap());
        for entry in &mut run.entries {
            Arc::make_mut(&mut entry.record.host_after).hypervisor = Some(evil.to_owned());
            entry.record.prepared =
                vec![PreparedSetting { what: evil.into(), before: evil.into(), during: evil.into(), at_end: None }];
            entry.record.runtime = Some(RuntimeRecord { version: evil.into(), program: evil.into() });
        }
        let summary = summarise(&run.header, &run.entries);
        let shown = own(evil, &run, &summary);
        for page in [html(&[shown]), html(&[shown, shown])] {
            assert_eq!((page.matches("<script").count(), page.matches("<img").count()), (1, 0));
            assert_eq!(page.matches("</title>").count(), 1 + page.matches("<circle").count(), "its own, and of dots");
            assert!(!page.contains("\" onload=\""));
            assert!(page.contains("&lt;script&gt;alert(1)"));
        }
    }
}

#[test]
fn odd_runs_have_a_page() {
    let empty = RunBuilder::new();
    assert!(page(&empty).contains("This run has no cells."));

    let mut unmeasured = RunBuilder::new();
    unmeasured.cell("none", "other").require("max=1ms");
    assert!(page(&unmeasured).contains("only 0 of 1 measurement complete"));

    let mut without_a_sample = RunBuilder::new();
    without_a_sample.cell("none", "other").measure(0, 0, |_, _| i64::MAX);
    assert!(page(&without_a_sample).contains("No wake-up was recorded."));

    let mut early = RunBuilder::new();
    early.cell("none", "other").measure(0, 0, |_, _| -5);
    page(&early);

    let mut starved = RunBuilder::new();
    starved.cell("cpu", "other").measure(0, 0, |cpu, cycle| if cpu == 1 && cycle > 800 { i64::MAX } else { 60_000 });
    assert!(page(&starved).contains("&gt; 1.2 s"));

    let mut interrupted = run();
    interrupted.entries.truncate(1);
    interrupted.entries[0].record.ended = Ended::Interrupted;
    interrupted.entries[0].record.measured = Span(700_000_000);
    assert!(page(&interrupted).contains("ended early by a signal"));

    let mut skipped = run();
    let reason = "fifo:80 needs <CAP_SYS_NICE>".to_owned();
    skipped.header.skipped.push(Skipped { cell: skipped.header.cells[0].clone(), reason });
    assert!(page(&skipped).contains("1 combination of the plan could not be measured here"));
}

#[test]
fn a_machine_that_changed_is_marked() {
    let mut run = run();
    assert!(page(&run).contains("None of these facts changed"));
    Arc::make_mut(&mut run.entries[1].record.host_after).kernel_release = Some("6.2.0".to_owned());
    Arc::make_mut(&mut run.entries[2].record.host_after).clock_source = Some("hpet".to_owned());
    Arc::make_mut(&mut run.entries[3].record.host_after).governors.clear();
    let page = page(&run);
    assert!(page.contains("<tr class=changed><th scope=row>kernel<td>6.1.0-21-rt-arm64<td><b>became</b> 6.2.0"));
    assert!(page.contains("<b>became</b> hpet"));
}

#[test]
fn several_runs_stand_beside_each_other() {
    let (one, mut other) = (run(), run());
    other.header.host.kernel_release = Some("6.12.1-rt".to_owned());
    let summaries = [summarise(&one.header, &one.entries), summarise(&other.header, &other.entries)];
    let page = html(&[own("runs/a", &one, &summaries[0]), own("runs/b", &other, &summaries[1])]);
    check(&page);
    for part in [
        "<b class=run>B</b>",
        "runs/b",
        "aria-label=\"A none/fifo:80\">A</a>",
        "aria-label=\"B none/fifo:80\">B</a>",
        "<a href=#plan1>Reproduce B</a>",
        "differs between the runs",
        "plan-b.toml",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<h3>every").count(), 0, "cells of both in one picture");
}

/// Two cells in eight blocks, so that they can be compared.
fn of_eight_blocks() -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "other").cell("none", "fifo:80");
    for block in 0..8 {
        for (cell, later) in [(0, 9), (1, 1)] {
            run.measure(block, cell, move |cpu, cycle| {
                later * (4_000 + i64::from(cpu + block) * 50 + i64::try_from(cycle % 97).unwrap() * 40)
            });
        }
    }
    run
}

#[test]
fn cells_are_compared_block_by_block() {
    let page = page(&of_eight_blocks());
    for part in [
        "id=compared",
        "none/fifo:80 <small>against</small> none/other",
        "<summary><b>DIFFERENT</b></summary>none/fifo:80 is earlier than none/other: p99 is",
        " times lower<small>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<circle").count(), 8);
    assert_eq!(page.matches("<title>block 8: 0.1").count(), 1);
    assert!(!self::page(&super::tests::run()).contains("id=compared"), "two blocks have no answer");
}

#[test]
fn published_rows_stand_beside_ours() {
    let mut run = run();
    run.header.plan.study = "debian10-stock-vs-rt-2020".parse().ok();
    let with_study = page(&run);
    assert!(with_study.contains("<h3>Wake-up latency of two threads</h3>"));
    assert!(with_study.contains("<td>published<td class=n>7<td class=n>12<td class=n>41"));
    assert!(
        with_study
            .contains("<dt>As SCHED_FIFO, the largest latency of PREEMPT_RT is below that of the stock kernel: <b>")
    );
    run.header.plan.study = "ospert-2013".parse().ok();
    let rows_only = page(&run);
    assert!(rows_only.contains("<td>3.8.13 + PREEMPT_RT"), "numbers without tables stand by topic");
    for name in Study::KNOWN {
        run.header.plan.study = name.parse().ok();
        page(&run);
    }
}

#[test]
fn a_page_of_100_cells_is_below_a_megabyte_and_more_add_no_pictures() {
    let mut run = RunBuilder::new();
    for load in ["none", "cpu", "messaging", "pipe", "disk"] {
        for policy in ["other", "batch", "fifo:80", "rr:80"] {
            for _ in 0..5 {
                run.cell(load, policy);
            }
        }
    }
    for (index, cell) in run.header.cells.iter_mut().enumerate() {
        cell.period = format!("{}us", 1_000 + index % 5).parse().unwrap();
    }
    let latency = |cpu: u32, cycle: u64| {
        let noise = i64::try_from((cycle * 7919 + u64::from(cpu) * 104_729) % 10_007).unwrap();
        3_000 + noise * noise / 50
    };
    run.measure(0, 0, latency);
    let record = run.entries[0].record.clone();
    let entry = |cell_index: usize| {
        let cell = run.header.cells[cell_index].clone();
        let mut entry =
            Entry { planned: punctual_model::Planned { block: 0, position: 0, cell_index }, record: record.clone() };
        (entry.record.cell_id, entry.record.cell) = (cell.id(), cell);
        entry
    };
    run.entries = (0..100).map(entry).collect();
    let of_100 = page(&run);
    assert!(of_100.len() < 1_000_000, "{} bytes", of_100.len());
    assert_eq!(of_100.matches("class=\"set part later\"").count(), 100);

    let (cells, entries) = (run.header.cells.clone(), run.entries.clone());
    for more in 1..5_usize {
        run.header.cells.extend(cells.iter().cloned());
        run.entries.extend(entries.iter().cloned().map(|mut entry| {
            entry.planned.cell_index += 100 * more;
            entry
        }));
    }
    let of_500 = page(&run);
    assert_eq!(of_500.matches("class=\"set part later\"").count(), cells::PICTURED);
    assert_eq!(of_500.matches("<table class=\"matrix pieces\">").count(), 5);
}
