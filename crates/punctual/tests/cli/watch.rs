//! `punctual watch`: activations of other programs' threads, beside what those programs say themselves.

use crate::explain::{instances, ours};
use crate::program::{
    MARK, PROGRAM, ProgramOutput, Scratch, Start, a_cpu, cell, comes_true, command, kill_and_wait, machine_and_scratch,
    mark, punctual, read_json, run, skip_unless,
};
use crate::watch_faults::{compiled, may_watch};
use model::{Cell, Entry, Record, WatchRecord, WatchedThread};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A loop in Python on a grid of 2 ms: its file, which runs until it is ended.
fn a_loop(scratch: &Scratch) -> PathBuf {
    scratch.file(
        "loop.py",
        "import time\n\
         due = time.monotonic()\n\
         while True:\n\
         \x20   due += 0.002\n\
         \x20   time.sleep(max(0.0, due - time.monotonic()))\n\
         \x20   sum(range(500))\n",
    )
}

/// The loop, running, under a name of its own.
struct Running(Child);

impl Running {
    fn start(script: &Path) -> Running {
        let mut python = Command::new("python3");
        Running(python.arg(script).env(MARK, mark()).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill_and_wait(&mut self.0);
    }
}

fn has_python() -> bool {
    crate::program::is_installed("python3", "python3")
}

/// The record of the one measurement of a run.
fn watched(dir: &Path) -> (Record, WatchRecord) {
    let entries: Vec<Entry> = crate::program::entries(dir);
    let record = entries.into_iter().next().expect("a record").record;
    let watch = *record.watch.clone().expect("a watch");
    (record, watch)
}

/// Runs `punctual watch` with these arguments, and the command after `--` as words.
fn watch(arguments: &str, words: &[&str]) -> ProgramOutput {
    let mut program = command(&format!("watch {arguments}"));
    if !words.is_empty() {
        program.arg("--").args(words);
    }
    run(&mut program)
}

#[test]
fn root_a_measured_thread_has_the_wake_ups_and_latencies_that_it_records() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("watch-agrees");
    let asked = Cell { ..cell("other", "none", &a_cpu().to_string(), "2s") };
    let input = scratch.file("cell.json", serde_json::to_vec(&asked).unwrap());
    let (output, run) = (scratch.path("record.json"), scratch.path("run"));
    let shell = format!("'{PROGRAM}' cell < '{}' > '{}'", input.display(), output.display());
    let arguments = format!("--for 20s --warm-up 0s --thread measured/* --no-explain --out {}", run.display());
    watch(&arguments, &["sh", "-c", &shell]).expect_success();
    let theirs: Record = read_json(&output);
    let (_, ours) = watched(&run);
    let [ours]: [WatchedThread; 1] = ours.threads.try_into().unwrap();
    let [theirs] = &theirs.threads[..] else { panic!("one thread") };
    assert_eq!((ours.activations, ours.releases.timer), (theirs.recorded, theirs.recorded), "{ours:#?}");
    assert_eq!(ours.wait, "clock_nanosleep until an instant");
    assert_eq!(ours.period.map(|found| found.period.ns()), Some(1_000_000));
    // The program reads its clock after its return from the kernel, which is what we see: it is later, by the way back
    // and the reading. On the median that is less than a few microseconds on any machine.
    let p50 = |histogram| analysis::quantile(histogram, 0.5).unwrap();
    let later_ns = p50(&theirs.histogram) - p50(&ours.latency);
    assert!((-1_000..20_000).contains(&later_ns), "{later_ns} ns");
    let [least, most] = [theirs.histogram.min_ns, theirs.histogram.max_ns].map(Option::unwrap);
    assert!(ours.latency.min_ns <= Some(least) && ours.latency.max_ns <= Some(most + 1_000), "{ours:#?}");
}

#[test]
fn root_a_running_process_is_watched_and_left_as_it_was() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-pid");
    let running = Running::start(&a_loop(&scratch));
    let (out, rows) = (scratch.path("run"), scratch.path("rows.parquet"));
    let pid = running.0.id();
    let arguments = format!("--pid {pid} --for 1500ms --record {} --out {}", rows.display(), out.display());
    let output = watch(&arguments, &[]).expect_success();
    assert!(output.stdout.contains("python3 waits in clock_nanosleep"), "{}", output.stdout);
    assert!(!crate::program::is_stopped(pid));
    let (record, ours) = watched(&out);
    let [ours]: [WatchedThread; 1] = ours.threads.try_into().unwrap();
    assert_eq!(ours.process, Some(pid));
    assert!(ours.activations > 300, "{ours:#?}");
    assert_eq!(ours.response.n, ours.activations);
    assert!(record.threads.iter().all(model::ThreadRecord::is_consistent), "{:#?}", record.threads);
    let tail = fs::read(&rows).unwrap();
    assert!(tail.starts_with(b"PAR1") && tail.ends_with(b"PAR1"), "a complete Parquet file");
    // All views of a run know it.
    for view in ["show", "report", "show --format json"] {
        punctual(&format!("{view} {}", out.display())).expect_success();
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Watched threads"));
    let document = punctual(&format!("show --format json {}", out.display())).json();
    assert_eq!(document["cells"][0]["summary"]["watch"]["threads"][0]["activations"], Value::from(ours.activations));
}

#[test]
fn root_a_chain_of_threads_is_followed_from_the_first_to_the_last() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-chain");
    let script = scratch.file(
        "chain.py",
        "import ctypes, os, threading, time\n\
         def named(name): ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)\n\
         pipes = [os.pipe() for _ in range(2)]\n\
         def sensor():\n\
         \x20   named('sensor')\n\
         \x20   while True:\n\
         \x20       time.sleep(0.004)\n\
         \x20       os.write(pipes[0][1], b'x')\n\
         def controller():\n\
         \x20   named('controller')\n\
         \x20   while True:\n\
         \x20       os.read(pipes[0][0], 1)\n\
         \x20       os.write(pipes[1][1], b'x')\n\
         threading.Thread(target=sensor, daemon=True).start()\n\
         threading.Thread(target=controller, daemon=True).start()\n\
         named('actuator')\n\
         while True:\n\
         \x20   os.read(pipes[1][0], 1)\n",
    );
    let out = scratch.path("run");
    let arguments = format!("--for 2s --no-explain --chain sensor,controller,actuator --out {}", out.display());
    let output = watch(&arguments, &["python3", script.to_str().unwrap()]).expect_success();
    assert!(output.stdout.contains("sensor > controller > actuator: "), "{}", output.stdout);
    let (_, ours) = watched(&out);
    let chain = ours.chain.unwrap();
    // The interpreter's own lock wakes threads, too.
    assert!(chain.latency.n > 50 && chain.latency.n > chain.other, "{chain:#?}");
    // The stages of each activation add up to its end-to-end latency, to the nanosecond.
    let stages: i128 = chain.stages.iter().map(|stage| stage.histogram.sum_ns).sum();
    assert_eq!(stages, chain.latency.sum_ns);
    let mut names: Vec<&str> = ours.threads.iter().map(|thread| thread.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["actuator", "controller", "sensor"], "no others are reported");
}

#[test]
fn root_a_limit_on_the_response_time_gives_a_verdict() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-limit");
    let script = a_loop(&scratch);
    let words = ["python3", script.to_str().unwrap()];
    let fails = watch("--for 1s --no-keep --no-explain --require response_max=1ns", &words);
    assert_eq!(fails.status, 2, "{fails:?}");
    let passes = watch("--for 1s --no-keep --no-explain --require response_max=1h", &words);
    assert_eq!(passes.status, 0, "{passes:?}");
    // Two threads: a quantile of both together shows nothing about each.
    let two = format!(
        "import threading; threading.Thread(target=lambda: exec(open('{0}').read()), daemon=True).start(); \
         exec(open('{0}').read())",
        script.display()
    );
    let both = watch("--for 1s --no-keep --no-explain --require response_p99=1h", &["python3", "-c", &two]);
    assert!([0, 3].contains(&both.status), "{both:?}");
}

#[test]
fn root_a_cell_of_a_plan_can_watch_a_program_beside_loads() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-plan");
    // Not a Python script: under a load the interpreter may start too late for any activation after the warm-up time.
    let servo = compiled(&scratch, &[]);
    let plan = scratch.file(
        "plan.toml",
        format!(
            "duration = \"2s\"\nrepetitions = 2\n[axes]\nmethod = [\"watch,period=2ms:{}\"]\n\
             load = [\"none\", \"messaging\"]\npolicy = [\"other\"]\n",
            servo.display()
        ),
    );
    let out = scratch.path("run");
    punctual(&format!("run {} --out {}", plan.display(), out.display())).expect_success();
    let entries: Vec<Entry> = crate::program::entries(&out);
    assert_eq!(entries.len(), 4);
    assert!(entries.iter().all(|entry| entry.record.watch.as_ref().is_some_and(|watch| !watch.threads.is_empty())));
    let compared = punctual(&format!("compare {0} none/other messaging/other", out.display()));
    assert!([0, 3].contains(&compared.status), "{compared:?}");
    punctual(&format!("report {}", out.display())).expect_success();
}

#[test]
fn root_nothing_to_watch_is_one_line() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("watch-nothing");
    let ends = scratch.executable("ends", "#!/bin/sh\necho broken configuration >&2\nexit 3\n");
    for (arguments, words, line) in [
        ("--pid 999999 --no-keep", &[][..], "cannot watch: process 999999 has no running thread; see"),
        ("--thread no-such-name --no-keep", &[], "cannot watch: this machine has no thread named `no-such-name`; see"),
        ("--unit no-such.service --no-keep", &[], "cannot watch: unit no-such.service has no running thread; see"),
        ("--cgroup /no/such --no-keep", &[], "cannot watch: control group /no/such has no running thread; see"),
        ("--no-keep", &[], "invalid method `watch`: expected watch:COMMAND"),
        ("--no-keep", &["/no/such/program"], "/no/such/program is not installed"),
        ("--for 5s --no-keep", &[ends.to_str().unwrap()], "(exit status: 3): broken configuration"),
        ("--for 300ms --warm-up 0s --no-keep", &["sleep", "60"], "nothing to report: "),
    ] {
        let output = watch(arguments, words);
        assert_eq!(output.status, 1, "{arguments} {words:?}: {output:?}");
        let said = output.last_line();
        assert!(said.contains(line), "{arguments} {words:?}: {said}");
    }
}

#[test]
fn root_a_killed_watch_leaves_the_program_running_and_nothing_traced() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-killed");
    let running = Running::start(&a_loop(&scratch));
    let pid = running.0.id();
    let mut program = command(&format!("watch --pid {pid} --for 60s --no-keep"));
    let mut child = program.start_piped();
    let dir = instances().unwrap();
    let traces = || ours(&dir);
    assert!(comes_true(|| traces().len() >= 2), "two traces");
    std::thread::sleep(Duration::from_millis(300));
    kill_and_wait(&mut child);
    // The cell's process ends with its parent, and the kernel frees what it traced.
    let is_off =
        |name: &String| fs::read_to_string(dir.join(name).join("tracing_on")).map_or(true, |text| text.trim() == "0");
    assert!(comes_true(|| traces().iter().all(is_off)), "{:?}", traces());
    assert!(!crate::program::is_stopped(pid) && Path::new(&format!("/proc/{pid}")).exists());
    punctual("recover").expect_success();
    assert_eq!(traces(), Vec::<String>::new());
}

#[test]
fn root_threads_that_end_rename_and_fork_are_followed() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-changes");
    let script = scratch.file(
        "changes.py",
        "import ctypes, os, threading, time\n\
         def named(name): ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)\n\
         def cycle(name, n):\n\
         \x20   named('before')\n\
         \x20   for i in range(n):\n\
         \x20       if i == 20: named(name)\n\
         \x20       time.sleep(0.003)\n\
         threading.Thread(target=cycle, args=('short', 100)).start()\n\
         if os.fork() == 0:\n\
         \x20   cycle('forked', 100000)\n\
         cycle('main', 100000)\n",
    );
    let out = scratch.path("run");
    watch(&format!("--for 2s --no-explain --out {}", out.display()), &["python3", script.to_str().unwrap()])
        .expect_success();
    let (_, ours) = watched(&out);
    let thread = |name: &str| {
        let found = ours.threads.iter().find(|thread| thread.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {:#?}", ours.threads)).clone()
    };
    assert!(thread("main").ended.is_none() && thread("main").activations > 100);
    assert!(thread("short").ended.is_some_and(|ended| ended.starts_with("ended after ")));
    assert_ne!(thread("forked").process, thread("main").process);
}
