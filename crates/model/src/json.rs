//! JSON of records and cells, parsed here: each other crate that did so would compile the parsers of all types again.

use crate::{
    BootLine, Cell, Entry, Failed, Header, ImportHeader, Imported, KeptFilm, LoadRecord, MonitorLine, Progress, Record,
    TargetRecord,
};
use serde::Deserialize;
use serde_json::{Result, from_slice};

/// Parses a record.
#[inline(never)]
pub fn record(text: &[u8]) -> Result<Record> {
    from_slice(text)
}

/// Parses a cell.
#[inline(never)]
pub fn cell(text: &[u8]) -> Result<Cell> {
    from_slice(text)
}

/// Parses the header of a run.
#[inline(never)]
pub fn header(text: &[u8]) -> Result<Header> {
    from_slice(text)
}

/// Parses a measurement of a run.
#[inline(never)]
pub fn entry(text: &[u8]) -> Result<Entry> {
    from_slice(text)
}

/// Parses a failed measurement.
#[inline(never)]
pub fn failed(text: &[u8]) -> Result<Failed> {
    from_slice(text)
}

/// Parses a film that is kept with a run.
#[inline(never)]
pub fn kept_film(text: &[u8]) -> Result<KeptFilm> {
    from_slice(text)
}

/// Parses a line about a boot.
#[inline(never)]
pub fn boot(text: &[u8]) -> Result<BootLine> {
    from_slice(text)
}

/// Parses the header of imported measurements.
#[inline(never)]
pub fn import_header(text: &[u8]) -> Result<ImportHeader> {
    from_slice(text)
}

/// Parses an imported measurement.
#[inline(never)]
pub fn imported(text: &[u8]) -> Result<Imported> {
    from_slice(text)
}

/// Parses a line of a monitor.
#[inline(never)]
pub fn monitor_line(text: &[u8]) -> Result<MonitorLine> {
    from_slice(text)
}

/// Parses the progress of a cell.
#[inline(never)]
pub fn progress(text: &[u8]) -> Result<Progress> {
    from_slice(text)
}

/// Parses the record of a responder.
#[inline(never)]
pub fn target(text: &[u8]) -> Result<TargetRecord> {
    from_slice(text)
}

/// Parses the load records in the output of `punctual load`.
#[inline(never)]
pub fn loads(text: &[u8]) -> Result<Vec<LoadRecord>> {
    #[derive(Deserialize)]
    struct Document {
        loads: Vec<LoadRecord>,
    }
    from_slice::<Document>(text).map(|document| document.loads)
}
