//! Late activations of the threads of a recorded trace: which of them may be explained.

use crate::watch::{Activation, Finished};
use punctual_model::Span;
use std::sync::Arc;

/// Activations of one thread that are remembered until it is known what is late.
const MOST_UNKNOWN: usize = 1000;

/// A late activation that may be explained.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) activation: Activation,
    /// The longest one before it that was not over at its release, if any.
    pub(super) behind: Option<Arc<Activation>>,
    /// Response time, ns, above which it is late; `None`: not known when it was over.
    above_ns: Option<u64>,
}

/// The late activations of one thread.
#[derive(Debug, Default)]
pub(super) struct LateOnes {
    /// Their number.
    pub(super) n: u64,
    /// The latest of them, and of those of which nothing was known, latest first.
    pub(super) latest: Vec<Late>,
    /// Response times of which it was not known whether they are late, ns.
    unknown_ns: Vec<u64>,
}

impl LateOnes {
    /// Keeps an activation if it is among the `most` latest ones and not known to be in time.
    pub(super) fn take(&mut self, one: Finished, above: Option<Span>, most: usize) {
        let response_ns = one.activation.response_ns();
        let above_ns = one.late_above_ns(above);
        match above_ns {
            Some(above_ns) if response_ns <= above_ns => return,
            Some(_) => self.n += 1,
            None if self.unknown_ns.len() < MOST_UNKNOWN => self.unknown_ns.push(response_ns),
            None => return,
        }
        let at = self.latest.partition_point(|other| other.activation.response_ns() >= response_ns);
        if at < most {
            self.latest.insert(at, Late { activation: one.activation, behind: one.behind, above_ns });
            self.latest.truncate(most);
        }
    }

    /// Decides what was not known, by what is known at the end.
    pub(super) fn decide(&mut self, above_ns: u64) {
        self.n += self.unknown_ns.iter().filter(|response_ns| **response_ns > above_ns).count() as u64;
        for one in &mut self.latest {
            one.above_ns.get_or_insert(above_ns);
        }
        self.latest.retain(|one| one.above_ns.is_some_and(|above_ns| one.activation.response_ns() > above_ns));
    }
}
