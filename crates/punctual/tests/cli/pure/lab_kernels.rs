//! Kernels of the lab: their sources, refusals, files for guests, and the step of a bisection.

use crate::program::{ProgramOutput, Scratch, command, is_installed, run, skip_unless};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The headers of a vmlinux, enough for all checks before QEMU. `n` varies the content.
pub(crate) fn vmlinux(machine: u8, has_pvh: bool, n: u8) -> Vec<u8> {
    let mut file = vec![0; 0x78];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[0x12] = machine;
    (file[0x20], file[0x36], file[0x38]) = (0x40, 0x38, 1);
    (file[0x40], file[0x48], file[0x60]) = (4, 0x78, 20);
    let name: &[u8] = if has_pvh { b"Xen\0" } else { b"GNU\0" };
    file.extend([b"\x04\0\0\0\x04\0\0\0\x12\0\0\0", name, b"\0\0\0\0"].concat());
    file.push(n);
    file
}

/// The configuration of the kernel of a package.
pub(crate) const CONFIG: &str = "# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_PREEMPT_DYNAMIC=y\n";

/// A system with its own programs and cache.
pub(crate) struct System {
    pub(crate) scratch: Scratch,
}

impl System {
    pub(crate) fn new(name: &str) -> System {
        let scratch = Scratch::new(name);
        fs::create_dir(scratch.path("bin")).unwrap();
        let system = System { scratch };
        for program in ["sha256sum", "dpkg-deb", "gzip", "xz", "zstd", "cat", "cp", "sh", "rm"] {
            let found = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(program)).find(|path| path.exists());
            if let Some(path) = found {
                std::os::unix::fs::symlink(path, system.scratch.path("bin").join(program)).unwrap();
            }
        }
        system
    }

    /// Installs a program with this script.
    pub(crate) fn program(&self, name: &str, script: &str) {
        // The name may be a link to this machine's own program, which must not be written to.
        self.scratch.executable(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    }

    /// `punctual ARGUMENTS` in this system.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = command(arguments);
        command.env("PATH", self.scratch.path("bin")).env("XDG_CACHE_HOME", self.scratch.path("cache"));
        command
    }

    pub(crate) fn say(&self, arguments: &str) -> ProgramOutput {
        run(&mut self.command(arguments))
    }

    /// A package that contains this kernel.
    fn package(&self, name: &str, kernel: &[u8]) -> PathBuf {
        self.package_with(name, kernel, "true")
    }

    /// A package that contains this kernel, changed by `script` before it is packed.
    pub(crate) fn package_with(&self, name: &str, kernel: &[u8], script: &str) -> PathBuf {
        let tree = self.scratch.path("tree");
        let _ = fs::remove_dir_all(&tree);
        fs::create_dir_all(tree.join("DEBIAN")).unwrap();
        fs::create_dir_all(tree.join("boot")).unwrap();
        let control = "Package: linux-image\nVersion: 1\nArchitecture: amd64\nMaintainer: a <a@b.c>\nDescription: x\n";
        fs::write(tree.join("DEBIAN/control"), control).unwrap();
        fs::write(tree.join("boot/vmlinuz-6.1.0-9-amd64"), kernel).unwrap();
        fs::write(tree.join("boot/config-6.1.0-9-amd64"), CONFIG).unwrap();
        let changed = Command::new("sh").args(["-c", script]).current_dir(&tree).output().unwrap();
        assert!(changed.status.success(), "{script}: {changed:?}");
        let file = self.scratch.path(name);
        let built = Command::new("dpkg-deb").arg("--build").arg(&tree).arg(&file).output().unwrap();
        assert!(built.status.success(), "{built:?}");
        file
    }

    /// Installs a package manager that knows one package, `file`, with the checksum `sum`.
    pub(crate) fn apt(&self, file: &Path, sum: &str) {
        let bytes = fs::metadata(file).unwrap().len();
        self.program(
            "apt-cache",
            &format!(
                "case $1 in pkgnames) echo linux-image-6.1.0-9-amd64;;\n*) printf '%s\\n' \
                 'Package: linux-image-6.1.0-9-amd64' 'Version: 6.1.4-1' 'Size: {bytes}' 'SHA256: {sum}';; esac"
            ),
        );
        self.program("apt-get", &format!("cp {} ./linux-image-6.1.0-9-amd64_6.1.4-1_amd64.deb", file.display()));
    }

    pub(crate) fn cached(&self) -> Vec<String> {
        let entries = fs::read_dir(self.scratch.path("cache/punctual/kernels")).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn sha256(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

/// Asserts exit status 1 and a single line that contains `expected`.
#[track_caller]
pub(crate) fn expect_line(said: &ProgramOutput, expected: &str) {
    assert_eq!((said.status, said.stderr.lines().count()), (1, 1), "{said:?}");
    assert!(said.stderr.contains(expected), "{said:?}");
}

#[test]
fn a_fetched_kernel_is_checked_and_made_again_when_it_is_damaged() {
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    let system = System::new("kernels-fetch");
    let package = system.package("k.deb", &vmlinux(62, true, 0));
    let sum = sha256(&package);
    system.apt(&package, &sum);
    let listed = |said: &ProgramOutput| said.json()["kernels"][0].clone();
    let before = listed(&system.say("lab list --format json"));
    assert_eq!(before["kernel"], "debian:6.1");
    assert_eq!((&before["path"], &before["preempt"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert_eq!(before["package_sha256"], *sum);

    let said = system.say("lab fetch debian:6.1");
    assert_eq!((said.status, said.stderr.lines().count()), (0, 1), "{said:?}");
    assert!(said.stderr.starts_with("fetching linux-image-6.1.0-9-amd64"), "{said:?}");
    assert!(said.stdout.starts_with("debian:6.1: linux-image-6.1.0-9-amd64, "), "{said:?}");
    let said = system.say("lab list --format json");
    crate::pure::schema::assert_conforms("lab-list", &said.json());
    let after = listed(&said);
    assert_eq!(
        (&after["version"], &after["preempt"]),
        (&"6.1.4-1".into(), &serde_json::json!(["none", "voluntary", "full"]))
    );
    let kernel = PathBuf::from(after["path"].as_str().unwrap());
    assert_eq!(after["kernel_sha256"], *sha256(&kernel));
    assert!(system.say("lab list").stdout.contains("preempt=none|voluntary|full"));

    // The second fetch is a no-op, and only the kernel remains.
    let said = system.say("lab fetch debian:6.1");
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{said:?}");
    let names = system.cached();
    assert_eq!(names.len(), 2, "{names:?}");
    let unpacked =
        kernel.parent().unwrap().with_file_name(names.iter().find(|name| name.starts_with("vmlinux-")).unwrap());

    for (file, told) in [(&kernel, 2), (&unpacked, 1)] {
        let whole = fs::read(file).unwrap();
        fs::write(file, [&whole[..whole.len() - 1], b"!"].concat()).unwrap();
        let said = system.say("lab fetch debian:6.1");
        assert_eq!((said.status, said.stderr.lines().count()), (0, told), "{said:?}");
        assert!(said.stderr.contains("is damaged"), "{said:?}");
        assert_eq!(fs::read(file).unwrap(), whole);
        assert_eq!(system.cached(), names);
    }
}

#[test]
fn without_apt_the_cache_serves_or_an_error_has_a_hint() {
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    let system = System::new("kernels-no-apt");
    expect_line(
        &system.say("lab fetch debian:6.1"),
        "this system has no apt, and none is cached; name a kernel's file",
    );
    let listed = system.say("lab list");
    assert_eq!((listed.status, listed.stdout.as_str()), (0, ""));
    assert!(listed.stderr.contains("this system has no apt; a plan may also name a kernel's file"), "{listed:?}");

    let package = system.package("k.deb", &vmlinux(62, true, 0));
    system.apt(&package, &sha256(&package));
    expect_line(&system.say("lab fetch debian:6.2"), "found no package of debian:6.2; apt-get update");
    system.program(
        "apt-get",
        "echo 'E: Failed to fetch http://x  404  Not Found' >&2; echo 'W: a warning' >&2; exit 100",
    );
    let said = system.say("lab fetch debian:6.1");
    assert_eq!(said.status, 1, "{said:?}");
    let last = said.last_line();
    assert_eq!(last, "punctual: apt-get: Failed to fetch http://x  404  Not Found");

    system.apt(&package, &"0".repeat(64));
    let said = system.say("lab fetch debian:6.1");
    assert!(said.status == 1 && said.stderr.contains("checksum mismatch: expected "), "{said:?}");
    assert_eq!(system.cached(), Vec::<String>::new(), "nothing stays of what failed");

    system.apt(&package, &sha256(&package));
    assert_eq!(system.say("lab fetch debian:6.1").status, 0);
    for program in ["apt-cache", "apt-get"] {
        fs::remove_file(system.scratch.path("bin").join(program)).unwrap();
    }
    let said = system.say("lab fetch debian:6.1");
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{said:?}");
    assert!(system.say("lab list").stdout.starts_with("kernel "), "what is in the cache is listed");
}

#[test]
fn a_package_in_a_file_is_a_kernel_and_a_broken_one_is_named() {
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    let system = System::new("kernels-deb");
    let package = system.package("k.deb", &vmlinux(62, true, 0));
    for _ in 0..2 {
        let said = system.say(&format!("lab fetch {}", package.display()));
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{said:?}");
    }
    let whole = fs::read(&package).unwrap();
    let cut = system.scratch.file("cut.deb", &whole[..whole.len() - 100]);
    expect_line(&system.say(&format!("lab fetch {}", cut.display())), "damaged package (dpkg-deb: ");
    let text = system.scratch.file("text.deb", "no package");
    expect_line(&system.say(&format!("lab fetch {}", text.display())), "damaged package (dpkg-deb: ");
    let names = system.cached();
    assert!(names.len() == 2 && names.iter().all(|name| !name.starts_with('.')), "{names:?}");
    fs::remove_file(system.scratch.path("bin/dpkg-deb")).unwrap();
    expect_line(
        &system.say(&format!("lab fetch {}", text.display())),
        "dpkg-deb: is not installed; unpack the package elsewhere",
    );
}

#[test]
fn files_that_no_guest_here_can_boot_are_named_as_such() {
    let system = System::new("kernels-foreign");
    let mut i386 = vec![0; 0x1000];
    i386[0x202..0x206].copy_from_slice(b"HdrS");
    i386[0x206..0x208].copy_from_slice(&[0x0f, 0x02]);
    let foreign = "unsupported: kernel for another architecture; the lab boots kernels for x86-64, arm64 and riscv64";
    for (name, content, expected) in [
        ("bzImage", i386, foreign),
        ("vmlinux-s390", vmlinux(22, true, 0), foreign),
        (
            "vmlinux-riscv",
            vmlinux(243, true, 0),
            "unsupported: vmlinux of riscv64, which QEMU cannot boot; name its Image (arch/riscv/boot/Image)",
        ),
        (
            "vmlinux-arm",
            vmlinux(183, true, 0),
            "unsupported: vmlinux of arm64, which QEMU cannot boot; name its Image (arch/arm64/boot/Image)",
        ),
        (
            "vmlinux",
            vmlinux(62, false, 0),
            "unsupported: vmlinux without PVH (CONFIG_PVH), which QEMU cannot boot; name its bzImage",
        ),
        (
            "notes.txt",
            b"no kernel".to_vec(),
            "expected a bzImage or a vmlinux for x86, or an Image for arm64 or riscv64; name another file",
        ),
    ] {
        let file = system.scratch.file(name, content);
        let said = system.say(&format!("lab fetch {}", file.display()));
        said.expect_error(&format!("{}: {expected}", file.display()));
    }
    expect_line(&system.say("lab fetch /nowhere/vmlinuz"), "/nowhere/vmlinuz: No such file or directory");
    expect_line(&system.say("lab fetch running"), "which is not fetched; expected one like debian:6.1");
}

#[test]
fn a_cache_that_cannot_be_written_is_named_with_what_to_do() {
    let system = System::new("kernels-cache");
    let kernel = system.scratch.file("vmlinux", vmlinux(62, true, 0));
    system.scratch.file("cache", "a file");
    let said = system.say(&format!("lab fetch {}", kernel.display()));
    expect_line(&said, "cannot cache kernels here: ");
    expect_line(&said, "set XDG_CACHE_HOME to a directory with room");
}

pub(crate) fn plan(kernel: &str, load: &str, more: &str) -> String {
    format!(
        "repetitions = 1\nduration = \"100ms\"\nwarm_up = \"20ms\"\n{more}\n[axes]\nkernel = [\"{kernel}\"]\n\
         load = [\"{load}\"]\npolicy = [\"fifo:90\"]\n"
    )
}

#[test]
fn what_the_lab_cannot_do_is_said_before_anything_is_started() {
    let system = System::new("kernels-refused");
    let said = |load: &str, more: &str| {
        let plan = system.scratch.file("plan.toml", plan("/k/vmlinux", load, more));
        let out = system.scratch.path("out");
        run(system.command("run --wait --out").arg(out).arg(plan))
    };
    let nothing = "cannot measure anything: ";
    said("none", "")
        .expect_error(&format!("{nothing}qemu-system-x86_64 is not installed; apt-get install qemu-system-x86"));
    system.program("qemu-system-x86_64", "echo 'QEMU emulator version 6.2.0 (old)'");
    said("none", "").expect_error(&format!(
        "{nothing}unsupported: QEMU emulator version 6.2.0 (old), too old for virtual time; install 7.0 or newer"
    ));
    system.program("qemu-system-x86_64", "echo 'something else'");
    expect_line(&said("none", ""), ": something else; install 7.0 or newer");
    system.program("qemu-system-x86_64", "echo QEMU emulator version 7.2.0");
    let cpus = sys::sched::affinity(0).unwrap();
    if cpus.len() > 1 {
        expect_line(
            &said("none", &format!("cpus = \"{cpus}\"")),
            "unsupported: several CPUs in virtual time, whose clock counts instructions",
        );
    }
    expect_line(&said("cmd:true", ""), "guests do not contain sh; add it, like files = [\"/usr/bin/dash:/bin/sh\"]");
    expect_line(
        &said("fio:x", "files = [\"/bin/sh\"]"),
        "guests do not contain fio; add it, like files = [\"/usr/bin/fio\"]",
    );
}

#[test]
fn a_mistake_in_a_step_of_a_bisection_says_nothing_of_the_kernel() {
    let system = System::new("kernels-bisect");
    for (arguments, expected) in [
        ("lab bisect-step", "is missing"),
        ("lab bisect-step --kernel vmlinuz --max 30us", "--kernel: unknown kernel `vmlinuz`"),
        ("lab bisect-step --kernel /k/vmlinuz --max 0us", "--max: invalid limit `0`: expected a time above 0"),
        ("lab bisect-step --kernel /k/vmlinuz", "is missing"),
        ("lab bisect-step --kernel running --max 1ms", "which guests do not boot"),
        ("lab bisect-step --kernel /k/vmlinuz --max 1ms", "qemu-system-x86_64 is not installed"),
    ] {
        let said = system.say(arguments);
        assert_eq!((said.status, said.stderr.lines().count(), said.stdout.as_str()), (128, 1, ""), "{said:?}");
        assert!(said.stderr.contains(expected), "{arguments}: {said:?}");
    }
}
