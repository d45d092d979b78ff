//! Runs of other conditions or of another machine: differences are shown, and incomparable runs are refused.

use crate::life::comparability::{altered, on};
use crate::program::{ProgramOutput, Scratch};
use analysis::testing::RunBuilder;
use std::path::Path;

#[track_caller]
fn expect_refusal(said: &ProgramOutput, begin: &str) {
    assert_eq!((said.status, said.stdout.as_str(), said.stderr.lines().count()), (1, "", 1), "{said:?}");
    assert!(said.stderr.starts_with(&format!("punctual: {begin}")), "{said:?}");
    assert!(said.stderr.ends_with("; --force compares anyway\n"), "{said:?}");
}

#[test]
fn another_period_or_machine_needs_force_and_another_kernel_does_not() {
    let scratch = Scratch::new("comparability");
    let mut run = RunBuilder::new();
    run.cell("none", "other").header.plan.repetitions = 6;
    for block in 0..6 {
        run.measure(block, 0, |cpu, cycle| {
            5_000 + i64::try_from((cycle * 31 + u64::from(cpu) + 7 * u64::from(block)) % 97).unwrap()
        });
    }
    let here = scratch.run("here", &run);
    let slow = altered(&scratch, &here, "slow", "period_ns", &2_000_000.into());
    let there = altered(&scratch, &here, "there", "cpu_model", &"Elbrus 8C".into());
    let kernel = altered(&scratch, &here, "kernel", "kernel_release", &"7.0-rc1".into());

    let period = "not comparable: they differ in period (1ms and 2ms), so a ratio would be meaningless";
    expect_refusal(&on("compare --metric p50", &[&here, &slow], ""), period);
    expect_refusal(&on("compare --metric p50 --format json", &[&here, &slow], ""), period);
    let forced = on("compare --metric p50", &[&here, &slow], "--force");
    assert!(
        forced.status != 1 && forced.stdout.contains("Not comparable (forced): period (1ms and 2ms)."),
        "{forced:?}"
    );
    // An axis that the command names is the question itself and prevents nothing.
    let asked = on("compare --metric p50", &[&here, &slow], "period=1ms period=2ms");
    assert!(asked.status != 1 && !asked.stdout.contains("period (1ms and 2ms)"), "{asked:?}");

    let machines = "not comparable: they differ in CPU model (";
    expect_refusal(&on("compare --metric p50", &[&here, &there], ""), machines);
    expect_refusal(&on("compare --metric p50", &[&here, &there], "period=1ms period=1ms"), machines);
    let forced = on("compare --metric p50 --format json", &[&here, &there], "--force").json();
    let role = |json: &serde_json::Value, fact: &str| {
        let differences = json["differences"].as_array().unwrap();
        differences.iter().find(|one| one["fact"] == fact).map(|one| one["role"].clone())
    };
    assert_eq!(role(&forced, "CPU model"), Some("prevents".into()), "{forced}");
    let kernels = on("compare --metric p50 --format json", &[&here, &kernel], "");
    assert_ne!(kernels.status, 1, "{kernels:?}");
    assert_eq!((role(&kernels.json(), "kernel"), role(&kernels.json(), "CPU model")), (Some("beside".into()), None));
    assert!(kernels.json()["remarks"].to_string().contains("Also different: kernel ("), "{kernels:?}");

    // The same holds for a baseline.
    let check = |old: &Path, more: &str| on("check", &[&here], &format!("--baseline {} {more}", old.display()));
    expect_refusal(&check(&there, ""), "this run and the baseline are not comparable: they differ in CPU model (");
    let forced = check(&there, "--force");
    let said = forced.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(forced.status != 1 && said.contains("CPU model differs from the baseline: Elbrus 8C there,"), "{forced:?}");
    let json = check(&kernel, "--format json");
    assert!(json.status != 1 && json.json()["run"]["findings"].to_string().contains("baseline_differs"), "{json:?}");

    let page = scratch.path("page.html");
    let said = on("report", &[&here, &slow, &kernel], &format!("-o {}", page.display()));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<strong>Not comparable.</strong> A and B differ in period (1ms and 2ms)."), "{said:?}");
    assert!(page.contains("<li>A and C differ in kernel ("), "{said:?}");
}
