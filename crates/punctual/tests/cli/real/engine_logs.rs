//! `punctual export`: the commands of pods and boards, carried out on this machine.

use crate::program::{PROGRAM, ProgramOutput, Scratch, machine, run, set_mode};
use crate::pure::engines::{TITLE, expect_shards, export, plan, reader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// A shell script of an engine, with the programs of `bin` first in the search path.
fn script(path: &Path, bin: &Path) -> Command {
    let mut command = Command::new(path);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bin.display())).env("PUNCTUAL", PROGRAM);
    command.stdin(Stdio::null());
    command
}

/// The commands of pods and boards, carried out here, and their logs, collected.
#[test]
fn runs_come_back_through_logs() {
    let Some(python) = reader() else { return };
    let (_machine, scratch) = (machine(), Scratch::new("engines-logs"));
    let file = scratch.file("plan.toml", plan(TITLE, "100ms"));
    set_mode(&file, 0o644);
    let bin = scratch.path("bin");
    symlink_program(&bin, "punctual");
    scratch.executable("bin/wget", format!("#!/bin/sh\ncp {} punctual\n", PROGRAM));
    scratch.executable("bin/lava-test-case", "#!/bin/sh\necho \"test case $*\"\n");
    let log = scratch.path("log").display().to_string();
    scratch.executable(
        "bin/kubectl",
        format!("#!/bin/sh\ncase $1 in get) echo \"pod/${{4##*=}}\" ;; *) cat {log}-* ;; esac\n"),
    );
    scratch.executable(
        "bin/lavacli",
        format!("#!/bin/sh\ncase $2 in submit) echo 4711 ;; logs) sed 's/^/2026-11-25 \\x1b[0m/' {log}-* ;; esac\n"),
    );
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engines/check.py");
    for engine in ["k8s", "lava"] {
        let out = scratch.path(engine);
        run(export(engine, &file, &out).args(["--shards", "2"])).expect_success();
        let mut checked = Command::new(&python);
        run(checked.arg(&check).arg(engine).arg(&out).arg(TITLE).arg(out.join("plan.toml"))).expect_success();
        if engine == "lava" {
            let submitted = run(&mut script(&out.join("submit"), &bin)).expect_success();
            assert_eq!(submitted.stdout, "shard 1: job 4711\nshard 2: job 4711\n");
        }
        let collect = || run(&mut script(&out.join("collect"), &bin));
        let measure = |shard: u32| {
            let log = std::fs::File::create(format!("{log}-{shard}")).unwrap();
            let steps = std::fs::read_to_string(out.join(if engine == "k8s" { "args" } else { "steps" })).unwrap();
            let here = scratch.path(&format!("{engine}-{shard}"));
            std::fs::create_dir(&here).unwrap();
            let plan = out.join("plan.toml").display().to_string();
            let steps = steps.replace("/plan/plan.toml", &plan);
            let steps = steps.replace("/tmp/run", &here.join("run").display().to_string());
            let steps = steps.replace("shard=1\n", &format!("shard={shard}\n"));
            let mut pod = Command::new("sh");
            pod.args(["-c", &steps]).current_dir(&here).stdin(Stdio::null()).stdout(log);
            let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
            pod.env("PATH", path).env("TMPDIR", &here).env("JOB_COMPLETION_INDEX", (shard - 1).to_string());
            run(&mut pod).expect_success();
        };
        let missing = |said: ProgramOutput, shards: &str| {
            assert_eq!(said.last_line(), format!("collect: no complete log of the shards{shards}"));
            assert_eq!(said.status, 1);
        };
        missing(collect(), " 1 2");
        measure(1);
        missing(collect(), " 2");
        measure(2);
        if engine == "lava" {
            let text = std::fs::read_to_string(format!("{log}-2")).unwrap();
            assert!(
                text.contains("test case measured --result pass") && text.contains("<LAVA_SIGNAL_TESTCASE "),
                "{text}"
            );
        }
        // A log that is cut is not taken for a run.
        let whole = std::fs::read(format!("{log}-2")).unwrap();
        std::fs::write(format!("{log}-2"), &whole[..whole.len() / 2]).unwrap();
        missing(collect(), " 2");
        std::fs::write(format!("{log}-2"), whole).unwrap();
        collect().expect_success();
        expect_shards(&out, 2, 6);
        for shard in [1, 2] {
            std::fs::remove_file(format!("{log}-{shard}")).unwrap();
        }
    }
}

/// Makes this program known as `name` in a directory.
fn symlink_program(directory: &Path, name: &str) {
    std::fs::create_dir_all(directory).unwrap();
    symlink(PROGRAM, directory.join(name)).unwrap();
}
