//! The lab: the same to the bit on a busy machine, kernels told apart, and nothing left of a guest.

use crate::program::{Scratch, comes_true, command, machine, punctual, run};
use crate::vm::kernel;
use model::{Entry, LabClock};
use std::path::Path;

/// One kernel of Debian, as if it were two.
fn plan(scratch: &Scratch, kernel: &Path) -> String {
    let kernel = kernel.display();
    let plan = format!(
        "repetitions = 1\nduration = \"200ms\"\nwarm_up = \"20ms\"\n[axes]\n\
         kernel = [\"{kernel} preempt=none\", \"{kernel} preempt=full\"]\n\
         load = [\"none\", \"exec\"]\npolicy = [\"fifo:90\"]\nperiod = [\"1ms\"]\n"
    );
    scratch.file("plan.toml", plan).display().to_string()
}

fn entries(run: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(run.join("run.jsonl")).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn vm_virtual_time_is_the_same_to_the_bit_and_tells_kernels_apart() {
    let Some(kernel) = kernel() else { return };
    let _machine = machine();
    let scratch = Scratch::new("lab");
    let plan = plan(&scratch, &kernel);
    let [quiet, busy] = ["quiet", "busy"].map(|name| scratch.path(name));
    let said = punctual(&format!("run {plan} --seed 1 --wait --out {}", quiet.display()));
    assert_eq!(said.status, 0, "{said:?}");
    // The second time beside a load on every CPU.
    let mut load = command("load cpu --for 10min").stdout(std::process::Stdio::null()).spawn().unwrap();
    let again = punctual(&format!("run {plan} --seed 1 --wait --out {}", busy.display()));
    load.kill().unwrap();
    load.wait().unwrap();
    assert_eq!(again.status, 0, "{again:?}");

    let entries = [entries(&quiet), entries(&busy)];
    assert_eq!(entries[0].len(), 4);
    assert!(entries[0] == entries[1], "virtual time does not depend on what else the machine does");
    for entry in &entries[0] {
        let lab = entry.record.lab.as_ref().unwrap();
        assert_eq!(lab.clock, LabClock::Virtual);
        assert!(lab.command_line.contains("preempt=") && lab.qemu.starts_with("QEMU"), "{lab:?}");
        assert!(entry.record.threads[0].is_consistent());
        assert_eq!(entry.record.threads[0].recorded, 200);
    }
    // Of the order of the plan: none and exec without preemption, none and exec with it.
    let mut by_cell: Vec<_> = entries[0].iter().collect();
    by_cell.sort_by_key(|entry| entry.planned.cell_index);
    let max = |cell: usize| by_cell[cell].record.threads[0].histogram.max_ns.unwrap();
    assert!(max(1) > 2 * max(3), "exec holds up a kernel without preemption: {} and {}", max(1), max(3));
    assert!(said.stdout.contains("virtual time, in 1000 instructions"), "{}", said.stdout);
    assert!(said.stdout.contains("is no latency of any hardware"), "{}", said.stdout);
}

#[test]
fn vm_a_guest_ends_with_its_campaign() {
    let Some(kernel) = kernel() else { return };
    let _machine = machine();
    let scratch = Scratch::new("lab-killed");
    let plan = plan(&scratch, &kernel);
    let mut campaign = run_in_background(&format!("run {plan} --wait --out {}", scratch.path("run").display()));
    let image = format!("punctual-guest-{}", campaign.id());
    let guests = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        let is_qemu = |line: &Vec<u8>| line.starts_with(b"qemu") && String::from_utf8_lossy(line).contains(&image);
        lines.filter(is_qemu).count()
    };
    assert!(comes_true(|| guests() == 1), "a guest runs");
    campaign.kill().unwrap();
    campaign.wait().unwrap();
    assert!(comes_true(|| guests() == 0), "QEMU outlives its campaign");
}

fn run_in_background(arguments: &str) -> std::process::Child {
    use std::process::Stdio;
    command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn vm_what_cannot_boot_is_one_line() {
    let Some(_) = kernel() else { return };
    let _machine = machine();
    let scratch = Scratch::new("lab-broken");
    let text = scratch.file("notes.txt", "no kernel");
    let with = |kernel: &str| {
        let plan = format!("repetitions = 1\nduration = \"100ms\"\n[axes]\nkernel = [\"{kernel}\"]\n");
        let plan = scratch.file("plan.toml", plan);
        let out = scratch.path(&format!("out-{}", kernel.len()));
        run(command("run").arg(plan).arg("--out").arg(out).arg("--wait"))
    };
    for (kernel, expected) in [
        (text.display().to_string(), "no bzImage and no vmlinux of x86; name another file"),
        ("/nowhere/vmlinuz".to_owned(), "/nowhere/vmlinuz: No such file or directory"),
        ("debian:1.3".to_owned(), "knows no package of debian:1.3"),
    ] {
        let said = with(&kernel);
        assert_eq!(said.status, 1, "{said:?}");
        assert!(said.stderr.contains(expected), "{kernel}: {}", said.stderr);
    }
}
