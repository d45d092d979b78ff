//! Costs of operations beside those of `perf bench`, and the duration of the suite.

use super::{CONFIDENCE, judged, median, process};
use analysis::median_interval;
use analysis::wording::duration;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Runs of perf in one pair, of which the median counts, as the median batch does. Each run is so long that the
/// creation of the second process, which `sched pipe` includes, is negligible, and too short for real-time throttling.
const RUNS: usize = 15;

/// The promise: the ratio lies between these limits.
const LEAST: f64 = 0.9;
const MOST: f64 = 1.1;

/// One operation, and the equivalent benchmark of perf. `perf bench mem memcpy` is not one: 1 MiB of it stays in the
/// caches, and 16 MiB are copied past them, by stores that glibc uses above a share of the shared cache's size.
struct Pair {
    operation: &'static str,
    theirs: &'static [&'static str],
}

const PAIRS: [Pair; 2] = [
    Pair { operation: "syscall/null", theirs: &["syscall", "basic", "-l", "200000"] },
    Pair { operation: "ipc/pipe", theirs: &["sched", "pipe", "-l", "20000"] },
];

fn us_of_one(text: &str) -> Option<f64> {
    Some(number_before(text, "usecs/op")? * 1e3)
}

fn number_before(text: &str, unit: &str) -> Option<f64> {
    text.split(unit).next().filter(|before| before.len() < text.len())?.split_whitespace().last()?.parse().ok()
}

pub(super) fn report(program: &Path, cpu: u32, pairs: u64) -> Result<(), String> {
    // Both under real-time policies, so that neither is preempted: perf reports the mean of a run.
    println!("\ncost of operations, beside perf bench on the same CPU ({cpu}), both FIFO 80");
    println!("{:<22}{:>12}{:>12}{:>8}  {:<16}promise", "median", "ours", "perf", "ratio", "[95 %]");
    for pair in PAIRS {
        let mut both = Vec::new();
        for turn in 0..pairs {
            let both_now = if turn % 2 == 0 {
                let ours = ours(program, pair.operation, cpu)?;
                (ours, theirs(&pair, cpu)?)
            } else {
                let theirs = theirs(&pair, cpu)?;
                (ours(program, pair.operation, cpu)?, theirs)
            };
            both.push(both_now);
        }
        let ratios: Vec<f64> = both.iter().map(|(ours, theirs)| ours / theirs).collect();
        let (ours, theirs) = (median(both.iter().map(|both| both.0)), median(both.iter().map(|both| both.1)));
        let said = median_interval(&ratios, CONFIDENCE).map_or_else(
            || "(6 pairs at least)".to_owned(),
            |(lower, _, upper)| format!("[{lower:.3}-{upper:.3}]  {LEAST}-{MOST} {}", within(lower, upper)),
        );
        let ratio = median(ratios.iter().copied());
        println!("{:<22}{:>12}{:>12}{ratio:>8.3}  {said}", pair.operation, duration(ours), duration(theirs));
    }
    for (name, arguments, limit) in [("whole suite", &[][..], 60.0), ("--quick", &["--quick"], 10.0)] {
        let times: Result<Vec<f64>, String> = (0..pairs).map(|_| seconds(program, cpu, arguments)).collect();
        let times = times?;
        let said = median_interval(&times, CONFIDENCE).map_or_else(
            || "(6 runs at least)".to_owned(),
            |(lower, _, upper)| format!("[{lower:.1}-{upper:.1}]  <= {limit} s {}", judged(lower, upper, limit)),
        );
        println!("{name:<22}{:>10.1} s  {said}", median(times.into_iter()));
    }
    Ok(())
}

fn within(lower: f64, upper: f64) -> &'static str {
    match () {
        () if lower >= LEAST && upper <= MOST => "kept",
        () if lower > MOST || upper < LEAST => "NOT KEPT",
        () => "not told apart",
    }
}

fn measure(program: &Path, cpu: u32, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(["measure", "cost", "--wait", "--format", "json", "--cpus", &cpu.to_string()]).args(arguments);
    Ok(process::finish(&mut command, b"")?.stdout)
}

/// The median of an operation, ns.
fn ours(program: &Path, operation: &str, cpu: u32) -> Result<f64, String> {
    let text = measure(program, cpu, &["--only", operation, "--policy", "fifo:80"])?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|err| err.to_string())?;
    let found = json["cells"][0]["summary"]["cost"]["operations"][0]["median_ns"].as_f64();
    found.ok_or_else(|| format!("{operation} was not measured"))
}

/// The median of several short runs of perf, ns.
fn theirs(pair: &Pair, cpu: u32) -> Result<f64, String> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut command = Command::new("taskset");
        let output =
            command.args(["-c", &cpu.to_string(), "chrt", "-f", "80", "perf", "bench"]).args(pair.theirs).output();
        let output = output.map_err(|err| format!("taskset: {err}; install util-linux"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let said = || text.lines().last().unwrap_or_default().to_owned();
        times.push(us_of_one(&text).ok_or_else(|| format!("perf bench: {}; install linux-perf", said()))?);
    }
    Ok(median(times.into_iter()))
}

/// Duration of the program, s, from start to end.
fn seconds(program: &Path, cpu: u32, arguments: &[&str]) -> Result<f64, String> {
    let began = Instant::now();
    measure(program, cpu, arguments)?;
    Ok(began.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_says_is_read() {
        let text = "# Executed 1000000 getppid() calls\n     Total time: 0.435 [sec]\n\n       0.435754 usecs/op\n        2294872 ops/sec\n";
        assert_eq!(us_of_one(text).map(|ns| format!("{ns:.3}")).as_deref(), Some("435.754"));
        assert_eq!(us_of_one("perf: no such command"), None);
    }
}
