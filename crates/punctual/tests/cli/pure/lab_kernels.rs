//! Kernels of the lab: their sources, refusals, files for guests, and the step of a bisection.

use crate::program::{PROGRAM, Scratch, is_installed, skip_unless};
use crate::session::play;
use std::path::Path;

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

/// Makes a system with its own programs and cache, for sessions: `./punctual` runs in it, `./program NAME SCRIPT`
/// installs a program, `./package FILE KERNEL [SCRIPT]` makes a package of a kernel changed by a script, `./apt PACKAGE
/// [SHA256]` a package manager that knows this package, and `./plan KERNEL [LOAD [KEYS]]` writes `plan.toml`.
pub(crate) fn system(scratch: &Scratch) {
    std::fs::create_dir(scratch.path("bin")).unwrap();
    for program in ["sha256sum", "dpkg-deb", "gzip", "xz", "zstd", "cat", "cp", "sh", "rm"] {
        let found = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(program)).find(|path| path.exists());
        if let Some(path) = found {
            std::os::unix::fs::symlink(path, scratch.path("bin").join(program)).unwrap();
        }
    }
    let punctual = format!("PATH=$PWD/bin XDG_CACHE_HOME=$PWD/cache exec {PROGRAM} \"$@\"");
    // The name may be a link to this machine's own program, which must not be written to.
    let program = "rm -f bin/$1; printf '#!/bin/sh\\n%s\\n' \"$2\" > bin/$1; chmod +x bin/$1";
    let plan = plan("$1", "${2:-none}", "$3").replace('"', "\\\"");
    let (plan, package, apt) =
        (format!("echo \"{plan}\" > plan.toml"), include_str!("lab_package.sh"), include_str!("lab_apt.sh"));
    for (name, script) in
        [("punctual", &*punctual), ("program", program), ("plan", &*plan), ("package", package), ("apt", apt)]
    {
        scratch.executable(name, format!("#!/bin/sh -e\n{script}\n"));
    }
    for (name, machine, has_pvh) in [
        ("vmlinux", 62, true),
        ("vmlinux-s390", 22, true),
        ("vmlinux-riscv", 243, true),
        ("vmlinux-arm", 183, true),
        ("vmlinux-without-pvh", 62, false),
    ] {
        scratch.file(name, vmlinux(machine, has_pvh, 0));
    }
}

pub(crate) fn plan(kernel: &str, load: &str, more: &str) -> String {
    format!(
        "repetitions = 1\nduration = \"100ms\"\nwarm_up = \"20ms\"\n{more}\n[axes]\nkernel = [\"{kernel}\"]\n\
         load = [\"{load}\"]\npolicy = [\"fifo:90\"]\n"
    )
}

#[test]
fn kernels_are_fetched_and_kept_or_refused_before_anything_is_started() {
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    play(|scratch, _| system(scratch));
}
