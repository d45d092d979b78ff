//! Runs over boots of a PC with two kernels, in QEMU: to the end by themselves, and when its power is cut.

use crate::program::{PROGRAM, Scratch, punctual};
use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

/// Places of the program at which the power of the PC is cut, three in each run: one of its end last.
const PLACES: &str = "
    run-made boot-program-copied boot-unit-written    boot-began cell-started boot-entry-removed
    cell-untied cell-given boot-file-removed    lock-taken boot-set campaign-made
    boot-asked boot-restarts cell-begun    boot-unit-made boot-entry-made supervisor-forked
    supervisor-made group-made load-forked    load-works loads-started cell-armed
    threads-released cell-looked cell-measured    load-over cell-ended record-kept
";

fn script(name: &str, words: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/field").join(name);
    let output = Command::new("sh").arg("-e").arg(path).args(words).output().unwrap();
    let (shown, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} {words:?}: {shown}{wrong}");
    shown.into_owned()
}

/// Makes the disk of the PC; `None`, and a line, where that is not possible.
fn pc() -> Option<Scratch> {
    let needed = "usr/bin/qemu-system-x86_64 usr/sbin/debootstrap usr/sbin/sfdisk usr/bin/mcopy \
                  usr/lib/grub/x86_64-efi usr/lib/grub/i386-pc usr/share/OVMF/OVMF_CODE_4M.fd";
    let is_there = needed.split_whitespace().all(|path| Path::new("/").join(path).exists());
    if punctual_sys::process::effective_user_id() != 0 || !is_there {
        eprintln!("skipped: needs root, and of Debian: {needed}");
        return None;
    }
    let scratch = Scratch::new("boots");
    script("boots_disk.sh", &[scratch.dir().to_str().unwrap()]);
    Some(scratch)
}

/// Takes a run to its end; it is complete, and the PC boots as before.
fn goes_to_its_end(scratch: &Scratch, firmware: &str, cuts: &[&str]) {
    let shown = script("boots.sh", &[&[scratch.dir().to_str().unwrap(), PROGRAM, firmware], cuts].concat());
    assert!(shown.trim_end().ends_with("cuts left: none"), "{cuts:?}: {shown}");
    let run = punctual_store::read(&scratch.path("run")).unwrap();
    let made: HashSet<_> = run.entries.iter().map(|entry| entry.planned).collect();
    assert_eq!((run.entries.len(), made.len(), run.header.failed.len()), (16, 16, 0), "{cuts:?}: each cell once");
    let is_asked = |entry: &punctual_model::Entry| {
        let (asked, host) = (&entry.record.cell.kernel, &entry.record.host_before);
        host.kernel_release.as_ref().is_some_and(|release| asked.to_string().ends_with(&format!(":{release}")))
    };
    assert!(run.entries.iter().all(is_asked), "each on its kernel");
    let read = |name: &str| std::fs::read_to_string(scratch.path(name)).unwrap();
    assert_eq!(read("boot-after"), read("boot-before"));
    punctual(&format!("show {}", scratch.path("run").display())).expect_success();
}

#[test]
#[ignore = "field: boots PCs with firmware"]
fn root_a_run_over_boots_goes_to_its_end_by_bios_uefi_and_kexec() {
    let Some(scratch) = pc() else { return };
    ["bios", "uefi"].into_iter().for_each(|firmware| goes_to_its_end(&scratch, firmware, &[]));
    // What the disk boots by is put away, and stays so.
    script("boots.sh", &[scratch.dir().to_str().unwrap(), PROGRAM, "kexec"]);
    assert_eq!(punctual_store::read(&scratch.path("run")).unwrap().entries.len(), 16);
}

/// `PUNCTUAL_TEST_CUTS` is how many of the places are visited, and how many instants besides, like `30,20`.
#[test]
#[ignore = "field: boots PCs with firmware"]
fn root_a_run_over_boots_is_complete_whenever_the_power_of_the_pc_is_cut() {
    let Some(scratch) = pc() else { return };
    let asked = std::env::var("PUNCTUAL_TEST_CUTS").unwrap_or_else(|_| "30,20".to_owned());
    let (places, instants) = asked.split_once(',').unwrap();
    let places = PLACES.split_whitespace().map(str::to_owned).take(places.parse().unwrap());
    // Primes spread them over a boot of about two minutes, each another time.
    let instants = (0..instants.parse::<u32>().unwrap()).map(|n| (5 + n * 37 % 113).to_string());
    // A kernel whose boots are cut twice in turn is given up.
    for cuts in places.chain(instants).collect::<Vec<_>>().chunks(3).map(|three| three.join(" - ")) {
        goes_to_its_end(&scratch, "bios", &cuts.split(' ').collect::<Vec<_>>());
    }
}
