//! A disk that is full during a run.

use crate::program::{Scratch, command, is_root, machine, run, skip_unless};
use std::process::Command;

#[test]
fn root_a_full_disk_keeps_what_was_measured_and_says_so() {
    skip_unless!(is_root());
    let scratch = Scratch::new("full");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=300k", "none"]).arg(scratch.dir()).status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("skipped: may not mount");
        return;
    }
    let _machine = machine();
    let dir = scratch.path("run");
    let said = run(command("run --wait --duration 100ms --out").arg(&dir));
    let shown = run(command("show --format json").arg(&dir));
    let unmounted = Command::new("umount").arg(scratch.dir()).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_eq!(said.status, 1, "{said:?}");
    let last = said.last_line();
    assert!(last.contains("No space left on device") && last.contains("run --resume --out"), "{last}");
    let kept: usize = last.split("; ").nth(1).and_then(|part| part.split(' ').next()?.parse().ok()).expect("a number");
    let blocks: u64 =
        shown.json()["cells"].as_array().unwrap().iter().filter_map(|cell| cell["summary"]["blocks"].as_u64()).sum();
    assert_eq!(blocks, kept as u64, "all whole measurements are shown");
}
