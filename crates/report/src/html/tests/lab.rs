//! Pages of lab kernels: kernels as curves, published results, virtual time.

use super::*;
use crate::tests::lab;

#[test]
fn models_are_curves_beside_the_published_study() {
    let mut run = lab(&["preempt=none", "preempt=full"]);
    run.header.plan.study = Some("arm64-preemption-models".parse::<Study>().unwrap());
    let page = page(&run);
    // A picture for each load, its curves are the kernels.
    for load in ["light", "cpu+sync+mmap"] {
        let (_, group) =
            page.split_once(&format!("<h3>load {load}, every 1 ms by clock_nanosleep, virtual time")).unwrap();
        let keys = group.split("</ul>").next().unwrap();
        assert_eq!(keys.matches("<li>").count(), 2, "{keys}");
        assert!(keys.contains(&format!("/boot/vmlinuz preempt=none/{load}/fifo:99")), "{keys}");
        assert!(keys.contains(&format!("/boot/vmlinuz preempt=full/{load}/fifo:99")), "{keys}");
    }
    let (before, beside) = page.split_once("<h2>Published study").unwrap();
    assert!(!before.contains("<h3>load "), "its tables stand before the pictures");
    let beside = beside.split("</section>").next().unwrap();
    for row in [
        "<td>none<td>0<td>published<td class=n>15<td class=n>19<td class=n>2292",
        "<h3>Conclusions</h3>",
        "<tr><th scope=row>time<td>real<td>virtual: an instruction counts as a nanosecond",
        "<td>QEMU, on ",
    ] {
        assert!(beside.contains(row), "{row}: {beside}");
    }
    assert!(!beside.contains("here: 6.1.0"), "the machine's own kernel measured nothing: {beside}");
}

#[test]
fn virtual_time_is_called_that_wherever_numbers_stand() {
    let page_of = page(&lab(&["preempt=none", "preempt=full"]));
    for words in [
        ">latency, virtual time</text>",
        ">time measured, virtual time</text>",
        "<b>Virtual time</b>: an instruction counts as a nanosecond",
        " of virtual time measured in ",
    ] {
        assert!(page_of.contains(words), "{words}");
    }
    assert!(!page_of.contains(">latency</text>"));
    let mut mixed = lab(&["preempt=none", "preempt=full"]);
    let real = mixed.header.cells.len();
    mixed.cell("none", "fifo:99").measure(0, real, |_, _| 5_000);
    let page_of = page(&mixed);
    assert!(page_of.contains(">latency, of lab kernels in virtual time</text>"));
    assert!(page_of.contains("<b>Virtual time</b> in cells of lab kernels: "));
    assert!(!page(&run()).to_lowercase().contains("virtual time"));
}

#[test]
fn the_rate_of_the_load_stands_beside_each_latency_of_a_kernel() {
    let mut run = lab(&["preempt=none", "preempt=full"]);
    assert!(!page(&run).contains("load/s"), "without a load");
    for entry in &mut run.entries {
        let operations = if entry.planned.cell_index.is_multiple_of(2) { 440 } else { 199 };
        let second = LoadSecond { elapsed: Span::SECOND, operations: Some(operations), cpu_us: None };
        entry.record.loads = vec![LoadRecord {
            load: "mmap".to_owned(),
            operation: "mapping".to_owned(),
            seconds: vec![second; 4],
            ..LoadRecord::default()
        }];
    }
    let page = page(&run);
    for words in
        [">load/s", "<td>440<td", "<td>199<td", "<div><small>load 440/s</small></div>", "different work: load mmap"]
    {
        assert!(page.contains(words), "{words}");
    }
    let mut text = Vec::new();
    let summary = punctual_analysis::summarise(&run.header, &run.entries);
    crate::text(&mut text, &own("run", &run, &summary), crate::Style::plain(80)).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("load/s: rate of the load"), "{text}");
    assert!(text.lines().any(|line| line.contains("preempt=none") && line.contains(" 440 ")), "{text}");
    assert!(text.contains("different work: load mmap did 2.21 times as much"), "{text}");
}

#[test]
fn kernels_of_one_time_are_compared_and_those_of_two_are_not() {
    let pairs = |kernels: &[&str]| {
        let mut run = lab(kernels);
        run.header.cells.retain(|cell| cell.load.to_string() == "light");
        crate::sections::comparison::pairs_of(&run.header)
    };
    assert_eq!(pairs(&["preempt=none", "preempt=full"]), [(0, 1)]);
    assert_eq!(pairs(&["preempt=none", "preempt=full clock=emulated"]), []);
    assert_eq!(pairs(&["clock=kvm", "preempt=full clock=emulated", "preempt=none clock=emulated"]), [(1, 2)]);
}
