//! Every format of a run that was made here; their content is tested next to their code, against golden files.

use crate::program::{
    Scratch, UNPRIVILEGED, a_cpu, is_root, machine_and_scratch, punctual, run, set_mode, skip_unless, wrapped,
};
use crate::schema::assert_conforms;
use serde_json::json;

#[test]
fn a_run_is_shown_in_every_format() {
    let (_machine, scratch) = machine_and_scratch("formats");
    let plan = scratch.file("plan.toml", "[axes]\nload = [\"none\"]\npolicy = [\"other\", \"other:nice=5\"]\n");
    let dir = scratch.path("run");
    let measured = punctual(&format!(
        "run {} --wait --out {} --quick --duration 200ms --cpus {} --format junit --require max=10s",
        plan.display(),
        dir.display(),
        a_cpu()
    ))
    .expect_success();
    assert!(measured.stdout.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "), "{measured:?}");
    let show = |format: &str| punctual(&format!("show {} --format {format}", dir.display()));
    assert_eq!(show("junit").stdout, measured.stdout, "the same records, the same report");
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
    let (_machine, scratch) = machine_and_scratch("list");
    let of = |name: &str| scratch.path(name).display().to_string();
    let (good, cut) = (of("a/good"), of("b/cut"));
    for dir in [&good, &cut] {
        let asked = "--wait --quick --repetitions 1 --duration 100ms --require max=10s";
        let plan = scratch.file("plan.toml", "[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n");
        assert_eq!(punctual(&format!("run {} {asked} --cpus {} --out {dir}", plan.display(), a_cpu())).status, 0);
    }
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
