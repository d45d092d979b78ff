//! `punctual load`: runs one load alone and shows its rate each second; or lists all loads.

mod view;

use super::consent;
use super::internal::end_with;
use crate::cli::arguments::{Format, LoadCommandArguments};
use crate::cli::terminal::{Outcome, note, output};
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use punctual_analysis::LoadRate;
use punctual_campaign::Stop;
use punctual_host::{ActivityLog, HostFs};
use punctual_model::{AboutLoad, CpuSet, LoadRecord, MachineSecond, Policy, Span};
use punctual_sys::{clock, sched};
use punctual_workload::load::{self, CATALOGUE, LoadError, LoadMonitor, Place, Running};
use std::time::{Duration, Instant};
use view::LoadView;

/// Interval between readings.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Additional time limit of a real-time load, in case it is not stopped.
const LIMIT_MARGIN: Span = Span(10_000_000_000);

/// Takes no lock of the machine: the load may accompany a measurement of another tool or of this one.
pub(super) fn load(arguments: &LoadCommandArguments) -> Outcome {
    let Some(load) = &arguments.load else { return list(arguments.format) };
    check(arguments)?;
    end_with(arguments.parent)?;
    let place = Place {
        cpus: &cpus(arguments)?,
        policy: arguments.policy,
        at_most: Span(arguments.duration.unwrap_or(Span::MAX).ns().saturating_add(LIMIT_MARGIN.ns())),
    };
    let online = punctual_host::snapshot(&HostFs::here()).cpus_online.map(|cpus| cpus.len());
    let stop = Stop::on_signals()?;
    // The load does not inherit the nice value or real-time policy of the caller.
    sched::set_policy(0, Policy::OTHER).map_err(|err| format!("cannot run at nice 0 (start without `nice`): {err}"))?;
    let running = load::start(load, &place)?;
    let mut work = Work::begin(&running, arguments.format == Format::Json);
    let mut view = LoadView::begin(arguments.format, online, arguments.duration);
    view.started(&work.records(), place.cpus)?;
    if arguments.format == Format::Json {
        // The JSON document follows at the end.
        note(format_args!("load {load} works; Ctrl-C ends it"));
    }
    let began = Instant::now();
    let ends = arguments.duration.map(|duration| began + Duration::from_nanos(duration.ns()));
    let mut tick = began;
    let outcome = loop {
        tick = (tick + POLL_INTERVAL).min(ends.unwrap_or(tick + POLL_INTERVAL));
        stop.wait_until(tick);
        if let Err(err) = work.read(&running) {
            break Err(err);
        }
        if !view.second(&work)? || stop.is_requested() || ends.is_some_and(|ends| tick >= ends) {
            break Ok(());
        }
    };
    let stopping = Instant::now();
    drop(running);
    let stopped = stopping.elapsed();
    view.finish();
    outcome?;
    if arguments.format == Format::Text {
        view::sum(&work, stopped)?;
        return Ok(0);
    }
    let summary: Vec<LoadRate> = work.records().iter().map(rate).collect();
    let document = punctual_report::json::LoadDocument {
        cpus: place.cpus,
        policy: place.policy,
        summary,
        stopping_ns: u64::try_from(stopped.as_nanos())?,
        loads: &work.records(),
        machine: &work.machine,
    };
    let mut text = Vec::new();
    output::json(&mut text, &serde_json::to_value(document)?)?;
    output::write(&text)?;
    Ok(0)
}

/// Rejects invalid options.
fn check(arguments: &LoadCommandArguments) -> Result<(), String> {
    let LoadCommandArguments { load, duration, policy, yes, .. } = arguments;
    if load.as_ref().is_some_and(|load| load.parts().is_empty()) {
        return Err("invalid load `none`: expected one of punctual load --list".to_owned());
    }
    if *duration == Some(Span(0)) {
        return Err("--for: invalid duration `0s`: expected a positive duration, like 10s".to_owned());
    }
    if let Policy::Deadline(_) = policy {
        return Err("a load cannot run under SCHED_DEADLINE: it has many processes; choose another policy".to_owned());
    }
    if policy.is_realtime() && duration.is_none() {
        return Err("a real-time load can starve all other processes; limit its duration, like --for 10s".into());
    }
    consent::permit_floods_of(load.iter(), *yes)
}

fn cpus(arguments: &LoadCommandArguments) -> Result<CpuSet, String> {
    let allowed = sched::affinity(0).map_err(|err| err.to_string())?;
    let cpus = arguments.cpus.clone().unwrap_or_else(|| allowed.clone());
    let absent = cpus.minus(&allowed);
    match () {
        () if cpus.is_empty() => Err("--cpus: empty list; name at least one CPU, like 0".to_owned()),
        () if !absent.is_empty() => Err(format!("cannot use CPU {absent}: this process may use {allowed} (--cpus)")),
        () => Ok(cpus),
    }
}

/// Work of the load's parts and activity of the machine.
struct Work {
    began: u64,
    last: u64,
    watches: Vec<LoadMonitor>,
    activity: ActivityLog,
    machine: Vec<MachineSecond>,
    /// Whether all seconds of the machine are kept instead of the last: a load may run for weeks.
    keeps_machine: bool,
}

impl Work {
    fn begin(running: &[Running], keeps_machine: bool) -> Work {
        let now = clock::monotonic().0;
        Work {
            began: now,
            last: now,
            watches: running.iter().map(|part| LoadMonitor::begin(part, None)).collect(),
            activity: ActivityLog::begin(HostFs::here(), &CpuSet::default(), Vec::new()),
            machine: Vec::new(),
            keeps_machine,
        }
    }

    /// Takes a reading. Errors: if a part has failed.
    fn read(&mut self, running: &[Running]) -> Result<(), LoadError> {
        let now = clock::monotonic().0;
        let (at, elapsed) = (self.elapsed_at(now), Span(now.saturating_sub(self.last)));
        self.last = now;
        if !self.keeps_machine {
            self.machine.clear();
        }
        self.machine.push(self.activity.read(at, elapsed));
        for (watch, part) in self.watches.iter_mut().zip(running) {
            watch.read(part, at, elapsed)?;
            watch.failure().map_or(Ok(()), |failure| Err(part.error(failure.reason.clone())))?;
        }
        Ok(())
    }

    /// Time from the start to the last reading.
    fn elapsed(&self) -> Span {
        self.elapsed_at(self.last)
    }

    fn elapsed_at(&self, now: u64) -> Span {
        Span(now.saturating_sub(self.began))
    }

    /// The record of each part.
    fn records(&self) -> Vec<LoadRecord> {
        self.watches.iter().map(LoadMonitor::record).collect()
    }
}

/// Average rate of a part.
fn rate(record: &LoadRecord) -> LoadRate {
    LoadRate {
        load: record.load.clone(),
        operation: record.operation.clone(),
        per_second: record.per_second(),
        cpus_used: record.cpus_used(),
        lowest_share: record.lowest_share(),
    }
}

fn list(format: Format) -> Outcome {
    if format == Format::Json {
        let mut text = Vec::new();
        output::json(&mut text, &serde_json::to_value(CATALOGUE)?)?;
        output::write(&text)?;
        return Ok(0);
    }
    let text = listed(output::style(true).width) + "More: punctual help guide loads\n";
    output::write(text.as_bytes())?;
    Ok(0)
}

/// All loads, in `width` columns.
pub(super) fn listed(width: usize) -> String {
    let mut text = table(width);
    text += "\nLatency: maximum of a real-time thread on Linux 6.1 with preempt=none,\n";
    text += "  preempt=full and PREEMPT_RT, in virtual time.\n";
    text += "Several at once: messaging+disk. Plans name their own in [loads].\n";
    text
}

/// A row for each load, wrapped into `width` columns.
fn table(width: usize) -> String {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["load", "does", "disturbs (latency: none / full / PREEMPT_RT)", "costs"]);
    for AboutLoad { load, does, disturbs, costs } in CATALOGUE {
        table.add_row([load, does, disturbs, costs]);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if i == 0 { 0 } else { 2 }, 0));
        if i == 0 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
