//! The verdict: whether the machine keeps what the plan requires, and whether that is shown or only not disproved.

mod wording;

use crate::Level;
use crate::finding::run_progress;
use crate::rate::{Rate, zero_events_upper};
use crate::summary::CellSummary;
use crate::woodruff::Quantile;
use model::{Entry, Header, Span};
use serde::Serialize;

/// The answer to the plan's requirement. `Display` is one line; see also [`Verdict::exit_status`].
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// A limit that was kept, where it was nearest to being violated.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "metric", rename_all = "snake_case")]
pub enum Kept {
    /// No wake-up was later.
    Max {
        /// The cell with the largest latency.
        cell: String,
        /// The limit, ns.
        limit_ns: u64,
        /// The largest latency of any cell, ns.
        value_ns: i64,
        /// Time measured in the least measured cell, ns.
        measured_ns: u64,
        /// What that time excludes at 95 %: this many wake-ups an hour beyond the limit.
        upper_per_hour: f64,
    },
    /// The upper end of the quantile's interval is within the limit.
    Quantile {
        /// The cell with the largest upper end.
        cell: String,
        /// Which quantile.
        level: Level,
        /// The limit, ns.
        limit_ns: u64,
        /// The upper end of its interval, ns.
        upper_ns: i64,
    },
    /// The upper limit of the rate is within the required one.
    MissesPerHour {
        /// The cell with the largest upper limit.
        cell: String,
        /// The limit.
        limit_per_hour: f64,
        /// The upper limit of the rate at 95 %.
        upper_per_hour: f64,
    },
}

/// A limit that is violated.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "metric", rename_all = "snake_case")]
pub enum Violation {
    /// A wake-up was later.
    Max {
        /// Where.
        cell: String,
        /// The limit, ns.
        limit_ns: u64,
        /// The largest latency, ns.
        value_ns: i64,
        /// Whether that wait had not ended.
        at_least: bool,
    },
    /// The lower end of the quantile's interval is beyond the limit.
    Quantile {
        /// Where.
        cell: String,
        /// Which quantile.
        level: Level,
        /// The limit, ns.
        limit_ns: u64,
        /// The quantile, ns.
        value_ns: i64,
        /// The lower end of its 95 % interval, ns.
        lower_ns: i64,
    },
    /// The lower limit of the rate is beyond the required one.
    MissesPerHour {
        /// Where.
        cell: String,
        /// The limit.
        limit_per_hour: f64,
        /// Episodes seen.
        episodes: u64,
        /// The lower limit of their rate at 95 %.
        lower_per_hour: f64,
    },
}

/// Why something required is not shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Gap {
    /// Measurements of the plan are missing.
    Incomplete {
        /// Measurements that are complete.
        done: u64,
        /// Measurements asked for.
        planned: u64,
    },
    /// Combinations of the plan were not measured.
    Skipped {
        /// How many.
        cells: u64,
        /// Why the first was not.
        why: String,
    },
    /// A cell has no wake-up at all.
    NoSamples {
        /// Which.
        cell: String,
    },
    /// Samples were lost: any of them may have been beyond the limit.
    Lost {
        /// Where.
        cell: String,
        /// How many.
        lost: u64,
    },
    /// A wait had not ended: it may go beyond the limit.
    Open {
        /// Where.
        cell: String,
        /// How late it was already, ns.
        at_least_ns: u64,
    },
    /// The interval of the quantile holds the limit, or there is no interval.
    Quantile {
        /// Where.
        cell: String,
        /// Which quantile.
        level: Level,
        /// The limit, ns.
        limit_ns: u64,
        /// Its 95 % interval, ns.
        interval_ns: Option<(i64, i64)>,
    },
    /// The interval of the rate holds the limit.
    MissesPerHour {
        /// Where.
        cell: String,
        /// The limit.
        limit_per_hour: f64,
        /// Episodes seen.
        episodes: u64,
        /// Hours measured.
        hours: f64,
        /// The upper limit of the rate at 95 %.
        upper_per_hour: f64,
        /// Hours to measure in all; `None` when episodes come too often for that.
        hours_needed: Option<f64>,
    },
}

/// What is known of all limits while cells are looked at.
#[derive(Default)]
struct Judgement {
    kept: Vec<Kept>,
    violations: Vec<Violation>,
    gaps: Vec<Gap>,
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

impl Judgement {
    /// A violation stays one however much is missing; a gap outweighs what was kept.
    fn verdict(mut self) -> Verdict {
        if !self.violations.is_empty() {
            // Stable: of equal ones the first limit and cell of the plan.
            self.violations.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
            return Verdict::Fail { violations: self.violations };
        }
        if self.gaps.is_empty() { Verdict::Pass { kept: self.kept } } else { Verdict::NotShown { gaps: self.gaps } }
    }

    fn gaps_of_run(&mut self, header: &Header, entries: &[Entry]) {
        let (done, planned) = run_progress(header, entries);
        if done < planned || planned == 0 {
            self.gaps.push(Gap::Incomplete { done, planned });
        }
        if let Some(first) = header.skipped.first() {
            let cells = u64::try_from(header.skipped.len()).unwrap_or(u64::MAX);
            self.gaps.push(Gap::Skipped { cells, why: first.reason.clone() });
        }
    }

    fn gaps_of_cell(&mut self, summary: &CellSummary) {
        let cell = || summary.name.clone();
        // Cells without any record are missing measurements of the run already.
        if summary.samples == 0 && summary.blocks > 0 {
            self.gaps.push(Gap::NoSamples { cell: cell() });
        }
        if summary.lost > 0 {
            self.gaps.push(Gap::Lost { cell: cell(), lost: summary.lost });
        }
        if let Some(open) = summary.censored {
            self.gaps.push(Gap::Open { cell: cell(), at_least_ns: open.at_least_ns });
        }
    }

    fn max(&mut self, cells: &[CellSummary], limit: Span) {
        let limit_ns = limit.ns();
        let maxima: Vec<_> = cells.iter().filter_map(|cell| Some((&cell.name, cell.max?))).collect();
        let beyond = |ns: i64| u64::try_from(ns).is_ok_and(|ns| ns > limit_ns);
        self.violations.extend(maxima.iter().filter(|(_, max)| beyond(max.latency_ns)).map(|(name, max)| {
            let (value_ns, at_least) = (max.latency_ns, max.at_least);
            Violation::Max { cell: (*name).clone(), limit_ns, value_ns, at_least }
        }));
        let measured = cells.iter().map(|cell| cell.measured).min().unwrap_or_default();
        let largest = maxima.iter().max_by_key(|(_, max)| max.latency_ns);
        self.kept.extend(largest.map(|(name, max)| Kept::Max {
            cell: (*name).clone(),
            limit_ns,
            value_ns: max.latency_ns,
            measured_ns: measured.ns(),
            upper_per_hour: zero_events_upper(measured.as_secs_f64() / 3600.0),
        }));
    }

    fn quantile(&mut self, cells: &[CellSummary], level: Level, limit: Span) {
        let limit_ns = limit.ns();
        let within = |ns: i64| u64::try_from(ns).unwrap_or(0) <= limit_ns;
        let mut largest: Option<(i64, String)> = None;
        for summary in cells.iter().filter(|cell| cell.samples > 0) {
            let cell = summary.name.clone();
            match *summary.quantiles.at(level) {
                Quantile::Known { value_ns, interval_ns: Some((lower_ns, _)), .. } if !within(lower_ns) => {
                    self.violations.push(Violation::Quantile { cell, level, limit_ns, value_ns, lower_ns });
                }
                Quantile::Known { interval_ns: Some((_, upper_ns)), .. } if within(upper_ns) => {
                    largest = largest.max(Some((upper_ns, cell)));
                }
                quantile => {
                    self.gaps.push(Gap::Quantile { cell, level, limit_ns, interval_ns: quantile.interval_ns() });
                }
            }
        }
        self.kept.extend(largest.map(|(upper_ns, cell)| Kept::Quantile { cell, level, limit_ns, upper_ns }));
    }

    fn misses(&mut self, cells: &[CellSummary], limit_per_hour: f64) {
        let rates: Vec<(&str, Rate)> =
            cells.iter().filter_map(|cell| Some((cell.name.as_str(), cell.misses?))).collect();
        for (name, rate) in &rates {
            let cell = (*name).to_owned();
            let Rate { episodes, hours, lower_per_hour, upper_per_hour, .. } = *rate;
            if lower_per_hour > limit_per_hour {
                self.violations.push(Violation::MissesPerHour { cell, limit_per_hour, episodes, lower_per_hour });
            } else if upper_per_hour > limit_per_hour {
                let hours_needed = rate.hours_needed(limit_per_hour);
                self.gaps.push(Gap::MissesPerHour {
                    cell,
                    limit_per_hour,
                    episodes,
                    hours,
                    upper_per_hour,
                    hours_needed,
                });
            }
        }
        let largest = rates.iter().max_by(|(_, a), (_, b)| a.upper_per_hour.total_cmp(&b.upper_per_hour));
        self.kept.extend(largest.map(|(cell, rate)| Kept::MissesPerHour {
            cell: (*cell).to_owned(),
            limit_per_hour,
            upper_per_hour: rate.upper_per_hour,
        }));
    }
}

impl Violation {
    /// How many times the limit was reached: what the violations are ordered by.
    fn factor(&self) -> f64 {
        match self {
            Violation::Max { limit_ns, value_ns, .. } | Violation::Quantile { limit_ns, value_ns, .. } => {
                *value_ns as f64 / *limit_ns as f64
            }
            Violation::MissesPerHour { limit_per_hour, lower_per_hour, .. } => lower_per_hour / limit_per_hour,
        }
    }
}

#[cfg(test)]
mod tests;
