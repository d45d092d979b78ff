//! Guests and downloads of kernels that a killed process or a full disk has left half made.

use crate::program::{ProgramOutput, ended, machine, may_mount, run, skip_unless};
use crate::pure::lab_kernels::{System, expect_line, plan, vmlinux};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn what_killed_processes_have_left_of_guests_and_downloads_is_removed() {
    let _machine = machine();
    let system = System::new("kernels-left");
    // Above the highest possible process ID (proc_sys_kernel(5), pid_max).
    let dead = (1 << 22) + 1;
    let here = std::process::id();
    for name in [format!("punctual-guest-{dead}"), format!("punctual-guest-{dead}-1"), format!("punctual-guest-{here}")]
    {
        fs::create_dir_all(system.scratch.path("tmp").join(name)).unwrap();
    }
    run(system.command("recover --wait").env("TMPDIR", system.scratch.path("tmp"))).expect_success();
    let left = fs::read_dir(system.scratch.path("tmp")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), [format!("punctual-guest-{here}").as_str()], "the living keep theirs");

    let cache = system.scratch.path("cache/punctual/kernels");
    fs::create_dir_all(cache.join(format!(".linux-image-6.1.0-9-amd64.{dead}"))).unwrap();
    fs::create_dir_all(cache.join(format!(".linux-image-6.1.0-9-amd64.{here}"))).unwrap();
    fs::write(cache.join(format!(".vmlinux-0.{dead}")), "").unwrap();
    let kernel = system.scratch.file("vmlinux", vmlinux(62, true, 0));
    assert_eq!(system.say(&format!("lab fetch {}", kernel.display())).status, 0);
    let hidden: Vec<_> = system.cached().into_iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(hidden, [format!(".linux-image-6.1.0-9-amd64.{here}")]);
}

/// Runs `command` in a mount namespace with a file system of 64 KiB at `place`.
fn with_little_room(command: &Command, place: &Path) -> ProgramOutput {
    let mut inside = Command::new("unshare");
    let script = format!("/bin/mount -t tmpfs -o size=64k none {} && exec \"$@\"", place.display());
    inside.args(["--mount", "/bin/sh", "-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        value.map(|value| inside.env(name, value));
    }
    // unshare(1) itself is searched there as well.
    inside.env("PATH", format!("{}:/usr/bin:/bin", place.parent().unwrap().join("bin").display()));
    run(&mut inside)
}

#[test]
fn root_a_full_disk_is_one_line() {
    skip_unless!(may_mount());
    let _machine = machine();
    let system = System::new("kernels-full");
    let mut large = vmlinux(62, true, 0);
    large.resize(100_000, 0);
    let kernel = system.scratch.file("vmlinux", large);
    fs::create_dir(system.scratch.path("cache")).unwrap();
    let fetch = system.command(&format!("lab fetch {}", kernel.display()));
    let said = with_little_room(&fetch, &system.scratch.path("cache"));
    expect_line(&said, "No space left on device (os error 28); set XDG_CACHE_HOME to a directory with room");

    // Fails before QEMU starts: the guest's initial files do not fit.
    system.program("qemu-system-x86_64", "echo QEMU emulator version 7.2.0");
    fs::create_dir(system.scratch.path("tmp")).unwrap();
    let plan = system.scratch.file("plan.toml", plan(&kernel.display().to_string(), "none", ""));
    let mut run = system.command("run --wait --out");
    run.arg(system.scratch.path("out")).arg(plan).env("TMPDIR", system.scratch.path("tmp"));
    let said = with_little_room(&run, &system.scratch.path("tmp"));
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.last_line().contains("No space left on device"), "{said:?}");
}

#[test]
fn a_directory_that_another_user_has_planted_is_not_used_for_a_guest() {
    let _machine = machine();
    let system = System::new("untrusted-planted");
    let kernel = system.scratch.file("vmlinux", vmlinux(62, true, 0));
    let victim = system.scratch.file("victim", "root's own");
    system.program("qemu-system-x86_64", "echo QEMU emulator version 7.2.0");
    let plan = system.scratch.file("plan.toml", plan(&kernel.display().to_string(), "none", ""));
    fs::create_dir(system.scratch.path("tmp")).unwrap();
    let cache = system.scratch.path("cache/punctual/snapshots");
    fs::create_dir_all(&cache).unwrap();
    // exec keeps the process ID, so the guest's directory names are as predictable here as from ps(1).
    let script = "for n in 0 1 2 3; do for d in $TMPDIR/punctual-guest-$$-$n; do /bin/mkdir -m 777 $d; \
                  for f in job initramfs console result; do /bin/ln -s $VICTIM $d/$f; done; done; done; exec \"$@\"";
    let inner = system.command("run --wait --out");
    let mut run = Command::new("/bin/sh");
    run.args(["-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args());
    run.arg(system.scratch.path("out")).arg(plan);
    run.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run.env("TMPDIR", system.scratch.path("tmp")).env("VICTIM", &victim);
    let said = ended(&mut run);
    assert_eq!(said.status, 1, "{said:?}");
    assert_eq!(fs::read_to_string(victim).unwrap(), "root's own");
    let planted = fs::read_dir(system.scratch.path("tmp")).unwrap().flatten();
    let links = planted.map(|entry| fs::read_dir(entry.path()).unwrap().count());
    assert_eq!(links.collect::<Vec<_>>(), [4, 4, 4, 4], "they are as they were, and own ones are gone");
}
