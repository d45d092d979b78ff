//! The loop of a campaign: its measurements, one after the other, in their planned order.

use super::executor::{Executor, Failure};
use super::order::planned;
use super::stop::Stop;
use model::{Ended, Entry, Failed, Header, Planned, Progress, Record};
use std::collections::{HashSet, VecDeque};
use store::{StoreError, Writer};

/// Why a campaign stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A cell was not measured.
    #[error("{cell}: {source}")]
    Cell {
        /// What the cell is called.
        cell: String,
        /// Why not.
        source: Failure,
    },
    /// The result cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A signal ended it.
    #[error("interrupted after {done} of {all} measurements")]
    Interrupted {
        /// Measurements recorded.
        done: usize,
        /// Measurements planned.
        all: usize,
    },
}

/// Who wants to know how a campaign goes on.
pub trait Observer {
    /// `planned` starts; `done` measurements of the run are recorded.
    fn starts(&mut self, planned: &Planned, done: usize);
    /// The running cell says this about itself.
    fn progress(&mut self, progress: &Progress);
    /// A measurement is recorded.
    fn recorded(&mut self, entry: &Entry);
    /// A measurement has failed; it is tried once more at the end, unless it `is_last`.
    fn failed(&mut self, failed: &Failed, is_last: bool);
}

/// Makes every measurement of the run that `entries` does not hold, in its planned order, adds it there, and has
/// `writer` keep it, if the run is to be kept. Returns the measurements that failed twice. Before each block that is
/// not begun, `is_over` may end the run with what there is.
///
/// A measurement that fails is tried once more when all others are made, because what made it fail may have passed.
///
/// # Errors
/// When the plan is mistaken, no cell gives a record, a result cannot be kept, or it is asked to stop.
pub(super) fn carry_out(
    header: &Header,
    entries: &mut Vec<Entry>,
    mut writer: Option<&mut Writer>,
    executor: &mut impl Executor,
    observer: &mut impl Observer,
    stop: &Stop,
    is_over: &dyn Fn(&[Entry]) -> bool,
) -> Result<Vec<Failed>, CampaignError> {
    /// As often as each cell may fail before anything is recorded: then it is no accident.
    const TRIES: usize = 2;
    let all = planned(header.cells.len(), header.plan.repetitions, header.seed);
    let interrupted = |done| CampaignError::Interrupted { done, all: all.len() };
    let names = analysis::cell_names(&header.cells);
    // Most of a record are its machines, which hardly change: thousands of records share them.
    let mut hosts = store::Hosts::default();
    *entries = std::mem::take(entries).into_iter().map(|entry| hosts.shared(entry)).collect();
    let made: HashSet<Planned> = entries.iter().map(|entry| entry.planned).collect();
    let mut to_make: VecDeque<(Planned, bool)> =
        all.iter().filter(|planned| !made.contains(planned)).map(|planned| (*planned, false)).collect();
    let (mut failed, mut last_failure, mut n_failures) = (Vec::new(), None, 0);
    while let Some((planned, is_again)) = to_make.pop_front() {
        if stop.is_asked() {
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
        let keeper = writer.as_deref().filter(|_| header.samples);
        let samples = keeper.map(|writer| writer.samples(&planned)).transpose()?;
        let record = executor.execute(cell, planned.block, samples.as_deref(), stop, &mut |p| observer.progress(p));
        let record = match record {
            Ok(Record { ended: Ended::Interrupted, .. }) => {
                // The record is not kept, so neither are its samples.
                samples.iter().for_each(|path| store::discard_samples(path));
                return Err(interrupted(entries.len()));
            }
            Ok(record) => record,
            // What a cell says that is told to stop is no failure of its own.
            Err(_) if stop.is_asked() => return Err(interrupted(entries.len())),
            Err(source) => {
                samples.iter().for_each(|path| store::discard_samples(path));
                n_failures += 1;
                if source.is_mistake() || entries.is_empty() && n_failures >= TRIES * header.cells.len().max(TRIES) {
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
        let entry = Entry { planned, record };
        if let Some(writer) = &mut writer {
            writer.entry(&entry)?;
        }
        observer.recorded(&entry);
        entries.push(hosts.shared(entry));
    }
    if let Some(err) = last_failure.filter(|_| entries.is_empty()) {
        return Err(err);
    }
    if let Some(writer) = &writer {
        writer.failed(&failed)?;
    }
    Ok(failed)
}
