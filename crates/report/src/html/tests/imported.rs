//! Pages of imported measurements, alone and beside a run of ours.

use super::{check, own, run};
use crate::{ImportedSet, Results, html};
use punctual_analysis::testing::imported_thread as thread;
use punctual_analysis::{summarise, summarise_imported};
use punctual_model::{
    Beyond, Histogram, ImportHeader, Imported, ImportedThread, Requirement, Slice, Source, Span, StatedConditions,
};

fn header(title: &str) -> ImportHeader {
    ImportHeader {
        format: 1,
        tool: "punctual".to_owned(),
        imported_unix_ms: 1_600_000_000_000,
        title: title.to_owned(),
        require: Requirement { max: Some(Span(1_000_000)), ..Requirement::default() },
    }
}

fn imported(file: &str, what: &str, threads: Vec<ImportedThread>) -> Imported {
    let source = Source { command_line: Some("cyclictest -q".to_owned()), ..Source::of("cyclictest", file) };
    let conditions = StatedConditions { priority: Some(80), ..StatedConditions::of(what) };
    Imported { conditions, threads, ..Imported::of(source, 1_000) }
}

fn latencies() -> Vec<i64> {
    (0..20_000).map(|i| 1_000 * (i % 100)).collect()
}

fn page(title: &str, all: &[Imported]) -> String {
    let header = header(title);
    let summary = summarise_imported(all, &header.require);
    let page = html(&[Results::Imported(ImportedSet { name: "runs/old", header: &header, summary: &summary })]);
    check(&page);
    page
}

#[test]
fn what_a_file_has_is_drawn_and_the_rest_refused_in_words() {
    let mut cut = thread(&latencies());
    cut.beyond = Some(Beyond { samples: Some(900), at_least_ns: 100_000 });
    (cut.samples, cut.max_ns) = (Some(20_900), Some(900_000));
    let bare = ImportedThread { samples: Some(9), max_ns: Some(5_000), ..ImportedThread::default() };
    let page = page("", &[imported("cut.txt", "wake-up", vec![cut]), imported("bare.txt", "wake-up", vec![bare])]);
    for part in [
        "<h1>Measurements of other tools</h1>",
        "<p class=\"answer verdict open\"><strong>INCONCLUSIVE</strong>",
        "\u{2265} 100 us<small>beyond the histogram</small>",
        "<td>-<small>no distribution</small>",
        "900 us<small>thread 0</small>",
        "<figcaption>Latency histogram</figcaption>",
        "cut.txt: 900 beyond the histogram of its tool",
        "or at the end of the tool&#39;s histogram",
        "Share of samples later",
        "The file has no distribution that could be drawn.",
        "<td>?:80<td>-<td>-<td>-<td>1 us<td>-<td><td>cyclictest -q",
        "The files hold no facts about it.",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for absent in [
        "wake-ups",
        "Wake-ups",
        "Worst so far",
        "Maximum of each second",
        "None of these facts changed",
        "id=compared",
        "Reproduce",
    ] {
        assert!(!page.contains(absent), "{absent}: unknown");
    }
}

#[test]
fn no_share_is_drawn_where_the_number_of_missing_samples_is_unknown() {
    let mut cut = thread(&latencies());
    cut.beyond = Some(Beyond { samples: None, at_least_ns: 100_000 });
    let page = page("rteval", &[imported("cut.xml", "wake-up", vec![cut])]);
    assert!(page.contains("<figcaption>Latency histogram") && page.contains("an unknown number at"));
    assert!(!page.contains("Share of samples later") && !page.contains("<figcaption>Percentiles"));
}

#[test]
fn a_course_of_time_is_a_staircase() {
    let slice = |at: i64| Slice { first_cycle: 0, cycles: 1, histogram: Histogram::of(&[1_000 * (at + 1)]) };
    let mut timed = thread(&(1..=64).map(|i| 1_000 * i).collect::<Vec<_>>());
    timed.slices = (0..64).map(slice).collect();
    (timed.cpu, timed.number) = (Some(3), 3);
    let mut imported = imported("samples.raw", "wake-up", vec![timed]);
    imported.measured = Some(Span::SECOND);
    let page = page("timed", &[imported]);
    assert!(page.contains("<figcaption>Worst so far") && page.contains("<figcaption>Latency histogram by CPU"));
}

#[test]
fn empty_imports_have_a_page() {
    assert!(page("nothing", &[]).contains("the files have no largest latency"));
    page("no sample", &[imported("a.txt", "wake-up", vec![thread(&[])])]);
    page("zeros", &[imported("a.txt", "irq", vec![thread(&[0; 20])])]);
}

#[test]
fn old_data_stand_beside_a_run_of_ours() {
    let ours = run();
    let summary = summarise(&ours.header, &ours.entries);
    let header = header("</title><script>alert(1)</script>");
    let mut old = imported("<img x>.txt", "wake-up", vec![thread(&latencies())]);
    old.host.kernel_release = Some("4.4.0 <b>".to_owned());
    let imports = summarise_imported(&[old], &header.require);
    let page = html(&[
        own("runs/new", &ours, &summary),
        Results::Imported(ImportedSet { name: "runs/old", header: &header, summary: &imports }),
    ]);
    check(&page);
    assert_eq!((page.matches("<script").count(), page.matches("<img").count()), (1, 0));
    for part in [
        ">A none/<wbr>fifo:80</a>",
        ">B &lt;img x&gt;.txt</a>",
        "<h3>period not known, imported</h3>",
        "<tr class=changed><th scope=row>kernel<td>6.1.0-21-rt-arm64<td>4.4.0 &lt;b&gt;<td><b>differs between the runs</b>",
        "plan-a.toml",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<b>differs between the runs</b>").count(), 1, "what B does not say is no difference");
}
