//! Run directories of other users: links, pipes and devices in place of files are neither followed nor waited for.

use crate::program::{
    ProgramOutput, Scratch, Start, a_cpu, command, finish, kill_and_wait, machine_and_scratch, punctual,
};
use analysis::testing::RunBuilder;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use sys::testing::comes_true;

/// A plan that is measured in less than a second.
const PLAN: &str =
    "duration = \"50ms\"\nwarm_up = \"0s\"\nrepetitions = 1\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n";

/// Runs the program to its end, unless it waits for a pipe.
fn in_time(arguments: &str) -> ProgramOutput {
    let mut child = command(arguments).start_piped();
    let ends = comes_true(|| child.try_wait().unwrap().is_some());
    if !ends {
        kill_and_wait(&mut child);
    }
    assert!(ends, "it waits: {arguments}");
    finish(child)
}

/// Directory of a run of one measurement.
fn a_run(scratch: &Scratch) -> PathBuf {
    let mut run = RunBuilder::new();
    run.cell("none", "other").measure(0, 0, |_, _| 5_000);
    scratch.run("run", &run)
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_page_replaces_what_is_planted_in_its_place() {
    let scratch = Scratch::new("planted-page");
    let (dir, victim) = (a_run(&scratch), scratch.file("victim", "precious"));
    for name in ["report.html", "report.html.new"] {
        for target in [victim.to_str().unwrap(), "/dev/null", "FIFO"] {
            match target {
                "FIFO" => mkfifo(&dir.join(name)),
                target => symlink(target, dir.join(name)).unwrap(),
            }
            let said = in_time(&format!("report {}", dir.display()));
            assert_eq!(said.status, 0, "{name} {target}: {said:?}");
            let page = dir.join("report.html");
            assert!(fs::symlink_metadata(&page).unwrap().is_file(), "{name} {target}");
            assert!(fs::read_to_string(&page).unwrap().starts_with("<!doctype html>"));
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
            fs::remove_file(page).unwrap();
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing else is left");
        }
    }
    // A stream that the user names is written to.
    let said = punctual(&format!("report {} -o /dev/stdout", dir.display()));
    assert!(said.stdout.starts_with("<!doctype html>") && said.stdout.ends_with("/dev/stdout\n"), "{said:?}");
    let said = punctual(&format!("report {} -o /dev/null", dir.display()));
    assert_eq!((said.status, said.stdout.as_str()), (0, "/dev/null\n"));
}

#[test]
fn a_run_begins_and_goes_on_beside_what_is_planted() {
    let (_machine, scratch) = machine_and_scratch("planted-run");
    let (plan, victim) = (scratch.file("plan.toml", PLAN), scratch.file("victim", "precious"));
    let (dir, precious) = (scratch.path("run"), || fs::read_to_string(&victim).unwrap());
    fs::create_dir(&dir).unwrap();
    symlink(&victim, dir.join("run.jsonl.new")).unwrap();
    let begun = in_time(&format!("run {} --wait --cpus {} --out {}", plan.display(), a_cpu(), dir.display()));
    assert_eq!((begun.status, precious().as_str()), (0, "precious"), "{begun:?}");

    // A resumed run appends to its own file, not to the target of a link.
    let (run, page) = (dir.join("run.jsonl"), dir.join("report.html"));
    let text = fs::read_to_string(&run).unwrap();
    let header = text.lines().next().unwrap().to_owned() + "\n";
    fs::write(&run, &header).unwrap();
    fs::remove_file(&page).unwrap();
    symlink(&victim, &page).unwrap();
    symlink(&victim, dir.join("report.html.new")).unwrap();
    let resume = format!("run --resume --wait --force --out {}", dir.display());
    let resumed = in_time(&resume);
    assert_eq!((resumed.status, precious().as_str()), (0, "precious"), "{resumed:?}");
    assert!(fs::symlink_metadata(&page).unwrap().is_file());

    fs::rename(&run, scratch.path("elsewhere")).unwrap();
    symlink(scratch.path("elsewhere"), &run).unwrap();
    let refused = in_time(&resume);
    refused.expect_error(&format!("cannot append to {}: expected a regular file, found a link", run.display()));
}

#[test]
fn samples_go_through_no_link() {
    let (_machine, scratch) = machine_and_scratch("planted-samples");
    let (plan, victim) = (scratch.file("plan.toml", PLAN), scratch.file("victim", "precious"));
    let (samples, cpu) = (scratch.path("a.parquet"), a_cpu());
    symlink(&victim, scratch.path("a.parquet.partial")).unwrap();
    let said =
        in_time(&format!("measure --wait --no-keep --duration 50ms --cpus {cpu} --samples {}", samples.display()));
    assert_eq!((said.status, fs::read_to_string(&victim).unwrap().as_str()), (0, "precious"), "{said:?}");
    assert!(fs::symlink_metadata(&samples).unwrap().is_file());

    let (dir, other) = (scratch.path("run"), scratch.path("other"));
    fs::create_dir(&other).unwrap();
    in_time(&format!("run {} --wait --samples --cpus {cpu} --out {}", plan.display(), dir.display())).expect_success();
    let header = fs::read_to_string(dir.join("run.jsonl")).unwrap().lines().next().unwrap().to_owned() + "\n";
    fs::write(dir.join("run.jsonl"), header).unwrap();
    fs::remove_dir_all(dir.join("samples")).unwrap();
    symlink(&other, dir.join("samples")).unwrap();
    let said = in_time(&format!("run --resume --wait --force --out {}", dir.display()));
    let line = format!(
        "punctual: cannot write to {}: expected a directory, found a link; remove it\n",
        dir.join("samples").display()
    );
    assert!(said.status == 1 && said.stderr.ends_with(&line), "{said:?}");
    assert_eq!(fs::read_dir(other).unwrap().count(), 0);
}
