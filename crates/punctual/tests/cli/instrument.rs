//! Outside programs as instruments of cells: real tools here and in a guest, and what they can do wrong.

use crate::program::{
    Scratch, a_cpu, comes_true, entries, is_installed, machine_and_scratch, punctual, run_seeded, running,
};
use crate::vm::kernel;
use model::Record;
use std::path::Path;
use std::process::Command;

/// A plan of cells on one CPU, measured by these programs: `program = "...", read = "..."`, besides `first` methods.
fn plan(duration: &str, first: &str, programs: &[&str]) -> String {
    let tables: String = programs.iter().map(|program| format!("{{ {program} }}, ")).collect();
    format!(
        "repetitions = 1\nduration = \"{duration}\"\ncpus = \"{}\"\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n\
         period = [\"1ms\"]\nmethod = [{first}{tables}]\n",
        a_cpu()
    )
}

/// The only record of a run of this plan.
fn record(scratch: &Scratch, text: String) -> Record {
    let plan = scratch.file("plan.toml", text);
    let out = scratch.path("run");
    run_seeded(&plan.display().to_string(), &out);
    let [entry] = <[_; 1]>::try_from(entries(&out)).expect("one cell");
    entry.record
}

/// The JSON of `punctual show`.
fn shown(out: &Path) -> serde_json::Value {
    let said = punctual(&format!("show {} --format json", out.display())).expect_success();
    serde_json::from_str(&said.stdout).unwrap()
}

const CYCLICTEST: &str = "cyclictest -q -m -t1 -a{cpu} -i{period_us} -D{duration_s} -h 400";

#[test]
fn cyclictest_measures_a_cell_and_what_it_does_not_say_stays_unknown() {
    if !is_installed("cyclictest", "rt-tests") {
        return;
    }
    let (_machine, scratch) = machine_and_scratch("instrument");
    let record = record(&scratch, plan("1s", "", &[&format!("program = \"{CYCLICTEST}\", read = \"cyclictest\"")]));
    let instrument = record.instrument.unwrap();
    assert_eq!(instrument.status, "exit status: 0");
    assert_eq!(instrument.command_line[1..6], ["-q", "-m", "-t1", &format!("-a{}", a_cpu()), "-i1000"]);
    let [thread] = &record.threads[..] else { panic!("one thread") };
    assert!(thread.is_consistent() && thread.recorded > 100, "{thread:?}");
    assert_eq!(Some(thread.recorded), instrument.result.threads[0].samples);
    let shown = shown(&scratch.path("run"));
    let cell = &shown["cells"][0];
    assert!(cell["summary"]["missed"].is_null(), "{cell}");
    assert_eq!(cell["summary"]["instrument"]["program"], "cyclictest");
    let findings = cell["findings"].to_string();
    assert!(findings.contains("it does not report missed due times, its course of time"), "{findings}");
    // The same evidence is enough for a maximum, and not for a quantile that counts due times.
    let run = scratch.path("run");
    for (require, status) in [("max=1h", 0), ("p99=1h", 3)] {
        let said = punctual(&format!("check {} --require {require}", run.display()));
        assert_eq!(said.status, status, "{require}: {}", said.stdout);
    }
}

#[test]
fn results_in_files_and_of_programs_that_end_by_ctrl_c_are_read() {
    if !is_installed("cyclictest", "rt-tests") {
        return;
    }
    let (_machine, scratch) = machine_and_scratch("instrument-ends");
    let programs = [
        "program = \"cyclictest -q -t1 -a{cpu} -i500 -h400\", read = \"cyclictest\", stop = \"SIGINT\"",
        "program = \"cyclictest -q -t1 -a{cpu} -i500 -D1 -h400 --json=r.json\", read = \"cyclictest\", output = \"r.json\"",
        "program = \"oslat -c {cpu} -D {duration_s} -q\", read = \"oslat\"",
    ];
    let plan = scratch.file("plan.toml", plan("1s", "", &programs));
    let out = scratch.path("run");
    run_seeded(&plan.display().to_string(), &out);
    let entries = entries(&out);
    assert_eq!(entries.len(), programs.len());
    for entry in &entries {
        let instrument = entry.record.instrument.as_ref().unwrap();
        assert!(entry.record.threads[0].recorded > 100, "{:?}", instrument.command_line);
        assert!(instrument.wall.as_secs_f64() < 20.0, "{:?}", instrument.wall);
    }
    let differs = shown(&out)["cells"].to_string();
    assert!(differs.contains("cyclictest measured with a period of"), "-i500: {differs}");
    let left = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().contains("punctual-program-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_a_program_does_wrong_is_one_line_and_nothing_of_it_is_left() {
    let (_machine, scratch) = machine_and_scratch("instrument-wrong");
    let nothing = "no result of cyclictest: ";
    let cases = [
        ("nosuchtool -x", "", "nosuchtool is not installed (searched in PATH); install it, or name its path"),
        ("sh -c 'echo wrong option >&2; exit 2'", "", "sh exited (exit status: 2): wrong option"),
        ("sh -c 'kill -SEGV $$'", "", "sh exited (signal: 11 (SIGSEGV)"),
        ("echo hello", "", "no result of cyclictest: the output is in another format"),
        ("true", "", "true: no result of cyclictest: nothing was written"),
        ("echo '# Histogram'", "", nothing),
        ("test -t 0", "", "test exited (exit status: 1)"),
        ("sleep 1000", ", timeout = \"300ms\"", "sleep has not ended after 300ms; give it a duration"),
        (
            "sh -c 'trap \\\"\\\" TERM INT; sleep 1001; sleep 1002'",
            ", timeout = \"300ms\"",
            "sh has not ended after 300ms",
        ),
        ("yes", "", "yes wrote more than 64 MiB; choose options with less output"),
        ("true", ", output = \"r.json\"", "cannot read r.json of true: No such file"),
        (
            "ln -s /etc/passwd r.json",
            ", output = \"r.json\"",
            "cannot read r.json of ln: expected a regular file, found a link",
        ),
        ("mkfifo r.json", ", output = \"r.json\"", "cannot read r.json of mkfifo"),
        ("sh -c 'setsid sleep 1003 & setsid sleep 1004 & echo'", "", nothing),
    ];
    let programs: Vec<String> = (cases.iter())
        .map(|(program, more, _)| format!("program = \"{program}\", read = \"cyclictest\"{more}"))
        .collect();
    let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
    let plan = scratch.file("plan.toml", plan("100ms", "", &programs));
    let out = scratch.path("run");
    let said = punctual(&format!("run {} --seed 1 --wait --out {}", plan.display(), out.display()));
    assert_eq!(said.status, 1, "nothing was measured: {}", said.stderr);
    for (program, _, expected) in cases {
        let line = said.stderr.lines().find(|line| line.contains(expected));
        assert!(line.is_some(), "{program}: {expected}\n{}", said.stderr);
    }
    let is_over = || {
        let processes = Command::new("ps").args(["-eo", "args"]).output().unwrap();
        let processes = String::from_utf8_lossy(&processes.stdout).into_owned();
        (1000..=1004).all(|seconds| !processes.lines().any(|line| line == format!("sleep {seconds}")))
    };
    assert!(comes_true(is_over), "every process has ended");
    assert!(comes_true(|| running().is_empty()), "{:?}", running());
}

#[test]
fn a_wrong_program_in_a_plan_stops_before_anything_runs() {
    let scratch = Scratch::new("instrument-plan");
    for (table, expected) in [
        ("program = \"x\"", "missing key `program` or `read`"),
        ("program = \"x\", read = \"cyclic\"", "unknown format of a result `cyclic` (did you mean `cyclictest`?"),
        ("program = \"'x\", read = \"oslat\"", "invalid command `'x`"),
        ("program = \"x {cpuz}\", read = \"oslat\"", "unknown name `cpuz` (did you mean `cpu`?"),
        ("program = \"x\", read = \"oslat\", output = \"../x\"", "invalid output `../x`: expected the name of a file"),
        ("program = \"x\", read = \"oslat\", files = [\"x\"]", "invalid file `x`: expected an absolute path"),
        ("program = \"x\", read = \"oslat\", tiemout = \"1s\"", "unknown key `tiemout` (did you mean `timeout`?"),
    ] {
        let plan = scratch.file("plan.toml", plan("1s", "", &[table]));
        let said = punctual(&format!("run {} --dry-run", plan.display()));
        assert!(said.status == 1 && said.stderr.contains(expected), "{table}: {}", said.stderr);
        assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
    }
}

#[test]
#[ignore = "long: many blocks are measured"]
fn root_cyclictest_has_the_median_of_a_cell_of_ours() {
    if !is_installed("cyclictest", "rt-tests") {
        return;
    }
    let (_machine, scratch) = machine_and_scratch("instrument-agrees");
    let command = "cyclictest -q -m -t1 -a{cpu} -p{priority} -i{period_us} -D{duration_s} -h 2000";
    let text = format!(
        "repetitions = 10\nduration = \"1s\"\ncpus = \"{}\"\n[axes]\nload = [\"none\"]\npolicy = [\"fifo:80\"]\n\
         period = [\"1ms\"]\nmethod = [\"clock_nanosleep\", {{ program = \"{command}\", read = \"cyclictest\" }}]\n",
        a_cpu()
    );
    let plan = scratch.file("plan.toml", text).display().to_string();
    // A machine that changes while it is measured has other medians a second later.
    let agrees = |attempt: u32| {
        let out = scratch.path(&format!("run-{attempt}"));
        run_seeded(&plan, &out);
        let shown = shown(&out);
        let [ours, theirs] = [0, 1].map(|index| &shown["cells"][index]["summary"]);
        assert!(ours["instrument"].is_null() && theirs["instrument"]["program"] == "cyclictest");
        let bounds = [0, 1].map(|end| ours["p50_interval_ns"][end].as_i64().unwrap());
        let median = theirs["p50_ns"].as_i64().or_else(|| theirs["p50_refused"]["estimate_ns"].as_i64()).unwrap();
        eprintln!("median of cyclictest {median} ns, interval of ours {bounds:?} ns");
        // It truncates to microseconds.
        (bounds[0] - 1_000..=bounds[1]).contains(&median)
    };
    assert!((1..=3).any(agrees));
}

#[test]
#[ignore = "long: boots guests"]
fn vm_cyclictest_in_virtual_time_is_the_same_to_the_bit_and_agrees_with_a_cell_of_ours() {
    let Some(kernel) = kernel() else { return };
    if !is_installed("cyclictest", "rt-tests") {
        return;
    }
    let (_machine, scratch) = machine_and_scratch("instrument-guest");
    let command = "cyclictest -q -m -t1 -a{cpus} -p{priority} -i{period_us} -l{cycles} -h 2000";
    let text = format!(
        "repetitions = 2\nduration = \"500ms\"\n[axes]\nkernel = [\"{} preempt=full\"]\nload = [\"none\", \"mmap\"]\n\
         policy = [\"fifo:80\"]\nperiod = [\"1ms\"]\n\
         method = [\"clock_nanosleep\", {{ program = \"{command}\", read = \"cyclictest\" }}]\n",
        kernel.display()
    );
    let plan = scratch.file("plan.toml", text).display().to_string();
    let [first, second] = ["first", "second"].map(|name| {
        let out = scratch.path(name);
        run_seeded(&plan, &out);
        entries(&out)
    });
    let results = |run: &[model::Entry]| {
        let of_program =
            |entry: &model::Entry| Some((entry.planned, entry.record.instrument.as_ref()?.result_sha256.clone()));
        let mut all: Vec<_> = run.iter().filter_map(of_program).collect();
        all.sort();
        all
    };
    assert_eq!(results(&first).len(), 4);
    assert_eq!(results(&first), results(&second));
    // cyclictest truncates to microseconds and reads the clock later by some instructions.
    let median = |entry: &&model::Entry| analysis::quantile(&entry.record.threads[0].histogram, 0.5).unwrap();
    for load in ["none", "mmap"] {
        let of_load = || first.iter().filter(|entry| entry.record.cell.load.to_string() == load);
        let (ours, theirs): (Vec<_>, Vec<_>) = of_load().partition(|entry| entry.record.instrument.is_none());
        let [ours, theirs] = [ours, theirs].map(|entries| entries.iter().map(median).max().unwrap());
        assert!((theirs - ours).abs() <= 1_100, "{load}: {theirs} ns beside {ours} ns");
    }
}
