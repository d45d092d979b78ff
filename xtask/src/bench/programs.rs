//! The compared programs: one run of `measure`, of `punctual cyclictest`, of cyclictest, of jitterdebugger.

use super::process::{cpu_us_per_wakeup, finish};
use super::{Run, Task};
use std::path::Path;
use std::process::Command;

/// Version of cyclictest; without root only its option summary prints it.
pub(super) fn cyclictest_version() -> Result<String, String> {
    let output = Command::new("cyclictest").arg("--help").output();
    let output = output.map_err(|err| format!("cyclictest: {err}; apt-get install rt-tests"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok(text.lines().next().unwrap_or("unknown version").to_owned())
}

/// The options of a task, with nanosecond output (`-N`).
///
/// The main thread is kept off the measured CPU, as `measure` does by default. Otherwise it wakes that CPU 100 times a
/// second, and cycles on the awake CPU lower the minimum (6 us instead of 12 us on a virtual machine).
fn options(task: Task) -> Vec<String> {
    let Task { cpu, cycles, period_us, .. } = task;
    let mut options = format!("-m -N -p 80 -i {period_us} -t 1 -a {cpu} -l {cycles}");
    if let Some(other) = task.other_cpu {
        options += &format!(" --mainaffinity={other}");
    }
    options.split(' ').map(str::to_owned).collect()
}

pub(super) fn cyclictest(task: Task) -> Result<Run, String> {
    run_cyclictest(&mut Command::new("cyclictest"), task)
}

/// One run of `punctual cyclictest`.
pub(super) fn punctual_cyclictest(program: &Path, task: Task) -> Result<Run, String> {
    run_cyclictest(Command::new(program).arg("cyclictest"), task)
}

/// One run with the summary only (`-q`), as JSON on stdout (`--json=-`).
fn run_cyclictest(command: &mut Command, task: Task) -> Result<Run, String> {
    let finished = finish(command.args(options(task)).args(["-q", "--json=-"]), b"")?;
    // The JSON document is surrounded by lines of its own text output.
    let (start, end) = (finished.stdout.find('{'), finished.stdout.rfind('}'));
    let json = start.zip(end).and_then(|(start, end)| finished.stdout.get(start..=end)).ok_or("cyclictest: no JSON")?;
    let json: serde_json::Value = serde_json::from_str(json).map_err(|err| format!("cyclictest: {err}"))?;
    let thread = &json["thread"]["0"];
    let number = |key: &str| thread[key].as_f64().ok_or_else(|| format!("cyclictest: no `{key}` in its JSON"));
    Ok(Run {
        mean_ns: number("avg")?,
        min_ns: number("min")?,
        cpu_us_per_wakeup: cpu_us_per_wakeup(&finished.reaped, task.cycles),
        max_rss_kib: finished.reaped.max_rss_kib as f64,
        missed: thread["missed"].as_f64(),
    })
}

/// Number of due times missed by one run of cyclictest, by the definition of punctual: it prints each latency (`-v`),
/// and continues with the next due time that is not past, without counting.
pub(super) fn missed_by_cyclictest(task: Task) -> Result<f64, String> {
    let finished = finish(Command::new("cyclictest").args(options(task)).arg("-v"), b"")?;
    // "       0:      17:   13644": thread, cycle, latency in ns.
    let latency_ns = |line: &str| line.split(':').nth(2)?.trim().parse::<u64>().ok();
    let period_ns = task.period_us * 1000;
    let missed = |latency_ns: u64| latency_ns.saturating_sub(period_ns).div_ceil(period_ns);
    Ok(finished.stdout.lines().filter_map(latency_ns).map(missed).sum::<u64>() as f64)
}

/// One run of `punctual measure`, as a user would call it, with JSON on stdout. Both of its processes are accounted
/// for.
pub(super) fn measure(program: &Path, task: Task) -> Result<Run, String> {
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

/// One run of jitterdebugger, which writes its results to files.
pub(super) fn jitterdebugger(task: Task) -> Result<Run, String> {
    let Task { cpu, cycles, period_us, .. } = task;
    let dir = std::env::temp_dir().join(format!("punctual-bench-jitterdebugger-{}", std::process::id()));
    let options = format!("-N -p 80 -i {period_us} -a {cpu} -l {cycles} -o {}", dir.display());
    let finished = finish(Command::new("jitterdebugger").args(options.split(' ')), b"");
    let results = std::fs::read_to_string(dir.join("results.json"));
    let _ = std::fs::remove_dir_all(&dir);
    let finished = finished.map_err(|err| format!("{err}; apt-get install jitterdebugger"))?;
    let results = results.map_err(|err| format!("jitterdebugger: {err}"))?;
    let json: serde_json::Value = serde_json::from_str(&results).map_err(|err| format!("jitterdebugger: {err}"))?;
    // The key is the thread's index, not its CPU.
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
