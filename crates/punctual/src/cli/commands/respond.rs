//! `punctual respond`: answers the triggers of a logger until stopped, in a thread with the settings of a measured one.

use super::consent;
use super::internal::end_with;
use crate::cli::arguments::{Format, RespondArguments};
use crate::cli::terminal::{Outcome, note, output};
use punctual_campaign::Stop;
use punctual_host::{DmaLatency, HostFs, Privileges};
use punctual_model::{Achieved, CpuSet, Histogram, Method, MonoTime, Nanos, Nice, Policy, Span, TargetRecord};
use punctual_rt::{LinkEnd, Member, Settings, Team, ThreadSpec};
use punctual_sys::counter::Counter;
use punctual_workload::link::{self, LinkMonitor};
use punctual_workload::load::{self, LoadError, Place, Running};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Interval at which the log is drained, and its capacity in answers, more than arrive in one interval.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const LOG_CAPACITY: usize = 1 << 17;

/// Takes no lock of the machine: the cell that it answers may run on this one.
pub(super) fn respond(arguments: &RespondArguments) -> Outcome {
    let cpu = check(arguments)?;
    end_with(arguments.parent)?;
    let stop = Stop::on_signals()?;
    let (target, mut watch) = link::target(arguments.on, arguments.peer.as_deref())?;
    let allowed = punctual_sys::sched::affinity(0)?;
    let mut work = Work::start(arguments, &allowed)?;
    // Missing privileges are omitted and recorded, as for cells.
    let may = Privileges::here(1, LOG_CAPACITY as u64, false);
    let dma_latency = if may.dma_latency { Some(DmaLatency::hold(0)?) } else { None };
    punctual_sys::memory::use_one_arena();
    if may.lock_memory {
        punctual_sys::memory::lock_all()
            .map_err(|err| format!("cannot lock memory (raise `ulimit -l`, or run as root): {err}"))?;
    }
    let settings = Settings {
        policy: arguments.policy,
        timer_slack: None,
        // The thread waits for triggers: method and period have no effect.
        method: Method::CLOCK_NANOSLEEP,
        period: "100s".parse()?,
        counter: Counter::Clock,
        movable: None,
    };
    let cpus: CpuSet = [cpu].into_iter().collect();
    let spec = ThreadSpec {
        cpu,
        cpus: cpus.clone(),
        settings,
        phase: Span(0),
        cycles: 0..u64::MAX,
        link: Some(LinkEnd::Target(target)),
    };
    let mut team = Team::spawn(vec![spec], Nanos(i64::MAX), LOG_CAPACITY, None)?;
    let others = allowed.minus(&cpus);
    if !others.is_empty() {
        punctual_sys::sched::set_affinity(0, &others)?;
    }
    team.release(punctual_sys::clock::now(punctual_model::ClockId::Monotonic));
    note(format_args!("answering on {} as {} on CPU {cpu}; Ctrl-C ends it", arguments.on, arguments.policy));
    let mut own = Histogram::default();
    answer(&mut team, &mut own, &mut watch, &mut work, &stop, arguments)?;
    watch.collect();
    let [member] = &team.members[..] else { return Err("no responder thread".into()) };
    let achieved = Achieved {
        policy: member.policy,
        cpus: member.cpus.clone(),
        changes: Vec::new(),
        timer_slack_ns: member.timer_slack.ns(),
        memory_locked_bytes: punctual_host::memory_locked_bytes_of(std::process::id()).unwrap_or(0),
        cpu_dma_latency_us: dma_latency.as_ref().map(|(_, us)| *us),
    };
    let loads = work.watches.iter().zip(&work.running).map(|(watch, load)| watch.finish(load)).collect();
    // Before the snapshot of the machine, which beside 400 processes may take longer than a campaign waits.
    work.running.clear();
    show(&TargetRecord { loads, ..record(arguments, &watch, achieved, own, member) }, arguments.format)?;
    Ok(0)
}

/// Rejects invalid options of any link; returns the CPU to answer on.
fn check(arguments: &RespondArguments) -> Result<u32, String> {
    if let Policy::Deadline(_) = arguments.policy {
        return Err(format!(
            "unsupported: {} for a responder, which has no period; use another policy",
            arguments.policy
        ));
    }
    if arguments.duration == Some(Span(0)) {
        return Err("--for: invalid duration `0s`: expected a positive duration, like 10s".to_owned());
    }
    let allowed = punctual_sys::sched::affinity(0).map_err(|err| err.to_string())?;
    let cpu = arguments.cpu.or_else(|| allowed.iter().last()).ok_or("no CPU is available to this process")?;
    let is_allowed = allowed.iter().any(|other| other == cpu);
    let absent = || format!("cannot use CPU {cpu}: this process may use {allowed} (--cpu)");
    is_allowed.then_some(cpu).ok_or_else(absent)
}

/// The load that runs beside the responder.
struct Work {
    running: Vec<Running>,
    watches: Vec<load::LoadMonitor>,
    began: MonoTime,
    last: MonoTime,
}

impl Work {
    /// Starts the load before the first thread.
    fn start(arguments: &RespondArguments, allowed: &CpuSet) -> Result<Work, Box<dyn Error>> {
        consent::permit_floods_of(std::iter::once(&arguments.load), arguments.yes)?;
        punctual_sys::sched::set_policy(0, Policy::OTHER)
            .map_err(|err| format!("cannot run at nice 0 (start without `nice`): {err}"))?;
        let at_most = Span(arguments.duration.unwrap_or(Span::MAX).ns());
        let running = load::start(&arguments.load, &Place { cpus: allowed, policy: Policy::OTHER, at_most })?;
        // The load keeps its policy; the thread that counts its work and stops it gets the highest nice priority, if
        // permitted.
        let _ = punctual_sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        let watches = running.iter().map(|running| load::LoadMonitor::begin(running, None)).collect();
        let now = punctual_sys::clock::monotonic();
        Ok(Work { running, watches, began: now, last: now })
    }

    fn read(&mut self) -> Result<(), LoadError> {
        let now = punctual_sys::clock::monotonic();
        let since = |earlier: MonoTime| Span(now.0.saturating_sub(earlier.0));
        let (at, elapsed) = (since(self.began), since(self.last));
        self.last = now;
        self.watches.iter_mut().zip(&self.running).try_for_each(|(watch, load)| watch.read(load, at, elapsed))
    }
}

/// Answers until stopped, until the duration is over, or until triggers cease.
fn answer(
    team: &mut Team,
    own: &mut Histogram,
    watch: &mut LinkMonitor,
    work: &mut Work,
    stop: &Stop,
    asked: &RespondArguments,
) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let silence = asked.until_silent.map(|span| Duration::from_nanos(span.ns()));
    let mut heard = (own.n, began);
    let ends = asked.duration.map(|duration| began + Duration::from_nanos(duration.ns()));
    loop {
        let now = Instant::now();
        let tick = (now + POLL_INTERVAL).min(ends.unwrap_or(now + POLL_INTERVAL));
        stop.wait_until(tick);
        let has_ended = team.wait(Duration::ZERO);
        for member in &mut team.members {
            member.log.drain(|sample| own.record(sample.latency.0));
            if let Some(errno) = member.outcome.and_then(|outcome| outcome.result.err()) {
                return Err(format!("cannot continue to answer: {}", std::io::Error::from_raw_os_error(errno)).into());
            }
        }
        watch.collect();
        work.read()?;
        if own.n > heard.0 {
            heard = (own.n, Instant::now());
        }
        let is_silent = silence.is_some_and(|silence| own.n > 0 && heard.1.elapsed() >= silence);
        if has_ended || is_silent || stop.is_requested() || ends.is_some_and(|ends| Instant::now() >= ends) {
            return Ok(());
        }
    }
}

fn record(
    asked: &RespondArguments,
    watch: &LinkMonitor,
    achieved: Achieved,
    own: Histogram,
    member: &Member,
) -> TargetRecord {
    let counts = watch.counts();
    let count = |counter: &AtomicU64| counter.load(Relaxed);
    TargetRecord {
        link: asked.on,
        achieved,
        triggers: count(&counts.triggers),
        answered: own.n + member.log.lost(),
        missed: count(&counts.missed),
        duplicate: count(&counts.duplicate),
        foreign: count(&counts.foreign),
        too_soon: count(&counts.too_soon),
        line_errors: watch.line_errors(),
        loads: Vec::new(),
        own,
        waking: watch.waking().cloned(),
        host: Some(punctual_host::snapshot(&HostFs::here()).into()),
    }
}

fn show(record: &TargetRecord, format: Format) -> Result<(), Box<dyn Error>> {
    let mut text = Vec::new();
    match format {
        Format::Json => output::json(&mut text, &serde_json::to_value(record)?)?,
        Format::Text => punctual_report::target(&mut text, record)?,
    }
    output::write(&text)
}
