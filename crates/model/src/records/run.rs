//! A run: its header, its entries, its failures; and the recovery of settings that a killed one left changed.

use crate::{Cell, Host, KeptFilm, Order, Plan, Record, Shard, planned_order};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;

/// The version of the run directory that this program writes.
pub const RUN_FORMAT: u32 = 2;

/// The first line of `run.jsonl`: everything decided before the first measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`RUN_FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name and version of the program that wrote it.
    pub tool: String,
    /// Start of the run, ms since 1970-01-01 UTC.
    #[serde(deserialize_with = "crate::words::units::started")]
    pub started_unix_ms: u64,
    /// The plan as requested.
    pub plan: Plan,
    /// Seed of the order of the cells in each block.
    pub seed: u64,
    /// Snapshot of the machine at the start.
    pub host: Host,
    /// The cells of the plan on this machine, in the order of the plan.
    pub cells: Vec<Cell>,
    /// Combinations of the plan that this machine or user cannot measure.
    pub skipped: Vec<Skipped>,
    /// Whether the raw samples of each measurement are also kept.
    #[serde(default)]
    pub samples: bool,
    /// The part of the run that this is; `None` for a whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Measurements whose every attempt failed; kept in a file of their own, because a later attempt may succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// Films of late wake-ups; kept in a file of their own, because they are made later.
    #[serde(skip)]
    pub films: Vec<KeptFilm>,
}

/// A measurement whose attempts gave no record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The measurement within the run.
    #[serde(flatten)]
    pub planned: Planned,
    /// Reason of the last failure, one line.
    pub reason: String,
}

impl Header {
    /// The cells without those that are the second measurement of an earlier one in each block (A/A).
    pub fn first_cells(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        self.cells.iter().enumerate().filter(|(_, cell)| seen.insert(*cell)).map(|(index, _)| index).collect()
    }

    /// The later cell equal to this one, which is its second measurement; `None` if there is none or this one is not
    /// the first.
    pub fn again_of(&self, cell_index: usize) -> Option<usize> {
        let cell = self.cells.get(cell_index)?;
        let mut same = self.cells.iter().enumerate().filter(|(_, other)| *other == cell).map(|(index, _)| index);
        same.next().filter(|first| *first == cell_index)?;
        same.next()
    }

    /// Whether all of it is measured in virtual time, which does not depend on this machine.
    pub fn is_virtual(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.kernel.is_virtual())
    }

    /// Whether its kernels have to be booted on this machine.
    pub fn is_over_boots(&self) -> bool {
        self.cells.iter().any(|cell| cell.kernel.installed().is_some())
    }

    /// Puts the cells of an installed kernel one after the other in each block, in the order of the first of each.
    fn order_by_boots(&self, all: &mut [Planned]) {
        let kernel = |planned: &Planned| self.cells.get(planned.cell_index).map(|cell| &cell.kernel);
        for block in all.chunk_by_mut(|a, b| a.block == b.block) {
            let mut kernels = Vec::new();
            block.iter().for_each(|planned| {
                if !kernels.contains(&kernel(planned)) {
                    kernels.push(kernel(planned))
                }
            });
            block.order_by_key(|planned| kernels.iter().position(|known| *known == kernel(planned)));
            (0..).zip(block).for_each(|(position, planned)| planned.position = position);
        }
    }

    /// Every measurement of the run, or of this shard of it, in order.
    pub fn measurements(&self) -> Vec<Planned> {
        let mut all = planned_order(self.cells.len(), self.plan.repetitions, self.seed);
        if self.is_over_boots() {
            self.order_by_boots(&mut all);
        }
        if let Some(shard) = self.shard {
            let is_virtual = self.is_virtual();
            all.retain(|planned| shard.has(planned, self.cells.len(), is_virtual));
        }
        all
    }

    /// The number of measurements of the run, or of this shard of it.
    pub fn n_measurements(&self) -> usize {
        let blocks = usize::try_from(self.plan.repetitions).unwrap_or(usize::MAX);
        match self.shard {
            Some(shard) if self.is_virtual() => shard.share_of(self.cells.len().saturating_mul(blocks)),
            Some(shard) => self.cells.len().saturating_mul(shard.share_of(blocks)),
            None => self.cells.len().saturating_mul(blocks),
        }
    }
}

/// A combination that was not measured, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The cell as requested.
    pub cell: Cell,
    /// Reason and remedy, one sentence.
    pub reason: String,
}

/// One line of `run.jsonl` after the header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The measurement within the run.
    #[serde(flatten)]
    pub planned: Planned,
    /// Its record.
    pub record: Record,
}

/// One measurement of a run: a cell in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Planned {
    /// The pass over all cells, from 0.
    pub block: u32,
    /// Position in the block's random order, from 0.
    pub position: u32,
    /// Index into [`Header::cells`](crate::Header::cells).
    pub cell_index: usize,
}

/// Recovery from one journal.
#[derive(Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Recovered {
    /// The process that made the changes; `null` when its journal cannot be read.
    pub pid: Option<u32>,
    /// Settings that were restored, as text.
    pub restored: Vec<String>,
    /// Settings that another program has changed since, and that are left unchanged.
    pub left: Vec<String>,
    /// Settings that could not be restored, with the reason.
    pub failed: Vec<String>,
    /// Whether the machine was rebooted since, which undid all changes.
    pub rebooted: bool,
}

/// The whole recovery: the output of `punctual recover --format json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Recovery {
    /// Recovery from each journal.
    pub recovered: Vec<Recovered>,
    /// Other remains of killed processes that were removed.
    pub removed: Vec<PathBuf>,
}
