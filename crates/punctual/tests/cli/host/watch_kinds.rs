//! `watch` beside what programs of many kinds say of themselves: no verdict contradicts their own log.

use crate::program::{Scratch, command, machine_and_scratch, punctual, run, skip_unless};
use crate::real::watch::watched;
use crate::series::{Round, series};
use crate::servo::{compiled_from, did_nothing, may_watch};
use std::path::{Path, PathBuf};

/// How the loop waits. Those of the first list have due times of their own, which `watch` counts as they do.
const ON_A_GRID: [&str; 6] = ["timerfd", "signalfd", "sigwaitinfo", "tai", "cond_timedwait", "sem_clockwait"];
const OTHERS: [&str; 8] = ["mq_receive", "socket", "eventfd", "sem_wait", "cond_wait", "inotify", "ppoll", "deadline"];

/// Limits of the largest response, ns: between and beyond those of the loop.
const LIMITS_NS: [u64; 7] = [50_000, 150_000, 1_000_000, 2_500_000, 4_000_000, 7_000_000, 50_000_000];

/// Longest time, ns, between an event and the reading of the clock in the program.
const READING_NS: u64 = 20_000;

/// Response times that a program has noted, ns, of the turns released from `from_ns` to `until_ns`.
fn noted(log: &Path, (from_ns, until_ns): (u64, u64)) -> Vec<u64> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let numbers = |line: &str| line.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<u64>>();
    let turns = text.lines().map(numbers).filter(|turn| (from_ns..until_ns).contains(&turn[0]));
    turns.map(|turn| turn[2] - turn[0]).collect()
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
    let own = noted(&log, (record.started.0, record.started.0 + record.measured.ns()));
    let Some(largest_ns) = own.iter().max() else { return Round::Nothing("no turn was noted".to_owned()) };
    if watch.gaps > 0 {
        return Round::Nothing(format!("{} gaps", watch.gaps));
    }
    for limit_ns in LIMITS_NS {
        let status = punctual(&format!("check {} --require max={limit_ns}ns", out.display())).status;
        let is_false = status == 0 && *largest_ns > limit_ns + READING_NS;
        if is_false || status == 2 && largest_ns + READING_NS < limit_ns {
            return Round::Wrong(format!("{kind}: status {status} at {limit_ns} ns, own largest {largest_ns} ns"));
        }
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
