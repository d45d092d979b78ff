//! `punctual show`: the summary of a run.

use super::Outcome;
use super::arguments::{RunFormat, ShowArguments};
use super::output::{self, Shown};
use super::read::Read;

pub(super) fn show(arguments: &ShowArguments) -> Outcome {
    let shown = Shown {
        format: arguments.format,
        all_findings: arguments.all,
        each_spike: arguments.all,
        cell: arguments.cell.as_deref(),
    };
    let read = Read::open(&arguments.run)?;
    output::write(&output::document(&read.results(""), shown)?)?;
    if let (RunFormat::Text, Read::Own(run, _)) = (arguments.format, &read) {
        output::name_samples(&run.header, &arguments.run);
    }
    read.note_damage();
    Ok(read.status())
}
