//! Loads against their promises: hackbench's rate, half of a CPU, time to start and to stop.

use super::{CONFIDENCE, judged, median};
use analysis::median_interval;
use model::{CpuSet, Load, LoadPart};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Messages of one run of hackbench: 10 groups of 20 senders and 20 receivers.
const LOOPS: u64 = 1000;
const MESSAGES: f64 = (10 * 20 * 20 * LOOPS) as f64;
/// Duration of `messaging`, s: about that of hackbench.
const SECONDS: &str = "5s";
/// Promises: rates within a tenth, a share of the CPU within 3 points, ms to full load and until all processes have
/// exited.
const RATE: (f64, f64) = (0.9, 1.1);
const POINTS: f64 = 3.0;
const START_MS: f64 = 200.0;
const STOP_MS: f64 = 500.0;

/// Runs all three and prints the results.
pub(super) fn report(program: &Path, cpus: &CpuSet, pairs: u64) -> Result<(), String> {
    rate(program, pairs)?;
    let one: CpuSet = cpus.iter().take(1).collect();
    for cpus in [&one, cpus] {
        share(program, cpus, pairs)?;
    }
    start_and_stop(program)
}

/// `messaging` beside hackbench with the same groups, message and process counts.
fn rate(program: &Path, pairs: u64) -> Result<(), String> {
    let mut ratios = Vec::new();
    for pair in 0..pairs {
        let both = if pair % 2 == 0 { (ours(program)?, theirs()?) } else { swapped((theirs()?, ours(program)?)) };
        ratios.push(both.0 / both.1);
    }
    let said = match median_interval(&ratios, CONFIDENCE) {
        Some((lower, median, upper)) => {
            let within = lower >= RATE.0 && upper <= RATE.1;
            format!("{median:.3} [{lower:.3}-{upper:.3}]  {}", if within { "kept" } else { "not told apart" })
        }
        None => format!("{:.3} (6 pairs at least)", median(ratios.into_iter())),
    };
    println!("\nmessages a second, messaging / hackbench -g 10: ratio {said}  within {}-{}", RATE.0, RATE.1);
    Ok(())
}

fn swapped((theirs, ours): (f64, f64)) -> (f64, f64) {
    (ours, theirs)
}

fn ours(program: &Path) -> Result<f64, String> {
    let json = load(program, &["messaging:groups=10", "--for", SECONDS])?;
    let seconds = json["loads"][0]["seconds"].as_array().ok_or("punctual load: no seconds")?;
    let sum = |key: &str| seconds.iter().filter_map(|second| second[key].as_f64()).sum::<f64>();
    Ok(sum("operations") / sum("elapsed_ns") * 1e9)
}

fn theirs() -> Result<f64, String> {
    let output = Command::new("hackbench").args(["-g", "10", "-l", &LOOPS.to_string()]).output();
    let output = output.map_err(|err| format!("hackbench: {err}; apt-get install rt-tests"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let seconds = said.lines().find_map(|line| line.strip_prefix("Time:")?.trim().parse::<f64>().ok());
    Ok(MESSAGES / seconds.ok_or("hackbench: no `Time:`")?)
}

/// CPU share of `cpu:50` on `cpus`, from `/proc/stat`, beyond that of the idle machine.
fn share(program: &Path, cpus: &CpuSet, runs: u64) -> Result<(), String> {
    let list = cpus.to_string();
    let shares = (0..runs).map(|_| {
        let idle = busy_during(cpus, Duration::from_secs(2))?;
        let mut child = Command::new(program)
            .args(["load", "cpu:50", "--for", "4s", "--cpus", &list])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .map_err(|err| err.to_string())?;
        std::thread::sleep(Duration::from_millis(500));
        let loaded = busy_during(cpus, Duration::from_secs(3));
        child.wait().map_err(|err| err.to_string())?;
        Ok((loaded? - idle) * 100.0)
    });
    let shares = shares.collect::<Result<Vec<f64>, String>>()?;
    let off: Vec<f64> = shares.iter().map(|share| (share - 50.0).abs()).collect();
    let kept = median_interval(&off, CONFIDENCE)
        .map_or("(6 pairs at least)", |(lower, _, upper)| judged(lower, upper, POINTS));
    let list = shares.iter().map(|share| format!("{share:.1}")).collect::<Vec<_>>().join(" ");
    println!("cpu:50 on CPU {cpus}: {list} %  within {POINTS} points {kept}");
    Ok(())
}

/// The share of the time of `cpus` that was neither idle nor waiting for I/O (proc_stat(5)).
fn busy_during(cpus: &CpuSet, time: Duration) -> Result<f64, String> {
    let read = || -> Result<(f64, f64), String> {
        let text = std::fs::read_to_string("/proc/stat").map_err(|err| err.to_string())?;
        let of_cpu =
            |cpu: u32| text.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")).map(str::to_owned));
        let mut sums = (0.0, 0.0);
        for line in cpus.iter().filter_map(of_cpu) {
            let ticks: Vec<f64> = line.split_whitespace().filter_map(|tick| tick.parse().ok()).collect();
            // user nice system idle iowait irq softirq steal
            sums.0 += ticks.iter().take(8).sum::<f64>();
            sums.1 += ticks.iter().skip(3).take(2).sum::<f64>();
        }
        Ok(sums)
    };
    let before = read()?;
    std::thread::sleep(time);
    let after = read()?;
    let all = after.0 - before.0;
    Ok(1.0 - (after.1 - before.1) / all.max(1.0))
}

/// Runs every built-in load twice; the longer of its times to full load, and until all its processes have exited.
fn start_and_stop(program: &Path) -> Result<(), String> {
    let words = Load::KNOWN.iter().map(|form| form.split('[').next().unwrap_or(form));
    let is_built_in = |word: &&str| {
        word.parse::<Load>().is_ok_and(|load| matches!(load.parts(), [part] if !matches!(part, LoadPart::Program(_))))
    };
    let mut slowest = (("", 0.0), ("", 0.0));
    println!("\n{:<12}{:>10}{:>10}", "load", "start, ms", "stop, ms");
    for word in words.filter(is_built_in) {
        let (mut start_ms, mut stop_ms) = (0.0_f64, 0.0_f64);
        for _ in 0..2 {
            let json = load(program, &[word, "--for", "1s"])?;
            start_ms = start_ms.max(json["loads"][0]["starting_ns"].as_f64().ok_or("no starting_ns")? / 1e6);
            stop_ms = stop_ms.max(json["stopping_ns"].as_f64().ok_or("no stopping_ns")? / 1e6);
        }
        println!("{word:<12}{start_ms:>10.1}{stop_ms:>10.1}");
        if start_ms > slowest.0.1 {
            slowest.0 = (word, start_ms);
        }
        if stop_ms > slowest.1.1 {
            slowest.1 = (word, stop_ms);
        }
    }
    for (what, (word, ms), limit) in [("start", slowest.0, START_MS), ("stop", slowest.1, STOP_MS)] {
        println!("slowest {what}: {word} {ms:.0} ms  < {limit} {}", judged(ms, ms, limit));
    }
    Ok(())
}

/// `punctual load ARGUMENTS`, its result as JSON.
fn load(program: &Path, arguments: &[&str]) -> Result<serde_json::Value, String> {
    let began = Instant::now();
    let output = Command::new(program).arg("load").args(arguments).args(["--format", "json"]).output();
    let output = output.map_err(|err| format!("{}: {err}", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("punctual load {}: {} after {:?}", arguments.join(" "), said.trim(), began.elapsed()));
    }
    serde_json::from_slice(&output.stdout).map_err(|err| format!("punctual load: {err}"))
}
