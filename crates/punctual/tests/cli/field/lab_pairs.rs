//! Two guests in machine time that exchange triggers.

use crate::guest::vm::kernel;
use crate::program::{entries, machine_and_scratch, punctual};

#[test]
#[ignore = "field: two guests in machine time"]
fn vm_two_guests_exchange_datagrams() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("lab-network");
    let text = format!(
        "repetitions = 1\nduration = \"5s\"\nwarm_up = \"200ms\"\n[axes]\nkernel = [\"{} clock=emulated\"]\nload = [\"none\"]\n\
         policy = [\"fifo:90\"]\nperiod = [\"20ms\"]\nmethod = [\"response:udp:10.0.0.1:7000\"]\n",
        kernel.display()
    );
    let (plan, out) = (scratch.file("plan.toml", text), scratch.path("run"));
    punctual(&format!("run {} --wait --out {}", plan.display(), out.display())).expect_success();
    let record = entries(&out).remove(0).record;
    assert!(record.lab.as_ref().unwrap().machine.ends_with(", virtio network"));
    let (thread, response) = (&record.threads[0], record.response.as_ref().unwrap());
    let target = response.target.as_ref().unwrap();
    assert!(thread.is_consistent() && thread.recorded > 125, "{thread:?}");
    assert_eq!((response.foreign, response.duplicate), (0, 0), "{response:?}");
    // Datagrams take time: both kernels and QEMU's main loops are on the way.
    assert!(thread.histogram.min_ns.unwrap() > 1_000 && target.answered >= thread.recorded, "{target:?}");
}

/// The lab's own line, with the built-in drivers of serial ports.
#[test]
#[ignore = "field: two guests in machine time"]
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
