//! `punctual export`: the files of each engine, read by the readers of the engines.

use crate::program::{
    ProgramOutput, Scratch, a_cpu, command, entries, is_installed, machine, punctual, run, set_mode, skip_unless,
};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ENGINES: [&str; 4] = ["ansible", "k8s", "labgrid", "lava"];

/// A title that every language of the files would act upon.
const TITLE: &str = "it's a \"gate\" $HOME `id` $(id) {{ lookup('pipe', 'id') }} {% raw %} #x: - \\n % & <b> \u{b5}s";

/// The program `name` among those that `scripts/setup test` installs for Python, or of the system; prints that a test
/// is skipped if there is none.
pub(crate) fn of_python(name: &str, package: &str) -> Option<PathBuf> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin").join(name);
    if ours.exists() {
        return Some(ours);
    }
    is_installed(name, package).then(|| PathBuf::from(name))
}

/// Whether this program has `run --shard` and `merge`.
pub(crate) fn has_shards() -> bool {
    punctual("help run").stdout.contains("--shard ")
}

/// A plan of 6 measurements, 3 blocks of 2 cells.
pub(crate) fn plan(title: &str, duration: &str) -> String {
    let title = serde_json::to_string(title).unwrap();
    format!(
        "title = {title}\nrepetitions = 3\nduration = \"{duration}\"\nwarm_up = \"50ms\"\ncpus = \"{}\"\n\
         [axes]\nload = [\"none\", \"light\"]\npolicy = [\"other\"]\nperiod = [\"1ms\"]\n",
        a_cpu()
    )
}

/// The command `punctual export ENGINE PLAN --out OUT`.
fn export(engine: &str, plan: &Path, out: &Path) -> Command {
    let mut command = command(&format!("export {engine}"));
    command.arg(plan).arg("--out").arg(out);
    command
}

/// A shell script of an engine, with the programs of `bin` first in the search path.
fn script(path: &Path, bin: &Path) -> Command {
    let mut command = Command::new(path);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bin.display())).env("PUNCTUAL", crate::program::PROGRAM);
    command.stdin(Stdio::null());
    command
}

#[test]
fn every_engine_reads_its_files_whatever_the_names() {
    let Some(python) = of_python("python3", "python3-yaml") else { return };
    let scratch = Scratch::new("engines");
    // A name that a shell, YAML and a template would act upon.
    let file = scratch.file("a b\n'\"$(id){{x}}.toml", plan(TITLE, "100ms"));
    set_mode(&file, 0o644);
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engines/check.py");
    for engine in ENGINES {
        let out = scratch.path(&format!("out {engine}"));
        let written = run(export(engine, &file, &out).args(["--shards", "3", "--seed", "7"])).expect_success();
        assert!(written.stdout.lines().count() >= 3, "{written:?}");
        for line in written.stdout.lines() {
            let mode = std::fs::metadata(line).unwrap().permissions().mode() & 0o777;
            let is_program = std::fs::read_to_string(line).unwrap().starts_with("#!");
            assert_eq!(mode, if is_program { 0o755 } else { 0o644 }, "{line}");
            if is_program {
                run(Command::new("sh").arg("-n").arg(line)).expect_success();
            }
        }
        let plan = out.join("plan.toml");
        let mut dry_run = command("run --dry-run --format json");
        let planned = run(dry_run.arg(&plan)).expect_success().json();
        assert_eq!(
            (&planned["title"], &planned["measurements"], &planned["seed"]),
            (&TITLE.into(), &6.into(), &7.into())
        );
        let mut checked = Command::new(&python);
        checked.arg(&check).arg(engine).arg(&out).arg(TITLE).arg(&plan);
        let schemas =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/lava-common/usr/lib/python3/dist-packages");
        if schemas.exists() {
            checked.arg(schemas);
        }
        let said = run(&mut checked);
        said.stdout.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("{line}"));
        assert_eq!(said.status, 0, "{engine}: {said:?}");
    }
    if let Some(ansible) = of_python("ansible-playbook", "ansible-core") {
        let out = scratch.path("out ansible");
        let mut syntax = Command::new(ansible);
        syntax.args(["--syntax-check", "-i", "inventory.yml", "punctual.yml"]).current_dir(&out);
        let said = run(syntax.env("ANSIBLE_HOME", scratch.path("home"))).expect_success();
        assert!(said.stdout.contains("playbook: punctual.yml"), "{said:?}");
    }
}

#[test]
fn what_cannot_be_exported_is_one_line() {
    let scratch = Scratch::new("engines-refused");
    let file = scratch.file("plan.toml", plan("x", "100ms"));
    set_mode(&file, 0o644);
    let out = scratch.path("out");
    let refused = |more: &[&str], line: &str| {
        run(export("k8s", &file, &out).args(more)).expect_error(line);
        assert!(out.symlink_metadata().is_err() || out.symlink_metadata().unwrap().is_symlink() || out.is_dir());
    };
    refused(&["--shards", "7"], "cannot make 7 shards: the plan has 6 measurements; name fewer with --shards");
    assert!(!out.exists(), "nothing was written");
    let said = run(export("k8s", &file, &out).args(["--target", "a b"]));
    assert!(said.status == 1 && said.stderr.contains("at most 63 letters"), "{said:?}");
    let said = run(export("k8s", &file, &out).args(["--from", "$(id)"]));
    assert!(said.status == 1 && said.stderr.contains("expected an image"), "{said:?}");

    let roles = scratch.file(
        "roles.toml",
        format!("{}\n[roles]\ntarget = \"ssh:board\"\n", plan("x", "1s"))
            .replace("[axes]", "[axes]\nmethod = [\"response:udp:127.0.0.1:4000\"]"),
    );
    set_mode(&roles, 0o644);
    run(export("k8s", &roles, &out).args(["--shards", "2"]))
        .expect_error("cannot make 2 shards: the target of the plan is one machine, ssh:board; leave --shards out");
    run(&mut export("k8s", &roles, &out)).expect_success();

    // The directory holds the files of the roles.
    refused(&[], &format!("{} is not empty; name another directory with --out", out.display()));
    std::fs::remove_dir_all(&out).unwrap();
    let elsewhere = scratch.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &out).unwrap();
    refused(&[], &format!("{} is not a directory; name another with --out", out.display()));
    let through = std::path::PathBuf::from(format!("{}/", out.display()));
    let said = run(&mut export("k8s", &file, &through));
    assert!(said.status == 1, "{said:?}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "a link is not followed");
    std::fs::remove_file(&out).unwrap();

    std::fs::create_dir(&out).unwrap();
    run(&mut export("k8s", &file, &out)).expect_success();
    assert!(out.join("job.yaml").is_file(), "an empty directory is taken");
    let names: Vec<_> = std::fs::read_dir(scratch.dir()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains(".new")), "{names:?}");

    set_mode(&file, 0o646);
    refused(
        &[],
        &format!(
            "{} is writable by other users (chmod go-w), and would run from files of your own; read it, then add --yes",
            file.display()
        ),
    );
}

#[test]
fn every_ready_plan_can_be_exported() {
    let scratch = Scratch::new("engines-ready");
    let plans = punctual("plan list --format json").json();
    for plan in plans["plans"].as_array().unwrap() {
        let name = plan["name"].as_str().unwrap();
        let out = scratch.path(name);
        run(&mut export("lava", Path::new(name), &out)).expect_success();
        let written = model::Plan::parse(&std::fs::read_to_string(out.join("plan.toml")).unwrap()).unwrap();
        let ready = model::Plan::parse(&punctual(&format!("plan show {name}")).stdout).unwrap();
        assert!(written.seed.is_some(), "{name}");
        assert_eq!(model::Plan { seed: ready.seed, ..written }, ready);
    }
    let kernel = scratch.file("bzImage", "");
    let own = scratch.file("own.toml", format!("[axes]\nkernel = [\"{}\"]\n", kernel.display()));
    set_mode(&own, 0o644);
    let said = run(&mut export("lava", &own, &scratch.path("own"))).expect_success();
    let expected = format!("the plan uses files of this machine, which are not exported: {}", kernel.display());
    assert_eq!(said.last_line(), expected);
}

/// Removes the shard from a command where this program has none: the whole plan is measured in its place.
fn without_shards(text: &str, shards: u32) -> String {
    if has_shards() { text.to_owned() } else { text.replace(&format!(" --shard $shard/{shards}"), "") }
}

/// Asserts that `dir` holds the shards, and the run of them where this program makes it.
#[track_caller]
pub(crate) fn expect_shards(dir: &Path, shards: u32, measurements: usize) {
    let of = |shard| entries(&dir.join(format!("shards/{shard}")));
    let all: Vec<_> = (1..=shards).map(of).collect();
    assert!(all.iter().all(|entries| !entries.is_empty()));
    if has_shards() {
        assert_eq!(all.iter().map(Vec::len).sum::<usize>(), measurements);
        assert_eq!(entries(&dir.join("run")).len(), measurements, "one run");
    }
}

/// The commands of pods and boards, carried out here, and their logs, collected.
#[test]
fn runs_come_back_through_logs() {
    let Some(python) = of_python("python3", "python3-yaml") else { return };
    let (_machine, scratch) = (machine(), Scratch::new("engines-logs"));
    let file = scratch.file("plan.toml", plan(TITLE, "100ms"));
    set_mode(&file, 0o644);
    let bin = scratch.path("bin");
    symlink_program(&bin, "punctual");
    scratch.executable("bin/wget", format!("#!/bin/sh\ncp {} punctual\n", crate::program::PROGRAM));
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
            let steps = without_shards(&steps, 2).replace("/plan/plan.toml", &plan);
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
        if has_shards() {
            collect().expect_success();
        } else {
            collect();
        }
        expect_shards(&out, 2, 6);
        for shard in [1, 2] {
            std::fs::remove_file(format!("{log}-{shard}")).unwrap();
        }
    }
}

/// Makes this program known as `name` in a directory.
fn symlink_program(directory: &Path, name: &str) {
    std::fs::create_dir_all(directory).unwrap();
    symlink(crate::program::PROGRAM, directory.join(name)).unwrap();
}

#[test]
fn a_job_of_the_cluster_is_read_by_its_own_client() {
    skip_unless!(is_installed("kubectl", "kubernetes-client"));
    let scratch = Scratch::new("engines-kubectl");
    let file = scratch.file("plan.toml", plan(TITLE, "100ms"));
    set_mode(&file, 0o644);
    let out = scratch.path("out");
    run(export("k8s", &file, &out).args(["--target", "node-1", "--from", "lab.example/punctual:1"])).expect_success();
    let mut client = Command::new("kubectl");
    // Without a cluster, objects are parsed but not compared with its schema.
    client.args(["create", "--dry-run=client", "--validate=false", "-o", "name", "-f"]).arg(out.join("job.yaml"));
    client.env("KUBECONFIG", "/dev/null");
    let said = run(&mut client);
    if said.stderr.contains("connection refused") || said.stderr.contains("was refused") {
        println!("skipped: this kubectl asks a cluster for its types");
        return;
    }
    assert_eq!(said.expect_success().stdout, "configmap/punctual-plan\njob.batch/punctual-plan\n");
}
