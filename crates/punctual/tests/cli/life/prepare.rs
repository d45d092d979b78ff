//! Settings that a cell changes are restored, whatever happens to the cell.

use super::roles::records;
use crate::places::{Places, go_on, names};
use crate::program::{
    Machine, Scratch, Start, a_cpu, cell, command, finish, is_root, kill_and_wait, machine, machine_and_scratch,
    punctual, record, run, running, skip_unless, start_cell, wait_for_line, wait_for_progress,
};
use punctual_model::{Cell, Conditions, Prepare, Record, Span};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};

/// Five settings and their values, below a test root.
const SETTINGS: [(&str, &str); 5] = [
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
    (TIMER_MIGRATION, "1"),
    (HUGEPAGES, "always"),
    ("proc/irq/24/smp_affinity_list", "0-1"),
];
const PREPARE: &str =
    "governor=performance,rt_runtime=900ms,timer_migration=off,transparent_hugepages=never,irq_cpus=1";

/// The setting that most tests change.
const TIMER_MIGRATION: &str = "proc/sys/kernel/timer_migration";
const HUGEPAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";

fn prepared(text: &str, cell: Cell) -> Cell {
    let mut prepare = Prepare::default();
    prepare.set_all(text).expect("settings");
    Cell { conditions: Conditions { prepare, ..cell.conditions }, ..cell }
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

/// A machine below its own directory, and a cell on it that has turned timer migration off and measures.
fn prepared_cell(name: &str) -> (Machine, Scratch, Child) {
    let (machine, scratch) = machine_and_scratch(name);
    scratch.file(TIMER_MIGRATION, "1\n");
    let cell = prepared("timer_migration=off", cell("other", "none", "0", "10min"));
    let mut child = start_cell(on(scratch.dir(), "cell --progress"), &cell);
    wait_for_progress(&mut child);
    (machine, scratch, child)
}

/// A test root with the five settings.
fn five_settings(name: &str) -> (Machine, Scratch) {
    let (machine, scratch) = machine_and_scratch(name);
    SETTINGS.iter().for_each(|(path, value)| drop(scratch.file(path, format!("{value}\n"))));
    scratch.file("sys/devices/system/cpu/online", "0-1\n");
    (machine, scratch)
}

/// A short cell that changes the five settings.
fn five_changes() -> Cell {
    let short = cell("other", "none", "0", "20ms");
    let conditions = Conditions { warm_up: Span(0), ..short.conditions };
    prepared(PREPARE, Cell { conditions, ..short })
}

fn is_changed(root: &Path) -> bool {
    SETTINGS.iter().any(|(path, value)| read(root, path) != *value)
}

fn journals(root: &Path) -> usize {
    std::fs::read_dir(root.join("run/punctual")).map_or(0, Iterator::count)
}

#[track_caller]
fn recover_and_compare(root: &Path, what: &str) {
    let said = run(&mut on(root, "recover --wait"));
    assert_eq!(said.status, 0, "{what}: {said:?}");
    for (path, value) in SETTINGS {
        assert_eq!(read(root, path), value, "{what}: {path}; {said:?}");
    }
    assert_eq!(journals(root), 0, "{what}: {said:?}");
}

/// Places of a cell that changes five settings, from the first to the last value that is not the one before.
const CHANGED: [&str; 2] = ["setting-empty", "setting-empty@10"];

/// Places of a cell that must be visited.
const PLACES_OF_A_CELL: [&str; 20] = [
    "cell-untied", "cell-begun", "journal-begun", "journal-half", "journal-unnamed", "journal-written",
    "setting-empty", "setting-made", "setting-empty@5", "setting-made@5", "settings-made", "cell-armed",
    "threads-released", "cell-looked", "cell-measured", "load-over", "setting-restored", "setting-restored@5",
    "journal-removed", "cell-half-said",
];

/// At every place of the cell: it is killed alone, with its parent, or below a parent that goes on.
#[test]
fn a_run_killed_at_any_place_leaves_nothing_changed_after_recover() {
    let (_machine, scratch) = five_settings("prepare");
    let (root, places) = (scratch.dir(), Places::new());
    let alone = |action: &str| {
        let mut command = on(root, "cell");
        places.act(&mut command, action);
        places.start_cell(command, &five_changes())
    };
    assert!(alone("").wait().unwrap().success());
    let all = places.all(None, &PLACES_OF_A_CELL);
    let [first, last] = CHANGED.map(|place| all.iter().position(|passed| passed == place).unwrap());
    let measure = format!("measure --wait --no-keep --duration 20ms --cpus 0 --policy other --prepare {PREPARE}");
    for (index, place) in all.iter().enumerate() {
        let is_within = (first..=last).contains(&index);
        let mut cell = alone(&format!("kill:{place}"));
        places.killed(&mut cell, place);
        assert_eq!(is_changed(root), is_within, "killed at {place}");
        recover_and_compare(root, place);
        if place.contains('@') {
            continue;
        }

        // The parent is killed, and takes the cell along.
        let mut command = on(root, &measure);
        let mut parent = places.act(&mut command, &format!("stop:{place}")).start_silent();
        let cell = places.stopped(&mut parent, place);
        assert_ne!(cell, parent.id(), "{place}");
        kill_and_wait(&mut parent);
        if place == "cell-untied" {
            go_on(cell);
        }
        assert!(comes_true(|| running().is_empty() && punctual_host::is_gone(cell)), "{place}: {:?} left", running());
        assert_eq!(is_changed(root), is_within, "parent killed at {place}");
        recover_and_compare(root, place);

        // The parent lives, and cleans up at once.
        let mut command = on(root, &measure);
        let mut parent = places.act(&mut command, &format!("kill:{place}")).start_silent();
        let status = places.killed(&mut parent, place);
        // When it writes a setting it passes the same place, and is killed, too.
        if place != "setting-empty" {
            assert_eq!(status.code(), Some(1), "{place}: a measurement without a record");
            assert!(!is_changed(root), "{place}");
        }
        assert!(comes_true(|| running().is_empty()), "{place}: {:?} left", running());
        // An unfinished journal has no name by which it would be read.
        recover_and_compare(root, place);
    }
}

/// Arms of a plan: only the cells of one have its settings, and every name, table and selector tells the arms apart.
#[test]
fn arms_of_a_plan_alternate_and_only_one_has_its_settings() {
    let (_machine, scratch) = machine_and_scratch("arms");
    scratch.file(TIMER_MIGRATION, "1\n");
    let (root, dir) = (scratch.dir(), scratch.path("kept"));
    let text = "repetitions = 4\nduration = \"20ms\"\nwarm_up = \"0s\"\ncpus = \"0\"\nseed = 7\n[axes]\nload = [\"none\"]\n\
                policy = [\"other\"]\nprepare = [\"leave\", \"timer_migration=off\"]\n";
    let plan = scratch.file("plan.toml", text);
    let planned = run(&mut on(root, &format!("run {} --dry-run", plan.display()))).expect_success().stdout;
    let cells = ["none/other/leave", "none/other/timer_migration=off"];
    assert!(planned.contains("timer_migration=off") && planned.contains("leave"), "{planned}");
    let said = run(&mut on(root, &format!("run --wait {} --out {}", plan.display(), dir.display()))).expect_success();
    let told = "plan.toml sets for the length of the cells with that `prepare`: timer_migration=off";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    assert_eq!(read(root, TIMER_MIGRATION), "1");

    let records = records(&dir);
    let is_made = |record: &Record| !record.prepared.is_empty();
    let arms: Vec<bool> = records.iter().map(|record| !record.cell.conditions.prepare.is_empty()).collect();
    assert_eq!(arms, records.iter().map(is_made).collect::<Vec<_>>());
    assert!(arms.chunks(2).all(|block| block[0] != block[1]), "both in each block: {arms:?}");
    assert_eq!(arms.iter().filter(|treated| **treated).count(), 4);
    assert!(arms.windows(2).filter(|pair| pair[0] != pair[1]).count() > 3, "in alternation: {arms:?}");
    let made = records.iter().flat_map(|record| &record.prepared);
    assert!(made.clone().all(|one| (&*one.before, &*one.during) == ("1", "0")), "{:?}", made.collect::<Vec<_>>());

    let shown = run(command("show --format json").arg(&dir)).json();
    assert_eq!([0, 1].map(|cell| shown["cells"][cell]["name"].as_str().unwrap().to_owned()), cells);
    assert!(!shown["run"]["findings"].to_string().contains("host_changed"), "{}", shown["run"]["findings"]);
    let table = run(command("show").arg(&dir)).stdout;
    assert!(table.contains("prepare") && table.contains("leave") && table.contains("timer_migration=off"), "{table}");
    for (a, b) in [("leave", "timer_migration"), ("prepare=leave", "prepare=timer_migration=off"), (cells[0], cells[1])]
    {
        let json = run(command("compare --metric p50 --force --format json").arg(&dir).args([a, b])).json();
        assert_eq!([&json["a"], &json["b"]], cells, "{json}");
        let asked = serde_json::json!({"fact": "prepare", "a": "leave", "b": "timer_migration=off", "role": "asked"});
        assert!(json["differences"].as_array().unwrap().contains(&asked), "{}", json["differences"]);
    }
}

/// A signal that asks it to end, at every place of the cell: nothing is left to recover.
#[test]
fn a_run_that_is_to_end_at_any_place_puts_everything_back() {
    let (_machine, scratch) = five_settings("prepare-term");
    let (root, places) = (scratch.dir(), Places::new());
    let start = |action: &str| {
        let mut command = on(root, "cell");
        places.act(&mut command, action);
        places.start_cell(command, &five_changes())
    };
    assert!(start("").wait().unwrap().success());
    for (place, signal) in names(places.all(None, &["settings-made"]))
        .iter()
        .zip([libc::SIGTERM, libc::SIGINT, libc::SIGHUP].iter().cycle())
    {
        let mut cell = start(&format!("stop:{place}"));
        places.stopped(&mut cell, place);
        process::signal(cell.id(), *signal).unwrap();
        go_on(cell.id());
        let status = cell.wait().unwrap();
        // Before it has handlers, the signal itself ends it.
        let ended = status.code().map_or_else(|| status.signal() == Some(*signal), |code| code <= 1);
        assert!(ended, "{place}: {status}");
        assert!(!is_changed(root) && journals(root) == 0, "signal {signal} at {place}");
    }
}

#[test]
fn a_recovery_killed_at_any_place_is_completed_by_the_next() {
    let (_machine, scratch) = five_settings("prepare-recover");
    let (root, places) = (scratch.dir(), Places::new());
    let leave = || {
        let mut command = on(root, "cell");
        places.act(&mut command, "kill:settings-made");
        places.killed(&mut places.start_cell(command, &five_changes()), "settings-made");
        assert!(is_changed(root));
    };
    let recover = |action: &str| {
        let mut command = on(root, "recover --wait");
        places.act(&mut command, action).start_silent()
    };
    leave();
    assert!(recover("").wait().unwrap().success());
    let needed = [
        "lock-taken", "recover-setting", "setting-empty", "recover-setting@5", "setting-empty@5", "recover-undone",
        "recover-removed",
    ];
    for place in places.all(None, &needed) {
        leave();
        places.killed(&mut recover(&format!("kill:{place}")), &place);
        recover_and_compare(root, &place);
    }
}

#[test]
fn a_disk_that_is_full_changes_nothing() {
    let (_machine, scratch) = five_settings("prepare-full");
    let (root, places) = (scratch.dir(), Places::new());
    let journal = format!("cannot write the journal of settings {}/run/punctual/", root.display());
    for (place, begin, end) in [
        ("journal-half", journal.as_str(), "(os error 28); nothing was changed (run as root)"),
        ("setting-empty", "cannot set /", "No space left on device (os error 28)"),
        (
            "setting-empty@5",
            "cannot set /proc/irq/24/smp_affinity_list to 1: ",
            "No space left on device (os error 28)",
        ),
    ] {
        let mut command = on(root, "cell");
        places.act(&mut command, &format!("full:{place}"));
        let said = finish(start_cell(command, &five_changes()));
        let line = said.stderr.trim_end().strip_prefix("punctual: ").unwrap();
        assert!(said.status == 1 && line.starts_with(begin) && line.ends_with(end), "{place}: {said:?}");
        assert_eq!(places.acted(&format!("full:{place}")).len(), 1, "{place}");
        assert!(!is_changed(root), "{place}");
        recover_and_compare(root, place);
    }
}

#[test]
fn the_next_measurement_puts_back_what_a_killed_one_left_and_says_so() {
    let (_machine, scratch, mut child) = prepared_cell("prepare-next");
    let root = scratch.dir();
    kill_and_wait(&mut child);
    assert_eq!(read(root, TIMER_MIGRATION), "0");
    let said = run(&mut on(root, "measure --wait --duration 100ms --cpus 0"));
    let told = format!(
        "punctual: restored, left changed by killed process {}: /proc/sys/kernel/timer_migration: 1",
        child.id()
    );
    assert!(said.stderr.contains(&told), "{said:?}");
    assert_eq!((read(root, TIMER_MIGRATION), said.status), ("1".to_owned(), 0));
}

#[test]
fn what_a_killed_cell_left_is_put_back_before_it_is_reaped() {
    let (_machine, scratch, mut child) = prepared_cell("prepare-zombie");
    let root = scratch.dir();
    process::signal(child.id(), libc::SIGKILL).unwrap();
    // The first of its threads may have ended before the others.
    assert!(comes_true(|| punctual_host::started_ticks_of(child.id()).is_none()));
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
    assert!(stat.unwrap().contains(") Z "), "nothing reaps it");
    let said = run(&mut on(root, "recover --wait"));
    let told = format!("restored, left changed by killed process {}", child.id());
    assert!(said.status == 0 && said.stdout.contains(&told), "{said:?}");
    assert_eq!(read(root, TIMER_MIGRATION), "1");
    child.wait().unwrap();
}

#[test]
fn root_settings_are_put_back_beside_an_entry_of_grub_that_cannot_be_read() {
    skip_unless!(is_root());
    let (_machine, scratch, mut child) = prepared_cell("prepare-entry");
    let root = scratch.dir();
    kill_and_wait(&mut child);
    scratch.file("boot/grub/custom.cfg/directory", "");
    let said = run(&mut on(root, "recover --wait"));
    assert!(said.status == 1 && said.stderr.contains("custom.cfg: "), "{said:?}");
    assert_eq!(read(root, TIMER_MIGRATION), "1", "{said:?}");
}

#[test]
fn a_cell_killed_under_a_living_campaign_is_cleaned_up_by_it() {
    let (_machine, scratch) = machine_and_scratch("prepare-campaign");
    let root = scratch.dir();
    scratch.file(TIMER_MIGRATION, "1\n");
    let mut measure = on(root, "measure --wait --duration 10min --cpus 0 --prepare timer_migration=off");
    let mut campaign = measure.start_silent();
    assert!(comes_true(|| read(root, TIMER_MIGRATION) == "0"), "it is prepared");
    let cell = running().into_iter().filter(|pid| *pid != campaign.id()).max().expect("the cell");
    process::signal(cell, libc::SIGKILL).unwrap();
    assert_eq!(campaign.wait().unwrap().code(), Some(1));
    assert_eq!(read(root, TIMER_MIGRATION), "1");
}

#[test]
fn a_value_that_another_program_sets_while_the_journal_is_written_is_the_one_to_restore() {
    let (_machine, scratch) = machine_and_scratch("prepare-meanwhile");
    let (hugepages, places) = (scratch.file(HUGEPAGES, "always\n"), Places::new());
    let mut command = on(scratch.dir(), "cell");
    places.act(&mut command, "stop:journal-written");
    let cell = prepared("transparent_hugepages=never", cell("other", "none", "0", "100ms"));
    let mut child = start_cell(command, &cell);
    let stopped = places.stopped(&mut child, "journal-written");
    std::fs::write(&hugepages, "madvise\n").unwrap();
    go_on(stopped);
    let settings = record(child).prepared;
    assert_eq!((settings.len(), settings[0].before.as_str()), (1, "madvise"), "{settings:?}");
    assert_eq!(std::fs::read_to_string(hugepages).unwrap().trim(), "madvise");
}

#[test]
fn a_setting_that_is_not_there_stops_the_measurement() {
    let (_machine, scratch) = machine_and_scratch("prepare-refused");
    let said = run(&mut on(scratch.dir(), "measure --wait --duration 100ms --cpus 0 --prepare timer_migration=off"));
    let reason = "punctual: cannot set timer_migration: no /proc/sys/kernel/timer_migration on this machine\n";
    assert!(said.stderr.ends_with(reason) && said.status == 1, "{said:?}");
    let said = punctual("measure --prepare governer=performance");
    assert!(said.stderr.contains("did you mean `governor`?"), "{said:?}");
}

/// Real settings of this machine, as root: those that exist on virtual machines as well.
#[test]
fn root_real_settings_are_changed_recorded_and_put_back() {
    skip_unless!(is_root());
    let _machine = machine();
    let files = [TIMER_MIGRATION, "proc/sys/kernel/sched_rt_runtime_us", HUGEPAGES];
    let all = || files.map(|path| std::fs::read_to_string(Path::new("/").join(path)).ok());
    let before = all();
    if before.iter().any(Option::is_none) || before[1].as_ref().is_none_or(|us| us.trim() != "950000") {
        eprintln!("skipped: this machine has not all of {files:?} at their defaults");
        return;
    }
    let text = "timer_migration=off,rt_runtime=960ms,transparent_hugepages=never";
    let cell = |duration: &str| prepared(text, cell("other", "none", &a_cpu().to_string(), duration));
    let record = record(start_cell(command("cell"), &cell("200ms")));
    assert_eq!(all(), before);
    assert!(!record.prepared.is_empty());
    assert!(
        record.prepared.iter().all(|setting| setting.at_end.as_ref() == Some(&setting.during)),
        "{:?}",
        record.prepared
    );
    assert_eq!(record.host_before.rt_runtime_us, Some(960_000), "the host is described as it was measured");

    let mut child = start_cell(command("cell --progress"), &cell("10min"));
    wait_for_progress(&mut child);
    assert_ne!(all(), before);
    kill_and_wait(&mut child);
    let said = punctual("recover --wait --format json");
    crate::pure::schema::assert_conforms("recover", &said.json());
    assert_eq!((all(), said.status), (before, 0), "{said:?}");
}

/// As root on this machine: managed interrupts of virtio and NVMe devices are skipped.
#[test]
fn root_interrupts_that_the_kernel_keeps_stop_no_measurement() {
    skip_unless!(is_root() && crate::program::a_cpu_and_the_others().is_some());
    let _machine = machine();
    let all = || {
        let interrupts = std::fs::read_dir("/proc/irq").unwrap().flatten();
        let mut all: Vec<_> = interrupts
            .filter_map(|irq| Some((irq.path(), std::fs::read_to_string(irq.path().join("smp_affinity_list")).ok()?)))
            .collect();
        all.sort();
        all
    };
    let before = all();
    let said = run(&mut on(
        Path::new("/"),
        "measure --wait --duration 200ms --cpus 0 --prepare irq_cpus=others --format json",
    ));
    assert_eq!((said.status, all()), (0, before), "{said:?}");
}

#[test]
fn the_machine_is_busy_until_a_killed_campaigns_processes_have_exited() {
    let (_machine, scratch) = machine_and_scratch("prepare-dying");
    let root = scratch.dir();
    scratch.file(TIMER_MIGRATION, "1\n");
    let mut measure = on(root, "measure --wait --duration 10min --cpus 0 --prepare timer_migration=off --load");
    // The supervisor waits before it kills the load.
    measure.arg("cmd:trap '' TERM; echo >ready; while :; do sleep 600; done").current_dir(root);
    let mut campaign = measure.start_silent();
    assert!(comes_true(|| root.join("ready").exists()), "its load works");
    kill_and_wait(&mut campaign);
    let said = run(&mut on(root, "recover"));
    assert!(running().is_empty(), "{:?} still run; {said:?}", running());
    assert!(said.status == 0 && said.stdout.contains("restored, left changed by killed process "), "{said:?}");
    assert_eq!(read(root, TIMER_MIGRATION), "1");
}

#[test]
fn a_journal_of_a_process_that_still_runs_is_not_nothing() {
    // Without a campaign, and therefore without the lock.
    let (_machine, scratch, mut child) = prepared_cell("prepare-living");
    let root = scratch.dir();
    let told = format!("process {} has changed settings and is still running (", child.id());
    let said = run(&mut on(root, "recover"));
    assert!(said.status == 1 && said.stdout.starts_with(&told) && said.stdout.lines().count() == 1, "{said:?}");
    let said = run(&mut on(root, "measure --duration 100ms --cpus 0"));
    assert!(said.status == 1 && said.stderr.contains(&told), "{said:?}");
    let mut waiting = on(root, "measure --wait --duration 100ms --cpus 0").start_piped();
    let mut line = String::new();
    let mut stderr = BufReader::new(waiting.stderr.as_mut().unwrap());
    let told = format!("punctual: waiting for process {}, which has changed settings\n", child.id());
    while line != told {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "ended without waiting");
    }
    process::signal(child.id(), libc::SIGINT).unwrap();
    child.wait().unwrap();
    assert!(waiting.wait().unwrap().success());
    assert_eq!(read(root, TIMER_MIGRATION), "1");
}

#[test]
fn root_settings_take_the_lock_of_the_machine_beside_another_file() {
    skip_unless!(is_root() && Path::new("/").join(TIMER_MIGRATION).exists());
    let (_machine, scratch) = machine_and_scratch("prepare-locks");
    let own = |lock: &str, more: &str| {
        let mut run = command(&format!("measure --no-keep --cpus 0 {more}"));
        run.env("PUNCTUAL_LOCK", scratch.path(lock));
        run
    };
    let settings = "--prepare timer_migration=off --duration";
    let mut first = own("first", &format!("--wait {settings} 10min")).start_silent();
    assert!(comes_true(|| !crate::real::placement::load_of(first.id()).0.is_empty()), "a cell runs");
    let said = run(&mut own("second", &format!("{settings} 100ms")));
    let told = format!("punctual: this machine is being measured by process {} (punctual); ", first.id());
    assert!(said.status == 1 && said.stderr.starts_with(&told), "{said:?}");
    process::signal(first.id(), libc::SIGINT).unwrap();
    first.wait().unwrap();
}

#[test]
fn a_command_that_waits_says_once_for_what() {
    let (_machine, scratch) = machine_and_scratch("waiting");
    let mut measure = on(scratch.dir(), "measure --wait --duration 10min --cpus 0");
    let mut campaign = measure.start_silent();
    let is_measuring = || !crate::real::placement::load_of(campaign.id()).0.is_empty();
    assert!(comes_true(is_measuring), "a cell runs");
    let refused = run(&mut on(scratch.dir(), "recover"));
    let holder = format!("pid {} (started ", campaign.id());
    let told = format!("punctual: this machine is being measured by {holder}");
    assert!(refused.stderr.starts_with(&told) && refused.stderr.contains(" UTC); wait for it"), "{refused:?}");
    let mut recover = on(scratch.dir(), "recover --wait");
    let mut recover = recover.start_piped();
    wait_for_line(&mut recover, &format!("punctual: waiting for {holder}"));
    process::signal(campaign.id(), libc::SIGINT).unwrap();
    campaign.wait().unwrap();
    let said = finish(recover);
    // The only line was read above.
    assert!(said.status == 0 && said.stderr.is_empty(), "{said:?}");
}

#[test]
fn a_closed_terminal_ends_a_measurement_in_good_order() {
    let (_machine, scratch, child) = prepared_cell("prepare-hangup");
    let root = scratch.dir();
    process::signal(child.id(), libc::SIGHUP).unwrap();
    let record = record(child);
    assert_eq!((record.ended, read(root, TIMER_MIGRATION).as_str()), (punctual_model::Ended::Interrupted, "1"));
}
