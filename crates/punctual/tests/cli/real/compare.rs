//! Runs that are made to be compared: in alternation, and until there is enough of them.

use crate::program::{command, inconclusive, machine_and_scratch, run};

const PLAN: &str = r#"
repetitions = 6
duration = "200ms"
warm_up = "20ms"
[axes]
load = ["none"]
policy = ["other", "other:nice=5"]
"#;

#[test]
fn two_runs_in_alternation_are_one_comparison_with_its_noise_floor() {
    let (_machine, scratch) = machine_and_scratch("alternate");
    let plan = scratch.file("plan.toml", PLAN.replace("[axes]", "aa = true\n[axes]").replace("\"other\", ", ""));
    let dirs = ["a", "b"].map(|name| scratch.path(name));
    for block in 0..6 {
        for dir in &dirs {
            let mut one_block = command("run --wait --blocks 1 --out");
            one_block.arg(dir).args(if block == 0 { vec![plan.as_os_str()] } else { vec!["--resume".as_ref()] });
            let said = run(&mut one_block).expect_success();
            let is_told = said.stderr.contains(&format!("{} of 12 measurements made; continue with", 2 * (block + 1)));
            assert_eq!(is_told, block < 5, "{said:?}");
        }
    }
    let json = run(command("compare --metric p50 --format json").args(&dirs)).json();
    assert_eq!((&json["blocks"], &json["a_first"]), (&6.into(), &6.into()));
    match json["primary"]["ratio"]["value"].as_f64() {
        Some(ratio) => {
            assert!(ratio > 0.0 && json["decision"]["kind"] != "refused", "{json}");
            assert_eq!(json["noise_floor"].as_array().map(Vec::len), Some(2), "{json}");
            assert!(json["remarks"].to_string().contains("was always measured first"), "{}", json["remarks"]);
        }
        None => inconclusive(&format!("too few wake-ups: {}", json["answer"])),
    }
    let shown = run(command("show --format json").arg(&dirs[0])).json();
    assert_eq!(shown["cells"][1]["name"], "none/other:nice=5/again");
}

#[test]
fn a_run_ends_when_it_is_decided_or_its_time_is_over() {
    let (_machine, scratch) = machine_and_scratch("until");
    let slow = PLAN.replace("200ms", "1s").replace("\"other:nice=5\"", "\"other\"").replace("\"other\", ", "");
    let plan = scratch.file("plan.toml", slow.replace("[axes]", "timer_slack = \"1us\"\n[axes]"));
    let refused = run(command("run --until decided --at-most 1min").arg(&plan));
    refused.expect_error("--until decided compares two cells, this plan has 1 cell");
    let short = run(command("run --until enough --at-most 1s").arg(&plan));
    assert!(short.stderr.starts_with("punctual: invalid --at-most 1s: expected about "), "{short:?}");

    let out = scratch.path("out");
    let said = run(command("run --wait --until enough --at-most 8s --format json --out").arg(&out).arg(&plan))
        .expect_success();
    let json = said.json();
    assert!(json["run"]["shortfalls"].to_string().contains("steadiness"), "{}", json["run"]["shortfalls"]);
    assert!(!json["run"]["findings"].to_string().contains("not_all_cells_done"), "{}", json["run"]["findings"]);
    let blocks = json["cells"][0]["summary"]["blocks"].as_u64().unwrap();
    assert!((1..=5).contains(&blocks), "8 s have room for at most 5 blocks of 1.6 s: {blocks}");
}
