//! `punctual tune`: knobs are screened, confirmed, and put back.

use crate::program::{
    ProgramOutput, Scratch, Start, a_cpu, command, entries, finish, inconclusive, is_root, kill_and_wait,
    machine_and_scratch, punctual, run, running, skip_unless,
};
use crate::pure::schema::assert_conforms;
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::path::Path;
use std::process::{Child, Command};

/// One CPU, little time.
pub(crate) fn small(scratch: &Scratch, more: &str) -> String {
    let out = scratch.path("t");
    format!(
        "tune --duration 300ms --cpus {} --blocks 2 --confirm 8 --response p50 --out {} {more}",
        a_cpu(),
        out.display()
    )
}

/// Whether the experiment has too few wake-ups for an answer, which is inconclusive: the machine stood still.
fn has_too_few(said: &ProgramOutput) -> bool {
    let has_too_few = said.status == 1 && said.last_line().contains(" wake-ups above p50, but needs ");
    if has_too_few {
        inconclusive(said.last_line());
    }
    has_too_few
}

/// Knobs with their answers.
pub(crate) fn answers(json: &serde_json::Value) -> Vec<(&str, &str, &str)> {
    let knobs = json["knobs"].as_array().unwrap().iter();
    knobs
        .map(|knob| {
            let text = |at: &str| knob.pointer(at).and_then(serde_json::Value::as_str).unwrap();
            (text("/key"), text("/changed"), text("/answer/kind"))
        })
        .collect()
}

#[test]
fn what_is_confirmed_to_be_better_can_be_kept() {
    let (_machine, scratch) = machine_and_scratch("tune");
    let keep = scratch.path("keep");
    // A single knob is always confirmed; a slack of 2 ms cannot be missed.
    let knobs = "--knob timer_slack=2ms,1ns --period 5ms";
    let said = punctual(&small(&scratch, &format!("{knobs} --keep {} --format json", keep.display())));
    skip_unless!(!has_too_few(&said));
    let json = said.json();
    assert_conforms("tune", &json);
    let [("timer_slack", "1ns", answer)] = answers(&json)[..] else { panic!("{json}") };
    let is_open = answer == "undecided" || answer == "disturbed";
    assert_eq!(said.status, if is_open { 3 } else { 0 }, "{said:?}");
    let page = std::fs::read_to_string(scratch.path("t/report.html")).unwrap();
    assert!(page.contains("timer_slack = 1ns") && page.contains("</svg>"));
    for (part, runs) in [("screening", 4), ("confirmation", 16)] {
        punctual(&format!("show {}", scratch.path("t").join(part).display())).expect_success();
        assert_eq!(entries(&scratch.path("t").join(part)).len(), runs, "{part}");
    }
    let confirmed = &json["knobs"][0]["confirmed"];
    assert!(confirmed["wake_ups"]["changed"].as_f64().unwrap() > 0.0, "{json}");
    if answer != "better" {
        assert!(said.stderr.contains("nothing was confirmed to be better") && !keep.exists(), "{said:?}");
        return inconclusive(&format!("the slack was not found here: {}", json["knobs"][0]["sentence"]));
    }
    assert!(confirmed["ratio"]["interval"][1].as_f64().unwrap() < 1.0, "{confirmed}");
    let kept = |name: &str| std::fs::read_to_string(keep.join(name)).unwrap();
    let plan = kept("plan.toml");
    assert!(plan.contains("timer_slack = \"1ns\"") && !plan.contains("knobs"), "{plan}");
    assert!(kept("README").contains("timer_slack"));
    assert_eq!(kept("keep/service.conf"), "[Service]\nTimerSlackNSec=1\n");
    assert_eq!(kept("undo/service.conf"), "[Service]\nTimerSlackNSec=2000000\n");
}

#[test]
fn settings_are_made_one_at_a_time_and_put_back() {
    let (_machine, scratch) = machine_and_scratch("tune-prepare");
    let migration = scratch.file("proc/sys/kernel/timer_migration", "1\n");
    let ksm = scratch.file("sys/kernel/mm/ksm/run", "1\n");
    let arguments =
        "--knob prepare.timer_migration=leave,off --knob prepare./sys/kernel/mm/ksm/run=leave,0 --format json";
    let said = run(command(&small(&scratch, arguments)).env("PUNCTUAL_ROOT", scratch.dir()));
    if !has_too_few(&said) {
        assert!(said.status == 0 || said.status == 3, "{said:?}");
        assert_eq!(said.json()["screening"]["runs"], 4);
    }
    for file in [migration, ksm] {
        assert_eq!(std::fs::read_to_string(file).unwrap(), "1\n");
    }
}

/// A machine below `scratch` with a setting that nothing reads, and `punctual tune` on it with this setting as knob.
fn with_setting(scratch: &Scratch, more: &str) -> Command {
    scratch.file(KSM, "1\n");
    let mut command = command(&small(scratch, &format!("--knob prepare./{KSM}=leave,0 --format json {more}")));
    command.env("PUNCTUAL_ROOT", scratch.dir());
    command
}

const KSM: &str = "sys/kernel/mm/ksm/run";

/// Number of measurements of a run.
fn measurements(run: &Path) -> usize {
    std::fs::read_to_string(run.join("run.jsonl")).map_or(0, |text| text.lines().count().saturating_sub(1))
}

/// Waits until a run has this number of measurements.
fn wait_for_measurements(run: &Path, n: usize) {
    assert!(comes_true(|| measurements(run) >= n), "{} has {}", run.display(), measurements(run));
}

/// Stops the experiment once a run has `n` measurements, changes something if it has `most` or fewer, and continues;
/// returns whether it was changed. It makes no further measurement meanwhile.
fn change_after(child: &Child, run: &Path, n: usize, most: usize, change: impl FnOnce()) -> bool {
    wait_for_measurements(run, n);
    process::signal(child.id(), libc::SIGSTOP).unwrap();
    comes_true(|| crate::program::is_stopped(child.id()));
    let is_soon = measurements(run) <= most;
    if is_soon {
        change();
    } else {
        inconclusive("the test had no CPU time to change something in time");
    }
    process::signal(child.id(), libc::SIGCONT).unwrap();
    is_soon
}

#[test]
fn a_setting_that_another_program_changes_has_no_answer_and_is_not_overwritten() {
    let (_machine, scratch) = machine_and_scratch("tune-disturbed");
    let child = with_setting(&scratch, "").start_piped();
    let change = || drop(scratch.file(KSM, "7\n"));
    let is_changed = change_after(&child, &scratch.path("t/confirmation"), 5, 12, change);
    let said = finish(child);
    skip_unless!(is_changed && !has_too_few(&said));
    let json = said.json();
    assert_eq!((said.status, &json["knobs"][0]["answer"]["kind"]), (3, &"disturbed".into()), "{said:?}");
    let [one] = &json["disturbances"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!(one["what"], format!("/{KSM}"));
    assert!(one["sentence"].as_str().unwrap().contains("`7`"), "{one}");
    let left = std::fs::read_to_string(scratch.path(KSM)).unwrap();
    assert_eq!(left, "7\n", "what another program wrote stays");
}

#[test]
fn a_file_that_disappears_ends_the_experiment_and_it_can_be_resumed() {
    let (_machine, scratch) = machine_and_scratch("tune-gone");
    let child = with_setting(&scratch, "").start_piped();
    let remove = || std::fs::remove_file(scratch.path(KSM)).unwrap();
    let is_removed = change_after(&child, &scratch.path("t/screening"), 1, 2, remove);
    let said = finish(child);
    let dir = scratch.path("t").display().to_string();
    if is_removed {
        assert_eq!((said.status, said.stdout.as_str()), (1, ""), "{said:?}");
        assert!(said.last_line().contains(&format!("/{KSM}")), "{said:?}");
        assert!(said.last_line().ends_with(&format!("punctual tune --resume {dir}")), "{said:?}");
    }

    scratch.file(KSM, "1\n");
    let resumed = format!("tune --resume {dir} --confirm 8 --response p50 --format json");
    let mut child = command(&resumed).env("PUNCTUAL_ROOT", scratch.dir()).start_silent();
    comes_true(|| measurements(&scratch.path("t/confirmation")) >= 3 || child.try_wait().unwrap().is_some());
    kill_and_wait(&mut child);
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
    let said = run(command(&resumed).env("PUNCTUAL_ROOT", scratch.dir()));
    skip_unless!(!has_too_few(&said));
    assert!(said.status == 0 || said.status == 3, "{said:?}");
    assert_eq!(said.json()["confirmation_blocks"], 8);
    for (part, n) in [("screening", 4), ("confirmation", 16)] {
        let entries = entries(&scratch.path("t").join(part));
        let mut planned: Vec<_> = entries.iter().map(|entry| entry.planned).collect();
        planned.sort_unstable();
        planned.dedup();
        assert_eq!((entries.len(), planned.len()), (n, n), "{part}: every measurement, none twice");
    }
    assert_eq!(std::fs::read_to_string(scratch.path(KSM)).unwrap(), "1\n");
    let wrong = run(&mut command(&format!("tune --resume {}", scratch.dir().display())));
    assert!(wrong.status == 1 && wrong.last_line().contains("holds no experiment"), "{wrong:?}");
}

#[test]
fn every_value_of_a_knob_is_confirmed_and_the_confirmation_ends_when_it_is_decided() {
    let (_machine, scratch) = machine_and_scratch("tune-values");
    let arguments = "--knob timer_slack=4ms,100us,1ns --period 5ms --at-most 1h --format json";
    let said = punctual(&small(&scratch, arguments));
    skip_unless!(!has_too_few(&said));
    let json = said.json();
    let answers = answers(&json);
    let values: Vec<&str> = answers.iter().map(|(_, changed, _)| *changed).collect();
    assert_eq!(values, ["100us", "1ns"], "{json}");
    // Three looks at two values need 8 blocks. The first look decides, or the second; 32 is the last.
    let blocks = json["confirmation_blocks"].as_u64().unwrap();
    assert!(json["looks"] == 3 && [8, 16, 32].contains(&blocks), "{json}");
    let is_decided = answers.iter().all(|(_, _, answer)| *answer != "undecided");
    assert!(is_decided || blocks == 32, "{json}");
    // 4 ms, both other values, and both together, which is the last one of them.
    let measured = entries(&scratch.path("t/confirmation")).len() as u64;
    assert!(measured.is_multiple_of(blocks), "{measured} measurements in {blocks} blocks");
}

#[test]
fn root_the_machine_names_its_own_knobs() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("tune-own");
    let said = punctual(&small(&scratch, "--format json"));
    skip_unless!(!has_too_few(&said));
    let json = said.json();
    let keys: Vec<_> = json["knobs"].as_array().unwrap().iter().map(|knob| knob["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"timer_slack") && keys.contains(&"cpu_dma_latency"), "{keys:?}");
}
