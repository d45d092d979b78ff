//! Gaps of a thread that never waits: every count agrees with the others, however busy the machine is.

use crate::places::{Places, go_on};
use crate::program::{
    a_cpu, a_cpu_and_the_others, cell, command, is_root, is_stopped, machine, punctual, record, skip_unless,
    start_cell, wait_for_progress,
};
use crate::real::explain::{instances, left_behind, sums_agree};
use punctual_ftrace::Capture;
use punctual_model::{
    Captures, Cell, Conditions, Ended, Explain, ExplainRecord, Explanation, Method, Phase, Record, Task,
};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::process::Command;

pub(crate) fn noise(policy: &str, duration: &str) -> Cell {
    let task = Task::Cyclic(Method::Noise { threshold: None });
    Cell { task, period: Method::NOISE_PERIOD, ..cell(policy, "none", &a_cpu().to_string(), duration) }
}

/// Asserts what holds for the one thread of every record of a loop that ended.
#[track_caller]
fn assert_adds_up(record: &Record) {
    let thread = &record.threads[0];
    let noise = thread.noise.as_ref().expect("a loop that ended");
    assert!(thread.is_consistent(), "{thread:?}");
    assert_eq!((thread.missed, thread.early, thread.cycles_due), (0, 0, thread.recorded + thread.lost));
    assert_eq!((noise.gaps, thread.histogram.n), (thread.recorded + thread.lost, thread.recorded), "{noise:?}");
    // Of gaps without room in the log only the sum is known.
    let sum_ns = u64::try_from(thread.histogram.sum_ns).unwrap();
    assert!(sum_ns <= noise.lost.ns() && (thread.lost > 0 || sum_ns == noise.lost.ns()), "{sum_ns} {noise:?}");
    let rest = noise.observed.ns().checked_sub(noise.lost.ns()).expect("gaps are part of the time observed");
    assert!(noise.readings > 0 && rest > 0 && noise.observed >= record.measured, "{noise:?} {}", record.measured);
    assert!(thread.histogram.min_ns.is_none_or(|ns| ns.unsigned_abs() > noise.threshold.ns()), "{noise:?}");
    assert_eq!(thread.worst.first().map(|worst| worst.latency_ns), thread.histogram.max_ns);
    assert_eq!(thread.usage.map(|usage| usage.allocations), Some(0));
}

#[test]
fn a_stop_of_the_process_is_a_gap_at_least_as_long() {
    let _machine = machine();
    let mut child = start_cell(command("cell --progress"), &noise("other", "1h"));
    wait_for_progress(&mut child);
    process::signal(child.id(), libc::SIGSTOP).unwrap();
    assert!(comes_true(|| is_stopped(child.id())), "it runs on");
    assert!(Command::new("sleep").arg("0.01").status().unwrap().success());
    process::signal(child.id(), libc::SIGCONT).unwrap();
    process::signal(child.id(), libc::SIGINT).unwrap();
    let record = record(child);
    assert_eq!(record.ended, Ended::Interrupted);
    assert_adds_up(&record);
    assert!(record.threads[0].histogram.max_ns >= Some(10_000_000), "{:?}", record.threads[0].worst.first());
}

#[test]
fn a_gap_while_the_end_is_being_set_is_in_every_count() {
    let (_machine, places) = (machine(), Places::new());
    let mut program = command("cell --progress");
    places.act(&mut program, "stop:end-known");
    let mut child = start_cell(program, &noise("other", "1h"));
    wait_for_progress(&mut child);
    process::signal(child.id(), libc::SIGINT).unwrap();
    go_on(places.stopped(&mut child, "end-known"));
    let record = record(child);
    assert_eq!(record.ended, Ended::Interrupted);
    assert_adds_up(&record);
}

#[test]
fn root_a_loop_in_real_time_ends_by_itself_and_leaves_a_cpu() {
    skip_unless!(is_root());
    let Some((_, others)) = a_cpu_and_the_others() else { return };
    let _machine = machine();
    assert_adds_up(&record(start_cell(command("cell"), &noise("fifo:1", "100ms"))));
    let all = format!("{},{others}", a_cpu());
    let refused = punctual(&format!("measure noise --no-keep --duration 100ms --policy fifo:1 --cpus {all}"));
    assert_eq!((refused.status, &*refused.stdout), (1, ""), "{refused:?}");
    assert!(refused.last_line().contains("every housekeeping CPU"), "{refused:?}");
}

/// Asserts that every gap has an explanation or is counted without one, and that each adds up.
#[track_caller]
pub(crate) fn assert_divided(record: &Record) -> &ExplainRecord {
    let explained = record.explained.as_ref().expect("it was asked for");
    sums_agree(explained);
    let gaps: u64 = record.threads.iter().filter_map(|thread| thread.noise.as_ref()).map(|noise| noise.gaps).sum();
    assert_eq!(explained.spikes, gaps);
    assert_eq!(explained.above, record.threads[0].noise.as_ref().map(|noise| noise.threshold));
    let is_gap = |one: &Explanation| one.phases.iter().all(|phase| phase.phase == Phase::Gap);
    assert!(explained.worst.iter().all(is_gap), "{:#?}", explained.worst);
    explained
}

#[test]
fn root_every_gap_is_divided_into_what_took_its_time() {
    let (Some(instances), Some(_)) = (instances(), a_cpu_and_the_others()) else { return };
    let _machine = machine();
    let explain = Some(Explain { captures: Captures::All, ..Explain::default() });
    let cell = noise("fifo:1", "100ms");
    let record = record(start_cell(
        command("cell"),
        &Cell { conditions: Conditions { explain, ..cell.conditions.clone() }, ..cell },
    ));
    assert_adds_up(&record);
    let explained = assert_divided(&record);
    // Each is explained again from its own events.
    for file in &explained.captures {
        let capture = Capture::unpack(&file.content().unwrap()).unwrap();
        assert!(capture.again().unwrap().iter().all(|again| again.now.is_some()), "{}", file.name);
    }
    assert_eq!(left_behind(&instances), [""; 0]);
}

#[test]
fn the_answer_has_the_numbers_of_the_record() {
    let _machine = machine();
    let said = punctual("measure noise --no-keep --duration 300ms --threshold 5us --format json").expect_success();
    let json = said.json();
    let summary = &json["cells"][0]["summary"];
    let cpu = &summary["noise"]["cpus"][0];
    assert_eq!(cpu["threshold_ns"], 5_000);
    assert_eq!(cpu["gaps"].as_u64(), Some(summary["samples"].as_u64().unwrap() + summary["lost"].as_u64().unwrap()));
    assert_eq!((&cpu["above"][0]["above_ns"], &cpu["above"][0]["gaps"]), (&cpu["threshold_ns"], &cpu["gaps"]));
    let counts: Vec<u64> = cpu["above"].as_array().unwrap().iter().map(|rate| rate["gaps"].as_u64().unwrap()).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    let answer = json["answer"].as_str().unwrap();
    assert!(answer.starts_with(&format!("CPU {} lost ", a_cpu())) && answer.contains("gap"), "{answer}");
}
