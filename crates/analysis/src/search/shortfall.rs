//! Shortfall of a run: numbers that are not yet as precise as required.

use super::enough::{half_width, time_needed};
use crate::stats::course::Course;
use crate::stats::woodruff::{Quantile, Refusal};
use crate::summary::cell::CellSummary;
use crate::wording::{duration, number};
use punctual_model::{Level, Requirement, Span};
use serde::Serialize;
use std::fmt;

/// Target of the relative half-width of an interval.
const TARGET: f64 = 0.1;

/// Shortfall of one cell. `Display` is one sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Shortfall {
    /// Name of the cell.
    pub cell: String,
    /// The missing evidence.
    #[serde(flatten)]
    pub lack: Lack,
}

/// Kind of missing evidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "lack", rename_all = "snake_case")]
pub enum Lack {
    /// The half-width of the interval of a quantile is above 10 % of its value, or there is no interval.
    Quantile {
        /// Level of the quantile.
        level: Level,
        /// Relative half-width of its interval; `None` without an interval.
        half_width: Option<f64>,
        /// Total measuring time needed, ns; `None` if unknown.
        time_needed_ns: Option<u64>,
    },
    /// The required rate of misses is neither shown to be kept nor to be violated.
    Rate {
        /// Total measuring time needed, ns; `None` if misses are too frequent to ever show it.
        time_needed_ns: Option<u64>,
    },
    /// Latency changed over time, or the measurement is too short to tell.
    Steadiness,
}

/// Shortfalls of the cells of a run; empty if it was long enough.
pub(crate) fn shortfalls<'a>(require: &Requirement, cells: impl Iterator<Item = &'a CellSummary>) -> Vec<Shortfall> {
    cells
        .flat_map(|cell| of_cell(require, cell).into_iter().map(|lack| Shortfall { cell: cell.name.clone(), lack }))
        .collect()
}

fn of_cell(require: &Requirement, cell: &CellSummary) -> Vec<Lack> {
    let is_steady = cell.steadiness.courses.maxima == Course::Same && cell.steadiness.courses.stayed_the_same();
    let mut lacks: Vec<Lack> = if is_steady { Vec::new() } else { vec![Lack::Steadiness] };
    // Quantiles with a requirement; otherwise p99, which every run of some length can show.
    let required: Vec<Level> = require.quantiles().map(|(level, _)| level).collect();
    let levels = if required.is_empty() { vec![Level::P99] } else { required };
    lacks.extend(levels.into_iter().filter_map(|level| of_quantile(cell, level)));
    if let (Some(limit), Some(rate)) = (require.misses_per_hour, cell.misses)
        && rate.lower_per_hour <= limit
        && rate.upper_per_hour > limit
    {
        let needed = rate.hours_needed(limit).map(|hours| crate::stats::special::whole(hours * 3.6e12));
        lacks.push(Lack::Rate { time_needed_ns: needed });
    }
    lacks
}

fn of_quantile(cell: &CellSummary, level: Level) -> Option<Lack> {
    let quantile = cell.quantiles.at(level);
    let width =
        quantile.value_ns().zip(quantile.interval_ns()).and_then(|(value, interval)| half_width(value, interval));
    if width.is_some_and(|width| width <= TARGET) {
        return None;
    }
    let needed = match (quantile, width) {
        (_, Some(width)) => time_needed(cell.measured, width, TARGET),
        (Quantile::Refused(Refusal::FewExceedances { times_as_long, .. }), None) => {
            Some(Span(crate::stats::special::whole(cell.measured.ns() as f64 * times_as_long)))
        }
        _ => None,
    };
    Some(Lack::Quantile { level, half_width: width, time_needed_ns: needed.map(Span::ns) })
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.cell)?;
        let in_all = |needed: Option<u64>| needed.map(|ns| format!(", it needs about {} in all", duration(ns as f64)));
        match self.lack {
            Lack::Quantile { level, half_width: Some(width), time_needed_ns } => {
                let width = number(width * 100.0);
                write!(f, "{level} is known to within {width} %{}", in_all(time_needed_ns).unwrap_or_default())
            }
            Lack::Quantile { level, time_needed_ns, .. } => {
                write!(f, "{level} has no interval{}", in_all(time_needed_ns).unwrap_or_default())
            }
            Lack::Rate { time_needed_ns: Some(ns) } => {
                write!(f, "the rate of misses is inconclusive, it needs about {} in all", duration(ns as f64))
            }
            Lack::Rate { .. } => f.write_str("the rate of misses cannot be shown at their present rate"),
            Lack::Steadiness => f.write_str("latency is not stationary, or was measured for too short a time to tell"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::summary::looks::looks;
    use crate::testing::RunBuilder;
    use punctual_model::Until;

    /// Blocks of 10 s at 10 ms. Each wake-up is 5 us late, plus a random time below `spread_ns`.
    fn run(blocks: u32, spread_ns: usize) -> RunBuilder {
        let late = |random: &mut punctual_model::SplitMix64| i64::try_from(random.below(spread_ns)).unwrap();
        run_of(blocks, late)
    }

    fn run_of(blocks: u32, late_ns: impl Fn(&mut punctual_model::SplitMix64) -> i64) -> RunBuilder {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        (run.header.plan.repetitions, run.header.plan.until) = (blocks, Some(Until::Enough));
        run.header.cells[0].duration = Span(10_000_000_000);
        run.header.cells[0].period = "10ms".parse().unwrap();
        for block in 0..blocks {
            run.measure(block, 0, |cpu, cycle| {
                let seed = u64::from(block) << 40 | cycle << 1 | u64::from(cpu);
                5_000 + late_ns(&mut punctual_model::SplitMix64::new(seed))
            });
        }
        run
    }

    fn lacks(run: &RunBuilder) -> Vec<String> {
        let lacks = summarise(&run.header, &run.entries).shortfalls.unwrap();
        lacks.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_steady_run_with_narrow_intervals_is_enough() {
        assert_eq!(lacks(&run(6, 1_000)), Vec::<String>::new());
        let mut other = run(6, 1_000);
        other.header.plan.until = None;
        assert_eq!(summarise(&other.header, &other.entries).shortfalls, None, "nobody asked");
    }

    #[test]
    fn what_is_missing_is_said_with_the_time_it_takes() {
        let short = lacks(&run(2, 1_000));
        assert_eq!(short, ["none/fifo:80: latency is not stationary, or was measured for too short a time to tell"]);
        let mut rate = run(6, 1_000);
        rate.require("misses_per_hour=1");
        rate.header.plan.until = Some(Until::Enough);
        assert_eq!(lacks(&rate), ["none/fifo:80: the rate of misses is inconclusive, it needs about 3 h in all"]);
        let mut rare = run(6, 1_000);
        rare.require("p999=1ms");
        assert!(lacks(&rare).is_empty(), "12 000 wake-ups have 12 above p99.9: {:?}", lacks(&rare));
        let mut fewer = run(4, 1_000);
        fewer.require("p999=1ms");
        assert_eq!(lacks(&fewer), ["none/fifo:80: p99.9 has no interval, it needs about 50 s in all"]);
    }

    #[test]
    fn intervals_are_wider_where_one_looks_several_times() {
        let heavy = |random: &mut punctual_model::SplitMix64| {
            5_000_000_000 / (1 + i64::try_from(random.below(1_000_000)).unwrap())
        };
        let looked = run_of(12, heavy);
        let mut once = looked.clone();
        once.header.plan.until = None;
        let width = |run: &RunBuilder| {
            let (lower, upper) =
                summarise(&run.header, &run.entries).cells[0].quantiles.at(Level::P99).interval_ns().unwrap();
            upper - lower
        };
        assert!(width(&looked) > width(&once));
        assert_eq!(looks(&looked.header).unwrap().blocks().collect::<Vec<_>>(), [2, 4, 8, 12]);
    }
}
