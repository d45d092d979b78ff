//! `punctual store history`: whether and since when the series of the store changed.

use crate::cli::arguments::{HistoryArguments, HistoryFormat};
use crate::cli::terminal::{Outcome, output};
use punctual_analysis::history::{Budget, of_series};
use punctual_database::{Database, Location, Selection};
use punctual_report::{History, Judgment, history_html};
use std::path::Path;

/// Exit status: a series became later.
const LATER: u8 = 2;

/// Runs of a series whose histograms a page shows.
const HEAT_RUNS: usize = 400;

pub(super) fn history(arguments: &HistoryArguments) -> Outcome {
    let at = Location::named_or_of_user(arguments.store.named.as_deref())?;
    let mut database = Database::open_to_read(&at)?;
    let selection = Selection { machine: arguments.machine.clone(), cell: arguments.cell.clone() };
    let series = database.series(&selection)?;
    if series.is_empty() {
        return Err(format!("no series in {at} matches; `punctual store list` shows its runs").into());
    }
    let judgment = Judgment { recent: arguments.recent, margin: arguments.margin };
    let history = History::new(of_series(series, Budget::NIGHTLY), judgment);
    let mut text = Vec::new();
    match arguments.format {
        HistoryFormat::Text => history.text(&mut text, output::style(false))?,
        HistoryFormat::Json => output::json(&mut text, &history.document())?,
        HistoryFormat::Junit => text.extend_from_slice(history.junit().as_bytes()),
        HistoryFormat::Html => text.extend_from_slice(page(&mut database, &history)?.as_bytes()),
    }
    let page = (arguments.format == HistoryFormat::Html).then_some(Path::new("history.html"));
    match arguments.output.as_deref().or(page) {
        Some(path) => {
            punctual_host::file::write_named(path, &text)
                .map_err(|err| format!("cannot write {}: {err}", path.display()))?;
            output::write(format!("{}\n", path.display()).as_bytes())?;
        }
        None => output::write(&text)?,
    }
    Ok(if history.has_alarm() { LATER } else { 0 })
}

/// The page, with the histograms of the last runs of each series that it shows in full.
fn page(database: &mut Database, history: &History) -> Result<String, punctual_database::DatabaseError> {
    let mut histograms = Vec::new();
    for one in history.shown_in_full() {
        let points = &one.series.points;
        let last = points.get(points.len().saturating_sub(HEAT_RUNS)..).unwrap_or_default();
        let measured: Vec<_> = last.iter().map(|point| (point.run, point.cell_index)).collect();
        histograms.push(database.histograms(&measured)?);
    }
    Ok(history_html(history, &histograms))
}
