//! The axes of a page: one pair for each kind of picture, the same for all cells, so that pictures can be compared.

use super::markup::{Markup, Text};
use super::scale::{BOTTOM, LEFT, Log, RIGHT, TOP, percentile_label, power_label, reciprocal_label, time_label};
use crate::bins::highest_bin;
use crate::words::Counted;
use punctual_analysis::Curves;
use punctual_model::{Requirement, Span};

/// The largest ratio of a limit to the largest latency for a limit that is drawn. A limit farther away would leave no
/// room for the lines.
const FAR: u64 = 20;

/// The most limits named above a picture.
const NAMED: usize = 3;

/// Width of a picture and of a character in it, in its units.
const WIDTH: f64 = 1760.0;
const CHARACTER: f64 = 31.0;

/// The text of a tick.
type Label = fn(f64) -> String;

/// The kinds of pictures with axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Samples by latency, in bins.
    Histogram,
    /// Latency by percentile, on an axis of nines.
    Nines,
    /// Largest latency so far by measured time.
    Staircase,
    /// Share of samples later than a latency.
    Ccdf,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Histogram, Kind::Nines, Kind::Staircase, Kind::Ccdf];

    /// The letter of the kind in names of the page.
    pub(super) fn letter(self) -> char {
        match self {
            Kind::Histogram => 'h',
            Kind::Nines => 'n',
            Kind::Staircase => 's',
            Kind::Ccdf => 'c',
        }
    }
}

/// The ranges that hold every cell that is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axes {
    /// The kind of sample.
    pub(super) counted: Counted,
    /// A remark on virtual time; empty without it.
    pub(super) virtually: &'static str,
    pub(super) latency: Log,
    /// Samples in a bin; from one half, so that a single one is visible.
    pub(super) count: Log,
    /// Reciprocal of the share above a percentile: 2, 10, 100 for 50 %, 90 %, 99 %.
    pub(super) nines: Log,
    /// The same for shares down to a single sample.
    pub(super) share: Log,
    /// Measured time, ns.
    pub(super) time: Log,
}

impl Axes {
    /// Returns the axes around all curves; `None` where there is nothing to draw.
    pub(super) fn around<'a>(
        curves: impl Iterator<Item = &'a Curves> + Clone,
        require: &Requirement,
        counted: Counted,
        virtually: &'static str,
    ) -> Option<Axes> {
        let histograms = curves.clone().map(|curves| &curves.histogram).filter(|histogram| histogram.n > 0);
        let lowest =
            histograms.clone().flat_map(|h| h.buckets().map(|bucket| bucket.lower_ns).find(|ns| *ns > 0)).min();
        let open = curves.clone().flat_map(|curves| &curves.new_maxima).map(|new| new.latency_ns.unsigned_abs());
        // Imported histograms have no course of time.
        let untimed = histograms.clone().filter_map(|h| h.max_ns).map(i64::unsigned_abs);
        let seen = open.chain(untimed).max()?;
        let limits = require.limits().map(|(_, limit)| limit.ns());
        let highest = limits.filter(|ns| *ns / FAR < seen).chain([seen]).max()?;
        let most =
            curves.clone().filter(|c| c.histogram.n > 0).map(|c| c.histogram.n.saturating_add(c.beyond)).max()?;
        let bin = curves.clone().filter_map(|curves| highest_bin(&curves.histogram)).max()?;
        let rarest = curves.clone().flat_map(|curves| &curves.rungs).map(|rung| rung.exceedance).reduce(f64::min);
        let times = || curves.clone().flat_map(|curves| &curves.new_maxima).map(|new| new.after.ns());
        let longest =
            curves.clone().map(|curves| curves.measured.ns()).filter(|ns| *ns > 0).max().unwrap_or(Span::SECOND.ns());
        Some(Axes {
            counted,
            virtually,
            latency: Log::around(lowest.unwrap_or(1) as f64, highest as f64),
            count: Log { from: 0.5_f64.log10(), ..Log::around(1.0, bin as f64) },
            nines: Log { from: 2.0_f64.log10(), ..Log::around(2.0, 1.0 / rarest.unwrap_or(0.1)) },
            share: Log::around(1.0, most as f64),
            time: Log::around(times().min().unwrap_or(longest) as f64, longest as f64),
        })
    }

    /// Returns the axis along the bottom and the one up the side.
    fn of(&self, kind: Kind) -> (Log, Log) {
        match kind {
            Kind::Histogram => (self.latency, self.count),
            Kind::Nines => (self.nines, self.latency),
            Kind::Staircase => (self.time, self.latency),
            Kind::Ccdf => (self.latency, self.share),
        }
    }

    /// Returns the height of a share of the samples on a picture of shares.
    pub(super) fn share_y(&self, share: f64) -> f64 {
        TOP + self.share.share(1.0 / share) * (BOTTOM - TOP)
    }

    /// Defines the axes of each kind once, for use by name, with the ranges from which the script reads values back.
    pub(super) fn define(&self, page: &mut Markup, require: &Requirement) {
        page.raw("<svg class=defs aria-hidden=true focusable=false width=0 height=0 data-axes='{");
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            let (x, y) = self.of(kind);
            let comma = if index > 0 { "," } else { "" };
            let letter = kind.letter();
            page.add(format_args!("{comma}\"{letter}\":[{:.4},{:.4},{:.4},{:.4}]", x.from, x.to, y.from, y.to));
        }
        page.add(format_args!("}}' data-plane='[{LEFT},{RIGHT},{TOP},{BOTTOM}]'><defs>"));
        for kind in Kind::ALL {
            self.draw(page, kind, require);
        }
        page.raw("</defs></svg>\n");
    }

    fn draw(&self, page: &mut Markup, kind: Kind, require: &Requirement) {
        let (horizontal, vertical) = self.of(kind);
        let from_top = kind == Kind::Ccdf;
        let place_y =
            |value: f64| if from_top { TOP + vertical.share(value) * (BOTTOM - TOP) } else { vertical.y(value) };
        page.add(format_args!("<g id=a{}>", kind.letter()));
        let (mut major, mut minor) = (String::new(), String::new());
        let grid = |value: f64, power: bool, horizontal_line: bool| {
            if horizontal_line {
                let to = if power { RIGHT } else { LEFT + 16.0 };
                format!("M{LEFT} {:.0}H{to}", place_y(value))
            } else {
                let to = if power { TOP } else { BOTTOM - 16.0 };
                format!("M{:.0} {BOTTOM}V{to}", horizontal.x(value))
            }
        };
        for (value, power) in horizontal.ticks() {
            if power { &mut major } else { &mut minor }.push_str(&grid(value, power, false));
        }
        for (value, power) in vertical.ticks() {
            if power { &mut major } else { &mut minor }.push_str(&grid(value, power, true));
        }
        page.add(format_args!(
            "<path class=grid d=\"{major}\"/><path class=tick d=\"{minor}M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\"/>"
        ));
        self.labels(page, kind, place_y);
        self.limits(page, kind, require);
        page.raw("</g>");
    }

    /// Writes the numbers at both axes, and their names.
    fn labels(&self, page: &mut Markup, kind: Kind, place_y: impl Fn(f64) -> f64) {
        let (horizontal, vertical) = self.of(kind);
        let latency = format!("{}{}", self.counted.latency(), self.virtually);
        let measured = format!("time measured{}", self.virtually);
        let per_bin = format!("{} per bin", self.counted.name());
        let share = format!("share of {}", self.counted.name());
        let (label_x, label_y, below, beside): (Label, Label, &str, &str) = match kind {
            Kind::Histogram => (time_label, power_label, &latency, &per_bin),
            Kind::Nines => (|inverse| percentile_label(1.0 / inverse), time_label, "percentile", &latency),
            Kind::Staircase => (time_label, time_label, &measured, &latency),
            Kind::Ccdf => (time_label, reciprocal_label, &latency, &share),
        };
        let mut bottom = horizontal.labelled();
        // The median is where an axis of percentiles begins.
        bottom.extend((kind == Kind::Nines && !bottom.contains(&2.0)).then_some(2.0));
        page.raw("<g class=tx>");
        for value in bottom {
            let label = label_x(value);
            // Within the picture, also at its right edge.
            let x = horizontal.x(value).min(WIDTH - CHARACTER * label.chars().count() as f64 / 2.0);
            page.add(format_args!("<text x={x:.0} y={:.0}>{}</text>", BOTTOM + 56.0, Text(label)));
        }
        page.add(format_args!(
            "<text class=name x={:.0} y={:.0}>{below}</text></g><g class=ty>",
            f64::midpoint(LEFT, RIGHT),
            BOTTOM + 120.0
        ));
        for value in vertical.labelled() {
            page.add(format_args!(
                "<text x={:.0} y={:.0}>{}</text>",
                LEFT - 16.0,
                place_y(value) + 16.0,
                Text(label_y(value))
            ));
        }
        page.add(format_args!("</g><text class=side x=0 y={:.0}>{beside}</text>", TOP - 44.0));
    }

    /// Draws the limits as lines, and names them above the plane, where no curve is.
    fn limits(&self, page: &mut Markup, kind: Kind, require: &Requirement) {
        let quantiles = require.quantiles().map(|(level, limit)| (level.to_string(), limit));
        let all = require.max.map(|max| ("max".to_owned(), max)).into_iter().chain(quantiles);
        let fits = |limit: Span| limit.ns() as f64 <= 10_f64.powf(self.latency.to) * 1.001;
        // The largest so far has only one limit.
        let drawn: Vec<_> =
            all.filter(|(name, limit)| fits(*limit) && (kind != Kind::Staircase || name == "max")).collect();
        for (_, limit) in &drawn {
            if matches!(kind, Kind::Histogram | Kind::Ccdf) {
                let x = self.latency.x(limit.ns() as f64);
                page.add(format_args!("<path class=limit d=\"M{x:.0} {BOTTOM}V{TOP}\"/>"));
            } else {
                let y = self.latency.y(limit.ns() as f64);
                page.add(format_args!("<path class=limit d=\"M{LEFT} {y:.0}H{RIGHT}\"/>"));
            }
        }
        let words = match &drawn[..] {
            [] => return,
            [(name, limit)] if name == "max" => format!("limit {}", time_label(limit.ns() as f64)),
            several => {
                let named = several.iter().take(NAMED);
                let named = named.map(|(name, limit)| format!("{name} {}", time_label(limit.ns() as f64)));
                format!("limit {}", named.collect::<Vec<_>>().join(", "))
            }
        };
        page.add(format_args!("<text class=limit x={RIGHT:.0} y={:.0}>{words}</text>", TOP - 44.0));
    }
}
