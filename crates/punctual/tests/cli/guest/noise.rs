//! Gaps of a thread that never waits, in virtual time: identical to the bit, and those of a known timer at its rate.

use crate::guest::lab_explain::build_modules;
use crate::guest::vm::{kernel, run_seeded};
use crate::program::{Scratch, entries, is_installed, skip_unless};
use crate::real::noise::assert_divided;
use crate::servo::compiled_from;
use punctual_model::{Cause, Entry, Layer};
use std::path::Path;

/// The entries of the loop for 400 ms on the `words` of a kernel, beside these loads.
fn entries_of(scratch: &Scratch, name: &str, words: &str, loads: &[&str], rest: &str) -> Vec<Entry> {
    let plan = format!(
        "repetitions = 1\nduration = \"400ms\"\n{rest}\n[axes]\nload = {loads:?}\nmethod = [\"noise\"]\n\
         policy = [\"other\"]\nkernel = [{{ image = \"{}\", append = \"preempt=full\", {words} }}]\n",
        kernel().unwrap().display()
    );
    let (plan, out) = (scratch.file(&format!("{name}.toml"), plan), scratch.path(name));
    run_seeded(&format!("{} --yes", plan.display()), &out);
    entries(&out)
}

/// The kernel ticks each 4 ms; the timer of a program wakes 800 threads each 25 ms.
#[test]
fn vm_gaps_of_ticks_and_of_a_timer_are_found_at_their_rate_and_identical() {
    let Some(_) = kernel() else { return };
    skip_unless!(is_installed("cc", "gcc"));
    let scratch = Scratch::new("noise");
    let source = include_str!("../../culprits/culprit_threads.c");
    let culprit = compiled_from(&scratch, "culprit", source, &["-static"]);
    let words = format!("files = [\"/bin/busybox:/bin/sh\", \"{}:/culprit\"]", culprit.display());
    let loads = ["none", "cmd:/culprit herd 0"];
    let [first, second] = ["first", "second"].map(|name| entries_of(&scratch, name, &words, &loads, ""));
    assert!(first == second, "virtual time has no chance in it");
    let [none, herd] = [0, 1].map(|cell| &first[cell].record);
    let gaps = none.threads[0].noise.as_ref().unwrap().gaps;
    let ticks: Option<u64> = none.machine.iter().map(|second| second.interrupts_by_kind.get("LOC").copied()).sum();
    assert!((100..=102).contains(&gaps) && ticks == Some(100), "{gaps} {ticks:?}");
    // One at the end, in which the main thread reads the log, is shorter.
    assert_eq!([none, herd].map(|record| record.threads[0].histogram.count_above(2_500_000)), [0, 16]);
}

/// The softirqs of a module take 1.3 ms each fourth jiffy, and are the kernel's.
#[test]
fn vm_gaps_of_a_module_are_the_kernels() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("noise-module");
    let dir = scratch.path("module");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("culprit_softirq.c"), include_str!("../../culprits/culprit_softirq.c")).unwrap();
    std::fs::write(dir.join("Makefile"), "obj-m := culprit_softirq.o\n").unwrap();
    let Some(()) = build_modules(&dir, &kernel) else { return };
    let words = format!("modules = \"{}\"", Path::new(&dir).join("culprit_softirq.ko").display());
    let all = entries_of(&scratch, "run", &words, &["none"], "explain = { keep = 100 }");
    let explained = assert_divided(&all[0].record);
    let blames = explained.worst.iter().filter_map(|one| one.blame());
    let is_meant = |name: &str| name == "softirq TIMER (long_softirq)";
    let meant = blames.filter(|share| share.cause == Cause::Softirq && is_meant(&share.owner.name)).count();
    assert!(meant >= 5, "{:#?}", explained.causes);
    let longest = |layer| explained.layers.iter().find(|all| all.layer == layer).map_or(0, |all| all.longest.ns());
    assert!(longest(Layer::Kernel) >= 1_300_000 && longest(Layer::FirmwareOrHost) == 0, "{:#?}", explained.layers);
}
