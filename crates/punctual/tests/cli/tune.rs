//! `punctual tune`: knobs are screened, confirmed, and put back.

use crate::program::{
    Scratch, Start, a_cpu, comes_true, command, entries, finish, is_root, kill_and_wait, machine, machine_and_scratch,
    punctual, run, running, skip_unless,
};
use crate::schema::assert_conforms;
use crate::vm::kernel;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use sys::process;

/// One CPU, little time.
fn small(scratch: &Scratch, more: &str) -> String {
    let out = scratch.path("t");
    format!(
        "tune --duration 300ms --cpus {} --blocks 2 --confirm 8 --response p50 --out {} {more}",
        a_cpu(),
        out.display()
    )
}

#[test]
fn a_large_slack_is_found_and_can_be_kept() {
    let (_machine, scratch) = machine_and_scratch("tune");
    let keep = scratch.path("keep");
    // A slack of 2 ms cannot be missed; a longer warm-up of a cell does nothing.
    let knobs = "--knob timer_slack=2ms,1ns --knob warm_up=200ms,210ms --period 5ms";
    let said = punctual(&small(&scratch, &format!("{knobs} --keep {} --format json", keep.display())));
    let json = said.json();
    assert_conforms("tune", &json);
    let knobs = json["knobs"].as_array().unwrap();
    assert_eq!(knobs[0]["answer"]["kind"], "better", "{json}");
    let interval = &knobs[0]["confirmed"]["ratio"]["interval"];
    assert!(interval[1].as_f64().unwrap() < 0.5, "{interval}");
    assert_ne!(knobs[1]["answer"]["kind"], "better", "{}", knobs[1]);
    let kept = |name: &str| std::fs::read_to_string(keep.join(name)).unwrap();
    let plan = kept("plan.toml");
    assert!(plan.contains("timer_slack = \"1ns\"") && plan.contains("warm_up = \"200ms\"") && !plan.contains("knobs"));
    assert!(kept("README").contains("timer_slack"));
    assert_eq!(kept("keep/service.conf"), "[Service]\nTimerSlackNSec=1\n");
    assert_eq!(kept("undo/service.conf"), "[Service]\nTimerSlackNSec=2000000\n");
    let page = std::fs::read_to_string(scratch.path("t/report.html")).unwrap();
    assert!(page.contains("timer_slack = 1ns") && page.contains("</svg>"));
    assert!(json["knobs"][0]["confirmed"]["wake_ups"]["changed"].as_f64().unwrap() > 0.0, "{json}");
    for part in ["screening", "confirmation"] {
        punctual(&format!("show {}", scratch.path("t").join(part).display())).expect_success();
    }
}

#[test]
fn settings_are_made_one_at_a_time_and_put_back() {
    let (_machine, scratch) = machine_and_scratch("tune-prepare");
    let migration = scratch.file("proc/sys/kernel/timer_migration", "1\n");
    let ksm = scratch.file("sys/kernel/mm/ksm/run", "1\n");
    let arguments =
        "--knob prepare.timer_migration=leave,off --knob prepare./sys/kernel/mm/ksm/run=leave,0 --format json";
    let said = run(command(&small(&scratch, arguments)).env("PUNCTUAL_ROOT", scratch.dir()));
    let json = said.json();
    assert!(said.status == 0 || said.status == 3, "{said:?}");
    assert_eq!(json["screening"]["runs"], 4);
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

/// Waits until a run has this number of measurements.
fn wait_for_measurements(run: &Path, n: usize) {
    let made = || std::fs::read_to_string(run.join("run.jsonl")).map_or(0, |text| text.lines().count());
    assert!(comes_true(|| made() > n), "{} has {} lines", run.display(), made());
}

#[test]
fn a_setting_that_another_program_changes_has_no_answer_and_is_not_overwritten() {
    let (_machine, scratch) = machine_and_scratch("tune-disturbed");
    let child = with_setting(&scratch, "").start_piped();
    wait_for_measurements(&scratch.path("t/confirmation"), 5);
    let ksm = scratch.file(KSM, "7\n");
    let said = finish(child);
    let json = said.json();
    assert_eq!((said.status, &json["knobs"][0]["answer"]["kind"]), (3, &"disturbed".into()), "{said:?}");
    let [one] = &json["disturbances"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!(one["what"], format!("/{KSM}"));
    assert!(one["sentence"].as_str().unwrap().contains("`7`"), "{one}");
    assert_eq!(std::fs::read_to_string(ksm).unwrap(), "7\n", "what another program wrote stays");
}

#[test]
fn a_file_that_disappears_ends_the_experiment_and_it_can_be_resumed() {
    let (_machine, scratch) = machine_and_scratch("tune-gone");
    let child = with_setting(&scratch, "").start_piped();
    wait_for_measurements(&scratch.path("t/screening"), 1);
    std::fs::remove_file(scratch.path(KSM)).unwrap();
    let said = finish(child);
    assert_eq!((said.status, said.stdout.as_str()), (1, ""), "{said:?}");
    let dir = scratch.path("t").display().to_string();
    assert!(said.last_line().contains(&format!("/{KSM}")), "{said:?}");
    assert!(said.last_line().ends_with(&format!("punctual tune --resume {dir}")), "{said:?}");

    scratch.file(KSM, "1\n");
    let resumed = format!("tune --resume {dir} --confirm 8 --response p50 --format json");
    let mut child = command(&resumed).env("PUNCTUAL_ROOT", scratch.dir()).start_piped();
    wait_for_measurements(&scratch.path("t/confirmation"), 3);
    process::signal(child.id(), libc::SIGKILL).unwrap();
    child.wait().unwrap();
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
    let said = run(command(&resumed).env("PUNCTUAL_ROOT", scratch.dir()));
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
    let keep = scratch.path("keep");
    let arguments = "--knob timer_slack=4ms,100us,1ns --period 5ms --at-most 1h --keep";
    let said = punctual(&small(&scratch, &format!("{arguments} {} --format json", keep.display())));
    let json = said.json();
    let knobs = json["knobs"].as_array().unwrap();
    let values: Vec<_> =
        knobs.iter().map(|knob| (knob["changed"].as_str().unwrap(), &knob["answer"]["kind"])).collect();
    assert_eq!(values, [("100us", &"better".into()), ("1ns", &"better".into())], "{json}");
    // Three looks at two values need 8 blocks. The first look decides, or the second on a noisy machine; 32 is the
    // last.
    let blocks = json["confirmation_blocks"].as_u64().unwrap();
    assert!(json["looks"] == 3 && (blocks == 8 || blocks == 16), "{json}");
    let plan = std::fs::read_to_string(keep.join("plan.toml")).unwrap();
    assert!(plan.contains("timer_slack = \"1ns\""), "the best of them: {plan}");
}

/// 200 experiments killed at any instant: in half of them the whole process group, in half only the first process.
#[test]
#[ignore = "long: 200 rounds"]
fn an_experiment_killed_at_any_instant_leaves_the_machine_as_before_after_recover() {
    let (_machine, scratch) = machine_and_scratch("tune-killed");
    let settings = [(KSM, "1"), ("proc/sys/kernel/timer_migration", "1"), ("proc/sys/vm/stat_interval", "1")];
    settings.iter().for_each(|(path, value)| drop(scratch.file(path, format!("{value}\n"))));
    let plan = format!(
        "duration = \"50ms\"\nwarm_up = \"1ms\"\n[knobs]\nprepare.\"/{KSM}\" = [\"leave\", \"0\"]\n\
         prepare.timer_migration = [\"leave\", \"off\"]\nprepare.\"sysctl:vm.stat_interval\" = [\"leave\", \"9\"]\n\
         [axes]\nload = [\"none\"]\npolicy = [\"other\"]\nperiod = [\"1ms\"]\n"
    );
    let plan = scratch.file("plan.toml", plan);
    let (mut changed, mut random) = (0, 1_u64);
    for round in 0..200 {
        let out = scratch.path(&format!("t{round}"));
        let mut tune = command(&format!("tune {} --response p50 --wait --cpus {} --out", plan.display(), a_cpu()));
        let mut child = tune.arg(&out).env("PUNCTUAL_ROOT", scratch.dir()).process_group(0).start_silent();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let us = 100_000 + (random >> 33) % 500_000;
        std::thread::sleep(Duration::from_micros(us));
        if round % 2 == 0 {
            process::signal_group(child.id(), libc::SIGKILL).unwrap();
            child.wait().unwrap();
        } else {
            kill_and_wait(&mut child);
        }
        let read = |path: &str| std::fs::read_to_string(scratch.path(path)).unwrap().trim().to_owned();
        // The cell of a killed experiment ends by itself.
        assert!(comes_true(|| running().is_empty()), "{:?} left", running());
        changed += usize::from(settings.iter().any(|(path, value)| read(path) != *value));
        let recover = || run(command("recover --wait").env("PUNCTUAL_ROOT", scratch.dir()));
        // A process that is exiting has no environment, by which `running` finds it, and still exists for `recover`.
        let mut said = recover();
        comes_true(|| {
            let is_ending = said.stdout.contains("is still running");
            if is_ending {
                said = recover();
            }
            !is_ending
        });
        assert_eq!(said.status, 0, "killed after {us} us: {said:?}");
        for (path, value) in settings {
            assert_eq!(read(path), value, "killed after {us} us: {path}; {said:?}");
        }
        let journals = std::fs::read_dir(scratch.path("run/punctual")).map_or(0, Iterator::count);
        assert_eq!(journals, 0, "{said:?}");
        let _ = std::fs::remove_dir_all(out);
    }
    assert!(changed > 20, "settings were changed in {changed} of 200 rounds only");
}

#[test]
#[ignore = "long: boots guests"]
fn vm_words_of_the_kernel_have_the_same_answer_twice() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("tune-lab");
    let plan = format!(
        "duration = \"200ms\"\nwarm_up = \"50ms\"\nseed = 5\n[knobs]\nboot.preempt = [\"none\", \"full\"]\n\
         [axes]\nkernel = [\"{}\"]\nload = [\"exec\"]\npolicy = [\"fifo:90\"]\nperiod = [\"1ms\"]\n",
        kernel.display()
    );
    let plan = scratch.file("plan.toml", plan).display().to_string();
    let answers = ["a", "b"].map(|name| {
        let options = "--blocks 2 --confirm 6 --response p50 --wait --format json --out";
        let said = punctual(&format!("tune {plan} {options} {}", scratch.path(name).display()));
        let mut json = said.json();
        assert!(said.status == 0 || said.status == 3, "{said:?}");
        let fields = json.as_object_mut().unwrap();
        // `host` has counters of this machine.
        for key in ["dir", "started_unix_ms", "host"] {
            fields.remove(key).expect(key);
        }
        json
    });
    assert_eq!(answers[0], answers[1], "to the bit");
    let knob = &answers[0]["knobs"][0];
    // Which answer it is depends on the instructions of this very build: virtual time counts them.
    assert_eq!(knob["key"], "boot.preempt", "{knob}");
    assert_ne!(knob["answer"]["kind"], "undecided", "{knob}");
}

#[test]
fn what_cannot_be_tried_is_one_line_and_nothing_is_measured() {
    let (_machine, scratch) = machine_and_scratch("tune-bad");
    let no_knobs = scratch.file("no-knobs.toml", "[axes]\nload = [\"none\"]\n");
    let two_cells = scratch.file(
        "two-cells.toml",
        "[knobs]\ntimer_slack = [\"1us\", \"2us\"]\n[axes]\nload = [\"none\", \"cpu\"]\npolicy = [\"other\"]\n",
    );
    for (arguments, words) in [
        ("--knob policy=other".to_owned(), "expected KEY=A,B"),
        ("--knob policy=other,other".to_owned(), "twice"),
        ("--knob policy=other,batch,other".to_owned(), "twice"),
        ("--knob boot.preempt=leave,full".to_owned(), "boot words are tried in the lab only"),
        ("--knob polcy=other,batch".to_owned(), "unknown key of a plan `polcy`"),
        ("--knob policy=other,fifo:200".to_owned(), "fifo:200"),
        ("--knob warm_up=1s,2s --knob warm_up=1s,3s".to_owned(), "duplicate knob"),
        ("--knob prepare.sysctl:no.such=leave,1".to_owned(), "no /proc/sys/no/such"),
        ("--knob prepare./etc/passwd=leave,1".to_owned(), "below /sys or /proc/sys"),
        ("--response p77".to_owned(), "expected p50, p99"),
        (
            format!("--knob warm_up=1s,2s --duration 1s --period 1ms --cpus {}", a_cpu()),
            "wake-ups, but p99 needs 2 000; measure at least 2s (--duration)",
        ),
        (no_knobs.display().to_string(), "has no knobs"),
        (two_cells.display().to_string(), "give 2 cells"),
    ] {
        let said = punctual(&format!("tune {arguments} --out {}", scratch.path("x").display()));
        assert!(said.status == 1 && said.stdout.is_empty(), "{arguments}: {said:?}");
        assert!(said.last_line().contains(words), "{words}: {said:?}");
    }
}

#[test]
fn a_plan_with_knobs_is_for_tune_only() {
    let _machine = machine();
    let scratch = Scratch::new("tune-run");
    let plan = scratch.file("p.toml", "[knobs]\ntimer_slack = [\"1us\", \"2us\"]\n");
    punctual(&format!("run {}", plan.display()))
        .expect_error("the plan has knobs: punctual tune tries them, run does not");
}

#[test]
fn root_the_machine_names_its_own_knobs() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("tune-own");
    let said = punctual(&small(&scratch, "--format json"));
    let json = said.json();
    let keys: Vec<_> = json["knobs"].as_array().unwrap().iter().map(|knob| knob["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"timer_slack") && keys.contains(&"cpu_dma_latency"), "{keys:?}");
}
