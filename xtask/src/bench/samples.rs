//! Size of a raw sample on disk: Parquet beside jitterdebugger's records.

use super::process::finish;
use super::{CONFIDENCE, Task, judged, median};
use analysis::median_interval;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The promise: a tenth of the peer's record.
const LIMIT: f64 = 0.1;

/// Runs the pairs and prints the bytes per sample of both.
pub(super) fn report(program: &Path, task: Task, pairs: u64) -> Result<(), String> {
    let both = (0..pairs).map(|_| Ok((ours(program, task)?, theirs(task)?))).collect::<Result<Vec<_>, String>>()?;
    let ratios: Vec<f64> = both.iter().map(|(ours, theirs)| ours / theirs).collect();
    let said = match median_interval(&ratios, CONFIDENCE) {
        Some((lower, ratio, upper)) => {
            format!("{ratio:.4} [{lower:.4}-{upper:.4}]  <= {LIMIT} {}", judged(lower, upper, LIMIT))
        }
        None => "(6 pairs at least)".to_owned(),
    };
    let (ours, theirs) = (median(both.iter().map(|both| both.0)), median(both.iter().map(|both| both.1)));
    let Task { cycles, period_us, .. } = task;
    println!(
        "\nbytes a raw sample, {cycles} cycles of {period_us} us: ours {ours:.3}, jitterdebugger {theirs:.2}, ratio {said}"
    );
    Ok(())
}

/// Size of punctual's file, divided by the number of samples that the run reports.
fn ours(program: &Path, task: Task) -> Result<f64, String> {
    let Task { cpu, cycles, period_us, .. } = task;
    let file = scratch("samples").with_extension("parquet");
    let options = format!(
        "measure --wait --policy fifo:80 --period {period_us}us --cpus {cpu} --warm-up 0s --duration {}us --format json --samples {}",
        cycles * period_us,
        file.display()
    );
    let finished = finish(Command::new(program).args(options.split(' ')), b"");
    let bytes = fs::metadata(&file).map(|metadata| metadata.len());
    let _ = fs::remove_file(&file);
    let json: serde_json::Value = serde_json::from_str(&finished?.stdout).map_err(|err| format!("punctual: {err}"))?;
    let samples = json["cells"][0]["summary"]["samples"].as_f64().ok_or("punctual: no `samples` in its JSON")?;
    Ok(bytes.map_err(|err| format!("punctual: {}: {err}", file.display()))? as f64 / samples)
}

/// Size of jitterdebugger's file of raw samples, divided by the requested number of cycles.
fn theirs(task: Task) -> Result<f64, String> {
    let Task { cpu, cycles, period_us, .. } = task;
    let dir = scratch("jitterdebugger-samples");
    let options = format!("-s -p 80 -i {period_us} -a {cpu} -l {cycles} -o {}", dir.display());
    let finished = finish(Command::new("jitterdebugger").args(options.split(' ')), b"");
    let bytes = fs::metadata(dir.join("samples.raw")).map(|metadata| metadata.len());
    let _ = fs::remove_dir_all(&dir);
    finished.map_err(|err| format!("{err}; apt-get install jitterdebugger"))?;
    Ok(bytes.map_err(|err| format!("jitterdebugger: samples.raw: {err}"))? as f64 / cycles as f64)
}

/// A unique path among the temporary files.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("punctual-bench-{name}-{}", std::process::id()))
}
