//! Costs of observing the machine: duration of a snapshot, and CPU time of the per-second log.

use super::process::{Finished, finish, quiet_cell};
use super::statistics::row;
use model::{CpuSet, Record, Span};
use std::path::Path;
use std::process::Command;

/// Promises: ms for a snapshot, and percent of one CPU for the log.
const SNAPSHOT_MS: f64 = 50.0;
const LOG_PERCENT: f64 = 0.5;

/// Lengths of the cells whose difference is the cost of a second, s.
const SECONDS: (u64, u64) = (3, 13);

/// Measures both and prints the table.
pub(super) fn report(program: &Path, cpus: &CpuSet, pairs: u64) -> Result<(), String> {
    println!("\nhost: {pairs} pairs");
    println!("{:<46}{:>10}  {:<20}promise", "", "median", "[95 %]");
    snapshot(program, pairs)?;
    log(program, cpus, pairs)
}

/// Duration of `doctor` minus that of an empty program: one snapshot, the checks and their JSON.
fn snapshot(program: &Path, pairs: u64) -> Result<(), String> {
    // Some check always fails, which has an exit status of its own.
    let doctor = || timed("/bin/sh", &["-c", "\"$0\" doctor --format json >/dev/null; [ $? != 1 ]", &text(program)]);
    let nothing = || timed("/bin/sh", &["-c", "\"$0\" --version >/dev/null; [ $? != 1 ]", &text(program)]);
    let (mut wall_ms, mut cpu_ms) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (with, without) = if pair % 2 == 0 { (doctor()?, nothing()?) } else { swapped((nothing()?, doctor()?)) };
        wall_ms.push(with.0 - without.0);
        cpu_ms.push(with.1 - without.1);
    }
    row("snapshot, checks and their JSON, ms", &wall_ms, SNAPSHOT_MS);
    row("  CPU time, ms", &cpu_ms, f64::INFINITY);
    Ok(())
}

/// CPU time of the log by its own count, and of all helpers of a cell: both processes of a cell that wakes once a
/// second, the longer cell minus the shorter.
fn log(program: &Path, cpus: &CpuSet, pairs: u64) -> Result<(), String> {
    let cpu: CpuSet = cpus.iter().last().into_iter().collect();
    let (mut own, mut all) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let record = record(program, &cpu)?;
        let rows = record.machine.iter().filter_map(|second| Some((second.reading_us?, second.elapsed)));
        let (us, ns) = rows.fold((0, 0), |sum, (us, elapsed)| (sum.0 + us, sum.1 + elapsed.ns()));
        own.push(us as f64 * 1e5 / ns as f64);
        let (short, long) = if pair % 2 == 0 {
            (measure_ms(program, &cpu, SECONDS.0)?, measure_ms(program, &cpu, SECONDS.1)?)
        } else {
            swapped((measure_ms(program, &cpu, SECONDS.1)?, measure_ms(program, &cpu, SECONDS.0)?))
        };
        all.push((long - short) / 10.0 / (SECONDS.1 - SECONDS.0) as f64);
    }
    row("log, % of one CPU", &own, LOG_PERCENT);
    row("  with everything else a cell does, % of one CPU", &all, LOG_PERCENT);
    let others = cpus.minus(&cpu);
    let where_from =
        if others.is_empty() { "the measured CPU, the only one".to_owned() } else { format!("CPU {others}") };
    println!("CPU {cpu} is measured, and the log read on {where_from} (test `cli placement::`)");
    Ok(())
}

/// CPU time of both processes of a measurement that wakes once a second, ms.
fn measure_ms(program: &Path, cpu: &CpuSet, seconds: u64) -> Result<f64, String> {
    let words = format!("measure --wait --period 1s --cpus {cpu} --warm-up 0s --duration {seconds}s --format json");
    let finished = finish(Command::new(program).args(words.split(' ')), b"")?;
    Ok(cpu_ms(&finished))
}

/// A cell of 5 s with the defaults of `measure`.
fn record(program: &Path, cpus: &CpuSet) -> Result<Record, String> {
    let cell = quiet_cell(cpus.clone(), Span(5_000_000_000));
    let json = serde_json::to_vec(&cell).map_err(|err| err.to_string())?;
    let finished = finish(Command::new(program).arg("cell"), &json)?;
    serde_json::from_str(&finished.stdout).map_err(|err| format!("punctual cell: {err}"))
}

/// Wall-clock and CPU time of a command, ms.
fn timed(program: &str, arguments: &[&str]) -> Result<(f64, f64), String> {
    let finished = finish(Command::new(program).args(arguments), b"")?;
    Ok((sys::clock::monotonic().since(finished.started).0 as f64 / 1e6, cpu_ms(&finished)))
}

fn cpu_ms(finished: &Finished) -> f64 {
    (finished.reaped.usage.user_us + finished.reaped.usage.system_us) as f64 / 1e3
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn swapped<T>((b, a): (T, T)) -> (T, T) {
    (a, b)
}
