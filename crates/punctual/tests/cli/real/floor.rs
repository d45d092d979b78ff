//! The floor of a machine, in a scratch machine whose settings may be changed: rows, settings put back, later reports.

use crate::program::{a_cpu, a_cpu_and_the_others, command, machine_and_scratch, run, skip_unless};
use crate::real::explain::{instances, left_behind};
use std::process::Command;

#[test]
fn root_a_floor_has_its_layers_restores_what_it_held_and_is_known_to_later_runs() {
    skip_unless!(instances().is_some() && a_cpu_and_the_others().is_some());
    let (_machine, scratch) = machine_and_scratch("floor");
    let governor = format!("sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", a_cpu());
    scratch.file("sys/devices/system/cpu/online", "0-1\n");
    scratch.file("proc/sys/kernel/random/boot_id", "this-boot\n");
    scratch.file("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    scratch.file("proc/sys/kernel/sched_rt_period_us", "1000000\n");
    scratch.file(&governor, "powersave\n");
    let on = |words: &str| -> Command {
        let mut command = command(words);
        command.env("PUNCTUAL_ROOT", scratch.dir());
        command
    };
    let floor = run(&mut on("floor --for 2s --policy fifo:1 --no-keep --wait --format json")).expect_success().json();
    crate::pure::schema::assert_conforms("show", &floor);
    let rows = floor["run"]["floor"]["settings"].as_array().unwrap();
    let held: Vec<_> = rows.iter().map(|row| (row["held"].is_object(), row["why_not"].is_string())).collect();
    assert_eq!(held, [(false, true), (true, false), (false, true)], "{rows:#?}");
    assert!(floor["run"]["floor"]["as_is"]["lost_share"].is_number(), "{floor:#}");
    let cells = floor["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    let layers = cells[0]["summary"]["layers"].as_array().unwrap();
    let names: Vec<_> = layers.iter().map(|one| one["layer"].as_str().unwrap()).collect();
    assert_eq!(names, ["firmware_or_host", "kernel", "treatable", "unknown"]);
    let lost = |one: &serde_json::Value| one["lost_share"].as_f64().unwrap();
    let all = cells[0]["summary"]["explained"]["late_ns"].as_f64().unwrap();
    let observed = cells[0]["summary"]["noise"]["cpus"][0]["observed_ns"].as_f64().unwrap();
    assert!((layers.iter().map(lost).sum::<f64>() - all / observed).abs() < 1e-9, "{layers:#?}");
    assert_eq!(std::fs::read_to_string(scratch.path(&governor)).unwrap().trim(), "powersave");
    let later = "measure --duration 100ms --warm-up 0s --no-keep --wait --format json";
    let known = run(&mut on(later)).expect_success().json();
    assert_eq!(known["run"]["host"]["floor"]["boot_id"], "this-boot");
    scratch.file("proc/sys/kernel/random/boot_id", "the-next\n");
    assert!(run(&mut on(later)).expect_success().json()["run"]["host"].get("floor").is_none());
    assert_eq!(left_behind(&instances().unwrap()), [""; 0]);
}
