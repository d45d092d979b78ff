//! Periodicity of the largest values: the test that finds a spike every 60 s.

use crate::stats::special::poisson_at_least;
use serde::Serialize;

/// Number of the largest blocks that are examined.
const TOPS: usize = 30;

/// p-value below which a distance is a period, over all distances tried together.
pub const PERIOD_LEVEL: f64 = 0.01;

/// Fewest distances on either side of a lag for comparison.
const NEIGHBORS: usize = 5;

/// A distance between large values that is too frequent for chance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Periodicity {
    /// The period, in blocks.
    pub lag: usize,
    /// Pairs of the largest values at this distance, or at the multiple of it that is most frequent.
    pub pairs: usize,
    /// p-value of so many pairs at any distance (Bonferroni's bound over all distances).
    pub p: f64,
}

/// The most significant distance between the 30 largest values. `None` with at most 30 values, or when no distance is
/// significant at [`PERIOD_LEVEL`].
///
/// Among equal values the earlier counts as larger.
pub fn periodicity(values: &[f64]) -> Option<Periodicity> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    let value = |i: usize| values.get(i).copied().unwrap_or(f64::MIN);
    order.sort_by(|a, b| value(*b).total_cmp(&value(*a)));
    (values.len() > TOPS).then(|| order.truncate(TOPS));
    let found = of_places(&order, values.len()).filter(|found| found.p < PERIOD_LEVEL && values.len() > TOPS)?;
    Some(Periodicity { lag: fundamental(&order, found.lag), ..found })
}

/// The fundamental period of `lag`: its divisor for which most places, beyond chance, have the same remainder. With
/// spikes every 8 blocks only some of them are among the largest, and a multiple of 8 may be their most frequent
/// distance.
fn fundamental(places: &[usize], lag: usize) -> usize {
    let by_chance = |divisor: usize| {
        let mut remainders: Vec<usize> = places.iter().map(|place| place % divisor).collect();
        remainders.sort_unstable();
        let most = remainders.chunk_by(|a, b| a == b).map(<[usize]>::len).max().unwrap_or(0);
        poisson_at_least(most as u64, places.len() as f64 / divisor as f64)
    };
    let divisors = (2..=lag).rev().filter(|divisor| lag.is_multiple_of(*divisor));
    let best = divisors.map(|divisor| (divisor, by_chance(divisor))).reduce(|a, b| if b.1 < a.1 { b } else { a });
    best.map_or(lag, |(divisor, _)| divisor)
}

/// The most significant distance between these places among `n`, from 2 blocks to half of all.
///
/// Among k places drawn at random, the pairs at distance l are nearly Poisson with mean `k (k-1) (n-l) / (n (n-1))`.
/// Clustered places make all short distances frequent. The mean is therefore at least the average of the neighboring
/// distances, and only a distance that stands out from them is a period.
fn of_places(places: &[usize], n: usize) -> Option<Periodicity> {
    let longest = n.checked_div(2)?;
    let mut pairs = vec![0usize; longest + 1];
    for (i, a) in places.iter().enumerate() {
        for b in places.iter().skip(i + 1) {
            if let Some(count) = pairs.get_mut(a.abs_diff(*b)) {
                *count += 1;
            }
        }
    }
    let (k, size) = (places.len() as f64, n as f64);
    let lags = longest.saturating_sub(1) as f64;
    let found = (2..=longest).filter_map(|lag| {
        let count = pairs.get(lag).copied().filter(|count| *count > 1)?;
        let by_chance = k * (k - 1.0) * (size - lag as f64) / (size * (size - 1.0));
        let mean = by_chance.max(around(&pairs, lag));
        let p = (poisson_at_least(count as u64, mean) * lags).min(1.0);
        Some(Periodicity { lag, pairs: count, p })
    });
    // Among equally significant distances the shortest: its multiples follow from it.
    found.reduce(|best, next| if next.p < best.p { next } else { best })
}

/// The mean number of pairs at the distances just shorter than `lag`, or just longer, whichever is larger: with
/// clustered places, pairs become rarer with every distance. The two distances next to `lag` are left out, because
/// spikes may fall into either of two blocks; at short distances nothing is left out.
fn around(pairs: &[usize], lag: usize) -> f64 {
    let reach = NEIGHBORS.max(lag / 4);
    let left_out = if lag > NEIGHBORS { 1 } else { 0 };
    let mean = |from: usize, to: usize| {
        let side = pairs.get(from.max(1)..to.min(pairs.len())).unwrap_or_default();
        if side.is_empty() { 0.0 } else { side.iter().sum::<usize>() as f64 / side.len() as f64 }
    };
    mean(lag.saturating_sub(reach), lag - left_out).max(mean(lag + 1 + left_out, lag + 1 + reach))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::SplitMix64;

    /// Noise without any structure, 0 to 1.
    fn noise(n: usize, seed: u64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        (0..n).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).collect()
    }

    #[test]
    fn a_spike_every_60_is_found_and_noise_is_not() {
        assert_eq!(periodicity(&noise(600, 1)), None);
        for (every, n) in [(60, 600), (8, 600), (250, 3600)] {
            let mut values = noise(n, 2);
            values.iter_mut().skip(5).step_by(every).for_each(|value| *value += 1.0);
            assert_eq!(periodicity(&values).map(|found| found.lag), Some(every), "{n}");
        }
    }

    #[test]
    fn too_few_values_have_no_period() {
        assert_eq!(periodicity(&[]), None);
        let regular: Vec<f64> = (0..30).map(|i| f64::from(i % 5)).collect();
        assert_eq!(periodicity(&regular), None, "each of 30 is among the 30 largest");
    }

    #[test]
    fn a_storm_is_no_period() {
        // All large values are consecutive: short distances are frequent, but none more than its neighbors.
        let mut values = noise(600, 3);
        values.iter_mut().skip(300).take(40).for_each(|value| *value += 1.0);
        assert_eq!(periodicity(&values), None);
    }
}
