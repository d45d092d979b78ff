//! The details of one cell: its CPUs beside each other, its seconds, its numbers, what stands out.

use super::axes::{Axes, Kind};
use super::cells::Member;
use super::markup::{Markup, Prose, Text};
use super::matrix::{Heat, heat};
use super::overlay::{LINES, begin, end, keys};
use super::{curves, strip};
use analysis::wording::{count, duration, number};
use analysis::{Curves, Origin};
use model::Imported;
use std::cmp::Reverse;
use std::collections::HashSet;

/// Writes a part for each cell that was measured, with pictures where there is a sample. The histograms of the cells in `drawn` are there already, by name.
pub(super) fn write(page: &mut Markup, members: &[Member<'_>], axes: Option<&Axes>, drawn: &HashSet<usize>) {
    let heat = heat(members);
    page.raw("<section id=parts>\n<h2>One by one</h2>\n");
    for member in members {
        if let Some(curves) = &member.curves {
            part(page, member, curves, axes, heat, drawn.contains(&member.id));
        }
    }
    page.raw("</section>\n");
}

fn part(
    page: &mut Markup,
    member: &Member<'_>,
    curves: &Curves,
    axes: Option<&Axes>,
    heat: Option<Heat>,
    is_drawn: bool,
) {
    page.add(format_args!("<section class=\"set part later\" id=c{}>\n<h3>{}</h3>\n", member.id, Text(member.name())));
    page.raw("<ul class=facts>");
    facts(member).iter().for_each(|fact| page.add(format_args!("<li>{}", Text(fact))));
    page.raw("</ul>\n");
    match axes {
        Some(axes) if curves.by_cpu.values().any(|histogram| histogram.n > 0) => {
            drawings(page, member, curves, axes, heat, is_drawn);
        }
        _ => page.raw(match member.row.origin {
            Origin::Own(..) => "<p>No wake-up was recorded.</p>\n",
            Origin::Imported(..) => "<p>The file has no distribution that could be drawn.</p>\n",
        }),
    }
    let findings = member.row.findings();
    if !findings.is_empty() {
        page.raw("<ul class=findings>\n");
        findings.iter().for_each(|finding| page.add(format_args!("<li>{}.\n", Prose(finding))));
        page.raw("</ul>\n");
    }
    page.raw("</section>\n");
}

/// The histograms of its CPUs, and its seconds.
fn drawings(page: &mut Markup, member: &Member<'_>, curves: &Curves, axes: &Axes, heat: Option<Heat>, is_drawn: bool) {
    let mut cpus: Vec<_> = curves.by_cpu.iter().filter(|(_, histogram)| histogram.n > 0).collect();
    let left_out = cpus.len().saturating_sub(LINES);
    cpus.sort_by_key(|(_, histogram)| Reverse(histogram.max_ns));
    cpus.truncate(LINES);
    cpus.sort_by_key(|(cpu, _)| **cpu);
    let of = member.of_number();
    keys(page, cpus.iter().map(|(cpu, _)| (format!("{of} {cpu}"), None)));
    page.raw("<div class=grid>\n");
    let words = format!("Histogram of the latencies of {}, a line for each {of}", member.name());
    begin(page, Kind::Histogram, &words);
    for (line, (cpu, histogram)) in cpus.iter().enumerate() {
        if is_drawn {
            page.add(format_args!("<use class=s{line} href=#h{}.{cpu} />", member.id));
        } else {
            page.add(format_args!("<path class=s{line} d={} />", curves::histogram(histogram, axes)));
        }
    }
    let others =
        if left_out > 0 { format!(" {left_out} {of}s with smaller maxima are left out.") } else { String::new() };
    let title = if member.is_by_thread() { "Thread by thread." } else { "CPU by CPU." };
    end(page, title, &format!("{}{others}", axes.counted.in_steps()));
    if let Some(heat) = heat {
        strip::write(page, &curves.strip, heat);
    }
    page.raw("</div>\n");
}

/// The numbers that the table has no room for, and where an imported measurement comes from.
fn facts(member: &Member<'_>) -> Vec<String> {
    let row = &member.row;
    let measured = row.measured.map(|measured| duration(measured.ns() as f64));
    let (mut facts, things) = match row.origin {
        Origin::Own(cell, _) => {
            let virtually = if row.is_virtual() { " of virtual time" } else { "" };
            let measured = measured.unwrap_or_default();
            (vec![format!("{measured}{virtually} measured in {} blocks", cell.blocks)], "wake-ups")
        }
        Origin::Imported(cell, _) => {
            let Imported { source, conditions, .. } = &cell.imported;
            let measured = measured.map(|measured| format!("{measured} measured"));
            (Vec::from_iter([format!("{}, {}", source.tool, conditions.what)].into_iter().chain(measured)), "samples")
        }
    };
    facts.extend(row.samples.map(|samples| format!("{} {things}", count(samples))));
    facts.extend(row.n_eff.map(|n| format!("worth {} independent ones at p99", count(n))));
    let ends = [("min", row.min_ns.map(|ns| ns as f64)), ("mean", row.mean_ns), ("standard deviation", row.stddev_ns)];
    let known = ends.iter().filter_map(|(name, value)| Some(format!("{name} {}", duration((*value)?))));
    facts.extend(Some(known.collect::<Vec<_>>().join(", ")).filter(|known| !known.is_empty()));
    let Some(cell) = row.own() else { return facts };
    let run_ms = cell.max.and_then(|max| max.run_ms);
    facts.extend(run_ms.map(|ms| format!("max {} into the run", duration(ms as f64 * 1e6))));
    facts.extend((cell.lost > 0).then(|| format!("{} samples lost", count(cell.lost))));
    facts.extend((cell.early > 0).then(|| format!("{} early", count(cell.early))));
    facts.extend(cell.misses.filter(|misses| misses.episodes > 0).map(|misses| {
        let [lower, upper] = [misses.lower_per_hour, misses.upper_per_hour].map(number);
        format!("deadline missed in {} episodes: {lower} to {upper} an hour (95 %)", count(misses.episodes))
    }));
    facts.extend(cell.clock_reading_ns.map(|ns| format!("reading the clock takes {}", duration(ns as f64))));
    facts.extend(cell.runtime.as_ref().map(|runtime| format!("{} ({})", runtime.version, runtime.program)));
    facts
}
