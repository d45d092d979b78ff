//! Comparing cells of one run and separate runs.

use crate::program::{Scratch, command, machine, run};
use analysis::testing::RunBuilder;

const PLAN: &str = r#"
repetitions = 6
duration = "200ms"
warm_up = "20ms"
[axes]
load = ["none"]
policy = ["other", "other:nice=5"]
"#;

#[test]
fn cells_of_a_run_are_compared_and_separate_runs_are_not() {
    let _machine = machine();
    let scratch = Scratch::new("compare");
    let plan = scratch.file("plan.toml", PLAN);
    let dirs = ["a", "b"].map(|name| scratch.path(name));
    for dir in &dirs {
        let said = run(command("run --wait --out").arg(dir).arg(&plan));
        assert_eq!(said.status, 0, "{said:?}");
    }
    let compare = |words: &[&str]| {
        let words = words.iter().map(|word| if word.len() == 1 { scratch.path(word).into() } else { (*word).into() });
        run(command("compare").args(words.collect::<Vec<std::ffi::OsString>>()))
    };
    // The only two cells, and the same by name.
    let said = compare(&["a", "--metric", "p50", "--format", "json"]);
    let json = said.json();
    assert_eq!((&json["blocks"], &json["a"]), (&6.into(), &"none/other".into()));
    let status = match json["answer"]["kind"].as_str().unwrap() {
        "equivalent" => 0,
        "different" => 2,
        "undecided" => 3,
        other => panic!("{other}: {json}"),
    };
    assert_eq!(said.status, status);
    let named = compare(&["a", "policy=other", "policy=other:nice=5", "--metric", "p50", "--format", "json"]);
    assert_eq!(named.json(), json);
    let text = compare(&["a", "--metric", "p50"]).stdout;
    assert!(text.starts_with("p50 decides (by due time, margin 1.1, 6 blocks)\n"), "{text}");
    assert!(text.contains(json["sentence"].as_str().unwrap().split(' ').next().unwrap()), "{text}");

    // Separate runs stand side by side, without an answer unless it is forced.
    let separate = compare(&["a", "b", "policy=other", "--metric", "p50"]);
    assert!(separate.status == 3 && separate.stdout.contains("UNDECIDED: cannot separate from drift"), "{separate:?}");
    let forced = compare(&["a", "b", "policy=other", "--metric", "p50", "--force"]);
    assert!(
        !forced.stdout.contains("cannot separate") && forced.stdout.contains(" always measured first"),
        "{forced:?}"
    );
}

#[test]
fn what_cannot_be_compared_is_said_in_one_line() {
    let scratch = Scratch::new("compare-bad");
    let dir = scratch.path("run");
    std::fs::create_dir_all(&dir).unwrap();
    let mut built = RunBuilder::new();
    built.cell("none", "other").cell("none", "fifo:80").cell("messaging", "other");
    std::fs::write(dir.join("run.jsonl"), serde_json::to_string(&built.header).unwrap() + "\n").unwrap();
    let compare = |words: &[&str]| run(command("compare").arg(&dir).args(words));
    let cells = "none/other, none/fifo:80, messaging/other";
    compare(&[]).expect_error(&format!("name two cells, each like load=messaging,policy=fifo:80; the run has {cells}"));
    compare(&["load=none", "load=messaging"])
        .expect_error("several cells are meant: none/other, none/fifo:80; name more axes");
    compare(&["load=cpu", "load=messaging"]).expect_error(&format!("no cell of the run is meant; it has {cells}"));
    compare(&["load=messaging", "load=messaging,policy=other"])
        .expect_error("both are the cell messaging/other; name two that differ");
    compare(&["laod=none", "load=messaging"])
        .expect_error("unknown axis `laod` (did you mean `load`? known: kernel load policy period method)");
    let missing = compare(&["elsewhere"]);
    assert!(missing.status == 1 && missing.stderr.contains("elsewhere is no run"), "{missing:?}");
    let max = compare(&["--metric", "max"]);
    assert!(max.status == 1 && max.stderr.contains("a maximum decides nothing"), "{max:?}");
    let margin = compare(&["--margin", "0.9"]);
    assert!(margin.status == 1 && margin.stderr.contains("write a ratio above 1 like 1.25, or 25%"), "{margin:?}");
}
