//! Ready plans, `--set` and `--dry-run`: nothing is measured here.

use crate::program::{Scratch, command, run};
use crate::pure::schema::assert_conforms;
use serde_json::Value;

fn dry(arguments: &str) -> Value {
    let said = run(&mut command(&format!("run --dry-run --format json {arguments}"))).expect_success();
    let document = said.json();
    assert_conforms("dry-run", &document);
    document
}

fn names(document: &Value) -> Vec<String> {
    let of = |list: &str| document[list].as_array().unwrap().clone();
    let all = of("cells").into_iter().chain(of("skipped"));
    all.map(|cell| cell["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ready_plans_are_listed_shown_and_run_without_files() {
    let scratch = Scratch::new("ready-plans");
    let listed = run(command("plan list --format json").current_dir(scratch.dir())).expect_success().json();
    assert_conforms("plan-list", &listed);
    let names: Vec<_> = listed["plans"].as_array().unwrap().iter().map(|plan| plan["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"quick-look"), "{names:?}");
    let text = run(command("plan list").current_dir(scratch.dir())).expect_success().stdout;
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
    for name in names {
        let shown = run(command("plan show").arg(name).current_dir(scratch.dir())).expect_success().stdout;
        let own = scratch.file(&format!("{name}.toml"), &shown);
        let dry = |plan: &std::ffi::OsStr| {
            run(command("run --dry-run --seed 7 --format json").arg(plan).current_dir(scratch.dir())).stdout
        };
        let both = (dry(name.as_ref()), dry(own.as_os_str()));
        assert_eq!(both.0, both.1, "{name}");
    }
}

#[test]
fn a_dry_run_shows_the_narrowed_cells_and_changes_nothing() {
    let scratch = Scratch::new("dry-run");
    let set = "--set load=none,cpu --set policy=other --set period=1ms --set warm_up=0s";
    let document = dry(&format!("quick-look {set} --seed 7 --duration 500ms --repetitions 3"));
    assert_eq!(names(&document), ["none/other", "cpu/other"]);
    assert_eq!(document["measurements"], 6);
    assert_eq!(document["order"].as_array().unwrap().len(), 3);
    assert_eq!(document["require"]["max_ns"], 100_000_000);
    // 0.5 s, and 0.6 s around each measurement.
    assert_eq!(document["expected_ns"], 6_600_000_000_u64);
    assert_eq!(names(&dry("--set load=cpu --set policy=other")), ["cpu/other"], "of the default plan");

    let said = run(command("run quick-look --dry-run").current_dir(scratch.dir())).expect_success();
    assert!(said.stdout.contains("nothing is measured") && said.stdout.contains("limits: max 100 ms"), "{said:?}");
    assert_eq!(std::fs::read_dir(scratch.dir()).unwrap().count(), 0);
}
