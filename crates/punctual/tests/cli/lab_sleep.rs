//! Sleeps of languages in guests: the language is carried in.

use crate::program::{entries, machine_and_scratch, punctual};
use crate::vm::kernel;
use std::path::Path;
use workload::runtime;

/// Runs `runtimes` on `kernel` for half a second each; checks that each of them slept, and never much too short.
fn sleeps(out: &Path, plan: &Path, runtimes: usize) -> Vec<model::Record> {
    punctual(&format!("run {} --seed 1 --wait --out {}", plan.display(), out.display())).expect_success();
    let records: Vec<_> = entries(out).into_iter().map(|entry| entry.record).collect();
    assert_eq!(records.len(), runtimes);
    for record in &records {
        let [thread] = &record.threads[..] else { panic!("one process: {record:?}") };
        assert!(thread.is_consistent() && thread.recorded >= 10, "{thread:?}");
        // A timer of Node may end up to 1 ms early (docs/sleep.md).
        assert!(thread.histogram.min_ns.unwrap() > -1_100_000, "{thread:?}");
        let implementation = record.runtime.as_ref().unwrap();
        assert!(!implementation.version.is_empty(), "{implementation:?}");
    }
    records
}

fn plan(kernel: &Path, words: &str, runtimes: &[&str]) -> String {
    format!(
        "repetitions = 1\nduration = \"500ms\"\n[axes]\nruntime = {runtimes:?}\nload = [\"none\"]\npolicy = [\"other\"]\n\
         period = [\"10ms\"]\nkernel = [\"{}{words}\"]\n",
        kernel.display()
    )
}

#[test]
fn vm_c_and_python_sleep_in_a_guest_as_they_are_installed_here() {
    let Some(kernel) = kernel() else { return };
    let runtimes = ["c", "python3"];
    let (_machine, scratch) = machine_and_scratch("lab-sleep");
    let file = scratch.file("plan.toml", plan(&kernel, " clock=emulated", &runtimes));
    let records = sleeps(&scratch.path("run"), &file, runtimes.len());
    for record in records {
        let here = runtime::find(record.cell.task.runtime().unwrap()).unwrap();
        assert_eq!(record.runtime.unwrap().program, here.program.display().to_string());
        assert!(!record.cell.kernel.to_string().contains("file="), "files of a language are no part of the cell");
    }
}

#[test]
#[ignore = "long: boots guests"]
fn vm_every_installed_language_sleeps_in_a_guest() {
    let Some(kernel) = kernel() else { return };
    let all = ["c", "python3", "node", "go", "java"];
    let installed: Vec<_> = all.into_iter().filter(|name| runtime::find(name.parse().unwrap()).is_ok()).collect();
    let (_machine, scratch) = machine_and_scratch("lab-sleep-all");
    let file = scratch.file("plan.toml", plan(&kernel, " clock=emulated", &installed));
    sleeps(&scratch.path("run"), &file, installed.len());
}

#[test]
#[ignore = "long: boots guests"]
fn vm_a_sleep_in_virtual_time_is_the_same_to_the_bit() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("lab-sleep-virtual");
    let all = ["c", "python3", "go"];
    let installed: Vec<_> = all.into_iter().filter(|name| runtime::find(name.parse().unwrap()).is_ok()).collect();
    let file = scratch.file("plan.toml", plan(&kernel, "", &installed));
    // The program is compiled again for each run, and has to be the same.
    let seen = |name: &str| {
        let records = sleeps(&scratch.path(name), &file, installed.len());
        let archive = |record: &model::Record| record.lab.as_ref().unwrap().initramfs_hash.clone();
        records.iter().map(|record| (archive(record), record.threads[0].histogram.clone())).collect::<Vec<_>>()
    };
    assert_eq!(seen("first"), seen("second"));
}
