//! Whether the machine keeps what the plan requires, and whether that is shown or only not disproved.

mod case;
mod judgement;
mod part;
mod wording;

use crate::Level;
use crate::summary::CellSummary;
pub use case::Case;
use judgement::Judgement;
use model::{Entry, Header};
pub use part::{Gap, Kept, View, Violation};
use serde::Serialize;

/// The answer to the plan's requirement. `Display` is one line; see also [`Verdict::exit_status`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing was required.
    NoneAsked,
    /// Every limit is kept in every cell, as far as the measured time can show.
    Pass {
        /// What was shown, one for each limit.
        kept: Vec<Kept>,
    },
    /// At least one limit is violated, beyond chance.
    Fail {
        /// All violations, the worst first.
        violations: Vec<Violation>,
    },
    /// Nothing is violated, but something that is required is not shown.
    NotShown {
        /// Everything that is missing.
        gaps: Vec<Gap>,
    },
}

impl Verdict {
    pub(crate) fn of(header: &Header, entries: &[Entry], cells: &[CellSummary]) -> Verdict {
        let require = &header.plan.require;
        if require.is_empty() {
            return Verdict::NoneAsked;
        }
        let mut judgement = Judgement::default();
        judgement.gaps_of_run(header, entries);
        for cell in cells {
            judgement.gaps_of_cell(cell);
        }
        if let Some(limit) = require.max {
            judgement.max(cells, limit);
        }
        for (level, limit) in [(Level::P99, require.p99), (Level::P999, require.p999)] {
            if let Some(limit) = limit {
                judgement.quantile(cells, level, limit);
            }
        }
        if let Some(limit) = require.misses_per_hour {
            judgement.misses(cells, limit);
        }
        judgement.verdict()
    }

    /// One verdict of several: a violation stays one however much is missing, and a gap outweighs what was kept.
    pub(crate) fn together<'a>(all: impl Iterator<Item = &'a Verdict>) -> Verdict {
        let (mut kept, mut violations, mut gaps, mut is_asked) = (Vec::new(), Vec::new(), Vec::new(), false);
        for verdict in all {
            is_asked |= *verdict != Verdict::NoneAsked;
            match verdict {
                Verdict::Pass { kept: parts } => kept.extend(parts.iter().cloned()),
                Verdict::Fail { violations: parts } => violations.extend(parts.iter().cloned()),
                Verdict::NotShown { gaps: parts } => gaps.extend(parts.iter().cloned()),
                Verdict::NoneAsked => {}
            }
        }
        match () {
            () if !violations.is_empty() => Verdict::Fail { violations },
            () if !gaps.is_empty() => Verdict::NotShown { gaps },
            () if is_asked => Verdict::Pass { kept },
            () => Verdict::NoneAsked,
        }
    }

    /// The exit status of the program: 0 passed or nothing asked, 2 violated, 3 not shown. (1 is an error.)
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Verdict::NoneAsked | Verdict::Pass { .. } => 0,
            Verdict::Fail { .. } => 2,
            Verdict::NotShown { .. } => 3,
        }
    }
}

#[cfg(test)]
mod tests;
