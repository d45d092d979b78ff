//! Every format of a run; their content is tested next to their code, against golden files.

use crate::program::{Scratch, UNPRIVILEGED, is_root, punctual, run, set_mode, skip_unless, wrapped};
use crate::pure::schema::assert_conforms;
use analysis::testing::RunBuilder;
use serde_json::json;

/// A run of one block of 200 ms that keeps its limit, begun so many hours after another one.
fn a_run(hours: u64, policies: &[&str]) -> RunBuilder {
    let mut run = RunBuilder::new();
    for policy in policies {
        run.cell("none", policy);
    }
    run.header.started_unix_ms += hours * 3_600_000;
    run.header.plan.title = "punctual run".to_owned();
    run.header.cells.iter_mut().for_each(|cell| cell.duration = "200ms".parse().unwrap());
    run.require("max=10s");
    for cell in 0..policies.len() {
        run.measure(0, cell, |_, cycle| 50_000 + i64::try_from(cycle % 100).unwrap());
    }
    run
}

#[test]
fn a_run_is_shown_in_every_format() {
    let scratch = Scratch::new("formats");
    let plan = scratch.file("plan.toml", "[axes]\nload = [\"none\"]\npolicy = [\"other\", \"other:nice=5\"]\n");
    let dir = scratch.run("run", &a_run(0, &["other", "other:nice=5"]));
    let show = |format: &str| punctual(&format!("show {} --format {format}", dir.display()));
    let junit = show("junit").expect_success().stdout;
    assert!(junit.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "), "{junit}");
    for (format, start) in [
        ("text", "punctual "),
        ("json", "{\n"),
        ("csv", "started_unix_ms,hostname,kernel_release,name,"),
        ("md", "### punctual run\n\n**PASS** max "),
        ("tap", "TAP version 13\n1..3\nok 1 - run complete\n"),
        ("lava", "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=none-other-min RESULT=pass UNITS=us MEASUREMENT="),
        ("kcidb", "{\n  \"builds\": [\n"),
        ("hgrm --cell none/other:nice=5", "# none/other:nice=5: latency by wake-up, us\n"),
        ("gnuplot", "# punctual run\n#   source: "),
        ("text --columns min,mean,sd,max", "punctual "),
        ("prom", "# HELP punctual_run_info "),
    ] {
        let said = show(format);
        assert!(said.stdout.starts_with(start) && said.stdout.ends_with('\n') && said.status == 0, "{said:?}");
        assert_eq!(said.stderr, "", "{format}");
    }
    assert_conforms("show", &show("json").json());
    let cells = "none/other, none/other:nice=5";
    show("hgrm").expect_error(&format!("hgrm holds one cell; name it with --cell (cells: {cells})"));
    show("csv --cell x").expect_error(&format!("no cell matches `x`; the run has {cells}"));
    let one = show("csv --cell other:nice=5");
    assert_eq!(one.stdout.lines().count(), 2, "{one:?}");
    let columns = |options: &str| punctual(&format!("show {} {options}", dir.display()));
    let studied = columns("--columns min,mean,sd,max").stdout;
    assert!(
        studied.lines().any(|line| line.split_whitespace().eq(["load", "policy", "min", "mean", "sd", "max"])),
        "{studied}"
    );
    columns("--columns min --format csv")
        .expect_error("unsupported: --columns with a format other than text; leave one out");
    assert_eq!(show("hgrm --cell NONE/other:nice").stdout, show("hgrm --cell none/other:nice=5").stdout);
    punctual(&format!("run {} --format hgrm", plan.display())).expect_error(
        "hgrm holds one cell; measure first, then show each cell: punctual show RUN --format hgrm --cell NAME",
    );
}

#[test]
fn runs_are_listed_and_damaged_ones_named() {
    let scratch = Scratch::new("list");
    let of = |name: &str| scratch.path(name).display().to_string();
    for (name, hours) in [("a/good", 0), ("b/cut", 1)] {
        scratch.run(name, &a_run(hours, &["other"]));
    }
    let (good, cut) = (of("a/good"), of("b/cut"));
    let file = scratch.path("b/cut/run.jsonl");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 40]).unwrap();
    std::fs::create_dir_all(scratch.path("c/none")).unwrap();
    std::fs::create_dir_all(scratch.path("d/broken")).unwrap();
    scratch.file("d/broken/run.jsonl", "{}\n");
    let listed = punctual(&format!("list {}", scratch.dir().display()));
    assert_eq!((listed.status, listed.stderr.as_str()), (0, ""));
    assert!(listed.stdout.contains(&format!("damaged: {cut}/run.jsonl:2: truncated line;")), "{listed:?}");
    assert!(listed.stdout.contains(&format!("damaged: {}/run.jsonl:1: ", of("d/broken"))), "{listed:?}");
    assert!(listed.stdout.contains("\n3 runs, 2 damaged, "), "{listed:?}");
    let listed = punctual(&format!("list --format json {}", scratch.dir().display())).json();
    assert_conforms("list", &listed);
    let runs = listed["runs"].as_array().unwrap();
    let facts = |run: &serde_json::Value| json!([run["path"], run["verdict"], run["measurements"], run["planned"]]);
    assert_eq!(
        runs.iter().map(facts).collect::<Vec<_>>(),
        [json!([cut, "not_shown", 0, 1]), json!([good, "pass", 1, 1])],
        "the newest first"
    );
    let files = std::fs::read_dir(scratch.path("a/good")).unwrap().flatten();
    assert_eq!(runs[1]["bytes"], files.map(|file| file.metadata().unwrap().len()).sum::<u64>());
    assert_eq!(listed["unreadable"][0]["path"], of("d/broken"));
    let none = scratch.path("c");
    assert_eq!(punctual(&format!("list {}", none.display())).stdout, format!("no runs below {}\n", none.display()));
    let nowhere = scratch.path("nowhere").display().to_string();
    punctual(&format!("list {nowhere}"))
        .expect_error(&format!("cannot read {nowhere}: No such file or directory (os error 2)"));
}

#[test]
fn root_a_directory_that_cannot_be_looked_into_is_named() {
    skip_unless!(is_root());
    let scratch = Scratch::new("list-closed");
    let closed = scratch.path("runs/closed");
    std::fs::create_dir_all(&closed).unwrap();
    set_mode(&closed, 0o700);
    let listed = run(&mut wrapped(&scratch, UNPRIVILEGED, "list runs"));
    assert_eq!((listed.status, listed.stdout.as_str()), (0, "no runs below runs\n"));
    assert_eq!(listed.stderr, "punctual: cannot read runs/closed: Permission denied (os error 13)\n");
}
