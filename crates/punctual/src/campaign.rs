//! Carrying out a plan: which cells, in which order, one after the other, each in a process of its own.

mod execute;
mod expand;
mod order;
mod roles;
mod stop;

pub(crate) use execute::{Child, Executor, Failure, HereOrLab};
pub(crate) use expand::{Machine, expand};
pub(crate) use order::planned;
pub(crate) use stop::Stop;

use crate::store::{self, StoreError, Writer};
use model::{Ended, Entry, Header, Planned, Progress, Record};
use std::collections::HashSet;

/// Why a campaign stopped before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CampaignError {
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
pub(crate) trait Observer {
    /// `planned` starts; `done` measurements of the run are recorded.
    fn starts(&mut self, planned: &Planned, done: usize);
    /// The running cell says this about itself.
    fn progress(&mut self, progress: &Progress);
    /// A measurement is recorded.
    fn recorded(&mut self, entry: &Entry);
}

/// Makes every measurement of the run that `done` does not hold, in its planned order, and has `writer` keep each, if the
/// run is to be kept. Before each block that is not begun, `is_over` may end the run with what there is.
///
/// # Errors
/// When a cell fails, a result cannot be kept, or it is asked to stop.
pub(crate) fn carry_out(
    header: &Header,
    done: Vec<Entry>,
    mut writer: Option<&mut Writer>,
    executor: &mut impl Executor,
    observer: &mut impl Observer,
    stop: &Stop,
    is_over: &dyn Fn(&[Entry]) -> bool,
) -> Result<Vec<Entry>, CampaignError> {
    let all = planned(header.cells.len(), header.plan.repetitions, header.seed);
    let interrupted = |done| CampaignError::Interrupted { done, all: all.len() };
    let names = analysis::cell_names(&header.cells);
    let mut entries = done;
    let made: HashSet<Planned> = entries.iter().map(|entry| entry.planned).collect();
    let to_make: Vec<_> = all.iter().filter(|planned| !made.contains(planned)).collect();
    for (n, planned) in to_make.iter().enumerate() {
        if stop.is_asked() {
            return Err(interrupted(entries.len()));
        }
        let is_begun = entries.iter().any(|entry| entry.planned.block == planned.block);
        if !is_begun && is_over(&entries) {
            return Ok(entries);
        }
        let cell_and_name = header.cells.get(planned.cell_index).zip(names.get(planned.cell_index));
        let (cell, name) = cell_and_name.expect("planned over the cells of this header");
        observer.starts(planned, entries.len());
        let next = to_make.iter().skip(n);
        executor.expect(&mut next.filter_map(|next| Some((header.cells.get(next.cell_index)?, next.block))), stop);
        let keeper = writer.as_deref().filter(|_| header.samples);
        let samples = keeper.map(|writer| writer.samples(planned)).transpose()?;
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
            Err(source) => return Err(CampaignError::Cell { cell: name.clone(), source }),
        };
        let entry = Entry { planned: **planned, record };
        if let Some(writer) = &mut writer {
            writer.entry(&entry)?;
        }
        observer.recorded(&entry);
        entries.push(entry);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
