//! What observing and loading the machine costs, and operations of the kernel beside `perf bench`.

use super::Setup;
use super::engine::{Promise, judge, number, pair, quiet_cell, repeated, rounds, row, run, table, value};
use punctual_model::{CpuSet, Load, LoadPart, Span};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Duration of a snapshot, and CPU time of the per-second log.
pub(super) fn host(setup: &Setup) -> Result<(), String> {
    /// Lengths of the cells whose difference is the cost of a second, s.
    const SECONDS: (u64, u64) = (3, 13);
    let Setup { program, pairs, cpu, cpus, .. } = setup;
    table("host");
    // One snapshot, the checks and their JSON, minus an empty program.
    let [doctor, nothing] =
        rounds(*pairs, [&|| judge(program, "doctor --format json", &[]), &|| judge(program, "--version", &[])])?;
    let added = |of: fn(&super::engine::Finished) -> f64| {
        super::engine::each(&doctor, &nothing, |with, without| (of(with) - of(without)) * 1e3)
    };
    row("snapshot, checks and their JSON, ms", &added(|one| one.wall_s), Promise::AtMost(50.0));
    row("  CPU time, ms", &added(|one| one.cpu_s), Promise::None);
    // CPU time of the log by its own count, and of all helpers of a cell: both processes of a cell that wakes once a
    // second, the longer cell minus the shorter.
    let own = || {
        let record = setup.record(&quiet_cell(setup.one_cpu(), Span(5_000_000_000)))?;
        let rows = record.machine.iter().filter_map(|second| Some((second.reading_us?, second.elapsed)));
        let (us, ns) = rows.fold((0, 0), |sum, (us, elapsed)| (sum.0 + us, sum.1 + elapsed.ns()));
        Ok(us as f64 * 1e5 / ns as f64)
    };
    row("log, % of one CPU", &repeated(*pairs, own)?, Promise::AtMost(0.5));
    let measure = |seconds: u64| {
        let words = format!("measure --wait --period 1s --cpus {cpu} --warm-up 0s --duration {seconds}s --format json");
        Ok(run(program, &words, &[])?.cpu_s)
    };
    let [short, long] = rounds(*pairs, [&|| measure(SECONDS.0), &|| measure(SECONDS.1)])?;
    let percent = |short: &f64, long: &f64| (long - short) * 100.0 / (SECONDS.1 - SECONDS.0) as f64;
    let all = super::engine::each(&short, &long, percent);
    row("  with everything else a cell does, % of one CPU", &all, Promise::AtMost(0.5));
    let others = cpus.minus(&setup.one_cpu());
    let place = if others.is_empty() { "the measured CPU, the only one".to_owned() } else { format!("CPU {others}") };
    println!("the log is read on {place} (test `cli placement::`)");
    Ok(())
}

/// Loads against their promises: hackbench's rate, half of a CPU, time to start and to stop.
pub(super) fn loads(setup: &Setup) -> Result<(), String> {
    /// Messages of one run of hackbench: 10 groups of 20 senders and 20 receivers, as often as `-l` tells.
    const MESSAGES: f64 = (10 * 20 * 20 * 1000) as f64;
    let Setup { program, pairs, cpus, .. } = setup;
    table("loads");
    let load = |words: &str| run(program, &format!("load {words} --format json"), &[])?.json();
    let ours = || {
        // About as long as hackbench.
        let json = load("messaging:groups=10 --for 5s")?;
        let seconds = json["loads"][0]["seconds"].as_array().ok_or("punctual load: no seconds")?;
        let sum = |key: &str| seconds.iter().filter_map(|second| second[key].as_f64()).sum::<f64>();
        Ok(sum("operations") / sum("elapsed_ns") * 1e9)
    };
    let theirs = || {
        let said =
            run(Path::new("hackbench"), "-g 10 -l 1000", &[]).map_err(|err| format!("{err}; install rt-tests"))?;
        let seconds = said.stdout.lines().find_map(|line| line.strip_prefix("Time:")?.trim().parse::<f64>().ok());
        Ok(MESSAGES / seconds.ok_or("hackbench: no `Time:`")?)
    };
    let [ours, theirs] = rounds(*pairs, [&ours, &theirs])?;
    pair("messages a second, messaging / hackbench -g 10", &ours, &theirs, Promise::Within(0.9, 1.1));
    for cpus in [&cpus.iter().take(1).collect(), cpus] {
        let shares = repeated(*pairs, || share(program, cpus))?;
        row(&format!("cpu:50 on CPU {cpus}, %"), &shares, Promise::Within(47.0, 53.0));
    }
    // Every built-in load twice; the longer of its times to full load, and until all its processes have exited.
    let words = Load::KNOWN.iter().map(|form| form.split('[').next().unwrap_or(form));
    let is_built_in = |word: &&str| {
        word.parse::<Load>().is_ok_and(|load| matches!(load.parts(), [part] if !matches!(part, LoadPart::Program(_))))
    };
    for word in words.filter(is_built_in) {
        let (mut start_ms, mut stop_ms) = (0.0_f64, 0.0_f64);
        for json in repeated(2, || load(&format!("{word} --for 1s")))? {
            start_ms = start_ms.max(number(&json, "loads/0/starting_ns")? / 1e6);
            stop_ms = stop_ms.max(number(&json, "stopping_ns")? / 1e6);
        }
        value(&format!("{word}: start, ms"), start_ms, Promise::AtMost(200.0));
        value("  stop, ms", stop_ms, Promise::AtMost(500.0));
    }
    Ok(())
}

/// CPU share of `cpu:50` on `cpus`, from `/proc/stat`, beyond that of the idle machine, %.
fn share(program: &Path, cpus: &CpuSet) -> Result<f64, String> {
    let idle = busy_during(cpus, Duration::from_secs(2))?;
    let mut command = Command::new(program);
    command.args(["load", "cpu:50", "--for", "4s", "--cpus", &cpus.to_string()]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|err| err.to_string())?;
    std::thread::sleep(Duration::from_millis(500));
    let loaded = busy_during(cpus, Duration::from_secs(3));
    child.wait().map_err(|err| err.to_string())?;
    Ok((loaded? - idle) * 100.0)
}

/// The share of the time of `cpus` that was neither idle nor waiting for I/O (proc_stat(5)).
fn busy_during(cpus: &CpuSet, time: Duration) -> Result<f64, String> {
    let read = || -> Result<(f64, f64), String> {
        let text = std::fs::read_to_string("/proc/stat").map_err(|err| err.to_string())?;
        let of_cpu = |cpu: u32| text.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")));
        let mut sums = (0.0, 0.0);
        for line in cpus.iter().filter_map(of_cpu) {
            // user nice system idle iowait irq softirq steal
            let ticks: Vec<f64> = line.split_whitespace().filter_map(|tick| tick.parse().ok()).collect();
            sums.0 += ticks.iter().take(8).sum::<f64>();
            sums.1 += ticks.iter().skip(3).take(2).sum::<f64>();
        }
        Ok(sums)
    };
    let before = read()?;
    std::thread::sleep(time);
    let after = read()?;
    Ok(1.0 - (after.1 - before.1) / (after.0 - before.0).max(1.0))
}

/// Costs of operations beside those of `perf bench`, and the duration of the suite.
///
/// `perf bench mem memcpy` is not compared: 1 MiB of it stays in the caches, and 16 MiB are copied past them, by stores
/// that glibc uses above a share of the shared cache's size.
pub(super) fn cost(setup: &Setup) -> Result<(), String> {
    let Setup { program, pairs, cpu, .. } = setup;
    table("cost of operations, ns, beside perf bench on the same CPU, both FIFO 80");
    let measure = |more: &str| run(program, &format!("measure cost --wait --format json --cpus {cpu} {more}"), &[]);
    // Both under real-time policies, so that neither is preempted: perf reports the mean of a run.
    for (operation, words) in [("syscall/null", "syscall basic -l 200000"), ("ipc/pipe", "sched pipe -l 20000")] {
        let ours = || {
            let json = measure(&format!("--only {operation} --policy fifo:80"))?.json()?;
            number(&json, "cells/0/summary/cost/operations/0/median_ns")
        };
        let [ours, theirs] = rounds(*pairs, [&ours, &|| perf_ns(*cpu, words)])?;
        pair(operation, &ours, &theirs, Promise::Within(0.9, 1.1));
    }
    for (name, more, most) in [("whole suite, s", "", 60.0), ("--quick, s", "--quick", 10.0)] {
        row(name, &repeated(*pairs, || Ok(measure(more)?.wall_s))?, Promise::AtMost(most));
    }
    Ok(())
}

/// The median of several short runs of perf, ns, as the median batch counts. Each run is so long that the creation of
/// the second process, which `sched pipe` includes, is negligible, and too short for real-time throttling.
fn perf_ns(cpu: u32, words: &str) -> Result<f64, String> {
    let once = || {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string(), "chrt", "-f", "80", "perf", "bench"]).args(words.split(' '));
        let output = command.output().map_err(|err| format!("taskset: {err}; install util-linux"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let said = || text.lines().last().unwrap_or_default().to_owned();
        ns_of_one(&text).ok_or_else(|| format!("perf bench: {}; install linux-perf", said()))
    };
    Ok(super::engine::median(&repeated(15, once)?))
}

fn ns_of_one(text: &str) -> Option<f64> {
    let (before, _) = text.split_once("usecs/op")?;
    Some(before.split_whitespace().last()?.parse::<f64>().ok()? * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_says_is_read() {
        let text = "# Executed 1000000 getppid() calls\n     Total time: 0.435 [sec]\n\n       0.435754 usecs/op\n        2294872 ops/sec\n";
        assert_eq!(ns_of_one(text).map(|ns| format!("{ns:.3}")).as_deref(), Some("435.754"));
        assert_eq!(ns_of_one("perf: no such command"), None);
    }
}
