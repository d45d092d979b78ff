//! Tail extrapolation to at most ten times the measured time: an upper limit, behind gates, or a refusal.
//!
//! Excesses of block maxima over a high threshold follow a generalized Pareto distribution when one mechanism causes
//! them. Without the gates the answer depends on the threshold by factors (76 on a real run of 280 s), and a second,
//! rare mechanism makes it wrong in either direction. A mechanism that never acted during the measurement is never
//! covered.

mod fitness;
mod gpd;
mod profile;
mod search;

pub use fitness::{Gap, MOST_DISTANCE, anderson_darling, widest_by_chance, widest_gap};
pub use gpd::{Gpd, SHAPES};
pub use profile::{Level, ONE_SIDED_95, TWO_SIDED_95, level};

use crate::stats::special::whole;
use crate::stats::stationarity::{Gate, MIN_BLOCKS, Periodicity, joined, periodicity};
use serde::Serialize;

/// Largest horizon of the extrapolation, in multiples of the measured time.
pub const MOST_TIMES: f64 = 10.0;

/// Fewest and most excesses of a fit.
const EXCESSES: (usize, usize) = (30, 500);

/// Largest factor between the most likely levels of two thresholds.
const MOST_SENSITIVE: f64 = 2.0;

/// Largest factor between the limit and the most likely level.
const MOST_WIDE: f64 = 3.0;

/// Coarsest resolution of the maxima, as a share of the scale; a coarser one distorts the shape.
const MOST_COARSE: f64 = 0.1;

/// Shapes considered for a limit; negative ones, with an upper end of the tail, are excluded.
const WITHOUT_END: std::ops::RangeInclusive<f64> = 0.0..=1.5;

/// Upper limit of the level that is exceeded once, on average, in a multiple of the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "TailDocument")]
pub struct TailLimit {
    /// The multiple.
    pub times: f64,
    /// The one-sided 95 % upper limit, in the unit of the maxima.
    #[serde(rename = "upper_ns")]
    pub upper: f64,
    /// The most likely level. It is below the limit and not a bound.
    #[serde(skip)]
    pub point: f64,
    /// Length of the blocks, in seconds.
    #[serde(rename = "block_seconds")]
    pub block: usize,
    /// Number of blocks above the threshold.
    pub excesses: usize,
}

/// Reason why the tail is not extrapolated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum TailRefusal {
    /// Further ahead than [`MOST_TIMES`] the measured time, or not a positive multiple.
    TooFar,
    /// The run is not stationary, or too short to tell.
    NotStationary(Gate),
    /// Spikes are periodic, in seconds: they have one cause, which no distribution describes.
    Periodic(Periodicity),
    /// Fewer than 150 blocks.
    FewBlocks {
        /// Number of blocks.
        blocks: usize,
    },
    /// The maxima do not vary above the threshold.
    NoExcesses,
    /// The maxima are too coarse for the scale of the tail.
    Coarse,
    /// The excesses do not follow the fitted distribution.
    NotPareto {
        /// The statistic of Anderson and Darling.
        distance: f64,
    },
    /// The largest maxima are a population of their own: an event with a rate, not a tail.
    SeparateMode {
        /// Blocks above the gap.
        above: usize,
        /// The largest maximum below it.
        from: f64,
        /// The smallest maximum above it.
        to: f64,
    },
    /// The most likely level depends on the threshold.
    ThresholdSensitive {
        /// Factor between two thresholds.
        factor: f64,
    },
    /// The limit is too far above the most likely level to be useful.
    TooWide,
}

/// The one-sided 95 % upper limit of the level that is exceeded once in `times` the measured time, from the maxima of
/// consecutive seconds, which are known to within `resolution`. Errors: the first gate that refuses.
pub fn tail_limit(seconds: &[f64], times: f64, resolution: f64) -> Result<TailLimit, TailRefusal> {
    if times.is_nan() || times <= 0.0 || times > MOST_TIMES {
        return Err(TailRefusal::TooFar);
    }
    let Gate::Passed { block, blocks } = Gate::of(seconds) else {
        return Err(TailRefusal::NotStationary(Gate::of(seconds)));
    };
    let mut maxima = joined(seconds, block);
    if let Some(found) = periodicity(&maxima) {
        return Err(TailRefusal::Periodic(Periodicity { lag: found.lag * block, ..found }));
    }
    if blocks < MIN_BLOCKS {
        return Err(TailRefusal::FewBlocks { blocks });
    }
    maxima.sort_by(f64::total_cmp);
    let tenth = usize::try_from(whole((0.1 * blocks as f64).round())).unwrap_or(EXCESSES.1);
    let most = tenth.clamp(EXCESSES.0, EXCESSES.1);
    let (tail, half) = (Tail::of(&maxima, most), Tail::of(&maxima, (most / 2).max(20)));
    let (tail, half) = tail.zip(half).ok_or(TailRefusal::NoExcesses)?;
    tail.fits(resolution)?;

    let levels = [&tail, &half].map(|tail| tail.upper_limit(times));
    let [Some(at_tail), Some(at_half)] = levels else { return Err(TailRefusal::TooWide) };
    let (low, high) = (at_tail.0.min(at_half.0), at_tail.0.max(at_half.0));
    if high > MOST_SENSITIVE * low {
        return Err(TailRefusal::ThresholdSensitive { factor: high / low });
    }
    let upper = at_tail.1.max(at_half.1);
    if at_tail.1 > MOST_WIDE * at_tail.0 {
        return Err(TailRefusal::TooWide);
    }
    Ok(TailLimit { times, upper, point: high, block, excesses: tail.excesses.len() })
}

/// The maxima above a threshold.
struct Tail {
    threshold: f64,
    /// Excesses over the threshold, ascending, each above 0.
    excesses: Vec<f64>,
}

impl Tail {
    /// The largest `k` of ascending maxima, less the one below them. `None` without excesses.
    fn of(ascending: &[f64], k: usize) -> Option<Tail> {
        let threshold = *ascending.get(ascending.len().checked_sub(k + 1)?)?;
        let above = ascending.iter().skip(ascending.len() - k).map(|x| x - threshold);
        let excesses: Vec<f64> = above.filter(|excess| *excess > 0.0).collect();
        (!excesses.is_empty()).then_some(Tail { threshold, excesses })
    }

    /// Checks that one generalized Pareto distribution describes the excesses.
    fn fits(&self, resolution: f64) -> Result<(), TailRefusal> {
        let (gpd, _) = Gpd::fit(&self.excesses).ok_or(TailRefusal::NoExcesses)?;
        if resolution > MOST_COARSE * gpd.scale {
            return Err(TailRefusal::Coarse);
        }
        let residuals: Vec<f64> = self.excesses.iter().map(|y| gpd.standard(*y)).collect();
        let gap = widest_gap(&residuals).filter(|gap| gap.spacing > widest_by_chance(residuals.len()));
        if let Some(Gap { above, .. }) = gap {
            let at = |above: usize| self.excesses.iter().rev().nth(above).map_or(0.0, |excess| *excess);
            let (from, to) = (self.threshold + at(above), self.threshold + at(above - 1));
            return Err(TailRefusal::SeparateMode { above, from, to });
        }
        match anderson_darling(&residuals) {
            Some(distance) if distance <= MOST_DISTANCE => Ok(()),
            distance => Err(TailRefusal::NotPareto { distance: distance.unwrap_or(f64::INFINITY) }),
        }
    }

    /// The most likely level and its upper limit.
    fn upper_limit(&self, times: f64) -> Option<(f64, f64)> {
        let found = level(&self.excesses, times * self.excesses.len() as f64, WITHOUT_END, ONE_SIDED_95)?;
        Some((self.threshold + found.point, self.threshold + found.upper?))
    }
}

#[cfg(test)]
mod tests;
