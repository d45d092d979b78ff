//! This program, as a user would call it: `punctual measure`, both of its processes accounted for.

use super::process::{cpu_us_per_wakeup, finish};
use super::{Run, Task};
use std::path::Path;
use std::process::Command;

/// One run, as JSON on stdout.
pub(super) fn run(program: &Path, task: Task) -> Result<Run, String> {
    let arguments = format!(
        "measure --wait --policy fifo:80 --period {}us --cpus {} --warm-up 0s --duration {}us --format json",
        task.period_us,
        task.cpu,
        task.cycles * task.period_us
    );
    let finished = finish(Command::new(program).args(arguments.split(' ')), b"")?;
    let json: serde_json::Value = serde_json::from_str(&finished.stdout).map_err(|err| format!("punctual: {err}"))?;
    let summary = &json["cells"][0]["summary"];
    let number = |key: &str| summary[key].as_f64().ok_or_else(|| format!("punctual: no `{key}` in its JSON"));
    Ok(Run {
        mean_ns: number("mean_ns")?,
        min_ns: number("min_ns")?,
        cpu_us_per_wakeup: cpu_us_per_wakeup(&finished.reaped, task.cycles),
        max_rss_kib: finished.reaped.max_rss_kib as f64,
        missed: Some(number("missed")?),
    })
}
