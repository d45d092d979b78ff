//! Overlay: cells of one period and method in one picture of each kind.

use super::axes::{Axes, Kind};
use super::curves;
use super::markup::{Markup, Text};
use crate::bins::not_shown;
use crate::cells::Member;
use crate::words::{Counted, capital};
use punctual_analysis::wording::duration;
use punctual_analysis::{Curves, Origin};
use punctual_model::{ImportedLoad, LabClock};
use std::collections::BTreeSet;

/// Lines in one picture: as many as there are colors that all kinds of color vision tell apart, each with its own
/// dashes.
pub(super) const LINES: usize = 8;

/// The note of a histogram.
const BINS: &str = "8 bins per doubling; counts on a logarithmic axis.";

/// Cells in one picture, and the conditions that they share.
struct Group<'a, 'b> {
    title: String,
    members: Vec<&'b Member<'a>>,
}

/// Draws all groups.
pub(super) fn write(page: &mut Markup, members: &[Member<'_>], axes: &Axes) {
    let groups = groups(members);
    if groups.is_empty() {
        return;
    }
    page.section("overlay", "", "Overlay", None);
    for group in &groups {
        page.raw("<section class=\"set later\">\n");
        if groups.len() > 1 {
            page.add(format_args!("<h3>{}</h3>\n", Text(&group.title)));
        }
        keys(page, group.members.iter().map(|member| (member.name(), Some(member.id))));
        page.raw("<div class=grid>\n");
        exceedances(page, group, axes);
        percentiles(page, group, axes);
        staircases(page, group, axes);
        histogram(page, group, axes);
        page.raw("</div></section>\n");
    }
    page.raw("</section>\n");
}

/// Returns groups of cells with the same period, method and kind of time. Those of several kernels, or more than fit,
/// are divided by load, so that kernels share a picture; then by number.
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
                let longest = cell.cell.longest_period();
                let to = Some(longest).filter(|_| cell.cell.has_several_periods());
                let to = to.map_or_else(String::new, |longest| format!(" to {}", duration(longest.ns() as f64)));
                format!("{every}{to} by {}{time}", cell.cell.task)
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
                let title = if load == "none" { format!("no load, {title}") } else { format!("load {load}, {title}") };
                groups.push(Group { title, members: some.to_vec() });
            }
        }
    }
    groups
}

/// Divides a list by a key, in the order of first appearance.
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

/// Writes the names of the lines, in their order; a cell's links to its details.
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

/// Begins a picture below its title; `words` is its name for screen readers.
pub(super) fn begin(page: &mut Markup, kind: Kind, title: &str, words: &str) {
    let letter = kind.letter();
    page.add(format_args!(
        "<figure><figcaption>{}</figcaption><svg class=plot data-kind={letter} viewBox=\"0 0 1760 1048\" role=img tabindex=0 \
         aria-label=\"{}\"><use href=#a{letter} />",
        Text(title),
        Text(words)
    ));
}

/// Ends a picture with a note on how to read it, which may be empty.
pub(super) fn end(page: &mut Markup, note: &str) {
    page.raw("</svg>");
    if !note.is_empty() {
        page.add(format_args!("<p class=note>{}</p>", Text(note)));
    }
    page.raw("</figure>\n");
}

impl<'a, 'b> Group<'a, 'b> {
    /// Returns the number of each line, its cell, and its data.
    fn lines(&self) -> impl Iterator<Item = (usize, &'b Member<'a>, &'b Curves)> {
        let lines = self.members.iter().enumerate();
        lines.filter_map(|(line, &member)| Some((line, member, member.curves.as_ref()?)))
    }

    fn names(&self) -> String {
        self.members.iter().map(|member| member.name()).collect::<Vec<_>>().join(", ")
    }
}

/// Draws a histogram of all CPUs.
fn histogram(page: &mut Markup, group: &Group<'_, '_>, axes: &Axes) {
    let title = format!("{} histogram", capital(axes.counted.latency()));
    begin(page, Kind::Histogram, &title, &format!("{title}: {}", group.names()));
    for (line, _, curves) in group.lines().filter(|(.., curves)| curves.histogram.n > 0) {
        page.add(format_args!("<path class=s{line} d={} />", curves::histogram(&curves.histogram, axes)));
    }
    let missing = group
        .lines()
        .filter_map(|(_, member, curves)| not_shown(curves).map(|words| format!(" {}: {words}.", member.name())));
    end(page, &(BINS.to_owned() + &missing.collect::<String>()));
}

fn percentiles(page: &mut Markup, group: &Group<'_, '_>, axes: &Axes) {
    if group.lines().all(|(.., curves)| curves.rungs.is_empty()) {
        return;
    }
    begin(page, Kind::Nines, "Percentiles", &format!("Percentiles: {}", group.names()));
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
    let band = if has_band { " Bands: 95 % intervals." } else { "" };
    let is_beyond = group.lines().any(|(.., curves)| curves.beyond > 0);
    let beyond = if is_beyond { ", or at the end of the tool's histogram" } else { "" };
    let ends = "A line ends before the first percentile with fewer than 10 independent samples above it";
    end(page, &format!("{ends}{beyond}.{band}"));
}

fn staircases(page: &mut Markup, group: &Group<'_, '_>, axes: &Axes) {
    // A line needs a second point: the first maximum of a short run may be at its end.
    let is_point = |curves: &Curves| curves.new_maxima.first().is_none_or(|first| first.after >= curves.measured);
    if group.lines().all(|(.., curves)| is_point(curves)) {
        return;
    }
    begin(page, Kind::Staircase, "Worst so far", &format!("Worst so far: {}", group.names()));
    for (line, _, curves) in group.lines() {
        let data = curves::staircase(curves, axes);
        if !data.is_empty() {
            page.add(format_args!("<path class=s{line} d={data} />"));
        }
    }
    // A repetition in virtual time is identical to the bit.
    let is_virtual = group.members.iter().all(|member| member.row.is_virtual());
    let chance =
        if is_virtual { "" } else { " If you measure as long again, expect a new maximum with 50 % probability." };
    end(page, &format!("A line that still climbs at the right needs a longer measurement.{chance}"));
}

fn exceedances(page: &mut Markup, group: &Group<'_, '_>, axes: &Axes) {
    if group.lines().all(|(.., curves)| curves.is_cut) {
        return;
    }
    let later = if axes.counted == Counted::Gaps { "longer" } else { "later" };
    let title = format!("Share of {} {later} than a {} (CCDF)", axes.counted.name(), axes.counted.latency());
    begin(page, Kind::Ccdf, &title, &format!("{title}: {}", group.names()));
    for (line, _, curves) in group.lines() {
        let data = curves::exceedances(curves, axes);
        if !data.is_empty() {
            page.add(format_args!("<path class=s{line} d={data} />"));
        }
    }
    end(page, "Straight: heavy tail. Sharp drop: bounded. Plateau: a second cause.");
}
