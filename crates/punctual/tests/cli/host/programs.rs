//! External programs as loads: whether each works in every second, and rests between its runs.

use crate::life::programs::all_programs;
use crate::program::{a_cpu, cell, command, machine, machine_and_scratch, record, start_cell};
use crate::series::{Round, series};
use punctual_model::LoadSecond;

/// Whole seconds of the only load of a cell that is long enough for two readings, one second apart.
fn seconds_of(load: &str) -> Vec<LoadSecond> {
    let record = record(start_cell(command("cell"), &cell("other", load, &a_cpu().to_string(), "2100ms")));
    record.loads[0].seconds.iter().filter(|second| second.elapsed.ns() > 900_000_000).cloned().collect()
}

#[test]
#[ignore = "host: CPU time within a second"]
fn every_program_works_in_every_second() {
    let (_machine, scratch) = machine_and_scratch("programs");
    let all = all_programs(&scratch);
    let mut loads = all.iter().cycle();
    series("programs work in every second", || {
        let seconds = seconds_of(&loads.next().unwrap().0);
        // Without a control group the CPU time of a program's descendants is unknown.
        let works = seconds.len() >= 2 && seconds.iter().all(|second| second.cpu_us != Some(0));
        Round::right_if(works, || format!("{seconds:?}"))
    });
}

#[test]
#[ignore = "host: a rate"]
fn a_program_that_ends_at_once_rests_before_it_is_started_again() {
    let _machine = machine();
    series("a program rests between its runs", || {
        let seconds = seconds_of("cmd:true");
        let most = |second: &LoadSecond| second.elapsed.ns() / 100_000_000 + 1;
        if let Some(second) = seconds.iter().find(|second| second.operations > Some(most(second))) {
            return Round::Wrong(format!("more than ten runs a second: {second:?}"));
        }
        Round::right_if(seconds.iter().any(|second| second.operations > Some(0)), || "no run".to_owned())
    });
}
