//! What is decided before the first measurement: the plan as asked, the cells it means here, the time it will take.

use super::arguments::RunArguments;
use super::consent::Origin;
use crate::TOOL;
use crate::campaign::{self, Machine};
use crate::host::{self, HostFs, Privileges};
use crate::load;
use crate::runtime;
use model::{Cell, Header, Kernel, Method, Plan, RUN_FORMAT, Span};
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::time::{Duration, SystemTime};

/// What a cell takes besides its warm-up and duration: start, load, end. Measured: 0.1 s idle, 1 s under load.
const AROUND_A_CELL: Duration = Duration::from_millis(600);

/// The same where a language starts up before. Measured: 0.5 s for C to 2 s for Java.
const AROUND_A_LANGUAGE: Duration = Duration::from_millis(1500);

/// The same where other machines take part. Measured: 1 s, with ssh to this one.
const AROUND_ROLES: Duration = Duration::from_secs(2);

/// The same for a guest of the lab in virtual time, with the work of a short cell and one more beside it. Measured: 1 to 2 s.
const AROUND_A_GUEST: Duration = Duration::from_secs(2);
/// The same for one that has to start first. Measured: 15 to 25 s.
const AROUND_A_BOOT: Duration = Duration::from_secs(20);

/// The plan as typed: the file, or the default, with what the command line says otherwise; and where it comes from, if it
/// is a file.
pub(super) fn plan(arguments: &RunArguments) -> Result<(Plan, Option<Origin>), Box<dyn Error>> {
    let mut origin = None;
    let mut plan = match &arguments.plan {
        None => Plan::default(),
        Some(path) => {
            let mut bytes = Vec::new();
            let read = File::open(path).and_then(|mut file| {
                file.read_to_end(&mut bytes)?;
                Origin::of(path, &file)
            });
            let read = read.map_err(|err| format!("{}: {err}", path.display()))?;
            origin = Some(read.with_settings(arguments.common.prepare.is_some()));
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
    plan.until = arguments.until;
    if let Some(duration) = arguments.duration {
        (plan.duration, plan.cycles, plan.min_cycles) = (duration, None, None);
    }
    plan.seed = arguments.seed.or(plan.seed);
    plan.cpus = common.cpus.clone().or(plan.cpus);
    if let Some(prepare) = &common.prepare {
        plan.prepare = prepare.clone();
    }
    plan.require = common.require.unwrap_or(plan.require);
    plan.cpu_dma_latency_us = common.cpu_dma_latency.map_or(plan.cpu_dma_latency_us, |asked| asked.0);
    Ok((plan, origin))
}

/// Decides everything that is decided before the first measurement; `samples`: whether they are kept.
pub(super) fn header(plan: Plan, samples: bool, now: SystemTime) -> Result<Header, Box<dyn Error>> {
    if samples && plan.roles.is_logged_elsewhere() {
        return Err(
            "samples are kept where they are measured, and the logger is another machine; leave --samples out".into()
        );
    }
    let cpus = rt::sys::sched::affinity(0)?;
    let privileges = Privileges::here(plan.cpus.as_ref().unwrap_or(&cpus).len(), samples);
    let machine = Machine {
        cpus,
        lock_memory: privileges.lock_memory,
        dma_latency: privileges.dma_latency,
        may_have: &Privileges::may_have,
        why_not: &|runtime| runtime::find(runtime).err().map(|err| err.to_string()),
        why_no_load: &load::why_not,
    };
    let (cells, skipped) = campaign::expand(&plan, &machine)?;
    if cells.is_empty() {
        let reason = skipped.first().map(|skipped| skipped.reason.clone()).unwrap_or_default();
        return Err(format!("nothing can be measured: {reason}").into());
    }
    let unix = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The clock's fine digits differ from run to run, which is all a seed needs; it is recorded.
    let seed = plan.seed.unwrap_or(u64::from(unix.subsec_nanos()) ^ unix.as_secs() << 20);
    let header = Header {
        format: RUN_FORMAT,
        tool: TOOL.to_owned(),
        started_unix_ms: u64::try_from(unix.as_millis())?,
        plan,
        seed,
        host: host::snapshot(&HostFs::here()),
        cells,
        skipped,
        samples,
    };
    let longest = Duration::from_nanos(Span::MAX.ns());
    if expected(&header, header.n_measurements()) > longest {
        return Err(format!("{} measurements take longer than a year; ask for less", header.n_measurements()).into());
    }
    Ok(header)
}

/// How long `n` measurements of a run take together, if they are like all of them.
pub(super) fn expected(header: &Header, n: usize) -> Duration {
    let around = |cell: &Cell| match cell.method {
        _ if cell.kernel.is_virtual() => AROUND_A_GUEST,
        _ if cell.kernel != Kernel::Running => AROUND_A_BOOT,
        _ if !cell.roles.is_empty() => AROUND_ROLES,
        Method::Sleep(_) => AROUND_A_LANGUAGE,
        _ => AROUND_A_CELL,
    };
    let of_cell = |cell: &Cell| {
        // The two tracers take as long again, each.
        let times = if cell.tracers { 3 } else { 1 };
        u128::from(cell.warm_up.ns().saturating_add(cell.duration.ns())) * times + around(cell).as_nanos()
    };
    let all_ns: u128 = header.cells.iter().map(of_cell).sum::<u128>() / header.cells.len().max(1) as u128;
    let one = Duration::from_nanos(u64::try_from(all_ns).unwrap_or(u64::MAX));
    one.saturating_mul(u32::try_from(n).unwrap_or(u32::MAX))
}

/// What the lock says to whoever finds it taken; `left` measurements are to be made.
pub(super) fn holder(header: &Header, left: usize) -> String {
    let now = SystemTime::now();
    let clock = |time| humantime::format_rfc3339_seconds(time).to_string()[..16].replace('T', " ");
    let (started, ends) = (clock(now), clock(now + expected(header, left)));
    format!("pid {} (started {started}, ends about {ends} UTC)", std::process::id())
}

/// The wall-clock time, UTC, as a directory name that sorts: 2026-11-20-143205.
pub(super) fn stamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string().replace('T', "-").replace([':', 'Z'], "")
}
