//! Searches for the smallest period sustained, on this machine: form and consistency of the result, not its value.

use crate::program::{ProgramOutput, Start, a_cpu, command, finish, machine, machine_and_scratch, run, running};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use serde_json::Value;

/// A short search on one CPU.
fn search(arguments: &str) -> ProgramOutput {
    run(&mut command(&format!("frontier --wait --warm-up 10ms --cpus {} {arguments}", a_cpu())))
}

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no length of time"))
}

#[test]
fn the_answer_follows_from_the_trials_that_are_shown() {
    let _machine = machine();
    let said = search("--from 1ms --to 100ms --duration 200ms --confirm 2 --resolution 100% --format json");
    let json = said.json();
    crate::pure::schema::assert_conforms("frontier", &json);
    let trials = json["trials"].as_array().unwrap();
    assert_eq!((ns(&json["asked"]["from_ns"]), ns(&json["asked"]["to_ns"])), (1_000_000, 100_000_000));
    assert_eq!(ns(&trials[0]["period_ns"]), 100_000_000, "the longest first");
    for trial in trials {
        let period = ns(&trial["period_ns"]);
        assert_eq!(ns(&trial["cycles_due"]), 200_000_000_u64.div_ceil(period), "{trial}");
        let accounted = ["recorded", "missed", "lost", "censored"].map(|count| ns(&trial[count]));
        assert_eq!(accounted.iter().sum::<u64>(), ns(&trial["cycles_due"]), "{trial}");
        assert_eq!(trial["kept"], trial["recorded"] == trial["cycles_due"]);
    }
    let frontier = &json["frontier"];
    match frontier["kind"].as_str().unwrap() {
        "confirmed" => {
            assert_eq!(said.status, 0);
            let fresh = |trial: &&Value| trial["purpose"] == "confirm" && trial["period_ns"] == frontier["period_ns"];
            let fresh: Vec<_> = trials.iter().filter(fresh).collect();
            assert!(fresh.len() == 2 && fresh.iter().all(|trial| trial["kept"] == true), "{json}");
            assert_eq!(ns(&frontier["cycles"]), fresh.iter().map(|trial| ns(&trial["cycles_due"])).sum::<u64>());
        }
        // A stall of 100 ms leads here.
        "longest_missed" | "not_confirmed" => assert_eq!(said.status, 3),
        other => panic!("{other}: {json}"),
    }
    assert_eq!(said.stderr.lines().count(), 1 + trials.len(), "one line a trial: {}", said.stderr);
    assert!(!json["text"].as_array().unwrap().is_empty());
}

#[test]
fn people_get_a_table_and_an_answer() {
    let _machine = machine();
    let said = search("timerfd --from 100ms --to 100ms --duration 100ms --confirm 1");
    let head: Vec<_> =
        said.stdout.lines().find(|line| line.starts_with("  trial")).unwrap().split_whitespace().collect();
    assert_eq!(head[..3], ["trial", "period", "for"], "{}", said.stdout);
    assert!(said.stdout.contains("timerfd, none/other, CPU"), "{}", said.stdout);
    let found = said.stdout.contains("Shortest period kept: 100 ms (it is the shortest that was asked for, --from).");
    assert!(found == (said.status == 0) && [0, 3].contains(&said.status), "{said:?}");
}

#[test]
fn a_timer_that_knows_microseconds_only_is_asked_for_no_others() {
    let _machine = machine();
    let said = search("itimer --from 10us --to 101us --duration 50ms --confirm 1 --resolution 1% --format json");
    assert!([0, 3].contains(&said.status), "{said:?}");
    for trial in said.json()["trials"].as_array().unwrap() {
        assert_eq!(ns(&trial["period_ns"]) % 1_000, 0, "{trial}");
    }
}

#[test]
fn ctrl_c_ends_a_search_with_what_was_found() {
    let _machine = machine();
    let mut search = command("frontier --wait --from 50ms --to 100ms --duration 1h --format json");
    let child = search.start_piped();
    assert!(comes_true(|| running().len() >= 2), "this process and its trial");
    process::signal(child.id(), libc::SIGINT).unwrap();
    let said = finish(child);
    let json = said.json();
    assert_eq!((said.status, &json["frontier"]["kind"]), (3, &"interrupted".into()));
    assert_eq!(json["text"][0], "Interrupted after 0 trials: no period was sustained; nothing is confirmed.");
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
}

#[test]
fn settings_are_made_for_each_trial_and_put_back() {
    let (_machine, scratch) = machine_and_scratch("frontier-prepare");
    let setting = scratch.file("proc/sys/kernel/timer_migration", "1\n");
    let search =
        "frontier --wait --cpus 0 --from 100ms --to 100ms --duration 100ms --confirm 1 --format json --prepare";
    let search = |settings: &str| run(command(search).arg(settings).env("PUNCTUAL_ROOT", scratch.dir()));
    let json = search("timer_migration=off").json();
    assert_eq!(json["asked"]["prepare"]["timer_migration"], false, "{json}");
    assert_eq!(std::fs::read_to_string(&setting).unwrap(), "1\n");
    // The setting is applied, not only recorded.
    let said = search("transparent_hugepages=never");
    assert!(said.status == 1 && said.stderr.contains("cannot set transparent_hugepages: no "), "{said:?}");
}
