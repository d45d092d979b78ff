//! One-sided exact rank-sum test over strata (Wilcoxon 1945; van Elteren 1960 with equal weights).
//!
//! Values are ranked within a stratum, so that strata of different size or load do not mix. The null distribution is
//! that of all exchanges of the two groups within each stratum, with ties as they are.

use super::ranks::midranks;
use super::special::normal_beyond;

/// Values of the two groups in a stratum.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Stratum {
    /// The group that is expected to be larger.
    pub(crate) larger: Vec<f64>,
    /// The other group.
    pub(crate) smaller: Vec<f64>,
}

impl Stratum {
    /// The values, each with whether it is of the group that is expected to be larger.
    pub(crate) fn of(values: impl Iterator<Item = (bool, f64)>) -> Stratum {
        let mut stratum = Stratum::default();
        for (is_larger, value) in values {
            if is_larger { stratum.larger.push(value) } else { stratum.smaller.push(value) }
        }
        stratum
    }
}

/// Result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RankSum {
    /// Chance that the first group is as much larger as it is, or more, if the groups do not differ.
    pub(crate) p_larger: f64,
    /// Chance that it is as much smaller, or more.
    pub(crate) p_smaller: f64,
    /// Smallest chance that so many values can give: above the level of the test, they cannot show a difference.
    pub(crate) p_least: f64,
}

/// Steps of the exact computation above which the distribution is taken as normal; half a second without optimization.
const MAX_STEPS: usize = 20_000_000;

/// Tests whether the first group is larger; `None` if no stratum has values of both.
pub(crate) fn rank_sum(strata: &[Stratum]) -> Option<RankSum> {
    let strata: Vec<&Stratum> = strata.iter().filter(|s| !s.larger.is_empty() && !s.smaller.is_empty()).collect();
    if strata.is_empty() {
        return None;
    }
    let ranked: Vec<Ranked> = strata.iter().map(|stratum| Ranked::of(stratum)).collect();
    let p_least = ranked.iter().map(|ranked| 1.0 / choose(ranked.doubled.len(), ranked.n)).product();
    let observed: usize = ranked.iter().map(|ranked| ranked.sum).sum();
    let mut steps = 0;
    let mut length = 1;
    for ranked in &ranked {
        steps += ranked.doubled.len() * ranked.n * ranked.length() + length * ranked.length();
        length += ranked.length();
    }
    if steps > MAX_STEPS {
        return Some(normal(&ranked, observed, p_least));
    }
    let mut all = vec![1.0];
    for ranked in &ranked {
        all = convolved(&all, &ranked.distribution());
    }
    let from = |range: &[f64]| range.iter().sum::<f64>().min(1.0);
    Some(RankSum {
        p_larger: from(all.get(observed..).unwrap_or_default()),
        p_smaller: from(all.get(..=observed).unwrap_or_default()),
        p_least,
    })
}

/// The ranks of a stratum, doubled so that midranks are integers.
struct Ranked {
    doubled: Vec<usize>,
    /// Values of the first group.
    n: usize,
    /// Sum of their doubled ranks.
    sum: usize,
}

impl Ranked {
    fn of(stratum: &Stratum) -> Ranked {
        let values: Vec<f64> = stratum.larger.iter().chain(&stratum.smaller).copied().collect();
        let whole = |rank: f64| usize::try_from(super::special::whole(rank * 2.0)).unwrap_or(usize::MAX);
        let doubled: Vec<usize> = midranks(&values).into_iter().map(whole).collect();
        let n = stratum.larger.len();
        let sum = doubled.iter().take(n).sum();
        Ranked { doubled, n, sum }
    }

    /// Number of possible sums, from 0.
    fn length(&self) -> usize {
        self.doubled.iter().sum::<usize>() + 1
    }

    /// Chance of each sum of `n` ranks: the subsets counted rank by rank.
    fn distribution(&self) -> Vec<f64> {
        let length = self.length();
        let mut of_size = vec![vec![0.0; length]; self.n + 1];
        if let Some(first) = of_size.first_mut().and_then(|empty| empty.first_mut()) {
            *first = 1.0;
        }
        for rank in &self.doubled {
            for size in (1..=self.n).rev() {
                let (smaller, larger) = of_size.split_at_mut(size);
                let Some((from, to)) = smaller.last().zip(larger.first_mut()) else { continue };
                for (to, from) in to.iter_mut().skip(*rank).zip(from) {
                    *to += from;
                }
            }
        }
        let subsets = choose(self.doubled.len(), self.n);
        of_size.pop().unwrap_or_default().into_iter().map(|count| count / subsets).collect()
    }
}

/// The distribution of the sum of two independent numbers.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (shift, weight) in a.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        for (to, from) in sum.iter_mut().skip(shift).zip(b) {
            *to += weight * from;
        }
    }
    sum
}

/// The number of subsets.
fn choose(n: usize, k: usize) -> f64 {
    (1..=k).map(|i| (n - k + i) as f64 / i as f64).product()
}

/// The test by the normal distribution with the variance of the ranks as they are tied.
fn normal(ranked: &[Ranked], observed: usize, p_least: f64) -> RankSum {
    let (mut mean, mut variance) = (0.0, 0.0);
    for Ranked { doubled, n, .. } in ranked {
        let (all, n) = (doubled.len() as f64, *n as f64);
        let average = doubled.iter().sum::<usize>() as f64 / all;
        let spread = doubled.iter().map(|rank| (*rank as f64 - average).powi(2)).sum::<f64>() / (all - 1.0);
        mean += n * average;
        variance += n * (all - n) / all * spread;
    }
    let z = (observed as f64 - mean) / variance.sqrt();
    if !z.is_finite() {
        // All values are equal.
        return RankSum { p_larger: 1.0, p_smaller: 1.0, p_least };
    }
    let beyond = normal_beyond(z) / 2.0;
    let (p_larger, p_smaller) = if z > 0.0 { (beyond, 1.0 - beyond) } else { (1.0 - beyond, beyond) };
    RankSum { p_larger, p_smaller, p_least }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(strata: &[(&[f64], &[f64])]) -> Option<RankSum> {
        let of = |(larger, smaller): &(&[f64], &[f64])| Stratum { larger: larger.to_vec(), smaller: smaller.to_vec() };
        rank_sum(&strata.iter().map(of).collect::<Vec<_>>())
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn small_groups_have_the_chances_of_their_exchanges() {
        assert_eq!(test(&[]), None);
        assert_eq!(test(&[(&[1.0], &[])]), None);
        let three = test(&[(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0])]).unwrap();
        assert!(near(three.p_larger, 0.05) && near(three.p_smaller, 1.0) && near(three.p_least, 0.05), "{three:?}");
        let contrary = test(&[(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0])]).unwrap();
        assert!(near(contrary.p_smaller, 0.05) && near(contrary.p_larger, 1.0), "{contrary:?}");
        // W = 18 of {2, 4, 5, 7}: 15 of the 70 subsets have at least that sum (Hollander & Wolfe, by enumeration).
        let mixed = test(&[(&[2.0, 4.0, 5.0, 8.0], &[1.0, 3.0, 6.0, 7.0])]).unwrap();
        let at_least = (0..256u32).filter(|set| set.count_ones() == 4);
        let at_least = at_least.filter(|set| (1..=8).filter(|rank| set >> (rank - 1) & 1 == 1).sum::<u32>() >= 19);
        assert!(near(mixed.p_larger, at_least.count() as f64 / 70.0), "{mixed:?}");
    }

    #[test]
    fn equal_values_show_nothing() {
        let equal = test(&[(&[0.0; 8], &[0.0; 8])]).unwrap();
        assert!(near(equal.p_larger, 1.0) && near(equal.p_smaller, 1.0) && equal.p_least < 0.001, "{equal:?}");
        let many = test(&[(&[0.0; 400], &[0.0; 400])]).unwrap();
        assert_eq!((many.p_larger, many.p_smaller), (1.0, 1.0));
    }

    #[test]
    fn strata_of_one_value_each_are_a_sign_test() {
        let strata: Vec<(&[f64], &[f64])> = vec![(&[9.0], &[1.0]); 6];
        let six = test(&strata).unwrap();
        assert!(near(six.p_larger, 1.0 / 64.0) && near(six.p_least, 1.0 / 64.0), "{six:?}");
        // A stratum far above the others does not count for more.
        let far = test(&[(&[1e9], &[1e8]), (&[1.0], &[2.0])]).unwrap();
        assert!(near(far.p_larger, 0.75), "{far:?}");
    }

    #[test]
    fn large_groups_are_nearly_normal() {
        let (a, b): (Vec<f64>, Vec<f64>) =
            (0..60).map(|i| (f64::from(i * 7 % 60), f64::from(i * 11 % 60) + 3.5)).unzip();
        let strata = [Stratum { larger: b, smaller: a }];
        let ranked: Vec<Ranked> = strata.iter().map(Ranked::of).collect();
        let exact = rank_sum(&strata).unwrap();
        let rough = normal(&ranked, ranked[0].sum, exact.p_least);
        assert!((exact.p_larger - rough.p_larger).abs() < 0.005, "{exact:?} {rough:?}");
    }
}
