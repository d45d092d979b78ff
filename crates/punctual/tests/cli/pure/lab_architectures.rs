//! Guests of other architectures: what they need, and where their kernels come from.

use crate::program::{ProgramOutput, run};
use crate::pure::lab_kernels::{System, expect_line, plan};

#[test]
fn what_an_arm64_guest_needs_is_one_line() {
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

#[test]
fn a_riscv64_guest_is_refused_in_virtual_time() {
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
