//! Comparisons of cells of one run and of separate runs.

use crate::program::{Scratch, command, import_fixture, run};
use analysis::testing::RunBuilder;

/// A run of 6 blocks, begun so many hours after another one, in which wake-ups of the second cell take half as long
/// again.
fn six_blocks(hours: u64, policies: [&str; 2]) -> RunBuilder {
    let mut run = RunBuilder::new();
    for policy in policies {
        run.cell("none", policy);
    }
    run.header.plan.repetitions = 6;
    run.header.started_unix_ms += hours * 3_600_000;
    for (block, cell) in (0..6).flat_map(|block| [(block, 0), (block, 1)]) {
        let longer = if policies[cell] == policies[0] { 2 } else { 3 };
        run.measure(block, cell, |cpu, cycle| {
            let usual = 20_000 + (cycle * 7_919 + u64::from(cpu) + u64::from(block) * 31) % 5_000;
            i64::try_from(usual * longer).unwrap()
        });
    }
    run
}

#[test]
fn cells_of_a_run_are_compared_and_separate_runs_are_not() {
    let scratch = Scratch::new("compare");
    for (name, hours) in [("a", 0), ("b", 1)] {
        scratch.run(name, &six_blocks(hours, ["other", "other:nice=5"]));
    }
    let compare = |words: &[&str]| {
        let words = words.iter().map(|word| if word.len() == 1 { scratch.path(word).into() } else { (*word).into() });
        run(command("compare").args(words.collect::<Vec<std::ffi::OsString>>()))
    };
    // The only two cells, and the same two by name.
    let said = compare(&["a", "--metric", "p50", "--format", "json"]);
    let json = said.json();
    crate::pure::schema::assert_conforms("compare", &json);
    assert_eq!((&json["blocks"], &json["a"]), (&6.into(), &"none/other".into()));
    assert_eq!((&json["answer"]["kind"], said.status), (&"different".into(), 2));
    let named = compare(&["a", "policy=other", "policy=other:nice=5", "--metric", "p50", "--format", "json"]);
    assert_eq!(named.json(), json);
    let text = compare(&["a", "--metric", "p50"]).stdout;
    assert!(text.starts_with("p50 decides (by due time, margin 1.1, 6 blocks)\n"), "{text}");
    assert!(text.contains(json["sentence"].as_str().unwrap().split(' ').next().unwrap()), "{text}");

    // Separate runs stand side by side; only --force gives an answer.
    let separate = compare(&["a", "b", "policy=other", "--metric", "p50"]);
    assert!(separate.status == 3 && separate.stdout.contains("UNDECIDED: confounded with drift"), "{separate:?}");
    let forced = compare(&["a", "b", "policy=other", "--metric", "p50", "--force"]);
    assert!(!forced.stdout.contains("confounded") && forced.stdout.contains(" always measured first"), "{forced:?}");
    assert_eq!(forced.status, 0, "{forced:?}");
}

#[test]
fn two_runs_in_alternation_are_one_comparison_with_its_noise_floor() {
    let scratch = Scratch::new("compare-alternation");
    let dirs = [0, 1].map(|nth| {
        // Each cell is measured twice in each block, and the blocks of both runs take turns.
        let mut run = six_blocks(0, ["other", "other"]);
        for (entry, position) in run.entries.iter_mut().zip(0..) {
            let turn: u64 = position / 2 * 4 + position % 2 + 2 * nth;
            entry.record.started_unix_ms = run.header.started_unix_ms + 1_000 + 3_000 * turn;
            entry.record.started = model::MonoTime(1_000_000_000_000 + 3_000_000_000 * turn);
        }
        scratch.run(["a", "b"][usize::try_from(nth).unwrap()], &run)
    });
    let json = run(command("compare --metric p50 --format json").args(&dirs).arg("none/other")).json();
    assert_eq!((&json["blocks"], &json["a_first"]), (&6.into(), &6.into()), "{json}");
    assert_eq!(json["answer"]["kind"], "equivalent", "{json}");
    assert_eq!(json["noise_floor"].as_array().map(Vec::len), Some(2), "{json}");
    assert!(json["remarks"].to_string().contains("was always measured first"), "{}", json["remarks"]);
}

#[test]
fn imported_measurements_stand_side_by_side_and_no_force_compares_them() {
    let scratch = Scratch::new("compare-imported");
    let fixture = |name: &str| import_fixture(name).display().to_string();
    let import = |dir: &str, files: &[&str]| {
        let dir = scratch.path(dir);
        run(command("import --out").arg(&dir).args(files.iter().map(|name| fixture(name)))).expect_success();
        dir.display().to_string()
    };
    let a = import("a", &["cyclictest-v.txt"]);
    let b = import("b", &["jitterdebugger.json", "jitterdebugger-us.raw"]);
    let compare = |words: &[&str]| run(command("compare").args(words));

    let text = compare(&[&a, &b, "cyclictest-v.txt", "jitterdebugger-us.raw", "--metric", "p50"]);
    assert_eq!((text.status, text.stderr.as_str()), (3, ""), "{text:?}");
    assert!(text.stdout.starts_with("p50 side by side (by wake-up, imported: no blocks)\n"), "{}", text.stdout);
    assert!(text.stdout.contains("UNDECIDED: confounded with drift"), "{}", text.stdout);
    assert!(text.stdout.contains("Also different: tool (cyclictest and jitterdebugger)."), "{}", text.stdout);
    let json = compare(&[&b, "--metric", "p50", "--format", "json"]);
    let (json, status) = (json.json(), json.status);
    assert_eq!((status, &json["answer"]["why"]["reason"], &json["blocks"]), (3, &"no_blocks".into(), &0.into()));
    assert_eq!((&json["a"], &json["b"]), (&"jitterdebugger.json".into(), &"jitterdebugger-us.raw".into()));
    // The values equal those of `show`.
    let show = run(command("show --format json").arg(&b)).json();
    for (cell, side) in [(0, "a_ns"), (1, "b_ns")] {
        assert!(json["primary"][side].as_f64().unwrap() > 0.0);
        assert_eq!(json["primary"][side].as_f64(), show["cells"][cell]["summary"]["p50_ns"].as_f64());
    }
    assert_eq!((&json["primary"]["ratio"], &json["ratios"]), (&serde_json::Value::Null, &serde_json::json!([])));

    let forced = compare(&[&b, "--force"]);
    assert!(forced.status == 3 && forced.stdout.contains("--force\n  does not help"), "{forced:?}");

    let all = "jitterdebugger.json, jitterdebugger-us.raw";
    compare(&[&a]).expect_error("name two measurements of cyclictest-v.txt");
    compare(&[&a, &b]).expect_error(&format!("{b} has {all}; name one"));
    compare(&[&b, "jitterdebugger.json", "other.txt"])
        .expect_error(&format!("no cell matches `other.txt`; the run has {all}"));
    compare(&[&b, "jitterdebugger.json", "jitterdebugger.json"])
        .expect_error("both are jitterdebugger.json; name two measurements");
    compare(&[&b, "elsewhere"]).expect_error(&format!("no cell matches `elsewhere`; the run has {all}"));
    let ours = scratch.run("ours", &RunBuilder::new()).display().to_string();
    for words in [[&a, &ours], [&ours, &a]] {
        compare(&words.map(String::as_str)).expect_error(
            "unsupported: comparison of a run with imported measurements, which have no blocks; show both with `punctual \
             report`",
        );
    }
}

#[test]
fn cells_are_named_by_the_loads_that_a_plan_named() {
    let scratch = Scratch::new("compare-loads");
    let mut built = RunBuilder::new();
    built.cell("none", "other").cell("hog=cmd:taskset -c 0,1 stress", "other");
    let dir = scratch.run("run", &built);
    let compare = |words: &[&str]| run(command("compare").arg(&dir).args(words));
    for hog in
        ["load=hog", "load=hog,policy=other", "load=cmd:taskset -c 0,1 stress", "load=hog=cmd:taskset -c 0,1 stress"]
    {
        // A cell is not compared with itself; the error names it, so the lookup succeeded.
        compare(&[hog, hog]).expect_error("both are the cell hog/other; name two cells");
    }
    let all = "none/other, hog/other";
    compare(&["load=pig", "load=none"]).expect_error(&format!("no cell matches; the run has {all}"));
}

#[test]
fn what_cannot_be_compared_is_said_in_one_line() {
    let scratch = Scratch::new("compare-bad");
    let mut built = RunBuilder::new();
    built.cell("none", "other").cell("none", "fifo:80").cell("messaging", "other");
    let dir = scratch.run("run", &built);
    let compare = |words: &[&str]| run(command("compare").arg(&dir).args(words));
    let cells = "none/other, none/fifo:80, messaging/other";
    compare(&[]).expect_error(&format!("name two cells of {cells}"));
    compare(&["load=none", "load=messaging"])
        .expect_error("several cells match: none/other, none/fifo:80; give more axes");
    compare(&["load=cpu", "load=messaging"]).expect_error(&format!("no cell matches; the run has {cells}"));
    compare(&["load=messaging", "load=messaging,policy=other"])
        .expect_error("both are the cell messaging/other; name two cells");
    compare(&["load=mesaging", "load=messaging"]).expect_error(&format!("no cell matches; the run has {cells}"));
    compare(&["laod=none", "load=messaging"])
        .expect_error("unknown axis `laod` (did you mean `load`? known: kernel load policy period method prepare)");
    compare(&["elsewhere"]).expect_error(&format!("no cell matches `elsewhere`; the run has {cells}"));
    compare(&["none", "messaging"])
        .expect_error("several cells match `none`: none/other, none/fifo:80; name more of it");
    compare(&["messaging"]).expect_error(&format!("name a second cell beside messaging/other: {cells}"));
    let missing = run(command("compare elsewhere").current_dir(scratch.dir()));
    assert!(missing.status == 1 && missing.stderr.contains("elsewhere"), "{missing:?}");
    let max = compare(&["--metric", "max"]);
    assert!(max.status == 1 && max.stderr.contains("unsupported metric `max`: maxima of most equal runs"), "{max:?}");
    let margin = compare(&["--margin", "0.9"]);
    assert!(margin.status == 1 && margin.stderr.contains("expected a ratio above 1 like 1.25, or 25%"), "{margin:?}");
}
