//! Threads of Cobalt, the co-kernel of Xenomai: latencies on a kernel that the user brings.

use crate::program::{entries, machine_and_scratch, run_seeded};
use punctual_model::Entry;
use std::path::PathBuf;

/// A kernel with Cobalt, `PUNCTUAL_TEST_COBALT`; prints that the test is skipped and returns `None` without one.
fn kernel() -> Option<PathBuf> {
    let found = std::env::var_os("PUNCTUAL_TEST_COBALT").map(PathBuf::from);
    if found.is_none() {
        eprintln!("skipped: needs a kernel with Dovetail and Cobalt, PUNCTUAL_TEST_COBALT=/path/of/bzImage");
    }
    found
}

#[test]
#[ignore = "field: a kernel with Cobalt"]
fn vm_threads_of_cobalt_are_the_same_to_the_bit_and_below_those_of_linux() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("cobalt");
    let text = format!(
        "repetitions = 2\nduration = \"1s\"\ncpu_dma_latency = \"leave\"\n[prepare]\ncobalt_gravity = \"0us\"\n[axes]\n\
         kernel = [\"{}\"]\nload = [\"none\", \"mmap\"]\npolicy = [\"fifo:90\"]\nperiod = [\"1ms\"]\n\
         method = [\"clock_nanosleep\", \"cobalt\", \"cobalt:timerfd\"]\n",
        kernel.display()
    );
    let plan = scratch.file("plan.toml", text).display().to_string();
    let [first, second] = ["first", "second"].map(|name| {
        let out = scratch.path(name);
        run_seeded(&plan, &out);
        entries(&out)
    });
    assert_eq!((first.len(), second.len()), (12, 12));
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a.planned, b.planned);
        assert_eq!(a.record.threads, b.record.threads, "the same to the bit");
    }
    let of = |is_cobalt: bool| {
        let is_of = move |entry: &&Entry| entry.record.threads[0].cobalt.is_some() == is_cobalt;
        first.iter().filter(is_of).map(|entry| &entry.record.threads[0]).collect::<Vec<_>>()
    };
    let (cobalt, linux) = (of(true), of(false));
    assert_eq!((cobalt.len(), linux.len()), (8, 4));
    for thread in &cobalt {
        let counted = thread.cobalt.unwrap();
        assert_eq!((counted.mode_switches, counted.page_faults, thread.missed), (0, 0, 0), "{counted:?}");
        assert!(counted.system_calls >= 1000 && thread.histogram.min_ns > Some(0), "{counted:?}");
    }
    // Every wake-up of Cobalt is earlier than any of Linux on the same kernel.
    let latest = cobalt.iter().filter_map(|thread| thread.histogram.max_ns).max();
    let earliest = linux.iter().filter_map(|thread| thread.histogram.min_ns).min();
    assert!(latest < earliest, "{latest:?} {earliest:?}");
}
