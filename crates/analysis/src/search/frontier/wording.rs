//! Sentences for the result of a search: the period found, its evidence, and the limits of that evidence.

use super::{Confirmed, Frontier, Outcome, Phase, Purpose, Search, Step, Trial};
use crate::answer::Answer;
use crate::wording::{count, duration, number, things};
use punctual_model::Period;
use std::fmt;

impl fmt::Display for Outcome {
    /// Counts of one trial: `3 of 400 cycles missed`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} missed", count(self.missed), things(self.cycles_due, "cycle"))?;
        if self.lost > 0 {
            write!(f, ", {} lost", count(self.lost))?;
        }
        if self.censored > 0 {
            write!(f, ", {} not ended", things(self.censored, "wait"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Purpose::Search => "search",
            Purpose::Again => "again",
            Purpose::Confirm => "confirm",
        })
    }
}

impl Search {
    /// The answer: the period found.
    pub fn answer(&self) -> Answer {
        Answer::new(self.sentences().into_iter().next().unwrap_or_default())
    }

    /// The answer, then the limits of its evidence, one sentence each. Before the end of the search, its progress.
    pub fn sentences(&self) -> Vec<String> {
        match self.step() {
            Step::Done(Frontier::Confirmed(confirmed)) => self.found(&confirmed),
            Step::Done(Frontier::LongestMissed { period }) => {
                vec![format!(
                    "No period is kept: even {}, the longest tried, was missed: {}. Try longer ones with --to.",
                    text(period),
                    self.misses(period)
                )]
            }
            Step::Done(Frontier::NotConfirmed { period }) => {
                vec![format!(
                    "No period is kept: none that was kept once was kept again, nor was the longest, {}: {}. \
                     Stalls occur at random here: try longer periods with --to.",
                    text(period),
                    self.misses(period)
                )]
            }
            Step::Measure(..) => vec![self.so_far()],
        }
    }

    fn found(&self, found: &Confirmed) -> Vec<String> {
        let below = match found.missed_below {
            Some(below) => format!("{}, the next shorter one tried, was not: {}", text(below), self.misses(below)),
            None if found.period.span() == Period::MIN => "it is the shortest there is".to_owned(),
            None => "it is the shortest that was asked for, --from".to_owned(),
        };
        let mut answer = vec![
            format!("Shortest period kept: {} ({below}).", text(found.period)),
            format!(
                "0 missed in {} of {}: at 95 % fewer than {} in a million, if each is missed by itself. A stall rarer \
                 than once in {} would not have been seen; longer trials (--duration) or more (--confirm) see more.",
                things(found.cycles, "cycle"),
                things(u64::from(found.trials), "fresh trial"),
                number(found.missed_per_million_upper),
                duration(found.visibility_floor.ns() as f64),
            ),
        ];
        if found.not_confirmed > 0 {
            answer.push(format!(
                "{} that the search sustained {} missed when tried again. The more are tried, the sooner one passes by luck: \
                 confirm this one with --from {} --to {}.",
                things(u64::from(found.not_confirmed), "shorter period"),
                if found.not_confirmed == 1 { "was" } else { "were" },
                found.period,
                found.period,
            ));
        }
        if let Some(trial) = self.longest_missed_once(found.period) {
            answer.push(format!(
                "{} was missed when first tried ({}) and sustained when tried again: rarely, a stall here is longer than that.",
                text(trial.period),
                trial.outcome
            ));
        }
        answer
    }

    /// Longest period, from `period` on, that was missed in its first trial and kept later.
    fn longest_missed_once(&self, period: Period) -> Option<&Trial> {
        let first = |trial: &&Trial| trial.purpose == Purpose::Search && !trial.outcome.is_kept();
        self.trials.iter().filter(first).filter(|trial| trial.period >= period).max_by_key(|trial| trial.period)
    }

    /// Progress of an interrupted search.
    fn so_far(&self) -> String {
        let trials = things(u64::try_from(self.trials.len()).unwrap_or(u64::MAX), "trial");
        let so_far = match (self.phase, self.kept) {
            (Phase::Confirming { period, kept }, _) => {
                format!("{} was sustained in {kept} of {} fresh trials", text(period), self.asked.confirm)
            }
            (_, Some(kept)) => format!("{} was sustained in one trial", text(kept)),
            (_, None) => "no period was sustained".to_owned(),
        };
        let missed = self.missed.map_or_else(String::new, |missed| format!(", {} was missed", text(missed)));
        format!("Interrupted after {trials}: {so_far}{missed}; nothing is confirmed.")
    }

    /// Counts of the trials that missed this period, and the number of trials that kept it.
    fn misses(&self, period: Period) -> String {
        let of_period = self.trials.iter().filter(|trial| trial.period == period);
        let (kept, missed): (Vec<&Trial>, Vec<&Trial>) = of_period.partition(|trial| trial.outcome.is_kept());
        let missed = missed.iter().map(|trial| trial.outcome.to_string()).collect::<Vec<_>>().join(", then ");
        match u64::try_from(kept.len()).unwrap_or(u64::MAX) {
            0 => missed,
            kept => format!("{missed}, in {} none", things(kept, "other trial")),
        }
    }
}

fn text(period: Period) -> String {
    duration(period.ns() as f64)
}
