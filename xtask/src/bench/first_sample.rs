//! Time from the start of the measuring process to its first sample.

use super::process::{Finished, finish, quiet_cell};
use super::{CONFIDENCE, Task, judged};
use analysis::median_interval;
use model::{Record, Span};
use std::path::Path;
use std::process::Command;

const RUNS: usize = 20;
/// The promise, ms from just before `fork` to the first wake-up.
const LIMIT_MS: f64 = 20.0;

/// Runs short cells and prints the time from the start of the process to its first wake-up.
pub(super) fn report(program: &Path, task: Task) -> Result<(), String> {
    let times: Vec<f64> = (0..RUNS).map(|_| once(program, task)).collect::<Result<_, _>>()?;
    let (lower, median, upper) = median_interval(&times, CONFIDENCE).ok_or("too few runs")?;
    let kept = judged(lower, upper, LIMIT_MS);
    println!(
        "\nfirst sample after exec: {median:.1} ms [{lower:.1}-{upper:.1}], {RUNS} runs of `punctual cell`  < {LIMIT_MS} ms {kept}"
    );
    Ok(())
}

/// Milliseconds of one run.
fn once(program: &Path, task: Task) -> Result<f64, String> {
    let text = |err: &dyn std::fmt::Display| format!("punctual cell: {err}");
    let cell = quiet_cell([task.cpu].into_iter().collect(), Span(20_000_000));
    let input = serde_json::to_vec(&cell).map_err(|err| text(&err))?;
    let Finished { started, stdout, .. } = finish(Command::new(program).arg("cell"), &input)?;
    let record: Record = serde_json::from_str(&stdout).map_err(|err| text(&err))?;
    // With so few samples, all of them are among the largest 1000, each with its cycle.
    let first = record.threads.first().and_then(|thread| thread.worst.iter().min_by_key(|worst| worst.cycle));
    let first = first.ok_or("punctual cell: no sample")?;
    let due = record.started.since(started).0 + i64::try_from(first.cycle).map_err(|err| text(&err))? * 1_000_000;
    Ok((due + first.latency_ns) as f64 / 1e6)
}
