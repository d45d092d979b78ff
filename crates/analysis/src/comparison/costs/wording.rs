//! A comparison of costs in sentences, and its exit status.

use super::{Change, CostComparison};
use crate::answer::Answer;
use crate::comparison::comparability::{self, Difference, Role};
use crate::comparison::{Metric, Refusal};
use crate::wording::things;
use punctual_model::Level;
use std::fmt;

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+.1} %", self.percent)?;
        self.interval_percent.map_or(Ok(()), |(lower, upper)| write!(f, " [{lower:+.1} to {upper:+.1}]"))
    }
}

impl CostComparison {
    /// Whether a difference is shown: of the fixed amount of work if that was measured, else of any operation. Groups
    /// are exploratory: they would double the probability of a false difference.
    pub fn finds_a_difference(&self) -> bool {
        match &self.total {
            Some(total) => total.is_different,
            None => self.operations.iter().any(|one| one.is_different),
        }
    }

    /// The answer in one sentence.
    pub fn answer(&self) -> Answer {
        Answer::new(self.sentence())
    }

    /// The same, followed by the change of all.
    pub fn sentence(&self) -> String {
        let (needed, of) = (self.blocks_needed, self.operations.len() as u64);
        let blocks = things(self.blocks, "block");
        let different = self.operations.iter().filter(|one| one.is_different).count();
        let all = self.all.map(|change| format!(" The geometric mean of all changes by {change}.")).unwrap_or_default();
        let few = self.blocks < needed;
        match different {
            _ if let Some(why) = self.refused.as_ref().filter(|why| !matches!(why, Refusal::FewBlocks { .. })) => {
                format!("UNDECIDED: {}", why.in_words(Metric::Quantile(Level::P50)))
            }
            _ if of == 0 => "UNDECIDED: no operation was measured in every block of both.".to_owned(),
            0 if few => format!(
                "UNDECIDED: {blocks} with both, {needed} are needed to show that one of {of} operations differs: measure \
                 more (--repetitions {needed}).{all}"
            ),
            0 => format!("No difference shown: none of {of} operations ({blocks}; family-wise error rate 5 %).{all}"),
            n => format!("DIFFERENT: {n} of {of} operations ({blocks}; family-wise error rate 5 %).{all}"),
        }
    }

    /// Remarks on the answer, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        // The names of cells contain the load and the policy.
        let is_told = |one: &&Difference| one.role == Role::Asked || ["load", "policy"].contains(&one.fact);
        comparability::remarks(self.differences.iter().filter(|one| !is_told(one)))
    }

    /// Reason for which the two cannot be compared; `None` if they can.
    pub fn why_not(&self) -> Option<String> {
        let why = comparability::why_not(&self.differences).filter(|_| self.refused == Some(Refusal::Incomparable))?;
        Some(format!("{why}; --force compares anyway"))
    }

    /// Exit status of the program: 2 different, 0 no difference shown, 3 if the data could not show one.
    pub fn exit_status(&self) -> u8 {
        match () {
            () if self.finds_a_difference() => 2,
            () if self.refused.is_some() || self.operations.is_empty() => 3,
            () if self.total.is_none() && self.blocks < self.blocks_needed => 3,
            () => 0,
        }
    }
}
