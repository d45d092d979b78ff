//! Kernels, packages and directories of other users: no link is followed, no read is endless, nothing is taken over.

use crate::program::{ended, finish, is_installed, is_root, skip_unless};
use crate::pure::lab_kernels::{System, expect_line, vmlinux};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use sys::testing::comes_true;

#[test]
fn nothing_but_files_is_taken_out_of_a_package() {
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    let system = System::new("untrusted-package");
    let secret = system.scratch.file("secret", vmlinux(62, true, 7));
    let module = "lib/modules/6.1/uio.ko";
    let link = |name: &str| format!("ln -sf {} {name}", secret.display());
    let fifo = |name: &str| format!("rm -f {name}; mkfifo {name}");
    let [kernel, config] = ["vmlinuz", "config"].map(|name| format!("boot/{name}-6.1.0-9-amd64"));
    let mut cases = Vec::new();
    for name in [kernel.as_str(), config.as_str(), module] {
        cases.extend([(name, link(name)), (name, fifo(name))]);
        if is_root() {
            cases.push((name, format!("rm -f {name}; mknod {name} c 1 5")));
        }
    }
    for (n, (name, script)) in cases.iter().enumerate() {
        let script = format!("mkdir -p lib/modules/6.1 && {script}");
        let package = system.package_with(&format!("{n}.deb"), &vmlinux(62, true, 0), &script);
        let said = ended(&mut system.command(&format!("lab fetch {}", package.display())));
        expect_line(&said, &format!("{n}.deb: {name} in the package: expected a regular file"));
    }
    assert_eq!(system.cached(), Vec::<String>::new(), "nothing stays");

    // Unused links and pipes are harmless, and no mode of the package is kept.
    let script = format!("chmod 4777 {kernel} && {} && {}", link("boot/initrd.img"), fifo("boot/System.map"));
    let package = system.package_with("setuid.deb", &vmlinux(62, true, 0), &script);
    ended(&mut system.command(&format!("lab fetch {}", package.display()))).expect_success();
    let mut kept = Vec::new();
    below(&system.scratch.path("cache"), &mut |path| kept.push(path.to_owned()));
    assert!(kept.iter().any(|path| path.ends_with("vmlinuz")), "{kept:?}");
    for path in kept.iter().filter(|path| path.is_file()) {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7133, 0, "{}", path.display());
    }
}

/// Calls `each` for every path below `directory`.
fn below(directory: &Path, each: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        each(&entry.path());
        if entry.file_type().unwrap().is_dir() {
            below(&entry.path(), each);
        }
    }
}

#[test]
fn a_kernel_is_a_regular_file_of_a_sensible_size() {
    let system = System::new("untrusted-kernel");
    let [fifo, fifo_package, sparse] = ["fifo", "fifo.deb", "sparse"].map(|name| system.scratch.path(name));
    for path in [&fifo, &fifo_package] {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    fs::File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    for (path, expected) in [
        (Path::new("/dev/zero"), "expected a regular file; name another file"),
        (&fifo, "expected a regular file; name another file"),
        (&fifo_package, "expected a regular file; name another file"),
        (system.scratch.dir(), "expected a regular file; name another file"),
        (&sparse, "larger than 2048 MiB; name another file"),
    ] {
        let said = ended(&mut system.command(&format!("lab fetch {}", path.display())));
        said.expect_error(&format!("{}: {expected}", path.display()));
    }
}

#[test]
fn a_signal_ends_what_is_started_to_fetch_a_kernel_and_nothing_stays() {
    let system = System::new("untrusted-signal");
    let package = system.scratch.file("endless.deb", "no package");
    system.apt(&package, "");
    let started = system.scratch.path("started");
    // Each program writes its process ID and then does not end.
    let script = format!("echo $$ >{0}.new; /bin/mv {0}.new {0}; exec", started.display());
    system.program("dpkg-deb", &format!("{script} cat /dev/zero"));
    system.program("apt-get", &format!("{script} /bin/sleep 1000"));
    for kernel in [package.display().to_string(), "debian:6.1".to_owned()] {
        let mut command = system.command(&format!("lab fetch {kernel}"));
        let mut fetch = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        assert!(comes_true(|| started.exists()), "{kernel}");
        let pid = fs::read_to_string(&started).unwrap().trim().to_owned();
        fs::remove_file(&started).unwrap();
        sys::process::signal(fetch.id(), libc::SIGTERM).unwrap();
        assert!(comes_true(|| fetch.try_wait().unwrap().is_some()), "{kernel}: it goes on");
        let said = finish(fetch);
        assert_eq!(said.status, 1, "{said:?}");
        assert!(said.last_line().starts_with("punctual: interrupted"), "{said:?}");
        assert!(comes_true(|| !Path::new("/proc").join(&pid).exists()), "{kernel}: its program goes on");
        assert_eq!(system.cached(), Vec::<String>::new(), "{kernel}");
    }
}
