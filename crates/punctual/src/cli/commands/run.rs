//! `punctual run`: runs a campaign from a plan to the report.

use super::consent;
use super::plan::{dry_run, plan};
use super::show::beside_run;
use super::{run_directory, run_over_boots};
use crate::cli::arguments::{RunArguments, RunFormat};
use crate::cli::terminal::progress::Lines;
use crate::cli::terminal::{ERROR, Outcome, note, output, sentence};
use punctual_analysis::doctor;
use punctual_campaign::{Limits, Request, Session, decision};
use punctual_model::{Header, Shard, shell_word};
use std::error::Error;
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: RunArguments) -> Outcome {
    if arguments.dry_run {
        return dry_run(&arguments);
    }
    let (format, is_part, reboots) = (arguments.common.format, arguments.blocks.is_some(), arguments.reboot);
    // A shard has no numbers of its own.
    let shown = arguments.shard.is_none().then_some(format);
    let (dir, session) = measure(arguments, shown)?;
    if let Some(next) = session.next_boot()? {
        beside_run(&dir, &session.header, &session.entries);
        let words = ["run", "--resume", "--out"].map(str::to_owned);
        return run_over_boots::go_on(&dir, session, &next, &words, reboots);
    }
    let status = end(&dir, &session, format, is_part)?;
    // After the page: until then, a machine that goes down comes back here.
    if session.header.is_over_boots() {
        run_over_boots::end()?;
    }
    Ok(status)
}

/// Shows the result of a run or of a part of it; returns the exit status.
fn end(dir: &Path, session: &Session, format: RunFormat, is_part: bool) -> Outcome {
    let Session { header, entries, .. } = session;
    if let Some(shard) = header.shard {
        if format != RunFormat::Text {
            output::show(&dir.display().to_string(), header, entries, format.into())?;
        }
        return Ok(end_of_shard(shard, dir, session));
    }
    if is_part && header.plan.until.is_none() && session.is_unfinished() {
        let (done, all) = (entries.len(), header.n_measurements());
        beside_run(dir, header, entries);
        let resume = run_directory::resume(session, dir);
        note(format_args!("{done} of {all} measurements made; continue with: {resume}"));
        return Ok(0);
    }
    decision(header, entries).iter().for_each(sentence);
    let status = run_directory::finish(session, Some(dir), format.into())?;
    run_directory::note_failures(session, dir);
    Ok(status)
}

/// Names the part of the run that is made, and the next command; returns the exit status, which is no verdict: that
/// needs the whole run.
fn end_of_shard(shard: Shard, dir: &Path, session: &Session) -> u8 {
    let (done, all) = (session.entries.len(), session.header.n_measurements());
    let next = match session.is_unfinished() {
        true => format!("continue with: {}", run_directory::resume(session, dir)),
        false => {
            let dir = dir.display().to_string();
            format!("merge it with the others: punctual merge {} ... --out DIR", shell_word(&dir))
        }
    };
    if session.header.failed.is_empty() {
        note(format_args!("shard {shard}: {done} of {all} measurements made; {next}"));
        return 0;
    }
    note(format_args!("shard {shard}: {done} of {all} measurements made"));
    run_directory::note_failures(session, dir);
    ERROR
}

/// Measures the plan, or what is missing of it; returns the directory of the run and its session. Errors: if it cannot
/// begin, or ends early; what was measured until then is kept, and printed in the format `shown`, if there is one.
pub(super) fn measure(arguments: RunArguments, shown: Option<RunFormat>) -> Result<(PathBuf, Session), Box<dyn Error>> {
    let limits = Limits { at_most: arguments.at_most, blocks: arguments.blocks };
    let (dir, mut session) = if arguments.resume { resume(arguments)? } else { begin(arguments)? };
    let mut lines = Lines::new(&session.header, session.entries.len());
    let result = session.carry_out(lines.say_above(), &mut lines, limits);
    lines.finish();
    punctual_sys::fail::point("campaign-made");
    if let Err(err) = result {
        if !session.entries.is_empty() {
            beside_run(&dir, &session.header, &session.entries);
            if let Some(format) = shown {
                output::show(&dir.display().to_string(), &session.header, &session.entries, format.into())?;
            }
        }
        return Err(run_directory::error(&session, &err, Some(&dir)));
    }
    Ok((dir, session))
}

/// Begins a new run; returns its directory and session.
fn begin(arguments: RunArguments) -> Result<(PathBuf, Session), Box<dyn Error>> {
    let (plan, origin) = plan(&arguments)?;
    let common = &arguments.common;
    let permit = |header: &Header| {
        origin.iter().try_for_each(|origin| origin.permit(header, common.yes))?;
        consent::permit_floods(header, common.yes)?;
        if arguments.reboot {
            run_over_boots::permit(header, common.yes)?;
        }
        output::check(header, common.format)
    };
    let (samples, at_most, wait) = (arguments.samples, arguments.at_most, common.wait);
    let (on, shard) = (arguments.on, arguments.shard);
    let request = Request { plan, samples, at_most, shard, wait, on, permit: &permit, note: &|line| note(line) };
    let mut session = Session::begin(request)?;
    let header = &session.header;
    let from = arguments.plan.as_deref().unwrap_or(Path::new("the plan"));
    consent::announce(from, header, session.on());
    if common.prepare.is_none() {
        consent::announce_settings(from, header, session.on());
    }
    let dir = arguments.out.unwrap_or_else(|| run_directory::new_directory(run_directory::started(header)));
    session.keep_in(&dir)?;
    if arguments.reboot
        && let Err(err) = run_over_boots::kept(&dir)
    {
        session.discard_empty();
        return Err(err);
    }
    if session.header.cells.iter().any(|cell| !cell.kernel.is_virtual()) {
        doctor::in_brief(&session.header.host).into_iter().for_each(sentence);
    }
    Ok((dir, session))
}

/// Resumes the run in `--out`; returns its directory and session.
fn resume(arguments: RunArguments) -> Result<(PathBuf, Session), Box<dyn Error>> {
    let dir = arguments.out.unwrap_or_default();
    let (yes, wait, on) = (arguments.common.yes, arguments.common.wait, arguments.on);
    let permit = |header: &Header| {
        if arguments.reboot {
            run_over_boots::permit(header, yes)?;
        }
        Ok(consent::permit_resumption(&dir, header, on.as_ref(), yes)?)
    };
    let session = Session::resume(&dir, on.as_ref(), wait, arguments.force, &permit, &|line| note(line))?;
    Ok((dir, session))
}
