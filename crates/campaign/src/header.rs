//! The run of a plan on this machine: its cells, its seed, the snapshot of the host.

use super::boots;
use super::estimate::expected;
use super::expand::{Machine, expand};
use punctual_cell::trace::Instance;
use punctual_host::{HostFs, Preparation, Privileges};
use punctual_model::{Cell, Header, Host, Plan, RUN_FORMAT, Span, TOOL, Task};
use punctual_workload::runtime;
use punctual_workload::{instrument, load};
use std::error::Error;
use std::time::{Duration, SystemTime};

/// The run of `plan` on the machine in its present state; `samples`: whether all latencies are recorded. Errors: like
/// [`preview`].
pub(super) fn header(plan: Plan, samples: bool) -> Result<Header, Box<dyn Error>> {
    let header = preview(plan, samples)?;
    Ok(Header { host: punctual_host::snapshot(&HostFs::here()), ..header })
}

/// The same run without the snapshot of the host, for checks before the machine is locked. Errors: if the plan is
/// impossible here, none of its cells can be measured, or this machine lacks one of its settings.
pub(super) fn preview(plan: Plan, samples: bool) -> Result<Header, Box<dyn Error>> {
    let header = planned(plan, samples)?;
    let is_elsewhere = header.plan.conditions.roles.is_logged_elsewhere();
    let is_here = |cell: &&Cell| cell.kernel.is_here() && !is_elsewhere;
    // Without the right to trace, that of the policy does not matter.
    let mut asked = header.cells.iter().chain(header.skipped.iter().map(|skipped| &skipped.cell)).filter(is_here);
    if asked.any(|cell| cell.conditions.explain.is_some()) {
        Instance::root()?;
    }
    if header.cells.is_empty() {
        let reason = header.skipped.first().map(|skipped| skipped.reason.clone()).unwrap_or_default();
        return Err(format!("cannot measure anything: {reason}").into());
    }
    // Thousands of cells have the same settings on the same CPUs.
    let mut prepared: Vec<_> =
        header.cells.iter().filter(is_here).map(|cell| (&cell.conditions.prepare, &cell.cpus)).collect();
    prepared.dedup();
    let fs = HostFs::here();
    prepared.into_iter().try_for_each(|(prepare, cpus)| Preparation::check(&fs, prepare, cpus))?;
    Ok(header)
}

/// The only cell of a plan, as this machine and user can measure it. Errors: like [`preview`], and if the plan has
/// several cells.
pub fn only_cell(plan: &Plan) -> Result<Cell, Box<dyn Error>> {
    let header = preview(plan.clone(), false)?;
    match (header.cells.as_slice(), header.skipped.first()) {
        (_, Some(skipped)) => Err(skipped.reason.clone().into()),
        ([cell], None) => Ok(cell.clone()),
        (cells, None) => {
            Err(format!("the axes give {} cells, expected one; name one value for each axis", cells.len()).into())
        }
    }
}

/// The most cycles of a cell, except those that a minimum adds: such cells have long periods.
fn most_cycles(plan: &Plan) -> u64 {
    let shortest = plan.axes.period.iter().map(|period| period.ns()).min().unwrap_or(1);
    (plan.duration.ns() / shortest.max(1)).max(plan.min_cycles.unwrap_or(0))
}

/// The same run as this machine and user could measure it, even if that is nothing. Needs no privilege. Errors: if the
/// plan is impossible here.
pub(super) fn planned(plan: Plan, samples: bool) -> Result<Header, Box<dyn Error>> {
    if samples {
        punctual_store::check_samples()?;
    }
    if samples && plan.conditions.roles.is_logged_elsewhere() {
        return Err("unsupported: --samples with the logger on another machine; leave one of them out".into());
    }
    if let Some(policy) =
        plan.conditions.load_policy.filter(|_| plan.axes.load.iter().all(|load| load.parts().is_empty()))
    {
        return Err(format!(
            "cannot run the load as {policy}: the load is none; name one, like --load cpu, or leave the policy out"
        )
        .into());
    }
    let cpus = punctual_sys::sched::affinity(0)?;
    let privileges = Privileges::here(plan.cpus.as_ref().unwrap_or(&cpus).len(), most_cycles(&plan), samples);
    let machine = Machine {
        cpus,
        lock_memory: privileges.lock_memory,
        dma_latency: privileges.dma_latency,
        may_have: &Privileges::may_have,
        why_not: &why_no_program,
        why_no_load: &load::why_not,
    };
    boots::check_plan(&plan)?;
    let plan = boots::with_release(plan, punctual_host::kernel_release().as_deref())?;
    let (cells, skipped) =
        boots::without_absent(expand(&plan, &machine)?, &punctual_host::installed_kernels(&HostFs::here()));
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = plan.seed.unwrap_or_else(drawn_seed);
    let header = Header {
        format: RUN_FORMAT,
        tool: TOOL.to_owned(),
        started_unix_ms: u64::try_from(unix.as_millis())?,
        plan,
        seed,
        host: Host::default(),
        cells,
        skipped,
        samples,
        shard: None,
        failed: Vec::new(),
        films: Vec::new(),
    };
    if let Some(cell) = header.cells.iter().find(|cell| samples && cell.task.is_reported()) {
        return Err(format!("unsupported: samples of {}, which reports no single latency", cell.task.label()).into());
    }
    let longest = Duration::from_nanos(Span::MAX.ns());
    if expected(&header, header.n_measurements()) > longest {
        return Err(format!(
            "{} measurements take more than a year; reduce the duration or the number of blocks",
            header.n_measurements()
        )
        .into());
    }
    Ok(header)
}

/// A seed for a plan without one: the fine digits of the clock differ from run to run, which suffices, because the seed
/// is recorded.
pub fn drawn_seed() -> u64 {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(unix.subsec_nanos()) ^ unix.as_secs() << 20
}

/// Reason why the program of a task cannot be run here.
fn why_no_program(task: &Task) -> Option<String> {
    if task.instrument().is_some() && !punctual_cell::READS_RESULTS {
        return Some(punctual_cell::reads_no_results());
    }
    let of_instrument = task.instrument().and_then(|instrument| instrument::find_or_expect(instrument).err());
    let of_language = task.runtime().and_then(|runtime| runtime::find(runtime).err());
    let words = task.watch().and_then(punctual_model::Watch::words);
    let of_watch = words.and_then(|words| instrument::why_none(words.first().map_or("", String::as_str)));
    of_instrument.map(|err| err.to_string()).or_else(|| of_language.map(|err| err.to_string())).or(of_watch)
}
