//! Reading a run, whole or damaged.

use super::StoreError;
use analysis::on_all_cpus;
use model::{Entry, Header, Host, Plan, RECORD_FORMAT, RUN_FORMAT, ThreadRecord};
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run as far as it has come.
#[derive(Debug)]
pub(crate) struct Run {
    /// What was decided before the first measurement.
    pub(crate) header: Header,
    /// Every measurement that can be read, in the order they were made.
    pub(crate) entries: Vec<Entry>,
    /// Lines that cannot be read.
    pub(crate) damage: Vec<Damage>,
}

/// A line of a run that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    path: PathBuf,
    line: usize,
    reason: String,
}

impl Damage {
    /// A line that cannot be read.
    pub(super) fn new(path: &Path, line: usize, reason: String) -> Damage {
        Damage { path: path.to_owned(), line, reason }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { path, line, reason } = self;
        let again = if path.file_name().is_some_and(|name| name == super::imported::FILE) {
            "import its file again"
        } else {
            "--resume makes what is missing"
        };
        write!(f, "{}:{line}: {reason}; this line is left out, {again}", path.display())
    }
}

/// Reads the run in directory `dir` (or in `dir/run.jsonl`, named itself).
///
/// # Errors
/// When there is no run, or its header cannot be read.
pub(crate) fn read(dir: &Path) -> Result<Run, StoreError> {
    let path = super::file_of(dir);
    if !path.exists() && super::imported::file_in(dir).is_some() {
        return Err(StoreError::Imported(dir.to_owned()));
    }
    if !path.exists() {
        return Err(StoreError::NoRun(dir.to_owned()));
    }
    let file = File::open(&path).map_err(StoreError::io("read", &path))?;
    let mut lines = Lines(BufReader::new(file));
    let first = lines.next().map_err(StoreError::io("read", &path))?;
    let header = header(&first, &path)?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut damage = Vec::new();
    let mut seen = HashSet::new();
    let mut hosts = Hosts::default();
    let mut line = 1;
    loop {
        let batch = lines.batch().map_err(StoreError::io("read", &path))?;
        if batch.is_empty() {
            return Ok(Run { header, entries, damage });
        }
        for entry in on_all_cpus(&batch, |line| entry(line, &header)) {
            line += 1;
            match entry {
                Ok(Some(entry)) if !seen.insert((entry.planned.block, entry.planned.cell_index)) => {
                    let reason = "the measurement was there already".to_owned();
                    damage.push(Damage { path: path.clone(), line, reason });
                }
                Ok(entry) => entries.extend(entry.map(|entry| hosts.shared(entry))),
                Err(reason) => damage.push(Damage { path: path.clone(), line, reason }),
            }
        }
    }
}

/// A file line by line, so that a long run is never in memory twice.
struct Lines(BufReader<File>);

impl Lines {
    /// The next line with its line feed, if it has one; empty at the end.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line)?;
        Ok(line)
    }

    /// The next lines, some megabytes of them; none at the end.
    fn batch(&mut self) -> io::Result<Vec<Vec<u8>>> {
        const BYTES: usize = 2 << 20;
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while bytes < BYTES {
            let line = self.next()?;
            if line.is_empty() {
                break;
            }
            bytes += line.len();
            lines.push(line);
        }
        Ok(lines)
    }
}

/// The machines of the last records: those of thousands are equal, and are kept once.
#[derive(Default)]
struct Hosts(VecDeque<Arc<Host>>);

impl Hosts {
    const KEPT: usize = 8;

    fn shared(&mut self, mut entry: Entry) -> Entry {
        for host in [&mut entry.record.host_before, &mut entry.record.host_after] {
            match self.0.iter().find(|known| *known == host) {
                Some(known) => *host = Arc::clone(known),
                None => self.0.push_front(Arc::clone(host)),
            }
        }
        self.0.truncate(Hosts::KEPT);
        entry
    }
}

fn header(line: &[u8], path: &Path) -> Result<Header, StoreError> {
    let damaged = |reason: String| StoreError::Header { path: path.to_owned(), reason };
    if !line.ends_with(b"\n") {
        return Err(damaged("the line is cut off".to_owned()));
    }
    let value: serde_json::Value = serde_json::from_slice(line).map_err(|err| damaged(err.to_string()))?;
    let format = value["format"].as_u64().ok_or_else(|| damaged("it names no format".to_owned()))?;
    if format > u64::from(RUN_FORMAT) {
        return Err(StoreError::Format { path: path.to_owned(), format, known: RUN_FORMAT });
    }
    let header: Header = serde_json::from_value(value).map_err(|err| damaged(err.to_string()))?;
    let is_sane = Plan::REPETITIONS.contains(&header.plan.repetitions);
    if is_sane { Ok(header) } else { Err(damaged("its number of repetitions is impossible".to_owned())) }
}

/// One measurement; `None` for an empty line, which is what follows a line that was cut off. A line without its end is
/// whole when it can be read: JSON that was cut off cannot.
fn entry(line: &[u8], header: &Header) -> Result<Option<Entry>, String> {
    let is_ended = line.ends_with(b"\n");
    let whole = line.trim_ascii_end();
    if whole.is_empty() {
        return Ok(None);
    }
    let damaged =
        |why: String| if is_ended { format!("the line is damaged ({why})") } else { "the line is cut off".to_owned() };
    // Checked at once, which is quicker than key by key.
    let whole = str::from_utf8(whole).map_err(|err| damaged(err.to_string()))?;
    let entry: Entry = serde_json::from_str(whole).map_err(|err| damaged(err.to_string()))?;
    if entry.record.format > RECORD_FORMAT {
        return Err(format!("record format {} is newer than this program reads", entry.record.format));
    }
    let is_planned = entry.planned.block < header.plan.repetitions;
    if !is_planned || header.cells.get(entry.planned.cell_index) != Some(&entry.record.cell) {
        return Err("the record is of a measurement that the header does not plan".to_owned());
    }
    if !entry.record.threads.iter().all(ThreadRecord::is_consistent) {
        return Err("the record's counts do not add up".to_owned());
    }
    Ok(Some(entry))
}
