//! Latency of interrupt responses in guests: kernels distinguished, identical to the bit.

use crate::program::{Scratch, entries, machine_and_scratch, punctual, run_seeded, skip_unless};
use crate::vm::kernel;
use model::{Cause, Explanation, Histogram};
use std::path::Path;

const KERNELS: [&str; 3] = ["debian:6.1 preempt=none", "debian:6.1 preempt=full", "debian:6.1-rt"];

fn plan(scratch: &Scratch, kernels: &[&str], load: &str, period: &str) -> String {
    let plan = format!(
        "repetitions = 1\nduration = \"2s\"\nwarm_up = \"100ms\"\n[axes]\nkernel = {kernels:?}\nload = [\"{load}\"]\n\
         policy = [\"fifo:90\"]\nperiod = [\"{period}\"]\nmethod = [\"response:uio\"]\n"
    );
    scratch.file("plan.toml", plan).display().to_string()
}

#[test]
#[ignore = "long: boots guests"]
fn vm_interrupts_are_answered_later_on_less_preemptible_kernels() {
    skip_unless!(kernel().is_some());
    if punctual(&format!("lab fetch {} debian:6.1-rt", "debian:6.1")).status != 0 {
        eprintln!("skipped: needs debian:6.1 and debian:6.1-rt (Debian's packages, or fetched before)");
        return;
    }
    let (_machine, scratch) = machine_and_scratch("lab-response");
    let plan = plan(&scratch, &KERNELS, "mmap", "10ms");
    let runs = ["once", "again"].map(|name| scratch.path(name));
    for run in &runs {
        run_seeded(&plan, run);
    }
    let [once, again] = runs.map(|run| entries(&run));
    assert!(once == again, "virtual time has no chance in it");
    let of = |kernel: &str| -> &Histogram {
        let entry = once.iter().find(|entry| entry.record.cell.kernel.to_string() == kernel).unwrap();
        let thread = &entry.record.threads[0];
        assert!(thread.is_consistent() && (thread.recorded, thread.missed) == (200, 0), "{thread:?}");
        assert!(entry.record.lab.as_ref().unwrap().machine.ends_with("edu"), "{:?}", entry.record.lab);
        &thread.histogram
    };
    let [none, full, rt] = KERNELS.map(of);
    // Full and PREEMPT_RT are near each other under this load: which one has the worst of 200 depends on the layout of
    // the program in memory, that is on its build.
    let earlier = full.max_ns.max(rt.max_ns);
    assert!(none.max_ns > earlier, "{:?} {:?} {:?}", none.max_ns, full.max_ns, rt.max_ns);
    // PREEMPT_RT has an interrupt thread between the interrupt and the responding thread.
    assert!(rt.min_ns > full.min_ns && full.min_ns > Some(0), "{:?} {:?}", rt.min_ns, full.min_ns);
}

#[test]
#[ignore = "long: boots guests"]
fn vm_what_keeps_an_interrupt_from_being_answered_is_named() {
    let Some(kernel) = kernel() else { return };
    if punctual("lab fetch debian:6.1-rt").status != 0 {
        eprintln!("skipped: needs debian:6.1-rt (Debian's package, or fetched before)");
        return;
    }
    let (_machine, scratch) = machine_and_scratch("lab-response-explain");
    let none = format!("{} preempt=none", kernel.display());
    let plan = plan(&scratch, &[&none, "debian:6.1-rt"], "mmap", "10ms");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("[axes]", "[explain]\nabove = \"1us\"\nkeep = 50\nstacks = true\n[axes]"))
        .unwrap();
    let run = scratch.path("run");
    run_seeded(&plan, &run);
    let entries = entries(&run);
    let of = |kernel: &str| {
        let entry = entries.iter().find(|entry| entry.record.cell.kernel.to_string() == kernel).unwrap();
        let explained = entry.record.explained.as_ref().unwrap();
        assert!(explained.explained >= 50 && explained.worst.iter().all(Explanation::is_complete), "{explained:#?}");
        let [stages] = &explained.answers[..] else { panic!("{:?}", explained.answers) };
        assert!(stages.handler.n >= 50, "{stages:?}");
        (explained, stages)
    };
    let ((none, of_none), (_, of_rt)) = (of(&none), of("debian:6.1-rt"));
    // A kernel without preemption frees page tables until it reschedules.
    let blame = none.worst[0].blame().unwrap();
    assert_eq!((blame.cause, blame.owner.name.as_str()), (Cause::NonPreemptible, "load/mmap"), "{:#?}", none.causes);
    // The handler of PREEMPT_RT is a thread, which needs a context switch.
    assert!(of_rt.handler.min_ns > of_none.handler.min_ns, "{of_rt:?} {of_none:?}");
    assert!(of_none.queue.max_ns > of_rt.queue.max_ns, "{of_rt:?} {of_none:?}");
}

/// The lab's own line, with the built-in drivers of serial ports.
#[test]
#[ignore = "long: boots guests"]
fn vm_two_guests_exchange_triggers_over_a_serial_line_without_loss() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("lab-pair");
    let kernel = format!("{} clock=emulated", kernel.display());
    let plan = scratch.file(
        "pair.toml",
        format!(
            "repetitions = 1\nduration = \"20s\"\nwarm_up = \"200ms\"\n[axes]\nkernel = [\"{kernel}\"]\n\
             load = [\"pipe\"]\npolicy = [\"fifo:90\"]\nperiod = [\"20ms\"]\nmethod = [\"response:serial:/dev/ttyS2\"]\n"
        ),
    );
    let run = scratch.path("run");
    punctual(&format!("run {} --wait --out {}", plan.display(), run.display())).expect_success();
    let [entry] = &entries(&run)[..] else { panic!("one cell") };
    let record = &entry.record;
    let (thread, response) = (&record.threads[0], record.response.as_ref().unwrap());
    let target = response.target.as_ref().unwrap();
    // Due times without CPU time are not sent, or answered late; no trigger is lost on the way.
    assert_eq!((thread.cycles_due, thread.recorded + thread.missed), (1000, 1000), "{thread:?}");
    assert_eq!(response.triggers, thread.recorded + thread.never_answered(), "{response:?}");
    assert!(thread.recorded > 500, "{thread:?}");
    assert_eq!((response.foreign, response.duplicate, target.missed), (0, 0, 0), "{response:?}");
    assert!(target.triggers >= response.triggers && target.answered == target.triggers, "{target:?}");
    assert_eq!((response.line_errors, target.line_errors), (Some(0), Some(0)));
    // The load ran in the responding guest.
    assert_eq!(record.loads, target.loads);
    assert!(record.loads[0].per_second() > Some(0.0), "{:?}", record.loads);
    assert_eq!((record.cell.load.to_string().as_str(), &record.cell_id), ("pipe", &record.cell.id()));
}

#[test]
#[ignore = "long: boots guests"]
fn vm_a_serial_port_that_sends_to_itself_is_exact_in_virtual_time() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("lab-serial-loop");
    let plan = scratch.file(
        "loop.toml",
        format!(
            "repetitions = 1\nduration = \"200ms\"\nwarm_up = \"20ms\"\n[axes]\nkernel = [\"{}\"]\nload = [\"none\"]\n\
             policy = [\"fifo:90\"]\nperiod = [\"2ms\"]\nmethod = [\"response:serial-loop\"]\n",
            kernel.display()
        ),
    );
    let runs = ["once", "again"].map(|name| scratch.path(name));
    for run in &runs {
        run_seeded(plan.to_str().unwrap(), run);
    }
    let [once, again] = runs.map(|run| entries(&run));
    assert!(once == again, "virtual time has no chance in it");
    let record = &once[0].record;
    let (thread, response) = (&record.threads[0], record.response.as_ref().unwrap());
    assert_eq!((thread.recorded, thread.missed, response.triggers, response.own), (100, 0, 100, None), "{thread:?}");
    assert!(thread.histogram.min_ns > Some(0), "{thread:?}");
}

#[test]
fn responses_that_the_lab_cannot_measure_are_refused() {
    let scratch = Scratch::new("lab-response-refused");
    let out = scratch.path("out").display().to_string();
    let run = |plan: &str| punctual(&format!("run {plan} --wait --out {out}"));
    run(&plan(&scratch, &["debian:6.1"], "none", "3ms"))
        .expect_error("invalid period `3ms` for response:uio: expected one of 5ms 10ms 20ms 25ms 50ms 100ms");
    let virtual_only = "response:uio needs a lab guest in virtual time; name a kernel like debian:6.1, or another link";
    run(&plan(&scratch, &["running"], "none", "10ms")).expect_error(virtual_only);
    run(&plan(&scratch, &["debian:6.1 clock=emulated"], "none", "10ms")).expect_error(virtual_only);
    assert!(!Path::new(&out).exists(), "nothing is begun");
}
