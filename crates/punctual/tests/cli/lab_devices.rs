//! Devices of guests in machine time.

use crate::program::{entries, is_root, machine_and_scratch, punctual, skip_unless};
use crate::vm::kernel;
use model::GuestThreadKind;

#[test]
#[ignore = "long: boots a guest and waits for QEMU's helpers"]
fn root_vm_the_io_thread_of_a_disk_has_its_policy_while_the_disk_is_written() {
    let Some(kernel) = kernel().filter(|_| is_root()) else { return };
    let (_machine, scratch) = machine_and_scratch("lab-disk");
    let here = sys::sched::affinity(0).unwrap();
    let last = here.iter().last().unwrap();
    skip_unless!(here.len() > 1);
    let text = format!(
        "repetitions = 1\nduration = \"2s\"\nwarm_up = \"100ms\"\n[axes]\nload = [\"disk\"]\npolicy = [\"fifo:80\"]\n\
         period = [\"10ms\"]\nkernel = [{{ image = \"{}\", clock = \"emulated\", io_policy = \"fifo:49\", io_cpus = \"{last}\" }}]\n",
        kernel.display()
    );
    let (plan, out) = (scratch.file("plan.toml", text), scratch.path("run"));
    punctual(&format!("run {} --wait --out {}", plan.display(), out.display())).expect_success();
    let record = entries(&out).remove(0).record;
    let lab = record.lab.as_ref().unwrap();
    assert!(lab.machine.ends_with(", virtio disk"), "{}", lab.machine);
    let [thread] = &lab.threads[..] else { panic!("one I/O thread: {:?}", lab.threads) };
    assert_eq!((thread.kind, thread.policy.as_str()), (GuestThreadKind::Io, "fifo:49"));
    assert_eq!(thread.cpus.to_string(), last.to_string());
    let [load] = &record.loads[..] else { panic!("one load") };
    assert!(load.failure.is_none() && load.seconds.iter().any(|second| second.operations > Some(0)), "{load:?}");
}

#[test]
fn vm_a_kernel_without_drivers_for_a_disk_is_one_line() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("lab-no-disk");
    // Without its modules beside it.
    std::fs::copy(kernel, scratch.path("vmlinuz")).unwrap();
    let text = format!(
        "repetitions = 1\nduration = \"1s\"\n[axes]\nload = [\"disk\"]\nperiod = [\"10ms\"]\n\
         kernel = [\"{} clock=emulated\"]\n",
        scratch.path("vmlinuz").display()
    );
    let plan = scratch.file("plan.toml", text);
    let said = punctual(&format!("run {} --wait --out {}", plan.display(), scratch.path("run").display()));
    let reason = "no disk: the kernel needs virtio_pci and virtio_blk, built in or as modules";
    assert!(said.status == 1 && said.last_line().contains(reason), "{said:?}");
}

#[test]
#[ignore = "long: boots two guests"]
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
