//! `cargo xtask bench`: interleaved pairs of this program and installed peer programs, compared by ratios.
//!
//! Noise that affects both cancels in a pair; the order within pairs alternates. Nothing is asserted: each ratio is
//! printed with its confidence interval and the promise that it belongs to.

mod cost;
mod explain;
mod first_sample;
mod host;
mod import;
mod lab;
mod loads;
mod merge;
mod monitor;
mod process;
mod programs;
mod report;
mod response;
mod samples;
mod statistics;
mod store;
mod trace;
mod watch;

use analysis::median_interval;
use std::path::Path;

/// Cost and results of one run of either program.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Mean latency, ns.
    mean_ns: f64,
    /// Smallest latency, ns.
    min_ns: f64,
    /// CPU time of all its processes for each wake-up, us.
    cpu_us_per_wakeup: f64,
    /// Largest resident set of one process, KiB.
    max_rss_kib: f64,
    /// Due times missed; `None` where the program does not report them.
    missed: Option<f64>,
}

/// The task of both programs: one FIFO 80 thread, memory locked, on one CPU.
#[derive(Debug, Clone, Copy)]
struct Task {
    cpu: u32,
    /// CPU of the main threads; `None` when there is only one CPU.
    other_cpu: Option<u32>,
    cycles: u64,
    period_us: u64,
}

/// A mode of this program and the peer with the same function.
struct Contest {
    name: &'static str,
    /// Periods, us, each with a factor of the requested number of cycles: 10 s, 4 s and 2 s by default.
    periods: &'static [(u64, u64)],
    ours: fn(&Path, Task) -> Result<Run, String>,
    theirs: fn(Task) -> Result<Run, String>,
}

const CONTESTS: [Contest; 3] = [
    Contest {
        name: "measure / cyclictest",
        periods: &[(1000, 1)],
        ours: programs::measure,
        theirs: programs::cyclictest,
    },
    Contest {
        name: "punctual cyclictest / cyclictest",
        periods: &PERIODS,
        ours: programs::punctual_cyclictest,
        theirs: programs::cyclictest,
    },
    Contest {
        name: "measure / jitterdebugger",
        periods: &PERIODS,
        ours: programs::measure,
        theirs: programs::jitterdebugger,
    },
];

/// The periods of the promise.
const PERIODS: [(u64, u64); 3] = [(1000, 1), (200, 2), (50, 4)];

/// Confidence of all intervals, as in all of punctual.
const CONFIDENCE: f64 = 0.95;
const HELP: &str = "\
cargo xtask bench [--pairs N] [--cycles N] [--only WORD]
  against the peers: 10 pairs of 10000 cycles (more at shorter periods) unless told otherwise;
  --only measures the contests whose name holds WORD, like jitterdebugger, or samples, or statistics, or report,
   or merge, or host, or explain, monitor, watch or trace (as root), or import (400 MB below TMPDIR), or store (1 GB), or lab or
   response (fetch kernels), or cost (linux-perf)";

/// Runs the pairs and prints the tables.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let (mut pairs, mut cycles, mut only) = (10, 10_000, "");
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let target = match *argument {
            "--pairs" => &mut pairs,
            "--cycles" => &mut cycles,
            "--only" => {
                only = arguments.next().ok_or_else(|| format!("--only needs a word\n{HELP}"))?;
                continue;
            }
            _ => return Err(format!("`{argument}` is unknown\n{HELP}")),
        };
        let number = arguments.next().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
        *target = number.ok_or_else(|| format!("{argument} needs a number above 0\n{HELP}"))?;
    }
    let program = process::program(root)?;
    if only == "statistics" {
        return statistics::report(&program, pairs);
    }
    if only == "merge" {
        return merge::report(&program, pairs);
    }
    if only == "import" {
        return import::report(&program, pairs);
    }
    if only == "response" {
        return response::report(&program, pairs);
    }
    if only == "lab" {
        return lab::report(&program, pairs);
    }
    if only == "store" {
        return store::report(&program, pairs);
    }
    let cpus = sys::sched::affinity(0).map_err(|err| err.to_string())?;
    let cpu = cpus.iter().last().ok_or("no CPU may be used")?;
    if only == "explain" {
        return explain::report(root, &program, &cpus, pairs);
    }
    if only == "monitor" {
        return monitor::report(&program, cpu, pairs);
    }
    if only == "watch" {
        return watch::report(&program, &cpus, pairs);
    }
    if only == "trace" {
        return trace::report(&program, pairs);
    }
    if only == "cost" {
        return cost::report(&program, cpu, pairs);
    }
    let other_cpu = cpus.iter().find(|other| *other != cpu);
    println!("{pairs} pairs, FIFO 80, CPU {cpu}, memory locked");
    println!("punctual: {}\ncyclictest: {}", program.display(), programs::cyclictest_version()?);

    for contest in CONTESTS.iter().filter(|contest| contest.name.contains(only)) {
        for &(period_us, times) in contest.periods {
            let task = Task { cpu, other_cpu, cycles: cycles * times, period_us };
            println!("\n{}: {} cycles of {period_us} us", contest.name, task.cycles);
            compare(contest, &program, task, pairs)?;
        }
    }
    let shortest = PERIODS.iter().map(|(period_us, times)| (*period_us, cycles * times)).min().unwrap_or((50, cycles));
    let task = Task { cpu, other_cpu, cycles: shortest.1, period_us: shortest.0 };
    if "missed".contains(only) || only == "cyclictest" {
        missed(&program, task, pairs)?;
    }
    if "loads".contains(only) {
        loads::report(&program, &cpus, pairs)?;
    }
    if "host".contains(only) {
        host::report(&program, &cpus, pairs)?;
    }
    if "report".contains(only) {
        report::report(&program, pairs)?;
    }
    if "samples".contains(only) {
        for (period_us, times) in PERIODS {
            samples::report(&program, Task { cpu, other_cpu, cycles: cycles * times, period_us }, pairs)?;
        }
    }
    if only.is_empty() {
        statistics::report(&program, pairs)?;
        import::report(&program, pairs)?;
        merge::report(&program, pairs)?;
        lab::report(&program, pairs)?;
        cost::report(&program, cpu, pairs)?;
        response::report(&program, pairs)?;
    }
    first_sample::report(&program, task)
}

/// Runs the pairs of one contest at one period and prints the table.
fn compare(contest: &Contest, program: &Path, task: Task, pairs: u64) -> Result<(), String> {
    let mut both = Vec::new();
    for pair in 0..pairs {
        let (ours, theirs) = if pair % 2 == 0 {
            let ours = (contest.ours)(program, task)?;
            (ours, (contest.theirs)(task)?)
        } else {
            let theirs = (contest.theirs)(task)?;
            ((contest.ours)(program, task)?, theirs)
        };
        both.push((ours, theirs));
    }
    println!("{:<22}{:>12}{:>12}{:>8}  {:<16}promise", "median", "ours", "theirs", "ratio", "[95 %]");
    let rss_limit =
        4.0 + task.cycles as f64 * 16.0 / 1024.0 / median(both.iter().map(|(_, theirs)| theirs.max_rss_kib));
    for (name, of, limit) in [
        ("mean latency, ns", (|run| run.mean_ns) as fn(&Run) -> f64, 1.0),
        ("min latency, ns", |run| run.min_ns, 1.0),
        ("CPU a wake-up, us", |run| run.cpu_us_per_wakeup, 1.0),
        ("peak RSS, KiB", |run| run.max_rss_kib, rss_limit),
    ] {
        row(name, &both, of, limit);
    }
    Ok(())
}

/// Due times missed, compared with cyclictest, whose latencies give its number of misses.
fn missed(program: &Path, task: Task, pairs: u64) -> Result<(), String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let mut measure =
            || programs::punctual_cyclictest(program, task).map(|run| ours.push(run.missed.unwrap_or(0.0)));
        if pair % 2 == 0 {
            measure()?;
        }
        theirs.push(programs::missed_by_cyclictest(task)?);
        if pair % 2 == 1 {
            measure()?;
        }
    }
    let differences: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs).collect();
    let said = match median_interval(&differences, CONFIDENCE) {
        Some((lower, median, upper)) => {
            format!("{median:.0} [{lower:.0} to {upper:.0}]  <= 0 {}", judged(lower, upper, 0.0))
        }
        None => "(6 pairs at least)".to_owned(),
    };
    let (ours, theirs) = (median(ours.into_iter()), median(theirs.into_iter()));
    let Task { cycles, period_us, .. } = task;
    println!(
        "\nmissed of {cycles} cycles of {period_us} us: ours {ours:.0}, cyclictest {theirs:.0}, difference {said}"
    );
    Ok(())
}

/// Result of an interval against a promise: kept or broken when the interval lies wholly on one side of the limit.
fn judged(lower: f64, upper: f64, limit: f64) -> &'static str {
    match () {
        () if upper <= limit => "kept",
        () if lower > limit => "NOT KEPT",
        () => "not told apart",
    }
}

/// One line of the table.
fn row(name: &str, both: &[(Run, Run)], of: fn(&Run) -> f64, limit: f64) {
    let ratios: Vec<f64> = both.iter().map(|(ours, theirs)| of(ours) / of(theirs)).collect();
    let (ours, theirs) = (median(both.iter().map(|run| of(&run.0))), median(both.iter().map(|run| of(&run.1))));
    let (interval, kept) = match median_interval(&ratios, CONFIDENCE) {
        Some((lower, _, upper)) => (format!("[{lower:.3}-{upper:.3}]"), judged(lower, upper, limit)),
        None => ("(6 pairs at least)".to_owned(), "not told apart"),
    };
    let ratio = median(ratios.into_iter());
    println!("{name:<22}{ours:>12.2}{theirs:>12.2}{ratio:>8.3}  {interval:<16}<= {limit:.2} {kept}");
}

/// The median; for an even number the mean of the middle two. NaN for an empty list.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
    let lower = values.get((values.len().max(1) - 1) / 2).copied().unwrap_or(f64::NAN);
    f64::midpoint(lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_across_the_limit_tells_nothing() {
        for (lower, upper, says) in
            [(0.8, 1.0, "kept"), (0.8, 1.01, "not told apart"), (1.0, 1.2, "not told apart"), (1.01, 1.2, "NOT KEPT")]
        {
            assert_eq!(judged(lower, upper, 1.0), says);
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        for (values, middle) in [(&[3.0][..], 3.0), (&[4.0, 1.0], 2.5), (&[9.0, 1.0, 2.0], 2.0)] {
            assert!((median(values.iter().copied()) - middle).abs() < 1e-12);
        }
        assert!(median([].into_iter()).is_nan());
    }
}
