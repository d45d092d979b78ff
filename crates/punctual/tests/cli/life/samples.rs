//! Raw samples: file content, refusals, and readers.

use crate::program::{
    Start, cell, command, entries, finish, inconclusive, is_stopped, kill_and_wait, machine, machine_and_scratch,
    record, run, running, start_cell, wait_for_line,
};
use crate::session::play;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use punctual_model::{Cell, Conditions, Record, ThreadRecord};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// Samples of one CPU in a file.
#[derive(Debug, Default, PartialEq)]
struct OfCpu {
    rows: u64,
    sum_ns: i128,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    last_cycle: Option<i64>,
}

fn samples(path: &Path) -> BTreeMap<u32, OfCpu> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let mut cpus: BTreeMap<u32, OfCpu> = BTreeMap::new();
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let (cpu, cycle, ns) = (row.get_uint(0).unwrap(), row.get_long(1).unwrap(), row.get_long(2).unwrap());
        let of_cpu = cpus.entry(cpu).or_default();
        assert!(Some(cycle) > of_cpu.last_cycle, "cycles of a CPU only grow");
        of_cpu.rows += 1;
        of_cpu.sum_ns += i128::from(ns);
        of_cpu.min_ns = Some(of_cpu.min_ns.map_or(ns, |min| min.min(ns)));
        of_cpu.max_ns = Some(of_cpu.max_ns.map_or(ns, |max| max.max(ns)));
        of_cpu.last_cycle = Some(cycle);
    }
    cpus
}

/// Asserts that a file agrees with its record.
#[track_caller]
pub(crate) fn assert_agree(path: &Path, record: &Record) {
    let mut found = samples(path);
    for thread in &record.threads {
        // A CPU without a wake-up has no rows.
        let of_cpu = found.remove(&thread.cpu).unwrap_or_default();
        let histogram = &thread.histogram;
        assert_eq!((of_cpu.rows, of_cpu.sum_ns), (thread.recorded, histogram.sum_ns), "CPU {}", thread.cpu);
        assert_eq!((of_cpu.min_ns, of_cpu.max_ns), (histogram.min_ns, histogram.max_ns), "CPU {}", thread.cpu);
        assert!(of_cpu.last_cycle < Some(i64::try_from(thread.cycles_due).unwrap()));
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_file_holds_every_recorded_sample() {
    let (_machine, scratch) = machine_and_scratch("samples");
    let cpus = punctual_sys::sched::affinity(0).unwrap().to_string();
    let of_method = |method: &str, period: &str| Cell {
        period: period.parse().unwrap(),
        task: method.parse().unwrap(),
        conditions: Conditions { warm_up: "50ms".parse().unwrap(), ..Conditions::default() },
        ..cell("other", "none", &cpus, "1500ms")
    };
    // The log is drained and a row group completed while measuring; `itimer` has a process per CPU.
    for (method, period) in [("clock_nanosleep", "20us"), ("clock_nanosleep:relative", "1ms"), ("itimer", "1ms")] {
        let path = scratch.path(&format!("{method}.parquet"));
        let mut command = command("cell --samples");
        command.arg(&path);
        let record = record(start_cell(command, &of_method(method, period)));
        assert_agree(&path, &record);
        let is_clean = |thread: &ThreadRecord| thread.usage.is_none_or(|usage| usage.allocations == 0);
        assert!(record.threads.iter().all(is_clean), "nothing of it in the measured section");
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(std::fs::read_dir(scratch.dir()).unwrap().count(), 0, "nothing else is left");
}

#[test]
fn ctrl_c_leaves_a_whole_file() {
    let (_machine, scratch) = machine_and_scratch("samples-interrupted");
    let path = scratch.path("a.parquet");
    let mut child = command("measure --wait --duration 1h --format json --samples").arg(&path).start_piped();
    // The second line comes a second after the first.
    (0..2).for_each(|_| wait_for_line(&mut child, " s  max "));
    assert!(scratch.path("a.parquet.partial").exists());
    process::signal(child.id(), libc::SIGINT).unwrap();
    let said = finish(child);
    assert_eq!(said.status, 130, "{said:?}");
    let json = said.json();
    let rows: u64 = samples(&path).values().map(|of_cpu| of_cpu.rows).sum();
    assert_eq!(json["cells"][0]["summary"]["samples"].as_u64(), Some(rows));
    assert!(!scratch.path("a.parquet.partial").exists());
    if rows == 0 {
        inconclusive("no thread has woken up");
    }
}

#[test]
fn a_run_keeps_the_samples_of_each_measurement_also_when_resumed() {
    let (_machine, scratch) = machine_and_scratch("samples-run");
    let plan = "title = \"Small\"\nrepetitions = 2\nduration = \"300ms\"\nwarm_up = \"20ms\"\nseed = 7\n\
                [axes]\nload = [\"none\"]\npolicy = [\"other\", \"batch\"]\nperiod = [\"1ms\"]\n";
    let (plan, dir) = (scratch.file("plan.toml", plan), scratch.path("out"));
    let mut begin = command("run --wait --samples --out");
    // Each cell stops itself when it has made its file.
    begin.env("PUNCTUAL_FAIL_AT", "stop:samples-created");
    let mut begun = begin.arg(&dir).arg(&plan).start_silent();
    let is_stopped = |pid: &u32| *pid != begun.id() && is_stopped(*pid);
    assert!(comes_true(|| running().iter().any(is_stopped)), "a cell has begun");
    // During a measurement its file is present and unfinished.
    let names = std::fs::read_dir(dir.join("samples")).into_iter().flatten().flatten();
    assert_eq!(names.filter(|name| name.path().extension().is_some_and(|end| end == "partial")).count(), 1);
    kill_and_wait(&mut begun);
    assert!(comes_true(|| running().is_empty()));
    let said = run(command("run --wait --resume --out").arg(&dir)).expect_success();
    let closing = format!("samples: {}", dir.join("samples").display());
    assert!(said.stderr.lines().any(|line| line == closing), "{said:?}");
    assert!(run(command("show").arg(&dir)).stderr.contains(&closing));

    let mut names = Vec::new();
    for entry in &entries(&dir) {
        let name = format!("b{:02}-c{:02}.parquet", entry.planned.block, entry.planned.cell_index);
        assert_agree(&dir.join("samples").join(&name), &entry.record);
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["b00-c00.parquet", "b00-c01.parquet", "b01-c00.parquet", "b01-c01.parquet"]);
    assert_eq!(std::fs::read_dir(dir.join("samples")).unwrap().count(), 4, "and nothing else");
}

#[test]
fn samples_that_cannot_be_written_fail_the_cell() {
    let _machine = machine();
    play(|scratch, _| drop(scratch.file("a.parquet", "mine")));
}

/// Each line of Python in docs/samples.md runs on a real file.
#[test]
fn the_documented_lines_read_a_file() {
    let (_machine, scratch) = machine_and_scratch("samples-read");
    let _said =
        run(command("measure --wait --duration 200ms --samples").arg(scratch.path("idle.parquet"))).expect_success();
    let lines = include_str!("../../../../../docs/samples.md").lines().filter(|line| line.starts_with("import "));
    let mut readers = Vec::new();
    for line in lines {
        let reader = line.split([' ', ';']).nth(1).unwrap();
        readers.push(reader);
        let python = |code: &str| Command::new("python3").args(["-c", code]).current_dir(scratch.dir()).output();
        let is_there = if reader == "pandas" { "import pandas, pyarrow" } else { line.split(';').next().unwrap() };
        if !python(is_there).is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: needs {reader} for python3 (pip install pandas pyarrow polars duckdb)");
            continue;
        }
        let output = python(line).unwrap();
        assert!(output.status.success() && output.stdout.len() > 50, "{line}: {output:?}");
    }
    assert_eq!(readers, ["pandas", "polars", "duckdb"]);
}
