//! `punctual run`: a campaign from a plan to the table.

use super::arguments::{RunArguments, RunFormat};
use super::consent::{self, Origin};
use super::progress::Lines;
use super::recover::take_machine;
use super::start::{header, holder, plan, stamp};
use super::until::{End, bounded};
use super::{Outcome, note, output, report};
use crate::campaign::{self, CampaignError, HereOrLab, Stop};
use crate::host::{self, HostFs, MachineLock};
use crate::store::{self, Writer};
use analysis::{comparability, doctor};
use model::{Entry, Header};
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(super) fn run(arguments: RunArguments) -> Outcome {
    let stop = Stop::on_signals()?;
    let (format, wait) = (arguments.common.format, arguments.common.wait);
    if !arguments.resume {
        // A mistake in the plan is said at once, not when the machine is free; what the machine is like is looked at then.
        output::check(&decided(&arguments, SystemTime::now())?, format)?;
    }
    let (at_most, blocks) = (arguments.at_most, arguments.blocks);
    let lock = take_machine(wait)?;
    let campaign = if arguments.resume { resume(arguments, &lock)? } else { fresh(arguments, &lock)? };
    let Campaign { dir, header, done, mut writer } = campaign;

    let mut lines = Lines::new(&header, done.len());
    let end = End::new(&header, &done, at_most, blocks);
    let is_over = |entries: &[Entry]| end.is_reached(entries);
    let mut executor = HereOrLab::default();
    let result = campaign::carry_out(&header, done, Some(&mut writer), &mut executor, &mut lines, &stop, &is_over);
    lines.finish();
    let entries = result.map_err(|err| match err {
        CampaignError::Interrupted { .. } => {
            format!("{err}; go on with: punctual run --resume --out {}", dir.display()).into()
        }
        CampaignError::Cell { .. } => format!("{err} (kept so far: punctual show {})", dir.display()).into(),
        CampaignError::Store(_) => Box::<dyn Error>::from(err),
    })?;
    if blocks.is_some() && header.plan.until.is_none() && entries.len() < header.n_measurements() {
        let (done, all) = (entries.len(), header.n_measurements());
        let dir = dir.display();
        note(format_args!("{done} of {all} measurements made; go on with: punctual run --resume --out {dir}"));
        return Ok(0);
    }
    let status = output::show(&header, &entries, format.into())?;
    end.said(&entries).iter().for_each(note);
    if format == RunFormat::Text {
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

/// What is to be measured, if the user agrees to all that it runs.
fn decided(arguments: &RunArguments, now: SystemTime) -> Result<Header, Box<dyn Error>> {
    let (plan, origin) = plan(arguments)?;
    let header = header(plan, arguments.samples, now)?;
    let yes = arguments.common.yes;
    origin.iter().try_for_each(|origin| origin.permit(&header, yes))?;
    consent::permit_floods(&header, yes)?;
    Ok(match arguments.at_most {
        Some(at_most) => bounded(header, at_most)?,
        None => header,
    })
}

fn fresh(arguments: RunArguments, lock: &MachineLock) -> Result<Campaign, Box<dyn Error>> {
    let now = SystemTime::now();
    let header = decided(&arguments, now)?;
    let from = arguments.plan.as_deref().unwrap_or(Path::new("the plan"));
    consent::announce(from, &header);
    if arguments.common.prepare.is_none() {
        consent::announce_settings(from, &header);
    }
    let dir = arguments.out.unwrap_or_else(|| Path::new("runs").join(stamp(now)));
    let writer = store::create(&dir, &header)?;
    if header.cells.iter().any(|cell| !cell.kernel.is_virtual()) {
        doctor::in_brief(&header.host).into_iter().for_each(note);
    }
    lock.say(&holder(&header, header.n_measurements()));
    Ok(Campaign { dir, header, done: Vec::new(), writer })
}

fn resume(arguments: RunArguments, lock: &MachineLock) -> Result<Campaign, Box<dyn Error>> {
    let dir = arguments.out.unwrap_or_default();
    let run = store::read(&dir)?;
    let file = store::file_of(&dir);
    // Whoever may write the directory can put another file in its place.
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for path in [parent, &file] {
        let origin = File::open(path).and_then(|opened| Origin::of(path, &opened));
        origin.map_err(|err| format!("{}: {err}", path.display()))?.permit(&run.header, arguments.common.yes)?;
    }
    consent::permit_floods(&run.header, arguments.common.yes)?;
    consent::announce(&dir, &run.header);
    consent::announce_settings(&dir, &run.header);
    same_machine(&run.header, arguments.force)?;
    run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    let writer = store::append(&dir, run.entries.len())?;
    lock.say(&holder(&run.header, run.header.n_measurements().saturating_sub(run.entries.len())));
    Ok(Campaign { dir, header: run.header, done: run.entries, writer })
}

/// Refuses to go on with a run on a machine that is not what it was when the run began, unless it is forced: then each
/// difference is said here, and is a finding of the run. What the plan itself sets is no difference.
fn same_machine(header: &Header, force: bool) -> Result<(), String> {
    let now = host::snapshot(&HostFs::here());
    let differences = comparability::since(header, &now);
    if !force && !differences.is_empty() {
        let named = differences.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "this machine is not what it was when the run began: {named}; put that back and resume, or begin another run; \
             --force goes on all the same"
        ));
    }
    differences.iter().for_each(|one| note(format_args!("not as when the run began: {one}")));
    Ok(())
}
