//! The peer jitterdebugger (Debian package of that name).

use super::process::{cpu_us_per_wakeup, finish};
use super::{Run, Task};
use std::process::Command;

/// One run, whose results it writes to files.
pub(super) fn run(task: Task) -> Result<Run, String> {
    let Task { cpu, cycles, period_us, .. } = task;
    let dir = std::env::temp_dir().join(format!("punctual-bench-jitterdebugger-{}", std::process::id()));
    let options = format!("-N -p 80 -i {period_us} -a {cpu} -l {cycles} -o {}", dir.display());
    let finished = finish(Command::new("jitterdebugger").args(options.split(' ')), b"");
    let results = std::fs::read_to_string(dir.join("results.json"));
    let _ = std::fs::remove_dir_all(&dir);
    let finished = finished.map_err(|err| format!("{err}; apt-get install jitterdebugger"))?;
    let results = results.map_err(|err| format!("jitterdebugger: {err}"))?;
    let json: serde_json::Value = serde_json::from_str(&results).map_err(|err| format!("jitterdebugger: {err}"))?;
    // The key is the thread's index, whatever its CPU.
    let thread = &json["cpu"]["0"];
    let number = |key: &str| thread[key].as_f64().ok_or_else(|| format!("jitterdebugger: no `{key}` in its results"));
    Ok(Run {
        mean_ns: number("avg")?,
        min_ns: number("min")?,
        cpu_us_per_wakeup: cpu_us_per_wakeup(&finished.reaped, task.cycles),
        max_rss_kib: finished.reaped.max_rss_kib as f64,
        missed: None,
    })
}
