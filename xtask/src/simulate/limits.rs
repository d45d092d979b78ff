//! S1: limits on p99 that are far away, just violated or just met.

use super::noise::Noise;
use super::{Expected, ResultRow, Scale, counted, merged};
use punctual_analysis::{Level, share_later};
use punctual_model::{Histogram, Period, Span};

const RUNS: u32 = 2_000;

/// Samples of a run: 8 s at 1 ms, in slices of 20.
const SAMPLES: usize = 8_000;
const SLICE: usize = 20;

/// The limit. Latencies matter only by being above or below it.
const LIMIT_NS: i64 = 2_000_000;

/// Grouping of samples later than the limit: single ones, or bursts of this length.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Average number of samples in a late burst.
    together: f64,
    /// The promise for limits that are just violated; bursts so long that a run holds fewer than 100 may be missed.
    kept: Expected,
}

const KINDS: [Kind; 4] = [
    Kind { name: "alone", together: 1.0, kept: Expected::AtMost(0.05) },
    Kind { name: "5 together", together: 5.0, kept: Expected::AtMost(0.05) },
    Kind { name: "20 together", together: 20.0, kept: Expected::AtMost(0.05) },
    Kind { name: "200 together", together: 200.0, kept: Expected::Unknown },
];

pub(super) fn run(scale: Scale) -> Vec<ResultRow> {
    let runs = scale.of(RUNS);
    let mut rows = Vec::new();
    for Kind { name, together, kept } in KINDS {
        for (share, what) in [
            (0.0101, "1.01 % are later"),
            (0.02, "2 % are later"),
            (0.0099, "0.99 % are later"),
            (0.0, "none is later"),
        ] {
            let pass_expected = match share {
                0.0 => Expected::AtLeast(0.99),
                _ if share > 0.01 => kept,
                _ => Expected::Unknown,
            };
            let fail_expected = if share < 0.01 { Expected::AtMost(0.05) } else { Expected::Unknown };
            let said = [("said to be kept", pass_expected), ("said to be violated", fail_expected)];
            rows.extend(counted(&format!("{name}, {what}: "), runs, 7_001, said, |noise| {
                judged(share, together, noise)
            }));
        }
    }
    rows
}

/// Whether p99 is reported to meet the limit, and to violate it.
fn judged(share: f64, together: f64, noise: &mut Noise) -> [bool; 2] {
    // A late burst ends with probability 1 / together, and begins so that `share` of all samples are in one.
    let ends = 1.0 / together;
    let begins = share * ends / (1.0 - share);
    let mut is_late = noise.chance(share);
    let mut latency = || {
        let late = if is_late { LIMIT_NS + 500_000 } else { 20_000 };
        is_late = if is_late { !noise.chance(ends) } else { noise.chance(begins) };
        let tail = noise.exponential(6_000.0);
        #[expect(clippy::cast_possible_truncation, reason = "some microseconds")]
        let ns = late + tail as i64;
        ns
    };
    let slices: Vec<Histogram> =
        (0..SAMPLES / SLICE).map(|_| Histogram::of(&(0..SLICE).map(|_| latency()).collect::<Vec<_>>())).collect();
    let period = Period::try_from(Span(1_000_000)).unwrap_or_else(|_| unreachable!("1 ms is a period"));
    let limit = Span(LIMIT_NS.unsigned_abs());
    share_later(&merged(&slices), &slices, Level::P99, limit, period).unwrap_or_default().into()
}
