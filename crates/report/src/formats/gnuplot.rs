//! Latency histograms as one gnuplot script with its data: linear latency, logarithmic counts.
//!
//! `cyclictest -h` and gnuplot made the plots of most published latency studies. One curve per cell; a single cell has
//! one per CPU.

use super::Page;
use crate::cells::{Member, letter, members};
use crate::linear::{Classes, are_fine, not_shown};
use crate::words::Counted;
use crate::{Results, rfc3339};
use punctual_analysis::wording::duration;
use punctual_model::{Histogram, plain};
use std::fmt::Write;

/// The most classes on the axis: those of 1 us end at 20 ms. Only nonempty ones take room in the file, and gnuplot
/// enlarges a part of it.
const CLASSES: u64 = 20_000;

/// The count at the foot of the plot, below a single sample, because a logarithmic axis has no 0.
const FOOT: &str = "0.5";

/// A curve of the plot.
struct Curve<'a> {
    title: String,
    histogram: &'a Histogram,
    member: &'a Member<'a>,
}

/// Returns the script for the cells of these runs; `None` if no cell has a histogram.
pub fn gnuplot(runs: &[Results<'_>]) -> Option<String> {
    let members = members(runs);
    let curves = curves(&members);
    let is_fine = are_fine(members.iter().map(|member| &member.row));
    let classes = Classes::around(curves.iter().map(|curve| curve.histogram), CLASSES, is_fine)?;
    let end = duration(classes.end_ns as f64);
    let mut script = String::new();
    comments(&mut script, runs);
    let mut plots = Vec::new();
    for (index, Curve { title, histogram, member }) in curves.iter().enumerate() {
        let counted = classes.count(histogram);
        // Samples beyond a tool's histogram belong to no CPU.
        let whole = member.curves.as_ref().filter(|curves| std::ptr::eq(&raw const curves.histogram, *histogram));
        let not_shown = not_shown(counted.later, &end, whole).map(|words| format!(": {words}")).unwrap_or_default();
        let title = quoted(&format!("{title}{not_shown}"));
        let _ = writeln!(script, "$curve{index} << EOD");
        for (class, count) in counted.corners() {
            let _ = writeln!(script, "{} {count}", us(class * classes.width_ns));
        }
        let _ = writeln!(script, "EOD");
        plots.push(format!("$curve{index} using 1:(foot($2)) with steps lw 2 title {title} noenhanced"));
    }
    let counted = Counted::of(&members);
    let are_virtual = members.iter().filter(|member| member.row.is_virtual()).count();
    let unit = match are_virtual {
        0 => "us",
        n if n == members.len() => "virtual us: 1000 instructions",
        _ => "us; of lab kernels in virtual time 1000 instructions",
    };
    let titles: Vec<String> = runs.iter().map(|run| Page::of(run, false).title.to_owned()).collect();
    let _ = write!(
        script,
        "foot(count) = count > 0 ? count : {FOOT}\n\
         set encoding utf8\n\
         set title {} noenhanced\n\
         set xlabel {} noenhanced\n\
         set ylabel {} noenhanced\n\
         set xrange [0:{}]\n\
         set yrange [{FOOT}:*]\n\
         set logscale y\n\
         set grid\n\
         set key top right noenhanced\n\
         plot {}\n",
        quoted(&titles.join("; ")),
        quoted(&format!("{} ({unit})", counted.latency())),
        quoted(&format!("{} per class of {}", counted.name(), duration(classes.width_ns as f64))),
        us(classes.end_ns),
        plots.join(", \\\n     ")
    );
    Some(script)
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
fn comments(script: &mut String, runs: &[Results<'_>]) {
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
    comment("Picture: gnuplot -e \"set terminal pngcairo size 1200,700; set output 'histogram.png'\" FILE");
    comment("Part: append set xrange [0:100]; replot");
    comment("Data: lower edge of a class (us), samples in it and in each class up to the next line.");
    comment("Records hold latencies to 0.8 %; what is coarser than a class is divided evenly.");
}

/// A time on the axis, us.
fn us(ns: u64) -> String {
    super::decimal(ns as f64 / 1e3)
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
