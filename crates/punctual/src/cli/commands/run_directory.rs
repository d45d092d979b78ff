//! The run directory of a measuring command, and the end of its output.

use super::show::beside_run;
use crate::cli::arguments::{Keep, RunFormat};
use crate::cli::terminal::output;
use crate::cli::terminal::output::OutputOptions;
use crate::cli::terminal::{RUNS, note};
use punctual_campaign::{CampaignError, Session, stamp};
use punctual_model::{Header, shell_word};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Creates the directory of a run, unless it is not to be kept. Errors: if the directory cannot be created, or holds
/// something else.
pub(super) fn keep(session: &mut Session, keep: &Keep) -> Result<Option<PathBuf>, Box<dyn Error>> {
    if keep.no_keep {
        return Ok(None);
    }
    let dir = keep.out.clone().unwrap_or_else(|| new_directory(started(&session.header)));
    let kept = session.keep_in(&dir);
    match kept {
        Err(err) if keep.out.is_none() => Err(format!("{err}; name a directory with --out, or add --no-keep").into()),
        kept => Ok(kept.map(|()| Some(dir))?),
    }
}

/// The default directory of a new run, named by the start time in UTC.
pub(super) fn new_directory(started: SystemTime) -> PathBuf {
    let started = stamp(started);
    let numbered = (2..=99).map(|number| format!("{started}-{number}"));
    let mut names = std::iter::once(started.clone()).chain(numbered).map(|name| Path::new(RUNS).join(name));
    names.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| Path::new(RUNS).join(started))
}

/// The start time of a run.
pub(super) fn started(header: &Header) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(header.started_unix_ms)
}

/// Prints the result of a session. A kept run gets its page, and is named on stderr. Returns the exit status. Errors:
/// if stdout cannot be written.
pub(super) fn finish(session: &Session, dir: Option<&Path>, options: OutputOptions) -> Result<u8, Box<dyn Error>> {
    let Session { header, entries, .. } = session;
    let name = dir.map(|dir| dir.display().to_string()).unwrap_or_default();
    let status = output::show(&name, header, entries, options)?;
    if let Some(dir) = dir {
        if options.format == RunFormat::Text {
            output::name_run(header, dir);
        }
        beside_run(dir, header, entries);
    }
    Ok(session.interrupted_status().unwrap_or_else(|| output::status_with_failures(status, header)))
}

/// Names the measurements that failed, with the command that tries them again.
pub(super) fn note_failures(session: &Session, dir: &Path) {
    if session.header.failed.is_empty() {
        return;
    }
    // What failed in each of its boots is not tried again.
    if session.header.is_over_boots() {
        note(format_args!("{} failed", output::failures(&session.header)));
    } else {
        note(format_args!("{} failed; try again with: {}", output::failures(&session.header), resume(session, dir)));
    }
}

/// The error that ended a campaign, with the command that continues its run, if it is kept in `dir`.
pub(super) fn error(session: &Session, err: &CampaignError, dir: Option<&Path>) -> Box<dyn Error> {
    match (err, dir) {
        (CampaignError::Interrupted { .. }, Some(dir)) => {
            session.stop().interrupted(format!("{err}; continue with: {}", resume(session, dir))).into()
        }
        (CampaignError::Interrupted { .. }, None) => session.stop().interrupted(err.to_string()).into(),
        (CampaignError::Cell { .. }, Some(dir)) => {
            let dir = dir.display().to_string();
            format!("{err} (kept so far: punctual show {})", shell_word(&dir)).into()
        }
        _ => err.to_string().into(),
    }
}

/// The command that continues the run in `dir`.
pub(super) fn resume(session: &Session, dir: &Path) -> String {
    let dir = dir.display().to_string();
    let on = session.on().map(ToString::to_string);
    let on = on.map(|site| format!(" --on {}", shell_word(&site))).unwrap_or_default();
    format!("punctual run --resume --out {}{on}", shell_word(&dir))
}
