//! `punctual check`: checks an existing run against limits or an older run.

use super::read;
use super::read::Read;
use crate::cli::arguments::{CheckArguments, RunFormat};
use crate::cli::terminal::Outcome;
use crate::cli::terminal::output;
use crate::cli::terminal::output::OutputOptions;
use punctual_analysis::comparison::Question;
use punctual_analysis::history::{Response, check_against_history};
use punctual_analysis::{Level, RunSummary};
use punctual_database::{Database, Location};
use punctual_model::{Header, Requirement};
use punctual_report::Results;
use punctual_store::{ImportedRun, Run};
use std::error::Error;

pub(super) fn check(arguments: &CheckArguments) -> Outcome {
    let dir = read::named_or_latest(arguments.run.as_deref())?;
    let read = match Read::open_cell(&dir, arguments.cell.as_deref())? {
        Read::Imported(imported, _) => of_imported(imported, arguments)?,
        Read::Own(run, _) => of_run(*run, arguments)?,
    };
    write(&read.results(&dir.display().to_string()), arguments.format.into())?;
    read.note_damage();
    Ok(read.status())
}

/// Imported measurements against limits.
fn of_imported(mut run: ImportedRun, arguments: &CheckArguments) -> Result<Read, Box<dyn Error>> {
    if arguments.baseline.is_some() {
        return Err("unsupported: --baseline with imported measurements, which have no blocks; leave it out".into());
    }
    run.header.require = arguments.require.unwrap_or(run.header.require);
    asks_something(&run.header.require, false)?;
    Ok(Read::imported(run))
}

fn of_run(mut run: Run, arguments: &CheckArguments) -> Result<Read, Box<dyn Error>> {
    run.header.plan.require = arguments.require.unwrap_or(run.header.plan.require);
    asks_something(&run.header.plan.require, arguments.baseline.is_some())?;
    deadlines(&run.header)?;
    let mut summary = punctual_analysis::summarise(&run.header, &run.entries);
    if let Some(named) = arguments.baseline.as_ref().and_then(|named| named.to_str()?.strip_prefix("store:")) {
        against_store(&mut summary, &run, named, arguments)?;
    } else if let Some(dir) = &arguments.baseline {
        let old = punctual_store::read(dir)?;
        let CheckArguments { metric, margin, force, .. } = *arguments;
        let question = Question { metric, margin, force, ..Question::default() };
        let (new, older) = ((&run.header, &run.entries[..]), (&old.header, &old.entries[..]));
        punctual_analysis::check_against(&mut summary, new, older, &question)?;
        run.damage.extend(old.damage);
    }
    Ok(Read::Own(Box::new(run), summary))
}

/// Compares each cell with all earlier runs of its series in the store.
fn against_store(
    summary: &mut RunSummary,
    run: &Run,
    named: &str,
    arguments: &CheckArguments,
) -> Result<(), Box<dyn Error>> {
    if arguments.force || arguments.metric.is_some_and(|metric| metric != Level::P99) {
        return Err("unsupported: --force, and a metric other than p99, with a store; leave them out".into());
    }
    let named = Some(named).filter(|named| !named.is_empty());
    let mut database = Database::open_to_read(&Location::named_or_of_user(named)?)?;
    let header = &run.header;
    let earlier = |cell| database.earlier(&header.host, cell, header.started_unix_ms);
    let earlier = header.cells.iter().map(earlier).collect::<Result<Vec<_>, _>>()?;
    check_against_history(summary, header, &run.entries, &earlier, Response::P99, arguments.margin);
    Ok(())
}

/// Rejects a check without limits and baseline, which would always pass.
fn asks_something(require: &Requirement, has_baseline: bool) -> Result<(), String> {
    if require.is_empty() && !has_baseline {
        return Err("nothing to check: the run was measured without limits; name some with --require, like \
             max=1ms,p99.9=200us, or an older run with --baseline"
            .to_owned());
    }
    Ok(())
}

/// Rejects a new deadline: misses were counted against the old one while measuring.
fn deadlines(header: &Header) -> Result<(), String> {
    let require = &header.plan.require;
    let (Some(limit), Some(_)) = (require.max, require.misses_per_hour) else { return Ok(()) };
    match header.cells.iter().map(punctual_model::Cell::deadline).find(|deadline| *deadline != limit) {
        Some(deadline) => Err(format!(
            "misses were counted against {deadline} while measuring, not against max={limit}; check them apart, or \
             measure with --require max={limit}"
        )),
        None => Ok(()),
    }
}

fn write(results: &Results<'_>, options: OutputOptions) -> Result<(), Box<dyn Error>> {
    let text = match options.format {
        RunFormat::Text => {
            let mut text = Vec::new();
            punctual_report::cases(&mut text, results, output::style(false))?;
            text
        }
        RunFormat::Hgrm | RunFormat::Gnuplot => {
            let name = if options.format == RunFormat::Hgrm { "hgrm" } else { "gnuplot" };
            return Err(format!("unsupported: --format {name} for a verdict; use another format").into());
        }
        _ => output::document(results, options)?,
    };
    output::write(&text)
}
