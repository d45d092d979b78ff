//! The plan of `punctual run`: a file or the default, with the changes of the command line.

use super::arguments::RunArguments;
use super::consent::Origin;
use host::file;
use model::Plan;
use std::error::Error;

/// Maximum size of a plan in bytes. The bundled ones have about 2 KiB.
const LARGEST_PLAN: u64 = 16 << 20;

/// The plan, from the file or the default, with the options of the command line; and its origin, if it is a file.
pub(super) fn plan(arguments: &RunArguments) -> Result<(Plan, Option<Origin>), Box<dyn Error>> {
    let mut origin = None;
    let mut plan = match &arguments.plan {
        None => Plan::default(),
        Some(path) => {
            let read =
                file::read_named(path, LARGEST_PLAN).and_then(|(file, bytes)| Ok((Origin::of(path, &file)?, bytes)));
            let (from, bytes) = read.map_err(|err| format!("{}: {err}", path.display()))?;
            origin = Some(from.with_settings(arguments.common.prepare.is_some()));
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
        plan.conditions.prepare = prepare.clone();
    }
    plan.require = common.require.unwrap_or(plan.require);
    plan.conditions.cpu_dma_latency_us =
        common.cpu_dma_latency.map_or(plan.conditions.cpu_dma_latency_us, |asked| asked.0);
    Ok((plan, origin))
}
