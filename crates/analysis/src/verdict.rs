//! The verdict: limits that are met, violated, or inconclusive.

mod cannot_pass;
mod case;
mod judgment;
mod missing_evidence;
mod part;
mod wording;

use crate::row::Row;
pub use cannot_pass::CannotPass;
pub use case::Case;
use judgment::Judgment;
pub(crate) use missing_evidence::response_unseen;
pub use part::{Count, Gap, Kept, Violation};
use punctual_model::{Entry, Header, Level, Requirement, Span};
use serde::Serialize;

/// The verdict on the plan's limits. `Display` is one line; see also [`Verdict::exit_status`].
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// No limit was given.
    NoneAsked,
    /// Every limit is met in every cell, as far as the measured time can show.
    Pass {
        /// The evidence, one entry for each limit.
        kept: Vec<Kept>,
    },
    /// At least one limit is violated, beyond chance.
    Fail {
        /// All violations, the worst first.
        violations: Vec<Violation>,
    },
    /// Inconclusive: nothing is violated, but not every limit is shown to be met.
    Inconclusive {
        /// The missing evidence.
        gaps: Vec<Gap>,
    },
}

/// One limit of a requirement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    Max(Span),
    Quantile(Level, Span),
    MissesPerHour(f64),
    /// Percent of the time of a watched thread.
    Waiting(f64),
}

/// The limits of a requirement, each as it is typed, like `p99.9=200us`.
pub(crate) fn limits(require: &Requirement) -> Vec<(String, Limit)> {
    let of = |(level, limit): (Level, Span)| (format!("{level}={limit}"), Limit::Quantile(level, limit));
    let max = require.max.map(|limit| (format!("max={limit}"), Limit::Max(limit)));
    let misses = require.misses_per_hour.map(|limit| (format!("misses_per_hour={limit}"), Limit::MissesPerHour(limit)));
    let waiting = require.waiting_percent.map(|limit| (format!("waiting={limit}%"), Limit::Waiting(limit)));
    max.into_iter().chain(require.quantiles().map(of)).chain(misses).chain(waiting).collect()
}

/// Missing evidence that nothing in a cell was later than `limit`; none where something was.
pub(crate) fn gaps(row: &Row<'_>, limit: Span) -> Vec<Gap> {
    let mut judgment = Judgment::default();
    judgment.gaps_of_cell(row);
    judgment.judge(std::slice::from_ref(row), Limit::Max(limit));
    judgment.gaps
}

impl Verdict {
    pub(crate) fn of(header: &Header, entries: &[Entry], cells: &[Row<'_>]) -> Verdict {
        let require = &header.plan.require;
        if require.is_empty() {
            return Verdict::NoneAsked;
        }
        let mut judgment = Judgment::default();
        judgment.gaps_of_run(header, entries, cells);
        cells.iter().for_each(|cell| judgment.gaps_of_cell(cell));
        limits(require).into_iter().for_each(|(_, limit)| judgment.judge(cells, limit));
        judgment.verdict()
    }

    /// Combines verdicts: a violation outweighs gaps, and a gap outweighs passes.
    pub(crate) fn together<'a>(all: impl IntoIterator<Item = &'a Verdict>) -> Verdict {
        let (mut kept, mut violations, mut gaps, mut is_asked) = (Vec::new(), Vec::new(), Vec::<Gap>::new(), false);
        for verdict in all {
            is_asked |= *verdict != Verdict::NoneAsked;
            match verdict {
                Verdict::Pass { kept: parts } => kept.extend(parts.iter().cloned()),
                Verdict::Fail { violations: parts } => violations.extend(parts.iter().cloned()),
                Verdict::Inconclusive { gaps: parts } => {
                    for gap in parts {
                        if !gaps.contains(gap) {
                            gaps.push(gap.clone());
                        }
                    }
                }
                Verdict::NoneAsked => {}
            }
        }
        match () {
            () if !violations.is_empty() => Verdict::Fail { violations },
            () if !gaps.is_empty() => Verdict::Inconclusive { gaps },
            () if is_asked => Verdict::Pass { kept },
            () => Verdict::NoneAsked,
        }
    }

    /// The verdict without its label: its word, then the evidence.
    pub fn sentence(&self) -> String {
        let text = self.to_string();
        text.strip_prefix("Verdict: ").unwrap_or(&text).trim_end().to_owned()
    }

    /// Its word; empty if no limit was given.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::NoneAsked => "",
            Verdict::Pass { .. } => "PASS",
            Verdict::Fail { .. } => "FAIL",
            Verdict::Inconclusive { .. } => "INCONCLUSIVE",
        }
    }

    /// The exit status of the program: 0 passed or no limit given, 2 violated, 3 inconclusive. (1 is an error.)
    pub fn exit_status(&self) -> u8 {
        match self {
            Verdict::NoneAsked | Verdict::Pass { .. } => 0,
            Verdict::Fail { .. } => 2,
            Verdict::Inconclusive { .. } => 3,
        }
    }
}

#[cfg(test)]
mod tests;
