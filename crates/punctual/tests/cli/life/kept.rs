//! Runs of measuring commands are kept, and found without their names.

use crate::program::a_cpu;
use crate::program::{Scratch, command, machine, run};
use std::fs;

#[test]
fn a_measurement_is_kept_and_is_the_latest_run() {
    let (_machine, scratch) = (machine(), Scratch::new("kept"));
    let punctual = |arguments: &str| run(command(arguments).current_dir(scratch.dir()));
    let measure = |options: &str| punctual(&format!("measure --wait --duration 100ms --cpus {} {options}", a_cpu()));
    measure("--no-keep").expect_success();
    assert!(!scratch.path("runs").exists());
    let first = measure("").expect_success();
    let kept: Vec<_> = fs::read_dir(scratch.path("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [dir] = &kept[..] else { panic!("{kept:?}") };
    assert!(dir.join("report.html").is_file() && first.stderr.contains("/run.jsonl\n"), "{first:?}");
    let dir = dir.strip_prefix(scratch.dir()).unwrap().display().to_string();
    assert!(first.stdout.contains(&format!("; all: punctual show {dir} --all)")), "{first:?}");

    measure("--out second --policy other:nice=3 --require max=1ns");
    fs::rename(scratch.path("second"), scratch.path("runs/second")).unwrap();
    let shown = punctual("show --format csv");
    assert_eq!((shown.status, shown.stderr.as_str()), (0, "latest run: runs/second\n"), "the verdict is of `check`");
    assert!(shown.stdout.contains("other:nice=3"), "{shown:?}");
    assert_eq!(punctual("check").status, 2);
    assert_eq!(punctual("report").stdout, "runs/second/report.html\n");
    let compared = punctual(&format!("compare {dir} runs/second none/other other:n --force"));
    assert!(compared.stdout.contains("runs/second"), "{compared:?}");
}

#[test]
fn a_measurement_that_fails_leaves_no_run() {
    let (_machine, scratch) = (machine(), Scratch::new("not-kept"));
    let failed = run(command("measure --wait --duration 100ms --samples no/such/file").current_dir(scratch.dir()));
    assert_eq!(failed.status, 1, "{failed:?}");
    assert!(!scratch.path("runs").exists() || fs::remove_dir(scratch.path("runs")).is_ok(), "{failed:?}");
    fs::write(scratch.path("runs"), "a file").unwrap();
    let refused = run(command("measure --wait --duration 100ms").current_dir(scratch.dir()));
    assert!(
        refused.status == 1 && refused.stderr.contains("; name a directory with --out, or add --no-keep\n"),
        "{refused:?}"
    );
}
