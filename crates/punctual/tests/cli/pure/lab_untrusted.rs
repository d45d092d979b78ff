//! Kernels, packages and directories of other users: no link is followed, no read is endless, nothing is taken over.

use crate::program::{Scratch, finish, in_test, is_installed, run, skip_unless};
use crate::pure::lab_kernels::system;
use crate::session::play;
use punctual_sys::testing::comes_true;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn nothing_but_files_is_taken_out_of_a_package() {
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    play(|scratch, _| system(scratch));
}

#[test]
fn a_signal_ends_what_is_started_to_fetch_a_kernel_and_nothing_stays() {
    let scratch = Scratch::new("untrusted-signal");
    system(&scratch);
    scratch.file("endless.deb", "no package");
    let shell = |words: &str| run(Command::new("sh").args(["-c", words]).current_dir(scratch.dir())).expect_success();
    shell("./apt endless.deb");
    let started = scratch.path("started");
    // Each program writes its process ID and then does not end.
    let script = format!("echo $$ >{0}.new; /bin/mv {0}.new {0}; exec", started.display());
    shell(&format!("./program dpkg-deb '{script} cat /dev/zero'; ./program apt-get '{script} /bin/sleep 1000'"));
    for kernel in ["./endless.deb", "debian:6.1"] {
        let mut command = Command::new(scratch.path("punctual"));
        in_test(command.args(["lab", "fetch", kernel]).current_dir(scratch.dir()));
        let mut fetch = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        assert!(comes_true(|| started.exists()), "{kernel}");
        let pid = fs::read_to_string(&started).unwrap().trim().to_owned();
        fs::remove_file(&started).unwrap();
        punctual_sys::process::signal(fetch.id(), libc::SIGTERM).unwrap();
        assert!(comes_true(|| fetch.try_wait().unwrap().is_some()), "{kernel}: it goes on");
        let said = finish(fetch);
        assert_eq!(said.status, 1, "{said:?}");
        assert!(said.last_line().starts_with("punctual: interrupted"), "{said:?}");
        assert!(comes_true(|| !Path::new("/proc").join(&pid).exists()), "{kernel}: its program goes on");
        assert_eq!(shell("ls -A cache/punctual/kernels").stdout, "", "{kernel}");
    }
}
