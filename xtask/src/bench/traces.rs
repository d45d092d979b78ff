//! Costs of the kernel's trace: explaining late wake-ups, watching threads, recorded traces, a monitor.

use super::Setup;
use super::engine::{
    Finished, Promise, Scratch, each, finish, min_and_median_us, number, quiet_cell, repeated, rounds, row, run, table,
};
use punctual_model::{Captures, Cell, Conditions, Explain, ExplainRecord, Record, Span};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Added latency, time to stop the trace, and CPU time of an event.
pub(super) fn explain(setup: &Setup) -> Result<(), String> {
    table("explain");
    let plain = quiet_cell(setup.one_cpu(), Span(2_000_000_000));
    let never = Explain { above: Some(Span(3_600_000_000_000)), ..Explain::default() };
    let with_stacks = Explain { stacks: true, ..never.clone() };
    let [events, stacks] = [never, with_stacks].map(|asked| explaining(&plain, asked));
    let measure = |cell: &Cell| min_and_median_us(&setup.record(cell)?);
    let ways: [&dyn Fn() -> _; 3] = [&|| measure(&plain), &|| measure(&events), &|| measure(&stacks)];
    let [without, events, stacks] = rounds(setup.pairs, ways)?;
    for (what, with, without, most) in
        [("by events", &events, &without, Promise::AtMost(0.6)), ("to that by stacks", &stacks, &events, Promise::None)]
    {
        row(&format!("smallest latency, added {what}, us"), &each(with, without, |a, b| a.0 - b.0), most);
        row(&format!("median latency, added {what}, us"), &each(with, without, |a, b| a.1 - b.1), Promise::None);
    }
    keeping(setup, &plain)?;
    let read_ns = repeated(setup.pairs, || read_ns(&setup.root))?;
    // Five million events a second.
    row("to read an event of the kernel, CPU ns", &read_ns, Promise::AtMost(200.0));
    loaded(setup)
}

fn explaining(cell: &Cell, asked: Explain) -> Cell {
    Cell { conditions: Conditions { explain: Some(asked), ..cell.conditions.clone() }, ..cell.clone() }
}

fn explained(record: Record) -> Result<ExplainRecord, String> {
    record.explained.ok_or_else(|| "punctual cell: nothing was explained".to_owned())
}

/// Costs of keeping the events of spikes, where every wake-up is one.
fn keeping(setup: &Setup, plain: &Cell) -> Result<(), String> {
    let measure = |captures| {
        let asked = Explain { above: Some(Span(1000)), captures, ..Explain::default() };
        let record = setup.record(&explaining(plain, asked))?;
        let (_, median_us) = min_and_median_us(&record)?;
        let explained = explained(record)?;
        let us = explained.explaining_us.ok_or("punctual cell: no CPU time of explanations")?;
        Ok((us as f64, median_us, explained.explained.max(1) as f64))
    };
    let ways: [&dyn Fn() -> _; 2] = [&|| measure(Captures::Spikes), &|| measure(Captures::None)];
    let [with, without] = rounds(setup.pairs, ways)?;
    let cpu_us = each(&with, &without, |with, without| (with.0 - without.0) / with.2);
    row("to keep the events of a spike, CPU us", &cpu_us, Promise::AtMost(1000.0));
    let added_us = each(&with, &without, |with, without| with.1 - without.1);
    row("median latency, added by that, us", &added_us, Promise::AtMost(0.0));
    Ok(())
}

/// Costs of spikes on all CPUs under a load, beside those of trace-cmd for printing the same events.
fn loaded(setup: &Setup) -> Result<(), String> {
    /// Number of events in the promise.
    const EVENTS: f64 = 150_000.0;
    let load = "messaging".parse().map_err(|err| format!("{err}"))?;
    let cell = Cell { load, ..quiet_cell(setup.cpus.clone(), Span(3_000_000_000)) };
    let (mut freeze_us, mut explain_ms, mut of_trace_cmd) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setup.pairs {
        let scratch = Scratch::new()?;
        // An automatic threshold: every other wake-up of a slow machine would exceed a fixed one, and each stops the
        // trace.
        let asked = Explain { keep: 1, ..Explain::default() };
        let explained = explained(setup.record(&explaining(&cell, asked.clone()))?)?;
        freeze_us.extend(explained.longest_freeze.map(|span| span.ns() as f64 / 1e3));
        let of_event = |us: u64| us as f64 / explained.events as f64;
        let ours_us = explained.explaining_us.filter(|_| explained.events > 0).map(of_event);
        explain_ms.extend(ours_us.map(|us| us * EVENTS / 1e3));
        setup.record(&explaining(&cell, Explain { export: Some(scratch.0.clone()), ..asked }))?;
        of_trace_cmd.extend(trace_cmd_us(&scratch.0)?.zip(ours_us).map(|(theirs, ours)| ours / theirs));
    }
    row("longest time to stop the trace, us", &freeze_us, Promise::AtMost(40.0));
    row("to take and explain 150 000 events, CPU ms", &explain_ms, Promise::AtMost(200.0));
    if of_trace_cmd.is_empty() {
        println!("  beside trace-cmd: not installed (apt-get install trace-cmd), or there was no spike");
    } else {
        row("  CPU time of that / of trace-cmd report", &of_trace_cmd, Promise::AtMost(0.1));
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
    let finished = run(Path::new("trace-cmd"), "report -t", &[&file])?;
    let events = finished.stdout.lines().filter(|line| line.contains("] ")).count();
    Ok((events > 0).then(|| finished.cpu_us(events as u64)))
}

/// Latency that watching adds to each wake-up of a watched thread, and CPU time of the watcher.
pub(super) fn watch(setup: &Setup) -> Result<(), String> {
    table("watch");
    let scratch = Scratch::new()?;
    let cell = quiet_cell(setup.one_cpu(), Span(2_000_000_000));
    scratch.write("cell.json", serde_json::to_vec(&cell).map_err(|err| err.to_string())?)?;
    // A command that measures the cell `n` times at once; the record of the first goes to `record.json`.
    let cells = |n: usize| {
        let (program, dir) = (setup.program.display(), scratch.0.display());
        let more = format!("'{program}' cell < '{dir}/cell.json' > /dev/null & ").repeat(n - 1);
        format!("{more}'{program}' cell < '{dir}/cell.json' > '{dir}/record.json'; wait")
    };
    let watched = |n: usize, options: &str| {
        let mut command = Command::new(&setup.program);
        command.args("watch --thread measured/* --warm-up 0s --for 60s --no-keep".split(' '));
        command.args(options.split_whitespace()).args(["--", "sh", "-c", &cells(n)]);
        finish(&mut command, b"")
    };
    let median_us = || {
        let text = std::fs::read(scratch.path("record.json")).map_err(|err| format!("punctual cell: {err}"))?;
        let record: Record = serde_json::from_slice(&text).map_err(|err| format!("punctual cell: {err}"))?;
        Ok::<_, String>(min_and_median_us(&record)?.1)
    };
    let alone = || finish(Command::new("sh").args(["-c", &cells(1)]), b"").and_then(|_| median_us());
    let plain = || watched(1, "--no-explain").and_then(|_| median_us());
    let explained = || watched(1, "").and_then(|_| median_us());
    let [alone, plain, explained] = rounds(setup.pairs, [&alone, &plain, &explained])?;
    for (name, with) in
        [("median latency, added by watching, us", plain), ("  and by the trace of the surroundings, us", explained)]
    {
        row(name, &each(&with, &alone, |with, without| with - without), Promise::AtMost(0.6));
    }
    for (name, more) in
        [("% of a CPU, ten threads at 1 kHz, messaging", "--no-explain"), ("  and late ones explained", "")]
    {
        let percent = || {
            let json = watched(10, &format!("--load messaging --format json {more}"))?.json()?;
            Ok(number(&json, "cells/0/summary/watch/watching_cpus")? * 100.0)
        };
        row(name, &repeated(setup.pairs, percent)?, Promise::AtMost(2.0));
    }
    Ok(())
}

/// Recorded traces: events a second and memory of `watch --from`, against `trace-cmd report` of the same file.
pub(super) fn recorded(setup: &Setup) -> Result<(), String> {
    /// A thread with a period, and those of hackbench: each of their events is one of an activation.
    const THREADS: [&str; 2] = ["python*", "hackbench"];
    const LOAD: &str = "timeout 6 hackbench -l 1000000 -g 2 >/dev/null & timeout 6 /usr/bin/python3 -c 'import time\n\
        while True: time.sleep(0.002)' & sleep 1; exec \"$0\" \"$@\"";
    let Setup { program, pairs, .. } = setup;
    let scratch = Scratch::new()?;
    let record = |time: &str, name: &str| {
        let file = scratch.path(name);
        let mut command = Command::new("sh");
        command.args(["-c", LOAD]).arg(program).args(["capture", "--for", time, "--most", "8GB", "--output"]);
        finish(command.arg(&file), b"").map(|_| file)
    };
    let (long, short) = (record("3s", "long.dat")?, record("300ms", "short.dat")?);
    // Its text is a gigabyte.
    let theirs = || {
        let script = ["-c", "exec trace-cmd report -i \"$0\" >/dev/null"];
        finish(Command::new("sh").args(script).arg(&long), b"")
    };
    for thread in THREADS {
        let judge = |file: &Path, more: &str| {
            super::engine::judge(program, &format!("watch --thread {thread} --format json {more} --from"), &[file])
        };
        let events = number(&judge(&long, "")?.json()?, "events")?;
        // Memory without the events around late activations.
        let ways: [&dyn Fn() -> Result<Finished, String>; 4] =
            [&|| judge(&long, ""), &theirs, &|| judge(&long, "--above 1h"), &|| judge(&short, "--above 1h")];
        let [ours, theirs, reading, of_short] = rounds(*pairs, ways)?;
        table(format_args!("watch --from a trace of {events} events, threads {thread}"));
        let rates: Vec<_> = ours.iter().map(|ours| events / ours.cpu_s).collect();
        row("events a second of CPU time", &rates, Promise::AtLeast(1.5e6));
        let ratios = each(&theirs, &ours, |theirs, ours| theirs.cpu_s / ours.cpu_s);
        row("CPU time of trace-cmd report / ours", &ratios, Promise::AtLeast(10.0));
        super::runs::memory(&ours, &reading, &of_short);
    }
    Ok(())
}

/// CPU time of a monitor: one thread that wakes each 10 ms, without and with the kernel's trace.
pub(super) fn monitor(setup: &Setup) -> Result<(), String> {
    table("monitor: FIFO 80 each 10 ms, runs of 30 s");
    for (name, window, more) in [
        ("% of a CPU, windows of 5 min", "5min", &["--no-explain"][..]),
        ("% of a CPU, windows of 1 s", "1s", &["--no-explain"]),
        ("% of a CPU, traced, windows of 5 min", "5min", &[]),
    ] {
        let shares = repeated(setup.pairs, || Monitor::start(&setup.program, setup.cpu, window, more)?.percent())?;
        row(name, &shares, Promise::AtMost(0.1));
    }
    Ok(())
}

/// A monitor that is ended with this value, and its directory.
struct Monitor {
    child: Child,
    _dir: Scratch,
}

impl Monitor {
    fn start(program: &Path, cpu: u32, window: &str, more: &[&str]) -> Result<Monitor, String> {
        let dir = Scratch::new()?;
        let mut command = Command::new(program);
        command.args(["monitor", "--window", window, "--cpus", &cpu.to_string(), "--for", "10min"]).args(more);
        command.arg("--dir").arg(dir.path("monitor")).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|err| format!("{}: {err}", program.display()))?;
        Ok(Monitor { child, _dir: dir })
    }

    /// CPU time in the measured time, as a share of one CPU, %.
    fn percent(&self) -> Result<f64, String> {
        /// Time after the start that is not counted: threads are set up and memory is locked.
        const SETTLING: Duration = Duration::from_secs(3);
        /// It has 30 windows of a second: their cost counts more than with 5 minutes.
        const TIME: Duration = Duration::from_secs(30);
        let used =
            || punctual_sys::usage::cpu_time_of(self.child.id()).map_err(|err| format!("the monitor has ended: {err}"));
        std::thread::sleep(SETTLING);
        let (before, began) = (used()?, Instant::now());
        std::thread::sleep(TIME);
        let (after, took) = (used()?, began.elapsed());
        Ok((after.as_secs_f64() - before.as_secs_f64()) / took.as_secs_f64() * 100.0)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        /// The signal that ends a monitor in good order, so that it removes its trace (signal(7)).
        const SIGTERM: i32 = 15;
        let _ = punctual_sys::process::signal(self.child.id(), SIGTERM);
        let _ = self.child.wait();
    }
}
