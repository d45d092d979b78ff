//! The loop of a campaign: all measurements in their planned order.

use super::boots::{NextBoot, is_possible};
use super::executor::{Executor, Failure};
use super::stop::Stop;
use punctual_model::{BootStep, Ended, Entry, Failed, Header, Planned, Progress, Record};
use punctual_store::{Hosts, StoreError, Writer};
use std::collections::{HashSet, VecDeque};

/// Reason why a campaign stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A cell was not measured.
    #[error("{cell}: {source}")]
    Cell {
        /// Name of the cell.
        cell: String,
        /// Reason of the failure.
        source: Failure,
    },
    /// The result cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file of the run lost records while it was written.
    #[error("{read} of {made} measurements of this run can be read; punctual show names the damaged lines")]
    Damaged {
        /// Measurements read.
        read: usize,
        /// Measurements recorded.
        made: usize,
    },
    /// Another kernel has to be booted first.
    #[error("a boot of {} is needed", .0.kernel)]
    NeedsBoot(Box<NextBoot>),
    /// The boots of a run over several cannot be counted.
    #[error("cannot tell boots apart: /proc/sys/kernel/random/boot_id cannot be read; mount /proc")]
    NoBootId,
    /// A signal interrupted it.
    #[error("interrupted after {done} of {all} measurements")]
    Interrupted {
        /// Measurements recorded.
        done: usize,
        /// Measurements planned.
        all: usize,
    },
}

/// Observer of the progress of a campaign.
pub trait Observer {
    /// The measurement `planned` starts; `done` measurements of the run are recorded.
    fn starts(&mut self, planned: &Planned, done: usize);
    /// Progress of the running cell.
    fn progress(&mut self, progress: &Progress);
    /// A measurement is recorded.
    fn recorded(&mut self, entry: &Entry);
    /// A measurement failed; it is repeated once at the end, unless it `is_last`.
    fn failed(&mut self, failed: &Failed, is_last: bool);
}

/// Adds one of `all` measurements to the run, if that is kept.
pub(super) fn keep(writer: Option<&mut Writer>, mut entry: Entry, all: usize) -> Result<Entry, StoreError> {
    match writer {
        Some(writer) => writer.entry_of(&mut entry, all)?,
        None => {
            if let Some(explained) = &mut entry.record.explained {
                explained.captures.clear();
                explained.worst.iter_mut().for_each(|one| one.capture = None);
            }
        }
    }
    Ok(entry)
}

/// Whether a run with these begun blocks is over; the records are those of a run with a rule about them, or not kept.
pub(super) type IsOver<'a> = &'a dyn Fn(u32, &[Entry]) -> bool;

/// What a session leaves out of a run.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    /// Blocks that need not begin.
    pub(super) is_over: IsOver<'a>,
    /// Of the cells on installed kernels only those of this boot are measured.
    pub(super) now: Option<&'a BootStep<'a>>,
}

/// Measurements of a run.
struct Made {
    planned: Vec<Planned>,
    records: Vec<Entry>,
    /// Whether records stay in memory.
    are_held: bool,
    hosts: Hosts,
}

impl Made {
    fn add(&mut self, entry: Entry) {
        self.planned.push(entry.planned);
        if self.are_held {
            // Most of a record is the description of its host, which hardly changes: thousands of records share it.
            self.records.push(self.hosts.alike(entry));
        }
    }
}

/// Number of blocks with at least one measurement.
pub(super) fn begun_blocks(planned: impl Iterator<Item = Planned>) -> u32 {
    let blocks: HashSet<u32> = planned.map(|planned| planned.block).collect();
    u32::try_from(blocks.len()).unwrap_or(u32::MAX)
}

/// Makes every measurement of the run that `entries` does not hold, in planned order, and adds it to `entries` and to
/// `writer`, if any. Returns the measurements that failed twice. Before each new block `rules` may end the run early.
///
/// A failed measurement is repeated once after all others, because the cause may have been temporary. Records that only
/// the report needs are read back at the end, so that memory does not grow while the machine measures. Errors: if the
/// plan is invalid, no cell gives a record, a result cannot be written, or a stop is requested.
pub(super) fn carry_out(
    header: &Header,
    entries: &mut Vec<Entry>,
    mut writer: Option<&mut Writer>,
    executor: &mut dyn Executor,
    observer: &mut impl Observer,
    stop: &Stop,
    rules: Rules<'_>,
) -> Result<Vec<Failed>, CampaignError> {
    let are_held = writer.is_none() || header.plan.until.is_some();
    let mut made = Made { planned: Vec::new(), records: Vec::new(), are_held, hosts: Hosts::default() };
    std::mem::take(entries).into_iter().for_each(|entry| made.add(entry));
    let failed = make(header, &mut made, writer.as_deref_mut(), executor, observer, stop, rules);
    match writer.filter(|_| !are_held) {
        None => *entries = made.records,
        Some(writer) => match writer.read_back() {
            Ok(read) => *entries = read,
            Err(err) => return Err(failed.err().unwrap_or(err.into())),
        },
    }
    match (entries.len(), made.planned.len()) {
        (read, made) if read != made && failed.is_ok() => Err(CampaignError::Damaged { read, made }),
        _ => failed,
    }
}

/// Makes every measurement that is not made.
fn make(
    header: &Header,
    made: &mut Made,
    mut writer: Option<&mut Writer>,
    executor: &mut dyn Executor,
    observer: &mut impl Observer,
    stop: &Stop,
    rules: Rules<'_>,
) -> Result<Vec<Failed>, CampaignError> {
    /// Failures per cell that end a run without any record: they are no accident then.
    const MAX_FAILURES: usize = 2;
    let all = header.measurements();
    let interrupted = |done| CampaignError::Interrupted { done, all: all.len() };
    let names = punctual_analysis::cell_names(&header.cells);
    let before: HashSet<Planned> = made.planned.iter().copied().collect();
    let mut to_make: VecDeque<(Planned, bool)> = all
        .iter()
        .filter(|planned| !before.contains(planned) && is_possible(header, rules.now, planned))
        .map(|planned| (*planned, false))
        .collect();
    let (mut failed, mut last_failure, mut n_failures) = (Vec::new(), None, 0);
    while let Some((planned, is_again)) = to_make.pop_front() {
        if stop.is_requested() {
            return Err(interrupted(made.planned.len()));
        }
        let is_begun = made.planned.iter().any(|made| made.block == planned.block);
        if !is_again && !is_begun && (rules.is_over)(begun_blocks(made.planned.iter().copied()), &made.records) {
            to_make.retain(|(_, is_again)| *is_again);
            continue;
        }
        let cell_and_name = header.cells.get(planned.cell_index).zip(names.get(planned.cell_index));
        let (cell, name) = cell_and_name.expect("planned over the cells of this header");
        observer.starts(&planned, made.planned.len());
        let next = std::iter::once(&planned).chain(to_make.iter().map(|(next, _)| next));
        executor.expect(&mut next.filter_map(|next| Some((header.cells.get(next.cell_index)?, next.block))), stop);
        let samples_writer = writer.as_deref().filter(|_| header.samples);
        let samples = samples_writer.map(|writer| writer.samples(&planned)).transpose()?;
        let record = executor.execute(cell, planned.block, samples.as_deref(), stop, &mut |p| observer.progress(p));
        let record = match record {
            Ok(Record { ended: Ended::Interrupted, .. }) => {
                // The record is discarded, and so are its samples.
                samples.iter().for_each(|path| punctual_store::discard_samples(path));
                return Err(interrupted(made.planned.len()));
            }
            Ok(record) => record,
            // An error after a stop request is not a failure of the cell.
            Err(_) if stop.is_requested() => return Err(interrupted(made.planned.len())),
            Err(source) => {
                samples.iter().for_each(|path| punctual_store::discard_samples(path));
                n_failures += 1;
                if source.is_unsupported()
                    || made.planned.is_empty() && n_failures >= MAX_FAILURES * header.cells.len().max(MAX_FAILURES)
                {
                    return Err(CampaignError::Cell { cell: name.clone(), source });
                }
                let failure = Failed { planned, reason: source.to_string() };
                observer.failed(&failure, is_again);
                last_failure = Some(CampaignError::Cell { cell: name.clone(), source });
                if is_again {
                    failed.push(failure);
                } else {
                    to_make.push_back((planned, true));
                }
                continue;
            }
        };
        let entry = keep(writer.as_deref_mut(), Entry { planned, record }, all.len())?;
        observer.recorded(&entry);
        made.add(entry);
    }
    if let Some(err) = last_failure.filter(|_| made.planned.is_empty()) {
        return Err(err);
    }
    if let Some(writer) = &writer {
        // What failed in an earlier boot is not measured again.
        let earlier = if header.is_over_boots() { &header.failed[..] } else { &[] };
        writer.failed(&[earlier, &failed].concat())?;
    }
    Ok(failed)
}
