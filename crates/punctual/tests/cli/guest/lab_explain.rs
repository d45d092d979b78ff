//! Explanations in guests: identical to the bit in virtual time, and culprits that this machine's kernel lacks.

use crate::guest::vm::{kernel, run_seeded};
use crate::program::{Scratch, beside_a_load, entries};
use crate::real::explain::sums_agree;
use punctual_model::{Cause, Entry, Evidence, ExplainRecord, Explanation, Layer};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A plan that explains each cell of these kernels and loads.
fn plan(scratch: &Scratch, kernels: &[String], load: &str, rest: &str) -> String {
    let plan = format!(
        "repetitions = 1\nwarm_up = \"50ms\"\n{rest}\n[axes]\nkernel = {kernels:?}\nload = [\"{load}\"]\n\
         policy = [\"fifo:90\"]\n"
    );
    scratch.file("plan.toml", plan).display().to_string()
}

/// Runs a plan into `out` and returns its entries.
#[track_caller]
fn carried_out(plan: &str, out: &Path) -> Vec<Entry> {
    run_seeded(plan, out);
    entries(out)
}

/// The explanations of an entry, checked for completeness.
#[track_caller]
fn explained(entry: &Entry) -> &ExplainRecord {
    let explained = entry.record.explained.as_ref().expect("it was asked for");
    sums_agree(explained);
    explained
}

/// Number of kept spikes with this blame, and their places.
fn blamed(explained: &ExplainRecord, cause: Cause, owner: &str) -> (usize, String) {
    let blames = explained.worst.iter().filter_map(Explanation::blame);
    let meant: Vec<_> = blames.filter(|blame| blame.cause == cause && blame.owner.name == owner).collect();
    (meant.len(), meant.iter().filter_map(|blame| blame.place.clone()).collect())
}

/// Asserts that no time is blamed on steal: in virtual time instructions are the clock.
#[track_caller]
fn expect_no_steal(explained: &ExplainRecord) {
    let is_steal =
        |total: &punctual_model::CauseTotal| [Some(total.cause), total.or].contains(&Some(Cause::CpuStalled));
    assert!(!explained.causes.iter().any(is_steal), "{:#?}", explained.causes);
    assert_eq!(explained.evidence_ns[Evidence::Ambiguous.index()], 0);
}

#[test]
fn vm_explanations_are_identical_and_name_non_preemptible_kernel_code() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-explain");
    let kernels = ["none", "full"].map(|model| format!("{} preempt={model}", kernel.display()));
    let rest = "duration = \"300ms\"\n[explain]\nabove = \"60us\"\nstacks = true";
    let of = |kernels: &[String], out: &str| carried_out(&plan(&scratch, kernels, "mmap", rest), &scratch.path(out));
    let quiet = of(&kernels, "quiet");
    let busy = beside_a_load(|| of(&kernels[..1], "busy"));
    assert!(quiet[0].record == busy[0].record, "virtual time does not depend on what else the machine does");

    let [none, full] = [0, 1].map(|cell| explained(&quiet[cell]));
    for one in [none, full] {
        expect_no_steal(one);
        assert!(one.explained * 10 >= one.spikes * 9, "{} of {} explained", one.explained, one.spikes);
        let [cannot_tell, all] = [one.evidence_ns[Evidence::Undetermined.index()], one.evidence_ns.iter().sum()];
        assert!(cannot_tell * 100 < all, "{cannot_tell} ns of {all}");
    }
    // The interrupt's entry is a part of each latency. The trace shows it for every wake-up except the one after each
    // spike, during the snapshot.
    for (entry, one) in quiet.iter().zip([none, full]) {
        let ([irq], [thread]) = (&one.irq[..], &entry.record.threads[..]) else { panic!("{:?}", one.irq) };
        assert!(
            irq.histogram.n <= thread.recorded && (irq.histogram.n + one.spikes) * 20 >= thread.recorded * 19,
            "{:?}",
            irq.histogram.n
        );
        assert!(irq.histogram.min_ns > Some(0) && irq.histogram.min_ns < thread.histogram.min_ns);
        assert!(irq.histogram.mean_ns() < thread.histogram.mean_ns());
    }
    // Page tables are freed in long stretches, which only a kernel without preemption cannot interrupt.
    let (meant, places) = blamed(none, Cause::NotPreemptible, "load/mmap");
    assert!(meant * 20 >= none.worst.len() * 19, "{meant} of {}: {:#?}", none.worst.len(), none.causes);
    assert!(places.contains("rescheduled in ") && places.contains("tlb_finish_mmu"), "{places}");
    let of = |one: &ExplainRecord| (one.spikes, one.worst[0].latency.ns());
    let ((n, worst_ns), (n_full, worst_full_ns)) = (of(none), of(full));
    assert!(n > n_full && worst_ns > worst_full_ns, "{n} to {worst_ns} ns, {n_full} to {worst_full_ns} ns");
}

/// Builds the modules in `dir` against the headers of `kernel`; prints that the test is skipped and returns `None`
/// without headers.
pub(crate) fn build_modules(dir: &Path, kernel: &Path) -> Option<()> {
    let release = kernel.file_name()?.to_str()?.strip_prefix("vmlinuz-")?.to_owned();
    let roots = std::env::var_os("PUNCTUAL_TEST_HEADERS").map(PathBuf::from).into_iter().chain([PathBuf::from("/")]);
    let mut headers = roots.map(|root| root.join(format!("usr/src/linux-headers-{release}")));
    let Some(headers) = headers.find(|headers| headers.join("Makefile").is_file()) else {
        eprintln!("skipped: needs linux-headers-{release}, or PUNCTUAL_TEST_HEADERS=/where/it/is/unpacked");
        return None;
    };
    let said = Command::new("make").arg("-C").arg(headers).arg(format!("M={}", dir.display())).arg("modules").output();
    let said = said.expect("make(1) is there where headers are");
    let [out, err] = [&said.stdout, &said.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(said.status.success(), "{out}{err}");
    Some(())
}

#[test]
fn vm_interrupts_that_are_off_and_a_long_softirq_are_named() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-culprits");
    let sources = [
        ("irqs", include_str!("../../culprits/culprit_irqs.c")),
        ("softirq", include_str!("../../culprits/culprit_softirq.c")),
    ];
    let kernels = sources.map(|(name, source)| {
        let dir = scratch.path(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(format!("culprit_{name}.c")), source).unwrap();
        std::fs::write(dir.join("Makefile"), format!("obj-m := culprit_{name}.o\n")).unwrap();
        build_modules(&dir, &kernel)?;
        Some(format!("{} preempt=full modules={}/culprit_{name}.ko", kernel.display(), dir.display()))
    });
    let [Some(irqs), Some(softirq)] = kernels else { return };
    let rest = "duration = \"200ms\"\n[explain]\nabove = \"100us\"\nstacks = true";
    let entries = carried_out(&plan(&scratch, &[irqs, softirq], "cpu", rest), &scratch.path("run"));
    let [irqs, softirq] = [0, 1].map(|cell| explained(&entries[cell]));
    for (one, cause, owner) in
        [(irqs, Cause::InterruptsOff, "culprit"), (softirq, Cause::Softirq, "softirq TIMER (long_softirq)")]
    {
        expect_no_steal(one);
        let of_kernel = one.layers.iter().find(|all| all.layer == Layer::Kernel).map_or(0, |all| all.total.ns());
        assert!(of_kernel * 20 >= one.late.ns() * 19 && of_kernel > 0, "{:#?}", one.layers);
        let meant = blamed(one, cause, owner).0;
        assert!(meant >= 5 && meant * 20 >= one.worst.len() * 19, "{meant}: {:#?}", one.causes);
    }
    let places = blamed(irqs, Cause::InterruptsOff, "culprit").1;
    assert!(places.contains("keeps_interrupts_off"), "{places}");
}
