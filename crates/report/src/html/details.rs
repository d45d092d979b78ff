//! Details of one cell: its CPUs in one picture, its seconds, its numbers and findings.

use super::axes::{Axes, Kind};
use super::markup::{Markup, Prose, Text};
use super::matrix::{Heat, mean, ns};
use super::overlay::{LINES, begin, end, keys};
use super::{curves, cyclictest, strip};
use crate::cells::Member;
use crate::words::{Counted, capital};
use punctual_analysis::wording::{count, duration, number, things};
use punctual_analysis::{Curves, Origin};
use punctual_model::{Histogram, Imported, Order};
use std::cmp::Reverse;

/// The most CPUs drawn in one picture.
const ALL: usize = 128;

/// The most cells of a study whose threads are drawn; those of more are in their details alone.
const PICTURES: usize = 12;

/// The CPUs of a cell with samples, by number.
type Cpus<'a> = Vec<(u32, &'a Histogram)>;

/// Writes the details of each measured cell.
pub(super) fn write(page: &mut Markup, members: &[Member<'_>], axes: Option<&Axes>, heat: Option<Heat>) {
    if members.is_empty() {
        return;
    }
    page.section("parts", "", "Details per cell", None);
    for member in members {
        if let Some(curves) = &member.curves {
            part(page, member, curves, axes, heat);
        }
    }
    page.raw("</section>\n");
}

/// Writes a picture for each cell of a study with several threads: a line for each thread.
pub(super) fn by_thread(page: &mut Markup, members: &[Member<'_>], axes: &Axes) {
    let all = members.iter().filter_map(|member| Some((member, cpus_of(member.curves.as_ref()?))));
    let several: Vec<_> = all.filter(|(_, cpus)| (2..=LINES).contains(&cpus.len())).collect();
    if several.is_empty() || several.len() > PICTURES {
        return;
    }
    page.section("bythread", "later", "Threads of each cell", None);
    page.raw("<div class=grid>\n");
    for (member, cpus) in several {
        let of = member.of_number();
        page.raw("<div class=set>\n");
        keys(page, cpus.iter().map(|(cpu, _)| (format!("{of} {cpu}"), None)));
        few_cpus(page, &member.name(), member, &cpus, axes);
        page.raw("</div>\n");
    }
    page.raw("</div></section>\n");
}

/// The CPUs with samples.
fn cpus_of(curves: &Curves) -> Cpus<'_> {
    curves.by_cpu.iter().filter(|(_, cpu)| cpu.n > 0).map(|(cpu, all)| (*cpu, all)).collect()
}

fn part(page: &mut Markup, member: &Member<'_>, curves: &Curves, axes: Option<&Axes>, heat: Option<Heat>) {
    let id = format!("c{}", member.id);
    page.add(format_args!("<section class=\"set part later\" id={id}>\n<h3>{}", Text(member.name())));
    page.permalink(&id, &member.name());
    page.raw("</h3>\n<ul class=facts>");
    facts(member).iter().for_each(|fact| page.add(format_args!("<li>{}", Text(fact))));
    page.raw("</ul>\n");
    let cpus = cpus_of(curves);
    match axes {
        Some(axes) if !cpus.is_empty() => {
            let are_many = cpus.len() > LINES;
            if !are_many {
                let of = member.of_number();
                keys(page, cpus.iter().map(|(cpu, _)| (format!("{of} {cpu}"), None)));
            }
            page.raw("<div class=split><div>\n");
            if are_many {
                all_cpus(page, member, &cpus, axes);
                maxima(page, member, &cpus, heat);
            } else {
                let title = format!("{} histogram by {}", capital(axes.counted.latency()), member.of_number());
                few_cpus(page, &title, member, &cpus, axes);
            }
            cyclictest::write(page, member, &cpus);
            page.raw("</div><div>\n");
            if let Some(heat) = heat {
                strip::write(page, &curves.strip, heat, axes.counted);
            }
            findings(page, member);
            page.raw("</div></div>\n");
        }
        _ => {
            match member.row.origin {
                Origin::Own(..) => {
                    let one = Counted::of(std::slice::from_ref(member)).one();
                    page.add(format_args!("<p>No {one} was recorded.</p>\n"));
                }
                Origin::Imported(..) => page.raw("<p>The file has no distribution that could be drawn.</p>\n"),
            }
            findings(page, member);
        }
    }
    page.raw("</section>\n");
}

fn findings(page: &mut Markup, member: &Member<'_>) {
    let findings = member.row.findings();
    if !findings.is_empty() {
        page.raw("<ul class=findings>\n");
        findings.iter().for_each(|finding| page.add(format_args!("<li>{}.\n", Prose(finding))));
        page.raw("</ul>\n");
    }
}

/// Draws a line for each CPU, in its own color.
fn few_cpus(page: &mut Markup, title: &str, member: &Member<'_>, cpus: &Cpus<'_>, axes: &Axes) {
    begin(page, Kind::Histogram, title, &format!("{title}: {}", member.name()));
    for (line, (_, histogram)) in cpus.iter().enumerate() {
        page.add(format_args!("<path class=s{line} d={} />", curves::histogram(histogram, axes)));
    }
    end(page, "");
}

/// Draws all CPUs over each other in one color, and the latest one in another.
fn all_cpus(page: &mut Markup, member: &Member<'_>, cpus: &Cpus<'_>, axes: &Axes) {
    let of = member.of_number();
    let title = format!("{} histogram, all {} {of}s", capital(axes.counted.latency()), cpus.len());
    begin(page, Kind::Histogram, &title, &format!("{title}: {}", member.name()));
    let mut by_max = cpus.clone();
    by_max.order_by_key(|(_, histogram)| Reverse(histogram.max_ns));
    let left_out = by_max.len().saturating_sub(ALL);
    let mut note = String::new();
    if let Some(((latest, histogram), others)) = by_max.split_first() {
        let lines: String = others.iter().take(ALL - 1).map(|(_, cpu)| curves::histogram(cpu, axes)).collect();
        page.add(format_args!(
            "<path class=all d={lines} /><path class=s1 d={} />",
            curves::histogram(histogram, axes)
        ));
        note.push_str(&format!("Dashed: {of} {latest}, which has the maximum."));
    }
    if left_out > 0 {
        note.push_str(&format!(" {} with smaller maxima are left out.", things(left_out as u64, of)));
    }
    end(page, &note);
}

/// Writes the maximum of each CPU.
fn maxima(page: &mut Markup, member: &Member<'_>, cpus: &Cpus<'_>, heat: Option<Heat>) {
    let of = member.of_number();
    page.add(format_args!("<h4>Maximum per {of}</h4>\n<ul class=cpus>"));
    for (cpu, histogram) in cpus {
        let Some(max_ns) = histogram.max_ns else { continue };
        let class = heat.map(|heat| format!(" class=t{}", heat.of(max_ns))).unwrap_or_default();
        page.add(format_args!("<li{class}>{of} {cpu} <b>{}</b>", ns(max_ns)));
    }
    page.raw("</ul>\n");
}

/// Returns the numbers that the table has no room for, and the source of an imported measurement.
fn facts(member: &Member<'_>) -> Vec<String> {
    let row = &member.row;
    let measured = row.measured.map(|measured| duration(measured.ns() as f64));
    let mut facts = match row.origin {
        Origin::Own(cell, _) => {
            let virtually = if row.is_virtual() { " of virtual time" } else { "" };
            let blocks = things(u64::from(cell.blocks), "block");
            vec![format!("{}{virtually} measured in {blocks}", measured.unwrap_or_default())]
        }
        Origin::Imported(cell, _) => {
            let Imported { source, conditions, .. } = &cell.imported;
            let measured = measured.map(|measured| format!("{measured} measured"));
            Vec::from_iter([format!("{}, {}", source.tool, conditions.what)].into_iter().chain(measured))
        }
    };
    let counted = Counted::of(std::slice::from_ref(member)).name();
    facts.extend(row.samples.map(|samples| format!("{} {counted}", count(samples))));
    facts.extend(row.n_eff.map(|n| format!("effective sample size {} (p99)", count(n))));
    let ends = [
        ("min", row.min_ns.map(|ns| duration(ns as f64))),
        ("mean", mean(row)),
        ("standard deviation", row.stddev_ns.map(duration)),
    ];
    let known = ends.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
    facts.extend(Some(known.collect::<Vec<_>>().join(", ")).filter(|known| !known.is_empty()));
    let Some(cell) = row.own() else { return facts };
    let run_ms = cell.max.and_then(|max| max.run_ms);
    facts.extend(run_ms.map(|ms| format!("max {} into the run", duration(ms as f64 * 1e6))));
    let told = |n: Option<u64>, what: &str| n.filter(|n| *n > 0).map(|n| format!("{} {what}", count(n)));
    facts.extend(told(cell.lost, "samples lost"));
    facts.extend(told(cell.early, "early"));
    facts.extend(cell.misses.filter(|misses| misses.episodes > 0).map(|misses| {
        let [lower, upper] = [misses.lower_per_hour, misses.upper_per_hour].map(number);
        let episodes = things(misses.episodes, "episode");
        format!("deadline missed in {episodes}: {lower} to {upper} per hour (95 %)")
    }));
    facts.extend(cell.clock_reading_ns.map(|ns| format!("reading the clock takes {}", duration(ns as f64))));
    facts.extend(cell.runtime.as_ref().map(|runtime| format!("{} ({})", runtime.version, runtime.program)));
    facts
}
