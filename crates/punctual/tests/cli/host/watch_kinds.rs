//! `watch` beside what programs of many kinds say of themselves: no verdict contradicts their own log.

use crate::program::{Scratch, command, kill_and_wait, machine_and_scratch, punctual, run, skip_unless};
use crate::real::watch::watched;
use crate::real::watch_account::A_SWITCH_NS;
use crate::series::{Round, each, series};
use crate::servo::{compiled_from, did_nothing, may_watch};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the loop waits. Those of the first list have due times of their own, which `watch` counts as they do.
const ON_A_GRID: [&str; 6] = ["timerfd", "signalfd", "sigwaitinfo", "tai", "cond_timedwait", "sem_clockwait"];
const OTHERS: [&str; 8] = ["mq_receive", "socket", "eventfd", "sem_wait", "cond_wait", "inotify", "ppoll", "deadline"];

/// Limits of the largest response, ns: between and beyond those of the loop.
const LIMITS_NS: [u64; 7] = [50_000, 150_000, 1_000_000, 2_500_000, 4_000_000, 7_000_000, 50_000_000];

/// Longest time, ns, between an event and the reading of the clock in the program.
const READING_NS: u64 = 20_000;

/// The three numbers that a program has noted of each turn.
fn noted(log: &Path) -> Vec<Vec<u64>> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect()).collect()
}

/// A verdict on the run that contradicts the bounds of the largest response, ns.
fn contradicts(out: &Path, at_least_ns: u64, at_most_ns: u64) -> Option<String> {
    LIMITS_NS.into_iter().find_map(|limit_ns| {
        let status = punctual(&format!("check {} --require max={limit_ns}ns", out.display())).status;
        let is_false = status == 0 && at_least_ns > limit_ns + READING_NS;
        let is_wrong = is_false || status == 2 && at_most_ns + READING_NS < limit_ns;
        is_wrong.then(|| format!("status {status} at {limit_ns} ns, own largest {at_least_ns} to {at_most_ns} ns"))
    })
}

fn round(scratch: &Scratch, program: &Path, kind: &str) -> Round {
    let (log, out): (PathBuf, PathBuf) = (scratch.path(kind), scratch.path("run"));
    let _ = std::fs::remove_dir_all(&out);
    let options = format!("watch --for 2s --no-explain --thread loop --deadline 2ms --wait --out {}", out.display());
    let said = run(command(&options).arg("--").arg(program).arg(kind).arg(&log));
    if kind != "deadline" && did_nothing(&said) {
        return Round::Nothing(said.stderr);
    }
    let (record, watch) = watched(&out);
    let measured = record.started.0..record.started.0 + record.measured.ns();
    let turns = noted(&log).into_iter().filter(|turn| measured.contains(&turn[0]));
    let own: Vec<u64> = turns.map(|turn| turn[2] - turn[0]).collect();
    let Some(largest_ns) = own.iter().max() else { return Round::Nothing("no turn was noted".to_owned()) };
    if watch.gaps > 0 {
        return Round::Nothing(format!("{} gaps", watch.gaps));
    }
    if let Some(wrong) = contradicts(&out, *largest_ns, *largest_ns) {
        return Round::Wrong(format!("{kind}: {wrong}"));
    }
    let Some(thread) = watch.threads.first().filter(|_| ON_A_GRID.contains(&kind)) else { return Round::Right };
    let late = own.iter().filter(|ns| **ns > 2_000_000).count() as u64;
    let is_equal = (thread.activations, thread.late) == (own.len() as u64, late);
    let why = || format!("{kind}: own {} and {late} late, {} and {}", own.len(), thread.activations, thread.late);
    if is_equal { Round::Right } else { Round::Wrong(why()) }
}

#[test]
#[ignore = "host: verdicts and counts beside a program's own log"]
fn root_no_verdict_contradicts_what_a_program_says_of_itself() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-kinds");
    let program = compiled_from(&scratch, "kinds", include_str!("../../watched/kinds.c"), &[]);
    let mut kinds = ON_A_GRID.iter().chain(&OTHERS).cycle();
    series("watch kinds", || round(&scratch, &program, kinds.next().expect("endless")));
}

/// Exit status of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// Programs in other languages: the source, its text, how it is compiled and started, and its thread.
const LANGUAGES: [[&str; 5]; 4] = [
    ["loop.py", include_str!("../../watched/loop.py"), "python3 --version", "python3 loop.py", "python*"],
    ["loop.js", include_str!("../../watched/loop.js"), "node --version", "node loop.js", "node"],
    ["loop.go", include_str!("../../watched/loop.go"), "go build -o go-loop loop.go", "./go-loop", "loop"],
    ["Loop.java", include_str!("../../watched/Loop.java"), "javac Loop.java", "java -cp . Loop", "loop"],
];

/// Whether the waits for a CPU and all verdicts are those of the program's log.
fn of_language(scratch: &Scratch, [source, _, _, start, thread]: [&str; 5]) -> Round {
    let (log, out) = (scratch.path("log"), scratch.path("run"));
    let _ = (std::fs::remove_dir_all(&out), std::fs::remove_file(&log));
    let options = format!("watch --for 2s --warm-up 2s --no-explain --thread {thread} --wait --out {}", out.display());
    let said = run(command(&options).arg("--").args(start.split(' ')).arg(&log).current_dir(scratch.dir()));
    if did_nothing(&said) {
        return Round::Nothing(said.stderr);
    }
    let (record, watch) = watched(&out);
    let turns = noted(&log);
    let (from_ns, until_ns) = (record.started.0, record.started.0 + record.measured.ns());
    let is_within = |turn: &Vec<u64>| turn[0] >= from_ns && turn[1] <= until_ns;
    let (first, last) = (turns.iter().position(is_within), turns.iter().rposition(is_within));
    let (Some(first), Some(last)) = (first.filter(|first| *first > 0), last) else {
        return Round::Nothing(format!("{} turns were noted", turns.len()));
    };
    // Threads of the runtime may have the same name.
    let own = watch.threads.iter().min_by_key(|one| one.activations.abs_diff((last - first) as u64));
    let Some(account) = own.and_then(|one| one.account.as_ref()) else { return Round::Nothing("no thread".to_owned()) };
    if watch.gaps > 0 || last <= first {
        return Round::Nothing(format!("{} gaps", watch.gaps));
    }
    let waited = |from: usize, to: usize| turns[to][2] - turns[from][2];
    let switches = 4 * (account.waited_for.iter().map(|one| one.n).sum::<u64>() + (last - first) as u64);
    let slack_ns = |ns: u64| ns / 100 + A_SWITCH_NS * switches + account.unknown.map_or(0, |unknown| unknown.ns());
    let (least_ns, waiting_ns) = (waited(first, last), account.waiting_for_cpu.ns());
    let most_ns = turns.get(last + 1).map_or(u64::MAX / 2, |_| waited(first - 1, last + 1));
    if waiting_ns + slack_ns(least_ns) < least_ns || waiting_ns > most_ns + slack_ns(most_ns) {
        return Round::Wrong(format!("{source}: waited {waiting_ns} ns, in its log {least_ns} to {most_ns}"));
    }
    let own = &turns[first..=last];
    let at_least = own.iter().map(|turn| turn[1] - turn[0]).max().unwrap_or(0);
    let at_most = (first..=last).map(|index| turns[index][1] - turns[index - 1][1]).max().unwrap_or(0);
    contradicts(&out, at_least, at_most).map_or(Round::Right, |wrong| Round::Wrong(format!("{source}: {wrong}")))
}

/// Writes and compiles the program; whether that is possible here.
fn compiles(scratch: &Scratch, [source, text, compile, ..]: [&str; 5]) -> bool {
    scratch.file(source, text);
    let said = run(Command::new("sh").args(["-c", compile]).current_dir(scratch.dir()));
    if said.status == NOT_FOUND {
        eprintln!("skipped: {}", said.stderr);
        return false;
    }
    assert_eq!(said.status, 0, "{said:?}");
    true
}

#[test]
#[ignore = "host: verdicts and waits beside the own log of programs in four languages"]
fn root_what_other_languages_say_of_themselves_is_not_contradicted() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-languages");
    each(LANGUAGES, |language| {
        if compiles(&scratch, language) {
            series(&format!("watch beside {}", language[0]), || of_language(&scratch, language));
        }
    });
}

/// Whether the thread that a watched one waits for most is the one that was planted on its CPU.
fn names(scratch: &Scratch, intruder: &Path, thread: &str, words: &[&str]) -> Round {
    let (cpu, out) = (crate::program::a_cpu().to_string(), scratch.path("run"));
    let _ = std::fs::remove_dir_all(&out);
    let mut planted = Command::new("taskset").args(["-c", &cpu]).arg(intruder).spawn().expect("taskset");
    let options = format!("watch --for 2s --warm-up 2s --no-explain --thread {thread} --wait --out {}", out.display());
    let mut watch = command(&options);
    let said = run(watch.args(["--", "taskset", "-c", &cpu]).args(words).current_dir(scratch.dir()));
    kill_and_wait(&mut planted);
    if did_nothing(&said) {
        return Round::Nothing(said.stderr);
    }
    let (_, watch) = watched(&out);
    let accounts = watch.threads.iter().filter_map(|one| one.account.as_ref());
    let account = accounts.max_by_key(|account| account.running);
    match account.and_then(|account| account.waited_for.iter().find(|one| one.name != "idle")) {
        Some(one) if one.name.starts_with("intruder") => Round::Right,
        Some(one) => Round::Wrong(format!("{words:?} waited most for {}", one.name)),
        None => Round::Nothing(format!("{words:?} waited for nothing")),
    }
}

#[test]
#[ignore = "host: the thread that takes the CPU from programs of many kinds"]
fn root_the_thread_that_takes_the_cpu_is_named_in_programs_of_many_kinds() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-intruder");
    let of = |name: &str, source| compiled_from(&scratch, name, source, &[]);
    let intruder = of("intruder", include_str!("../../watched/intruder.c"));
    let program = of("kinds", include_str!("../../watched/kinds.c")).display().to_string();
    // A deadline thread is above each of FIFO.
    let kinds = ON_A_GRID.iter().chain(&OTHERS).filter(|kind| **kind != "deadline").map(|kind| {
        let words = vec![program.as_str(), kind, "log"];
        ("loop", words)
    });
    let languages = LANGUAGES.into_iter().filter(|language| compiles(&scratch, *language));
    let languages = languages.map(|[.., start, thread]| (thread, start.split(' ').chain(["log"]).collect()));
    let all: Vec<(&str, Vec<&str>)> = kinds.chain(languages).collect();
    let mut all = all.iter().cycle();
    series("the thread that takes the CPU from programs of many kinds", || {
        let (thread, words) = all.next().expect("endless");
        names(&scratch, &intruder, thread, words)
    });
}
