//! The peer: Debian's cyclictest (package rt-tests).

use super::process::{cpu_us_per_wakeup, finish};
use super::{Run, Task};
use std::process::Command;

/// What cyclictest says it is; its options are all it tells without root.
pub(super) fn version() -> Result<String, String> {
    let output = Command::new("cyclictest").arg("--help").output();
    let output = output.map_err(|err| format!("cyclictest: {err}; apt-get install rt-tests"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok(text.lines().next().unwrap_or("unknown version").to_owned())
}

/// One run with nanosecond output (`-N`), summary only (`-q`), as JSON on stdout (`--json=-`).
///
/// Its main thread is kept off the measured CPU, as ours is: otherwise it wakes that CPU 100 times a second, and the
/// cycles that find the CPU awake make a smaller minimum (6 us instead of 12 us on a virtual machine).
pub(super) fn run(task: Task) -> Result<Run, String> {
    let mut arguments = format!("-q -m -N -p 80 -i 1000 -t 1 -a {} -l {} --json=-", task.cpu, task.cycles);
    if let Some(other) = task.other_cpu {
        arguments += &format!(" --mainaffinity={other}");
    }
    let finished = finish(Command::new("cyclictest").args(arguments.split(' ')), b"")?;
    // The JSON document stands between lines of its own text output.
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
    })
}
