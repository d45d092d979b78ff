//! Outside programs as instruments of cells: real tools, and what they can do wrong.

use crate::program::{
    Scratch, a_cpu, entries, inconclusive, is_installed, machine_and_scratch, punctual, run_seeded, running,
    skip_unless,
};
use punctual_model::Record;
use punctual_sys::testing::comes_true;
use std::path::Path;
use std::process::Command;

/// A plan of cells on one CPU, measured by these programs: `program = "...", read = "..."`, besides `first` methods.
pub(crate) fn plan(duration: &str, first: &str, programs: &[&str]) -> String {
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
pub(crate) fn shown(out: &Path) -> serde_json::Value {
    let said = punctual(&format!("show {} --format json", out.display())).expect_success();
    serde_json::from_str(&said.stdout).unwrap()
}

const CYCLICTEST: &str = "cyclictest -q -m -t1 -a{cpu} -i{period_us} -D{duration_s} -h 400";

#[test]
fn cyclictest_measures_a_cell_and_what_it_does_not_say_stays_unknown() {
    skip_unless!(is_installed("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("instrument");
    let record = record(&scratch, plan("1s", "", &[&format!("program = \"{CYCLICTEST}\", read = \"cyclictest\"")]));
    let instrument = record.instrument.unwrap();
    assert_eq!(instrument.status, "exit status: 0");
    assert_eq!(instrument.command_line[1..6], ["-q", "-m", "-t1", &format!("-a{}", a_cpu()), "-i1000"]);
    let [thread] = &record.threads[..] else { panic!("one thread") };
    assert!(thread.is_consistent(), "{thread:?}");
    assert_eq!(Some(thread.recorded), instrument.result.threads[0].samples);
    let shown = shown(&scratch.path("run"));
    let cell = &shown["cells"][0];
    assert!(cell["summary"]["missed"].is_null(), "{cell}");
    assert_eq!(cell["summary"]["instrument"]["program"], "cyclictest");
    let findings = cell["findings"].to_string();
    assert!(findings.contains("it does not report missed due times, its course of time"), "{findings}");
    if thread.recorded == 0 {
        return inconclusive("cyclictest measured nothing");
    }
    // The same evidence is enough for a maximum, and not for a quantile that counts due times.
    let run = scratch.path("run");
    for (require, status) in [("max=1h", 0), ("p99=1h", 3)] {
        let said = punctual(&format!("check {} --require {require}", run.display()));
        assert_eq!(said.status, status, "{require}: {}", said.stdout);
    }
}

#[test]
fn results_in_files_and_of_programs_that_end_by_ctrl_c_are_read() {
    skip_unless!(is_installed("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("instrument-ends");
    let programs = [
        "program = \"cyclictest -q -t1 -a{cpu} -i500 -h400\", read = \"cyclictest\", stop = \"SIGINT\"",
        "program = \"cyclictest -q -t1 -a{cpu} -i500 -D1 -h400 --json=r.json\", read = \"cyclictest\", output = \"r.json\"",
        "program = \"oslat -c {cpu} -D {duration_s} -q\", read = \"oslat\"",
    ];
    let plan = scratch.file("plan.toml", plan("1s", "", &programs));
    let out = scratch.path("run");
    let said = punctual(&format!("run {} --seed 1 --wait --out {}", plan.display(), out.display()));
    if said.stderr.contains(" has not ended after ") {
        return inconclusive("a program had no CPU time to write its result in time");
    }
    assert_eq!(said.status, 0, "{said:?}");
    let entries = entries(&out);
    assert_eq!(entries.len(), programs.len());
    for entry in &entries {
        let instrument = entry.record.instrument.as_ref().unwrap();
        let thread = &entry.record.threads[0];
        assert!(thread.is_consistent(), "{:?}: {thread:?}", instrument.command_line);
        assert_eq!(instrument.status, "exit status: 0", "{:?}", instrument.command_line);
        if thread.recorded == 0 {
            inconclusive(&format!("nothing was measured by {:?}", instrument.command_line));
        }
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
    // Without a time of its own a program ends by itself, however long the machine takes for that.
    let timeout = |more: &str| if more.contains("timeout") { "" } else { ", timeout = \"1h\"" };
    let programs: Vec<String> = (cases.iter())
        .map(|(program, more, _)| format!("program = \"{program}\", read = \"cyclictest\"{more}{}", timeout(more)))
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
