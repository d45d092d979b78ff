//! Lines of a cell: histogram, percentiles with their band, maxima over time, exceedances.

use super::axes::Axes;
use super::path::Path;
use super::scale::BOTTOM;
use analysis::Curves;
use model::Histogram;

/// Bins of a drawn histogram in each octave. The record has 128; 8 show every mode, and a late single sample is two pixels
/// wide.
const STEPS: u64 = 8;

/// Returns the bins of a drawn histogram that hold samples: from, to (excluded), count. Edges are those of the record's
/// buckets, so no bucket is divided.
fn bins(histogram: &Histogram) -> Vec<(u64, u64, u64)> {
    let mut bins: Vec<(u64, u64, u64)> = Vec::new();
    for bucket in histogram.buckets() {
        let (from, to) = bin(bucket.lower_ns);
        match bins.last_mut().filter(|last| last.0 == from) {
            Some(last) => last.2 += bucket.count,
            None => bins.push((from, to, bucket.count)),
        }
    }
    bins
}

/// Returns the number of samples in the largest bin.
pub(super) fn highest_bin(histogram: &Histogram) -> Option<u64> {
    bins(histogram).into_iter().map(|(.., n)| n).max()
}

/// Returns the bin of a latency.
fn bin(ns: u64) -> (u64, u64) {
    let octave = 1_u64 << (u64::BITS - 1 - ns.max(1).leading_zeros());
    let width = (octave / STEPS).max(1);
    let from = ns / width * width;
    (from, from.saturating_add(width))
}

/// Returns the line of a histogram, which goes down to the ground where there is no sample.
pub(super) fn histogram(histogram: &Histogram, axes: &Axes) -> String {
    let mut path = Path::default();
    let mut reached = None;
    for (from, to, n) in bins(histogram) {
        let (left, right) = (axes.latency.x(from as f64), axes.latency.x(to as f64));
        match reached {
            None => path.move_to(left, BOTTOM),
            Some(before) if before < from => {
                path.step_to(left, BOTTOM);
            }
            Some(_) => {}
        }
        path.step_to(right, axes.count.y(n as f64));
        reached = Some(to);
    }
    if let Some(to) = reached {
        path.line_to(axes.latency.x(to as f64), BOTTOM);
    }
    path.into_data()
}

/// Returns the line of percentiles and the outline of its band: the upper edge from left to right, the lower one back.
pub(super) fn nines(curves: &Curves, axes: &Axes) -> (String, String) {
    let (mut line, mut band) = (Path::default(), Path::default());
    for rung in &curves.rungs {
        line.line_to(axes.nines.x(1.0 / rung.exceedance), axes.latency.y(rung.value_ns as f64));
    }
    let limits: Vec<_> = curves.rungs.iter().filter_map(|rung| Some((rung.exceedance, rung.interval_ns?))).collect();
    for (exceedance, (_, upper)) in &limits {
        band.line_to(axes.nines.x(1.0 / exceedance), axes.latency.y(*upper as f64));
    }
    for (exceedance, (lower, _)) in limits.iter().rev() {
        band.line_to(axes.nines.x(1.0 / exceedance), axes.latency.y(*lower as f64));
    }
    if !band.is_empty() {
        band.close();
    }
    (line.into_data(), band.into_data())
}

/// Returns the end of the line of percentiles, beyond which too few samples lie above.
pub(super) fn cut_off(curves: &Curves, axes: &Axes) -> Option<(f64, f64)> {
    let last = curves.rungs.last()?;
    Some((axes.nines.x(1.0 / last.exceedance), axes.latency.y(last.value_ns as f64)))
}

/// Returns the line of the largest latency so far.
pub(super) fn staircase(curves: &Curves, axes: &Axes) -> String {
    let mut path = Path::default();
    for new in &curves.new_maxima {
        let (x, y) = (axes.time.x(new.after.ns() as f64), axes.latency.y(new.latency_ns as f64));
        if path.is_empty() {
            path.move_to(x, y);
        } else {
            // To the right first: until now the previous maximum was the largest.
            path.line_to_level(x);
            path.line_to(x, y);
        }
    }
    if !path.is_empty() {
        path.line_to_level(axes.time.x(curves.measured.ns() as f64));
    }
    path.into_data()
}

/// Returns the line of the share of samples later than each latency; empty where it is not known.
pub(super) fn exceedances(curves: &Curves, axes: &Axes) -> String {
    let mut path = Path::default();
    if curves.is_cut {
        return path.into_data();
    }
    let all = curves.histogram.n.saturating_add(curves.beyond);
    let mut later = all;
    for (from, to, n) in bins(&curves.histogram) {
        if path.is_empty() {
            path.move_to(axes.latency.x(from as f64), axes.share_y(1.0));
        }
        path.line_to_level(axes.latency.x(from as f64));
        later -= n;
        let right = axes.latency.x(to as f64);
        // The share above the last sample is 0: its step goes down to the ground.
        let share = if later > 0 { axes.share_y(later as f64 / all as f64) } else { BOTTOM };
        path.line_to(right, share);
    }
    path.into_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_the_edges_of_buckets() {
        for (ns, bin_of) in
            [(0, (0, 1)), (1, (1, 2)), (15, (15, 16)), (16, (16, 18)), (31, (30, 32)), (1_000, (960, 1_024))]
        {
            assert_eq!(bin(ns), bin_of, "{ns}");
        }
        let histogram = Histogram::of(&[-5, 0, 1_000, 1_001, 1_030]);
        assert_eq!(bins(&histogram), [(0, 1, 2), (960, 1_024, 2), (1_024, 1_152, 1)]);
        let top = bins(&Histogram::of(&[i64::MAX]));
        assert_eq!((top.len(), top[0].2), (1, 1));
    }
}
