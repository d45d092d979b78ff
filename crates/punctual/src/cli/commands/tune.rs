//! `punctual tune`: which settings change the latency, by a screening and a confirmation.

mod keep;
mod request;
mod stages;

use super::run_over_boots;
use crate::cli::arguments::{Format, TuneArguments};
use crate::cli::terminal::{Outcome, note, output};
use punctual_analysis::tune;
use punctual_campaign::CampaignError;
use punctual_report::TuneReport;
use stages::Experiment;
use std::path::Path;

/// Exit status if a knob is undecided, equal to that of an inconclusive verdict.
const UNDECIDED: u8 = 3;

pub(super) fn tune(arguments: TuneArguments) -> Outcome {
    let mut experiment = match &arguments.resume {
        Some(dir) => Experiment::resume(dir, &arguments)?,
        None => Experiment::begin(&arguments)?,
    };
    let ended = conclude(&mut experiment, &arguments);
    match ended.as_ref().err().and_then(|err| err.downcast_ref()) {
        Some(CampaignError::NeedsBoot(next)) => experiment.go_on(next, &arguments),
        _ => ended,
    }
}

/// Makes what is missing of an experiment, and shows the answer.
fn conclude(experiment: &mut Experiment, arguments: &TuneArguments) -> Outcome {
    punctual_sys::fail::point("experiment-begun");
    let knobs = experiment.knobs().to_vec();
    let (header, screening) = experiment.screening()?;
    let screened = tune::screened(&knobs, arguments.response, &screening, header.seed)?;
    punctual_sys::fail::point("experiment-screened");
    let candidates = screened.candidates();
    let (tuned, confirmed) = if candidates.is_empty() {
        note("no knob shows a hint of an effect; nothing to confirm");
        (tune::tuned(&knobs, screened, &screening, &[], 1), Vec::new())
    } else {
        experiment.confirmation(arguments, &screened, &screening)?
    };
    punctual_sys::fail::point("experiment-confirmed");
    let design = tune::design(&knobs).ok_or("no knobs")?;
    let cell = header.cells.iter().zip(&design.runs).find(|(_, run)| run.iter().all(|changed| !changed));
    let shown = TuneReport {
        header: &header,
        cell: cell.map(|(cell, _)| cell).ok_or("no cell as it is")?,
        tuned: &tuned,
        dir: &experiment.dir.display().to_string(),
    };
    let mut text = Vec::new();
    match arguments.format {
        Format::Text => shown.text(&mut text, output::style(false))?,
        Format::Json => output::json(&mut text, &shown.json())?,
    }
    output::write(&text)?;
    page(&experiment.dir, &shown);
    if let Some(keep) = &arguments.keep {
        keep::write(keep, experiment.plan(), &tuned, &confirmed)?;
    }
    if header.is_over_boots() {
        run_over_boots::end()?;
    }
    Ok(if tuned.knobs.iter().any(|knob| knob.answer.is_open()) { UNDECIDED } else { 0 })
}

/// Writes the page beside both runs, and names it.
fn page(dir: &Path, shown: &TuneReport<'_>) {
    let path = dir.join("report.html");
    match punctual_store::write_page(&path, false, &punctual_report::tune_html(shown)) {
        Ok(()) => note(format_args!("report: {}", path.display())),
        Err(err) => note(format_args!("punctual: {err}")),
    }
}
