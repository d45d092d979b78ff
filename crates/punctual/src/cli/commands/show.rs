//! `punctual show`: shows the summary of a run.

use super::read;
use super::read::Read;
use crate::cli::arguments::{RunFormat, ShowArguments};
use crate::cli::terminal::output;
use crate::cli::terminal::output::OutputOptions;
use crate::cli::terminal::{ERROR, Outcome};

/// Prints a run. The verdict does not change the exit status: `check` judges.
pub(super) fn show(arguments: &ShowArguments) -> Outcome {
    let ShowArguments { run, all, cell, columns, format } = arguments;
    let dir = read::named_or_latest(run.as_deref())?;
    let read = Read::open_cell(&dir, cell.as_deref())?;
    if columns.is_some() && *format != RunFormat::Text {
        return Err("unsupported: --columns with a format other than text; leave one out".into());
    }
    if columns.is_some() && !matches!(read, Read::Own(..)) {
        return Err("unsupported: --columns with imported measurements; leave it out".into());
    }
    let spikes = if *all { usize::MAX } else { 0 };
    let options = OutputOptions { format: *format, all_findings: *all, spikes, columns: *columns };
    output::write(&output::document(&read.results(&dir.display().to_string()), options)?)?;
    if let (RunFormat::Text, Read::Own(run, _)) = (format, &read) {
        output::name_samples(&run.header, &dir);
    }
    read.note_damage();
    Ok(if read.is_whole() { 0 } else { ERROR })
}
