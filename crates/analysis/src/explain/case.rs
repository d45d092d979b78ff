//! A case: all that an explanation is made from besides the events, as plain data that can be kept.

use super::{Facts, Inside, Subject, Symbols, Trace, explain, explain_activation};
use model::{Explanation, Owner};
use serde::{Deserialize, Serialize};

/// A late wake-up or activation, and what is known of it besides the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Index of the cycle or activation, as in [`Explanation::cycle`].
    pub cycle: i64,
    /// Due time, as in [`Explanation::due_ns`].
    pub due_ns: i64,
    /// The watched thread; `None` for a measured one.
    pub thread: Option<Owner>,
    /// The wake-up.
    pub subject: Subject,
    /// Facts about the machine and the trace.
    pub facts: Facts,
    /// What follows the wake-up of a watched thread; `None` for a measured one.
    pub inside: Option<Inside>,
}

impl Case {
    /// End of what is explained, `CLOCK_MONOTONIC`, ns.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.inside.as_ref().map_or(self.subject.woke_ns, |inside| inside.activation.end_ns)
    }

    /// Explains it by these events; `None` if they do not cover it.
    #[must_use]
    pub fn explain(&self, trace: &Trace, symbols: Symbols<'_>) -> Option<Explanation> {
        let explained = match &self.inside {
            None => explain(trace, &self.subject, &self.facts, symbols),
            Some(inside) => explain_activation(trace, &self.subject, inside, &self.facts, symbols),
        };
        let (cycle, due_ns, thread) = (self.cycle, self.due_ns, self.thread.clone());
        explained.map(|explanation| Explanation { cycle, due_ns, thread, ..explanation })
    }

    /// Whether its times are in order, as those of every case are that this program has made.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        let Some(Inside { activation: one, .. }) = &self.inside else { return self.subject.due_ns <= self.end_ns() };
        let is_within = |at: u64| (self.subject.due_ns..=one.end_ns).contains(&at);
        [one.release_ns, one.start_ns, one.user_ns, self.subject.woke_ns].into_iter().all(is_within)
            && one.blocks.iter().all(|block| block.from_ns <= block.to_ns && is_within(block.to_ns))
    }
}
