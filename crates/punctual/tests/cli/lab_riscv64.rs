//! Guests of riscv64 on this machine, in emulated time.

use crate::board;
use crate::lab_kernels::{System, expect_line, plan};
use crate::program::{entries, is_installed, machine, machine_and_scratch, punctual, run, skip_unless};
use model::{Architecture, LabClock};

#[test]
#[ignore = "long: boots guests"]
fn vm_riscv64_guests_are_measured_in_emulated_time() {
    skip_unless!(is_installed("qemu-system-riscv64", "qemu-system-misc"));
    if let Err(reason) = host::program_of(Architecture::Riscv64) {
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
        let is_measured = |thread: &model::ThreadRecord| thread.is_consistent() && thread.recorded > 10;
        assert!(entry.record.threads.iter().all(is_measured), "{:?}", entry.record.threads);
        assert!(entry.record.loads.iter().all(|load| load.failure.is_none() && !load.did_nothing()));
    }
}

#[test]
fn a_riscv64_guest_is_refused_in_virtual_time() {
    let _machine = machine();
    let system = System::new("riscv64-refused");
    let mut image = vec![0; 0x1000];
    image[0x38..0x3c].copy_from_slice(b"RSC\x05");
    let image = system.scratch.file("Image", image).display().to_string();
    let said = |kernel: &str| {
        let plan = system.scratch.file("plan.toml", plan(kernel, "none", ""));
        let mut command = system.command("run --wait --out");
        run(command.arg(system.scratch.path("out")).arg(plan).env("PUNCTUAL_BINARIES", system.scratch.path("binaries")))
    };
    for kernel in [image.as_str(), "debian:6.12-riscv64"] {
        expect_line(&said(kernel), "unsupported: virtual time in a guest of riscv64");
    }
    let emulated = format!("{image} clock=emulated");
    expect_line(&said(&emulated), "qemu-system-riscv64 is not installed; apt-get install qemu-system-misc");
    system.program("qemu-system-riscv64", "echo QEMU emulator version 7.2.0");
    expect_line(&said(&emulated), "found no punctual-riscv64, this program for riscv64; copy it beside this one");
}
