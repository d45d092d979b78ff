//! What a run directory holds: a header, then one entry for each finished cell.

use crate::{Cell, Host, Plan, Record};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The version of the run directory that this program writes.
pub const RUN_FORMAT: u32 = 1;

/// The first line of `run.jsonl`: everything that was decided before the first measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`RUN_FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name and version of the program that wrote it.
    pub tool: String,
    /// When the run began, ms since 1970-01-01 UTC.
    #[serde(deserialize_with = "crate::date::started")]
    pub started_unix_ms: u64,
    /// What was asked.
    pub plan: Plan,
    /// Decides the order of the cells in each block.
    pub seed: u64,
    /// The machine at the start.
    pub host: Host,
    /// The cells that the plan means on this machine, in the order of the plan.
    pub cells: Vec<Cell>,
    /// Combinations of the plan that this machine or user cannot measure.
    pub skipped: Vec<Skipped>,
    /// Whether the raw samples of each measurement are kept, too.
    #[serde(default)]
    pub samples: bool,
    /// Measurements that failed each time they were tried; kept in a file of their own, because they are tried again later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
}

/// A measurement that was tried and gave no record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Which measurement of the run it is.
    #[serde(flatten)]
    pub planned: Planned,
    /// Why, in one line, the last time.
    pub reason: String,
}

impl Header {
    /// The cells that are not measured a second time of one before them in each block (A/A).
    #[must_use]
    pub fn first_cells(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        self.cells.iter().enumerate().filter(|(_, cell)| seen.insert(*cell)).map(|(index, _)| index).collect()
    }

    /// The cell that asks for the same as this one and stands behind it: then that is its second measurement.
    #[must_use]
    pub fn again_of(&self, cell_index: usize) -> Option<usize> {
        let cell = self.cells.get(cell_index)?;
        let mut same = self.cells.iter().enumerate().filter(|(_, other)| *other == cell).map(|(index, _)| index);
        same.next().filter(|first| *first == cell_index)?;
        same.next()
    }

    /// Whether all of it is measured in virtual time, in which nothing of this machine is seen.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.kernel.is_virtual())
    }

    /// How many measurements the run consists of.
    #[must_use]
    pub fn n_measurements(&self) -> usize {
        self.cells.len().saturating_mul(usize::try_from(self.plan.repetitions).unwrap_or(usize::MAX))
    }
}

/// A combination that was not measured, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The cell as asked.
    pub cell: Cell,
    /// Why it cannot be measured and what would allow it, in one sentence.
    pub reason: String,
}

/// One measurement of a run: which cell, in which block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Planned {
    /// The pass over all cells, from 0.
    pub block: u32,
    /// Position in the block's random order, from 0.
    pub position: u32,
    /// Index into [`Header::cells`].
    pub cell_index: usize,
}

/// One line of `run.jsonl` after the header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Which measurement of the run it is.
    #[serde(flatten)]
    pub planned: Planned,
    /// What it measured.
    pub record: Record,
}
