//! Marks that one activation passes.

use crate::events::MarkNames;
use punctual_model::{Mark, MarkTime, Span};
use serde::{Deserialize, Serialize};

/// Most different marks of one activation; more are one.
const MOST_OF_ONE: usize = 2 * Mark::MOST;

/// A mark that an activation passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Its number among the [`MarkNames`].
    pub mark: u16,
    /// The first pass, ns.
    pub first_ns: u64,
    /// Time from each pass to the next one of any mark, or to the end, added up, ns.
    pub length_ns: u64,
    /// Number of passes.
    pub n: u64,
}

/// The marks that an activation passed, in the order of their first passes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Passes {
    /// Each mark once.
    pub all: Vec<Passed>,
    /// The last one and when it was passed, until the activation is over.
    #[serde(skip)]
    last: Option<(usize, u64)>,
}

impl Passes {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The same with names, of an activation with this release.
    pub fn times(&self, release_ns: u64, names: &MarkNames) -> Vec<MarkTime> {
        let time = |Passed { mark, first_ns, length_ns, n }: &Passed| MarkTime {
            mark: if *mark == MarkNames::OTHER { "other marks".to_owned() } else { names.name(*mark) },
            n: *n,
            since_release: Span(first_ns.saturating_sub(release_ns)),
            length: Span(*length_ns),
        };
        self.all.iter().map(time).collect()
    }

    pub(super) fn pass(&mut self, mark: u16, at_ns: u64) {
        self.end(at_ns);
        let place = |mark| self.all.iter().position(|one| one.mark == mark);
        let other = Some(MarkNames::OTHER).filter(|_| self.all.len() >= MOST_OF_ONE);
        let mark = if place(mark).is_none() { other.unwrap_or(mark) } else { mark };
        let index = place(mark).unwrap_or(self.all.len());
        match self.all.get_mut(index) {
            Some(known) => known.n += 1,
            None => self.all.push(Passed { mark, first_ns: at_ns, length_ns: 0, n: 1 }),
        }
        self.last = Some((index, at_ns));
    }

    /// Ends the phase of the last mark.
    pub(super) fn end(&mut self, at_ns: u64) {
        let Some((index, since_ns)) = self.last.take() else { return };
        self.all.get_mut(index).into_iter().for_each(|one| one.length_ns += at_ns.saturating_sub(since_ns));
    }
}
