//! `punctual run`: a campaign from a plan to the table.

use super::arguments::{Format, RunArguments};
use super::progress::Lines;
use super::recover::take_machine;
use super::start::{header, holder, plan, stamp};
use super::{Outcome, note, output, report};
use crate::campaign::{self, CampaignError, Child, Stop};
use crate::host::MachineLock;
use crate::store::{self, Writer};
use model::{Entry, Header};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(super) fn run(arguments: RunArguments) -> Outcome {
    let stop = Stop::on_signals()?;
    let (format, wait) = (arguments.common.format, arguments.common.wait);
    if !arguments.resume {
        // A mistake in the plan is said at once, not when the machine is free; what the machine is like is looked at then.
        header(plan(&arguments)?, arguments.samples, SystemTime::now())?;
    }
    let lock = take_machine(wait)?;
    let campaign = if arguments.resume { resume(arguments, &lock)? } else { fresh(arguments, &lock)? };
    let Campaign { dir, header, done, mut writer } = campaign;

    let mut lines = Lines::new(&header, done.len());
    let result = campaign::carry_out(&header, done, Some(&mut writer), &mut Child, &mut lines, &stop);
    lines.finish();
    let entries = result.map_err(|err| match err {
        CampaignError::Interrupted { .. } => {
            format!("{err}; go on with: punctual run --resume --out {}", dir.display()).into()
        }
        CampaignError::Cell { .. } => format!("{err} (kept so far: punctual show {})", dir.display()).into(),
        CampaignError::Store(_) => Box::<dyn Error>::from(err),
    })?;
    let status = output::show(&header, &entries, format, false)?;
    if format == Format::Text {
        note(dir.join("run.jsonl").display());
        output::name_samples(&header, &dir);
    }
    report::beside_run(&dir, &header, &entries);
    Ok(status)
}

/// A run that goes on from here.
struct Campaign {
    dir: PathBuf,
    header: Header,
    /// Measurements that are there already.
    done: Vec<Entry>,
    writer: Writer,
}

fn fresh(arguments: RunArguments, lock: &MachineLock) -> Result<Campaign, Box<dyn Error>> {
    let now = SystemTime::now();
    let header = header(plan(&arguments)?, arguments.samples, now)?;
    let dir = arguments.out.unwrap_or_else(|| Path::new("runs").join(stamp(now)));
    let writer = store::create(&dir, &header)?;
    lock.say(&holder(&header, header.n_measurements()));
    Ok(Campaign { dir, header, done: Vec::new(), writer })
}

fn resume(arguments: RunArguments, lock: &MachineLock) -> Result<Campaign, Box<dyn Error>> {
    let dir = arguments.out.unwrap_or_default();
    let run = store::read(&dir)?;
    run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    let writer = store::append(&dir, run.entries.len())?;
    lock.say(&holder(&run.header, run.header.n_measurements().saturating_sub(run.entries.len())));
    Ok(Campaign { dir, header: run.header, done: run.entries, writer })
}
