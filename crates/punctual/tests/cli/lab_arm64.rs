//! Guests of arm64 on this machine: the same to the bit, kernels ranked, and one line for what is missing.

use crate::lab_kernels::{System, expect_line, plan};
use crate::program::{
    ProgramOutput, Scratch, beside_a_load, entries, is_installed, machine, machine_and_scratch, punctual, run,
    run_seeded, skip_unless,
};
use model::{Entry, LabClock};
use std::path::Path;

/// Latencies are multiples of the period of the guests' timer, ns.
const TIMER_STEP_NS: i64 = 16;

/// Whether guests can be booted: QEMU and this program for arm64.
fn can_boot() -> bool {
    let is_here = is_installed("qemu-system-aarch64", "qemu-system-arm");
    let program = host::program_of(model::Architecture::Aarch64);
    if let Err(reason) = &program {
        eprintln!("skipped: {reason}");
    }
    is_here && program.is_ok()
}

/// Kernels from the least to the most preemptible one. Debian has two of them; the others are those of an Image with
/// PREEMPT_DYNAMIC.
fn models() -> Option<Vec<String>> {
    let fetched = punctual("lab fetch debian:6.1-arm64 debian:6.1-rt-arm64");
    if fetched.status != 0 {
        eprintln!("skipped: {}", fetched.stderr.trim_end());
        return None;
    }
    let Ok(image) = std::env::var("PUNCTUAL_TEST_ARM64_KERNEL") else {
        eprintln!("skipped: none and full: PUNCTUAL_TEST_ARM64_KERNEL=/path/to/Image with PREEMPT_DYNAMIC");
        return Some(["debian:6.1-arm64", "debian:6.1-rt-arm64"].map(str::to_owned).into());
    };
    let of_image = ["none", "voluntary", "full"].map(|model| format!("{image} preempt={model}"));
    Some(of_image.into_iter().chain(["debian:6.1-rt-arm64".to_owned()]).collect())
}

fn heavy_plan(scratch: &Scratch, kernels: &[String]) -> String {
    let plan = format!(
        "repetitions = 2\nduration = \"300ms\"\nwarm_up = \"50ms\"\n[axes]\nkernel = {kernels:?}\n\
         load = [\"heavy\", \"tcp\"]\npolicy = [\"fifo:99\"]\nperiod = [\"1ms\"]\n\
         [loads]\nheavy = \"cpu+sync+mmap\"\n"
    );
    scratch.file("plan.toml", plan).display().to_string()
}

/// Asserts that each phase of the cell `less` has a higher maximum than every phase of `more`.
#[track_caller]
fn expect_order(entries: &[Entry], less: usize, more: usize) {
    let maxima = |cell_index: usize| -> Vec<i64> {
        let of_cell = entries.iter().filter(|entry| entry.planned.cell_index == cell_index);
        of_cell.map(|entry| entry.record.threads[0].histogram.max_ns.unwrap()).collect()
    };
    let [less, more] = [maxima(less), maxima(more)];
    assert!(less.iter().min() > more.iter().max(), "{less:?} {more:?}");
}

#[test]
#[ignore = "long: boots guests"]
fn vm_arm64_guests_are_the_same_to_the_bit_and_rank_preemption_models() {
    skip_unless!(can_boot());
    let Some(models) = models() else { return };
    let (_machine, scratch) = machine_and_scratch("lab-arm64");
    let plan = heavy_plan(&scratch, &models);
    let [quiet, busy] = ["quiet", "busy"].map(|name| scratch.path(name));
    run_seeded(&plan, &quiet);
    beside_a_load(|| run_seeded(&plan, &busy));
    let entries = entries_of(&quiet);
    assert_eq!(entries.len(), 2 * 2 * models.len());
    assert!(entries == entries_of(&busy), "virtual time does not depend on what else the machine does");
    for entry in &entries {
        let lab = entry.record.lab.as_ref().unwrap();
        let machine = (lab.clock, lab.machine.as_str());
        assert_eq!(machine, (LabClock::Virtual, "virt, cortex-a72, 1 CPU, 62.5 MHz timer (16 ns)"));
        let thread = &entry.record.threads[0];
        assert!(thread.is_consistent() && thread.recorded == 300, "{thread:?}");
        let [min, max] = [thread.histogram.min_ns, thread.histogram.max_ns].map(Option::unwrap);
        assert!(min > 0 && [min, max].iter().all(|latency| latency % TIMER_STEP_NS == 0), "{min} {max}");
    }
    // Cells are in plan order: `heavy` and `tcp` of each model. Under `heavy` the two models without preemption hardly
    // differ, as in the study; under `tcp` they do. PREEMPT_RT is another build, so its short latencies are, too.
    let [heavy, tcp] = [0, 1].map(|load| move |model: usize| 2 * model + load);
    let last = models.len() - 1;
    (0..last).for_each(|model| expect_order(&entries, heavy(model), heavy(last)));
    if models.len() > 2 {
        (0..2).for_each(|model| expect_order(&entries, heavy(model), heavy(2)));
        (0..2).for_each(|model| expect_order(&entries, tcp(model), tcp(model + 1)));
    }
}

/// Entries of a run, in plan order.
fn entries_of(run: &Path) -> Vec<Entry> {
    let mut entries = entries(run);
    entries.sort_by_key(|entry| (entry.planned.cell_index, entry.planned.block));
    entries
}

#[test]
fn what_an_arm64_guest_needs_is_one_line() {
    let _machine = machine();
    if cfg!(target_arch = "aarch64") {
        eprintln!("skipped: these guests are of this machine's architecture");
        return;
    }
    let system = System::new("arm64-refused");
    let mut image = vec![0; 0x1000];
    image[0x38..0x3c].copy_from_slice(b"ARM\x64");
    let image = system.scratch.file("Image", image).display().to_string();
    let said = |kernel: &str, more: &str| {
        let plan = system.scratch.file("plan.toml", plan(kernel, "none", more));
        let mut command = system.command("run --wait --out");
        run(command.arg(system.scratch.path("out")).arg(plan).env("PUNCTUAL_BINARIES", system.scratch.path("binaries")))
    };
    let nothing = "cannot measure anything: ";
    for kernel in [image.as_str(), "debian:6.1-rt-arm64"] {
        said(kernel, "")
            .expect_error(&format!("{nothing}qemu-system-aarch64 is not installed; apt-get install qemu-system-arm"));
    }
    system.program("qemu-system-aarch64", "echo QEMU emulator version 7.2.0");
    expect_line(&said(&image, ""), "found no punctual-aarch64, this program for aarch64; copy it beside this one");
    system.scratch.file("binaries/punctual-aarch64", std::fs::read("/proc/self/exe").unwrap());
    expect_line(&said(&image, ""), "binaries/punctual-aarch64: a program of another architecture");
    expect_line(&said(&format!("{image} clock=kvm"), ""), "cannot use KVM: the guest is aarch64, this machine is not");
}

#[test]
fn packages_of_another_architecture_have_lists_of_their_own() {
    let _machine = machine();
    if cfg!(not(target_arch = "x86_64")) {
        eprintln!("skipped: arm64 is another architecture on x86-64 only");
        return;
    }
    let system = System::new("arm64-packages");
    let mut image = vec![0; 0x1000];
    image[0x38..0x3c].copy_from_slice(b"ARM\x64");
    let package = system.package_with("kernel.deb", &image, "true").display().to_string();
    let (log, name) = (system.scratch.path("log"), "linux-image-6.1.0-9-rt-arm64");
    system.program("apt-get", "echo 'E: no network' >&2; exit 100");
    system.program("apt-cache", &format!("case $1 in pkgnames) echo {name};; esac"));
    let said = fetched(&system);
    assert_eq!((said.status, said.last_line()), (1, "punctual: apt-get: no network"), "{said:?}");
    let copy = format!("case \"$2\" in update) ;; download) cp {package} ./{name}_1_arm64.deb;; *) exit 1;; esac");
    system.program("apt-get", &format!("echo \"$@\" >>{}\n{copy}", log.display()));
    let lists = format!("Dir::State::lists={}/punctual/apt-arm64/lists/", system.scratch.path("cache").display());
    for _ in 0..2 {
        let said = fetched(&system);
        assert!(said.status == 0 && said.stdout.contains(name), "{said:?}");
        let calls = std::fs::read_to_string(&log).unwrap();
        let [update, download] = calls.lines().collect::<Vec<_>>()[..] else { panic!("{calls}") };
        assert!(update.contains(" update ") && download.contains(&format!(" download {name} ")), "{calls}");
        assert!([update, download].iter().all(|call| call.contains(&lists) && call.contains("Architecture=arm64")));
    }
}

fn fetched(system: &System) -> ProgramOutput {
    system.say("lab fetch debian:6.1-rt-arm64")
}
