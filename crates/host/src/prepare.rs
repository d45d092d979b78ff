//! Changes of machine settings for the duration of a cell, and their restoration in every case.
//!
//! The changes and the previous values are on disk before the first change is made. A process that ends normally
//! restores everything itself; after a killed one, `recover` does so from the journal.

mod change;
mod journal;
mod knobs;
mod permanent;
mod plan;
mod recover;

pub use knobs::{changes_something, knobs};
pub use permanent::{Permanent, permanent};
pub use recover::{changing_process, recover};

use super::HostFs;
use change::{Change, UndoResult};
use journal::Journal;
use punctual_model::{CpuSet, Prepare, PreparedSetting, plain};
use std::io::{self, Write};

/// How often the journal is written at most. That takes as long as the disk does, and what another program sets
/// meanwhile is the value to restore; one that never stops setting it must not keep a cell from beginning.
const JOURNALS: u32 = 3;

/// The machine, prepared for a cell. Dropping it restores the previous settings.
#[derive(Debug)]
pub struct Preparation {
    fs: HostFs,
    /// In the order in which they were made.
    changes: Vec<Change>,
    /// In the journal, and not made yet.
    last: Option<Change>,
    /// Number of interrupts that the kernel does not allow to be moved.
    kept: usize,
    journal: Option<Journal>,
}

impl Preparation {
    /// Makes all changes of `prepare`, for a cell on the CPUs `measured`. Each is read back. Errors: one line with the
    /// setting, the value and the reason. Nothing is left changed then.
    pub fn make(fs: &HostFs, prepare: &Prepare, measured: &CpuSet) -> Result<Preparation, String> {
        let mut preparation = Preparation::nothing(fs);
        let mut planned = plan::changes(fs, prepare, measured)?;
        for attempt in 1..=JOURNALS {
            if planned.is_empty() {
                return Ok(preparation);
            }
            preparation.journal = Some(Journal::write(fs, "", &planned)?);
            let now = plan::changes(fs, prepare, measured)?;
            if now == planned || attempt == JOURNALS {
                break;
            }
            planned = now;
        }
        preparation.change(planned)?;
        if plan::leaves_its_group(prepare) {
            plan::leave_group(fs)?;
        }
        punctual_sys::fail::point("settings-made");
        Ok(preparation)
    }

    fn nothing(fs: &HostFs) -> Preparation {
        Preparation { fs: fs.clone(), changes: Vec::new(), last: None, kept: 0, journal: None }
    }

    /// Gives the `files` of the trace these values, in this order, but for the last one, which [`Preparation::end`]
    /// gives. Errors: as [`Preparation::make`].
    pub(super) fn of_trace(fs: &HostFs, files: &[(String, String)]) -> Result<Preparation, String> {
        let mut preparation = Preparation::nothing(fs);
        let mut changes = plan::of_trace(fs, files);
        preparation.journal = Some(Journal::write(fs, "trace.", &changes)?);
        preparation.last = changes.pop();
        preparation.change(changes)?;
        Ok(preparation)
    }

    /// Makes the last change of [`Preparation::of_trace`]. Errors: as [`Preparation::make`].
    pub(super) fn end(&mut self) -> Result<(), String> {
        let last = self.last.take();
        self.change(last.into_iter().collect())
    }

    fn change(&mut self, planned: Vec<Change>) -> Result<(), String> {
        for change in planned {
            // Recorded before it is made: a change that fails halfway is undone, too.
            self.changes.push(change);
            let change = self.changes.last().ok_or("no change")?;
            if !change.make(&self.fs)? {
                self.changes.pop();
                self.kept += 1;
            }
            punctual_sys::fail::point("setting-made");
        }
        Ok(())
    }

    /// Whether this machine has all settings of `prepare`, with these values. Changes nothing. Errors: one line with
    /// the setting and the reason.
    pub fn check(fs: &HostFs, prepare: &Prepare, measured: &CpuSet) -> Result<(), String> {
        plan::changes(fs, prepare, measured).map(drop)
    }

    /// The changed settings with their present values, and the number of interrupts that could not be moved.
    pub fn settings(&self) -> Vec<PreparedSetting> {
        let kept = (self.kept > 0).then(|| {
            let (what, kept) = ("interrupts that the kernel keeps where they are".to_owned(), self.kept.to_string());
            PreparedSetting { what, before: kept.clone(), during: kept.clone(), at_end: Some(kept) }
        });
        self.changes.iter().map(|change| change.setting(&self.fs)).chain(kept).collect()
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        let mut all_back = true;
        for change in self.changes.iter().rev() {
            let undone = change.undo(&self.fs);
            all_back &= undone.is_ok();
            punctual_sys::fail::point("setting-restored");
            if let Err(reason) | Ok(UndoResult::NotRestored(reason)) = undone {
                let _ = writeln!(io::stderr(), "punctual: {}", plain(&reason));
            }
        }
        // Settings that could not be restored stay in the journal, for another attempt.
        if let Some(journal) = self.journal.take().filter(|_| all_back) {
            journal.remove();
        }
    }
}

#[cfg(test)]
mod tests;
