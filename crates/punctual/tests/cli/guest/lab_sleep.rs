//! Sleeps of languages in guests: the language is carried in.

use crate::guest::vm::{kernel, run_seeded};
use crate::program::{Scratch, entries};
use punctual_workload::runtime;
use std::path::Path;

/// The languages among `all` that are installed here.
pub(crate) fn installed(all: &[&'static str]) -> Vec<&'static str> {
    all.iter().copied().filter(|name| runtime::find(name.parse().unwrap()).is_ok()).collect()
}

/// A plan in which each of `runtimes` sleeps for 200 ms on `kernel`.
pub(crate) fn plan(kernel: &Path, words: &str, runtimes: &[&str]) -> String {
    format!(
        "repetitions = 1\nduration = \"200ms\"\n[axes]\nruntime = {runtimes:?}\nload = [\"none\"]\npolicy = [\"other\"]\n\
         period = [\"10ms\"]\nkernel = [\"{} {words}\"]\n",
        kernel.display()
    )
}

/// The records of a run of `runtimes`, checked: each of them slept, and never much too short.
#[track_caller]
pub(crate) fn slept(out: &Path, runtimes: &[&str]) -> Vec<punctual_model::Record> {
    let records: Vec<_> = entries(out).into_iter().map(|entry| entry.record).collect();
    assert_eq!(records.len(), runtimes.len());
    for record in &records {
        let [thread] = &record.threads[..] else { panic!("one process: {record:?}") };
        assert!(thread.is_consistent() && thread.recorded >= 10, "{thread:?}");
        // A timer of Node may end up to 1 ms early (docs/sleep.md).
        assert!(thread.histogram.min_ns.unwrap() > -1_100_000, "{thread:?}");
        let implementation = record.runtime.as_ref().unwrap();
        assert!(!implementation.version.is_empty(), "{implementation:?}");
        let here = runtime::find(record.cell.task.runtime().unwrap()).unwrap();
        assert_eq!(implementation.program, here.program.display().to_string());
        assert!(!record.cell.kernel.to_string().contains("file="), "files of a language are no part of the cell");
    }
    records
}

/// Runs each of `runtimes` twice in virtual time.
#[track_caller]
pub(crate) fn expect_the_same(scratch: &Scratch, kernel: &Path, runtimes: &[&str]) {
    let file = scratch.file("virtual.toml", plan(kernel, "preempt=full", runtimes)).display().to_string();
    // The program is compiled again for each run, and has to be the same.
    let seen = |name: &str| {
        run_seeded(&file, &scratch.path(name));
        let records = slept(&scratch.path(name), runtimes);
        let archive = |record: &punctual_model::Record| record.lab.as_ref().unwrap().initramfs_hash.clone();
        records.iter().map(|record| (archive(record), record.threads[0].histogram.clone())).collect::<Vec<_>>()
    };
    assert_eq!(seen("first"), seen("second"));
}

#[test]
fn vm_c_and_python_sleep_in_virtual_time_as_they_are_installed_here() {
    let Some(kernel) = kernel() else { return };
    let installed = installed(&["c", "python3"]);
    if installed.is_empty() {
        eprintln!("skipped: needs gcc or python3");
        return;
    }
    expect_the_same(&Scratch::new("lab-sleep"), &kernel, &installed);
}
