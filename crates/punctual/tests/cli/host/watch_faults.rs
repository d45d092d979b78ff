//! Programs with planted faults, watched: how often the cause of each is named, and whether another one is.

use crate::program::{command, entries, is_installed, machine_and_scratch, run, skip_unless};
use crate::real::explain::instances;
use crate::series::{Round, each, series};
use crate::servo::{
    FAULTS, Fault, KINDS, OF_PROGRAMS, PYTHON, Program, by_name, compiled, described, explained, group_with_quota,
    is_possible, may_watch, named, watched, words, words_in,
};
use punctual_model::{Cause, Share};

/// A series of each fault of a program, in its rounds named this often.
fn each_of(program: Program, faults: &'static [Fault], least: usize) {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-faults");
    let compiled = program.compiled(&scratch, &[]);
    each(faults.iter().filter(|fault| is_possible(fault)), |fault| {
        let words = program.words(&compiled, fault.name);
        let thread = program.names().1;
        let name = format!("watch fault {}", fault.name);
        series(&name, || named(explained(&watched(1500, thread, &[], &words)).as_ref(), &[fault], least));
    });
}

#[test]
#[ignore = "host: causes in a watched program"]
fn root_each_fault_of_the_example_is_named() {
    each_of(Program::Servo, &FAULTS, 3);
}

#[test]
#[ignore = "host: causes in a watched program"]
fn root_what_a_loop_should_not_meet_is_named() {
    each_of(Program::Blamed, &KINDS, 1);
}

#[test]
#[ignore = "host: causes in a watched program"]
fn root_faults_that_take_turns_are_named_each() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-turns");
    let servo = compiled(&scratch, &[]);
    let faults =
        ["page_fault", "nice_lock", "fsync", "service", "malloc", "full_pipe", "migration", "long_run", "sleep"];
    let planted = by_name(&faults);
    skip_unless!(planted.len() == faults.len());
    let program = words(&servo, &faults.join("+"));
    series("watch faults in turns", || {
        named(explained(&watched(3000, "controller", &[], &program)).as_ref(), &planted, 2)
    });
}

#[test]
#[ignore = "host: causes in a watched program"]
fn root_a_control_group_that_has_used_up_its_quota_is_named() {
    skip_unless!(may_watch());
    let Some(group) = group_with_quota() else { return };
    let (_machine, scratch) = machine_and_scratch("watch-quota");
    let program = words_in(&group, &compiled(&scratch, &[]));
    series("watch fault cpu_limit", || {
        let Some(explained) = explained(&watched(2000, "controller", &[], &program)) else {
            return Round::Nothing("the program did nothing".to_owned());
        };
        let blames: Vec<_> = explained.worst.iter().filter_map(|one| one.blame()).collect();
        let right = blames.iter().filter(|share| share.cause == Cause::Throttling && share.or.is_none()).count();
        let is_wrong = |share: &&&Share| share.or.is_none() && OF_PROGRAMS.contains(&share.cause);
        match blames.iter().find(is_wrong) {
            Some(share) => Round::Wrong(described(share)),
            None => Round::right_if(right >= 3, || format!("{:#?}", explained.causes)),
        }
    });
}

#[test]
#[ignore = "host: causes in a watched program"]
fn root_each_fault_of_the_example_in_python_is_named() {
    skip_unless!(instances().is_some() && is_installed("python3", "python3"));
    let (_machine, scratch) = machine_and_scratch("watch-python");
    each(&PYTHON, |fault| {
        let program = fault.program.words(&fault.program.compiled(&scratch, &[]), fault.name);
        series(&format!("watch fault {} in Python", fault.name), || {
            let said = watched(3000, "python*", &["--policy", "fifo:80"], &program);
            named(explained(&said).as_ref(), &[fault], 3)
        });
    });
}

/// Task sets like the examples of rt-app: a run and a sleep, a run and a timer, and timers alone.
const TASK_SETS: [(&str, &str); 3] = [
    ("sleep", r#""run": 20000, "sleep": 80000"#),
    ("timer", r#""run": 10000, "timer": { "ref": "unique", "period": 50000 }"#),
    ("tick", r#""run": 1000, "timer": { "ref": "tick", "period": 6000 }"#),
];

#[test]
#[ignore = "host: times beside those of another program"]
fn root_run_times_and_wake_ups_agree_with_the_log_of_rt_app() {
    skip_unless!(instances().is_some() && is_installed("rt-app", "rt-app"));
    let (_machine, scratch) = machine_and_scratch("watch-rt-app");
    for (name, task) in TASK_SETS {
        let dir = scratch.dir().display();
        let text = format!(
            "{{ \"tasks\": {{ \"{name}\": {{ \"loop\": -1, {task} }} }}, \"global\": {{ \"duration\": 4, \
             \"calibration\": 100, \"default_policy\": \"SCHED_FIFO\", \"lock_pages\": true, \"logdir\": \"{dir}\", \
             \"log_basename\": \"log\", \"ftrace\": false, \"gnuplot\": false }} }}"
        );
        let (file, out) = (scratch.file(&format!("{name}.json"), text), scratch.path(name));
        series(&format!("watch rt-app {name}"), || {
            let _ = std::fs::remove_dir_all(&out);
            let watch = format!("watch --for 10s --warm-up 0s --wait --thread {name}* --out {} --", out.display());
            run(command(&watch).arg("rt-app").arg(&file)).expect_success();
            let watch = entries(&out)[0].record.watch.clone().unwrap();
            agrees(&watch.threads[0], &std::fs::read_to_string(scratch.path(&format!("log-{name}-0.log"))).unwrap())
        });
    }
}

/// Whether a thread has the numbers that its program has logged.
fn agrees(thread: &punctual_model::WatchedThread, log: &str) -> Round {
    // Columns: index, perf, run, period, start, end, release, slack, two more, and the wake-up latency; us.
    let rows = log.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<Vec<f64>> =
        rows.map(|row| row.split_whitespace().map(|number| number.parse().unwrap()).collect()).collect();
    let mean = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
    let us = |histogram: &punctual_model::Histogram| histogram.mean_ns().unwrap() as f64 / 1e3;
    let pairs = [
        // Its log has the time on the clock, without its own work before and after.
        ("run", us(&thread.run) + us(&thread.preempted), mean(2), 50.0),
        ("period", us(&thread.interval), mean(3), 0.0),
        // It reads the clock some microseconds after it runs again; with sleeps for a length of time, never.
        ("latency", us(&thread.latency), mean(10), 15.0),
    ];
    let differs = |(_, ours, theirs, constant): &(&str, f64, f64, f64)| {
        *theirs > 0.0 && (ours - theirs).abs() > theirs * 0.05 + constant
    };
    let is_counted = thread.activations.abs_diff(u64::try_from(rows.len()).unwrap()) <= 2;
    if is_counted && !pairs.iter().any(differs) {
        return Round::Right;
    }
    Round::Wrong(format!("{} activations, {} in its log: {pairs:?}", thread.activations, rows.len()))
}
