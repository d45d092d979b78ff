//! The loop of a campaign: all measurements in their planned order.

use super::executor::{Executor, Failure};
use super::stop::Stop;
use model::{Ended, Entry, Failed, Header, Planned, Progress, Record};
use std::collections::{HashSet, VecDeque};
use store::{StoreError, Writer};

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
///
/// # Errors
/// If it cannot be written.
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

/// Makes every measurement of the run that `entries` does not hold, in planned order, and adds it to `entries` and to
/// `writer`, if any. Returns the measurements that failed twice. Before each new block `is_over` may end the run early.
///
/// A failed measurement is repeated once after all others, because the cause may have been temporary.
///
/// # Errors
/// If the plan is invalid, no cell gives a record, a result cannot be written, or a stop is requested.
pub(super) fn carry_out(
    header: &Header,
    entries: &mut Vec<Entry>,
    mut writer: Option<&mut Writer>,
    executor: &mut dyn Executor,
    observer: &mut impl Observer,
    stop: &Stop,
    is_over: &dyn Fn(&[Entry]) -> bool,
) -> Result<Vec<Failed>, CampaignError> {
    /// Failures per cell that end a run without any record: they are no accident then.
    const MAX_FAILURES: usize = 2;
    let all = header.measurements();
    let interrupted = |done| CampaignError::Interrupted { done, all: all.len() };
    let names = analysis::cell_names(&header.cells);
    // Most of a record is the description of its host, which hardly changes: thousands of records share it.
    let mut hosts = store::Hosts::default();
    *entries = std::mem::take(entries).into_iter().map(|entry| hosts.alike(entry)).collect();
    let made: HashSet<Planned> = entries.iter().map(|entry| entry.planned).collect();
    let mut to_make: VecDeque<(Planned, bool)> =
        all.iter().filter(|planned| !made.contains(planned)).map(|planned| (*planned, false)).collect();
    let (mut failed, mut last_failure, mut n_failures) = (Vec::new(), None, 0);
    while let Some((planned, is_again)) = to_make.pop_front() {
        if stop.is_requested() {
            return Err(interrupted(entries.len()));
        }
        let is_begun = entries.iter().any(|entry| entry.planned.block == planned.block);
        if !is_again && !is_begun && is_over(entries) {
            to_make.retain(|(_, is_again)| *is_again);
            continue;
        }
        let cell_and_name = header.cells.get(planned.cell_index).zip(names.get(planned.cell_index));
        let (cell, name) = cell_and_name.expect("planned over the cells of this header");
        observer.starts(&planned, entries.len());
        let next = std::iter::once(&planned).chain(to_make.iter().map(|(next, _)| next));
        executor.expect(&mut next.filter_map(|next| Some((header.cells.get(next.cell_index)?, next.block))), stop);
        let samples_writer = writer.as_deref().filter(|_| header.samples);
        let samples = samples_writer.map(|writer| writer.samples(&planned)).transpose()?;
        let record = executor.execute(cell, planned.block, samples.as_deref(), stop, &mut |p| observer.progress(p));
        let record = match record {
            Ok(Record { ended: Ended::Interrupted, .. }) => {
                // The record is discarded, and so are its samples.
                samples.iter().for_each(|path| store::discard_samples(path));
                return Err(interrupted(entries.len()));
            }
            Ok(record) => record,
            // An error after a stop request is not a failure of the cell.
            Err(_) if stop.is_requested() => return Err(interrupted(entries.len())),
            Err(source) => {
                samples.iter().for_each(|path| store::discard_samples(path));
                n_failures += 1;
                if source.is_unsupported()
                    || entries.is_empty() && n_failures >= MAX_FAILURES * header.cells.len().max(MAX_FAILURES)
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
        entries.push(hosts.alike(entry));
    }
    if let Some(err) = last_failure.filter(|_| entries.is_empty()) {
        return Err(err);
    }
    if let Some(writer) = &writer {
        writer.failed(&failed)?;
    }
    Ok(failed)
}
