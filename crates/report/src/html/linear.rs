//! Histograms with latency on a linear axis, which need no script.
//!
//! Each picture has its own axes, because one end for all cells would hide most of them.

use super::axes::Axes;
use super::markup::{Markup, Text};
use super::path::Path;
use super::scale::{BOTTOM, LEFT, Log, RIGHT, TOP, power_label, time_label};
use crate::linear::{Classes, not_shown};
use punctual_analysis::Curves;
use punctual_model::Histogram;

/// The most classes in a picture: each is at least two pixels wide.
const CLASSES: u64 = 150;

/// The most labels on the axis of latency.
const LABELS: u64 = 6;

/// A line of a picture.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Number of its color.
    pub(super) color: usize,
    /// Its name in the note.
    pub(super) name: String,
    pub(super) histogram: &'a Histogram,
    /// The curves of the cell, if the line has all its samples.
    pub(super) whole: Option<&'a Curves>,
}

/// Draws lines as one picture; nothing without samples. `is_fine`: see [`Classes::around`].
pub(super) fn write(page: &mut Markup, title: &str, lines: &[Line<'_>], is_fine: bool, axes: &Axes) {
    let Some(classes) = Classes::around(lines.iter().map(|line| line.histogram), CLASSES, is_fine) else { return };
    let counted: Vec<_> = lines.iter().map(|line| (line, classes.count(line.histogram))).collect();
    let highest = counted.iter().filter_map(|(_, counted)| counted.highest()).max().unwrap_or(1);
    let height = Log { from: 0.5_f64.log10(), ..Log::around(1.0, highest as f64) };
    let x = |ns: u64| LEFT + ns as f64 / classes.end_ns as f64 * (RIGHT - LEFT);
    let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
    page.add(format_args!(
        "<figure><figcaption>{}</figcaption><svg class=plot data-kind=l data-axes=\"[0,{},{:.4},{:.4}]\" viewBox=\"0 0 1760 1048\" \
         role=img tabindex=0 aria-label=\"{}: {}\">",
        Text(title),
        classes.end_ns,
        height.from,
        height.to,
        Text(title),
        Text(names.join(", "))
    ));
    draw_axes(page, classes, height, axes, x);
    let mut notes = Vec::new();
    let end = time_label(classes.end_ns as f64);
    for (line, counted) in &counted {
        let mut path = Path::default();
        for (class, count) in counted.corners() {
            let (left, level) = (x(class * classes.width_ns), height.y(count as f64));
            if path.is_empty() {
                path.move_to(left, BOTTOM);
            }
            path.line_to_level(left);
            path.line_to(left, level);
        }
        if !path.is_empty() {
            page.add(format_args!("<path class=s{} d={} />", line.color, path.into_data()));
        }
        let missing = not_shown(counted.later, &end, line.whole);
        notes.extend(missing.map(|words| format!("{}: {words}.", line.name)));
    }
    page.add(format_args!(
        "</svg><p class=note>Classes of {}; counts on a logarithmic axis. {}</p></figure>\n",
        time_label(classes.width_ns as f64),
        Text(notes.join(" "))
    ));
}

fn draw_axes(page: &mut Markup, classes: Classes, height: Log, axes: &Axes, x: impl Fn(u64) -> f64) {
    let step_ns = step(classes.end_ns);
    let marks = || (0..=classes.end_ns / step_ns).map(|index| index * step_ns);
    let vertical: String = marks().map(|ns| format!("M{:.0} {BOTTOM}V{TOP}", x(ns))).collect();
    let levels = height.ticks().into_iter().filter(|(_, is_power)| *is_power);
    let horizontal: String = levels.map(|(count, _)| format!("M{LEFT} {:.0}H{RIGHT}", height.y(count))).collect();
    page.add(format_args!(
        "<path class=grid d=\"{vertical}{horizontal}\"/><path class=tick d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\"/><g class=tx>"
    ));
    for ns in marks() {
        let label = if ns == 0 { "0".to_owned() } else { time_label(ns as f64) };
        page.add(format_args!("<text x={:.0} y={:.0}>{label}</text>", x(ns), BOTTOM + 56.0));
    }
    page.add(format_args!(
        "<text class=name x={:.0} y={:.0}>{}{}</text></g><g class=ty>",
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 120.0,
        axes.counted.latency(),
        axes.virtually
    ));
    for count in height.labelled() {
        page.add(format_args!(
            "<text x={:.0} y={:.0}>{}</text>",
            LEFT - 16.0,
            height.y(count) + 16.0,
            power_label(count)
        ));
    }
    page.add(format_args!("</g><text class=side x=0 y={:.0}>{} per class</text>", TOP - 44.0, axes.counted.name()));
}

/// Returns the distance of the labels on an axis that ends here, ns: 1, 2 or 5 times a power of ten.
fn step(end_ns: u64) -> u64 {
    let mut power: u64 = 1;
    loop {
        let steps = [1, 2, 5].map(|digit: u64| power.saturating_mul(digit));
        match steps.into_iter().find(|step| end_ns / step <= LABELS) {
            Some(step) => return step,
            None => power = power.saturating_mul(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_at_round_latencies() {
        for (end_ns, step_ns) in
            [(1_000, 200), (1_200, 200), (25_000, 5_000), (400_000, 100_000), (1_000_000, 200_000), (u64::MAX, 5 << 60)]
        {
            let step = step(end_ns);
            assert!(step == step_ns || end_ns == u64::MAX && end_ns / step <= LABELS, "{end_ns}: {step}");
        }
    }
}
