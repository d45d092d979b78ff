//! Messages between a campaign and `punctual serve-cells` on the machine that it measures: one JSON line each.

use super::files::SentFile;
use crate::estimate::measured_after;
use punctual_model::{Cell, Header, Host, Plan, Record};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A request of the campaign. Each but [`Ask::Cell`] has one answer of its own kind, or [`Answer::Refused`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// The run as that machine and user could measure it, even if that is nothing.
    Planned { plan: Box<Plan>, samples: bool },
    /// The same, and refused if nothing can be measured.
    Preview { plan: Box<Plan>, samples: bool },
    /// Lock the machine for a new run.
    Header { plan: Box<Plan>, samples: bool, wait: bool },
    /// Lock the machine to continue a run.
    Host { wait: bool },
    /// Keep a file of an instrument for the cells.
    File(Box<SentFile>),
    /// Measure a cell in a block.
    Cell { cell: Box<Cell>, block: u32 },
}

/// Timeout of an answer; for a cell, from the time after which it should have measured.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// Factor of that time: the cost suite takes up to four times its share.
const CELL_FACTOR: u32 = 4;

impl Ask {
    /// Timeout of the answer; `None`: it may wait for another measurement, or for a guest, which has its own limits.
    pub(super) fn timeout(&self) -> Option<Duration> {
        match self {
            Ask::Header { wait: true, .. } | Ask::Host { wait: true } => None,
            Ask::Cell { cell, .. } => {
                let measured = measured_after(cell).saturating_mul(CELL_FACTOR);
                cell.kernel.is_here().then(|| measured.saturating_add(ANSWER_TIMEOUT))
            }
            _ => Some(ANSWER_TIMEOUT),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// A line for the user; the answer follows.
    Note(String),
    /// The run of a plan.
    Header(Box<Header>),
    /// Snapshot of the locked machine.
    Host(Box<Host>),
    /// The file is there.
    Kept,
    /// The record of the cell.
    Record(Box<Record>),
    /// The cell gave no record; `is_unsupported`: another attempt does not help.
    Failed { reason: String, is_unsupported: bool },
    /// The request cannot be met.
    Refused(String),
}
