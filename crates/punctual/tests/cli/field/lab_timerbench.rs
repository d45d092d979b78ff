//! Cobalt's driver `timerbench` as the instrument: latencies on a kernel that the user brings.

use crate::program::{entries, machine_and_scratch, run_seeded};
use punctual_model::{Entry, ImportedThread};
use std::path::PathBuf;

/// A kernel with Cobalt, `PUNCTUAL_TEST_COBALT`; prints that the test is skipped and returns `None` without one.
fn kernel() -> Option<PathBuf> {
    let found = std::env::var_os("PUNCTUAL_TEST_COBALT").map(PathBuf::from);
    if found.is_none() {
        eprintln!(
            "skipped: needs a kernel with Dovetail, Cobalt and timerbench, PUNCTUAL_TEST_COBALT=/path/of/bzImage"
        );
    }
    found
}

/// Xenomai's `latency`, `PUNCTUAL_TEST_LATENCY`; prints that the test is skipped and returns `None` without it.
fn latency() -> Option<PathBuf> {
    let found = std::env::var_os("PUNCTUAL_TEST_LATENCY").map(PathBuf::from);
    if found.is_none() {
        eprintln!("skipped: needs the program latency of Xenomai, PUNCTUAL_TEST_LATENCY=/path/of/latency");
    }
    found
}

#[test]
#[ignore = "field: a kernel with Cobalt"]
fn vm_the_driver_measures_the_same_to_the_bit_and_what_latency_does() {
    let (Some(kernel), Some(latency)) = (kernel(), latency()) else { return };
    let (_machine, scratch) = machine_and_scratch("timerbench");
    let program = |mode: u32| {
        format!(
            "{{ program = \"{} -t{mode} -p {{period_us}} -P {{priority}} -T {{duration_s}}\", read = \"xenomai-latency\", \
             files = [\"/lib/x86_64-linux-gnu/libgcc_s.so.1\"] }}",
            latency.display()
        )
    };
    let text = format!(
        "repetitions = 1\nduration = \"3s\"\ncpu_dma_latency = \"leave\"\n[prepare]\ncobalt_gravity = \"0us\"\n[axes]\n\
         kernel = [\"{}\"]\nload = [\"none\"]\npolicy = [\"fifo:90\"]\nperiod = [\"1ms\"]\n\
         method = [\"cobalt:kernel\", \"cobalt:handler\", {}, {}]\n",
        kernel.display(),
        program(1),
        program(2)
    );
    let plan = scratch.file("plan.toml", text).display().to_string();
    let [first, second] = ["first", "second"].map(|name| {
        let out = scratch.path(name);
        run_seeded(&plan, &out);
        entries(&out)
    });
    let of = |entries: &[Entry], method: &str| -> ImportedThread {
        let entry = entries.iter().find(|entry| entry.record.cell.task.to_string().contains(method)).unwrap();
        entry.record.instrument.as_ref().unwrap().result.threads[0].clone()
    };
    for (method, beside) in [("cobalt:kernel", "latency -t1"), ("cobalt:handler", "latency -t2")] {
        let (ours, again, theirs) = (of(&first, method), of(&second, method), of(&first, beside));
        assert_eq!(ours, again, "the same to the bit");
        assert_eq!((ours.samples, ours.missed, ours.beyond), (Some(3000), Some(0), None), "{method}");
        let (mean, their_mean) = (ours.mean_ns.unwrap(), theirs.mean_ns.unwrap());
        assert!((mean - their_mean).abs() < 0.1 * their_mean, "{method}: {mean} {their_mean}");
        let entry = first.iter().find(|entry| entry.record.cell.task.to_string() == method).unwrap();
        let (thread, p50) = (&entry.record.threads[0], ours.min_ns..=ours.max_ns);
        assert!(p50.contains(&thread.histogram.max_ns) && thread.histogram.n == 3000, "{:?}", thread.histogram);
    }
    // The handler runs in the interrupt, before any thread.
    let [handler, task] = ["cobalt:handler", "cobalt:kernel"].map(|method| of(&first, method));
    assert!(handler.max_ns < task.min_ns, "{handler:?} {task:?}");
}
