//! One cell, with a live view while it is measured.

use super::{consent, run_directory};
use crate::cli::arguments::{Common, Keep, RunFormat};
use crate::cli::terminal::live::Live;
use crate::cli::terminal::output::OutputOptions;
use crate::cli::terminal::{Outcome, note};
use analysis::enough::Outlook;
use campaign::{Request, Session};
use model::{Header, Plan};
use std::path::Path;

/// Measures the one cell of `plan` and prints it. Its latencies go to the new file `samples`, if given.
pub(super) fn one(plan: Plan, common: &Common, keep: &Keep, samples: Option<&Path>, options: OutputOptions) -> Outcome {
    let permit = |header: &Header| Ok(consent::permit_floods(header, common.yes)?);
    let (keeps, wait) = (samples.is_some(), common.wait);
    let request = Request { samples: keeps, ..Request::here(plan, wait, &permit, &|line| note(line)) };
    let mut session = Session::begin(request)?;
    let dir = run_directory::keep(&mut session, keep)?;
    note(Outlook::of(session.cell(), 1));
    let mut live = Live::new(session.cell());
    let result = session.measure(samples, &mut |progress| live.show(progress));
    live.finish();
    if let Err(err) = result {
        session.discard_empty();
        return Err(err);
    }
    let status = run_directory::finish(&session, dir.as_deref(), options)?;
    if let Some(samples) = samples.filter(|_| options.format == RunFormat::Text) {
        note(format_args!("samples: {}", samples.display()));
    }
    Ok(status)
}
