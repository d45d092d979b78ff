//! Threads of Cobalt, the co-kernel of Xenomai: refusals everywhere, latencies on a kernel that the user brings.

use crate::program::{Scratch, entries, machine_and_scratch, punctual, run_seeded};
use model::Entry;
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
fn cobalt_is_refused_in_one_line_where_it_cannot_be() {
    let scratch = Scratch::new("cobalt-refused");
    let plan = |policy: &str, more: &str| {
        let text = format!(
            "repetitions = 1\nduration = \"100ms\"\n{more}\n[axes]\nload = [\"none\"]\npolicy = [\"{policy}\"]\n\
             period = [\"1ms\"]\nmethod = [\"cobalt\"]\n"
        );
        let plan = scratch.file("plan.toml", text);
        punctual(&format!("run {} --dry-run", plan.display()))
    };
    for (policy, more, expected) in [
        ("other", "", "method cobalt needs policy fifo, like fifo:80, not other"),
        ("rr:80", "", "method cobalt needs policy fifo, like fifo:80, not rr:80"),
        ("fifo:80", "[explain]\nabove = \"1ms\"", "explain does not apply to method cobalt"),
        ("fifo:80", "[prepare]\ncobalt_gravity = \"2s\"", "invalid setting `cobalt_gravity = 2s`: expected a time"),
    ] {
        let said = plan(policy, more);
        // Without the right to lock memory that comes first.
        let is_expected = said.stderr.contains(expected) || said.stderr.contains("method cobalt needs locked memory");
        assert!(said.status == 1 && is_expected, "{policy} {more}: {}", said.stderr);
        assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
    }
}

#[test]
fn root_a_kernel_without_cobalt_says_so() {
    if std::path::Path::new("/proc/xenomai").exists() {
        eprintln!("skipped: needs a kernel without Cobalt");
        return;
    }
    let (_machine, _scratch) = machine_and_scratch("cobalt-none");
    let said = punctual("measure cobalt --policy fifo:80 --duration 100ms --wait");
    let last = said.stderr.trim_end().lines().last().unwrap_or_default().to_owned();
    assert_eq!(said.status, 1, "{}", said.stderr);
    let may_not = last.contains("locked memory") || last.contains("CAP_SYS_NICE");
    assert!(may_not || last.contains("this kernel has no Cobalt; boot one of Xenomai 3.2 or 3.3"), "{last}");
}

#[test]
#[ignore = "long: boots guests"]
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
