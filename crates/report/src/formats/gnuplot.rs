//! Latency histograms and shares of later samples as gnuplot scripts with their data, one a plot, on log axes.
//!
//! One curve per cell; a single cell has one per CPU.

use super::Page;
use crate::bins::{bins, not_shown};
use crate::cells::{Member, letter, members};
use crate::words::Counted;
use crate::{Results, rfc3339};
use punctual_model::{Histogram, plain};
use std::fmt::Write;

/// The count at the foot of a histogram, below a single sample, because a logarithmic axis has no 0.
const FOOT: &str = "0.5";

/// Kind of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GnuplotKind {
    /// Samples in bins of latency.
    Histogram,
    /// Share of samples later than a latency.
    Ccdf,
}

impl GnuplotKind {
    /// All of them, with the word in the name of a file.
    pub const ALL: [(GnuplotKind, &str); 2] = [(GnuplotKind::Histogram, "histogram"), (GnuplotKind::Ccdf, "ccdf")];
}

/// A curve of the plot.
struct Curve<'a> {
    title: String,
    histogram: &'a Histogram,
    member: &'a Member<'a>,
}

/// Returns the script for the cells of these runs; `None` if no cell has a histogram.
pub fn gnuplot(runs: &[Results<'_>], kind: GnuplotKind) -> Option<String> {
    let members = members(runs);
    let curves = curves(&members);
    let mut script = String::new();
    comments(&mut script, runs, kind);
    let mut plots = Vec::new();
    for (index, Curve { title, histogram, member }) in curves.iter().enumerate() {
        // Samples beyond a tool's histogram belong to no CPU.
        let whole = member.curves.as_ref().filter(|curves| std::ptr::eq(&raw const curves.histogram, *histogram));
        let points = match kind {
            GnuplotKind::Histogram => counts(histogram),
            // The share is not known.
            GnuplotKind::Ccdf if whole.is_some_and(|curves| curves.is_cut) => continue,
            GnuplotKind::Ccdf => shares(histogram, whole.map_or(0, |curves| curves.beyond)),
        };
        let not_shown = whole.and_then(not_shown).map(|words| format!(": {words}")).unwrap_or_default();
        let title = quoted(&format!("{title}{not_shown}"));
        let _ = writeln!(script, "$curve{index} << EOD\n{points}EOD");
        plots.push(format!("$curve{index} using 1:2 with steps lw 2 title {title} noenhanced"));
    }
    if plots.is_empty() {
        return None;
    }
    let counted = Counted::of(&members);
    let are_virtual = members.iter().filter(|member| member.row.is_virtual()).count();
    let unit = match are_virtual {
        0 => "us",
        n if n == members.len() => "virtual us: 1000 instructions",
        _ => "us; of lab kernels in virtual time 1000 instructions",
    };
    let titles: Vec<String> = runs.iter().map(|run| Page::of(run, false).title.to_owned()).collect();
    let (side, range) = match kind {
        GnuplotKind::Histogram => (format!("{} per bin", counted.name()), format!("[{FOOT}:*]")),
        GnuplotKind::Ccdf => (format!("share of {} later", counted.name()), "[*:1]".to_owned()),
    };
    let _ = write!(
        script,
        "set encoding utf8\n\
         set title {} noenhanced\n\
         set xlabel {} noenhanced\n\
         set ylabel {} noenhanced\n\
         set yrange {range}\n\
         set logscale xy\n\
         set rmargin 6\n\
         set format xy '10^{{%L}}'\n\
         set grid\n\
         set key top right noenhanced\n\
         plot {}\n",
        quoted(&titles.join("; ")),
        quoted(&format!("{} ({unit})", counted.latency())),
        quoted(&side),
        plots.join(", \\\n     ")
    );
    Some(script)
}

/// A line for each edge of a bin: its latency, and the samples in the bin that begins there.
fn counts(histogram: &Histogram) -> String {
    let mut lines = String::new();
    let mut reached = None;
    for (from, to, n) in bins(histogram) {
        if reached.is_none_or(|reached| reached < from) {
            // Empty bins before it.
            let _ = reached.map(|reached| writeln!(lines, "{} {FOOT}", us(reached)));
            let _ = writeln!(lines, "{} {FOOT}", us(from));
        }
        let _ = writeln!(lines, "{} {n}", us(from));
        reached = Some(to);
    }
    let _ = reached.map(|reached| writeln!(lines, "{} {FOOT}", us(reached)));
    lines
}

/// A line for each edge of a bin: its latency, and the share of samples that are later.
fn shares(histogram: &Histogram, beyond: u64) -> String {
    let all = histogram.n.saturating_add(beyond);
    let mut later = all;
    let mut lines = String::new();
    for (from, to, n) in bins(histogram) {
        if later == all {
            let _ = writeln!(lines, "{} 1", us(from));
        }
        let before = later;
        later = later.saturating_sub(n);
        // The last step, to 0, is not on a logarithmic axis.
        let share = if later > 0 { later } else { before };
        let _ = writeln!(lines, "{} {:e}", us(to), share as f64 / all as f64);
    }
    lines
}

/// A curve per cell with samples; of a single cell one per CPU.
fn curves<'a>(members: &'a [Member<'a>]) -> Vec<Curve<'a>> {
    let all = members.iter().filter_map(|member| Some((member, member.curves.as_ref()?)));
    let drawn: Vec<_> = all.filter(|(_, curves)| curves.histogram.n > 0).collect();
    if let [(member, curves)] = drawn[..] {
        let by_cpu = curves.by_cpu.iter().filter(|(_, histogram)| histogram.n > 0);
        let by_cpu: Vec<_> = by_cpu
            .map(|(cpu, histogram)| {
                let title = format!("{}, {} {cpu}", member.name(), member.of_number());
                Curve { title, histogram, member }
            })
            .collect();
        let is_whole = curves.beyond == 0 && !curves.is_cut;
        if by_cpu.len() > 1 && is_whole {
            return by_cpu;
        }
    }
    drawn
        .into_iter()
        .map(|(member, curves)| Curve { title: member.name(), histogram: &curves.histogram, member })
        .collect()
}

/// Writes how to draw the plot, and the source, machine and date of each run.
fn comments(script: &mut String, runs: &[Results<'_>], kind: GnuplotKind) {
    let mut comment = |text: &str| {
        let _ = writeln!(script, "# {}", harmless(text));
    };
    for (index, run) in runs.iter().enumerate() {
        let page = Page::of(run, false);
        let letter = letter(runs, index).map(|letter| format!("{letter} ")).unwrap_or_default();
        comment(&format!("{letter}{}", page.title));
        comment(&format!("  source: {}", run.name()));
        comment(&format!("  {}", page.about));
        comment(&format!("  date: {}", page.started_unix_ms.map_or_else(|| "not known".to_owned(), rfc3339)));
    }
    comment("Window: gnuplot -persist FILE");
    comment("Picture: gnuplot -e \"set terminal pdfcairo size 12cm,8cm; set output 'plot.pdf'\" FILE");
    comment("Linear axis: append unset logscale x; replot");
    comment(match kind {
        GnuplotKind::Histogram => "Data: lower edge of a bin (us), samples in it; 8 bins per doubling of latency.",
        GnuplotKind::Ccdf => "Data: latency (us), share of samples that are later.",
    });
}

/// A time on the axis, us; a logarithmic axis has no 0.
fn us(ns: u64) -> String {
    super::decimal(ns.max(1) as f64 / 1e3)
}

/// A string of gnuplot without substitutions: in single quotes. Apostrophes become U+2019, because gnuplot 5.4 does not
/// read a doubled one at the beginning.
fn quoted(text: &str) -> String {
    format!("'{}'", harmless(text).replace('\'', "\u{2019}"))
}

/// Text without backslashes: one at the end continues a comment, and gnuplot 5.4 warns of others in titles.
fn harmless(text: &str) -> String {
    plain(text).replace('\\', "/")
}
