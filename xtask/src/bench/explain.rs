//! Costs of explaining late wake-ups: added latency, time to stop the trace, CPU time of an event.

use super::process::{finish, quiet_cell};
use super::statistics::row;
use model::{Captures, Cell, Conditions, CpuSet, Explain, ExplainRecord, Load, Record, Span};
use std::path::Path;
use std::process::Command;

/// Promises: us that the default events add to the smallest latency, us that a thread takes to stop the trace, ms of
/// CPU time to read and explain 150 000 events, and CPU time as a share of that of trace-cmd for printing the same
/// events.
const ADDED_US: f64 = 0.6;
const FREEZE_US: f64 = 40.0;
const EXPLAIN_MS: f64 = 200.0;
const OF_TRACE_CMD: f64 = 0.1;
/// CPU time to keep the events of a spike, us, and what that adds to the median latency, us.
const KEEP_US: f64 = 1000.0;
const ADDED_BY_KEEPING_US: f64 = 0.0;
/// Five million events a second.
const READ_NS: f64 = 200.0;
/// Number of events in the third promise.
const EVENTS: f64 = 150_000.0;

/// Measures all of them and prints the table.
pub(super) fn report(root: &Path, program: &Path, cpus: &CpuSet, pairs: u64) -> Result<(), String> {
    println!("\nexplain: {pairs} pairs");
    println!("{:<46}{:>10}  {:<20}promise", "", "median", "[95 %]");
    let cpu: CpuSet = cpus.iter().last().into_iter().collect();
    let plain = quiet_cell(cpu, Span(2_000_000_000));
    let never = Explain { above: Some(Span(3_600_000_000_000)), ..Explain::default() };
    let traced =
        Cell { conditions: Conditions { explain: Some(never.clone()), ..plain.clone().conditions }, ..plain.clone() };
    let stacks = Cell {
        conditions: Conditions { explain: Some(Explain { stacks: true, ..never }), ..plain.clone().conditions },
        ..plain.clone()
    };
    let (mut events, mut with_stacks) = (Added::default(), Added::default());
    for pair in 0..pairs {
        // The order of the three rotates.
        let mut cells = [&plain, &traced, &stacks];
        let turn = usize::try_from(pair % 3).unwrap_or(0);
        cells.rotate_left(turn);
        let mut told = Vec::new();
        for cell in cells {
            told.push(min_and_median_us(&record(program, cell)?)?);
        }
        told.rotate_right(turn);
        if let [plain, traced, stacks] = told[..] {
            events.take(traced, plain);
            with_stacks.take(stacks, traced);
        }
    }
    row("smallest latency, added by events, us", &events.min_us, ADDED_US);
    row("median latency, added by events, us", &events.median_us, f64::INFINITY);
    row("smallest latency, added to that by stacks, us", &with_stacks.min_us, f64::INFINITY);
    row("median latency, added to that by stacks, us", &with_stacks.median_us, f64::INFINITY);
    keeping(program, &plain, pairs)?;
    let read_ns = (0..pairs).map(|_| read_ns(root)).collect::<Result<Vec<_>, _>>()?;
    row("to read an event of the kernel, CPU ns", &read_ns, READ_NS);
    let dir = std::env::temp_dir().join(format!("punctual-bench-explain-{}", std::process::id()));
    let measured = loaded(program, cpus, &dir, pairs);
    // The directory is removed on success and on failure.
    let _ = std::fs::remove_dir_all(&dir);
    measured
}

/// Added latency, for each pair.
#[derive(Default)]
struct Added {
    min_us: Vec<f64>,
    median_us: Vec<f64>,
}

impl Added {
    fn take(&mut self, with: (f64, f64), without: (f64, f64)) {
        self.min_us.push(with.0 - without.0);
        self.median_us.push(with.1 - without.1);
    }
}

/// Costs of keeping the events of spikes, where every wake-up is one.
fn keeping(program: &Path, plain: &Cell, pairs: u64) -> Result<(), String> {
    let told = |captures| {
        let asked = Explain { above: Some(Span(1000)), captures, ..Explain::default() };
        let conditions = Conditions { explain: Some(asked), ..plain.clone().conditions };
        let record = record(program, &Cell { conditions, ..plain.clone() })?;
        let (_, median_us) = min_and_median_us(&record)?;
        let explained = explained(record)?;
        let us = explained.explaining_us.ok_or("punctual cell: no CPU time of explanations")?;
        Ok::<_, String>((us as f64, median_us, explained.explained.max(1) as f64))
    };
    let (mut cpu_us, mut added_us) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (with, without) = if pair % 2 == 0 {
            let with = told(Captures::Spikes)?;
            (with, told(Captures::None)?)
        } else {
            let without = told(Captures::None)?;
            (told(Captures::Spikes)?, without)
        };
        cpu_us.push((with.0 - without.0) / with.2);
        added_us.push(with.1 - without.1);
    }
    row("to keep the events of a spike, CPU us", &cpu_us, KEEP_US);
    row("median latency, added by that, us", &added_us, ADDED_BY_KEEPING_US);
    Ok(())
}

/// Costs of spikes on all CPUs under a load.
fn loaded(program: &Path, cpus: &CpuSet, dir: &Path, pairs: u64) -> Result<(), String> {
    let load: Load = "messaging".parse().map_err(|err| format!("{err}"))?;
    let (mut freeze_us, mut explain_ms, mut of_trace_cmd) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..pairs {
        std::fs::create_dir_all(dir).map_err(|err| format!("{}: {err}", dir.display()))?;
        // An automatic threshold: every other wake-up of a slow machine would exceed a fixed one, and each stops the
        // trace.
        let asked = Explain { keep: 1, ..Explain::default() };
        let cell = Cell {
            load: load.clone(),
            conditions: Conditions { explain: Some(asked), ..quiet_cell(cpus.clone(), Span(3_000_000_000)).conditions },
            ..quiet_cell(cpus.clone(), Span(3_000_000_000))
        };
        let explained = explained(record(program, &cell)?)?;
        freeze_us.extend(explained.longest_freeze.map(|span| span.ns() as f64 / 1e3));
        let ours_us =
            explained.explaining_us.filter(|_| explained.events > 0).map(|us| us as f64 / explained.events as f64);
        explain_ms.extend(ours_us.map(|us| us * EVENTS / 1e3));
        let export = Explain { keep: 1, export: Some(dir.to_owned()), ..Explain::default() };
        record(program, &Cell { conditions: Conditions { explain: Some(export), ..cell.conditions }, ..cell })?;
        of_trace_cmd.extend(trace_cmd_us(dir)?.zip(ours_us).map(|(theirs, ours)| ours / theirs));
        std::fs::remove_dir_all(dir).map_err(|err| format!("{}: {err}", dir.display()))?;
    }
    row("longest time to stop the trace, us", &freeze_us, FREEZE_US);
    row("to take and explain 150 000 events, CPU ms", &explain_ms, EXPLAIN_MS);
    if of_trace_cmd.is_empty() {
        println!("  beside trace-cmd: not installed (apt-get install trace-cmd), or there was no spike");
    } else {
        row("  of what trace-cmd report takes", &of_trace_cmd, OF_TRACE_CMD);
    }
    Ok(())
}

/// CPU time, ns, of the program's own reader for each event, as printed by one of its tests.
fn read_ns(root: &Path) -> Result<f64, String> {
    const NAME: &str = "trace::rate::root_events_of_the_kernel_are_read";
    const EXCHANGES: &str = "50000";
    const LEAST_EVENTS: f64 = 100_000.0;
    let mut test = crate::fuzz::one_test(root, "punctual-cell", NAME);
    let finished = finish(test.env("PUNCTUAL_TRACE_EXCHANGES", EXCHANGES), b"")?;
    let said = finished.stdout.lines().find_map(|line| line.strip_prefix("events ")?.split_once(" us "));
    let (events, us) = said.ok_or_else(|| format!("{NAME}: nothing was read"))?;
    let number = |text: &str| text.parse::<f64>().map_err(|err| format!("{NAME}: {text}: {err}"));
    let events = number(events)?;
    if events < LEAST_EVENTS {
        return Err(format!("{NAME}: only {events} events were read"));
    }
    Ok(number(us)? * 1e3 / events)
}

/// CPU time, us, that `trace-cmd report` takes for each event of the spike in `dir`; `None` without either.
fn trace_cmd_us(dir: &Path) -> Result<Option<f64>, String> {
    let files = std::fs::read_dir(dir).map_err(|err| err.to_string())?.flatten().map(|entry| entry.path());
    let Some(file) = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "dat")) else {
        return Ok(None);
    };
    if Command::new("trace-cmd").arg("--version").output().is_err() {
        return Ok(None);
    }
    let finished = finish(Command::new("trace-cmd").args(["report", "-t"]).arg(file), b"")?;
    let events = finished.stdout.lines().filter(|line| line.contains("] ")).count();
    let us = finished.reaped.usage.user_us + finished.reaped.usage.system_us;
    Ok((events > 0).then(|| us as f64 / events as f64))
}

fn record(program: &Path, cell: &Cell) -> Result<Record, String> {
    let json = serde_json::to_vec(cell).map_err(|err| err.to_string())?;
    let finished = finish(Command::new(program).arg("cell"), &json)?;
    serde_json::from_str(&finished.stdout).map_err(|err| format!("punctual cell: {err}"))
}

fn explained(record: Record) -> Result<ExplainRecord, String> {
    record.explained.ok_or_else(|| "punctual cell: nothing was explained".to_owned())
}

/// Smallest and median latency of a record of one thread, us.
fn min_and_median_us(record: &Record) -> Result<(f64, f64), String> {
    let [thread] = &record.threads[..] else { return Err("punctual cell: one thread was asked for".to_owned()) };
    let known = thread.histogram.min_ns.zip(analysis::quantile(&thread.histogram, 0.5));
    let known = known.map(|(min, median)| (min as f64 / 1e3, median as f64 / 1e3));
    known.ok_or_else(|| "punctual cell: no wake-up".to_owned())
}
