//! Stationarity: tests that a machine behaved the same during the whole run, required by every number about all of it.
//!
//! The input are numbers of equal stretches of time, never samples: neighboring samples are always correlated, and with
//! a million of them every test rejects. [`Gate`] tests the maxima of seconds, [`shares()`] the number of samples of
//! each stretch above a quantile of all.

mod autocorrelation;
mod periodicity;
mod shares;
mod trend;

pub use autocorrelation::{autocorrelations, ljung_box, rank_ljung_box};
pub use periodicity::{PERIOD_LEVEL, Periodicity, periodicity};
pub use shares::{MIN_STRETCHES, STRETCHES, Shares, shares};
pub use trend::{MannKendall, Pettitt, mann_kendall, pettitt};

pub(crate) use autocorrelation::normal_scores;
use serde::Serialize;

/// p-value below which a test rejects stationarity. There are two tests, so 1 % of stationary runs are rejected.
pub const GATE_LEVEL: f64 = 0.005;

/// Fewest maxima, of one second each, that are tested.
pub const MIN_SECONDS: usize = 30;

/// Fewest blocks that are left when seconds are joined to longer blocks.
pub const MIN_BLOCKS: usize = 150;

/// Lengths of blocks to try, in seconds.
const LADDER: [usize; 6] = [1, 2, 5, 10, 20, 60];

/// Result of the gate for a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Gate {
    /// Nothing contradicts stationarity: blocks of this length are independent, without a trend.
    Passed {
        /// Length of the blocks, in seconds.
        block: usize,
        /// Number of blocks.
        blocks: usize,
    },
    /// The run consists of two parts that differ; each is stationary.
    Changed {
        /// Seconds before the change.
        at: usize,
    },
    /// Maxima rise or fall during the run.
    Drifts {
        /// Whether they rise.
        rises: bool,
    },
    /// Maxima are autocorrelated, even in long blocks, and neither one change nor a drift explains it.
    Dependent,
    /// Fewer than [`MIN_SECONDS`] seconds: not tested.
    TooShort {
        /// Seconds measured.
        seconds: usize,
    },
}

impl Gate {
    /// Tests the maxima of consecutive seconds.
    ///
    /// Seconds are joined to longer blocks until the blocks are independent ([`rank_ljung_box`]) and without a trend
    /// ([`mann_kendall`]), each at [`GATE_LEVEL`], as long as [`MIN_BLOCKS`] are left.
    pub fn of(maxima: &[f64]) -> Gate {
        if maxima.len() < MIN_SECONDS {
            return Gate::TooShort { seconds: maxima.len() };
        }
        let enough = |block: &usize| *block == 1 || maxima.len() / block >= MIN_BLOCKS;
        for block in LADDER.into_iter().filter(enough) {
            let maxima = joined(maxima, block);
            if is_independent(&maxima) && has_no_trend(&maxima) {
                return Gate::Passed { block, blocks: maxima.len() };
            }
        }
        explained(maxima)
    }
}

/// The maximum of each `block` consecutive values; a remainder at the end is dropped.
pub fn joined(maxima: &[f64], block: usize) -> Vec<f64> {
    maxima.chunks_exact(block.max(1)).map(|values| values.iter().copied().fold(f64::MIN, f64::max)).collect()
}

/// Constant values count as independent.
fn is_independent(maxima: &[f64]) -> bool {
    rank_ljung_box(maxima).is_none_or(|p| p >= GATE_LEVEL)
}

fn has_no_trend(maxima: &[f64]) -> bool {
    mann_kendall(maxima).is_none_or(|trend| trend.p >= GATE_LEVEL)
}

/// Explanation of a rejected run: one change, or a drift, if the residuals are independent without it. The explanation
/// with the smaller sum of squares wins.
fn explained(maxima: &[f64]) -> Gate {
    let scores = normal_scores(maxima);
    let change = pettitt(maxima).filter(|change| change.p < GATE_LEVEL);
    let change = change.map(|_| {
        let at = best_split(&scores);
        let (before, after) = scores.split_at(at);
        (Gate::Changed { at }, [before, after].into_iter().flat_map(without_mean).collect())
    });
    let trend = mann_kendall(maxima).filter(|trend| trend.p < GATE_LEVEL);
    let drift = trend.map(|trend| (Gate::Drifts { rises: trend.s > 0 }, without_line(&scores)));
    let squares = |left: &Vec<f64>| left.iter().map(|x| x * x).sum::<f64>();
    let explained = change.into_iter().chain(drift).filter(|(_, left)| is_independent(left));
    let best = explained.min_by(|a, b| squares(&a.1).total_cmp(&squares(&b.1)));
    best.map_or(Gate::Dependent, |(gate, _)| gate)
}

/// Split at which two means leave the least squares: Pettitt's own location is biased toward the middle.
pub(crate) fn best_split(scores: &[f64]) -> usize {
    let (n, total) = (scores.len() as f64, scores.iter().sum::<f64>());
    let mut sum = 0.0;
    let explains = |(before, score): (usize, &f64)| {
        sum += score;
        let k = before as f64;
        let difference = sum / k - (total - sum) / (n - k);
        (before, k * (n - k) * difference * difference)
    };
    let splits = (1..scores.len()).zip(scores).map(explains);
    splits.reduce(|best, next| if next.1 > best.1 { next } else { best }).map_or(0, |(before, _)| before)
}

pub(crate) fn without_mean(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
}

/// The residuals of the least-squares line.
pub(crate) fn without_line(values: &[f64]) -> Vec<f64> {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let values = without_mean(values);
    let times = || (0..values.len()).map(|i| i as f64 - middle);
    let slope = times().zip(&values).map(|(t, v)| t * v).sum::<f64>() / times().map(|t| t * t).sum::<f64>();
    times().zip(&values).map(|(t, v)| v - slope * t).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference series for tests of change: annual flow at Aswan, 10^8 m^3, 1871 to 1970 (Cobb 1978; data set `Nile`
    /// of R).
    pub(in crate::stats::stationarity) const NILE: [f64; 100] = [
        1120.0, 1160.0, 963.0, 1210.0, 1160.0, 1160.0, 813.0, 1230.0, 1370.0, 1140.0, 995.0, 935.0, 1110.0, 994.0,
        1020.0, 960.0, 1180.0, 799.0, 958.0, 1140.0, 1100.0, 1210.0, 1150.0, 1250.0, 1260.0, 1220.0, 1030.0, 1100.0,
        774.0, 840.0, 874.0, 694.0, 940.0, 833.0, 701.0, 916.0, 692.0, 1020.0, 1050.0, 969.0, 831.0, 726.0, 456.0,
        824.0, 702.0, 1120.0, 1100.0, 832.0, 764.0, 821.0, 768.0, 845.0, 864.0, 862.0, 698.0, 845.0, 744.0, 796.0,
        1040.0, 759.0, 781.0, 865.0, 845.0, 944.0, 984.0, 897.0, 822.0, 1010.0, 771.0, 676.0, 649.0, 846.0, 812.0,
        742.0, 801.0, 1040.0, 860.0, 874.0, 848.0, 890.0, 744.0, 749.0, 838.0, 1050.0, 918.0, 986.0, 797.0, 923.0,
        975.0, 815.0, 1020.0, 906.0, 901.0, 1170.0, 912.0, 746.0, 919.0, 718.0, 714.0, 740.0,
    ];
    use punctual_model::SplitMix64;

    fn noise(n: usize, seed: u64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        (0..n).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).collect()
    }

    #[test]
    fn a_run_without_structure_passes() {
        assert_eq!(Gate::of(&noise(600, 1)), Gate::Passed { block: 1, blocks: 600 });
        assert_eq!(Gate::of(&[7.0; 60]), Gate::Passed { block: 1, blocks: 60 });
        assert_eq!(Gate::of(&noise(29, 1)), Gate::TooShort { seconds: 29 });
    }

    #[test]
    fn a_change_is_told_from_a_drift_and_from_dependence() {
        let mut step = noise(600, 2);
        step.iter_mut().skip(420).for_each(|value| *value += 0.8);
        let Gate::Changed { at } = Gate::of(&step) else { panic!("{:?}", Gate::of(&step)) };
        assert!(at.abs_diff(420) < 10, "{at}");

        let mut drift = noise(600, 3);
        drift.iter_mut().zip(0..).for_each(|(value, i)| *value -= f64::from(i) / 400.0);
        assert_eq!(Gate::of(&drift), Gate::Drifts { rises: false });

        let waves: Vec<f64> = noise(600, 4).iter().zip(0..).map(|(v, i)| v + (f64::from(i) / 20.0).sin()).collect();
        assert_eq!(Gate::of(&waves), Gate::Dependent);
    }

    #[test]
    fn longer_blocks_may_be_independent_where_seconds_are_not() {
        // Pairs of equal seconds are correlated only within a pair.
        let pairs: Vec<f64> = noise(600, 5).into_iter().flat_map(|value| [value, value]).collect();
        assert_eq!(Gate::of(&pairs), Gate::Passed { block: 2, blocks: 600 });
        assert_eq!(joined(&[1.0, 5.0, 2.0, 3.0, 9.0], 2), [5.0, 3.0]);
    }
}
