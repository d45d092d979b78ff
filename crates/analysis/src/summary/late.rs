//! Share of samples later than a limit: the test of a required quantile, also where the quantile is refused.
//!
//! "p99 <= limit" requires that at most 1 % is later than the limit. None of 299 independent samples later shows that
//! (95 %), where p99 itself needs 1 000. Samples are correlated: the smallest effective sample size at p99, p99.9 (p90
//! and p99 of fewer than 10 000 samples) and the limit counts, and a thread that exceeds the limit once does so for
//! about as long as the limit.

use crate::stats::quantile::upper_edge;
use crate::stats::special::share_interval;
use crate::stats::woodruff::{CONFIDENCE, Count, MIN_EXCEEDANCES, MIN_SLICES, Spread, exceedances};
use crate::summary::due_time::View;
use punctual_model::{Histogram, Level, Order, Period, Requirement, Span};

/// Largest advised multiple of the measured time: a million.
const MOST_TIMES: f64 = 1e6;

/// The distribution of a cell by wake-up and, if different, by due time: pooled, and by slice.
pub(crate) struct Views<'a> {
    pub(crate) by_wakeup: (&'a Histogram, &'a [Histogram]),
    pub(crate) by_due_time: Option<&'a (Histogram, Vec<Histogram>)>,
}

/// Share of samples later than the limit of a required quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Late {
    pub(crate) level: Level,
    pub(crate) view: View,
    /// Number of late samples, upper bound.
    pub(crate) late: u64,
    /// Number of all samples.
    pub(crate) of: u64,
    /// Effective sample size.
    pub(crate) n_eff: f64,
    /// The 95 % interval of the late share.
    pub(crate) share: (f64, f64),
    /// Whether each stretch of time alone has more late samples than the quantile allows, or all together have even
    /// without bursts.
    pub(crate) is_throughout: bool,
    /// Measuring time until the limit is shown to be met, as a multiple; `None` if too many are later, or no finite
    /// time is enough.
    pub(crate) times_as_long: Option<f64>,
}

/// Late share for each required quantile, by wake-up and by due time; with fewer than 10 slices only if that is enough
/// to show a violation.
pub(crate) fn of(require: &Requirement, views: &Views<'_>, period: Period) -> Vec<Late> {
    let both = if views.by_due_time.is_none() { View::Both } else { View::WakeUps };
    let all = |(level, limit): (Level, Span)| {
        let (pooled, slices) = views.by_wakeup;
        let by_wakeup = of_view(pooled, slices, (level, limit), period).map(|late| Late { view: both, ..late });
        let by_due_time = views.by_due_time.and_then(|(all, slices)| of_view(all, slices, (level, limit), period));
        [by_wakeup, by_due_time]
    };
    require.quantiles().flat_map(all).flatten().collect()
}

impl Late {
    /// Whether the limit is shown to be met: no sample is later, of enough of them. A few late samples usually come in
    /// one cluster, and too few stretches do not determine their share.
    pub(crate) fn is_kept(&self) -> bool {
        self.late == 0 && self.share.1 <= 1.0 - self.level.p()
    }

    /// Whether the limit is shown to be violated.
    pub(crate) fn is_violated(&self) -> bool {
        self.share.0 > 1.0 - self.level.p()
    }
}

/// Whether a requirement on the quantile `level` is shown to be met, and to be violated, where that quantile has no
/// interval; `None` with fewer than 10 slices, unless they show that it is violated.
pub fn share_later(
    pooled: &Histogram,
    slices: &[Histogram],
    level: Level,
    limit: Span,
    period: Period,
) -> Option<(bool, bool)> {
    of_view(pooled, slices, (level, limit), period).map(|late| (late.is_kept(), late.is_violated()))
}

fn of_view(pooled: &Histogram, slices: &[Histogram], (level, limit): (Level, Span), period: Period) -> Option<Late> {
    let allowed = 1.0 - level.p();
    let most = counts(slices, |_, upper| u64::try_from(upper).is_ok_and(|ns| ns > limit.ns()));
    let least = counts(slices, |lower, _| lower > limit.ns());
    let is_throughout = least.iter().all(|count| count.above as f64 > allowed * count.n as f64);
    if most.len() < MIN_SLICES {
        return of_few(pooled, &most, &least, level, is_throughout);
    }
    // The two highest that have enough: what is beyond the limit comes as they do, and not as usual latencies, which
    // differ a little from block to block.
    let effects = [0.999, 0.99, 0.9].into_iter().filter(|p| pooled.n as f64 * (1.0 - p) >= MIN_EXCEEDANCES).take(2);
    let effects = effects.filter_map(|p| {
        let counts: Vec<_> = exceedances(pooled, slices, p)?.into_iter().filter(|count| count.n > 0).collect();
        Some(Spread::of(&counts, CONFIDENCE)?.design_effect)
    });
    let usual_effect = effects.fold(1.0, f64::max);
    // Without a later sample, all that is shown of a smaller limit is shown of this one: of the largest latency, too.
    let largest = pooled.max_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
    let of_limit = |limit_ns: u64| (limit_ns.min(largest) as f64 / period.ns() as f64).max(1.0);
    let shown = |limit_ns: u64, least: &[Count]| {
        let usual = share(&without_bursts(least), of_limit(limit_ns)).map_or(0.0, |share| share.interval.0);
        let effect = usual_effect.max(of_limit(limit_ns));
        Some(Shown { usual, lowest: share(least, effect)?.interval.0.max(usual) })
    };
    let upper = share(&most, usual_effect.max(of_limit(limit.ns())))?;
    let mut own = shown(limit.ns(), &least)?;
    if own.lowest <= allowed {
        // What is later than a larger limit is later than this one. Its share may be shown better, where latencies near
        // this limit differ from block to block.
        let mut later: u64 = least.iter().map(|count| count.above).sum();
        let beyond = pooled.buckets().filter(|bucket| bucket.lower_ns > limit.ns()).map_while(|bucket| {
            later -= bucket.count.min(later);
            (later as f64 > allowed * pooled.n as f64).then_some(bucket.lower_ns)
        });
        let shown = beyond.filter_map(|ns| shown(ns, &counts(slices, |lower, _| lower > ns)));
        let violated = shown.filter(|shown| shown.lowest > allowed);
        own = violated.max_by(|a, b| a.usual.total_cmp(&b.usual)).unwrap_or(own);
    }
    let times_as_long = || {
        let mut times = 1.0;
        while share_interval(upper.seen * times, upper.of * times)?.1 > allowed {
            times *= 1.01;
            if times > MOST_TIMES {
                return None;
            }
        }
        Some(times)
    };
    Some(Late {
        level,
        view: View::DueTimes,
        late: most.iter().map(|count| count.above).sum(),
        of: pooled.n,
        n_eff: upper.of,
        share: (own.lowest, upper.interval.1),
        is_throughout: is_throughout || own.usual > allowed,
        times_as_long: if upper.seen < allowed * upper.of { times_as_long() } else { None },
    })
}

/// Lower bounds of a late share.
struct Shown {
    /// Without bursts.
    usual: f64,
    /// The larger one of that and of all samples.
    lowest: f64,
}

/// The samples of each slice, and those in buckets that are later by their lower and upper edges.
fn counts(slices: &[Histogram], is_later: impl Fn(u64, i64) -> bool) -> Vec<Count> {
    let later = |slice: &Histogram| {
        let later = slice.buckets().rev().take_while(|bucket| is_later(bucket.lower_ns, upper_edge(slice, *bucket)));
        later.map(|bucket| bucket.count).sum::<u64>()
    };
    slices.iter().filter(|slice| slice.n > 0).map(|slice| Count { n: slice.n, above: later(slice) }).collect()
}

/// The counts with no slice above the upper quartile of all: a lower bound of the late share that a burst does not
/// widen, so that more late samples never take a violation back.
fn without_bursts(counts: &[Count]) -> Vec<Count> {
    let mut by_share: Vec<&Count> = counts.iter().collect();
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    by_share.order_by(|a, b| product(a.above, b.n).cmp(&product(b.above, a.n)));
    let Some(quartile) = by_share.get(by_share.len() * 3 / 4) else { return Vec::new() };
    let most = |count: &Count| product(quartile.above, count.n) / u128::from(quartile.n);
    let capped = |count: &Count| count.above.min(u64::try_from(most(count)).unwrap_or(u64::MAX));
    counts.iter().map(|count| Count { above: capped(count), ..*count }).collect()
}

/// The late share where too few slices show how much they differ: each slice counts as one sample, because its share
/// varies no more than one sample does. `None` unless the limit is violated.
fn of_few(pooled: &Histogram, most: &[Count], least: &[Count], level: Level, is_throughout: bool) -> Option<Late> {
    let of = least.len() as f64;
    let seen = |counts: &[Count]| counts.iter().map(|count| count.above as f64 / count.n as f64).sum::<f64>();
    let share = (share_interval(seen(least), of)?.0, share_interval(seen(most), of)?.1);
    let late = most.iter().map(|count| count.above).sum();
    let view = View::DueTimes;
    let late = Late { level, view, late, of: pooled.n, n_eff: of, share, is_throughout, times_as_long: None };
    late.is_violated().then_some(late)
}

/// A share in units of independent samples.
struct Share {
    seen: f64,
    of: f64,
    interval: (f64, f64),
}

/// The share above, where samples count at most one in `effect`. Late samples in consecutive slices form one cluster,
/// and count once.
fn share(counts: &[Count], effect: f64) -> Option<Share> {
    let (n, above) = counts.iter().fold((0, 0), |(n, above), count| (n + count.n, above + count.above));
    if above == 0 {
        let of = n as f64 / effect;
        return Some(Share { seen: 0.0, of, interval: share_interval(0.0, of)? });
    }
    let spread = Spread::of(counts, CONFIDENCE)?;
    let is_later = |count: &Count| count.above > 0;
    let begin = counts.windows(2).filter(|pair| is_later(&pair[1]) && !is_later(&pair[0])).count();
    let stretches = (begin + usize::from(counts.first().is_some_and(is_later))) as f64;
    let p = above as f64 / n as f64;
    // Several stalls in one slice count as one, too, unless slices differ no more than by chance.
    let worth = above as f64 / effect.max(spread.design_effect);
    let is_everywhere = counts.iter().filter(|count| is_later(count)).count() * 2 > counts.len();
    let seen = if is_everywhere { worth } else { worth.min(stretches) };
    let of = seen / p;
    let (lower, upper) = share_interval(seen, of)?;
    let interval = (lower.min(p * (-spread.relative).exp()), upper.max((p * spread.relative.exp()).min(1.0)));
    Some(Share { seen, of, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Slices of 20 samples of 5 us; the given ones are later.
    fn of(slices: i64, level: Level, limit_ns: u64, late: impl Fn(i64, i64) -> Option<i64>) -> Late {
        let slice =
            |slice: i64| Histogram::of(&(0..20).map(|i| late(slice, i).unwrap_or(5_000 + i)).collect::<Vec<_>>());
        let slices: Vec<Histogram> = (0..slices).map(slice).collect();
        let mut require = Requirement::default();
        match level {
            Level::P999 => require.p999 = Some(Span(limit_ns)),
            _ => require.p99 = Some(Span(limit_ns)),
        }
        let all = crate::stats::histogram::merged(slices.iter());
        let views = Views { by_wakeup: (&all, &slices), by_due_time: None };
        let period = Period::try_from(Span(1_000_000)).unwrap();
        let found = super::of(&require, &views, period);
        assert_eq!(found.len(), 1);
        found[0]
    }

    #[test]
    fn none_later_shows_as_much_as_its_number() {
        // 299 independent samples exclude 1 %; at the limit of 1 ms, one is one.
        let short = of(14, Level::P99, 1_000_000, |_, _| None);
        assert_eq!((short.late, short.of), (0, 280));
        assert!(short.share.1 > 0.01 && (short.times_as_long.unwrap() - 299.0 / 280.0).abs() < 0.02, "{short:?}");
        let enough = of(15, Level::P99, 1_000_000, |_, _| None);
        assert!(enough.share.1 <= 0.01 && enough.times_as_long == Some(1.0), "{enough:?}");
        // What meets 1 ms meets 20 ms.
        let coarse = of(15, Level::P99, 20_000_000, |_, _| None);
        assert_eq!((coarse.n_eff, coarse.share), (enough.n_eff, enough.share));
        // A thread later than 19 ms is so for 19 ms: 19 due times count as one.
        let one = |slice, i| ((slice, i) == (7, 3)).then_some(19 * MS);
        let coarse = of(15, Level::P99, 20_000_000, one);
        assert!((coarse.n_eff - 300.0 / 19.0).abs() < 1e-9 && coarse.share.1 > 0.1, "{coarse:?}");
        assert!(of(285, Level::P99, 20_000_000, one).share.1 <= 0.01);
        assert!(of(149, Level::P999, 1_000_000, |_, _| None).share.1 > 0.001);
        assert!(of(150, Level::P999, 1_000_000, |_, _| None).share.1 <= 0.001);
    }

    #[test]
    fn one_long_stall_is_one_event() {
        // 6 of 20 consecutive slices: 30 % of the samples, and one cluster.
        let stall = of(20, Level::P99, 1_000_000, |slice, _| (7..13).contains(&slice).then_some(9 * MS));
        assert_eq!(stall.late, 120);
        assert!(stall.n_eff < 4.0 && stall.share.0 < 0.01 && stall.share.1 > 0.8, "{stall:?}");
        assert_eq!(stall.times_as_long, None, "more time does not show that it is kept");
        // Half of the time is beyond chance.
        let half = of(20, Level::P99, 1_000_000, |slice, _| (7..17).contains(&slice).then_some(9 * MS));
        assert!(half.share.0 > 0.01, "{half:?}");
        // In most slices: a state, not a cluster.
        let often = of(200, Level::P99, 1_000_000, |slice, i| (i == 3 && slice % 3 > 0).then_some(9 * MS));
        assert!(often.share.0 > 0.01 && often.share.1 < 0.06, "{often:?}");
    }

    #[test]
    fn what_shares_the_bucket_of_the_limit_counts_against_it() {
        let at = |limit_ns| of(100, Level::P99, limit_ns, |slice, i| (i == 0 && slice == 50).then_some(3 * MS + 1));
        // 3 ms and 3 ms + 1 ns are in one bucket: neither late nor on time is shown.
        let near = at(3_000_000);
        assert_eq!((near.late, near.share.0), (1, 0.0));
        assert_eq!(at(3_000_001).late, 0, "the largest of all is known exactly");
    }

    #[test]
    fn correlated_neighbors_count_less() {
        // p99 comes in bursts of whole slices, far below the limit.
        let bursts = of(400, Level::P99, 1_000_000, |slice, _| (slice % 40 == 7).then_some(200_000));
        assert!(bursts.n_eff < 1_000.0, "{bursts:?}");
        let even = of(400, Level::P99, 1_000_000, |slice, i| (slice % 2 == i % 2 && i < 2).then_some(200_000));
        assert!(even.n_eff > 7_000.0, "{even:?}");
    }
}
