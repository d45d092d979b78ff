//! Option `--again`: explains the kept spikes of a run, or one that was sent, by the rules of this version.

use super::read;
use crate::cli::arguments::RunFormat;
use crate::cli::terminal::{ERROR, Outcome, note, one_line, output};
use punctual_ftrace::{Again, Capture};
use punctual_model::{CaptureFile, plain};
use punctual_report::{AgainDocument, JudgedAgain};
use std::error::Error;
use std::path::Path;

/// Captures with their names, and one line for each that cannot be read.
type Captures = (Vec<(String, Capture)>, Vec<String>);

/// Explains all captures of the run `named`, or of the latest one.
pub(super) fn again(named: Option<&Path>, format: RunFormat) -> Outcome {
    if !matches!(format, RunFormat::Text | RunFormat::Json) {
        return Err("unsupported: --again in this format; use text or json".into());
    }
    let (captures, mut unreadable) = captures(&read::named_or_latest(named)?)?;
    let mut judged = Vec::new();
    for (name, capture) in captures {
        let again = match capture.again() {
            Ok(again) => again,
            Err(err) => {
                unreadable.push(unread(&name, &err));
                continue;
            }
        };
        judged.extend(again.into_iter().map(|Again { then, now }| JudgedAgain {
            capture: name.clone(),
            version: capture.version().to_owned(),
            is_changed: now.as_ref() != Some(&then),
            then,
            now,
        }));
    }
    let status = if unreadable.is_empty() { 0 } else { ERROR };
    let document = AgainDocument::new(env!("CARGO_PKG_VERSION"), judged, unreadable);
    let mut text = Vec::new();
    match format {
        RunFormat::Json => output::json(&mut text, &serde_json::to_value(&document)?)?,
        _ => document.text(&mut text, output::style(false))?,
    }
    output::write(&text)?;
    Ok(status)
}

/// The captures of a run or in a directory, or the one at this path. Those that cannot be read are named on stderr.
/// Errors: if the path names neither a run nor captures, or the run has none.
pub(super) fn captures(path: &Path) -> Result<Captures, Box<dyn Error>> {
    let is_file = path.is_file() && path.to_string_lossy().ends_with(CaptureFile::SUFFIX);
    let names = if is_file { vec![path.display().to_string()] } else { punctual_store::captures(path) };
    if names.is_empty() {
        if !punctual_store::is_run(path) {
            return Err(punctual_store::StoreError::NoRun(path.to_owned()).into());
        }
        let path = path.display();
        return Err(
            format!("{path}: no events are kept of its spikes; those of new runs are, unless --captures none").into()
        );
    }
    let (mut whole, mut unreadable) = (Vec::new(), Vec::new());
    for name in names {
        let content =
            if is_file { read_named(path) } else { punctual_store::read_capture(path, &name).map_err(Into::into) };
        match content.and_then(|content| Ok(Capture::unpack(&content)?)) {
            Ok(capture) => whole.push((name, capture)),
            Err(err) => unreadable.push(unread(&name, &*err)),
        }
    }
    Ok((whole, unreadable))
}

/// Names a capture that cannot be read; returns the line.
fn unread(name: &str, err: &dyn Error) -> String {
    let line = format!("{name}: {}", one_line(err));
    note(format_args!("punctual: {}", plain(&line)));
    line
}

/// A capture that was named by its path.
fn read_named(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    Ok(punctual_host::file::read_named(path, punctual_store::MOST_CAPTURE_BYTES)?.1)
}
