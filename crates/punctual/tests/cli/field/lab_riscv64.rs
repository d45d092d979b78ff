//! Guests of riscv64 on this machine, in emulated time.

use crate::field::board;
use crate::program::{entries, is_installed, machine_and_scratch, punctual, skip_unless};
use punctual_model::{Architecture, LabClock};

#[test]
#[ignore = "field: guests of riscv64"]
fn vm_riscv64_guests_are_measured_in_emulated_time() {
    skip_unless!(is_installed("qemu-system-riscv64", "qemu-system-misc"));
    if let Err(reason) = punctual_host::program_of(Architecture::Riscv64) {
        eprintln!("skipped: {reason}");
        return;
    }
    let Some(files) = board::made("riscv64") else { return };
    let (_machine, scratch) = machine_and_scratch("lab-riscv64");
    let kernel = format!("{} clock=emulated cpus=2", files.join("kernel").display());
    let text = format!(
        "repetitions = 1\nduration = \"500ms\"\nwarm_up = \"100ms\"\ncpus = \"0-1\"\n[axes]\nkernel = [\"{kernel}\"]\n\
         load = [\"none\", \"pipe\"]\npolicy = [\"fifo:80\"]\nperiod = [\"5ms\"]\n"
    );
    let (plan, out) = (scratch.file("plan.toml", text), scratch.path("run"));
    punctual(&format!("run {} --wait --out {}", plan.display(), out.display())).expect_success();
    let entries = entries(&out);
    assert_eq!(entries.len(), 2);
    for entry in &entries {
        let lab = entry.record.lab.as_ref().unwrap();
        let machine = (lab.clock, lab.machine.as_str());
        assert_eq!(machine, (LabClock::Emulated, "virt, rv64, 2 CPUs, 10 MHz timer (100 ns)"));
        assert_eq!(entry.record.host_before.architecture.as_deref(), Some("riscv64"));
        assert_eq!(entry.record.threads.iter().map(|thread| thread.cpu).collect::<Vec<_>>(), [0, 1]);
        let is_measured = |thread: &punctual_model::ThreadRecord| thread.is_consistent() && thread.recorded > 10;
        assert!(entry.record.threads.iter().all(is_measured), "{:?}", entry.record.threads);
        assert!(entry.record.loads.iter().all(|load| load.failure.is_none() && !load.did_nothing()));
    }
}
