//! `punctual tune` on this machine with knobs whose effects are known: found, and with intervals that hold the effect
//! that a longer experiment determines.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Two plans with knobs that act, each with a setting that nothing reads while it is changed: real-time threads have no
/// timer slack, so that both cannot be knobs of one plan.
const PLANS: [&str; 2] =
    ["timer_slack = [\"50us\", \"1ns\"]\nload_cpus = [\"all\", \"others\"]", "policy = [\"other\", \"fifo:80\"]"];
const IDLE: &str = "prepare.\"sysctl:kernel.printk_ratelimit_burst\" = [\"leave\", \"11\"]";

/// Blocks of the confirmation that determines the effects.
const BLOCKS_OF_TRUTH: &str = "40";

/// Runs the longer experiment and `runs` short ones, and prints how often each knob was found.
pub(super) fn report(program: &Path, cpu: u32, runs: u64) -> Result<(), String> {
    let scratch = std::env::temp_dir().join(format!("punctual-bench-tune-{}", std::process::id()));
    std::fs::create_dir(&scratch).map_err(|err| format!("{}: {err}", scratch.display()))?;
    let all = PLANS.iter().enumerate();
    let result = all.map(|(n, knobs)| counted(program, cpu, runs, &scratch.join(n.to_string()), knobs)).collect();
    let _ = std::fs::remove_dir_all(&scratch);
    result
}

fn counted(program: &Path, cpu: u32, runs: u64, scratch: &Path, knobs: &str) -> Result<(), String> {
    std::fs::create_dir(scratch).map_err(|err| err.to_string())?;
    let plan = scratch.join("plan.toml");
    let text = format!(
        "title = \"Known knobs\"\nduration = \"400ms\"\nwarm_up = \"50ms\"\n[knobs]\n{knobs}\n{IDLE}\n\
         [axes]\nload = [\"messaging\"]\npolicy = [\"other\"]\nperiod = [\"1ms\"]\n"
    );
    std::fs::write(&plan, text).map_err(|err| err.to_string())?;
    let experiment = |name: &str, blocks: &str| -> Result<Vec<Value>, String> {
        let mut command = Command::new(program);
        command.args(["tune", "--response", "p50", "--format", "json", "--blocks", "2", "--confirm", blocks]);
        command.args(["--cpus", &cpu.to_string(), "--out"]).arg(scratch.join(name)).arg(&plan);
        let mut json: Value = tuned(&mut command)?;
        match json["knobs"].take() {
            Value::Array(knobs) => Ok(knobs),
            _ => Err("tune: no knobs".to_owned()),
        }
    };
    let truth = experiment("truth", BLOCKS_OF_TRUTH)?;
    let mut counts = vec![(0u32, 0u32); truth.len()];
    for run in 0..runs {
        let knobs = experiment(&run.to_string(), "8")?;
        for ((knob, truth), (found, held)) in knobs.iter().zip(&truth).zip(&mut counts) {
            let is_found = matches!(knob["answer"]["kind"].as_str(), Some("better" | "worse" | "more_misses"));
            *found += u32::from(is_found);
            let interval = &knob["confirmed"]["ratio"]["interval"];
            let (low, high) = (interval[0].as_f64(), interval[1].as_f64());
            let value = ratio(truth);
            *held += u32::from(low.zip(high).zip(value).is_some_and(|((low, high), v)| (low..=high).contains(&v)));
        }
        println!("{run}: {}", knobs.iter().filter_map(|knob| knob["sentence"].as_str()).collect::<Vec<_>>().join("; "));
    }
    println!("\n{:<44}{:>8}{:>12}{:>20}", "knob", "effect", "named", "interval holds it");
    let acting = truth.len() - 1;
    for (index, (truth, (found, held))) in truth.iter().zip(counts).enumerate() {
        let key = truth["key"].as_str().unwrap_or("?");
        let effect = ratio(truth).map_or("none".to_owned(), |ratio| format!("{ratio:.3}"));
        let held = if index < acting { format!("{held} of {runs}") } else { "-".to_owned() };
        println!("{key:<44}{effect:>8}{:>12}{held:>20}", format!("{found} of {runs}"));
    }
    Ok(())
}

/// The effect in the confirmation.
fn ratio(knob: &Value) -> Option<f64> {
    knob["confirmed"]["ratio"]["value"].as_f64()
}

/// The document that `command` prints; a knob may be undecided.
fn tuned(command: &mut Command) -> Result<Value, String> {
    let output = command.output().map_err(|err| format!("punctual: {err}"))?;
    if !matches!(output.status.code(), Some(0 | 3)) {
        return Err(format!("punctual tune: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|err| format!("punctual tune: {err}"))
}
