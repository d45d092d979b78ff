//! Settings that a cell changes: put back whatever happens to it.

use crate::program::{
    Scratch, a_cpu, cell, comes_true, command, is_root, machine, punctual, record, run, running, start_cell,
    wait_for_progress,
};
use model::{Cell, Prepare};
use rt::sys::process;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Five settings and what they are, below some root.
const SETTINGS: [(&str, &str); 5] = [
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
    ("proc/sys/kernel/timer_migration", "1"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always"),
    ("proc/irq/24/smp_affinity_list", "0-1"),
];
const PREPARE: &str =
    "governor=performance,rt_runtime=900ms,timer_migration=off,transparent_hugepages=never,irq_cpus=1";

fn prepared(text: &str, cell: Cell) -> Cell {
    let mut prepare = Prepare::default();
    prepare.set_all(text).expect("settings");
    Cell { prepare, ..cell }
}

fn write(root: &Path, path: &str, value: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("{value}\n")).unwrap();
}

fn read(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join(path)).unwrap().trim().to_owned()
}

/// `punctual ARGUMENTS` on the machine below `root`.
fn on(root: &Path, arguments: &str) -> Command {
    let mut command = command(arguments);
    command.env("PUNCTUAL_ROOT", root);
    command
}

#[test]
fn a_run_killed_at_any_instant_leaves_nothing_changed_after_recover() {
    let _machine = machine();
    let scratch = Scratch::new("prepare");
    let root = scratch.dir();
    SETTINGS.iter().for_each(|(path, value)| write(root, path, value));
    write(root, "sys/devices/system/cpu/online", "0-1");
    // Spread over the whole life of the cell, which prepares in its first milliseconds: most instants lie there.
    let (mut changed, mut random) = (0, 1_u64);
    for round in 0..100_u64 {
        let cell = prepared(PREPARE, cell("other", "none", "0", "100ms"));
        let mut child = start_cell(on(root, "cell"), &cell);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let us = (random >> 33) % if round % 4 == 0 { 150_000 } else { 10_000 };
        std::thread::sleep(Duration::from_micros(us));
        process::signal(child.id(), libc::SIGKILL).unwrap();
        child.wait().unwrap();
        changed += usize::from(SETTINGS.iter().any(|(path, value)| read(root, path) != *value));
        let said = run(&mut on(root, "recover --wait"));
        assert_eq!(said.status, 0, "killed after {us} us: {said:?}");
        for (path, value) in SETTINGS {
            assert_eq!(read(root, path), value, "killed after {us} us: {path}; {said:?}");
        }
        assert_eq!(std::fs::read_dir(root.join("run/punctual")).map_or(0, Iterator::count), 0, "{said:?}");
    }
    assert!(changed > 10, "settings were changed in {changed} of 100 rounds only");
}

#[test]
fn the_next_measurement_puts_back_what_a_killed_one_left_and_says_so() {
    let _machine = machine();
    let scratch = Scratch::new("prepare-next");
    let root = scratch.dir();
    write(root, "proc/sys/kernel/timer_migration", "1");
    let mut child =
        start_cell(on(root, "cell --progress"), &prepared("timer_migration=off", cell("other", "none", "0", "10s")));
    wait_for_progress(&mut child);
    process::signal(child.id(), libc::SIGKILL).unwrap();
    child.wait().unwrap();
    assert_eq!(read(root, "proc/sys/kernel/timer_migration"), "0");
    let said = run(&mut on(root, "measure --wait --duration 100ms --cpus 0"));
    let told = format!(
        "punctual: put back, left changed by process {}, which was killed: /proc/sys/kernel/timer_migration: 1",
        child.id()
    );
    assert!(said.stderr.contains(&told), "{said:?}");
    assert_eq!((read(root, "proc/sys/kernel/timer_migration"), said.status), ("1".to_owned(), 0));
}

#[test]
fn a_cell_killed_under_a_living_campaign_is_cleaned_up_by_it() {
    let _machine = machine();
    let scratch = Scratch::new("prepare-campaign");
    let root = scratch.dir();
    write(root, "proc/sys/kernel/timer_migration", "1");
    let mut measure = on(root, "measure --wait --duration 20s --cpus 0 --prepare timer_migration=off");
    let mut campaign = measure.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    assert!(comes_true(|| read(root, "proc/sys/kernel/timer_migration") == "0"), "it is prepared");
    let cell = running().into_iter().filter(|pid| *pid != campaign.id()).max().expect("the cell");
    process::signal(cell, libc::SIGKILL).unwrap();
    assert_eq!(campaign.wait().unwrap().code(), Some(1));
    assert_eq!(read(root, "proc/sys/kernel/timer_migration"), "1");
}

#[test]
fn a_setting_that_is_not_there_stops_the_measurement() {
    let _machine = machine();
    let scratch = Scratch::new("prepare-refused");
    let said = run(&mut on(scratch.dir(), "measure --wait --duration 100ms --cpus 0 --prepare timer_migration=off"));
    let reason = "punctual: timer_migration cannot be set: there is no /proc/sys/kernel/timer_migration here\n";
    assert!(said.stderr.ends_with(reason) && said.status == 1, "{said:?}");
    let said = punctual("measure --prepare governer=performance");
    assert!(said.stderr.contains("did you mean `governor`?"), "{said:?}");
}

/// Real settings of this machine, as root: those that a virtual machine has, too.
#[test]
fn root_real_settings_are_changed_recorded_and_put_back() {
    if !is_root() {
        return;
    }
    let _machine = machine();
    let files = [
        "proc/sys/kernel/timer_migration",
        "proc/sys/kernel/sched_rt_runtime_us",
        "sys/kernel/mm/transparent_hugepage/enabled",
    ];
    let all = || files.map(|path| std::fs::read_to_string(Path::new("/").join(path)).ok());
    let before = all();
    if before.iter().any(Option::is_none) || before[1].as_ref().is_none_or(|us| us.trim() != "950000") {
        eprintln!("skipped: this machine has not all of {files:?} at their defaults");
        return;
    }
    let text = "timer_migration=off,rt_runtime=960ms,transparent_hugepages=never";
    let cell = || prepared(text, cell("other", "none", &a_cpu().to_string(), "1s"));
    let record = record(start_cell(command("cell"), &cell()));
    assert_eq!(all(), before);
    assert!(!record.prepared.is_empty());
    assert!(
        record.prepared.iter().all(|setting| setting.at_end.as_ref() == Some(&setting.during)),
        "{:?}",
        record.prepared
    );
    assert_eq!(record.host_before.rt_runtime_us, Some(960_000), "the host is described as it was measured");

    let mut child = start_cell(command("cell --progress"), &cell());
    wait_for_progress(&mut child);
    assert_ne!(all(), before);
    process::signal(child.id(), libc::SIGKILL).unwrap();
    child.wait().unwrap();
    let said = punctual("recover --wait --format json");
    crate::schema::assert_conforms("recover", &said.json());
    assert_eq!((all(), said.status), (before, 0), "{said:?}");
}

#[test]
fn a_closed_terminal_ends_a_measurement_in_good_order() {
    let _machine = machine();
    let scratch = Scratch::new("prepare-hangup");
    let root = scratch.dir();
    write(root, "proc/sys/kernel/timer_migration", "1");
    let cell = prepared("timer_migration=off", cell("other", "none", "0", "20s"));
    let mut child = start_cell(on(root, "cell --progress"), &cell);
    wait_for_progress(&mut child);
    process::signal(child.id(), libc::SIGHUP).unwrap();
    let record = record(child);
    assert_eq!(
        (record.ended, read(root, "proc/sys/kernel/timer_migration").as_str()),
        (model::Ended::Interrupted, "1")
    );
}
