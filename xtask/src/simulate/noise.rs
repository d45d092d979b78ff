//! Noise of known distributions, reproducible by seed.

use punctual_analysis::{normal_beyond, normal_quantile};
use punctual_model::SplitMix64;

/// A source of noise.
#[derive(Debug, Clone)]
pub(super) struct Noise(SplitMix64);

impl Noise {
    pub(super) fn new(seed: u64) -> Noise {
        Noise(SplitMix64::new(seed))
    }

    /// Uniform between 0 and 1, both excluded.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.0.next_bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }

    pub(super) fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Standard normal (Box & Muller 1958).
    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.uniform().ln()
    }

    /// Standard Gumbel.
    pub(super) fn gumbel(&mut self) -> f64 {
        -(-self.uniform().ln()).ln()
    }

    /// Trials until the first success, from 1.
    pub(super) fn geometric(&mut self, p: f64) -> u32 {
        let trials = (self.uniform().ln() / (-p).ln_1p()).ceil();
        (1..=1_000_000).find(|n| f64::from(*n) >= trials).unwrap_or(1_000_000)
    }

    /// Times of events of a Poisson process in a unit of time.
    pub(super) fn poisson_times(&mut self, mean: f64) -> Vec<f64> {
        let mut times = Vec::new();
        let mut at = self.exponential(1.0 / mean);
        while at < 1.0 {
            times.push(at);
            at += self.exponential(1.0 / mean);
        }
        times
    }

    /// `n` values of a first-order autoregression with standard deviation 1.
    pub(super) fn autoregression(&mut self, correlation: f64, n: usize) -> Vec<f64> {
        let fresh = (1.0 - correlation * correlation).sqrt();
        let mut z = self.normal();
        let step = |_| {
            z = correlation * z + fresh * self.normal();
            z
        };
        (0..n).map(step).collect()
    }

    /// Student's t with 2.5 degrees of freedom: normal over the root of a gamma variable (Marsaglia & Tsang 2000).
    pub(super) fn heavy(&mut self) -> f64 {
        const SHAPE: f64 = 1.25;
        let (d, normal) = (SHAPE - 1.0 / 3.0, self.normal());
        loop {
            let z = self.normal();
            let v = (1.0 + z / (9.0 * d).sqrt()).powi(3);
            if v > 0.0 && self.uniform().ln() < 0.5 * z * z + d - d * v + d * v.ln() {
                return normal / (d * v / SHAPE).sqrt();
            }
        }
    }
}

/// Samples in a block of a second at a period of 200 us.
pub(super) const SAMPLES: f64 = 5_000.0;

/// A distribution of single latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Parent {
    Exponential,
    /// Generalized Pareto with this shape.
    Pareto(f64),
    /// The logarithm has standard deviation 0.4.
    Lognormal,
    /// Shape 4.
    Gamma,
}

impl Parent {
    /// The latency with this probability of being exceeded.
    pub(super) fn exceeded_with(self, chance: f64) -> f64 {
        match self {
            Parent::Exponential => -5.0 * chance.ln(),
            Parent::Pareto(shape) => 5.0 / shape * (chance.powf(-shape) - 1.0),
            Parent::Lognormal => 5.0 * (-0.4 * normal_quantile(chance)).exp(),
            Parent::Gamma => {
                let above = |x: f64| (-x).exp() * (1.0 + x + x * x / 2.0 + x * x * x / 6.0);
                let (mut low, mut high) = (0.0, 200.0);
                for _ in 0..60 {
                    let middle = 0.5 * (low + high);
                    if above(middle) > chance { low = middle } else { high = middle }
                }
                1.5 * low
            }
        }
    }

    /// Probability that a latency is at most `x`.
    pub(super) fn at_most(self, x: f64) -> f64 {
        match self {
            Parent::Exponential => -(-x / 5.0).exp_m1(),
            Parent::Lognormal => {
                let z = (x / 5.0).ln() / 0.4;
                let beyond = 0.5 * normal_beyond(z);
                if z > 0.0 { 1.0 - beyond } else { beyond }
            }
            _ => f64::NAN,
        }
    }

    /// The maximum of a block, for probability `u` of a smaller one.
    pub(super) fn maximum(self, u: f64) -> f64 {
        self.exceeded_with(-(u.ln() / SAMPLES).exp_m1())
    }
}
