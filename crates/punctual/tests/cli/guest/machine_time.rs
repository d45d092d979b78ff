//! Guests in machine time: what is set for their threads is read back, and their times are compared with no others.

use crate::guest::vm::kernel;
use crate::program::{command, entries, inconclusive, is_root, machine_and_scratch, punctual, run, skip_unless};
use punctual_model::{GuestThreadKind, LabClock};

#[test]
fn vm_emulated_guests_are_never_compared_with_virtual_time() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("lab-emulated");
    let [emulated, virtual_time] =
        ["clock=emulated cpus=2", "preempt=full"].map(|words| format!("{} {words}", kernel.display()));
    let plan = format!(
        "repetitions = 1\nduration = \"200ms\"\n[axes]\nkernel = [\"{emulated}\", \"{virtual_time}\"]\n\
         load = [\"none\"]\npolicy = [\"fifo:90\"]\nperiod = [\"10ms\"]\n"
    );
    let plan = scratch.file("plan.toml", plan);
    let out = scratch.path("run");
    let said = punctual(&format!("run {} --wait --out {}", plan.display(), out.display())).expect_success();
    let entries = entries(&out);
    let of_emulated = &entries[0];
    let lab = of_emulated.record.lab.as_ref().unwrap();
    assert_eq!((lab.clock, lab.machine.as_str()), (LabClock::Emulated, "pc, qemu64, 2 CPUs"));
    assert_eq!(of_emulated.record.threads.iter().map(|thread| thread.cpu).collect::<Vec<_>>(), [0, 1]);
    assert!(said.stdout.contains("emulation in 1 cell"), "{}", said.stdout);
    let compared_by_name = |a: &str, b: &str| run(command("compare").arg(&out).arg(a).arg(b));
    let by_kernel = compared_by_name(&format!("kernel={emulated}"), &format!("kernel={virtual_time}"));
    assert_eq!(by_kernel.status, 1, "{by_kernel:?}");
    assert!(by_kernel.stderr.contains("time"), "{by_kernel:?}");
}

#[test]
fn root_vm_policies_of_a_guests_threads_are_set_and_read_back() {
    let Some(kernel) = kernel().filter(|_| is_root()) else { return };
    let here = punctual_sys::sched::affinity(0).unwrap();
    skip_unless!(here.len() > 1);
    let (_machine, scratch) = machine_and_scratch("lab-threads");
    let (first, last) = (here.iter().next().unwrap(), here.iter().last().unwrap());
    let text = format!(
        "repetitions = 1\nduration = \"1s\"\nwarm_up = \"100ms\"\n[axes]\nload = [\"disk\"]\npolicy = [\"fifo:80\"]\n\
         period = [\"10ms\"]\nkernel = [{{ image = \"{}\", clock = \"emulated\", vcpu_policy = [\"other\", \"fifo:48\"], \
         vcpu_cpus = \"{last}\", emulator_policy = \"rr:51\", emulator_cpus = \"{first}\", io_policy = \"fifo:49\", \
         io_cpus = \"{last}\" }}]\n",
        kernel.display()
    );
    let (plan, out) = (scratch.file("plan.toml", text), scratch.path("run"));
    punctual(&format!("run {} --wait --out {}", plan.display(), out.display())).expect_success();
    let entries = entries(&out);
    assert_eq!(entries.len(), 2);
    for entry in &entries {
        let asked = entry.record.cell.kernel.to_string();
        let lab = entry.record.lab.as_ref().unwrap();
        assert!(lab.machine.ends_with(", virtio disk"), "{}", lab.machine);
        let of = |kind| lab.threads.iter().filter(|thread| thread.kind == kind).collect::<Vec<_>>();
        let ([vcpu], [io]) = (&of(GuestThreadKind::Vcpu)[..], &of(GuestThreadKind::Io)[..]) else {
            panic!("one vCPU and one I/O thread: {:?}", lab.threads)
        };
        assert!(asked.contains(&format!("vcpu_policy={} ", vcpu.policy)), "{asked}: {vcpu:?}");
        assert_eq!((vcpu.cpus.to_string(), io.cpus.to_string()), (last.to_string(), last.to_string()));
        assert_eq!(io.policy, "fifo:49");
        let others = of(GuestThreadKind::Emulator);
        let is_set = |thread: &&&punctual_model::GuestThread| {
            thread.policy == "rr:51" && thread.cpus.to_string() == first.to_string()
        };
        assert!(!others.is_empty() && others.iter().all(|thread| is_set(&thread)), "{others:?}");
        let [load] = &entry.record.loads[..] else { panic!("one load") };
        assert!(entry.record.threads[0].is_consistent() && load.failure.is_none(), "{load:?}");
        if !load.seconds.iter().any(|second| second.operations > Some(0)) {
            inconclusive("the disk of the guest was not written in the time of the cell");
        }
    }
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
