//! Option `--again`: explains the kept spikes of a run, or one that was sent, by the rules of this version.

use super::arguments::RunFormat;
use super::{ERROR, Outcome, note, one_line, output, read};
use ftrace::{Again, Capture, CaptureError};
use model::{CaptureFile, plain};
use report::{AgainDocument, JudgedAgain};
use std::error::Error;
use std::path::Path;

/// Explains all captures of the run `named`, or of the latest one.
pub(super) fn again(named: Option<&Path>, format: RunFormat) -> Outcome {
    if !matches!(format, RunFormat::Text | RunFormat::Json) {
        return Err("unsupported: --again in this format; use text or json".into());
    }
    let dir = read::named_or_latest(named)?;
    let is_file = dir.is_file() && dir.to_string_lossy().ends_with(CaptureFile::SUFFIX);
    if !is_file && !store::is_run(&dir) {
        return Err(store::StoreError::NoRun(dir).into());
    }
    let (mut judged, mut unreadable) = (Vec::new(), Vec::new());
    let names = if is_file { vec![dir.display().to_string()] } else { store::captures(&dir) };
    for name in names {
        let content = if is_file { read_named(&dir) } else { store::read_capture(&dir, &name).map_err(Into::into) };
        match content.and_then(|content| of_file(&content)) {
            Ok((version, all)) => judged.extend(all.into_iter().map(|Again { then, now }| JudgedAgain {
                capture: name.clone(),
                version: version.clone(),
                is_changed: now.as_ref() != Some(&then),
                then,
                now,
            })),
            Err(err) => unreadable.push(format!("{name}: {}", one_line(&*err))),
        }
    }
    unreadable.iter().for_each(|line| note(format_args!("punctual: {}", plain(line))));
    if judged.is_empty() && unreadable.is_empty() {
        let dir = dir.display();
        return Err(
            format!("{dir}: no events are kept of its spikes; those of new runs are, unless --captures none").into()
        );
    }
    let status = if unreadable.is_empty() { 0 } else { ERROR };
    let document = AgainDocument::new(env!("CARGO_PKG_VERSION"), judged, unreadable);
    let mut text = Vec::new();
    match format {
        RunFormat::Json => output::json(&mut text, &document)?,
        _ => document.text(&mut text, output::style(false))?,
    }
    output::write(&text)?;
    Ok(status)
}

/// Version of the program that made a capture, and its cases.
fn of_file(content: &[u8]) -> Result<(String, Vec<Again>), Box<dyn Error>> {
    let capture = Capture::unpack(content)?;
    let again: Result<Vec<Again>, CaptureError> = capture.again();
    Ok((capture.version().to_owned(), again?))
}

/// A capture that was named by its path.
fn read_named(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    Ok(host::file::read_named(path, store::MOST_CAPTURE_BYTES)?.1)
}
