//! `punctual export`: the files of each engine, read by the readers of the engines.

use crate::program::{Scratch, a_cpu, command, entries, is_installed, punctual, run, set_mode};
use crate::session::play;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const ENGINES: [&str; 5] = ["ansible", "k8s", "labgrid", "lava", "slurm"];

/// A title that every language of the files would act upon.
pub(crate) const TITLE: &str =
    "it's a \"gate\" $HOME `id` $(id) {{ lookup('pipe', 'id') }} {% raw %} #x: - \\n % & <b> \u{b5}s";

/// The program `name` among those that `scripts/setup test` installs for Python, or of the system; prints that a test
/// is skipped if there is none.
pub(crate) fn of_python(name: &str, package: &str) -> Option<PathBuf> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin").join(name);
    if ours.exists() {
        return Some(ours);
    }
    is_installed(name, package).then(|| PathBuf::from(name))
}

/// A Python that reads YAML; prints that a test is skipped and returns `None` without one.
pub(crate) fn reader() -> Option<PathBuf> {
    let reads = |python: &PathBuf| {
        Command::new(python).args(["-c", "import yaml"]).output().is_ok_and(|said| said.status.success())
    };
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    let found = [ours, PathBuf::from("python3")].into_iter().find(reads);
    if found.is_none() {
        eprintln!("skipped: needs python3 with yaml (apt-get install python3-yaml)");
    }
    found
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
pub(crate) fn export(engine: &str, plan: &Path, out: &Path) -> Command {
    let mut command = command(&format!("export {engine}"));
    command.arg(plan).arg("--out").arg(out);
    command
}

#[test]
fn every_engine_reads_its_files_whatever_the_names() {
    let Some(python) = reader() else { return };
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
        let said = run(syntax.env("ANSIBLE_HOME", scratch.path("home")).env("LC_ALL", "C.UTF-8")).expect_success();
        assert!(said.stdout.contains("playbook: punctual.yml"), "{said:?}");
    }
}

#[test]
fn what_cannot_be_exported_is_one_line() {
    play(|scratch, _| set_mode(scratch.file("plan.toml", plan("x", "100ms")), 0o644));
}

#[test]
fn every_ready_plan_can_be_exported() {
    let scratch = Scratch::new("engines-ready");
    let plans = punctual("plan list --format json").json();
    for plan in plans["plans"].as_array().unwrap() {
        let name = plan["name"].as_str().unwrap();
        let out = scratch.path(name);
        run(&mut export("lava", Path::new(name), &out)).expect_success();
        let written = punctual_model::Plan::parse(&std::fs::read_to_string(out.join("plan.toml")).unwrap()).unwrap();
        let ready = punctual_model::Plan::parse(&punctual(&format!("plan show {name}")).stdout).unwrap();
        assert!(written.seed.is_some(), "{name}");
        assert_eq!(punctual_model::Plan { seed: ready.seed, ..written }, ready);
    }
    let kernel = scratch.file("bzImage", "");
    let own = scratch.file("own.toml", format!("[axes]\nkernel = [\"{}\"]\n", kernel.display()));
    set_mode(&own, 0o644);
    let said = run(&mut export("lava", &own, &scratch.path("own"))).expect_success();
    let expected = format!("the plan uses files of this machine, which are not exported: {}", kernel.display());
    assert_eq!(said.last_line(), expected);
}

/// Asserts that `dir` holds the shards, and the run of them.
#[track_caller]
pub(crate) fn expect_shards(dir: &Path, shards: u32, measurements: usize) {
    let of = |shard| entries(&dir.join(format!("shards/{shard}")));
    let all: Vec<_> = (1..=shards).map(of).collect();
    assert!(all.iter().all(|entries| !entries.is_empty()));
    assert_eq!(all.iter().map(Vec::len).sum::<usize>(), measurements);
    assert_eq!(entries(&dir.join("run")).len(), measurements, "one run");
}
