//! `punctual watch`: activations of other programs' threads, beside what those programs say themselves.

use crate::program::{
    MARK, PROGRAM, ProgramOutput, Scratch, Start, a_cpu, cell, command, inconclusive, kill_and_wait,
    machine_and_scratch, mark, punctual, read_json, run, skip_unless,
};
use crate::real::explain::{instances, of_child};
use crate::servo::{Program, compiled, did_nothing, explained, may_watch, words};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use punctual_model::{Entry, Record, WatchRecord, WatchedThread};
use punctual_sys::testing::comes_true;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A loop in Python on a grid of 2 ms: its file, which runs until it is ended.
pub(crate) fn a_loop(scratch: &Scratch) -> PathBuf {
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

/// A program that runs until this is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(words: &[&str]) -> Running {
        let mut command = Command::new(words[0]);
        Running(command.args(&words[1..]).env(MARK, mark()).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill_and_wait(&mut self.0);
    }
}

pub(crate) fn has_python() -> bool {
    crate::program::is_installed("python3", "python3")
}

/// The record of the one measurement of a run.
pub(crate) fn watched(dir: &Path) -> (Record, WatchRecord) {
    let entries: Vec<Entry> = crate::program::entries(dir);
    let record = entries.into_iter().next().expect("a record").record;
    let watch = *record.watch.clone().expect("a watch");
    (record, watch)
}

/// Whether `watch` saw nothing at all, which is inconclusive: the machine let the program do nothing meanwhile.
pub(crate) fn saw_nothing(said: &ProgramOutput) -> bool {
    let nothing = did_nothing(said);
    if nothing {
        inconclusive("the program did nothing");
    }
    nothing
}

/// Runs `punctual watch` with these arguments, and the command after `--` as words.
pub(crate) fn watch(arguments: &str, words: &[&str]) -> ProgramOutput {
    let mut program = command(&format!("watch {arguments}"));
    if !words.is_empty() {
        program.arg("--").args(words);
    }
    run(&mut program)
}

/// A measured thread, watched: what it records, and what is seen of it.
pub(crate) fn seen_and_recorded(scratch: &Scratch) -> (WatchRecord, Record) {
    let asked = cell("other", "none", &a_cpu().to_string(), "2s");
    let input = scratch.file("cell.json", serde_json::to_vec(&asked).unwrap());
    let (output, run) = (scratch.path("record.json"), scratch.path("run"));
    let _ = fs::remove_dir_all(&run);
    let shell = format!("'{PROGRAM}' cell < '{}' > '{}'", input.display(), output.display());
    // It ends with the program.
    let arguments = format!("--for 1h --warm-up 0s --thread measured/* --no-explain --out {}", run.display());
    watch(&arguments, &["sh", "-c", &shell]).expect_success();
    (watched(&run).1, read_json(&output))
}

#[test]
fn root_a_measured_thread_has_the_wake_ups_and_latencies_that_it_records() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("watch-agrees");
    let (seen, theirs) = seen_and_recorded(&scratch);
    if seen.gaps > 0 {
        return inconclusive("the kernel overwrote events before they were read");
    }
    let [ours]: [WatchedThread; 1] = seen.threads.try_into().unwrap();
    let [theirs] = &theirs.threads[..] else { panic!("one thread") };
    let punctual_model::Releases { timer, thread, interrupt, immediate } = ours.releases;
    assert_eq!(ours.activations, timer + thread + interrupt + immediate, "{ours:#?}");
    // A wait that is open at the end of the cell, which has no sample, may end before the program does.
    let recorded = theirs.recorded..=theirs.recorded + u64::from(theirs.censored.is_some());
    let ledger = (theirs.cycles_due, theirs.missed, theirs.lost, theirs.passed_over, theirs.early);
    assert!(recorded.contains(&ours.activations), "{recorded:?} of {ledger:?}: {ours:#?}");
    assert_eq!((thread, interrupt), (0, 0), "{ours:#?}");
    assert_eq!(ours.wait, "clock_nanosleep until an instant", "{ledger:?}: {ours:#?}");
    // Where most sleeps begin after their due time, no period is seen.
    assert!(ours.period.is_none_or(|found| found.period.ns() == 1_000_000), "{ours:#?}");
    // The program reads its clock after its return from the kernel, which is what we see: it is later.
    let [least, most] = [theirs.histogram.min_ns, theirs.histogram.max_ns].map(Option::unwrap);
    assert!(ours.latency.min_ns <= Some(least + 1_000), "{ours:#?}");
    assert!(theirs.censored.is_some() || ours.latency.max_ns <= Some(most + 1_000), "{ours:#?}");
}

#[test]
fn root_a_running_process_is_watched_and_left_as_it_was() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-pid");
    let running = Running::start(&["python3", a_loop(&scratch).to_str().unwrap()]);
    let (out, rows) = (scratch.path("run"), scratch.path("rows.parquet"));
    let pid = running.0.id();
    let arguments = format!("--pid {pid} --for 1500ms --record {} --out {}", rows.display(), out.display());
    let output = watch(&arguments, &[]);
    skip_unless!(!saw_nothing(&output));
    assert_eq!(output.status, 0, "{output:?}");
    assert!(output.stdout.contains("python3 waits in clock_nanosleep"), "{}", output.stdout);
    assert!(!crate::program::is_stopped(pid));
    let (record, ours) = watched(&out);
    let [ours]: [WatchedThread; 1] = ours.threads.try_into().unwrap();
    assert_eq!((ours.process, &ours.ended), (Some(pid), &None));
    assert!(ours.activations > 0, "{ours:#?}");
    assert_eq!(ours.response.n, ours.activations);
    assert!(record.threads.iter().all(punctual_model::ThreadRecord::is_consistent), "{:#?}", record.threads);
    let rows = SerializedFileReader::new(fs::File::open(&rows).unwrap()).unwrap();
    let rows = rows.get_row_iter(None).unwrap().map(Result::unwrap).filter(|row| row.get_uint(0).unwrap() == ours.tid);
    assert_eq!(u64::try_from(rows.count()).unwrap(), ours.activations, "{ours:#?}");
    // All views of a run know it.
    for view in ["show", "report", "show --format json"] {
        punctual(&format!("{view} {}", out.display())).expect_success();
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Watched threads"));
    let document = punctual(&format!("show --format json {}", out.display())).json();
    assert_eq!(document["cells"][0]["summary"]["watch"]["threads"][0]["activations"], Value::from(ours.activations));
}

/// Three threads that wake each other: its file.
pub(crate) fn a_chain(scratch: &Scratch) -> PathBuf {
    scratch.file(
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
    )
}

#[test]
fn root_a_chain_of_threads_is_followed_from_the_first_to_the_last() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-chain");
    let script = a_chain(&scratch);
    let out = scratch.path("run");
    let arguments = format!("--for 2s --no-explain --chain sensor,controller,actuator --out {}", out.display());
    let output = watch(&arguments, &["python3", script.to_str().unwrap()]);
    skip_unless!(!saw_nothing(&output));
    assert_eq!(output.status, 0, "{output:?}");
    let (_, ours) = watched(&out);
    let chain = ours.chain.unwrap();
    // The stages of each activation add up to its end-to-end latency, to the nanosecond.
    let stages: i128 = chain.stages.iter().map(|stage| stage.histogram.sum_ns).sum();
    assert_eq!(stages, chain.latency.sum_ns);
    assert!(chain.stages.iter().all(|stage| stage.histogram.n == chain.latency.n), "{chain:#?}");
    let mut names: Vec<&str> = ours.threads.iter().map(|thread| thread.name.as_str()).collect();
    names.sort_unstable();
    assert!(names.iter().all(|name| ["actuator", "controller", "sensor"].contains(name)), "no others: {names:?}");
    if chain.latency.n == 0 || names.len() < 3 {
        return inconclusive(&format!("{} activations of the chain {names:?}", chain.latency.n));
    }
    assert_eq!(names, ["actuator", "controller", "sensor"]);
    assert!(output.stdout.contains("sensor > controller > actuator: "), "{}", output.stdout);
}

#[test]
fn root_a_limit_on_the_response_time_gives_a_verdict() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-limit");
    let script = a_loop(&scratch);
    let words = ["python3", script.to_str().unwrap()];
    let fails = watch("--for 1s --no-keep --no-explain --require response_max=1ns", &words);
    skip_unless!(!saw_nothing(&fails));
    assert_eq!(fails.status, 2, "{fails:?}");
    // Nothing takes an hour; what is not over at the end, or was not read in time, leaves it open.
    let passes = watch("--for 1s --no-keep --no-explain --require response_max=1h", &words);
    skip_unless!(!saw_nothing(&passes));
    assert!([0, 3].contains(&passes.status), "{passes:?}");
    // Two threads: a quantile of both together shows nothing about each.
    let two = format!(
        "import threading; threading.Thread(target=lambda: exec(open('{0}').read()), daemon=True).start(); \
         exec(open('{0}').read())",
        script.display()
    );
    let both = watch("--for 1s --no-keep --no-explain --require response_p99=1h", &["python3", "-c", &two]);
    skip_unless!(!saw_nothing(&both));
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
    let said = punctual(&format!("run {} --wait --out {}", plan.display(), out.display()));
    if said.stderr.contains("nothing to report: ") {
        return inconclusive("the program did nothing in a cell");
    }
    assert_eq!(said.status, 0, "{said:?}");
    let entries: Vec<Entry> = crate::program::entries(&out);
    assert_eq!(entries.len(), 4);
    let watched: Vec<_> = entries.iter().map(|entry| entry.record.watch.as_ref().expect("a watched cell")).collect();
    if watched.iter().any(|watch| watch.threads.is_empty()) {
        return inconclusive("the program did nothing in a cell");
    }
    // Two blocks show no difference.
    let compared = punctual(&format!("compare {0} none/other messaging/other", out.display()));
    assert!([0, 3].contains(&compared.status), "{compared:?}");
    punctual(&format!("report {}", out.display())).expect_success();
}

#[test]
fn root_late_activations_add_up_whatever_made_them_late() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-sums");
    let servo = compiled(&scratch, &[]);
    for faults in ["page_fault+nice_lock+service+malloc+full_pipe+long_run+sleep", "inversion", "equal_priority"] {
        let said = crate::servo::watched(1200, "controller", &[], &words(&servo, faults));
        let Some(explained) = explained(&said) else {
            inconclusive("the program did nothing");
            continue;
        };
        assert!(explained.worst.len() <= 60 && explained.above_at_end >= explained.above, "{explained:#?}");
        let names = explained.worst.iter().filter_map(|one| one.thread.as_ref()).map(|thread| thread.name.as_str());
        assert!(names.eq(std::iter::repeat_n("controller", explained.worst.len())), "{explained:#?}");
        if explained.explained == 0 {
            inconclusive("nothing was late and covered by the trace");
        }
    }
}

#[test]
fn root_late_activations_are_explained_again_to_the_nanosecond() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-again");
    let servo = compiled(&scratch, &[]);
    let out = scratch.path("run");
    let options = format!("watch --for 1200ms --keep 30 --wait --stacks --thread controller --out {}", out.display());
    let said = run(command(&options).arg("--").args(words(&servo, "page_fault+nice_lock+service+full_pipe")));
    if !saw_nothing(&said) {
        assert_eq!(said.status, 0, "{said:?}");
        super::explain::is_explained_again(&out);
    }
}

#[test]
fn root_a_timer_that_is_set_relative_is_a_property_of_its_thread() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-relative");
    let servo = compiled(&scratch, &[]);
    for (fault, is_relative) in [("relative_timer", true), ("sleep", false)] {
        let dir = scratch.path(fault);
        let mut command = command(&format!("watch --for 1500ms --wait --thread sensor --out {} --", dir.display()));
        let said = run(command.args(words(&servo, fault)));
        skip_unless!(!saw_nothing(&said));
        assert_eq!(said.status, 0, "{said:?}");
        let [sensor]: [WatchedThread; 1] = watched(&dir).1.threads.try_into().unwrap();
        match sensor.is_relative {
            Some(said) => assert_eq!(said, is_relative, "{sensor:#?}"),
            None => inconclusive(&format!("{} activations show no grid", sensor.activations)),
        }
    }
}

/// Whether a process sleeps in the program of this name.
fn sleeps_in(pid: u32, name: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(&format!("({name}) S "))
}

#[test]
fn root_nothing_to_watch_is_one_line() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("watch-nothing");
    let ends = scratch.executable("ends", "#!/bin/sh\necho broken configuration >&2\nexit 3\n");
    let sleeping = Running::start(&["sleep", "infinity"]);
    assert!(comes_true(|| sleeps_in(sleeping.0.id(), "sleep")), "sleep(1) sleeps");
    let silent = format!("--pid {} --for 300ms --warm-up 0s --no-keep", sleeping.0.id());
    for (arguments, words, line) in [
        ("--pid 999999 --no-keep", &[][..], "cannot watch: process 999999 has no running thread; see"),
        ("--thread no-such-name --no-keep", &[], "cannot watch: this machine has no thread named `no-such-name`; see"),
        ("--unit no-such.service --no-keep", &[], "cannot watch: unit no-such.service has no running thread; see"),
        ("--cgroup /no/such --no-keep", &[], "cannot watch: control group /no/such has no running thread; see"),
        ("--no-keep", &[], "invalid method `watch`: expected watch:COMMAND"),
        ("--no-keep", &["/no/such/program"], "/no/such/program is not installed"),
        ("--for 1h --no-keep", &[ends.to_str().unwrap()], "(exit status: 3): broken configuration"),
        (&silent, &[], "nothing to report: "),
        ("--thread nosuch --for 300ms --no-keep", &["/bin/sleep", "9"], "no thread named `nosuch` ran in 300ms; see"),
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
    let running = Running::start(&["python3", a_loop(&scratch).to_str().unwrap()]);
    let pid = running.0.id();
    let mut program = command(&format!("watch --pid {pid} --for 10min --no-keep"));
    let mut child = program.start_silent();
    let dir = instances().unwrap();
    let is_on =
        |name: &String| fs::read_to_string(dir.join(name).join("tracing_on")).is_ok_and(|text| text.trim() == "1");
    // Others of this machine may watch meanwhile.
    let mut made = Vec::new();
    assert!(
        comes_true(|| {
            made = of_child(&dir, child.id());
            made.iter().filter(|name| is_on(name)).count() >= 2
        }),
        "two traces: {made:?}"
    );
    kill_and_wait(&mut child);
    let traces = || made.iter().filter(|name| dir.join(name).exists()).cloned().collect::<Vec<String>>();
    // The cell's process ends with its parent, and the kernel frees what it traced.
    assert!(comes_true(|| !traces().iter().any(is_on)), "{:?}", traces());
    assert!(!crate::program::is_stopped(pid) && Path::new(&format!("/proc/{pid}")).exists());
    // While the cell's process is exiting, its traces are its own.
    assert!(comes_true(|| {
        punctual("recover --wait").expect_success();
        traces().is_empty()
    }));
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
         short = threading.Thread(target=cycle, args=('short', 100))\n\
         short.start()\n\
         forked = os.fork()\n\
         if forked == 0:\n\
         \x20   cycle('forked', 100)\n\
         \x20   os._exit(0)\n\
         cycle('main', 150)\n\
         short.join()\n\
         os.waitpid(forked, 0)\n",
    );
    let out = scratch.path("run");
    // It ends with the program.
    let arguments = format!("--for 1h --warm-up 0s --no-explain --out {}", out.display());
    watch(&arguments, &["python3", script.to_str().unwrap()]).expect_success();
    let (_, ours) = watched(&out);
    if ours.gaps > 0 {
        return inconclusive("the kernel overwrote events before they were read");
    }
    let thread = |name: &str| {
        let found = ours.threads.iter().find(|thread| thread.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {:#?}", ours.threads)).clone()
    };
    assert!(thread("main").activations >= 100, "{:#?}", thread("main"));
    for ended in ["short", "forked"] {
        assert!(thread(ended).ended.is_some_and(|ended| ended.starts_with("ended after ")), "{:#?}", thread(ended));
    }
    // Unknown of a thread that ended before the kernel was asked.
    let [main, short, forked] = ["main", "short", "forked"].map(|name| thread(name).process);
    assert!(main.is_none() || short.is_none_or(|short| main == Some(short)), "{main:?} {short:?}");
    assert!(main.is_none() || main != forked, "{main:?} {forked:?}");
}

#[test]
fn root_calls_that_the_kernel_refused_to_a_program_are_findings_with_their_limit() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-refused");
    let program = Program::Blamed.compiled(&scratch, &[]);
    let options = "watch --for 500ms --no-explain --no-keep --wait --format json --thread loop";
    for (kind, expected) in [
        (
            "refused",
            &[
                "sched_setscheduler fifo EPERM RLIMIT_RTPRIO 0 policy other",
                "mlockall locked memory EPERM RLIMIT_MEMLOCK 0 0 bytes locked",
                "setpriority nice -5 EACCES RLIMIT_NICE 0 policy other",
                "sched_setaffinity EINVAL cpuset",
            ][..],
        ),
        ("retried", &["sched_setscheduler fifo EPERM RLIMIT_RTPRIO 0 later policy batch"]),
        ("filtered", &["sched_setscheduler EPERM seccomp"]),
    ] {
        let said = run(command(options).arg("--").args(Program::Blamed.words(&program, kind)));
        if saw_nothing(&said) {
            continue;
        }
        let json = said.json();
        let gaps = &json["cells"][0]["summary"]["watch"]["gaps"];
        if gaps.as_u64().expect("a count") > 0 {
            inconclusive("the kernel overwrote events before they were read");
            continue;
        }
        let found: Vec<String> = json["cells"][0]["findings"].as_array().unwrap().iter().filter_map(told).collect();
        assert!(found.len() == expected.len(), "{kind}: {found:#?}");
        for one in expected {
            assert!(found.iter().any(|found| found.starts_with(one)), "{kind}: {one} in {found:#?}");
        }
    }
}

/// A finding about a refused call as words; `None` for another.
fn told(finding: &Value) -> Option<String> {
    let call = finding["refused"].as_object()?;
    let limit = &call["limit"];
    let name = limit["name"].as_str().or_else(|| limit["kind"].as_str());
    let words = [
        call["call"].as_str().map(str::to_owned),
        call["asked"].as_str().map(str::to_owned),
        call["error"].as_str().map(str::to_owned),
        name.map(str::to_owned),
        limit["value"].as_u64().map(|value| value.to_string()),
        (call["granted_later"] == true).then(|| "later".to_owned()),
        call["at_end"].as_str().map(str::to_owned),
    ];
    Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "))
}
