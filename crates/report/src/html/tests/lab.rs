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
    let (_, beside) = page.split_once("<h2>Published results").unwrap();
    let beside = beside.split("</section>").next().unwrap();
    for row in [
        "<td>4.14 (none), thread 0",
        "<td>here: /boot/vmlinuz preempt=none, virtual time",
        "<td>here: /boot/vmlinuz preempt=full, virtual time",
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
