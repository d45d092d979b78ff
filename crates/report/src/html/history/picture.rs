//! Picture of a series: a heat map of the latencies of each run, the maxima, p99 with its interval, changes and marks.

use crate::history::{Buckets, day};
use crate::html::markup::{Markup, Text};
use crate::html::scale::{BOTTOM, LEFT, Log, RIGHT, TOP, time_label};
use punctual_analysis::history::{FIRST_TEST, Point, Response, SeriesHistory};
use std::fmt::Write;

/// Rows of the heat map.
const ROWS: usize = 60;

/// Colors of the heat map; each step is a factor of ten of the share of a run's wake-ups.
const SHADES: usize = 8;

/// The plane of a picture.
struct Plane<'a> {
    points: &'a [Point],
    axis: Log,
}

impl Plane<'_> {
    /// Left edge of a run; of the number of runs, the right edge of the plane.
    fn x(&self, run: usize) -> f64 {
        LEFT + (RIGHT - LEFT) * run as f64 / self.columns() as f64
    }

    /// Columns of the plane: a few runs do not fill it.
    fn columns(&self) -> usize {
        self.points.len().max(FIRST_TEST)
    }

    /// Left edge of the first run at or after this time.
    fn at(&self, unix_ms: u64) -> f64 {
        self.x(self.points.partition_point(|point| point.started_unix_ms < unix_ms))
    }
}

/// Writes the picture of the last runs, those with histograms; nothing without a latency.
pub(super) fn write(page: &mut Markup, history: &SeriesHistory, histograms: &[Buckets]) {
    let all = &history.series.points;
    let points = all.get(all.len().saturating_sub(histograms.len().max(1))..).unwrap_or_default();
    let maxima = points.iter().filter_map(|point| point.max_ns).filter(|ns| *ns > 0);
    let Some(high) = maxima.max() else { return };
    let lowest =
        histograms.iter().flatten().filter_map(|buckets| buckets.iter().map(|bucket| bucket.0).find(|ns| *ns > 0));
    let low = lowest.min().map_or(high as f64 / 100.0, |ns| ns as f64);
    let plane = Plane { points, axis: Log::around(low, high as f64) };
    page.add(format_args!(
        "<figure><figcaption>Latencies of each run</figcaption><svg viewBox=\"0 0 1760 1040\" role=img aria-label=\"History of {}\">\n",
        Text(&history.series.cell)
    ));
    axes(page, &plane);
    heat(page, &plane, histograms);
    marks(page, &plane, history);
    dots(page, &plane);
    levels(page, &plane, history);
    page.raw(
        "</svg><p class=note>Shade: share of the wake-ups of a run, a step is a factor of ten. Dots: maxima. Bars: p99, 95 % \
         intervals. Lines: medians between changes. Dashed: changes of the machine.</p></figure>\n",
    );
}

fn axes(page: &mut Markup, plane: &Plane<'_>) {
    for value in plane.axis.labelled() {
        let y = plane.axis.y(value);
        page.add(format_args!(
            "<path d=\"M{LEFT} {y:.0}H{RIGHT}\" style=\"stroke:var(--grid);stroke-width:2\"/>\
             <text x={:.0} y={:.0} text-anchor=end style=\"font-size:30px;fill:var(--quiet)\">{}</text>\n",
            LEFT - 12.0,
            y + 10.0,
            Text(time_label(value))
        ));
    }
    let last = plane.points.len() - 1;
    // Few runs have no room for two dates.
    let dates = match last < FIRST_TEST / 2 {
        true => vec![(last, "start", LEFT)],
        false => vec![(0, "start", LEFT), (last, "end", plane.x(last + 1))],
    };
    for (index, anchor, x) in dates {
        let date = plane.points.get(index).map(|point| day(point.started_unix_ms)).unwrap_or_default();
        page.add(format_args!(
            "<text x={x:.0} y={:.0} text-anchor={anchor} style=\"font-size:30px;fill:var(--quiet)\">{date}</text>\n",
            BOTTOM + 44.0
        ));
    }
}

/// Writes one path for each shade, in units of runs and rows; equal neighbors share a box.
fn heat(page: &mut Markup, plane: &Plane<'_>, histograms: &[Buckets]) {
    let columns: Vec<[Option<usize>; ROWS]> = histograms.iter().map(|buckets| shades(plane, buckets)).collect();
    page.add(format_args!(
        "<svg x={LEFT} y={TOP} width={} height={} viewBox=\"0 0 {} {ROWS}\" preserveAspectRatio=none>\n",
        RIGHT - LEFT,
        BOTTOM - TOP,
        plane.columns()
    ));
    let mut paths = vec![String::new(); SHADES];
    for row in 0..ROWS {
        let shade = |run: usize| columns.get(run).and_then(|column| *column.get(ROWS - 1 - row)?);
        let mut run = 0;
        while run < columns.len() {
            let length = (run..columns.len()).take_while(|other| shade(*other) == shade(run)).count();
            if let Some(path) = shade(run).and_then(|shade| paths.get_mut(shade)) {
                let _ = write!(path, "M{run} {row}h{length}v1h-{length}z");
            }
            run += length;
        }
    }
    for (shade, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        page.add(format_args!("<path d=\"{path}\" style=\"fill:var(--t{shade})\"/>\n"));
    }
    page.raw("</svg>\n");
}

/// The shade of each row of a run, from the lowest latency.
fn shades(plane: &Plane<'_>, buckets: &Buckets) -> [Option<usize>; ROWS] {
    let buckets = buckets.as_deref().unwrap_or_default();
    let all: u64 = buckets.iter().map(|bucket| bucket.1).fold(0, u64::saturating_add);
    let mut rows = [0u64; ROWS];
    for (ns, count) in buckets {
        let at = plane.axis.share(*ns as f64) * ROWS as f64;
        let row = (1..ROWS).find(|edge| at < *edge as f64).map_or(ROWS - 1, |edge| edge - 1);
        if let Some(row) = rows.get_mut(row) {
            *row = row.saturating_add(*count);
        }
    }
    rows.map(|count| {
        let decades = (all as f64 / count as f64).log10();
        (0..SHADES).rev().find(|shade| count > 0 && (*shade == 0 || decades < (SHADES - shade) as f64))
    })
}

/// Writes a dashed line for each time at which facts of the machine changed.
fn marks(page: &mut Markup, plane: &Plane<'_>, history: &SeriesHistory) {
    let first = plane.points.first().map_or(0, |point| point.started_unix_ms);
    let mut times: Vec<u64> = history.marks.iter().map(|mark| mark.unix_ms).filter(|time| *time > first).collect();
    times.dedup();
    for time in times {
        let words: Vec<_> =
            history.marks.iter().filter(|mark| mark.unix_ms == time).map(crate::history::mark).collect();
        page.add(format_args!(
            "<path d=\"M{:.1} {TOP}V{BOTTOM}\" style=\"stroke:var(--axis);stroke-width:3;stroke-dasharray:8 8\">\
             <title>{} {}</title></path>\n",
            plane.at(time),
            day(time),
            Text(words.join("; "))
        ));
    }
}

/// Writes the maximum of each run, and its p99 with its interval.
fn dots(page: &mut Markup, plane: &Plane<'_>) {
    let (mut maxima, mut bars) = (String::new(), String::new());
    for (run, point) in plane.points.iter().enumerate() {
        let x = (plane.x(run) + plane.x(run + 1)) / 2.0;
        if let Some(ns) = point.max_ns {
            let _ = write!(maxima, "M{x:.1} {:.1}h0", plane.axis.y(ns as f64));
        }
        if let Some((low, high)) = point.p99_interval_ns {
            let _ = write!(bars, "M{x:.1} {:.1}V{:.1}", plane.axis.y(low as f64), plane.axis.y(high as f64));
        }
    }
    for (path, color, width) in [(&bars, "s0", 3), (&maxima, "s4", 7)] {
        page.add(format_args!(
            "<path d=\"{path}\" style=\"stroke:var(--{color});stroke-width:{width};stroke-linecap:round;fill:none\"/>\n"
        ));
    }
}

/// Writes the median of each response between its changes, and the range of each change.
fn levels(page: &mut Markup, plane: &Plane<'_>, history: &SeriesHistory) {
    for (response, color) in [(Response::P99, "s0"), (Response::Max, "s1")] {
        let changes: Vec<_> = history.changes.iter().filter(|change| change.response == response).collect();
        for (index, change) in changes.iter().enumerate() {
            let from = index.checked_sub(1).and_then(|index| changes.get(index)).map_or(0, |one| one.since_unix_ms);
            let to = changes.get(index + 1).map_or(RIGHT, |next| plane.at(next.since_unix_ms));
            let (from, at) = (plane.at(from), plane.at(change.since_unix_ms));
            let (before, after) = (plane.axis.y(change.before_ns), plane.axis.y(change.after_ns));
            let (first, last) = (plane.at(change.range_unix_ms.0), plane.at(change.range_unix_ms.1));
            page.add(format_args!(
                "<path d=\"M{from:.1} {before:.1}H{at:.1}V{after:.1}H{to:.1}\" \
                 style=\"stroke:var(--{color});stroke-width:6;fill:none\"><title>{}</title></path>\
                 <path d=\"M{first:.1} {BOTTOM}H{:.1}\" style=\"stroke:var(--{color});stroke-width:12\"/>\n",
                Text(crate::history::sentence(change)),
                last.max(first + 4.0)
            ));
        }
    }
}
