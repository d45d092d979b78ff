//! `punctual measure`: one cell, watched while it is measured. Nothing is kept but what is shown.

use super::arguments::{Common, MeasureArguments, MeasureCommand, RunFormat};
use super::cost::cost;
use super::live::Live;
use super::recover::take_machine;
use super::response::response;
use super::sleep::sleep;
use super::start::{header, holder};
use super::{Outcome, consent, note, output};
use crate::campaign::{Child, Executor, Stop};
use analysis::enough::Outlook;
use model::{Entry, Header, Plan, Planned};
use std::error::Error;
use std::path::Path;
use std::time::SystemTime;

pub(super) fn measure(arguments: MeasureArguments) -> Outcome {
    match arguments.command {
        Some(MeasureCommand::Sleep(arguments)) => return sleep(*arguments),
        Some(MeasureCommand::Response(arguments)) => return response(*arguments),
        Some(MeasureCommand::Cost(arguments)) => return cost(*arguments),
        None => {}
    }
    let (common, plan) = arguments.cell.ask("measure", arguments.waiting.method);
    one(plan, &common, arguments.samples.as_deref())
}

/// Measures the one cell of `plan` and shows it.
pub(super) fn one(plan: Plan, common: &Common, samples: Option<&Path>) -> Outcome {
    let (header, entry) = measured(plan, common, samples)?;
    let status = output::show(&header, &[entry], common.format.into())?;
    if let Some(samples) = samples.filter(|_| common.format == RunFormat::Text) {
        note(format_args!("samples: {}", samples.display()));
    }
    Ok(status)
}

/// Measures the one cell of `plan`, with a live view. Its latencies go to the new file `samples`, if it is named.
pub(super) fn measured(plan: Plan, common: &Common, samples: Option<&Path>) -> Result<(Header, Entry), Box<dyn Error>> {
    let stop = Stop::on_signals()?;
    let header = header(plan, samples.is_some(), SystemTime::now())?;
    consent::permit_floods(&header, common.yes)?;
    let cell = header.cells.first().ok_or("nothing to measure")?;
    let lock = take_machine(common.wait)?;
    lock.say(&holder(&header, 1));
    note(Outlook::of(cell, 1));
    let mut live = Live::new(cell);
    let record = Child.execute(cell, 0, samples, &stop, &mut |progress| live.show(progress));
    live.finish();
    let entry = Entry { planned: Planned { block: 0, position: 0, cell_index: 0 }, record: record? };
    Ok((header, entry))
}
