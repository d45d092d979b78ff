//! `punctual run --dry-run`: everything that a run would do, without doing it.

use super::plan;
use crate::cli::arguments::{RunArguments, RunFormat};
use crate::cli::commands::consent;
use crate::cli::terminal::{Outcome, note, output};
use punctual_analysis::CannotPass;
use punctual_campaign::{Forecast, forecast};
use punctual_model::Header;
use punctual_report::json::{DryRun, PlannedCell};

/// Shows the run; measures and changes nothing, and needs no privilege.
pub(in crate::cli) fn dry_run(arguments: &RunArguments) -> Outcome {
    let format = arguments.common.format;
    if !matches!(format, RunFormat::Text | RunFormat::Json) {
        return Err("--dry-run has the formats text and json; leave --format out".into());
    }
    let (plan, origin) = plan(arguments)?;
    let forecast =
        forecast(plan, arguments.on.as_ref(), arguments.samples, arguments.at_most, arguments.shard, &|line| {
            note(line)
        })?;
    let header = &forecast.header;
    let run = document(&forecast)?;
    let mut text = Vec::new();
    match format {
        RunFormat::Json => output::json(&mut text, &run)?,
        _ => punctual_report::dry_run(&run, &mut text, output::style(false))?,
    }
    output::write(&text)?;
    let yes = arguments.common.yes;
    let consents = origin.map_or(Ok(()), |origin| origin.permit(header, yes));
    if let Err(refusal) = consents.and_then(|()| consent::permit_floods(header, yes)) {
        note(format_args!("punctual: without --dry-run this would be refused: {refusal}"));
    }
    Ok(0)
}

fn document(forecast: &Forecast) -> Result<DryRun<'_>, std::num::TryFromIntError> {
    let Header { plan, cells, skipped, .. } = &forecast.header;
    let all: Vec<_> = cells.iter().chain(skipped.iter().map(|skipped| &skipped.cell)).cloned().collect();
    let mut names = punctual_analysis::cell_names(&all);
    names.truncate(cells.len());
    let (settings, programs) = consent::actions(&forecast.header);
    // Every block has each cell once; a shard in virtual time has some of them.
    let of_block = |block: &[punctual_model::Planned]| block.iter().map(|planned| planned.cell_index).collect();
    let blocks =
        |order: &Vec<punctual_model::Planned>| order.chunk_by(|a, b| a.block == b.block).map(of_block).collect();
    let order = forecast.order.as_ref().map(blocks);
    let cannot_pass = CannotPass::all(&plan.require, names.iter().map(String::as_str).zip(cells), plan.repetitions);
    Ok(DryRun {
        title: &plan.title,
        cells: names.into_iter().zip(cells).map(|(name, cell)| PlannedCell { name, cell }).collect(),
        skipped: punctual_analysis::findings::skipped(&forecast.header),
        blocks: plan.repetitions,
        measurements: forecast.header.n_measurements(),
        can_end_early: plan.until.is_some(),
        seed: plan.seed,
        order,
        expected_ns: u64::try_from(forecast.time.as_nanos())?,
        disk_bytes: forecast.disk_bytes,
        require: &plan.require,
        cannot_pass,
        settings,
        programs,
    })
}
