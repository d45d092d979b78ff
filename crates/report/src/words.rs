//! Terms of pages and plots: its samples are wake-ups, answers, sleeps, or samples of any kind.

use crate::cells::Member;
use punctual_analysis::Origin;
use punctual_model::Task;

/// The kind of sample that a page counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    WakeUps,
    /// Answers to triggers.
    Answers,
    /// Sleeps of a language.
    Sleeps,
    /// Gaps of threads that never wait.
    Gaps,
    /// Activations of watched threads.
    Activations,
    /// Several kinds, or those of other tools.
    Samples,
}

impl Counted {
    /// Returns the kind that all these cells have in common.
    pub(super) fn of(members: &[Member<'_>]) -> Counted {
        let kind = |member: &Member<'_>| match member.row.origin {
            Origin::Imported(..) => Counted::Samples,
            Origin::Own(cell, _) if cell.cell.task.is_noise() => Counted::Gaps,
            Origin::Own(cell, _) => match cell.cell.task {
                Task::Response(_) => Counted::Answers,
                Task::Sleep(_) => Counted::Sleeps,
                Task::Watch(_) => Counted::Activations,
                Task::Cyclic(_) | Task::Cost(_) | Task::Program(_) | Task::Timerbench(_) => Counted::WakeUps,
            },
        };
        let Some(first) = members.first().map(kind) else { return Counted::WakeUps };
        if members.iter().all(|member| kind(member) == first) { first } else { Counted::Samples }
    }

    /// The plural: `wake-ups`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Counted::WakeUps => "wake-ups",
            Counted::Answers => "answers",
            Counted::Sleeps => "sleeps",
            Counted::Gaps => "gaps",
            Counted::Activations => "activations",
            Counted::Samples => "samples",
        }
    }

    /// The singular: `wake-up`.
    pub(super) fn one(self) -> &'static str {
        self.name().trim_end_matches('s')
    }

    /// The measured time.
    pub(super) fn latency(self) -> &'static str {
        match self {
            Counted::Answers | Counted::Activations => "response time",
            Counted::Sleeps => "sleep error",
            Counted::Gaps => "length",
            Counted::WakeUps | Counted::Samples => "latency",
        }
    }

    /// Due times without a sample.
    pub(super) fn missed(self) -> &'static str {
        match self {
            Counted::Answers => "not sent",
            Counted::WakeUps | Counted::Sleeps | Counted::Gaps | Counted::Samples => "missed",
            Counted::Activations => "skipped",
        }
    }
}

/// Returns the term in title case: `Response time`.
pub(super) fn capital(term: &str) -> String {
    let mut letters = term.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
