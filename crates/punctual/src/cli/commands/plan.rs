//! The plan of `punctual run`: a ready one, a file, or the default, with the changes of the command line.

mod dry_run;
mod libvirt;
mod ready;

pub(super) use dry_run::dry_run;
pub(super) use ready::{all, command, needs_root};

use super::consent::Origin;
use crate::cli::arguments::RunArguments;
use punctual_host::file::read_named;
use punctual_model::{ChangedPlanError, Plan, Setting};
use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

/// Maximum size of a plan in bytes. The bundled ones have about 2 KiB.
const LARGEST_PLAN: u64 = 16 << 20;

/// The plan with the changes of the command line, and its origin if it is a file.
pub(super) fn plan(arguments: &RunArguments) -> Result<(Plan, Option<Origin>), Box<dyn Error>> {
    let (mut plan, origin) = match &arguments.plan {
        // A plan without keys is the default but for its title.
        None => (Plan::parse_with(&format!("title = '{}'", Plan::default().title), &arguments.set)?, None),
        Some(path) => named(path, &arguments.set)?,
    };
    let settings_are_typed = arguments.common.prepare.is_some();
    let origin = origin.map(|from| from.with_settings(settings_are_typed).on(arguments.on.as_ref()));
    if !plan.knobs.is_empty() {
        return Err("the plan has knobs: punctual tune tries them, run does not".into());
    }
    libvirt::take_over(&mut plan.axes.kernel)?;
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
        (plan.conditions.prepare, plan.axes.prepare) = (prepare.clone(), Vec::new());
    }
    plan.require = common.require.unwrap_or(plan.require);
    plan.conditions.cpu_dma_latency_us =
        common.cpu_dma_latency.map_or(plan.conditions.cpu_dma_latency_us, |asked| asked.0);
    Ok((plan, origin))
}

/// The plan that `path` names, with settings of the command line, and its origin if it is a file. Domains of libvirt
/// are not taken over.
fn named(path: &Path, set: &[Setting]) -> Result<(Plan, Option<Origin>), Box<dyn Error>> {
    let (name, text, origin) = match ready_name(path) {
        Some(name) => (name.to_owned(), ready::text_of(name)?.to_owned(), None),
        None => {
            let (from, text) = file(path)?;
            (path.display().to_string(), text, Some(from))
        }
    };
    let plan = Plan::parse_with(&text, set).map_err(|err| match err {
        ChangedPlanError::Text(err) => format!("{name}:{err}"),
        err @ ChangedPlanError::Setting { .. } => err.to_string(),
    })?;
    Ok((plan, origin))
}

/// The plan that `path` names, as it stands in a file for other machines.
pub(super) fn portable(path: &Path, set: &[Setting]) -> Result<(Plan, Option<Origin>), Box<dyn Error>> {
    let (mut plan, origin) = named(path, set)?;
    libvirt::take_over(&mut plan.axes.kernel)?;
    Ok((plan, origin))
}

/// The name, if it is that of a ready plan: one word. A path has a `/` or ends with `.toml`.
fn ready_name(path: &Path) -> Option<&str> {
    path.to_str().filter(|name| !name.contains('/') && !name.ends_with(".toml"))
}

/// Reads a plan from a file.
fn file(path: &Path) -> Result<(Origin, String), String> {
    let read = read_named(path, LARGEST_PLAN).and_then(|(file, bytes)| Ok((Origin::of(path, &file)?, bytes)));
    let (origin, bytes) = read.map_err(|err| match path.file_stem().and_then(|name| name.to_str()) {
        _ if err.kind() != ErrorKind::NotFound => format!("{}: {err}", path.display()),
        Some(name) if ready::text_of(name).is_ok() => {
            format!("cannot read {}: {err}; {name} is a ready plan: punctual run {name}", path.display())
        }
        _ => format!("cannot read {}: {err}; ready plans: punctual plan list", path.display()),
    })?;
    let text = String::from_utf8(bytes).map_err(|err| {
        let valid = &err.as_bytes()[..err.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}:{line}: not UTF-8; save the plan as UTF-8 text", path.display())
    })?;
    Ok((origin, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_word_is_a_ready_plan_and_everything_else_a_path() {
        for (typed, name) in [
            ("quick-look", Some("quick-look")),
            ("quick-look.toml", None),
            ("./quick-look", None),
            ("plans/quick-look.toml", None),
            ("/dev/stdin", None),
        ] {
            assert_eq!(ready_name(Path::new(typed)), name, "{typed}");
        }
    }
}
