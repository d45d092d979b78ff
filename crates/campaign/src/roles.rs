//! Executor for a cell between machines: it starts target and host, runs the logger, and joins their records.

use super::child::Child;
use super::executor::{Executor, Failure};
use super::stop::Stop;
use crate::remote::{Deliveries, RoleCommand, RunningRole};
use punctual_model::{
    Cell, Conditions, Ended, Load, LoadRecord, Order, Progress, Record, Roles, Shares, Site, Span, TargetRecord,
};
use std::path::Path;
use std::sync::Arc;

/// Time after its cell after which a role ends by itself if the connection is lost.
const LOST_CONNECTION_MARGIN: Span = Span(300_000_000_000);

/// Measures `cell`, whose load runs on the machines of its roles. A role that ends early ends the cell. Errors: if a
/// role cannot be started, ends early, or nothing was measured: one line that names the role.
pub(super) fn execute(
    cell: &Cell,
    samples: Option<&Path>,
    deliveries: &mut Deliveries,
    stop: &Stop,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Record, Failure> {
    // Set by a stop request of the campaign, and by the end of a role.
    let own = Arc::new(Stop::new()?);
    stop.during(|| own.request(), || between(cell, samples, deliveries, &own, observe))?
}

fn between(
    cell: &Cell,
    samples: Option<&Path>,
    deliveries: &mut Deliveries,
    stop: &Arc<Stop>,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Record, Failure> {
    let roles = &cell.conditions.roles;
    let Shares { target: on_target, logger: on_logger, host: on_host } = roles.shares(&cell.load);
    // Started before the flood, which may make it unreachable.
    let target =
        roles.target.as_ref().map(|site| start(("target", site), answering(cell, &on_target), cell, deliveries, stop));
    let target = target.transpose()?;
    let host = roles.host.as_ref().filter(|_| !on_host.parts().is_empty());
    let host = match host.map(|site| start(("host", site), loading(&on_host), cell, deliveries, stop)).transpose() {
        Ok(host) => host,
        // The wait for the host also ends when the target has ended; the target's error comes first then.
        Err(failure) => return lasting(target).and(Err(failure)),
    };
    let of_logger = Cell {
        load: on_logger,
        conditions: Conditions { roles: Roles::default(), ..cell.clone().conditions },
        ..cell.clone()
    };
    let record = match roles.logger.as_ref().filter(|site| **site != Site::Here) {
        None => Child.execute(&of_logger, 0, samples, stop, observe),
        Some(site) => logged_there(site, &of_logger, deliveries, stop, observe),
    };
    // The end of a role is the cause of other errors.
    let (target, host) = (lasting(target)?, lasting(host)?);
    let mut record = record?;
    if record.ended == Ended::Interrupted {
        return Ok(record);
    }
    let host = host.map(|host| loads_of(&host.end()?)).transpose().map_err(Failure::Reported)?.unwrap_or_default();
    let target = target.map(|target| target_of(&target.end()?)).transpose().map_err(Failure::Reported)?;
    join(&mut record, cell, target, host);
    Ok(record)
}

/// Starts a role and waits until it is ready.
fn start(
    (role, site): (&'static str, &Site),
    command: Vec<String>,
    cell: &Cell,
    deliveries: &mut Deliveries,
    stop: &Arc<Stop>,
) -> Result<RunningRole, Failure> {
    let command = RoleCommand { role, site, command, input: None, at_most: at_most(cell) };
    let on_exit = Arc::clone(stop);
    let running = RunningRole::start(&command, deliveries, stop.flag(), move || on_exit.request());
    running.and_then(|mut running| running.wait_until_ready(stop.flag()).map(|()| running)).map_err(Failure::Reported)
}

/// Returns the role unless it has ended by itself.
fn lasting(role: Option<RunningRole>) -> Result<Option<RunningRole>, Failure> {
    match role {
        Some(role) if role.has_exited() => Err(Failure::Reported(role.exit_error())),
        role => Ok(role),
    }
}

fn at_most(cell: &Cell) -> Span {
    let measured = cell.conditions.warm_up.ns().saturating_add(cell.duration.ns());
    Span(measured.saturating_add(LOST_CONNECTION_MARGIN.ns()).min(Span::MAX.ns()))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Arguments of the target. `--yes`: the user has agreed to a flood on this machine.
fn answering(cell: &Cell, load: &Load) -> Vec<String> {
    let link = cell.conditions.roles.target_link.or(cell.task.link()).map(|link| link.to_string()).unwrap_or_default();
    let (policy, load) = (cell.policy.to_string(), load.to_string());
    let mut command =
        words(&["respond", "--on", &link, "--policy", &policy, "--load", &load, "--yes", "--format", "json"]);
    command.extend(cell.conditions.roles.target_cpu.iter().flat_map(|cpu| ["--cpu".to_owned(), cpu.to_string()]));
    command
}

/// Arguments of the host.
fn loading(load: &Load) -> Vec<String> {
    words(&["load", &load.to_string(), "--yes", "--format", "json"])
}

/// The record of a cell measured on another machine.
fn logged_there(
    site: &Site,
    cell: &Cell,
    deliveries: &mut Deliveries,
    stop: &Stop,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Record, Failure> {
    let command = RoleCommand {
        role: "logger",
        site,
        command: words(&["cell", "--progress"]),
        input: Some(serde_json::to_string(cell).map_err(std::io::Error::from)?),
        at_most: at_most(cell),
    };
    let running = RunningRole::start(&command, deliveries, stop.flag(), || {}).map_err(Failure::Reported)?;
    let end = running.stopper();
    let take_progress =
        |line: &str| punctual_model::json::progress(line.as_bytes()).map(|progress| observe(&progress)).is_ok();
    let record = stop.during(end, || running.listen(take_progress))?;
    punctual_model::json::record(record.map_err(Failure::Reported)?.as_bytes()).map_err(Failure::NoRecord)
}

fn target_of(text: &str) -> Result<TargetRecord, String> {
    punctual_model::json::target(text.as_bytes()).map_err(|err| format!("invalid record from the target: {err}"))
}

/// The load records in the output of `punctual load`.
fn loads_of(text: &str) -> Result<Vec<LoadRecord>, String> {
    punctual_model::json::loads(text.as_bytes()).map_err(|err| format!("invalid record from the host: {err}"))
}

/// Adds the records of the roles to that of the logger, which then describes the whole `cell`.
fn join(record: &mut Record, cell: &Cell, target: Option<TargetRecord>, host: Vec<LoadRecord>) {
    record.loads.extend(host);
    record.loads.extend(target.iter().flat_map(|target| target.loads.iter().cloned()));
    let order: Vec<_> = cell.load.parts().iter().map(ToString::to_string).collect();
    record.loads.order_by_key(|load| order.iter().position(|part| *part == load.load));
    if let Some(response) = &mut record.response {
        response.target = target.map(Box::new);
    }
    (record.cell_id, record.cell) = (cell.id(), cell.clone());
}
