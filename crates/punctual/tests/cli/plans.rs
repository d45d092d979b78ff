//! The plans of this repository: they can be read, run no outside program, and say how much they measure.

use model::{LoadPart, Plan, Program, Tool};
use std::path::Path;

#[test]
fn every_plan_is_what_it_and_the_readme_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let paths: Vec<_> = std::fs::read_dir(root.join("plans")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let plan = Plan::parse(&text).unwrap_or_else(|err| panic!("{name}: {err}"));
        assert!(readme.contains(&format!("](plans/{name})")), "{name} is not in README.md");
        let mut parts = plan.axes.load.iter().flat_map(|load| load.parts());
        // A host has nothing else to disturb another machine with.
        let is_host = |program: &Program| plan.roles.host.is_some() && program.tool == Tool::Ping;
        let is_foreign = |part: &LoadPart| matches!(part, LoadPart::Program(program) if !is_host(program));
        assert!(!parts.any(is_foreign), "{name} runs a program of somebody else");
        let axes = &plan.axes;
        let ways = if axes.runtime.is_empty() { axes.method.len() } else { axes.runtime.len() };
        let cells = axes.kernel.len() * axes.load.len() * axes.policy.len() * axes.period.len() * ways;
        let measurements = cells as u64 * u64::from(plan.repetitions);
        let says = format!(" {measurements} measurements, about ");
        assert!(text.contains(&says) || !text.contains(" measurements, about "), "{name}: it is{says}...");
    }
}
