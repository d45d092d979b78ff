//! Interrupts handled out of band by Cobalt: latencies on a kernel that the user brings.

use crate::program::{Scratch, entries, is_installed, machine_and_scratch, punctual, run_seeded};
use punctual_model::{Entry, ThreadRecord};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kernel `PUNCTUAL_TEST_COBALT` and a directory of the module built against its tree, `PUNCTUAL_TEST_COBALT_TREE`,
/// and of the test modules `more`, from `tests/wires`; prints that the test is skipped and returns `None` without both.
fn kernel_and_modules(scratch: &Scratch, more: &[&str]) -> Option<(PathBuf, PathBuf)> {
    let given = |name| std::env::var_os(name).map(PathBuf::from);
    let Some((kernel, tree)) = given("PUNCTUAL_TEST_COBALT").zip(given("PUNCTUAL_TEST_COBALT_TREE")) else {
        eprintln!(
            "skipped: needs a kernel with Dovetail and Cobalt and its built tree, PUNCTUAL_TEST_COBALT=/path/of/bzImage \
             PUNCTUAL_TEST_COBALT_TREE=/path/of/linux"
        );
        return None;
    };
    if !is_installed("make", "make") {
        return None;
    }
    let dir = scratch.path("module");
    std::fs::create_dir(&dir).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../module/punctual_oob");
    for name in ["Kbuild", "punctual_oob.c"] {
        std::fs::copy(source.join(name), dir.join(name)).unwrap();
    }
    let mut kbuild = std::fs::read_to_string(dir.join("Kbuild")).unwrap();
    for name in more {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wires").join(name).with_extension("c");
        std::fs::copy(source, dir.join(name).with_extension("c")).unwrap();
        kbuild += &format!("obj-m += {name}.o\n");
    }
    std::fs::write(dir.join("Kbuild"), kbuild).unwrap();
    let mut make = Command::new("make");
    make.arg("-C").arg(tree).arg(format!("M={}", dir.display())).arg("modules").stdin(Stdio::null());
    let made = make.output().unwrap();
    let text = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && !text.contains("warning"), "{text}");
    Some((kernel, dir))
}

/// A plan of the links `oob` and `uio`. The kernel's word only changes when its boot does what: without it the kernel
/// that this was written with (Dovetail 5.13, Xenomai 3.2.2) never reaches PID 1 beside 20 devices.
fn plan(scratch: &Scratch, kernel: &str, loads: &str, duration: &str) -> String {
    let text = format!(
        "repetitions = 1\nduration = \"{duration}\"\nwarm_up = \"100ms\"\ncpu_dma_latency = \"leave\"\n[axes]\n\
         kernel = [\"{kernel} initcall_debug\"]\nload = [{loads}]\npolicy = [\"fifo:90\"]\nperiod = [\"10ms\"]\n\
         method = [\"response:uio\", \"response:oob\"]\n"
    );
    scratch.file("plan.toml", text).display().to_string()
}

/// The threads of the link that Cobalt answers, or of the other.
fn threads(entries: &[Entry], is_oob: bool) -> Vec<&ThreadRecord> {
    let is_of = |entry: &&Entry| (entry.record.cell.task.to_string() == "response:oob") == is_oob;
    entries.iter().filter(is_of).map(|entry| &entry.record.threads[0]).collect()
}

#[test]
#[ignore = "field: a kernel with Cobalt"]
fn vm_an_interrupt_out_of_band_is_answered_before_any_of_linux() {
    let (_machine, scratch) = machine_and_scratch("oob");
    let Some((kernel, modules)) = kernel_and_modules(&scratch, &[]) else { return };
    let kernel = format!("{} modules={}", kernel.display(), modules.display());
    let plan = plan(&scratch, &kernel, "\"none\", \"mmap\"", "2s");
    let [first, second] = ["first", "second"].map(|name| {
        let out = scratch.path(name);
        run_seeded(&plan, &out);
        entries(&out)
    });
    assert!(first.len() == 4 && first == second, "the same to the bit");
    let (oob, linux) = (threads(&first, true), threads(&first, false));
    assert_eq!((oob.len(), linux.len()), (2, 2));
    for thread in &oob {
        let counted = thread.cobalt.unwrap();
        assert_eq!((counted.mode_switches, counted.page_faults), (0, 0), "{counted:?}");
        // One to read each interrupt.
        assert!(counted.system_calls >= 200, "{counted:?}");
    }
    assert!(linux.iter().all(|thread| thread.cobalt.is_none()));
    for thread in oob.iter().chain(&linux) {
        assert_eq!((thread.recorded, thread.missed), (200, 0), "{thread:?}");
        assert!(thread.is_consistent() && thread.histogram.min_ns > Some(0), "{thread:?}");
    }
    let latest = oob.iter().filter_map(|thread| thread.histogram.max_ns).max();
    let earliest = linux.iter().filter_map(|thread| thread.histogram.min_ns).min();
    assert!(latest < earliest, "{latest:?} {earliest:?}");
}

/// Each device has an interrupt that waits and one to come when the cell opens it; for `uio`, the other driver, too.
#[test]
#[ignore = "field: a kernel with Cobalt"]
fn vm_interrupts_left_by_an_earlier_user_are_no_samples() {
    let (_machine, scratch) = machine_and_scratch("oob-left");
    let Some((kernel, modules)) = kernel_and_modules(&scratch, &["left_running"]) else { return };
    let kernel = format!("{} modules={}", kernel.display(), modules.display());
    let plan = plan(&scratch, &kernel, "\"none\"", "500ms");
    let out = scratch.path("run");
    run_seeded(&plan, &out);
    let entries = entries(&out);
    for entry in &entries {
        let thread = &entry.record.threads[0];
        assert_eq!((thread.recorded, thread.missed), (50, 0), "{thread:?}");
        let range = thread.histogram.min_ns.zip(thread.histogram.max_ns).unwrap();
        assert!(range.0 > 0 && range.1 < 100_000, "{range:?}");
    }
    assert_eq!((threads(&entries, true).len(), threads(&entries, false).len()), (1, 1));
}

/// The driver is absent: a kernel with Cobalt and no module.
#[test]
#[ignore = "field: a kernel with Cobalt"]
fn vm_a_kernel_without_the_module_is_one_line() {
    let (_machine, scratch) = machine_and_scratch("oob-none");
    let Some((kernel, _)) = kernel_and_modules(&scratch, &[]) else { return };
    let plan = plan(&scratch, &kernel.display().to_string(), "\"none\"", "500ms");
    let text = std::fs::read_to_string(&plan).unwrap().replace("\"response:uio\", ", "");
    std::fs::write(&plan, text).unwrap();
    let said = punctual(&format!("run {plan} --seed 1 --wait --out {}", scratch.path("run").display()));
    let reason = "response:oob: unsupported: this kernel has no punctual_oob; build module/punctual_oob for it and name \
                  the file: modules=/path/of/punctual_oob.ko";
    assert!(said.status != 0 && said.stderr.contains(reason), "{}", said.stderr);
}
