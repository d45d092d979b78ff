//! One cell, watched while it is measured. Nothing is kept but what is shown.

use super::arguments::{Common, RunFormat};
use super::live::Live;
use super::{Outcome, consent, note, output};
use analysis::enough::Outlook;
use campaign::{Request, Session};
use model::{Entry, Header, Plan};
use std::error::Error;
use std::path::Path;

/// Measures the one cell of `plan` and shows it.
pub(super) fn one(plan: Plan, common: &Common, samples: Option<&Path>) -> Outcome {
    let (header, entries) = measured(plan, common, samples)?;
    let status = output::show(&header, &entries, common.format.into())?;
    if let Some(samples) = samples.filter(|_| common.format == RunFormat::Text) {
        note(format_args!("samples: {}", samples.display()));
    }
    Ok(status)
}

/// Measures the one cell of `plan`, with a live view. Its latencies go to the new file `samples`, if it is named.
pub(super) fn measured(
    plan: Plan,
    common: &Common,
    samples: Option<&Path>,
) -> Result<(Header, Vec<Entry>), Box<dyn Error>> {
    let permit = |header: &Header| Ok(consent::permit_floods(header, common.yes)?);
    let (keeps, wait) = (samples.is_some(), common.wait);
    let request = Request { plan, samples: keeps, at_most: None, wait, permit: &permit, note: &|line| note(line) };
    let mut session = Session::begin(request)?;
    note(Outlook::of(session.cell(), 1));
    let mut live = Live::new(session.cell());
    let result = session.measure(samples, &mut |progress| live.show(progress));
    live.finish();
    result?;
    Ok((session.header, session.entries))
}
