//! This program beside its peers: one FIFO 80 thread on one CPU, memory locked.

use super::Setup;
use super::engine::{
    Finished, Promise, Scratch, each, finish, median, number, pair, quiet_cell, repeated, rounds, row, table,
};
use punctual_model::Span;
use std::path::Path;
use std::process::Command;

/// The periods of the promise, us, each with a factor of the requested number of cycles: 10 s, 4 s and 2 s by default.
const PERIODS: [(u64, u64); 3] = [(1000, 1), (200, 2), (50, 4)];

/// Cost and results of one run of a program.
struct Run {
    mean_ns: f64,
    min_ns: f64,
    /// CPU time of all its processes for each wake-up, us.
    cpu_us: f64,
    rss_mb: f64,
    /// Due times missed; `None` where the program does not report them.
    missed: Option<f64>,
}

#[derive(Clone, Copy)]
struct Task<'a> {
    setup: &'a Setup,
    cycles: u64,
    period_us: u64,
}

impl Setup {
    /// The tasks of the first `n` periods.
    fn tasks(&self, n: usize) -> impl Iterator<Item = Task<'_>> {
        let task = |&(period_us, times)| Task { setup: self, cycles: self.cycles * times, period_us };
        PERIODS.iter().take(n).map(task)
    }
}

pub(super) fn cyclictest(setup: &Setup) -> Result<(), String> {
    contest(setup, 1, "measure / cyclictest", Task::measure, |task| task.cyclictest(Path::new("cyclictest"), ""))
}

pub(super) fn clone(setup: &Setup) -> Result<(), String> {
    let theirs = |task: Task<'_>| task.cyclictest(Path::new("cyclictest"), "");
    contest(setup, 3, "punctual cyclictest / cyclictest", Task::clone_of_cyclictest, theirs)
}

pub(super) fn jitterdebugger(setup: &Setup) -> Result<(), String> {
    contest(setup, 3, "measure / jitterdebugger", Task::measure, Task::jitterdebugger)
}

/// The pairs of two programs with the same function, at the first `n` periods.
fn contest<'a>(
    setup: &'a Setup,
    n: usize,
    name: &str,
    ours: fn(Task<'a>) -> Result<Run, String>,
    theirs: fn(Task<'a>) -> Result<Run, String>,
) -> Result<(), String> {
    for task in setup.tasks(n) {
        let [ours, theirs] = rounds(setup.pairs, [&|| ours(task), &|| theirs(task)])?;
        table(format_args!("{name}: {} cycles of {} us", task.cycles, task.period_us));
        let of = |of: fn(&Run) -> f64| [&ours, &theirs].map(|runs| runs.iter().map(of).collect::<Vec<f64>>());
        let [our_rss, their_rss] = of(|run| run.rss_mb);
        // 4 times the peer's, and 16 bytes a cycle.
        let most = 4.0 + task.cycles as f64 * 16.0 / 1024.0 / 1024.0 / median(&their_rss);
        for (name, [ours, theirs], most) in [
            ("mean latency, ns", of(|run| run.mean_ns), 1.0),
            ("min latency, ns", of(|run| run.min_ns), 1.0),
            ("CPU a wake-up, us", of(|run| run.cpu_us), 1.0),
            ("peak RSS, MB", [our_rss, their_rss], most),
        ] {
            pair(name, &ours, &theirs, Promise::AtMost(most));
        }
    }
    Ok(())
}

/// Due times missed, compared with cyclictest, whose latencies give its number of misses.
pub(super) fn missed(setup: &Setup) -> Result<(), String> {
    let task = setup.tasks(3).last().ok_or("no period")?;
    let ours = || Ok(task.clone_of_cyclictest()?.missed.unwrap_or(0.0));
    let [ours, theirs] = rounds(setup.pairs, [&ours, &|| task.missed_by_cyclictest()])?;
    table(format_args!("missed of {} cycles of {} us", task.cycles, task.period_us));
    row("ours", &ours, Promise::None);
    row("cyclictest", &theirs, Promise::None);
    row("difference", &each(&ours, &theirs, |ours, theirs| ours - theirs), Promise::AtMost(0.0));
    Ok(())
}

/// Size of a raw sample on disk: Parquet beside jitterdebugger's records.
pub(super) fn samples(setup: &Setup) -> Result<(), String> {
    for task in setup.tasks(3) {
        let [ours, theirs] = rounds(setup.pairs, [&|| task.bytes_a_sample(), &|| task.bytes_of_jitterdebugger()])?;
        table(format_args!("bytes a raw sample, {} cycles of {} us", task.cycles, task.period_us));
        pair("bytes", &ours, &theirs, Promise::AtMost(0.1));
    }
    Ok(())
}

/// Time from just before `fork` of the measuring process to its first wake-up.
pub(super) fn first_sample(setup: &Setup) -> Result<(), String> {
    let once = || {
        let (Finished { started, .. }, record) = setup.recorded(&quiet_cell(setup.one_cpu(), Span(20_000_000)))?;
        // With so few samples, all of them are among the largest 1000, each with its cycle.
        let first = record.threads.first().and_then(|thread| thread.worst.iter().min_by_key(|worst| worst.cycle));
        let first = first.ok_or("punctual cell: no sample")?;
        Ok(record.started.since(started).0 as f64 / 1e6 + first.cycle as f64 + first.latency_ns as f64 / 1e6)
    };
    table("first sample after exec of `punctual cell`");
    row("ms", &repeated(20, once)?, Promise::AtMost(20.0));
    Ok(())
}

impl Task<'_> {
    /// One run of `punctual measure`, as a user would call it. Both of its processes are accounted for.
    fn measure(self) -> Result<Run, String> {
        let finished = self.measured("", &[])?;
        let json = finished.json()?;
        let number = |key: &str| number(&json, &format!("cells/0/summary/{key}"));
        self.run(&finished, number("mean_ns")?, number("min_ns")?, number("missed").ok())
    }

    fn measured(self, more: &str, paths: &[&Path]) -> Result<Finished, String> {
        let Task { setup, cycles, period_us } = self;
        let words = format!(
            "measure --wait --policy fifo:80 --period {period_us}us --cpus {} --warm-up 0s --duration {}us --format json {more}",
            setup.cpu,
            cycles * period_us
        );
        super::engine::run(&setup.program, &words, paths)
    }

    fn clone_of_cyclictest(self) -> Result<Run, String> {
        self.cyclictest(&self.setup.program, "cyclictest ")
    }

    /// One run with the summary only (`-q`), as JSON on stdout (`--json=-`).
    fn cyclictest(self, program: &Path, command: &str) -> Result<Run, String> {
        let words = format!("{command}{} -q --json=-", self.options());
        let finished = super::engine::run(program, &words, &[])?;
        let json = finished.json()?;
        let number = |key: &str| number(&json, &format!("thread/0/{key}"));
        self.run(&finished, number("avg")?, number("min")?, number("missed").ok())
    }

    fn run(self, finished: &Finished, mean_ns: f64, min_ns: f64, missed: Option<f64>) -> Result<Run, String> {
        Ok(Run { mean_ns, min_ns, cpu_us: finished.cpu_us(self.cycles), rss_mb: finished.rss_mb, missed })
    }

    /// Options of cyclictest, with nanosecond output (`-N`).
    ///
    /// The main thread is kept off the measured CPU, as `measure` does by default. Otherwise it wakes that CPU 100
    /// times a second, and cycles on the awake CPU lower the minimum (6 us instead of 12 us on a virtual machine).
    fn options(self) -> String {
        let Task { setup, cycles, period_us } = self;
        let other = setup.cpus.iter().find(|other| *other != setup.cpu);
        let affinity = other.map(|other| format!(" --mainaffinity={other}")).unwrap_or_default();
        format!("-m -N -p 80 -i {period_us} -t 1 -a {} -l {cycles}{affinity}", setup.cpu)
    }

    /// Number of due times missed by one run of cyclictest, by the definition of punctual: it prints each latency
    /// (`-v`), and continues with the next due time that is not past, without counting.
    fn missed_by_cyclictest(self) -> Result<f64, String> {
        let words = format!("{} -v", self.options());
        let finished = super::engine::run(Path::new("cyclictest"), &words, &[])?;
        // "       0:      17:   13644": thread, cycle, latency in ns.
        let latency_ns = |line: &str| line.split(':').nth(2)?.trim().parse::<u64>().ok();
        let period_ns = self.period_us * 1000;
        let missed = |latency_ns: u64| latency_ns.saturating_sub(period_ns).div_ceil(period_ns);
        Ok(finished.stdout.lines().filter_map(latency_ns).map(missed).sum::<u64>() as f64)
    }

    /// One run of jitterdebugger, which writes its results to files.
    fn jitterdebugger(self) -> Result<Run, String> {
        let scratch = Scratch::new()?;
        let finished = self.jitterdebugger_into(&scratch, "-N")?;
        let results = std::fs::read(scratch.path("out/results.json")).map_err(|err| format!("results.json: {err}"))?;
        let json = serde_json::from_slice(&results).map_err(|err| format!("jitterdebugger: {err}"))?;
        // The key is the thread's index, not its CPU.
        let number = |key: &str| number(&json, &format!("cpu/0/{key}"));
        self.run(&finished, number("avg")?, number("min")?, None)
    }

    fn jitterdebugger_into(self, scratch: &Scratch, option: &str) -> Result<Finished, String> {
        let Task { setup, cycles, period_us } = self;
        let options = format!("{option} -p 80 -i {period_us} -a {} -l {cycles} -o", setup.cpu);
        finish(Command::new("jitterdebugger").args(options.split(' ')).arg(scratch.path("out")), b"")
            .map_err(|err| format!("{err}; apt-get install jitterdebugger"))
    }

    /// Size of punctual's file, divided by the number of samples that the run reports.
    fn bytes_a_sample(self) -> Result<f64, String> {
        let scratch = Scratch::new()?;
        let file = scratch.path("samples.parquet");
        let json = self.measured("--samples", &[&file])?.json()?;
        Ok(size(&file)? / number(&json, "cells/0/summary/samples")?)
    }

    /// Size of jitterdebugger's file of raw samples, divided by the requested number of cycles.
    fn bytes_of_jitterdebugger(self) -> Result<f64, String> {
        let scratch = Scratch::new()?;
        self.jitterdebugger_into(&scratch, "-s")?;
        Ok(size(&scratch.path("out/samples.raw"))? / self.cycles as f64)
    }
}

fn size(file: &Path) -> Result<f64, String> {
    Ok(std::fs::metadata(file).map_err(|err| format!("{}: {err}", file.display()))?.len() as f64)
}
