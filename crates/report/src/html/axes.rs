//! The axes of a page: one for each kind of picture, the same for all cells, so that pictures can be compared.

use super::markup::{Markup, Text};
use super::scale::{BOTTOM, LEFT, Log, RIGHT, TOP, count_label, nines_label, share_label, time_label};
use analysis::Curves;
use model::{Requirement, Span};

/// How many times the largest latency a limit may be to have its place on the axis.
const FAR: u64 = 20;

/// What is written at a tick.
type Label = fn(f64) -> String;

/// Every kind of picture with axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Wake-ups by latency, in steps.
    Histogram,
    /// Latency by nines.
    Nines,
    /// The largest latency so far, by measured time.
    Staircase,
    /// The share of wake-ups later than a latency.
    Ccdf,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Histogram, Kind::Nines, Kind::Staircase, Kind::Ccdf];

    /// One letter, for names in the page.
    pub(super) fn letter(self) -> char {
        match self {
            Kind::Histogram => 'h',
            Kind::Nines => 'n',
            Kind::Staircase => 's',
            Kind::Ccdf => 'c',
        }
    }
}

/// What a page counts: what other tools have measured need not be wake-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    WakeUps,
    Samples,
}

impl Counted {
    /// In the plural.
    pub(super) fn name(self) -> &'static str {
        match self {
            Counted::WakeUps => "wake-ups",
            Counted::Samples => "samples",
        }
    }

    /// What a histogram shows.
    pub(super) fn in_steps(self) -> &'static str {
        match self {
            Counted::WakeUps => "Wake-ups in steps of an eighth of an octave.",
            Counted::Samples => "Samples in steps of an eighth of an octave.",
        }
    }
}

/// The ranges that hold every cell that is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axes {
    /// What is counted.
    pub(super) counted: Counted,
    /// What is said of times that are none.
    pub(super) virtually: &'static str,
    pub(super) latency: Log,
    /// Wake-ups in a bin; from one half, so that a single one can be seen.
    pub(super) count: Log,
    /// From all to the fewest, as reciprocal: 1, 10, 100 for 0 %, 90 %, 99 %.
    pub(super) nines: Log,
    /// The same for shares down to a single wake-up.
    pub(super) share: Log,
    /// Measured time, ns.
    pub(super) time: Log,
}

impl Axes {
    /// `None` when there is nothing to draw.
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
        // A limit far beyond what was seen would leave no room for the lines.
        let limits = require.limits().map(|(_, limit)| limit.ns());
        let highest = limits.filter(|ns| *ns / FAR < seen).chain([seen]).max()?;
        let most =
            curves.clone().filter(|c| c.histogram.n > 0).map(|c| c.histogram.n.saturating_add(c.beyond)).max()?;
        let rarest = curves.clone().flat_map(|curves| &curves.rungs).map(|rung| rung.exceedance).reduce(f64::min);
        let times = || curves.clone().flat_map(|curves| &curves.new_maxima).map(|new| new.after.ns());
        let longest =
            curves.clone().map(|curves| curves.measured.ns()).filter(|ns| *ns > 0).max().unwrap_or(Span::SECOND.ns());
        Some(Axes {
            counted,
            virtually,
            latency: Log::around(lowest.unwrap_or(1) as f64, highest as f64),
            count: Log { from: 0.5_f64.log10(), ..Log::around(1.0, most as f64) },
            nines: Log::around(1.0, 1.0 / rarest.unwrap_or(0.1)),
            share: Log::around(1.0, most as f64),
            time: Log::around(times().min().unwrap_or(longest) as f64, longest as f64),
        })
    }

    /// What reads along the bottom, and up the side.
    fn of(&self, kind: Kind) -> (Log, Log) {
        match kind {
            Kind::Histogram => (self.latency, self.count),
            Kind::Nines => (self.nines, self.latency),
            Kind::Staircase => (self.time, self.latency),
            Kind::Ccdf => (self.latency, self.share),
        }
    }

    /// Where a share of the wake-ups is on a picture whose side reads shares.
    pub(super) fn share_y(&self, share: f64) -> f64 {
        TOP + self.share.share(1.0 / share) * (BOTTOM - TOP)
    }

    /// Draws each kind's axes once, to be used by name, with what the script needs to read values back from lines.
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
        let share = format!("share of {} no later", self.counted.name());
        let [latency, measured, largest] =
            ["latency", "time measured", "largest so far"].map(|name| format!("{name}{}", self.virtually));
        let (label_x, label_y, below, beside): (Label, Label, &str, &str) = match kind {
            Kind::Histogram => (time_label, count_label, &latency, self.counted.name()),
            Kind::Nines => (|inverse| nines_label(1.0 / inverse), time_label, &share, &latency),
            Kind::Staircase => (time_label, time_label, &measured, &largest),
            Kind::Ccdf => (time_label, share_label, &latency, "share later"),
        };
        page.raw("<g class=tx>");
        for value in horizontal.labelled() {
            page.add(format_args!("<text x={:.0} y=968>{}</text>", horizontal.x(value), Text(label_x(value))));
        }
        page.add(format_args!(
            "<text class=name x={:.0} y=1032>{below}</text></g><g class=ty>",
            f64::midpoint(LEFT, RIGHT)
        ));
        for value in vertical.labelled() {
            page.add(format_args!(
                "<text x={:.0} y={:.0}>{}</text>",
                LEFT - 16.0,
                place_y(value) + 16.0,
                Text(label_y(value))
            ));
        }
        page.add(format_args!("</g><text class=side x={:.0} y=16>{beside}</text>", LEFT));
        self.limits(page, kind, require);
        page.raw("</g>");
    }

    /// What has to be kept, as a line of its own with its name.
    fn limits(&self, page: &mut Markup, kind: Kind, require: &Requirement) {
        let quantiles = require.quantiles().map(|(level, limit)| (level.to_string(), limit));
        for (name, limit) in require.max.map(|max| ("max".to_owned(), max)).into_iter().chain(quantiles) {
            if limit.ns() as f64 > 10_f64.powf(self.latency.to) * 1.001 {
                continue;
            }
            // The largest so far has only one limit.
            if kind == Kind::Staircase && name != "max" {
                continue;
            }
            let words = format!("{name} {}", time_label(limit.ns() as f64));
            if matches!(kind, Kind::Histogram | Kind::Ccdf) {
                let x = self.latency.x(limit.ns() as f64);
                page.add(format_args!("<path class=limit d=\"M{x:.0} {BOTTOM}V{TOP}\"/>"));
                page.add(format_args!("<text class=limit x={:.0} y={:.0}>{words}</text>", x - 12.0, TOP + 44.0));
            } else {
                let y = self.latency.y(limit.ns() as f64);
                page.add(format_args!("<path class=limit d=\"M{LEFT} {y:.0}H{RIGHT}\"/>"));
                page.add(format_args!("<text class=limit x={RIGHT} y={:.0}>{words}</text>", y - 12.0));
            }
        }
    }
}
