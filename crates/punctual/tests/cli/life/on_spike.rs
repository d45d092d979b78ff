//! The command that runs at spikes: off the measured CPUs, one at a time, without delaying the cell.

use crate::program::{
    Scratch, a_cpu, a_cpu_and_the_others, cell, command, is_installed, is_root, machine, machine_and_scratch, punctual,
    read_json, record, run, set_mode, skip_unless, start_cell,
};
use punctual_model::{Cell, Conditions, Explain, Record};
use std::path::Path;

/// One measured CPU and another; prints that the test is skipped and returns `None` with only one CPU.
pub(crate) fn two_cpus() -> Option<(u32, u32)> {
    let (cpu, others) = a_cpu_and_the_others()?;
    Some((cpu.iter().next()?, others.iter().next()?))
}

#[test]
fn the_spike_command_gets_the_last_wake_up_and_runs_elsewhere() {
    let Some((cpu, other)) = two_cpus() else { return };
    skip_unless!(is_installed("ps", "procps") && is_installed("taskset", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("on-spike");
    let [spike, place] = ["spike", "place"].map(|name| scratch.path(name));
    let at_spike =
        format!("cat > {}; (taskset -cp $$; ps -o ni= -p $$; ps -o cls= -p $$) > {}", spike.display(), place.display());
    let arguments = format!("measure --wait --cpus {cpu} --duration 1h --warm-up 0ms --stop-above 1ns --format json");
    let said = run(command(&arguments).args(["--on-spike", &at_spike])).expect_success();
    let told: serde_json::Value = read_json(spike);
    let max = &said.json()["cells"][0]["summary"]["max_ns"];
    assert_eq!((&told["cpu"], &told["cycle"], &told["latency_ns"]), (&cpu.into(), &0.into(), max));
    let place = std::fs::read_to_string(place).unwrap();
    assert!(place.contains(&format!("affinity list: {other}\n")) && place.contains(" 0\n") && place.contains("TS"));
}

#[test]
fn a_command_that_fails_is_a_finding_and_the_result_stays() {
    let Some((cpu, _)) = two_cpus() else { return };
    let _machine = machine();
    let arguments =
        format!("measure --wait --cpus {cpu} --duration 1h --warm-up 0ms --stop-above 1ns --require max=1ns");
    let said = run(command(&arguments).args(["--on-spike", "echo no such thing >&2; exit 3"]));
    assert_eq!(said.status, 2, "a stop breaks the requirement: {said:?}");
    let text = said.stdout.replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "on_spike command failed in 1 of 1 run: exit status: 3: no such thing; the measurement continued";
    assert!(text.contains(expected), "{said:?}");
}

/// Whether this test may trace the kernel; otherwise prints that it is skipped.
pub(crate) fn may_trace() -> bool {
    let directories = ["/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"];
    let can = is_root() && directories.iter().any(|dir| Path::new(dir).is_dir());
    if !can {
        eprintln!("skipped: needs root and the tracing of the kernel");
    }
    can
}

/// A cell whose wake-ups are all spikes, with a command that leaves a file in `dir` for each of its runs.
pub(crate) fn explained_spikes(cpu: u32, dir: &Path) -> Record {
    std::fs::create_dir(dir).unwrap();
    // Each run spans many spikes; no run may begin during another.
    let at_spike = format!(
        "cd {}; mkdir running || exit 9; cat > $(mktemp spike.XXXXXXXX); sleep 0.3; rmdir running",
        dir.display()
    );
    let explain = Explain { above: Some("1us".parse().unwrap()), keep: 1000, ..Explain::default() };
    let cell = Cell {
        period: "20ms".parse().unwrap(),
        conditions: Conditions { explain: Some(explain), on_spike: Some(at_spike), ..Conditions::default() },
        ..cell("fifo:80", "none", &cpu.to_string(), "3s")
    };
    record(start_cell(command("cell"), &cell))
}

#[test]
fn root_spike_commands_run_one_at_a_time_and_get_the_explanation() {
    let Some((cpu, _)) = two_cpus().filter(|_| may_trace()) else { return };
    let (_machine, scratch) = machine_and_scratch("on-spike-explained");
    let dir = scratch.path("spikes");
    let record = explained_spikes(cpu, &dir);
    let told = record.on_spike.as_ref().unwrap();
    assert_eq!((told.failed, told.reason.as_deref()), (0, None));
    let explained = record.explained.as_ref().unwrap();
    assert_eq!(told.runs + told.skipped, explained.explained);
    assert!(told.runs > 0 || explained.explained == 0, "{told:?}");
    let files: Vec<_> = std::fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.path()).collect();
    assert_eq!(files.len() as u64, told.runs);
    for file in files {
        let explanation: punctual_model::Explanation = read_json(file);
        assert!(explanation.is_complete() && !explanation.phases.is_empty(), "{explanation:?}");
    }
}

#[test]
fn a_command_needs_a_spike_a_cpu_and_a_plan_of_ones_own() {
    punctual("measure --on-spike true")
        .expect_error("on_spike needs a definition of a spike; add stop_above or explain");
    let _machine = machine();
    let all = punctual_sys::sched::affinity(0).unwrap();
    punctual(&format!("measure --wait --cpus {all} --stop-above 1s --duration 50ms --on-spike true"))
        .expect_error("no CPU is left for the command of on_spike: all are measured; measure fewer, like --cpus 0");
    let scratch = Scratch::new("on-spike-foreign");
    let plan = format!(
        "repetitions = 1\nduration = \"50ms\"\ncpus = \"{}\"\nstop_above = \"1s\"\non_spike = \"touch {}\"\n[axes]\nload = [\"none\"]\n",
        a_cpu(),
        scratch.path("touched").display()
    );
    let plan = scratch.file("plan.toml", plan);
    set_mode(&plan, 0o666);
    let said = punctual(&format!("run {} --wait --out {}", plan.display(), scratch.path("out").display()));
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.stderr.contains("would run `touch ") && said.stderr.contains(" at spikes"), "{said:?}");
}
