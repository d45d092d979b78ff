//! The account of the due times of a thread.

use crate::{Task, ThreadRecord};
use serde::Serialize;
use std::iter::Sum;

/// What became of the due times of a thread, or of several; each is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Ledger {
    /// All due times of the measured window.
    pub due: u64,
    /// Those with a wake-up of their own.
    pub recorded: u64,
    /// Those that passed while the thread was late for another one, or still waits for it: their lateness follows from
    /// that wait.
    pub missed: u64,
    /// Triggers that were never answered.
    pub unanswered: u64,
    /// Those still waited for at the end: at most one for each thread.
    pub open: u64,
    /// Those whose wake-up was lost, because the buffer was full.
    pub lost: u64,
    /// Those passed over while the thread stopped the trace, or without a hand-off.
    pub passed_over: u64,
    /// Those that passed without a wake-up that tells how late: they may have been later than all others.
    pub unseen: u64,
}

impl Ledger {
    /// Whether each due time is in the account, and once.
    pub fn is_balanced(&self) -> bool {
        let Ledger { due, recorded, missed, unanswered, open, lost, passed_over, unseen } = *self;
        let all = [recorded, missed, unanswered, open, lost, passed_over, unseen];
        all.into_iter().try_fold(0, u64::checked_add) == Some(due)
    }

    /// Due times of which nothing is known. A limit is not shown to be met while there are any.
    pub fn not_seen(&self) -> u64 {
        self.unseen.saturating_add(self.passed_over)
    }
}

impl Sum for Ledger {
    fn sum<I: Iterator<Item = Ledger>>(all: I) -> Ledger {
        all.fold(Ledger::default(), |a, b| Ledger {
            due: a.due.saturating_add(b.due),
            recorded: a.recorded.saturating_add(b.recorded),
            missed: a.missed.saturating_add(b.missed),
            unanswered: a.unanswered.saturating_add(b.unanswered),
            open: a.open.saturating_add(b.open),
            lost: a.lost.saturating_add(b.lost),
            passed_over: a.passed_over.saturating_add(b.passed_over),
            unseen: a.unseen.saturating_add(b.unseen),
        })
    }
}

impl ThreadRecord {
    /// The due times behind the wait that was still open at the end; 0 without one.
    pub fn behind_open(&self) -> u64 {
        self.censored.map_or(0, |wait| match u64::try_from(wait.cycle) {
            Ok(cycle) => self.cycles_due.saturating_sub(cycle).saturating_sub(1),
            Err(_) => self.cycles_due,
        })
    }

    /// The account of its due times, in a record of a cell with this task.
    ///
    /// A wake-up implies the due times that it missed ([`crate::Schedule::missed`]), which its second counts. Due times
    /// that are missing beyond these were not seen: the start of the thread was delayed beyond them, in records of
    /// older versions, or the wake-up that missed them was lost.
    pub fn ledger(&self, task: &Task) -> Ledger {
        let (unanswered, open) = (self.never_answered(), self.censored.filter(|wait| wait.cycle >= 0));
        let by_wakeups = self.seconds.iter().fold(0, |sum: u64, second| sum.saturating_add(second.missed));
        let implied = by_wakeups.saturating_sub(unanswered).saturating_add(self.behind_open());
        let unseen = if task.misses_when_late() { self.missed.saturating_sub(implied) } else { 0 };
        Ledger {
            due: self.cycles_due,
            recorded: self.recorded,
            missed: self.missed - unseen,
            unanswered,
            open: u64::from(open.is_some()),
            lost: self.lost,
            passed_over: self.passed_over,
            unseen,
        }
    }
}
