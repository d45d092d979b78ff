//! `punctual run`: a campaign from a plan to the table.

use super::arguments::{Format, RunArguments};
use super::progress::Lines;
use super::{Outcome, output, stop_on_signal};
use crate::campaign::{self, CampaignError, Child};
use crate::host::{self, HostFs, MachineLock, Privileges};
use crate::store::{self, Writer};
use crate::{TOOL, campaign::Machine};
use model::{Entry, Header, Plan, RUN_FORMAT};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What a cell takes besides its warm-up and duration: start, load, end. Measured: 0.1 s idle, 0.5 s under load.
const AROUND_A_CELL: Duration = Duration::from_millis(400);

pub(super) fn run(arguments: RunArguments) -> Outcome {
    let stop = stop_on_signal()?;
    let (format, wait) = (arguments.common.format, arguments.common.wait);
    let (dir, start) = if arguments.resume { resume(arguments)? } else { fresh(arguments)? };
    let _lock = MachineLock::take(&holder(&start.header), wait)?;
    let (header, done, mut writer) = start.open(&dir)?;

    let mut lines = Lines::new(&header, done.len());
    let result = campaign::carry_out(&header, done, &mut writer, &mut Child, &mut lines, &stop);
    lines.finish();
    let entries = result.map_err(|err| match err {
        CampaignError::Interrupted { .. } => {
            format!("{err}; go on with: punctual run --resume --out {}", dir.display()).into()
        }
        CampaignError::Cell { .. } => format!("{err} (kept so far: punctual show {})", dir.display()).into(),
        CampaignError::Store(_) => Box::<dyn Error>::from(err),
    })?;
    let status = output::show(&header, &entries, format)?;
    if format == Format::Text {
        eprintln!("{}", dir.join("run.jsonl").display());
    }
    Ok(status)
}

/// A run that may begin once the machine is ours.
enum Origin {
    /// Nothing is there yet.
    Fresh,
    /// Made before: these measurements are there.
    Resumed(Vec<Entry>),
}

struct Start {
    header: Header,
    origin: Origin,
}

impl Start {
    fn open(self, dir: &Path) -> Result<(Header, Vec<Entry>, Writer), Box<dyn Error>> {
        match self.origin {
            Origin::Fresh => {
                let writer = store::create(dir, &self.header)?;
                Ok((self.header, Vec::new(), writer))
            }
            Origin::Resumed(entries) => {
                let writer = store::append(dir, entries.len())?;
                Ok((self.header, entries, writer))
            }
        }
    }
}

fn resume(arguments: RunArguments) -> Result<(PathBuf, Start), Box<dyn Error>> {
    let dir = arguments.out.unwrap_or_default();
    let run = store::read(&dir)?;
    for damage in &run.damage {
        eprintln!("punctual: {damage}");
    }
    Ok((dir, Start { header: run.header, origin: Origin::Resumed(run.entries) }))
}

fn fresh(arguments: RunArguments) -> Result<(PathBuf, Start), Box<dyn Error>> {
    let plan = plan(&arguments)?;
    let now = SystemTime::now();
    let dir = arguments.out.unwrap_or_else(|| Path::new("runs").join(stamp(now)));
    Ok((dir, Start { header: header(plan, now)?, origin: Origin::Fresh }))
}

/// The plan as typed: the file, or the default, with what the command line says otherwise.
fn plan(arguments: &RunArguments) -> Result<Plan, Box<dyn Error>> {
    let mut plan = match &arguments.plan {
        None => Plan::default(),
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|err| format!("{}: {err}", path.display()))?;
            let text = String::from_utf8(bytes).map_err(|err| {
                let valid = &err.as_bytes()[..err.utf8_error().valid_up_to()];
                let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
                format!("{}:{line}: not UTF-8; save the plan as UTF-8 text", path.display())
            })?;
            Plan::parse(&text).map_err(|err| format!("{}:{err}", path.display()))?
        }
    };
    if arguments.quick {
        plan = plan.quick();
    }
    let common = &arguments.common;
    plan.repetitions = arguments.repetitions.unwrap_or(plan.repetitions);
    plan.duration = arguments.duration.unwrap_or(plan.duration);
    plan.seed = arguments.seed.or(plan.seed);
    plan.cpus = common.cpus.clone().or(plan.cpus);
    plan.require = common.require.unwrap_or(plan.require);
    plan.cpu_dma_latency_us = common.cpu_dma_latency.map_or(plan.cpu_dma_latency_us, |asked| asked.0);
    let longest = plan.axes.period.iter().max().map(|period| period.span()).unwrap_or_default();
    if plan.duration < longest {
        let duration = plan.duration;
        return Err(format!(
            "--duration {duration} has no room for one period of {longest}; measure at least {longest}"
        )
        .into());
    }
    Ok(plan)
}

/// Decides everything that is decided before the first measurement.
pub(super) fn header(plan: Plan, now: SystemTime) -> Result<Header, Box<dyn Error>> {
    let privileges = Privileges::here();
    let machine = Machine {
        cpus: rt::sys::sched::affinity(0)?,
        lock_memory: privileges.lock_memory,
        dma_latency: privileges.dma_latency,
        may_have: &Privileges::may_have,
    };
    let (cells, skipped) = campaign::expand(&plan, &machine)?;
    if cells.is_empty() {
        let reason = skipped.first().map(|skipped| skipped.reason.clone()).unwrap_or_default();
        return Err(format!("nothing can be measured: {reason}").into());
    }
    let unix = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The clock's fine digits differ from run to run, which is all a seed needs; it is recorded.
    let seed = plan.seed.unwrap_or(u64::from(unix.subsec_nanos()) ^ unix.as_secs() << 20);
    Ok(Header {
        format: RUN_FORMAT,
        tool: TOOL.to_owned(),
        started_unix_ms: u64::try_from(unix.as_millis())?,
        plan,
        seed,
        host: host::snapshot(&HostFs::here()),
        cells,
        skipped,
    })
}

/// How long the measurements of a run take together.
pub(super) fn expected(header: &Header, n_measurements: usize) -> Duration {
    let one = Duration::from_nanos(header.plan.warm_up.ns() + header.plan.duration.ns()) + AROUND_A_CELL;
    one * u32::try_from(n_measurements).unwrap_or(u32::MAX)
}

/// What the lock says to whoever finds it taken.
pub(super) fn holder(header: &Header) -> String {
    let now = SystemTime::now();
    let all = header.cells.len() * header.plan.repetitions as usize;
    let clock = |time| humantime::format_rfc3339_seconds(time).to_string()[11..16].to_owned();
    let (started, ends) = (clock(now), clock(now + expected(header, all)));
    format!("pid {} (started {started} UTC, ends about {ends})", std::process::id())
}

/// The wall-clock time, UTC, as a directory name that sorts: 2026-11-20-143205.
fn stamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string().replace('T', "-").replace([':', 'Z'], "")
}
