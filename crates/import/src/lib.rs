//! Import of measurements of other tools.
//!
//! Each parser converts text to [`Imported`]. Nothing is invented that a file does not contain, and an error is one
//! line: file, line, reason.
#![forbid(unsafe_code)]

mod column;
mod cyclictest;
mod cyclictest_json;
mod detect;
mod error;
mod fields;
#[cfg(test)]
mod fuzz;
mod hdr_log;
mod jitterdebugger;
mod latmus;
mod libvirt;
mod numbers;
mod options;
mod oslat;
mod performance_test;
mod raw;
mod rt_dataset;
mod rteval;
mod rtla;
mod rttest;
mod samples;
#[cfg(test)]
mod tests;
mod xenomai;
mod xenomai_plot;
mod xml;

pub use error::ImportError;
pub use libvirt::{Domain, libvirt_domain};
pub use options::{ImportOptions, Unit};

use detect::{Content, Kind};
use error::ParseError;
use punctual_host::file;
use punctual_model::{Imported, ImportedThread, ResultFormat, ResultTool};
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

/// Whether this program reads results of others. What follows the test is left out by the compiler otherwise.
pub const READS_RESULTS: bool = cfg!(feature = "results");

/// Why it reads none.
pub fn left_out() -> String {
    punctual_model::left_out("results of other programs", "import")
}

/// Size limit of text files, bytes: a histogram of a million rows and a thousand CPUs fits.
const MAX_TEXT: u64 = 1 << 31;
/// Size limit of piped input, bytes, which is held in memory.
const MAX_PIPED: u64 = 1 << 28;

/// Imports one file: a measurement for each kind of latency in it. Errors: if it cannot be read, or is not in a known
/// format.
pub fn import(path: &Path, stated: &ImportOptions) -> Result<Vec<Imported>, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    let flaw = |flaw: ParseError| flaw.of(path);
    let is_file = std::fs::metadata(path).map_err(io)?.is_file();
    let (mut file, length): (Box<dyn BufRead>, u64) = if is_file {
        let file = file::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        (Box::new(BufReader::with_capacity(1 << 20, file)), length)
    } else {
        let (_, bytes) = file::read_named(path, MAX_PIPED).map_err(io)?;
        let length = bytes.len() as u64;
        (Box::new(Cursor::new(bytes)), length)
    };
    let mut head = Vec::new();
    file.by_ref().take(detect::HEAD).read_to_end(&mut head).map_err(io)?;
    let name = path.display().to_string();
    let mut all = if detect::content(&head).map_err(flaw)? == Content::Raw {
        let (reread, length) = (head.chain(file), length.max(raw::RECORD as u64));
        raw::read(reread, length, &name, stated).map_err(|err| match err {
            raw::RawError::Io(source) => io(source),
            raw::RawError::ParseError(reason) => flaw(reason),
        })?
    } else if length > MAX_TEXT {
        return Err(flaw(ParseError::of_file("too large for the text of a known tool: more than 2 GiB")));
    } else {
        let mut bytes = head;
        file.take(MAX_TEXT).read_to_end(&mut bytes).map_err(io)?;
        text(&bytes, &name, stated).map_err(flaw)?
    };
    for imported in &mut all {
        state(imported, stated);
    }
    Ok(all)
}

/// Parses the result that an outside program has just written in format `read`; `name` is for the source. Errors: one
/// line: when the text is empty, truncated, of another program, or has no latency or several kinds of them.
pub fn result(bytes: &[u8], read: &ResultFormat, name: &str) -> Result<Imported, String> {
    let wanted = |what: String| format!("no result of {read}: {what}");
    let described = |err: ParseError| {
        let line = err.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        wanted(format!("{line}{}", err.reason))
    };
    if bytes.trim_ascii().is_empty() {
        return Err(wanted("nothing was written".to_owned()));
    }
    let unit = match read.tool {
        ResultTool::TableUs => Some(Unit::Us),
        ResultTool::TableNs => Some(Unit::Ns),
        _ => None,
    };
    let stated = ImportOptions { unit, ..ImportOptions::default() };
    let head = &bytes[..bytes.len().min(usize::try_from(detect::HEAD).unwrap_or(usize::MAX))];
    let is_raw = detect::content(head).is_ok_and(|content| content == Content::Raw);
    let is_expected = if is_raw {
        read.tool == ResultTool::Jitterdebugger
    } else {
        let kind = std::str::from_utf8(bytes).ok().and_then(|text| detect::kind(text).ok());
        kind.is_some_and(|kind| kind.tools().contains(&read.tool))
    };
    if !is_expected {
        return Err(wanted("the output is in another format".to_owned()));
    }
    let all = if is_raw {
        raw::read(bytes, bytes.len() as u64, name, &stated).map_err(|err| match err {
            raw::RawError::Io(err) => wanted(err.to_string()),
            raw::RawError::ParseError(err) => described(err),
        })?
    } else {
        text(bytes, name, &stated).map_err(described)?
    };
    let kinds: Vec<String> = all.iter().map(|imported| imported.conditions.what.clone()).collect();
    let is_wanted = |imported: &Imported| read.kind.as_ref().is_none_or(|kind| *kind == imported.conditions.what);
    let mut found = all.into_iter().filter(is_wanted);
    match (found.next(), found.next()) {
        (Some(one), None) if has_latencies(&one) => Ok(one),
        (Some(_), None) => Err(wanted("it has no sample".to_owned())),
        (None, _) => Err(wanted(format!("it has latencies of kind {}", kinds.join(", ")))),
        (Some(_), Some(_)) => {
            let (kinds, last) = (kinds.join(", "), kinds.last().cloned().unwrap_or_default());
            Err(wanted(format!(
                "it has latencies of several kinds ({kinds}); name one, like {}/{last}",
                read.tool_name()
            )))
        }
    }
}

/// Whether there is a sample at all: tools that were interrupted early print extremes of none.
fn has_latencies(imported: &Imported) -> bool {
    imported.threads.iter().any(|thread| {
        let extremes = thread.min_ns.zip(thread.max_ns);
        thread.samples != Some(0) && (thread.samples.is_some() || thread.histogram.is_some() || extremes.is_some())
    })
}

/// Parses a text file.
fn text(bytes: &[u8], name: &str, stated: &ImportOptions) -> Result<Vec<Imported>, ParseError> {
    let text = std::str::from_utf8(bytes).map_err(|err| {
        let line = bytes[..err.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        ParseError::at(line, "expected text, or samples.raw of jitterdebugger")
    })?;
    let all = match detect::kind(text)? {
        Kind::Cyclictest => vec![cyclictest::read(text, name, stated)?],
        Kind::CyclictestJson => vec![cyclictest_json::read(text, name)?],
        Kind::Jitterdebugger => vec![jitterdebugger::read(text, name)?],
        Kind::Rtla => rtla::read(text, name)?,
        Kind::Rteval => rteval::read(text, name)?,
        Kind::Xenomai => vec![xenomai::read(text, name)?],
        Kind::XenomaiPlot => vec![xenomai_plot::read(text, name)?],
        Kind::RtDataset => vec![rt_dataset::read(text, name)?],
        Kind::Latmus => vec![latmus::read(text, name)?],
        Kind::Oslat => vec![oslat::read(text, name)?],
        Kind::OslatJson => vec![oslat::json(text, name)?],
        Kind::HdrLog => hdr_log::read(text, name, stated)?,
        Kind::Rttest => vec![rttest::read(text, name)?],
        Kind::PerformanceTestJson => vec![performance_test::json(text, name)?],
        Kind::PerformanceTestCsv => vec![performance_test::csv(text, name)?],
        Kind::Numbers => vec![numbers::read(text, name, stated)?],
    };
    let is_sound = |imported: &Imported| imported.threads.iter().all(ImportedThread::is_consistent);
    if all.iter().all(is_sound) { Ok(all) } else { Err(ParseError::of_file("contradictory counts")) }
}

/// Remark for results of tools that keep no distribution without an option.
const NO_HISTOGRAM: &str = "no histogram (-h): no quantile is known";

/// Adds properties stated by the user where the file does not contain them.
fn state(imported: &mut Imported, stated: &ImportOptions) {
    let conditions = &mut imported.conditions;
    let mut add = |name: &str, is_new: bool| {
        if is_new {
            conditions.stated.push(name.to_owned());
        }
    };
    add("period", conditions.period.is_none() && stated.period.is_some());
    add("policy", conditions.policy.is_none() && stated.policy.is_some());
    add("load", conditions.load.is_none() && stated.load.is_some());
    conditions.period = conditions.period.or(stated.period);
    conditions.policy = conditions.policy.or(stated.policy);
    conditions.load = conditions.load.take().or_else(|| stated.load.clone());
}
