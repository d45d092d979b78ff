//! Histograms on a linear axis, in classes of equal width, as `cyclictest -h` and its plots have them.

use punctual_analysis::{Curves, Origin, Row};
use punctual_model::{Bucket, Histogram};

/// Width of a class where the axis has room for it, ns.
const WIDTH_NS: u64 = 1_000;

/// Width of a class on an axis of at most [`SHORT_NS`], ns.
const FINE_NS: u64 = 100;

/// End of an axis with fine classes, ns.
const SHORT_NS: u64 = 20_000;

/// The share of samples that may be later than the end of the axis: one in so many.
const ONE_IN: u64 = 1_000;

/// The largest ratio of a drawn maximum to the latency that one in [`ONE_IN`] samples exceeds. A maximum farther away
/// would leave no room for the others; it is counted instead.
const FAR: u64 = 4;

/// Classes of equal width from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Classes {
    /// Width of a class, ns.
    pub(super) width_ns: u64,
    /// End of the axis, ns; a multiple of the width.
    pub(super) end_ns: u64,
}

/// The samples of a histogram in [`Classes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counted {
    /// Nonempty classes, ascending: number of the class from 0, samples.
    pub(super) classes: Vec<(u64, u64)>,
    /// Samples later than the end of the axis.
    pub(super) later: u64,
}

impl Classes {
    /// Returns at most `most` classes for these histograms; `None` without samples. The axis ends at the maximum, or
    /// earlier if the maximum is far from the others.
    ///
    /// Classes of less than 1 us are only for `is_fine` data: other tools have whole microseconds.
    pub(super) fn around<'a>(
        histograms: impl Iterator<Item = &'a Histogram>,
        most: u64,
        is_fine: bool,
    ) -> Option<Classes> {
        let highest_ns = histograms.filter_map(end_of).max()?;
        let least_ns = if is_fine && highest_ns <= SHORT_NS { FINE_NS } else { WIDTH_NS };
        let end_ns = nice(highest_ns.max(10 * least_ns), &[10, 12, 15, 20, 25, 30, 40, 50, 60, 80]);
        let width_ns = nice(end_ns.div_ceil(most).max(least_ns), &[10, 20, 50]);
        Some(Classes { width_ns, end_ns: end_ns.div_ceil(width_ns).saturating_mul(width_ns) })
    }

    /// Counts the samples of a histogram by class.
    ///
    /// A bucket of the record that is narrower than a class belongs to the class of its upper edge, so that whole
    /// microseconds of other tools keep their class. A wider one is divided evenly among its classes; the counts stay
    /// whole and add up.
    pub(super) fn count(self, histogram: &Histogram) -> Counted {
        let mut counted = Counted { classes: Vec::new(), later: 0 };
        for bucket in histogram.buckets() {
            let Bucket { lower_ns, count, .. } = bucket;
            let upper_ns = upper(&bucket, histogram);
            let width_ns = (upper_ns - lower_ns).saturating_add(1);
            let is_whole = width_ns <= self.width_ns;
            let (first, last) = if is_whole { (upper_ns, upper_ns) } else { (lower_ns, upper_ns) };
            let mut before = 0;
            let mut class = first / self.width_ns;
            while before < count && class < self.end_ns / self.width_ns {
                let below_ns = (class + 1).saturating_mul(self.width_ns).saturating_sub(lower_ns);
                let below = u128::from(count) * u128::from(below_ns) / u128::from(width_ns);
                let is_last = class >= last / self.width_ns;
                let below = if is_last { count } else { u64::try_from(below).unwrap_or(count) };
                counted.add(class, below - before);
                before = below;
                class += 1;
            }
            counted.later += count - before;
        }
        counted
    }
}

impl Counted {
    fn add(&mut self, class: u64, samples: u64) {
        match self.classes.last_mut() {
            _ if samples == 0 => {}
            Some((last, count)) if *last == class => *count += samples,
            _ => self.classes.push((class, samples)),
        }
    }

    /// Returns the number of samples in the largest class.
    pub(super) fn highest(&self) -> Option<u64> {
        self.classes.iter().map(|(_, count)| *count).max()
    }

    /// Returns the corners of a staircase: the class where it changes, and its new count; 0 after the last class of a
    /// row.
    pub(super) fn corners(&self) -> Vec<(u64, u64)> {
        let mut corners = Vec::new();
        let mut reached = None;
        for (class, count) in &self.classes {
            corners.extend(reached.filter(|end| end < class).map(|end| (end, 0)));
            corners.push((*class, *count));
            reached = Some(class + 1);
        }
        corners.extend(reached.map(|end| (end, 0)));
        corners
    }
}

/// Returns the upper edge of a bucket, which is at most the maximum, ns.
fn upper(bucket: &Bucket, histogram: &Histogram) -> u64 {
    let max_ns = histogram.max_ns.and_then(|max_ns| u64::try_from(max_ns).ok()).unwrap_or(0);
    bucket.upper_ns.min(max_ns.max(bucket.lower_ns))
}

/// Returns the end of an axis for one histogram, ns.
fn end_of(histogram: &Histogram) -> Option<u64> {
    let above_ns = |bucket: &Bucket| upper(bucket, histogram).saturating_add(1);
    let mut above = 0;
    let usual = histogram.buckets().rev().find(|bucket| {
        above += bucket.count;
        above > histogram.n / ONE_IN
    })?;
    let highest = histogram.buckets().next_back()?;
    let (usual_ns, highest_ns) = (above_ns(&usual), above_ns(&highest));
    Some(if highest_ns <= usual_ns.saturating_mul(FAR) { highest_ns } else { usual_ns })
}

/// Returns the least number of at least `value` that is one of these tenths (10 to 99, ascending) times a power of ten.
fn nice(value: u64, tenths: &[u64]) -> u64 {
    let value = u128::from(value);
    let mut power: u128 = 1;
    while power * 10 <= value {
        power *= 10;
    }
    let mut all = tenths.iter().chain(&[100]).map(|tenth| u128::from(*tenth) * power / 10);
    all.find(|nice| *nice >= value).and_then(|nice| u64::try_from(nice).ok()).unwrap_or(u64::MAX)
}

/// Whether latencies of these cells are finer than a microsecond; those of other tools may not be.
pub(super) fn are_fine<'a, 'b: 'a>(mut rows: impl Iterator<Item = &'a Row<'b>>) -> bool {
    rows.all(|row| matches!(row.origin, Origin::Own(..)))
}

/// Names the samples that a curve does not show: `3 later than 400 us`; `None` if it shows all.
pub(super) fn not_shown(later: u64, end: &str, curves: Option<&Curves>) -> Option<String> {
    let mut words = Vec::from_iter((later > 0).then(|| format!("{later} later than {end}")));
    if let Some(curves) = curves {
        words.extend((curves.beyond > 0).then(|| format!("{} beyond the histogram of its tool", curves.beyond)));
        words.extend(curves.is_cut.then(|| "later ones not counted by its tool".to_owned()));
    }
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(latencies_ns: &[i64], most: u64) -> Option<Classes> {
        Classes::around([Histogram::of(latencies_ns)].iter(), most, true)
    }

    #[test]
    fn an_axis_ends_at_a_round_latency_and_has_classes_of_a_microsecond() {
        assert_eq!(around(&[], 1_000), None);
        for (max_us, most, width_ns, end_ns) in [
            (0, 1_000, 100, 1_000),
            (1, 1_000, 100, 1_200),
            (19, 1_000, 100, 20_000),
            (20, 1_000, 1_000, 25_000),
            (23, 1_000, 1_000, 25_000),
            (399, 1_000, 1_000, 400_000),
            (400, 1_000, 1_000, 500_000),
            (999, 1_000, 1_000, 1_000_000),
            (1_100, 1_000, 2_000, 1_200_000),
            (395, 250, 2_000, 400_000),
            (995, 250, 5_000, 1_000_000),
            (30_000, 1_000, 50_000, 40_000_000),
        ] {
            let classes = around(&[max_us * 1_000], most).unwrap();
            assert_eq!(classes, Classes { width_ns, end_ns }, "{max_us}");
        }
        let imported = Classes::around([Histogram::of(&[3_000])].iter(), 1_000, false);
        assert_eq!(imported, Some(Classes { width_ns: 1_000, end_ns: 10_000 }), "whole microseconds");
        let widest = around(&[i64::MAX], 1_000).unwrap();
        assert!(widest.end_ns / widest.width_ns <= 1_001 && widest.width_ns > 1 << 50, "{widest:?}");
    }

    #[test]
    fn a_far_maximum_is_counted_and_not_drawn() {
        let mut histogram = Histogram::default();
        histogram.record_n(50_000, 100_000);
        histogram.record_n(7_000_000, 3);
        let classes = Classes::around([&histogram].into_iter(), 1_000, true).unwrap();
        assert_eq!(classes, Classes { width_ns: 1_000, end_ns: 60_000 });
        assert_eq!(classes.count(&histogram), Counted { classes: vec![(50, 100_000)], later: 3 });
        histogram.record_n(7_000_000, 200);
        let classes = Classes::around([&histogram].into_iter(), 1_000, true).unwrap();
        assert_eq!(classes.end_ns, 8_000_000, "more than one in a thousand");
        assert_eq!(classes.count(&histogram).later, 0);
    }

    #[test]
    fn whole_microseconds_keep_their_class() {
        for us in [1, 5, 7, 40, 99, 100, 127, 130] {
            let histogram = Histogram::of(&[us * 1_000]);
            let classes = Classes { width_ns: 1_000, end_ns: 400_000 };
            assert_eq!(classes.count(&histogram).classes, [(us.unsigned_abs(), 1)], "{us}");
        }
    }

    #[test]
    fn wide_buckets_are_divided_and_add_up() {
        // 100 000 samples of each 0.1 us from 300 to 310 us, in buckets of 2.048 us.
        let mut histogram = Histogram::default();
        (0..100).for_each(|tenth| histogram.record_n(300_000 + tenth * 100, 100_000));
        histogram.record(-5);
        let classes = Classes { width_ns: 1_000, end_ns: 400_000 };
        let counted = classes.count(&histogram);
        assert_eq!(counted.classes.iter().map(|(_, count)| count).sum::<u64>(), histogram.n);
        assert_eq!(counted.classes[0], (0, 1), "an early sample");
        let inner = &counted.classes[3..counted.classes.len() - 3];
        assert!(inner.len() >= 6, "{counted:?}");
        assert!(inner.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "no gap: {inner:?}");
        assert!(inner.iter().all(|(_, count)| (900_000..1_100_000).contains(count)), "no comb: {inner:?}");
        let short = Classes { width_ns: 1_000, end_ns: 301_000 }.count(&histogram);
        assert_eq!(short.classes.iter().map(|(_, count)| count).sum::<u64>() + short.later, histogram.n);
        let one = classes.count(&Histogram::of(&[350_000]));
        assert_eq!((one.classes.len(), one.classes[0].1, one.later), (1, 1, 0), "a single sample stays whole");
        let far = classes.count(&Histogram::of(&[i64::MAX]));
        assert_eq!(far, Counted { classes: Vec::new(), later: 1 });
    }

    #[test]
    fn a_staircase_returns_to_the_ground() {
        let counted = Counted { classes: vec![(3, 7), (4, 9), (8, 1)], later: 0 };
        assert_eq!(counted.corners(), [(3, 7), (4, 9), (5, 0), (8, 1), (9, 0)]);
        assert_eq!(Counted { classes: Vec::new(), later: 2 }.corners(), []);
    }

    #[test]
    fn what_a_curve_does_not_show_is_named() {
        assert_eq!(not_shown(0, "400 us", Some(&Curves::default())), None);
        assert_eq!(not_shown(3, "400 us", None).as_deref(), Some("3 later than 400 us"));
        let cut = Curves { beyond: 2, is_cut: true, ..Curves::default() };
        let words = "1 later than 1 ms, 2 beyond the histogram of its tool, later ones not counted by its tool";
        assert_eq!(not_shown(1, "1 ms", Some(&cut)).as_deref(), Some(words));
    }
}
