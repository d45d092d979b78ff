//! Messages between a campaign and `punctual serve-cells` on the machine that it measures: one JSON line each.

use super::files::SentFile;
use model::{Cell, Header, Host, Plan, Record};
use serde::{Deserialize, Serialize};

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

/// An answer.
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
