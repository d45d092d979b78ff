//! The frontier: the smallest period that a machine keeps without a missed cycle, found by search.
//!
//! Pure: [`Search`] says which period to measure next, takes what came of it, and ends with a [`Frontier`]. The search
//! halves the range in ratio, because periods span decades. Trials are noisy, and it can be fooled in two ways:
//!
//! * By chance a period is missed that is kept otherwise. So a second trial decides, because nothing later would notice.
//! * By chance a period is kept that is missed otherwise. So the smallest one kept has to be kept again, in several
//!   fresh trials; if it is not, the next longer one that was kept has to, and then those in between.

mod wording;

use crate::stats::rate::{visibility_floor, zero_events_upper};
use crate::stats::special::whole;
use model::{Period, Record, Span};
use serde::Serialize;

/// What is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchParameters {
    /// The shortest period that may be tried.
    #[serde(rename = "from_ns")]
    pub from: Period,
    /// The longest period that may be tried.
    #[serde(rename = "to_ns")]
    pub to: Period,
    /// Periods in between are whole multiples of this, at least 1 ns.
    #[serde(skip)]
    pub unit: Span,
    /// Fresh trials that have to keep the period found; at least 1.
    pub confirm: u32,
    /// How close the period found and the next shorter one, which is missed, shall be: 0.05 is 5 %; 0.01 to 1. Periods
    /// in between have three digits, so a finer search would find the same.
    pub resolution: f64,
}

/// What one trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Narrowing the range.
    Search,
    /// Narrowing the range: the same period again, because it was missed.
    Again,
    /// Confirming the smallest period kept.
    Confirm,
}

/// What one trial counted; all measured CPUs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// Due times.
    pub cycles_due: u64,
    /// Wake-ups recorded.
    pub recorded: u64,
    /// Due times already past when the thread could sleep again.
    pub missed: u64,
    /// Wake-ups for whose sample there was no room.
    pub lost: u64,
    /// Waits still open at the end.
    pub censored: u64,
    /// Time measured, ns; CPUs do not add up.
    #[serde(rename = "measured_ns")]
    pub measured: Span,
    /// Largest latency, ns; `None` without wake-ups.
    pub max_ns: Option<i64>,
}

/// One measurement of one period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// The period.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// What it was for.
    pub purpose: Purpose,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Measure this period.
    Measure(Period, Purpose),
    /// Nothing more: this is the answer.
    Done(Frontier),
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Frontier {
    /// A period was kept in every fresh trial.
    Confirmed(Confirmed),
    /// Even the longest period that may be tried was missed, twice.
    LongestMissed {
        /// That period.
        #[serde(rename = "period_ns")]
        period: Period,
    },
    /// Every period that the search kept, the longest among them, was missed in a fresh trial.
    NotConfirmed {
        /// The longest.
        #[serde(rename = "period_ns")]
        period: Period,
    },
}

/// The smallest period kept, and what its fresh trials show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Confirmed {
    /// The period.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// The longest shorter period that was missed; `None` when the period is the shortest that may be tried.
    #[serde(rename = "missed_below_ns")]
    pub missed_below: Option<Period>,
    /// Fresh trials.
    pub trials: u32,
    /// Cycles of the fresh trials, none of them missed. Those of the search do not count: they chose the period.
    pub cycles: u64,
    /// Upper limit of the share of missed cycles at 95 % (Garwood 1936), per million, if each is missed by itself.
    pub missed_per_million_upper: f64,
    /// Time measured in the fresh trials, ns.
    #[serde(rename = "measured_ns")]
    pub measured: Span,
    /// What comes more rarely than once in this time, ns, has more than a 5 % chance of not being seen.
    #[serde(rename = "visibility_floor_ns")]
    pub visibility_floor: Span,
    /// Shorter periods that were to be confirmed too, and were missed.
    pub not_confirmed: u32,
}

/// Where the search stands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// The range is narrowed; `again` when this period was missed once.
    Narrowing { period: Period, again: bool },
    /// `period` has been kept in `kept` fresh trials.
    Confirming { period: Period, kept: u32 },
    /// There is an answer.
    Over(Frontier),
}

/// The search, step by step.
#[derive(Debug, Clone)]
pub struct Search {
    asked: SearchParameters,
    /// The lower end of the range: the longest period missed, of those shorter than the upper end.
    missed: Option<Period>,
    /// The upper end of the range while it is narrowed: the smallest period kept.
    kept: Option<Period>,
    /// The smallest period kept in all its fresh trials.
    confirmed: Option<Period>,
    phase: Phase,
    trials: Vec<Trial>,
}

impl SearchParameters {
    /// What cannot be searched.
    ///
    /// # Errors
    /// One line: what is wrong and what to do.
    pub fn check(&self) -> Result<(), String> {
        let SearchParameters { from, to, .. } = self;
        if from > to {
            return Err(format!(
                "--from {from} is longer than --to {to}; the search goes from a shorter period to a longer"
            ));
        }
        Ok(())
    }

    /// About how many trials it takes when half of the periods are missed.
    #[must_use]
    pub fn usual_trials(&self) -> u32 {
        let halvings = (self.to.ns() as f64 / self.from.ns() as f64).ln() / self.resolution.ln_1p();
        let steps = u32::try_from(whole(halvings.max(1.0).log2().ceil())).unwrap_or(u32::MAX);
        steps.saturating_add(steps / 2).saturating_add(1).saturating_add(self.confirm)
    }
}

impl Outcome {
    /// The counts of one record.
    #[must_use]
    pub fn of(record: &Record) -> Outcome {
        let sum = |count: fn(&model::ThreadRecord) -> u64| record.threads.iter().map(count).sum();
        Outcome {
            cycles_due: sum(|thread| thread.cycles_due),
            recorded: sum(|thread| thread.recorded),
            missed: sum(|thread| thread.missed),
            lost: sum(|thread| thread.lost),
            censored: sum(|thread| u64::from(thread.censored.is_some())),
            measured: record.measured,
            max_ns: record.threads.iter().filter_map(|thread| thread.histogram.max_ns).max(),
        }
    }

    /// Whether every cycle left a sample: none was missed, lost or still waited for.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.cycles_due > 0 && self.recorded == self.cycles_due
    }
}

impl Search {
    /// Begins with the longest period: if that is missed, so are the others.
    #[must_use]
    pub fn new(asked: SearchParameters) -> Search {
        let phase = Phase::Narrowing { period: asked.to, again: false };
        Search { asked, missed: None, kept: None, confirmed: None, phase, trials: Vec::new() }
    }

    /// What to do next. The same answer until [`Search::take`] is called.
    #[must_use]
    pub fn step(&self) -> Step {
        match self.phase {
            Phase::Narrowing { period, again: false } => Step::Measure(period, Purpose::Search),
            Phase::Narrowing { period, again: true } => Step::Measure(period, Purpose::Again),
            Phase::Confirming { period, .. } => Step::Measure(period, Purpose::Confirm),
            Phase::Over(frontier) => Step::Done(frontier),
        }
    }

    /// Takes the outcome of the trial that [`Search::step`] asked for; once the search is done, nothing.
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

    /// Everything that was measured, in order.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The next period to search.
    fn narrow(&self, kept: Period) -> Phase {
        match self.middle(kept) {
            Some(period) => Phase::Narrowing { period, again: false },
            // The shortest is tried only when the search comes near it: it is what loads the machine most.
            None if self.missed.is_none() && self.asked.from < kept => {
                Phase::Narrowing { period: self.asked.from, again: false }
            }
            None => Phase::Confirming { period: kept, kept: 0 },
        }
    }

    /// The next period to confirm: as long as there is none, the next longer one that a trial kept; then those between
    /// it and the one missed.
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

    /// The geometric middle between the longest period missed and a longer one, as long as they are further apart than
    /// asked.
    fn middle(&self, longer: Period) -> Option<Period> {
        let shorter = self.missed.unwrap_or(self.asked.from);
        let (short_ns, long_ns) = (shorter.ns() as f64, longer.ns() as f64);
        let middle = rounded((short_ns * long_ns).sqrt(), self.asked.unit)
            .filter(|middle| shorter < *middle && *middle < longer);
        middle.filter(|_| long_ns / short_ns > 1.0 + self.asked.resolution)
    }

    /// What the fresh trials of a period show, all of which kept it.
    fn evidence(&self, period: Period) -> Confirmed {
        let fresh = || self.trials.iter().filter(|trial| trial.purpose == Purpose::Confirm);
        let of_period = || fresh().filter(|trial| trial.period == period);
        let cycles: u64 = of_period().map(|trial| trial.outcome.cycles_due).sum();
        let measured = Span(of_period().map(|trial| trial.outcome.measured.ns()).sum());
        // A period is given up at its first miss.
        let given_up = fresh().filter(|trial| !trial.outcome.is_kept()).count();
        Confirmed {
            period,
            missed_below: self.missed,
            trials: self.asked.confirm.max(1),
            cycles,
            // A few cycles prove nothing: the Poisson limit of a share may be above all of them.
            missed_per_million_upper: zero_events_upper(cycles as f64 / 1e6).min(1e6),
            measured,
            visibility_floor: visibility_floor(measured),
            not_confirmed: u32::try_from(given_up).unwrap_or(u32::MAX),
        }
    }
}

/// A period of three digits in whole multiples of `unit`. `None` out of range.
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
