//! Cobalt's driver `timerbench` as the instrument: refusals everywhere, latencies on a kernel that the user brings.

use crate::program::{Scratch, entries, machine_and_scratch, punctual, run_seeded};
use model::{Entry, ImportedThread};
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
fn the_driver_is_refused_in_one_line_where_it_cannot_measure() {
    let scratch = Scratch::new("timerbench-refused");
    let plan = |method: &str, policy: &str, period: &str, more: &str, arguments: &str| {
        let text = format!(
            "repetitions = 1\nduration = \"1s\"\n{more}\n[axes]\nload = [\"none\"]\npolicy = [\"{policy}\"]\n\
             period = [\"{period}\"]\nmethod = [\"{method}\"]\n"
        );
        let plan = scratch.file("plan.toml", text);
        punctual(&format!("run {} --dry-run {arguments}", plan.display()))
    };
    let (kernel, handler, fifo) = ("cobalt:kernel", "cobalt:handler", "fifo:80");
    for (method, policy, period, more, arguments, expected) in [
        (kernel, "other", "1ms", "", "", "method cobalt:kernel needs policy fifo, like fifo:80, not other"),
        (handler, "rr:80", "1ms", "", "", "method cobalt:handler needs policy fifo, like fifo:80, not rr:80"),
        (kernel, fifo, "10us", "", "", "invalid period `10us` for method cobalt:kernel: expected 20us to 1s"),
        (kernel, fifo, "1ms", "[explain]\nabove = \"1ms\"", "", "explain does not apply to method cobalt:kernel"),
        (handler, fifo, "1ms", "stop_above = \"1ms\"", "", "stop_above does not apply to method cobalt:handler"),
        (handler, fifo, "1ms", "align = \"1us\"", "", "align and distance do not apply to method cobalt:handler"),
        (kernel, fifo, "1ms", "", "--samples", "unsupported: samples of cobalt:kernel"),
        ("cobalt:irq", fifo, "1ms", "", "", "unknown context of Cobalt `irq`"),
    ] {
        let said = plan(method, policy, period, more, arguments);
        assert!(said.status != 0 && said.stderr.contains(expected), "{method} {policy} {more}: {}", said.stderr);
        if method != "cobalt:irq" {
            assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
        }
    }
}

#[test]
fn root_a_kernel_without_cobalt_says_so() {
    if std::path::Path::new("/proc/xenomai").exists() {
        eprintln!("skipped: needs a kernel without Cobalt");
        return;
    }
    let (_machine, _scratch) = machine_and_scratch("timerbench-none");
    for method in ["cobalt:kernel", "cobalt:handler"] {
        let said = punctual(&format!("measure {method} --policy fifo:80 --cpus 0 --duration 1s --wait"));
        let last = said.stderr.trim_end().lines().last().unwrap_or_default().to_owned();
        assert_eq!(said.status, 1, "{}", said.stderr);
        let is_expected =
            last.contains("this kernel has no Cobalt; boot one of Xenomai") || last.contains("CAP_SYS_NICE");
        assert!(is_expected, "{last}");
    }
}

#[test]
#[ignore = "long: boots guests"]
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
