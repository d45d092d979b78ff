//! S6, its gates one by one: power, false rejections, and the required resolution of buckets.

use super::noise::{Noise, Parent};
use super::tail::Truth;
use super::{Expected, ResultRow, Scale, counted};
use punctual_analysis::tail::{Gpd, MOST_DISTANCE, anderson_darling, widest_by_chance, widest_gap};

const RUNS: u32 = 300;

/// Specified shares of rejections by each test, for a distribution and a number of blocks.
struct Specified {
    truth: Truth,
    name: &'static str,
    blocks: usize,
    excesses: usize,
    distance: Expected,
    gap: Expected,
    either: Expected,
}

const fn share(p: f64) -> Expected {
    Expected::Share(p, RUNS)
}

/// False rejections: at most 2 % of runs, by each test.
const FALSE: Expected = Expected::AtMost(0.02);
const NONE: Expected = Expected::Unknown;

#[rustfmt::skip]
const TRUTHS: [Specified; 6] = [
    Specified { truth: Truth::Of(Parent::Exponential), name: "exponential", blocks: 600, excesses: 60,
        distance: FALSE, gap: FALSE, either: NONE },
    Specified { truth: Truth::Of(Parent::Lognormal), name: "lognormal", blocks: 600, excesses: 60,
        distance: FALSE, gap: FALSE, either: NONE },
    Specified { truth: Truth::Of(Parent::Gamma), name: "gamma", blocks: 600, excesses: 60,
        distance: FALSE, gap: FALSE, either: NONE },
    Specified { truth: Truth::Autoregression(0.8), name: "AR 0.8", blocks: 600, excesses: 60,
        distance: Expected::AtMost(0.06), gap: Expected::AtMost(0.06), either: NONE },
    Specified { truth: Truth::RareMode(0.01), name: "rare mode 1 %", blocks: 600, excesses: 60,
        distance: share(0.31), gap: share(0.87), either: NONE },
    Specified { truth: Truth::RareMode(0.001), name: "rare mode 0.1 %", blocks: 3_600, excesses: 180,
        distance: share(0.51), gap: share(0.78), either: share(0.82) },
];

pub(super) fn run(scale: Scale) -> Vec<ResultRow> {
    let mut rows: Vec<ResultRow> = TRUTHS.iter().flat_map(|specified| power(specified, scale)).collect();
    rows.extend(buckets(scale));
    rows
}

fn power(specified: &Specified, scale: Scale) -> [ResultRow; 3] {
    let runs = scale.of(RUNS);
    let name = format!("{}, {} blocks: refused by ", specified.name, specified.blocks);
    let tests = [
        ("its distance (Anderson-Darling)", specified.distance),
        ("its gap", specified.gap),
        ("either", specified.either),
    ];
    counted(&name, runs, 2_507, tests, |noise| {
        let excesses = excesses(&mut specified.truth.maxima(specified.blocks, noise), specified.excesses);
        let Some((fitted, _)) = Gpd::fit(&excesses) else { return [false; 3] };
        let residuals: Vec<f64> = excesses.iter().map(|y| fitted.standard(*y)).collect();
        let distance = anderson_darling(&residuals).is_some_and(|distance| distance > MOST_DISTANCE);
        let most = widest_by_chance(residuals.len());
        let gap = widest_gap(&residuals).is_some_and(|gap| gap.spacing > most);
        [distance, gap, distance || gap]
    })
}

/// The highest `k`, ascending, as excesses over the next one.
fn excesses(maxima: &mut [f64], k: usize) -> Vec<f64> {
    maxima.sort_by(f64::total_cmp);
    let threshold = maxima[maxima.len() - k - 1];
    maxima[maxima.len() - k..].iter().map(|x| x - threshold).collect()
}

/// The value that represents a latency, us, known only by its bucket.
type Middle = fn(f64) -> f64;

/// Bias of the shape when latencies are known only by the middle of their bucket: 300 excesses with shape 0.1 and scale
/// 10 us over 50 us. (A run is fitted to exact maxima; this is the reason to refuse coarse ones.)
fn buckets(scale: Scale) -> Vec<ResultRow> {
    let runs = scale.of(RUNS);
    let parent = Gpd { shape: 0.1, scale: 10.0 };
    const FINE: Expected = Expected::AtMost(0.01);
    // The specification has one experiment of each: 0.094 exact, 0.087, 0.084, 0.094 and, with buckets of half of the
    // scale, 0.056. These are means of many.
    let middles: [(&str, Middle, Expected); 4] = [
        ("1/128", |x| middle(x, x.log2().floor().exp2() / 128.0), FINE),
        ("1/32", |x| middle(x, x.log2().floor().exp2() / 32.0), FINE),
        ("1 us, a tenth of the scale", |x| middle(x, 1.0), FINE),
        ("5 us, half of the scale", |x| middle(x, 5.0), Expected::Value(0.038, 0.5)),
    ];
    let mean = |middle: Middle| {
        let mut noise = Noise::new(2_508);
        let shape = |_| {
            let excess = |noise: &mut Noise| middle(50.0 + parent.one_in(1.0 / noise.uniform())) - 50.0;
            let excesses: Vec<f64> = (0..300).map(|_| excess(&mut noise)).collect();
            Gpd::fit(&excesses).map_or(f64::NAN, |(fitted, _)| fitted.shape)
        };
        (0..runs).map(shape).sum::<f64>() / f64::from(runs)
    };
    let exact = mean(|x| x);
    let row = |(name, middle, expected): (&str, Middle, Expected)| ResultRow {
        what: format!("buckets of {name}: the shape, 0.1 in truth, is lower by"),
        got: exact - mean(middle),
        runs,
        expected,
    };
    middles.into_iter().map(row).collect()
}

/// The middle of the bucket of this width.
fn middle(x: f64, width: f64) -> f64 {
    ((x / width).floor() + 0.5) * width
}
