//! Overlaid charts: cells that differ in load and policy, drawn over each other.

use super::axes::{Axes, Kind};
use super::cells::Member;
use super::curves;
use super::markup::{Markup, Text};
use analysis::wording::duration;
use analysis::{Curves, Origin};
use model::{ImportedLoad, LabClock};
use std::collections::{BTreeSet, HashSet};

/// Lines in one picture. There are as many colours that people with any kind of colour vision tell apart, each with dashes
/// of its own.
pub(super) const LINES: usize = 8;

/// CPUs that have a histogram each; of more, all are counted together.
const CPUS: usize = 4;

/// Cells that are drawn over each other, and what they have in common.
struct Group<'a, 'b> {
    title: String,
    members: Vec<&'b Member<'a>>,
}

/// Draws all groups; returns the numbers of the cells whose CPUs were drawn one by one, by the name `h{cell}.{cpu}`.
pub(super) fn write(page: &mut Markup, members: &[Member<'_>], axes: &Axes) -> HashSet<usize> {
    let groups = groups(members);
    let mut by_cpu = HashSet::new();
    if groups.is_empty() {
        return by_cpu;
    }
    page.raw("<section id=pictures>\n<h2>Beside each other</h2>\n");
    for group in &groups {
        page.raw("<section class=\"set later\">\n");
        if groups.len() > 1 {
            page.add(format_args!("<h3>{}</h3>\n", Text(&group.title)));
        }
        keys(page, group.members.iter().map(|member| (member.name(), Some(member.id))));
        page.raw("<div class=grid>\n");
        if histograms(page, group, axes) {
            by_cpu.extend(group.members.iter().map(|member| member.id));
        }
        nines(page, group, axes);
        staircases(page, group, axes);
        exceedances(page, group, axes);
        page.raw("</div></section>\n");
    }
    page.raw("</section>\n");
    by_cpu
}

/// Cells with the same period, method and kind of time; those of several kernels, or more than fit, are divided by load, so
/// that kernels are drawn over each other; then by number.
fn groups<'a, 'b>(members: &'b [Member<'a>]) -> Vec<Group<'a, 'b>> {
    let has_lines = |curves: &Curves| curves.histogram.n > 0 || !curves.new_maxima.is_empty();
    let drawn: Vec<_> = members.iter().filter(|member| member.curves.as_ref().is_some_and(has_lines)).collect();
    let of = |member: &Member<'_>| {
        let row = &member.row;
        let every = row.period.map(|period| format!("every {}", duration(period.ns() as f64)));
        let every = every.unwrap_or_else(|| "period not known".to_owned());
        match row.origin {
            Origin::Own(cell, _) => {
                let time = match cell.cell.kernel.clock() {
                    None => "",
                    Some(LabClock::Virtual) => ", virtual time",
                    Some(LabClock::Emulated) => ", emulated machines",
                    Some(LabClock::Kvm) => ", KVM guests",
                };
                format!("{every} by {}{time}", cell.cell.task)
            }
            // Noise is no latency; the kinds of latency of one tool belong together.
            Origin::Imported(cell, _) if cell.imported.conditions.what == "noise" => {
                format!("{every}, imported, noise")
            }
            Origin::Imported(..) => format!("{every}, imported"),
        }
    };
    let mut groups = Vec::new();
    for (title, members) in by(&drawn, of) {
        let kernels: BTreeSet<_> =
            members.iter().filter_map(|member| Some(member.row.own()?.cell.kernel.to_string())).collect();
        if members.len() <= LINES && kernels.len() < 2 {
            groups.push(Group { title, members });
            continue;
        }
        for (load, members) in
            by(&members, |member| member.row.load.as_ref().map_or_else(|| "not known".to_owned(), ImportedLoad::label))
        {
            for some in members.chunks(LINES) {
                groups.push(Group { title: format!("load {load}, {title}"), members: some.to_vec() });
            }
        }
    }
    groups
}

/// Divides a list by what each is, in the order of first appearance.
fn by<'a, 'b>(members: &[&'b Member<'a>], of: impl Fn(&Member<'a>) -> String) -> Vec<(String, Vec<&'b Member<'a>>)> {
    let mut divided: Vec<(String, Vec<&'b Member<'a>>)> = Vec::new();
    for member in members {
        let key = of(member);
        match divided.iter_mut().find(|(name, _)| *name == key) {
            Some((_, of_key)) => of_key.push(member),
            None => divided.push((key, vec![member])),
        }
    }
    divided
}

/// The names of the lines, in their order; one of a cell leads to its part.
pub(super) fn keys(page: &mut Markup, names: impl Iterator<Item = (String, Option<usize>)>) {
    page.raw("<ul class=key>");
    for (index, (name, id)) in names.enumerate() {
        page.add(format_args!(
            "<li><svg viewBox=\"0 0 128 40\" aria-hidden=true><path class=s{index} d=M0,20h128 /></svg>"
        ));
        match id {
            Some(id) => page.add(format_args!("<a href=#c{id}>{}</a>", Text(name))),
            None => page.add(format_args!("{}", Text(name))),
        }
    }
    page.raw("</ul>\n");
}

/// Begins a picture; `words` is what a screen reader says of it.
pub(super) fn begin(page: &mut Markup, kind: Kind, words: &str) {
    let letter = kind.letter();
    page.add(format_args!(
        "<figure><svg class=plot data-kind={letter} viewBox=\"0 0 1760 1048\" role=img tabindex=0 aria-label=\"{}\">\
         <use href=#a{letter} />",
        Text(words)
    ));
}

/// Ends a picture with what it shows.
pub(super) fn end(page: &mut Markup, title: &str, words: &str) {
    page.add(format_args!("</svg><figcaption><b>{}</b> {}</figcaption></figure>\n", Text(title), Text(words)));
}

impl<'a, 'b> Group<'a, 'b> {
    /// The number of each line, its cell, and what it is drawn from.
    fn lines(&self) -> impl Iterator<Item = (usize, &'b Member<'a>, &'b Curves)> {
        let lines = self.members.iter().enumerate();
        lines.filter_map(|(line, &member)| Some((line, member, member.curves.as_ref()?)))
    }

    fn names(&self) -> String {
        self.members.iter().map(|member| member.name()).collect::<Vec<_>>().join(", ")
    }
}

/// One picture for each CPU, or, where there are many, one for all; returns which.
fn histograms(page: &mut Markup, group: &Group<'_, '_>, axes: &Axes) -> bool {
    let seen = group.lines().flat_map(|(.., curves)| &curves.by_cpu).filter(|(_, histogram)| histogram.n > 0);
    let cpus: BTreeSet<u32> = seen.map(|(cpu, _)| *cpu).collect();
    let caption = axes.counted.in_steps();
    // A thread of one file need not have been where that of the same number was in another.
    let by_thread = group.members.iter().any(|member| member.is_by_thread());
    if cpus.len() > CPUS || by_thread {
        let on = if by_thread { "of all threads" } else { "on all CPUs" };
        begin(page, Kind::Histogram, &format!("Histogram of latencies {on}: {}", group.names()));
        for (line, _, curves) in group.lines() {
            page.add(format_args!("<path class=s{line} d={} />", curves::histogram(&curves.histogram, axes)));
        }
        let title =
            if by_thread { "All threads together.".to_owned() } else { format!("{} CPUs together", cpus.len()) };
        end(page, &title, caption);
        return false;
    }
    for cpu in cpus {
        begin(page, Kind::Histogram, &format!("Histogram of latencies on CPU {cpu}: {}", group.names()));
        for (line, member, curves) in group.lines() {
            let Some(histogram) = curves.by_cpu.get(&cpu).filter(|histogram| histogram.n > 0) else { continue };
            let steps = curves::histogram(histogram, axes);
            page.add(format_args!("<g class=s{line}><path id=h{}.{cpu} d={steps} /></g>", member.id));
        }
        end(page, &format!("CPU {cpu}"), caption);
    }
    true
}

fn nines(page: &mut Markup, group: &Group<'_, '_>, axes: &Axes) {
    if group.lines().all(|(.., curves)| curves.rungs.is_empty()) {
        return;
    }
    begin(page, Kind::Nines, &format!("Latency by nines: {}", group.names()));
    let mut has_band = false;
    for (line, _, curves) in group.lines() {
        let (data, band) = curves::nines(curves, axes);
        if !band.is_empty() {
            has_band = true;
            page.add(format_args!("<path class=\"band s{line}\" d={band} />"));
        }
        if !data.is_empty() {
            page.add(format_args!("<path class=s{line} d={data} />"));
        }
        if let Some((x, y)) = curves::cut_off(curves, axes) {
            page.add(format_args!("<path class=\"end s{line}\" d=M{x:.0},{y:.0}h0 />"));
        }
    }
    let band = if has_band { " The bands are 95 % intervals." } else { "" };
    let is_beyond = group.lines().any(|(.., curves)| curves.beyond > 0);
    let beyond = if is_beyond { ", or where the tool's histogram does" } else { "" };
    end(
        page,
        "By nines.",
        &format!(
            "A line ends before the first quantile with fewer than 10 independent samples above it{beyond}.{band}"
        ),
    );
}

fn staircases(page: &mut Markup, group: &Group<'_, '_>, axes: &Axes) {
    if group.lines().all(|(.., curves)| curves.new_maxima.is_empty()) {
        return;
    }
    begin(page, Kind::Staircase, &format!("Largest latency so far: {}", group.names()));
    for (line, _, curves) in group.lines() {
        let data = curves::staircase(curves, axes);
        if !data.is_empty() {
            page.add(format_args!("<path class=s{line} d={data} />"));
        }
    }
    // Measured again in virtual time, everything is the same to the bit.
    let is_virtual = group.members.iter().all(|member| member.row.is_virtual());
    let chance = if is_virtual { "" } else { " After twice the time a new one has a chance of one half." };
    end(page, "Maximum so far.", &format!("Still climbing at the right: measure longer.{chance}"));
}

fn exceedances(page: &mut Markup, group: &Group<'_, '_>, axes: &Axes) {
    if group.lines().all(|(.., curves)| curves.is_cut) {
        return;
    }
    begin(page, Kind::Ccdf, &format!("Share of {} later than a latency: {}", axes.counted.name(), group.names()));
    for (line, _, curves) in group.lines() {
        let data = curves::exceedances(curves, axes);
        if !data.is_empty() {
            page.add(format_args!("<path class=s{line} d={data} />"));
        }
    }
    end(page, "How often later.", "Straight: a heavy tail. A cliff: bounded. A shelf: a second cause.");
}
