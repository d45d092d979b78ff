//! `punctual monitor` beside known culprits, and counts in its windows.

use crate::host::spinner::Spinner;
use crate::program::{a_cpu, machine_and_scratch, punctual, skip_unless};
use crate::real::explain::instances;
use crate::real::monitor::{Running, history, number, sums};
use crate::series::{Round, series};
use serde_json::Value;
use std::time::Duration;

/// The windows of a history.
fn windows(dir: &std::path::Path) -> Vec<Value> {
    history(dir)["windows"].as_array().unwrap().clone()
}

#[test]
#[ignore = "host: wake-ups in a time"]
fn most_due_times_of_each_window_are_seen() {
    let (_machine, scratch) = machine_and_scratch("monitor-full");
    let dir = scratch.path("m");
    let arguments = format!(
        "monitor --policy other --window 1s --no-explain --for 2500ms --cpus {} --dir {}",
        a_cpu(),
        dir.display()
    );
    series("monitor windows full", || {
        let _ = std::fs::remove_dir_all(&dir);
        punctual(&arguments).expect_success();
        let windows = windows(&dir);
        let is_full = |window: &Value| {
            let (measured_ns, seen) = sums(window);
            // The last due times may still be waited for.
            seen + 4 + seen / 2 >= measured_ns / 10_000_000
        };
        Round::right_if(windows.iter().all(is_full), || format!("{:?}", windows.iter().map(sums).collect::<Vec<_>>()))
    });
}

#[test]
#[ignore = "host: a pause in time"]
fn a_pause_is_not_measured() {
    let (_machine, scratch) = machine_and_scratch("monitor-pause");
    let dir = scratch.path("m");
    series("monitor pause", || {
        let _ = std::fs::remove_dir_all(&dir);
        let mut running = Running::start(&dir, "--no-explain");
        running.expect("history: ");
        let measured = punctual("measure --duration 500ms --no-keep");
        if measured.status != 0 {
            running.end(libc::SIGINT);
            return Round::Nothing(measured.stderr);
        }
        running.expect("measuring again");
        running.end(libc::SIGINT);
        let windows = windows(&dir);
        let is_twice = |window: &&Value| {
            let length_ms = |one: &Value| number(&one["ended_unix_ms"]) - number(&one["started_unix_ms"]);
            let gaps_ms: u64 = window["gaps"].as_array().unwrap().iter().map(length_ms).sum();
            number(&window["measured_ns"]) / 1_000_000 + gaps_ms > length_ms(window) + 1_500
        };
        windows.iter().find(is_twice).map_or(Round::Right, |window| Round::Wrong(window.to_string()))
    });
}

#[test]
#[ignore = "host: explanations in a time"]
fn root_few_late_wake_ups_of_a_window_are_explained_and_they_are_its_own() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("monitor-few");
    let dir = scratch.path("m");
    let arguments = format!(
        "monitor --policy other --window 1s --above 1us --for 2500ms --cpus {} --dir {}",
        a_cpu(),
        dir.display()
    );
    series("monitor explanations of a window", || {
        let _ = std::fs::remove_dir_all(&dir);
        punctual(&arguments).expect_success();
        let windows = windows(&dir);
        let is_right = |window: &&Value| {
            let (from, to) = (number(&window["started_unix_ms"]), number(&window["ended_unix_ms"]));
            let is_its_own = |spike: &Value| (from..=to + 2_000).contains(&(number(&spike["due_unix_ms"]) + 2_000));
            // The rest of the window goes without stops of the trace.
            number(&window["explained"]) <= 16 && window["spikes"].as_array().unwrap().iter().all(is_its_own)
        };
        if let Some(other) = windows.iter().find(|window| !is_right(window)) {
            return Round::Wrong(other.to_string());
        }
        let explained: u64 = windows.iter().map(|window| number(&window["explained"])).sum();
        Round::right_if(explained > 0, || "nothing was explained".to_owned())
    });
}

#[test]
#[ignore = "host: causes of late wake-ups"]
fn root_an_interferer_is_named() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("monitor-named");
    let dir = scratch.path("m");
    let arguments = format!(
        "monitor --policy fifo:80 --window 2s --above 500us --for 4s --cpus {} --dir {}",
        a_cpu(),
        dir.display()
    );
    series("monitor interferer", || {
        let _ = std::fs::remove_dir_all(&dir);
        let (time, burst) = (Duration::from_secs(15), Duration::from_millis(3));
        let culprit = Spinner::on(a_cpu(), time, "fifo:90", burst, Duration::from_millis(50));
        punctual(&arguments).expect_success();
        drop(culprit);
        let windows = windows(&dir);
        let spikes = windows.iter().flat_map(|window| window["spikes"].as_array().unwrap());
        let blames: Vec<&Value> = spikes.map(|spike| &spike["shares"][0]).collect();
        let of_culprit = |blame: &&&Value| blame["owner"]["name"] == "culprit";
        let is_wrong = |blame: &&&Value| blame["cause"] != "higher_priority" && blame["or"].is_null();
        match blames.iter().filter(of_culprit).find(is_wrong) {
            Some(wrong) => Round::Wrong(wrong.to_string()),
            None => Round::right_if(blames.iter().any(|blame| of_culprit(&blame)), || format!("{blames:?}")),
        }
    });
}
