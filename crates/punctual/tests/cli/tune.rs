//! `punctual tune`: knobs are screened, confirmed, and put back.

use crate::program::{Scratch, a_cpu, command, is_root, machine, machine_and_scratch, punctual, run, skip_unless};
use crate::schema::assert_conforms;

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
    let plan = std::fs::read_to_string(keep.join("plan.toml")).unwrap();
    assert!(plan.contains("timer_slack = \"1ns\"") && plan.contains("warm_up = \"200ms\"") && !plan.contains("knobs"));
    assert!(std::fs::read_to_string(keep.join("README")).unwrap().contains("timer_slack"));
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
        ("--knob polcy=other,batch".to_owned(), "unknown key of a plan `polcy`"),
        ("--knob policy=other,fifo:200".to_owned(), "fifo:200"),
        ("--knob warm_up=1s,2s --knob warm_up=1s,3s".to_owned(), "duplicate knob"),
        ("--knob prepare.sysctl:no.such=leave,1 --duration 100ms".to_owned(), "no /proc/sys/no/such"),
        ("--knob prepare./etc/passwd=leave,1".to_owned(), "below /sys or /proc/sys"),
        ("--response p77".to_owned(), "expected p50, p99"),
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
