//! Marks of a watched program: its phases beside the clock that the program itself has read around each mark.

use super::watch::{Running, watched};
use crate::program::{
    Scratch, Start, command, inconclusive, kill_and_wait, machine_and_scratch, punctual, run, skip_unless,
};
use crate::servo::{compiled_from, did_nothing, may_watch};
use punctual_model::{Histogram, PhaseKind, PhaseRecord};
use punctual_sys::testing::comes_true;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Activations with marks.
const N: usize = 200;

/// An interval of times or lengths, ns.
type Bounds = (i64, i64);

/// What the kernel lists as probes; `None`, with a message, where it cannot trace programs.
fn probes() -> Option<String> {
    let directory = Path::new("/sys/kernel/tracing");
    let has_both = directory.join("options/copy_trace_marker").exists();
    let list = read_to_string(directory.join("uprobe_events")).ok().filter(|_| has_both);
    if list.is_none() {
        eprintln!("skipped: needs Linux 6.16 with CONFIG_UPROBE_EVENTS");
    }
    list
}

/// Groups of probes of this program whose process `is_it` by its ID.
fn groups(is_it: impl Fn(&str) -> bool) -> Vec<String> {
    let list = probes().unwrap_or_default();
    let group = |line: &str| Some(line.strip_prefix("p:")?.split('/').next()?.to_owned());
    let is_ours = |group: &String| group.starts_with("punctual_") && group.split('_').nth(2).is_some_and(&is_it);
    list.lines().filter_map(group).filter(is_ours).collect()
}

fn program(scratch: &Scratch) -> PathBuf {
    compiled_from(scratch, "marks", include_str!("../../watched/marks.c"), &[])
}

/// Checks that the values of a distribution can be those of these bounds, one for each.
#[track_caller]
fn lies_within(of: &str, found: &Histogram, bounds: &[Bounds]) {
    let sum = |of: fn(&Bounds) -> i64| bounds.iter().map(|one| i128::from(of(one))).sum::<i128>();
    let sums = sum(|one| one.0)..=sum(|one| one.1);
    assert_eq!(found.n, bounds.len() as u64, "{of}");
    assert!(sums.contains(&found.sum_ns), "{of}: {} {sums:?}", found.sum_ns);
    let (least, most) = (bounds.iter().map(|one| one.0).min(), bounds.iter().map(|one| one.1).max());
    assert!(found.min_ns >= least && found.max_ns <= most, "{of}: {found:?} {least:?} {most:?}");
}

/// The marks of a line of the log in their order: each with the clock before and after.
fn passes(line: &[i64]) -> Vec<(&'static str, Bounds)> {
    let all = [("read", 1), ("solve", 3), ("marks:write", 5), ("read", 7)];
    all.into_iter().filter(|(_, at)| line[*at] > 0).map(|(mark, at)| (mark, (line[at], line[at + 1]))).collect()
}

/// Length of a mark in an activation that ends at `end`; `None` if it is not passed.
fn length(line: &[i64], end: Bounds, mark: &str) -> Option<Bounds> {
    let passes = passes(line);
    let next = |index: usize| passes.get(index + 1).map_or(end, |(_, at)| *at);
    let stretches: Vec<Bounds> = (passes.iter().enumerate())
        .filter(|(_, (name, _))| *name == mark)
        .map(|(index, (_, (low, high)))| (next(index).0 - high, next(index).1 - low))
        .collect();
    (!stretches.is_empty()).then(|| stretches.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)))
}

#[test]
fn root_phases_lie_between_what_the_program_says_before_and_after_its_marks() {
    skip_unless!(may_watch() && probes().is_some());
    let (_machine, scratch) = machine_and_scratch("watch-marks");
    let (log, out) = (scratch.path("log"), scratch.path("run"));
    let marks = "--mark marker --mark function:solve --mark usdt:marks:write --mark function:never";
    let source = format!("{}int never(void) {{ return 1; }}", include_str!("../../watched/marks.c"));
    let program = compiled_from(&scratch, "marks", &source, &[]);
    let options = format!("watch --for 1h --warm-up 0s --thread marked --no-explain --wait --out {}", out.display());
    let said = run(command(&format!("{options} {marks}")).arg("--").arg(program).arg(&log).arg(N.to_string()));
    if did_nothing(&said) {
        return inconclusive("the program did nothing");
    }
    said.expect_success();
    let is_dead = |pid: &str| !Path::new("/proc").join(pid).exists();
    assert_eq!(groups(is_dead), Vec::<String>::new());
    let (_, watch) = watched(&out);
    let [thread]: [_; 1] = watch.threads.try_into().unwrap();
    let phases = thread.phases.clone().unwrap();
    // Whatever was seen, the phases of all activations are all of their time.
    let sum: i128 = phases.iter().map(|one| one.length.sum_ns).sum();
    assert_eq!(sum, thread.response.sum_ns, "{phases:#?}");
    let lines: Vec<Vec<i64>> = read_to_string(log).unwrap().lines().map(numbers).collect();
    assert!(lines[..N].iter().all(|line| line[10] == 1), "the counter of the probe: {:?}", lines[0]);
    if watch.gaps > 0 || thread.activations != N as u64 + 1 {
        return inconclusive(&format!("{} gaps, {} of {} activations", watch.gaps, thread.activations, N + 1));
    }
    let by_name = |mark: &str| -> &PhaseRecord { phases.iter().find(|one| one.mark == mark).expect("a phase") };
    let are_by_timer = thread.releases.timer == thread.activations;
    // The end of one is before the return of the next wait.
    let after = |line: &[i64]| if line[1] > 0 { line[1] } else { line[9] };
    let end = |index: usize| (lines[index][9], after(&lines[index + 1]));
    for mark in ["read", "solve", "marks:write"] {
        let lengths: Vec<Bounds> = (0..N).filter_map(|index| length(&lines[index], end(index), mark)).collect();
        lies_within(mark, &by_name(mark).length, &lengths);
        let first = |line: &Vec<i64>| {
            let (_, (low, high)) = passes(line).into_iter().find(|(name, _)| *name == mark)?;
            // A due time that had passed before the wait counts from its call.
            Some((if are_by_timer { low - line[0] } else { 0 }, high - line[0]))
        };
        let since: Vec<Bounds> = lines.iter().filter_map(first).collect();
        lies_within(mark, &by_name(mark).since_release, &since);
    }
    assert_eq!((by_name("read").repeated, by_name("solve").repeated), (N.div_ceil(7) as u64, 0));
    assert_eq!((by_name("never").length.n, by_name("never").length.max_ns), (0, None));
    // Ordered by medians, which a busy machine moves; what is never passed is last.
    assert_eq!(phases.last().map(|one| (one.phase, &*one.mark)), Some((PhaseKind::Mark, "never")));
}

fn numbers(line: &str) -> Vec<i64> {
    line.split(' ').map(|word| word.parse().unwrap()).collect()
}

#[test]
fn root_a_mark_that_is_nowhere_is_refused() {
    skip_unless!(may_watch() && probes().is_some());
    let (_machine, scratch) = machine_and_scratch("watch-no-marks");
    let program = program(&scratch);
    let stripped = scratch.path("stripped");
    std::fs::copy(&program, &stripped).unwrap();
    assert!(Command::new("strip").arg(&stripped).status().is_ok_and(|status| status.success()));
    let script = scratch.file("script #1 of 2", "#!/bin/sh\nsleep 1\n");
    for (file, mark, expected) in [
        (&program, "function:solved", "cannot place mark `function:solved`: not found"),
        (&program, "function:solv", "not found; there are solve"),
        (&program, "usdt:marks:writes", "not found; there are marks:write"),
        (&stripped, "function:solve", "no symbols: stripped"),
        (&script, "function:solve", "not an ELF file of this machine"),
        (&script, "function:/no/such/file:solve", "/no/such/file: "),
        (&PathBuf::from("sleep"), "usdt:sleep:a:b", "no USDT probes"),
    ] {
        let mut command = command("watch --for 1s --no-keep --wait");
        let said = run(command.args(["--mark", mark]).arg("--").arg(file).arg("9"));
        assert_eq!(said.status, 1, "{mark}: {said:?}");
        assert!(said.last_line().contains(expected), "{mark}: {}", said.last_line());
    }
}

#[test]
fn root_the_probes_of_a_killed_watch_are_removed_by_recover() {
    skip_unless!(may_watch() && probes().is_some());
    let (_machine, scratch) = machine_and_scratch("watch-marks-killed");
    let program = program(&scratch).display().to_string();
    let running = Running::start(&[&program, scratch.path("log").to_str().unwrap(), "1000000"]);
    let mut command =
        command(&format!("watch --pid {} --for 10min --no-keep --wait --mark function:solve", running.0.id()));
    let mut child = command.start_silent();
    let is_of_child = |pid: &str| {
        let status = read_to_string(Path::new("/proc").join(pid).join("status")).unwrap_or_default();
        status
            .lines()
            .any(|line| line.strip_prefix("PPid:").is_some_and(|parent| parent.trim() == child.id().to_string()))
    };
    let mut made = Vec::new();
    let is_made = || {
        made = groups(is_of_child);
        !made.is_empty()
    };
    assert!(comes_true(is_made), "a group of probes");
    kill_and_wait(&mut child);
    // The process of the cell ends with its parent; while it is exiting, its probes are its own.
    assert!(comes_true(|| {
        punctual("recover --wait").expect_success();
        !groups(|_| true).contains(&made[0])
    }));
    assert!(Path::new(&format!("/proc/{}", running.0.id())).exists());
}
