//! The recipes of docs/ci.md, run by a shell as they are written, with a shorter plan.

use crate::program::{PROGRAM, in_test, is_root, machine_and_scratch, run, skip_unless};
use std::path::Path;
use std::process::Command;

/// The first block of a language in a part of the document.
fn block<'a>(document: &'a str, heading: &str, language: &str) -> &'a str {
    let part = document.split_once(heading).unwrap_or_else(|| panic!("{heading}")).1;
    let block = part.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("{heading}: {language}")).1;
    block.split_once("```").unwrap().0
}

/// The commands of a recipe: what follows `- `, `run: ` and the lines of `run: |`, or the text in quotation marks.
fn commands(recipe: &str) -> String {
    let command = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("def run = '").and_then(|line| line.strip_suffix('\'')).unwrap_or(line);
        let line = line.strip_prefix("- ").unwrap_or(line);
        let line = line.strip_prefix("run: ").unwrap_or(line);
        (line.starts_with("punctual ") || line.starts_with("./punctual ")).then(|| format!("{line}\necho status $?\n"))
    };
    recipe.lines().filter_map(command).collect()
}

#[test]
fn root_recipes_of_the_documents_work_as_written() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("recipes");
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci.md")).unwrap();
    let plan = block(&document, "`gate.toml`", "toml");
    let short = plan.replace("repetitions = 12", "repetitions = 2").replace("\"5s\"", "\"20ms\"");
    assert!(short.contains("repetitions = 2\n") && short.contains("20ms"), "{plan}");
    let path = format!("{}:{}", Path::new(PROGRAM).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let versions = block(&document, "## Later than the last good version?", "sh").replace("seq 12", "seq 2");
    for (name, script, files) in [
        ("versions", versions, &["junit.xml", "runs/7/good/run.jsonl", "runs/7/new/report.html"][..]),
        ("gitlab", commands(block(&document, "## GitLab", "yaml")), &["junit.xml", "runs/7/run.jsonl"]),
        ("github", commands(block(&document, "## GitHub", "yaml")), &["junit.xml", "run/report.html", "summary.md"]),
        ("jenkins", commands(block(&document, "## Jenkins", "groovy")), &["junit.xml", "runs/7/report.html"]),
        ("lava", commands(block(&document, "## LAVA", "yaml")), &["run/run.jsonl"]),
        ("shell", block(&document, "## Shell", "sh").to_owned(), &["gate.tap", "runs/gate/run.jsonl"]),
    ] {
        assert!(script.matches("punctual run ").count() == 1, "{name}: {script}");
        scratch.file(&format!("{name}/gate.toml"), &short);
        scratch.executable(&format!("{name}/use"), "#!/bin/sh\n");
        std::os::unix::fs::symlink(PROGRAM, scratch.path(&format!("{name}/punctual"))).unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(scratch.path(name)).env("PATH", &path);
        shell.env("CI_JOB_ID", "7").env("BUILD_NUMBER", "7").env("GITHUB_STEP_SUMMARY", "summary.md");
        let said = run(in_test(&mut shell));
        let statuses = said.stdout.lines().filter_map(|line| line.strip_prefix("status "));
        assert!(statuses.chain([&*said.status.to_string()]).all(|n| matches!(n, "0" | "2" | "3")), "{name}: {said:?}");
        for file in files {
            let path = scratch.path(&format!("{name}/{file}"));
            assert!(path.metadata().is_ok_and(|file| file.len() > 0), "{name}/{file}: {said:?}");
        }
    }
}
