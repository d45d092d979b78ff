//! Programs with planted faults, watched: the cause of each is named, and no other one of the program.

use crate::explain::{Group, instances};
use crate::program::{
    DIRECTORY, ProgramOutput, Scratch, beside_a_load, command, entries, is_installed, machine_and_scratch, run,
    run_seeded, skip_unless,
};
use crate::vm::kernel;
use model::{Cause, ExplainRecord, Share};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fault of the example, and its explanation.
struct Fault {
    /// Its name in the example.
    name: &'static str,
    /// The causes that are right: a lock is one with and without a thread that delays its holder.
    causes: &'static [Cause],
    /// What the owner or the place must contain.
    text: &'static str,
}

const fn fault(name: &'static str, causes: &'static [Cause], text: &'static str) -> Fault {
    Fault { name, causes, text }
}

const LOCKS: &[Cause] = &[Cause::Lock, Cause::PriorityInversion];

/// Those that hit the controller and need no more than the example itself.
static FAULTS: [Fault; 13] = [
    fault("page_fault", &[Cause::PageFault], "page faults"),
    fault("major_fault", &[Cause::PageFault], "page"),
    fault("nice_lock", LOCKS, "held by logger (nice 10)"),
    fault("pi_lock", LOCKS, "held by logger (nice 10); priority inheritance is on"),
    fault("inversion", &[Cause::PriorityInversion], "held by logger (nice 10), while "),
    fault("fsync", &[Cause::Storage], "fsync"),
    fault("service", &[Cause::SystemCall], "socket, until service woke it"),
    fault("malloc", &[Cause::Memory], ""),
    fault("full_pipe", &[Cause::SystemCall], "pipe, until reader woke it"),
    fault("equal_priority", &[Cause::EqualPriority], "rival"),
    fault("migration", &[Cause::Migration], ""),
    fault("long_run", &[Cause::LongRun], "usually "),
    fault("sleep", &[Cause::SystemCall], "it sleeps itself: clock_nanosleep for a length of time"),
];

/// What is as true of a fault, but does not name it: the holder of an inversion's lock is not always delayed.
const TRUE_TOO: [Fault; 1] = [fault("inversion", &[Cause::Lock], "held by logger (nice 10)")];

/// Causes that are in a program; others are in the machine, and may always be there as well.
const OF_PROGRAMS: [Cause; 10] = [
    Cause::LongRun,
    Cause::Lock,
    Cause::PriorityInversion,
    Cause::Storage,
    Cause::Memory,
    Cause::SystemCall,
    Cause::Migration,
    Cause::PageFault,
    Cause::EqualPriority,
    Cause::Stopped,
];

/// Result of one round.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    Right,
    /// Nothing is named, or too little.
    Not(String),
    /// A cause that is not there.
    Wrong(String),
}

/// The compiled example.
fn servo(scratch: &Scratch) -> PathBuf {
    compiled(scratch, &[])
}

pub(crate) fn compiled(scratch: &Scratch, options: &[&str]) -> PathBuf {
    compiled_from(scratch, "servo", include_str!("../../../../examples/servo.c"), options)
}

/// The program `name` of a source in C.
pub(crate) fn compiled_from(scratch: &Scratch, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let source = scratch.file(&format!("{name}.c"), source);
    let program = scratch.path(name);
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-pthread", "-Wall", "-Wextra", "-Werror"]).args(options).arg("-o").arg(&program).arg(source);
    let said = run(&mut cc);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{said:?}");
    program
}

/// Watches a thread of a program, with the worst 60 activations explained.
fn watch(seconds: f64, thread: &str, program: &[String]) -> ProgramOutput {
    watched(seconds, thread, &[], program)
}

/// The same, with more options.
pub(crate) fn watched(seconds: f64, thread: &str, options: &[&str], program: &[String]) -> ProgramOutput {
    let ms = (seconds * 1e3).round();
    let mut command =
        command(&format!("watch --for {ms}ms --keep 60 --no-keep --wait --format json --thread {thread}"));
    run(command.args(options).arg("--").args(program))
}

/// The words of the example with these faults, and with its files beside those of the build.
pub(crate) fn words(program: &Path, fault: &str) -> Vec<String> {
    let program = program.display().to_string();
    [&program, "--every", "25", "--dir", DIRECTORY, "--fault", fault].map(str::to_owned).into()
}

#[track_caller]
pub(crate) fn explained(said: &ProgramOutput) -> ExplainRecord {
    assert_eq!(said.status, 0, "{said:?}");
    let explained = &said.json()["cells"][0]["summary"]["explained"];
    let explained: ExplainRecord = serde_json::from_value(explained.clone()).unwrap();
    assert!(explained.worst.iter().all(model::Explanation::is_complete), "{:#?}", explained.worst);
    explained
}

fn described(share: &Share) -> String {
    format!("{:?} {:?} {} {}", share.cause, share.or, share.owner.name, share.place.as_deref().unwrap_or_default())
}

/// Whether a share is caused by a fault, without an alternative cause.
fn is_of(share: &Share, fault: &Fault) -> bool {
    share.or.is_none() && fault.causes.contains(&share.cause) && described(share).contains(fault.text)
}

/// Whether a share is caused by the fault with this name.
pub(crate) fn is_of_fault(share: &Share, name: &str) -> bool {
    FAULTS.iter().any(|fault| fault.name == name && is_of(share, fault))
}

/// Numbers of late activations that are blamed on each planted fault; else a cause that is not there.
fn counted(explained: &ExplainRecord, planted: &[&Fault]) -> Result<Vec<usize>, String> {
    let mut right = vec![0; planted.len()];
    for one in &explained.worst {
        let is_of_program = |share: &&Share| OF_PROGRAMS.contains(&share.cause) && share.or.is_none();
        let Some(share) = one.blame().filter(is_of_program) else { continue };
        let is_planted = |too: &Fault| planted.iter().any(|fault| fault.name == too.name);
        match planted.iter().position(|fault| is_of(share, fault)) {
            Some(index) => right[index] += 1,
            None if TRUE_TOO.iter().any(|too| is_planted(too) && is_of(share, too)) => {}
            None => return Err(format!("{} in {one:#?}", described(share))),
        }
    }
    Ok(right)
}

/// Whether each planted fault is blamed at least this often.
fn named(explained: &ExplainRecord, planted: &[&Fault], least: usize) -> Named {
    match counted(explained, planted) {
        Ok(right) if right.iter().all(|n| *n >= least) => Named::Right,
        Ok(right) => Named::Not(format!("{right:?}, causes {:#?}", explained.causes)),
        Err(wrong) => Named::Wrong(wrong),
    }
}

/// A round that names the fault and no other; or else two of three, as a single one may meet a busy machine.
#[track_caller]
fn expect_named(fault: &str, mut round: impl FnMut() -> Named) {
    let mut failed = Vec::new();
    for n in 0..3 {
        match round() {
            Named::Right if n == 0 => return,
            Named::Right => {}
            Named::Not(why) => failed.push(why),
            Named::Wrong(what) => failed.push(format!("a wrong cause: {what}")),
        }
    }
    assert!(failed.len() == 1, "{fault}: {failed:#?}");
    eprintln!("{fault}: named in two rounds of three; not in this one: {failed:?}");
}

pub(crate) fn may_watch() -> bool {
    instances().is_some() && is_installed("cc", "gcc")
}

/// Whether the machine has the CPUs and the disk that the fault needs.
fn is_possible(fault: &Fault) -> bool {
    match fault.name {
        "migration" => sys::sched::affinity(0).unwrap().len() > 1,
        "fsync" | "major_fault" => {
            let kind = run(Command::new("stat").args(["-f", "-c", "%T", DIRECTORY]));
            let is_disk = kind.stdout.trim() != "tmpfs";
            if !is_disk {
                eprintln!("skipped: {} needs a disk, and {DIRECTORY} is in memory", fault.name);
            }
            is_disk
        }
        _ => true,
    }
}

fn by_name(names: &[&str]) -> Vec<&'static Fault> {
    FAULTS.iter().filter(|fault| names.contains(&fault.name) && is_possible(fault)).collect()
}

/// The controller with these faults in turn, watched for this long.
fn controller(servo: &Path, planted: &[&Fault], seconds: f64) -> ExplainRecord {
    let names = planted.iter().map(|fault| fault.name).collect::<Vec<_>>().join("+");
    explained(&watch(seconds, "controller", &words(servo, &names)))
}

#[test]
fn root_each_planted_fault_of_a_control_loop_is_named_and_no_other() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-faults");
    let servo = servo(&scratch);
    for fault in FAULTS.iter().filter(|fault| is_possible(fault)) {
        expect_named(fault.name, || named(&controller(&servo, &[fault], 1.5), &[fault], 3));
    }
}

/// Faults that can be planted together, the time of a round in which each hits some times, and how often at least.
static TOGETHER: [(&[&str], f64, usize); 4] = [
    (&["page_fault", "nice_lock", "fsync", "service", "malloc", "full_pipe", "migration", "long_run", "sleep"], 3.0, 2),
    (&["major_fault", "pi_lock"], 1.2, 3),
    (&["inversion"], 1.0, 3),
    (&["equal_priority"], 1.0, 3),
];

#[test]
#[ignore = "long: 20 rounds of each planted fault"]
fn root_series_of_20_rounds_name_each_planted_fault_and_none_wrongly() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-rounds");
    let servo = servo(&scratch);
    let mut all = Vec::new();
    for (names, seconds, least) in &TOGETHER {
        let planted = by_name(names);
        let mut named = vec![0; planted.len()];
        for _ in 0..20 {
            let counted = counted(&controller(&servo, &planted, *seconds), &planted);
            let counted = counted.unwrap_or_else(|wrong| panic!("{names:?}: a wrong cause: {wrong}"));
            named.iter_mut().zip(counted).for_each(|(named, n)| *named += usize::from(n >= *least));
        }
        all.extend(planted.iter().map(|fault| fault.name).zip(named));
        eprintln!("rounds of 20 in which each is named so far: {all:?}");
    }
    assert!(all.iter().all(|(_, n)| *n >= 19), "{all:?}");
}

#[test]
#[ignore = "long: 20 rounds of each"]
fn root_series_of_20_rounds_name_a_quota_a_collection_and_a_log_and_none_wrongly() {
    let of_20 = |fault: &str, round: &mut dyn FnMut() -> Named| {
        let rounds: Vec<Named> = (0..20).map(|_| round()).collect();
        let right = rounds.iter().filter(|round| **round == Named::Right).count();
        eprintln!("{fault}: named in {right} of 20");
        assert!(right >= 19 && !rounds.iter().any(|round| matches!(round, Named::Wrong(_))), "{fault}: {rounds:#?}");
    };
    in_a_group_with_a_quota(of_20);
    in_python(of_20);
}

#[test]
fn root_planted_faults_that_take_turns_are_named_each() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-mixed");
    let servo = servo(&scratch);
    let planted = by_name(&["fsync", "nice_lock", "service", "page_fault", "malloc"]);
    expect_named("in turns", || named(&controller(&servo, &planted, 2.5), &planted, 2));
}

#[test]
fn root_a_timer_that_is_set_relative_is_a_property_of_its_thread() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-relative");
    let servo = servo(&scratch);
    for (fault, is_relative) in [("relative_timer", true), ("sleep", false)] {
        let dir = scratch.path(fault);
        let mut command = command(&format!("watch --for 1500ms --wait --thread sensor --out {} --", dir.display()));
        run(command.args(words(&servo, fault))).expect_success();
        let watch = entries(&dir)[0].record.watch.clone().unwrap();
        assert_eq!(watch.threads.len(), 1, "{watch:#?}");
        assert_eq!(watch.threads[0].is_relative, Some(is_relative), "{:#?}", watch.threads[0]);
    }
}

#[test]
fn root_a_control_group_that_has_used_up_its_quota_is_named() {
    in_a_group_with_a_quota(|fault, round| expect_named(fault, round));
}

/// Judges rounds of the example in a control group with a quota.
fn in_a_group_with_a_quota(judge: impl Fn(&str, &mut dyn FnMut() -> Named)) {
    skip_unless!(may_watch());
    let version_1 = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")];
    let Some(group) = Group::make("cpu", &version_1, &[("cpu.max", "20000 100000")]) else { return };
    let (_machine, scratch) = machine_and_scratch("watch-quota");
    let servo = servo(&scratch);
    let enter = ["sh", "-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"", &group.0.display().to_string()];
    let enter = enter.map(str::to_owned).into_iter();
    let program: Vec<String> =
        enter.chain(words(&servo, "cpu_limit")).chain(["--priority", "0"].map(str::to_owned)).collect();
    judge("cpu_limit", &mut || {
        let explained = explained(&watch(2.0, "controller", &program));
        let blames: Vec<_> = explained.worst.iter().filter_map(|one| one.blame()).collect();
        let right = blames.iter().filter(|share| share.cause == Cause::Throttling && share.or.is_none()).count();
        let is_wrong = |share: &&&Share| share.or.is_none() && OF_PROGRAMS.contains(&share.cause);
        match blames.iter().find(is_wrong) {
            Some(share) => Named::Wrong(described(share)),
            None if right >= 3 => Named::Right,
            None => Named::Not(format!("{:#?}", explained.causes)),
        }
    });
}

#[test]
fn root_a_garbage_collection_and_a_blocking_log_of_a_program_in_python_are_named() {
    in_python(|fault, round| expect_named(fault, round));
}

/// Judges rounds of the example in Python.
fn in_python(judge: impl Fn(&str, &mut dyn FnMut() -> Named)) {
    skip_unless!(instances().is_some() && is_installed("python3", "python3"));
    let (_machine, scratch) = machine_and_scratch("watch-python");
    let servo = scratch.file("servo.py", include_str!("../../../../examples/servo.py"));
    let collection = fault("gc", &[Cause::LongRun], "python3 usually ");
    let log = fault("log", &[Cause::SystemCall], "pipe, until log-reader woke it");
    for fault in [collection, log] {
        let program = ["python3", &servo.display().to_string(), "--fault", fault.name].map(str::to_owned);
        judge(fault.name, &mut || {
            let mut command = command("watch --for 3s --keep 60 --no-keep --wait --format json --policy fifo:80");
            let said = run(command.args(["--thread", "python*", "--"]).args(&program));
            named(&explained(&said), &[&fault], 3)
        });
    }
}

#[test]
#[ignore = "long: boots guests"]
fn vm_a_watched_program_is_explained_the_same_to_the_bit() {
    let Some(kernel) = kernel() else { return };
    skip_unless!(is_installed("cc", "gcc"));
    let (_machine, scratch) = machine_and_scratch("watch-guest");
    let servo = compiled(&scratch, &["-static"]);
    let faults = ["service", "nice_lock", "page_fault", "malloc"];
    let planted = by_name(&faults);
    let task = format!("watch,thread=controller:{} --every 25 --fault {}", servo.display(), faults.join("+"));
    let plan = format!(
        "repetitions = 1\nduration = \"2s\"\nwarm_up = \"200ms\"\n[explain]\nkeep = 60\n[axes]\n\
         kernel = [\"{} preempt=full\"]\nload = [\"none\"]\npolicy = [\"other\"]\nperiod = [\"2ms\"]\nmethod = ['{task}']\n",
        kernel.display()
    );
    let plan = scratch.file("plan.toml", plan).display().to_string();
    let measured = |name: &str| {
        let out = scratch.path(name);
        run_seeded(&plan, &out);
        entries(&out)
    };
    let quiet = measured("quiet");
    let busy = beside_a_load(|| measured("busy"));
    assert!(quiet == busy, "virtual time does not depend on what else the machine does");
    let explained = quiet[0].record.explained.as_ref().unwrap();
    assert_eq!(named(explained, &planted, 5), Named::Right);
    // Some are passed over in the pause after a stop.
    assert!(explained.not_covered * 10 <= explained.spikes, "{explained:#?}");
}

/// Task sets like the examples of rt-app: a run and a sleep, a run and a timer, and timers alone.
const TASK_SETS: [(&str, &str); 3] = [
    ("sleep", r#""run": 20000, "sleep": 80000"#),
    ("timer", r#""run": 10000, "timer": { "ref": "unique", "period": 50000 }"#),
    ("tick", r#""run": 1000, "timer": { "ref": "tick", "period": 6000 }"#),
];

#[test]
#[ignore = "long: three task sets of rt-app"]
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
        let mut command =
            command(&format!("watch --for 10s --warm-up 0s --wait --thread {name}* --out {} -- rt-app", out.display()));
        run(command.arg(file)).expect_success();
        let watch = entries(&out)[0].record.watch.clone().unwrap();
        let thread = &watch.threads[0];
        let log = std::fs::read_to_string(scratch.path(&format!("log-{name}-0.log"))).unwrap();
        // Columns: index, perf, run, period, start, end, release, slack, two more, and the wake-up latency; us.
        let rows = log.lines().filter(|line| !line.starts_with('#'));
        let rows: Vec<Vec<f64>> =
            rows.map(|row| row.split_whitespace().map(|number| number.parse().unwrap()).collect()).collect();
        let mean = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
        let us = |histogram: &model::Histogram| histogram.mean_ns().unwrap() as f64 / 1e3;
        let pairs = [
            // Its log has the time on the clock, without its own work before and after.
            ("run", us(&thread.run) + us(&thread.preempted), mean(2), 50.0),
            ("period", us(&thread.interval), mean(3), 0.0),
            // It reads the clock some microseconds after it runs again; with sleeps for a length of time, never.
            ("latency", us(&thread.latency), mean(10), 15.0),
        ];
        eprintln!("{name}: {} activations, {} in its log: {pairs:?}", thread.activations, rows.len());
        assert!(thread.activations.abs_diff(u64::try_from(rows.len()).unwrap()) <= 2, "{thread:#?}");
        for (what, ours, theirs, constant) in pairs.into_iter().filter(|pair| pair.2 > 0.0) {
            assert!(
                (ours - theirs).abs() <= theirs * 0.05 + constant,
                "{name}: {what}: {ours} us, in its log {theirs} us"
            );
        }
    }
}
