//! `punctual load`: one load alone, with its rate each second; and the list of all loads.

use super::arguments::{Format, LoadCommandArguments};
use super::{Outcome, note, output};
use crate::campaign::Stop;
use crate::host::{ActivityLog, HostFs};
use crate::load::{self, About, CATALOGUE, Place, Running, Watch};
use crate::report;
use model::{CpuSet, LoadRecord, MachineSecond, Policy, Span};
use rt::sys::{clock, sched};
use serde_json::json;
use std::time::{Duration, Instant};

/// Between two readings.
const TICK: Duration = Duration::from_secs(1);
/// How much longer than asked a real-time load may go on when nothing else ends it.
const AFTERWARDS: Span = Span(10_000_000_000);

/// It takes no lock of the machine: one starts it beside a measurement of another tool, or of ours, on purpose.
pub(super) fn load(arguments: &LoadCommandArguments) -> Outcome {
    let Some(load) = &arguments.load else { return list(arguments.format) };
    let place = Place {
        cpus: &cpus(arguments)?,
        policy: arguments.policy,
        at_most: Span(arguments.duration.unwrap_or(Span::MAX).ns().saturating_add(AFTERWARDS.ns())),
    };
    if arguments.policy.is_realtime() && arguments.duration.is_none() {
        return Err("a real-time load can take a CPU from everything else; say how long it may, like --for 10s".into());
    }
    if load.parts().is_empty() {
        return Err("none is no load; punctual load --list says which there are".into());
    }
    let stop = Stop::on_signals()?;
    // Whoever started us may run nicely or in real time; the load shall not.
    sched::set_policy(0, Policy::OTHER).map_err(|err| format!("cannot run at nice 0 (start without `nice`): {err}"))?;
    let running = load::start(load, &place)?;
    let is_text = arguments.format == Format::Text;
    let mut work = Work::begin(&running);
    if is_text {
        for part in &running {
            output::write(format!("{}\n", started(&part.record(), place.cpus)).as_bytes())?;
        }
    }
    let began = Instant::now();
    let ends = arguments.duration.map(|duration| Duration::from_nanos(duration.ns()));
    while !stop.is_asked() && ends.is_none_or(|ends| began.elapsed() < ends) {
        let left = ends.map_or(TICK, |ends| ends.saturating_sub(began.elapsed()));
        stop.wait_at_most(TICK.min(left));
        work.read(&running)?;
        if is_text {
            output::write(work.line(&running).as_bytes())?;
        }
        if let Some((part, failure)) =
            running.iter().zip(&work.watches).find_map(|(part, w)| Some((part, w.failure()?)))
        {
            return Err(part.error(failure.reason.clone()).into());
        }
    }
    let stopping = Instant::now();
    drop(running);
    let stopped = stopping.elapsed();
    let (records, machine) = work.finish();
    if is_text {
        records.iter().try_for_each(|record| output::write(format!("{}\n", sum(record)).as_bytes()))?;
        note(format_args!("stopped in {} ms", stopped.as_millis()));
    } else {
        let stopping_ns = u64::try_from(stopped.as_nanos())?;
        let mut text = Vec::new();
        output::json(&mut text, &json!({ "loads": records, "machine": machine, "stopping_ns": stopping_ns }))?;
        output::write(&text)?;
    }
    Ok(0)
}

fn cpus(arguments: &LoadCommandArguments) -> Result<CpuSet, String> {
    let allowed = sched::affinity(0).map_err(|err| err.to_string())?;
    let cpus = arguments.cpus.clone().unwrap_or_else(|| allowed.clone());
    let absent = cpus.minus(&allowed);
    match () {
        () if cpus.is_empty() => Err("--cpus names no CPU; name at least one, like 0".to_owned()),
        () if !absent.is_empty() => {
            Err(format!("CPU {absent} cannot be used here; this process may use {allowed} (--cpus)"))
        }
        () => Ok(cpus),
    }
}

/// What the parts do, and the machine with them.
struct Work {
    began: u64,
    last: u64,
    watches: Vec<Watch>,
    activity: ActivityLog,
    machine: Vec<MachineSecond>,
}

impl Work {
    fn begin(running: &[Running]) -> Work {
        let now = clock::monotonic().0;
        Work {
            began: now,
            last: now,
            watches: running.iter().map(|part| Watch::begin(part, None)).collect(),
            activity: ActivityLog::begin(HostFs::here(), &CpuSet::default(), Vec::new()),
            machine: Vec::new(),
        }
    }

    fn read(&mut self, running: &[Running]) -> Result<(), load::LoadError> {
        let now = clock::monotonic().0;
        let (at, elapsed) = (Span(now.saturating_sub(self.began)), Span(now.saturating_sub(self.last)));
        self.last = now;
        self.machine.push(self.activity.read(at, elapsed));
        self.watches.iter_mut().zip(running).try_for_each(|(watch, part)| watch.read(part, at, elapsed))
    }

    /// What happened since the line before.
    fn line(&self, running: &[Running]) -> String {
        let part = |(watch, part): (&Watch, &Running)| {
            let seconds = watch.last().copied().into_iter().collect();
            report::load_rate(&LoadRecord { seconds, ..part.record() })
        };
        let parts: Vec<String> = self.watches.iter().zip(running).map(part).collect();
        let machine = self.machine.last().map(report::machine_share).unwrap_or_default();
        let seconds = Duration::from_nanos(self.last - self.began).as_secs_f64();
        format!("{seconds:7.1} s  {}{machine}\n", parts.join("  "))
    }

    fn finish(self) -> (Vec<LoadRecord>, Vec<MachineSecond>) {
        (self.watches.into_iter().map(Watch::finish).collect(), self.machine)
    }
}

/// The first line of a part.
fn started(record: &LoadRecord, cpus: &CpuSet) -> String {
    let processes = analysis::wording::things(record.workers, "process");
    let starting = record.starting.map(|starting| analysis::wording::duration(starting.ns() as f64));
    let program = record.program.as_ref().map(|program| {
        let version = program.version.as_ref().map(|version| format!(" ({version})")).unwrap_or_default();
        format!("{}{version}, ", program.path)
    });
    let program = program.unwrap_or_default();
    format!("{}: {program}{processes} on CPU {cpus}, working after {}", record.load, starting.unwrap_or_default())
}

/// The last line of a part.
fn sum(record: &LoadRecord) -> String {
    let lowest =
        record.lowest_share().map(|share| format!(", at least {:.0} % of its rate at the start", share * 100.0));
    format!("{}: {}{}", record.load, report::load_rate(record), lowest.unwrap_or_default())
}

fn list(format: Format) -> Outcome {
    if format == Format::Json {
        let mut text = Vec::new();
        output::json(&mut text, &serde_json::to_value(CATALOGUE)?)?;
        output::write(&text)?;
        return Ok(0);
    }
    let style = output::style(true);
    for About { load, does, disturbs, costs } in CATALOGUE {
        let mut text = format!("{load}\n");
        for (label, words) in [("does", does), ("disturbs", disturbs), ("costs", costs)] {
            text += &report::labelled(label, words, style);
        }
        output::write(text.as_bytes())?;
    }
    output::write(b"\nSeveral at once: messaging+disk. Plans name their own in [loads]; see docs/loads.md.\n")?;
    Ok(0)
}
