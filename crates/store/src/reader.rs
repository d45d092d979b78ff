//! Reader of runs, with recovery from damaged lines.

use super::lines::{Line, Lines};
use super::seal::{self, Seal};
use super::{StoreError, foreign};
use punctual_analysis::on_all_cpus;
use punctual_host::file;
use punctual_model::{Entry, Header, Host, Plan, RECORD_FORMAT, RUN_FORMAT, ThreadRecord};
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run, complete or partial.
#[derive(Debug)]
pub struct Run {
    /// The header, written before the first measurement.
    pub header: Header,
    /// Every readable measurement, in the order they were made.
    pub entries: Vec<Entry>,
    /// Unreadable lines.
    pub damage: Vec<Damage>,
}

impl Run {
    /// Removes all cells except the one with this index, and their measurements.
    pub fn restrict(&mut self, index: usize) {
        let Some(cell) = self.header.cells.get(index).cloned() else { return };
        let header = &mut self.header;
        (header.cells, header.skipped) = (vec![cell], Vec::new());
        // A rule that ends a run is about all of its cells.
        header.plan.until = None;
        header.failed.retain(|failed| failed.planned.cell_index == index);
        header.failed.iter_mut().for_each(|failed| failed.planned.cell_index = 0);
        header.films.retain(|film| film.planned.cell_index == index);
        header.films.iter_mut().for_each(|film| film.planned.cell_index = 0);
        self.entries.retain(|entry| entry.planned.cell_index == index);
        self.entries.iter_mut().for_each(|entry| entry.planned.cell_index = 0);
    }
}

/// An unreadable line of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Damage {
    path: PathBuf,
    line: usize,
    reason: String,
}

impl Damage {
    /// Creates the description of an unreadable line.
    pub(super) fn new(path: &Path, line: usize, reason: String) -> Damage {
        Damage { path: path.to_owned(), line, reason }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { path, line, reason } = self;
        let again = if path.file_name().is_some_and(|name| name == super::IMPORTED_FILE) {
            "import its file again"
        } else {
            "--resume repeats the measurement"
        };
        write!(f, "{}:{line}: {reason}; line ignored; {again}", path.display())
    }
}

/// Reads the run in directory `dir`, or in the file `dir` itself. Errors: if there is no run, or its header cannot be
/// read.
pub fn read(dir: &Path) -> Result<Run, StoreError> {
    read_sharing(dir, Hosts::shared)
}

/// Reads the run with records that [share](Hosts::shared) or are [alike](Hosts::alike) in their machines.
pub(super) fn read_sharing(dir: &Path, share: fn(&mut Hosts, Entry) -> Entry) -> Result<Run, StoreError> {
    let path = super::file_of(dir);
    if !path.exists() && super::imported_file_in(dir).is_some() {
        return Err(StoreError::Imported(dir.to_owned()));
    }
    if !path.exists() {
        return Err(StoreError::NoRun(dir.to_owned()));
    }
    let mut lines = Lines::new(file::open(&path).map_err(StoreError::io("read", &path))?);
    let first = lines.next().map_err(StoreError::io("read", &path))?;
    let mut header = header(first, &path)?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut damage = Vec::new();
    let mut seen = HashSet::new();
    let mut hosts = Hosts::default();
    let mut line = 1;
    loop {
        let batch = lines.batch().map_err(StoreError::io("read", &path))?;
        if batch.is_empty() {
            let failed = super::failed::of_run(path.parent().unwrap_or(dir), &header).into_iter();
            header.failed =
                failed.filter(|failed| !seen.contains(&(failed.planned.block, failed.planned.cell_index))).collect();
            header.films = super::films::of_run(path.parent().unwrap_or(dir), &entries);
            return Ok(Run { header, entries, damage });
        }
        for entry in on_all_cpus(&batch, |line| entry(line, &header)) {
            line += 1;
            match entry {
                Ok(Some(entry)) if !seen.insert((entry.planned.block, entry.planned.cell_index)) => {
                    let reason = "duplicate measurement".to_owned();
                    damage.push(Damage { path: path.clone(), line, reason });
                }
                Ok(entry) => entries.extend(entry.map(|entry| share(&mut hosts, entry))),
                Err(reason) => damage.push(Damage { path: path.clone(), line, reason }),
            }
        }
    }
}

/// The most recent host descriptions: thousands of records share equal ones.
#[derive(Debug, Default)]
pub struct Hosts(VecDeque<Arc<Host>>);

impl Hosts {
    const CAPACITY: usize = 8;

    /// Replaces the host descriptions of an entry by equal ones seen before.
    pub fn shared(&mut self, entry: Entry) -> Entry {
        self.replaced(entry, |known, host| known == host)
    }

    /// The same for an entry that has been written, by descriptions that differ in nothing but times and counts that
    /// only grow: nothing is concluded from those of a record.
    pub fn alike(&mut self, entry: Entry) -> Entry {
        let is_alike = |known: &Host, host: &Host| {
            let mut host = host.clone();
            (host.platform.steal_ms, host.platform.cpu_time_ms) = (known.platform.steal_ms, known.platform.cpu_time_ms);
            host.tasks.looked_at = known.tasks.looked_at;
            *known == host
        };
        self.replaced(entry, is_alike)
    }

    fn replaced(&mut self, mut entry: Entry, is_it: impl Fn(&Host, &Host) -> bool) -> Entry {
        for host in [&mut entry.record.host_before, &mut entry.record.host_after] {
            match self.0.iter().find(|known| is_it(known, host)) {
                Some(known) => *host = Arc::clone(known),
                None => self.0.push_front(Arc::clone(host)),
            }
        }
        self.0.truncate(Hosts::CAPACITY);
        entry
    }
}

/// The text of a line if its checksum matches.
pub(super) fn intact(line: &Line) -> Result<&str, String> {
    let bytes = line.as_ref().map_err(|flaw| (*flaw).to_owned())?;
    if seal::check(bytes) == Seal::Broken {
        return Err("checksum mismatch".to_owned());
    }
    // UTF-8 is checked once here, which is faster than key by key.
    str::from_utf8(bytes.trim_ascii_end()).map_err(|err| err.to_string())
}

/// The first line of a run or of imported measurements. Errors: if it is damaged, or of a later version.
pub(super) fn first_line<T>(line: Option<Line>, path: &Path, parse: foreign::Parse<T>) -> Result<T, StoreError> {
    let damaged = |reason: String| StoreError::Header { path: path.to_owned(), reason };
    let line = line.unwrap_or_else(|| Ok(Vec::new()));
    let value = first_of(&line, path)?;
    let format = value["format"].as_u64().ok_or_else(|| damaged("no format number".to_owned()))?;
    if format > u64::from(RUN_FORMAT) {
        return Err(StoreError::Format { path: path.to_owned(), format, known: RUN_FORMAT });
    }
    let text = intact(&line).map_err(damaged)?;
    foreign::from_str(text, parse).map_err(|err| damaged(err.to_string()))
}

/// The first line of a file as JSON.
pub(super) fn first_of(line: &Line, path: &Path) -> Result<serde_json::Value, StoreError> {
    let damaged = |reason: String| StoreError::Header { path: path.to_owned(), reason };
    let is_cut_off = line.as_ref().is_ok_and(|line| !line.ends_with(b"\n"));
    if is_cut_off {
        return Err(damaged("truncated line".to_owned()));
    }
    let text = intact(line).map_err(damaged)?;
    serde_json::from_slice(text.as_bytes()).map_err(|err| damaged(err.to_string()))
}

pub(super) fn header(line: Option<Line>, path: &Path) -> Result<Header, StoreError> {
    let header = first_line(line, path, punctual_model::json::header)?;
    let is_sane = Plan::REPETITIONS.contains(&header.plan.repetitions);
    let reason = "invalid number of repetitions".to_owned();
    if is_sane { Ok(header) } else { Err(StoreError::Header { path: path.to_owned(), reason }) }
}

/// One measurement; `None` for an empty line, which follows a truncated line. A line without a line feed is complete if
/// it can be parsed: truncated JSON cannot.
pub(super) fn entry(line: &Line, header: &Header) -> Result<Option<Entry>, String> {
    if line.as_ref().is_ok_and(|line| line.trim_ascii_end().is_empty()) {
        return Ok(None);
    }
    let is_ended = line.as_ref().map_or(true, |line| line.ends_with(b"\n"));
    let damaged = |why: String| if is_ended { format!("damaged line ({why})") } else { "truncated line".to_owned() };
    let text = intact(line).map_err(damaged)?;
    let entry = foreign::from_str(text, punctual_model::json::entry).map_err(|err| damaged(err.to_string()))?;
    if entry.record.format > RECORD_FORMAT {
        return Err(format!("unsupported: record format {} is newer than this program", entry.record.format));
    }
    let is_planned = entry.planned.block < header.plan.repetitions;
    if !is_planned || header.cells.get(entry.planned.cell_index) != Some(&entry.record.cell) {
        return Err("the header does not plan this measurement".to_owned());
    }
    if !entry.record.threads.iter().all(ThreadRecord::is_consistent) {
        return Err("inconsistent counts".to_owned());
    }
    Ok(Some(entry))
}
