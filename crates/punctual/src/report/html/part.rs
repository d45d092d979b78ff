//! The part of one cell: its CPUs beside each other, its seconds, its numbers, what stands out.

use super::axes::{Axes, Kind};
use super::cells::{Cell, Member};
use super::groups::{LINES, begin, end, keys};
use super::markup::{Markup, Prose, Text};
use super::matrix::{Heat, heat, ns};
use super::{pictures, strip};
use analysis::wording::{count, duration, number};
use analysis::{CellSummary, Curves, ImportedCell};
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
    let (facts, findings): (_, Vec<String>) = match member.cell {
        Cell::Ours(cell) => (facts(cell), cell.findings.iter().map(ToString::to_string).collect()),
        Cell::Imported(cell) => (facts_of_imported(cell), cell.findings.iter().map(ToString::to_string).collect()),
    };
    facts.iter().for_each(|fact| page.add(format_args!("<li>{}", Text(fact))));
    page.raw("</ul>\n");
    match axes {
        Some(axes) if curves.by_cpu.values().any(|histogram| histogram.n > 0) => {
            drawings(page, member, curves, axes, heat, is_drawn);
        }
        _ => page.raw(match member.cell {
            Cell::Ours(_) => "<p>No wake-up was recorded.</p>\n",
            Cell::Imported(_) => "<p>The file has no distribution that could be drawn.</p>\n",
        }),
    }
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
            page.add(format_args!("<path class=s{line} d={} />", pictures::histogram(histogram, axes)));
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

/// The numbers that the table has no room for.
fn facts(cell: &CellSummary) -> Vec<String> {
    let mut facts = vec![
        format!(
            "{}{} measured in {} blocks",
            duration(cell.measured.ns() as f64),
            if cell.cell.kernel.is_virtual() { " of virtual time" } else { "" },
            cell.blocks
        ),
        format!("{} wake-ups", count(cell.samples)),
    ];
    facts.extend(cell.n_eff.map(|n| format!("worth {} independent ones at p99", count(n))));
    if let (Some(min), Some(mean)) = (cell.min_ns, cell.mean_ns) {
        let sd = cell.stddev_ns.map(|sd| format!(", standard deviation {}", duration(sd))).unwrap_or_default();
        facts.push(format!("min {}, mean {}{sd}", ns(min), duration(mean)));
    }
    facts.extend(
        cell.max.and_then(|max| max.run_ms).map(|ms| format!("max {} into the run", duration(ms as f64 * 1e6))),
    );
    facts.extend((cell.lost > 0).then(|| format!("{} samples lost", count(cell.lost))));
    facts.extend((cell.early > 0).then(|| format!("{} early", count(cell.early))));
    facts.extend(cell.misses.filter(|misses| misses.episodes > 0).map(|misses| {
        format!(
            "deadline missed in {} episodes: {} to {} an hour (95 %)",
            count(misses.episodes),
            number(misses.lower_per_hour),
            number(misses.upper_per_hour)
        )
    }));
    facts.extend(cell.runtime.as_ref().map(|runtime| format!("{} ({})", runtime.version, runtime.program)));
    facts
}

/// What is known of an imported measurement.
fn facts_of_imported(cell: &ImportedCell) -> Vec<String> {
    let mut facts = vec![format!("{}, {}", cell.imported.source.tool, cell.imported.conditions.what)];
    facts.extend(cell.imported.measured.map(|measured| format!("{} measured", duration(measured.ns() as f64))));
    facts.extend(cell.samples.map(|samples| format!("{} samples", count(samples))));
    facts.extend(cell.quantiles.p99.n_eff().map(|n| format!("worth {} independent ones at p99", count(n))));
    let ends =
        [("min", cell.min_ns.map(|ns| ns as f64)), ("mean", cell.mean_ns), ("standard deviation", cell.stddev_ns)];
    let known = ends.iter().filter_map(|(name, value)| Some(format!("{name} {}", duration((*value)?))));
    facts.extend(Some(known.collect::<Vec<_>>().join(", ")).filter(|known| !known.is_empty()));
    facts
}
