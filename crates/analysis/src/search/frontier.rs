//! Search for the frontier: the smallest period that a machine keeps without a missed cycle.
//!
//! Pure: [`Search`] returns the next period to measure, takes the outcome, and ends with a [`Frontier`]. It bisects the
//! range by ratio, because periods span decades. Trials are noisy, which can mislead the search in two ways:
//!
//! * A period is missed by chance, although the machine usually keeps it. A second trial decides, because no later step
//!   would detect the error.
//! * A period is kept by chance, although the machine usually misses it. Several fresh trials therefore confirm the
//!   smallest period sustained. If one fails, the next longer one is confirmed, and then those in between.

mod wording;

use crate::stats::rate::{visibility_floor, zero_events_upper};
use crate::stats::special::whole;
use punctual_model::{Period, Record, Span};
use serde::Serialize;

/// Parameters of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SearchParameters {
    /// Shortest period to try.
    #[serde(rename = "from_ns")]
    pub from: Period,
    /// Longest period to try.
    #[serde(rename = "to_ns")]
    pub to: Period,
    /// Unit of the periods in between, at least 1 ns.
    #[serde(skip)]
    pub unit: Span,
    /// Number of fresh trials that confirm a period; at least 1.
    pub confirm: u32,
    /// Relative distance at which the search ends, between the period found and the next shorter one, which is missed:
    /// 0.05 is 5 %; 0.01 to 1. Periods in between have three digits, so a finer search would find the same.
    pub resolution: f64,
}

/// Purpose of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Narrows the range.
    Search,
    /// Narrows the range: repeats a period that was missed.
    Again,
    /// Confirms the smallest period sustained.
    Confirm,
}

/// Counts of one trial, summed over all measured CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Outcome {
    /// Due times.
    pub cycles_due: u64,
    /// Wake-ups recorded.
    pub recorded: u64,
    /// Due times that had passed before the thread waited again.
    pub missed: u64,
    /// Wake-ups lost because the sample buffer was full.
    pub lost: u64,
    /// Waits without a wake-up at the end (censored).
    pub censored: u64,
    /// Measuring time, ns; not multiplied by the number of CPUs.
    #[serde(rename = "measured_ns")]
    pub measured: Span,
    /// Largest latency, ns; `None` without wake-ups.
    pub max_ns: Option<i64>,
}

/// Trial: one measurement of one period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Trial {
    /// The period.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// Its purpose.
    pub purpose: Purpose,
    /// Its counts.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Next step of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Measure this period.
    Measure(Period, Purpose),
    /// End: this is the answer.
    Done(Frontier),
}

/// Result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Frontier {
    /// A period was kept in every fresh trial.
    Confirmed(Confirmed),
    /// The longest period was missed twice.
    LongestMissed {
        /// That period.
        #[serde(rename = "period_ns")]
        period: Period,
    },
    /// Every period that the search kept, including the longest, was missed in a fresh trial.
    NotConfirmed {
        /// The longest period.
        #[serde(rename = "period_ns")]
        period: Period,
    },
}

/// The smallest period sustained, and the evidence of its fresh trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Confirmed {
    /// The period.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// Longest shorter period that was missed; `None` if the period is the shortest to try.
    #[serde(rename = "missed_below_ns")]
    pub missed_below: Option<Period>,
    /// Number of fresh trials.
    pub trials: u32,
    /// Cycles of the fresh trials, none of them missed. Cycles of the search do not count, because they selected the
    /// period.
    pub cycles: u64,
    /// Upper limit of the share of missed cycles at 95 % (Garwood 1936), per million, if misses are independent.
    pub missed_per_million_upper: f64,
    /// Measuring time of the fresh trials, ns.
    #[serde(rename = "measured_ns")]
    pub measured: Span,
    /// Visibility floor, ns: events rarer than one in this time remain unseen with a probability of more than 5 %.
    #[serde(rename = "visibility_floor_ns")]
    pub visibility_floor: Span,
    /// Number of shorter periods that failed in a fresh trial.
    pub not_confirmed: u32,
}

/// State of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Narrows the range; `again` is set after the first miss of this period.
    Narrowing { period: Period, again: bool },
    /// `period` has been kept in `kept` fresh trials.
    Confirming { period: Period, kept: u32 },
    /// The result.
    Over(Frontier),
}

/// State machine of the search.
#[derive(Debug, Clone)]
pub struct Search {
    asked: SearchParameters,
    /// Lower end of the range: the longest missed period that is shorter than the upper end.
    missed: Option<Period>,
    /// Upper end of the range while it is narrowed: the smallest period sustained.
    kept: Option<Period>,
    /// Smallest period sustained in all its fresh trials.
    confirmed: Option<Period>,
    phase: Phase,
    trials: Vec<Trial>,
}

impl SearchParameters {
    /// Checks the range. Errors: one line: the error and a hint.
    pub fn check(&self) -> Result<(), String> {
        let SearchParameters { from, to, .. } = self;
        if from > to {
            return Err(format!(
                "--from {from} is longer than --to {to}; the search goes from a shorter period to a longer"
            ));
        }
        Ok(())
    }

    /// Approximate number of trials, if half of the periods are missed.
    pub fn usual_trials(&self) -> u32 {
        let halvings = (self.to.ns() as f64 / self.from.ns() as f64).ln() / self.resolution.ln_1p();
        let steps = u32::try_from(whole(halvings.max(1.0).log2().ceil())).unwrap_or(u32::MAX);
        steps.saturating_add(steps / 2).saturating_add(1).saturating_add(self.confirm)
    }
}

impl Outcome {
    /// Counts of one record. Errors: one line, if a load failed or did nothing: the period was not tried with it.
    pub fn of(record: &Record) -> Result<Outcome, String> {
        let sum = |count: fn(&punctual_model::ThreadRecord) -> u64| record.threads.iter().map(count).sum();
        for load in &record.loads {
            let failure = load.failure.as_ref().map(|failure| failure.reason.as_str());
            if let Some(why) = failure.or_else(|| load.did_nothing().then_some("it did nothing")) {
                return Err(format!("load {}: {why}", load.load));
            }
        }
        Ok(Outcome {
            cycles_due: sum(|thread| thread.cycles_due),
            recorded: sum(|thread| thread.recorded),
            missed: sum(|thread| thread.missed),
            lost: sum(|thread| thread.lost),
            censored: sum(|thread| u64::from(thread.censored.is_some())),
            measured: record.measured,
            max_ns: record.threads.iter().filter_map(|thread| thread.histogram.max_ns).max(),
        })
    }

    /// Whether every cycle left a sample: none was missed, lost or still open.
    pub fn is_kept(&self) -> bool {
        self.cycles_due > 0 && self.recorded == self.cycles_due
    }
}

impl Search {
    /// Starts with the longest period: if that is missed, so are all others.
    pub fn new(asked: SearchParameters) -> Search {
        let phase = Phase::Narrowing { period: asked.to, again: false };
        Search { asked, missed: None, kept: None, confirmed: None, phase, trials: Vec::new() }
    }

    /// Returns the next step. It does not change until [`Search::take`] is called.
    pub fn step(&self) -> Step {
        match self.phase {
            Phase::Narrowing { period, again: false } => Step::Measure(period, Purpose::Search),
            Phase::Narrowing { period, again: true } => Step::Measure(period, Purpose::Again),
            Phase::Confirming { period, .. } => Step::Measure(period, Purpose::Confirm),
            Phase::Over(frontier) => Step::Done(frontier),
        }
    }

    /// Takes the outcome of the trial requested by [`Search::step`]. Does nothing after the end of the search.
    pub fn take(&mut self, outcome: Outcome) {
        let Step::Measure(period, purpose) = self.step() else { return };
        self.trials.push(Trial { period, purpose, outcome });
        self.phase = match (self.phase, outcome.is_kept()) {
            (Phase::Narrowing { period, .. }, true) => {
                self.kept = Some(period);
                self.narrow(period)
            }
            (Phase::Narrowing { period, again: false }, false) => Phase::Narrowing { period, again: true },
            (Phase::Narrowing { period, again: true }, false) => {
                self.missed = Some(period);
                self.kept.map_or(Phase::Over(Frontier::LongestMissed { period }), |kept| self.narrow(kept))
            }
            (Phase::Confirming { period, kept }, true) if kept + 1 < self.asked.confirm => {
                Phase::Confirming { period, kept: kept + 1 }
            }
            (Phase::Confirming { period, .. }, true) => {
                self.confirmed = Some(period);
                self.confirm()
            }
            (Phase::Confirming { period, .. }, false) => {
                self.missed = Some(period);
                self.confirm()
            }
            (over @ Phase::Over(_), _) => over,
        };
    }

    /// All trials, in order.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Next state while the range is narrowed; `kept` is its upper end.
    fn narrow(&self, kept: Period) -> Phase {
        match self.middle(kept) {
            Some(period) => Phase::Narrowing { period, again: false },
            // The shortest period loads the machine most, so it is tried only if the search comes near it.
            None if self.missed.is_none() && self.asked.from < kept => {
                Phase::Narrowing { period: self.asked.from, again: false }
            }
            None => Phase::Confirming { period: kept, kept: 0 },
        }
    }

    /// Next state of the confirmation. Without a confirmed period, it tries the next longer one that a trial kept;
    /// otherwise the periods between the confirmed one and the one missed.
    fn confirm(&self) -> Phase {
        let is_longer = |trial: &&Trial| trial.outcome.is_kept() && Some(trial.period) > self.missed;
        let longer = || self.trials.iter().filter(is_longer).map(|trial| trial.period).min();
        match self.confirmed {
            Some(found) => match self.middle(found) {
                Some(period) => Phase::Confirming { period, kept: 0 },
                None => Phase::Over(Frontier::Confirmed(self.evidence(found))),
            },
            None => match longer() {
                Some(period) => Phase::Confirming { period, kept: 0 },
                None => Phase::Over(Frontier::NotConfirmed { period: self.asked.to }),
            },
        }
    }

    /// Geometric mean of the longest missed period and a longer one; `None` once they are closer than the resolution.
    fn middle(&self, longer: Period) -> Option<Period> {
        let shorter = self.missed.unwrap_or(self.asked.from);
        let (short_ns, long_ns) = (shorter.ns() as f64, longer.ns() as f64);
        let middle = rounded((short_ns * long_ns).sqrt(), self.asked.unit)
            .filter(|middle| shorter < *middle && *middle < longer);
        middle.filter(|_| long_ns / short_ns > 1.0 + self.asked.resolution)
    }

    /// Evidence of the fresh trials of a period, all of which kept it.
    fn evidence(&self, period: Period) -> Confirmed {
        let fresh = || self.trials.iter().filter(|trial| trial.purpose == Purpose::Confirm);
        let of_period = || fresh().filter(|trial| trial.period == period);
        let cycles: u64 = of_period().map(|trial| trial.outcome.cycles_due).sum();
        let measured = Span(of_period().map(|trial| trial.outcome.measured.ns()).sum());
        // A period is abandoned at its first miss.
        let given_up = fresh().filter(|trial| !trial.outcome.is_kept()).count();
        Confirmed {
            period,
            missed_below: self.missed,
            trials: self.asked.confirm.max(1),
            cycles,
            // With few cycles, the Poisson limit of the share may exceed 1.
            missed_per_million_upper: zero_events_upper(cycles as f64 / 1e6).min(1e6),
            measured,
            visibility_floor: visibility_floor(measured),
            not_confirmed: u32::try_from(given_up).unwrap_or(u32::MAX),
        }
    }
}

/// A period with three digits, in whole multiples of `unit`; `None` if out of range.
fn rounded(ns: f64, unit: Span) -> Option<Period> {
    let mut unit = unit.ns().max(1);
    while whole(ns) / unit >= 1_000 {
        unit *= 10;
    }
    let ns = whole((ns / unit as f64).round()) * unit;
    Period::try_from(Span(ns)).ok()
}

#[cfg(test)]
mod tests;
