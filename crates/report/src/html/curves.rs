//! Lines of a cell: histogram, percentiles with their band, maxima over time, exceedances.

use super::axes::Axes;
use super::path::Path;
use super::scale::BOTTOM;
use crate::bins::bins;
use punctual_analysis::Curves;
use punctual_model::Histogram;

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
