//! Latency of interrupt responses in guests: kernels distinguished, identical to the bit.

use crate::guest::vm::{kernel, run_seeded};
use crate::program::{Scratch, entries, punctual};
use punctual_model::{Cause, CauseTotal, ExplainRecord, Explanation, Histogram};

/// 120 triggers, of which one in twenty meets what the load does without preemption: hardly any layout of the program
/// in memory, which is another in each build, lets all of them pass it by.
fn plan(scratch: &Scratch, kernels: &[String]) -> String {
    let plan = format!(
        "repetitions = 1\nduration = \"600ms\"\nwarm_up = \"20ms\"\n[axes]\nkernel = {kernels:?}\nload = [\"mmap\"]\n\
         policy = [\"fifo:90\"]\nperiod = [\"5ms\"]\nmethod = [\"response:uio\"]\n"
    );
    scratch.file("plan.toml", plan).display().to_string()
}

#[test]
fn vm_interrupts_are_answered_later_on_less_preemptible_kernels() {
    let Some(kernel) = kernel() else { return };
    if punctual("lab fetch debian:6.1-rt").status != 0 {
        eprintln!("skipped: needs debian:6.1-rt (Debian's package, or fetched before)");
        return;
    }
    let scratch = Scratch::new("lab-response");
    let of_kernel = |words: &str| format!("{} {words}", kernel.display());
    let kernels = [of_kernel("preempt=none"), of_kernel("preempt=full"), "debian:6.1-rt".to_owned()];
    let [once, again] = [("once", &kernels[..]), ("again", &kernels[..1])].map(|(name, kernels)| {
        let run = scratch.path(name);
        run_seeded(&plan(&scratch, kernels), &run);
        entries(&run)
    });
    assert_eq!(once[0].record, again[0].record, "virtual time has no chance in it");
    let of = |kernel: &String| -> &Histogram {
        let entry = once.iter().find(|entry| entry.record.cell.kernel.to_string() == *kernel).unwrap();
        let thread = &entry.record.threads[0];
        assert!(thread.is_consistent() && (thread.recorded, thread.missed) == (120, 0), "{thread:?}");
        assert!(entry.record.lab.as_ref().unwrap().machine.ends_with("edu"), "{:?}", entry.record.lab);
        &thread.histogram
    };
    let [none, full, rt] = kernels.each_ref().map(of);
    // Full and PREEMPT_RT are near each other under this load: which one has the worst of 120 depends on the layout of
    // the program in memory, that is on its build.
    let earlier = full.max_ns.max(rt.max_ns);
    assert!(none.max_ns > earlier, "{:?} {:?} {:?}", none.max_ns, full.max_ns, rt.max_ns);
    // PREEMPT_RT has an interrupt thread between the interrupt and the responding thread.
    assert!(rt.min_ns > full.min_ns && full.min_ns > Some(0), "{:?} {:?}", rt.min_ns, full.min_ns);
}

#[test]
fn vm_what_keeps_an_interrupt_from_being_answered_is_named() {
    let Some(kernel) = kernel() else { return };
    if punctual("lab fetch debian:6.1-rt").status != 0 {
        eprintln!("skipped: needs debian:6.1-rt (Debian's package, or fetched before)");
        return;
    }
    let scratch = Scratch::new("lab-response-explain");
    let none = format!("{} preempt=none", kernel.display());
    let plan = plan(&scratch, &[none.clone(), "debian:6.1-rt".to_owned()]);
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
        assert!(stages.interrupt_to_wakeup.n >= 50, "{stages:?}");
        (explained, stages)
    };
    let ((none, of_none), (rt, of_rt)) = (of(&none), of("debian:6.1-rt"));
    // A kernel without preemption frees page tables until it reschedules.
    let is_of_load = |total: &&CauseTotal| {
        total.cause == Cause::NotPreemptible && total.owners.iter().any(|owner| owner.name == "load/mmap")
    };
    let longest = |explained: &ExplainRecord| explained.causes.iter().find(is_of_load).map(|total| total.worst.ns());
    assert!(longest(none) > longest(rt), "{:#?} {:#?}", none.causes, rt.causes);
    // The handler of PREEMPT_RT is a thread, which needs a context switch.
    assert!(of_rt.interrupt_to_wakeup.min_ns > of_none.interrupt_to_wakeup.min_ns, "{of_rt:?} {of_none:?}");
    assert!(of_none.wakeup_to_switch.max_ns > of_rt.wakeup_to_switch.max_ns, "{of_rt:?} {of_none:?}");
}

#[test]
fn vm_a_serial_port_that_sends_to_itself_is_exact_in_virtual_time() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-serial-loop");
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
