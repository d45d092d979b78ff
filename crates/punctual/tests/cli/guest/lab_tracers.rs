//! The tracers of kernels: in guests identical to the bit, on the running kernel its trace is restored.

use crate::guest::vm::{Clock, INIT, boot, kernel, records, run_seeded};
use crate::program::{Scratch, cell, entries, punctual};
use punctual_model::{Cell, Conditions};
use std::path::PathBuf;

/// A kernel with both tracers.
const RT: &str = "debian:6.1-rt";

/// A plan for these kernels, with `keys` at its top.
fn plan(scratch: &Scratch, name: &str, kernels: &[&str], keys: &str) -> String {
    let plan = format!(
        "repetitions = 1\nduration = \"200ms\"\nwarm_up = \"20ms\"\n{keys}\n[axes]\nkernel = {kernels:?}\n\
         load = [\"exec\"]\npolicy = [\"fifo:90\"]\nperiod = [\"1ms\"]\n"
    );
    scratch.file(name, plan).display().to_string()
}

#[test]
fn vm_tracers_follow_a_cell_and_are_the_same_to_the_bit() {
    let Some(without) = kernel() else { return };
    if punctual(&format!("lab fetch {RT}")).status != 0 {
        eprintln!("skipped: needs {RT} (Debian's packages, or one fetched before)");
        return;
    }
    let scratch = Scratch::new("lab-tracers");
    let without = format!("{} preempt=full", without.display());
    let asked = plan(&scratch, "traced.toml", &[RT, &without], "tracers = true");
    let [once, again, untraced] = ["once", "again", "untraced"].map(|name| scratch.path(name));
    let said = run_seeded(&asked, &once);
    run_seeded(&asked, &again);
    let entries_of_both = [entries(&once), entries(&again)];
    assert!(entries_of_both[0] == entries_of_both[1], "virtual time has no chance in it");

    let of_kernel = |name: &str| {
        let found = entries_of_both[0].iter().find(|entry| entry.record.cell.kernel.to_string() == name);
        &found.unwrap_or_else(|| panic!("no entry of {name}")).record
    };
    let record = of_kernel(RT);
    assert_eq!(record.threads[0].recorded, 200);
    let seen = record.tracers.as_ref().unwrap();
    let [timerlat] = &seen.timerlat.as_ref().unwrap()[..] else { panic!("{seen:?}") };
    assert_eq!((timerlat.cpu, timerlat.lost), (0, 0));
    for histogram in [&timerlat.irq, &timerlat.thread] {
        assert!((195..=205).contains(&histogram.n), "one a millisecond in 200 ms: {histogram:?}");
    }
    // The timer's handler wakes the thread.
    assert!(timerlat.irq.min_ns > Some(0) && timerlat.thread.min_ns > timerlat.irq.min_ns, "{timerlat:?}");
    assert!(timerlat.thread.sum_ns > timerlat.irq.sum_ns, "{timerlat:?}");
    let [osnoise] = &seen.osnoise.as_ref().unwrap()[..] else { panic!("{seen:?}") };
    assert_eq!(osnoise.samples, 1, "{osnoise:?}");
    assert!((200_000..400_000).contains(&osnoise.runtime_us), "{osnoise:?}");
    // The clock ticks, and the load, which restarts after the cell, competes for the CPU.
    assert!(osnoise.irq > 0 && osnoise.thread > 10 && osnoise.noise_us > 10_000, "{osnoise:?}");
    assert!(osnoise.max_single_us.is_some_and(|longest| longest > 0 && longest <= osnoise.noise_us), "{osnoise:?}");
    assert_eq!(osnoise.hardware, 0, "nothing but the kernel holds up a virtual machine: {osnoise:?}");
    let [hwlat] = &seen.hwlat.as_ref().unwrap()[..] else { panic!("{seen:?}") };
    assert_eq!((hwlat.gaps.gaps, hwlat.gaps.longest_us, hwlat.gaps.lost), (0, None, 0), "{hwlat:?}");
    assert!(hwlat.gaps.watched_us.is_some_and(|us| us >= 10_000), "{hwlat:?}");

    let none = of_kernel(&without).tracers.as_ref().unwrap();
    assert_eq!(
        (&none.timerlat, &none.osnoise, &none.hwlat),
        (&None, &None, &None),
        "a kernel for clouds has no such tracers"
    );
    assert!(said.stdout.contains("irq p50") && said.stdout.contains("thread max"), "{}", said.stdout);
    assert!(said.stdout.contains("No tracers in"), "{}", said.stdout);

    // A record with tracers differs from one without in the tracers' entry only.
    let plain = plan(&scratch, "plain.toml", &[RT], "");
    let said = run_seeded(&plain, &untraced);
    let text = std::fs::read_to_string(untraced.join("run.jsonl")).unwrap();
    let record_line = text.lines().nth(1).unwrap();
    assert!(!record_line.contains("tracers") && !said.stdout.contains("irq p50"), "{record_line:.400}");
    let [entry] = &entries(&untraced)[..] else { panic!("one cell") };
    assert_eq!(entry.record.threads[0].recorded, record.threads[0].recorded);
}

/// The running kernel of a guest: its trace is restored after the tracers, and by `recover` after a kill.
#[test]
fn vm_tracers_of_the_running_kernel_leave_its_trace_as_it_was() {
    let Some(_) = kernel() else { return };
    if punctual(&format!("lab fetch {RT}")).status != 0 {
        eprintln!("skipped: needs {RT} (Debian's packages, or one fetched before)");
        return;
    }
    let listed = punctual("lab list --format json").json();
    let listed = listed["kernels"].as_array().unwrap().iter().find(|listed| listed["kernel"] == RT).expect("a kernel");
    let traced = Cell {
        conditions: Conditions { tracers: true, ..Conditions::default() },
        ..cell("fifo:80", "none", "0", "200ms")
    };
    let scratch = Scratch::new("traced");
    scratch.file("cell", serde_json::to_vec(&traced).unwrap());
    let init = "/busybox mount -t tracefs tracefs /sys/kernel/tracing; cd /sys/kernel/tracing\n\
        files='tracing_on current_tracer options/overwrite tracing_thresh hwlat_detector/width hwlat_detector/window'\n\
        state() { echo \"state $1: $(/busybox cat $files hwlat_detector/mode tracing_cpumask | /busybox tr '\\n' ' ')\"; }\n\
        state before; /punctual cell </cell | /busybox sed 's/^/record: /'; state ended\n\
        /punctual cell </cell >/dev/null & killed=$!\n\
        n=0; until /busybox grep -q timerlat current_tracer || [ $((n += 1)) -gt 999 ]; do /busybox sleep 0.01; done\n\
        kill -9 $killed; wait $killed; state killed; /punctual recover; state recovered\n\
        echo 1 >events/irq/enable; /punctual cell </cell\n\
        /busybox poweroff -f\n";
    let said =
        boot(&scratch, &PathBuf::from(listed["path"].as_str().unwrap()), &format!("{INIT}{init}"), Clock::Virtual);
    let states: Vec<&str> = said.lines().filter_map(|line| line.trim().strip_prefix("state ")).collect();
    let (usual, rest) =
        ("1 nop 1 0 500000 1000000 none [round-robin] per-cpu 1", "0 500000 1000000 none [round-robin] per-cpu 1");
    assert_eq!(
        states.iter().map(|state| state.trim()).collect::<Vec<_>>(),
        [
            format!("before: {usual}"),
            format!("ended: {usual}"),
            format!("killed: 1 timerlat 0 {rest}"),
            format!("recovered: {usual}"),
        ],
        "{said}"
    );
    let [record] = &records(&said)[..] else { panic!("{said}") };
    let seen = record.tracers.as_ref().unwrap();
    assert!((195..=205).contains(&seen.timerlat.as_ref().unwrap()[0].thread.n) && seen.osnoise.is_some(), "{seen:?}");
    assert!(seen.hwlat.is_some(), "{seen:?}");
    assert!(said.contains("set_event names events: another program uses the trace"), "{said}");
}

/// A kernel without them refuses the cell before it measures, in one line.
#[test]
fn vm_tracers_that_the_running_kernel_lacks_are_refused_at_once() {
    let Some(kernel) = kernel() else { return };
    let conditions = Conditions { tracers: true, ..Conditions::default() };
    let traced = Cell { conditions, ..cell("other", "none", "0", "200ms") };
    let scratch = Scratch::new("untraced");
    scratch.file("cell", serde_json::to_vec(&traced).unwrap());
    let said =
        boot(&scratch, &kernel, &format!("{INIT}/punctual cell </cell 2>&1\n/busybox poweroff -f\n"), Clock::Virtual);
    let lines = said.lines().filter(|line| line.contains("punctual: ")).collect::<Vec<_>>();
    assert!(
        lines.len() == 1 && lines[0].contains("this kernel has no tracer timerlat, osnoise or hwlat (CONFIG_"),
        "{said}"
    );
    assert!(records(&said).is_empty() && !said.contains("\"threads\""), "{said}");
}
