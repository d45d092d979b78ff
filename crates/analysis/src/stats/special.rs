//! The special functions that intervals and tests need: gamma, beta, and the tails and quantiles of distributions.

/// Coefficients of Lanczos' approximation with g = 7 and 9 terms (Lanczos 1964; values of P. Godfrey): 1e-15 relative.
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// Most terms of a series or continued fraction. They need about the square root of their largest parameter, so this is
/// enough for 10^12 samples.
const MAX_TERMS: u32 = 1_000_000;

/// The natural logarithm of the gamma function, for `x > 0`.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + 7.5;
    let terms = LANCZOS.iter().skip(1).zip(1u8..).map(|(c, i)| c / (x + f64::from(i)));
    let sum = LANCZOS[0] + terms.sum::<f64>();
    (2.0 * std::f64::consts::PI).sqrt().ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The regularized lower incomplete gamma function P(a, x), for `a > 0` and `x >= 0`: the chance that a gamma variable
/// of shape `a` is at most `x`.
pub(crate) fn gamma_p(a: f64, x: f64) -> f64 {
    if x < a + 1.0 { gamma_series(a, x) } else { 1.0 - gamma_fraction(a, x) }
}

/// The upper tail, 1 - P(a, x), accurate to the last digits also where it is tiny.
pub(crate) fn gamma_q(a: f64, x: f64) -> f64 {
    if x < a + 1.0 { 1.0 - gamma_series(a, x) } else { gamma_fraction(a, x) }
}

/// P(a, x) below the mode (Abramowitz & Stegun 6.5.29).
fn gamma_series(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut term = 1.0 / a;
    let mut sum = term;
    for i in 1..MAX_TERMS {
        term *= x / (a + f64::from(i));
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    (a * x.ln() - x - ln_gamma(a)).exp() * sum
}

/// 1 - P(a, x) above the mode (Abramowitz & Stegun 6.5.31).
fn gamma_fraction(a: f64, x: f64) -> f64 {
    let mut fraction = Fraction::new(x + 1.0 - a);
    for i in 1..MAX_TERMS {
        let i = f64::from(i);
        if fraction.step(-i * (i - a), x + 1.0 - a + 2.0 * i) {
            break;
        }
    }
    (a * x.ln() - x - ln_gamma(a)).exp() / fraction.value
}

/// The chance that a chi-squared variable with `df` degrees of freedom is above `x`.
pub(crate) fn chi_squared_above(df: f64, x: f64) -> f64 {
    gamma_q(df / 2.0, x / 2.0)
}

/// The chance that a Poisson variable of this mean is at least `k`.
pub(crate) fn poisson_at_least(k: u64, mean: f64) -> f64 {
    if k == 0 { 1.0 } else { gamma_p(k as f64, mean) }
}

/// The chance that a normal variable is further than `|z|` from its mean, on either side (two-sided tail).
pub fn normal_beyond(z: f64) -> f64 {
    gamma_q(0.5, z * z / 2.0)
}

/// The `p` quantile of the normal distribution, for `0 < p < 1`.
pub fn normal_quantile(p: f64) -> f64 {
    if p < 0.5 {
        return -normal_quantile(1.0 - p);
    }
    let density = |z: f64| (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    // Started at the middle: the distribution is concave above it, so no step overshoots.
    newton(0.0, |z| (0.5 * normal_beyond(z) - (1.0 - p)) / density(z))
}

/// Newton's method from `x`, until a step changes nothing.
fn newton(mut x: f64, step: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let step = step(x);
        x += step;
        if step.abs() < 1e-14 * x.max(1.0) {
            break;
        }
    }
    x
}

/// The `x` with P(a, x) = `p`, for `0 < p < 1`.
pub(crate) fn inverse_gamma_p(a: f64, p: f64) -> f64 {
    let mut upper = a.max(1.0);
    while gamma_p(a, upper) < p {
        upper *= 2.0;
    }
    bisect(0.0, upper, |x| gamma_p(a, x) < p)
}

/// The 95 % interval of a share with `k` of `n` seen (Clopper & Pearson 1934), also for fractional numbers; for `k = 0`
/// the one-sided upper limit. `None` unless `0 <= k <= n` and `n > 0`.
pub fn share_interval(k: f64, n: f64) -> Option<(f64, f64)> {
    if !(0.0..=n).contains(&k) || n <= 0.0 {
        return None;
    }
    let tail = if k > 0.0 { 0.025 } else { 0.05 };
    let lower = if k > 0.0 { bisect(0.0, 1.0, |x| beta_i(k, n - k + 1.0, x) < tail) } else { 0.0 };
    let upper = if k < n { bisect(0.0, 1.0, |x| beta_i(k + 1.0, n - k, x) < 1.0 - tail) } else { 1.0 };
    Some((lower, upper))
}

/// The regularized incomplete beta function I_x(a, b), for `a, b > 0` (Abramowitz & Stegun 26.5.8).
pub(crate) fn beta_i(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_i(b, a, 1.0 - x);
    }
    let front = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let mut fraction = Fraction::new(1.0);
    for m in 0..MAX_TERMS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let settled = m > 0.0 && fraction.step(even, 1.0);
        if fraction.step(odd, 1.0) && settled {
            break;
        }
    }
    front.exp() / (a * fraction.value)
}

/// The `p` quantile of Student's t with `df` degrees of freedom, for `0.5 <= p < 1`.
pub(crate) fn student_t(df: f64, p: f64) -> f64 {
    let above = |t: f64| 0.5 * beta_i(df / 2.0, 0.5, df / (df + t * t));
    let scale = ln_gamma((df + 1.0) / 2.0) - ln_gamma(df / 2.0) - 0.5 * (df * std::f64::consts::PI).ln();
    let density = |t: f64| (scale - (df + 1.0) / 2.0 * (t * t / df).ln_1p()).exp();
    // Started at the normal quantile, which is nearer to the middle than the answer, so no step overshoots.
    newton(normal_quantile(p), |t| (above(t) - (1.0 - p)) / density(t))
}

/// Chance that Student's t with `df` degrees of freedom exceeds `t`.
pub(crate) fn student_t_above(df: f64, t: f64) -> f64 {
    let beyond = 0.5 * beta_i(df / 2.0, 0.5, df / (df + t * t));
    if t > 0.0 { beyond } else { 1.0 - beyond }
}

/// Converts a non-negative value to a whole number, saturating at the largest.
pub(crate) fn whole(value: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast stops at 0 and at the largest"
    )]
    let number = value as u64;
    number
}

/// Bisects the range down to the resolution of floats; `below` is true left of the answer.
fn bisect(mut lower: f64, mut upper: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (lower + upper);
        if middle <= lower || middle >= upper {
            break;
        }
        if below(middle) { lower = middle } else { upper = middle }
    }
    0.5 * (lower + upper)
}

/// A continued fraction b0 + a1/(b1 + a2/(b2 + ...)), evaluated from the front (modified Lentz; Thompson & Barnett
/// 1986).
struct Fraction {
    value: f64,
    c: f64,
    d: f64,
}

impl Fraction {
    fn new(b0: f64) -> Fraction {
        Fraction { value: b0, c: b0, d: 0.0 }
    }

    /// Adds the next term; true when it changed nothing.
    fn step(&mut self, a: f64, b: f64) -> bool {
        let away_from_zero = |x: f64| if x.abs() < 1e-300 { 1e-300 } else { x };
        self.d = 1.0 / away_from_zero(b + a * self.d);
        self.c = away_from_zero(b + a / self.c);
        let change = self.c * self.d;
        self.value *= change;
        (change - 1.0).abs() < 1e-15
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_share_has_its_known_values() {
        // R: binom.test(5, 100)$conf.int, binom.test(1, 20)$conf.int, 1 - 0.05^(1/299).
        for (k, n, lower, upper) in [(5.0, 100.0, 0.016_431_88, 0.112_834_9), (1.0, 20.0, 0.001_265_089, 0.248_732_8)] {
            let got = share_interval(k, n).unwrap();
            assert!((got.0 - lower).abs() < 1e-6 && (got.1 - upper).abs() < 1e-6, "{k} {n}: {got:?}");
        }
        let none = share_interval(0.0, 299.0).unwrap();
        assert!(none.0 == 0.0 && (none.1 - 0.009_969).abs() < 1e-5, "{none:?}");
        assert_eq!(
            (share_interval(3.0, 3.0).unwrap().1, share_interval(4.0, 3.0), share_interval(0.0, 0.0)),
            (1.0, None, None)
        );
    }

    fn close(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance, "{got} is not {want}");
    }

    #[test]
    fn gamma_and_its_inverse_have_their_textbook_values() {
        close(ln_gamma(1.0), 0.0, 1e-14);
        close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-14);
        close(ln_gamma(11.0), 3_628_800f64.ln(), 1e-12);
        close(gamma_p(1.0, 2.0), 1.0 - (-2f64).exp(), 1e-14);
        close(gamma_p(3.0, 0.5), 0.014_387_677_966_970_687, 1e-14);
        assert_eq!(gamma_p(2.0, 0.0), 0.0);
        close(2.0 * inverse_gamma_p(4.5, 0.95), 16.918_977_604_620_45, 1e-9); // chi-squared, 9 degrees of freedom
        close(inverse_gamma_p(1.0, 0.95), 2.995_732_273_553_991, 1e-12);
        close(gamma_p(1e8, 1e8), 0.5, 1e-4);
    }

    #[test]
    fn tails_have_their_textbook_values() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_963_984_540_054), (0.001, -3.090_232_306_167_813_5)] {
            close(normal_quantile(p), z, 1e-10);
        }
        close(normal_quantile(1.0 - 1e-9), 5.997_807_015, 1e-6);
        close(normal_beyond(1.959_963_984_540_054), 0.05, 1e-14);
        close(normal_beyond(-8.0) / 1.244_192_114_854_357e-15, 1.0, 1e-9);
        // With an even number of degrees of freedom it is a Poisson sum: e^-x (1 + x + x^2/2 + x^3/6 + x^4/24).
        let (x, terms) = (44.0f64, 1.0 + 44.0 + 968.0 + 85_184.0 / 6.0 + 3_748_096.0 / 24.0);
        close(chi_squared_above(10.0, 2.0 * x) / ((-x).exp() * terms), 1.0, 1e-12);
        close(chi_squared_above(1.0, 3.841_458_820_694_124), 0.05, 1e-12);
        close(poisson_at_least(3, 2.0), 1.0 - 5.0 * (-2f64).exp(), 1e-14);
        assert_eq!((poisson_at_least(0, 2.0), poisson_at_least(1, 0.0)), (1.0, 0.0));
    }

    #[test]
    fn beta_and_t_have_their_textbook_values() {
        close(beta_i(2.0, 3.0, 0.4), 0.5248, 1e-14);
        close(beta_i(1.0, 1.0, 0.3), 0.3, 1e-14);
        assert_eq!((beta_i(2.0, 2.0, 0.0), beta_i(2.0, 2.0, 1.0)), (0.0, 1.0));
        for (df, t) in [(1.0, 12.706_204_736), (9.0, 2.262_157_163), (19.0, 2.093_024_054), (1e6, 1.959_966)] {
            close(student_t(df, 0.975), t, 1e-6);
        }
    }

    #[test]
    fn whole_numbers_stop_at_the_ends() {
        for (value, number) in [(-1.0, 0), (0.9, 0), (3.0, 3), (1e30, u64::MAX), (f64::NAN, 0)] {
            assert_eq!(whole(value), number, "{value}");
        }
    }
}
