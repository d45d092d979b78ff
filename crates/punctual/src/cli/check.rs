//! `punctual check`: a run that was made before, against limits or against an older run.

use super::arguments::{CheckArguments, RunFormat};
use super::output::{self, Shown};
use super::{ERROR, Outcome, import, note};
use analysis::RunSummary;
use analysis::comparison::Question;
use model::{Header, ImportHeader, Requirement};
use report::Page;
use std::error::Error;
use store::ImportedRun;

const NO_DISTRIBUTION: &str = "a verdict is no distribution; ask for another --format";

pub(super) fn check(arguments: &CheckArguments) -> Outcome {
    let shown = Shown { format: arguments.format, all_findings: false, each_spike: false, cell: None };
    if let Some(imported) = store::read_imported(&arguments.run)? {
        if arguments.baseline.is_some() {
            return Err("imported measurements have no blocks to compare; leave --baseline out".into());
        }
        let require = arguments.require.unwrap_or(imported.header.require);
        asks_something(&require, false)?;
        return of_imported(&imported, require, shown);
    }
    let mut run = store::read(&arguments.run)?;
    run.header.plan.require = arguments.require.unwrap_or(run.header.plan.require);
    asks_something(&run.header.plan.require, arguments.baseline.is_some())?;
    deadlines(&run.header)?;
    let mut summary = analysis::summarise(&run.header, &run.entries);
    let mut damage = run.damage;
    if let Some(dir) = &arguments.baseline {
        let old = store::read(dir)?;
        let CheckArguments { metric, margin, force, .. } = *arguments;
        let question = Question { metric, margin, force, ..Question::default() };
        let (new, older) = ((&run.header, &run.entries[..]), (&old.header, &old.entries[..]));
        analysis::check_against(&mut summary, new, older, &question)?;
        damage.extend(old.damage);
    }
    write(&run.header, &summary, shown)?;
    damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    let is_whole = damage.is_empty() || run.entries.len() >= run.header.n_measurements();
    Ok(if is_whole { summary.verdict.exit_status() } else { ERROR })
}

/// What other tools have measured, against limits.
fn of_imported(run: &ImportedRun, require: Requirement, shown: Shown<'_>) -> Outcome {
    match shown.format {
        RunFormat::Hgrm => return Err(NO_DISTRIBUTION.into()),
        RunFormat::Text => {}
        _ => return import::show(run, Some(&require), shown),
    }
    let header = ImportHeader { require, ..run.header.clone() };
    let summary = analysis::summarise_imported(&run.measurements, &require);
    let mut text = Vec::new();
    report::cases(&mut text, &Page::of_imported(&header, &summary), &[], output::style(false))?;
    output::write(&text)?;
    run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    Ok(if run.damage.is_empty() { summary.verdict.exit_status() } else { ERROR })
}

/// A check that checks nothing would always pass.
fn asks_something(require: &Requirement, has_baseline: bool) -> Result<(), String> {
    if require.is_empty() && !has_baseline {
        return Err("nothing to check: the run was measured without limits; name some with --require, like \
             max=1ms,p999=200us, or an older run with --baseline"
            .to_owned());
    }
    Ok(())
}

/// Misses were counted against a deadline while measuring, and cannot be counted again against another one.
fn deadlines(header: &Header) -> Result<(), String> {
    let require = &header.plan.require;
    let (Some(limit), Some(_)) = (require.max, require.misses_per_hour) else { return Ok(()) };
    match header.cells.iter().map(model::Cell::deadline).find(|deadline| *deadline != limit) {
        Some(deadline) => Err(format!(
            "misses were counted against {deadline} while measuring, not against max={limit}; check them apart, or \
             measure with --require max={limit}"
        )),
        None => Ok(()),
    }
}

fn write(header: &Header, summary: &RunSummary, shown: Shown<'_>) -> Result<(), Box<dyn Error>> {
    let text = match shown.format {
        RunFormat::Text => {
            let mut text = Vec::new();
            let page = Page::of_run(header, summary, false);
            report::cases(&mut text, &page, &summary.findings, output::style(false))?;
            text
        }
        RunFormat::Hgrm => return Err(NO_DISTRIBUTION.into()),
        _ => output::summary(header, summary, shown)?,
    };
    output::write(&text)
}
