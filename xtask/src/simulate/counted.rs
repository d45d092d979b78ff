//! Counted numbers beside the specified ones.

use super::noise::Noise;
use punctual_model::Histogram;

/// The specified value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    /// A share, counted in this number of runs.
    Share(f64, u32),
    /// At most this share.
    AtMost(f64),
    /// At least this share.
    AtLeast(f64),
    /// A value, to within this share of it.
    Value(f64, f64),
    /// No specified value: the row is for comparison only.
    Unknown,
}

/// One counted number.
#[derive(Debug, Clone)]
pub(super) struct ResultRow {
    pub(super) what: String,
    pub(super) got: f64,
    /// Number of runs that it was counted in.
    pub(super) runs: u32,
    pub(super) expected: Expected,
}

/// Standard errors within which a share agrees with the specification. With a hundred rows, about one table in three
/// would have a row beyond 3 by chance; seeds are fixed, so such a row is always or never present.
const WITHIN: f64 = 3.5;

impl ResultRow {
    /// A row with a share of `runs`.
    pub(super) fn share(what: impl Into<String>, count: u32, runs: u32, expected: Expected) -> ResultRow {
        ResultRow { what: what.into(), got: f64::from(count) / f64::from(runs), runs, expected }
    }

    /// Whether it agrees with the specification, within the standard errors.
    pub(super) fn is_as_expected(&self) -> bool {
        let error = |p: f64, runs: f64| (p.clamp(0.01, 0.99) * (1.0 - p.clamp(0.01, 0.99)) / runs).sqrt();
        let runs = f64::from(self.runs);
        match self.expected {
            Expected::Share(p, of) => {
                let both = error(p, runs).hypot(error(p, f64::from(of)));
                (self.got - p).abs() <= WITHIN * both
            }
            Expected::AtMost(p) => self.got <= p + WITHIN * error(p, runs),
            Expected::AtLeast(p) => self.got >= p - WITHIN * error(p, runs),
            Expected::Value(value, share) => (self.got / value - 1.0).abs() <= share,
            Expected::Unknown => true,
        }
    }

    pub(super) fn print(&self) {
        let expected = match self.expected {
            Expected::Share(p, _) => format!("{p:.3}"),
            Expected::AtMost(p) => format!("<= {p:.3}"),
            Expected::AtLeast(p) => format!(">= {p:.3}"),
            Expected::Value(value, share) => format!("{value:.2} +-{:.0} %", share * 100.0),
            Expected::Unknown => String::new(),
        };
        let verdict = if self.is_as_expected() { "" } else { "DIFFERS" };
        let ResultRow { what, got, runs, .. } = self;
        println!("{what:<66}{got:>9.3}{expected:>14}{runs:>7}  {verdict}");
    }
}

/// Runs `once` so often, on noise of this seed. Returns a row for each thing that it finds or not; `name` comes before
/// what it is.
pub(super) fn counted<const N: usize>(
    name: &str,
    runs: u32,
    seed: u64,
    rows: [(&str, Expected); N],
    once: impl FnMut(&mut Noise) -> [bool; N],
) -> [ResultRow; N] {
    counted_on(&mut Noise::new(seed), name, runs, rows, once)
}

/// The same on noise that goes on.
pub(super) fn counted_on<const N: usize>(
    noise: &mut Noise,
    name: &str,
    runs: u32,
    rows: [(&str, Expected); N],
    mut once: impl FnMut(&mut Noise) -> [bool; N],
) -> [ResultRow; N] {
    let mut counts = [0; N];
    for _ in 0..runs {
        counts.iter_mut().zip(once(noise)).for_each(|(count, is_found)| *count += u32::from(is_found));
    }
    std::array::from_fn(|n| ResultRow::share(format!("{name}{}", rows[n].0), counts[n], runs, rows[n].1))
}

/// Whether an interval holds the truth.
pub(super) fn holds((low, high): (f64, f64), truth: f64) -> bool {
    low <= truth && truth <= high
}

/// Histograms as one.
pub(super) fn merged<'a>(slices: impl IntoIterator<Item = &'a Histogram>) -> Histogram {
    slices.into_iter().fold(Histogram::default(), |mut all, slice| {
        all.merge(slice);
        all
    })
}

/// Share of the runs: all, or one in so many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale(pub(super) u32);

impl Scale {
    pub(super) fn of(self, runs: u32) -> u32 {
        (runs / self.0).max(10)
    }
}
