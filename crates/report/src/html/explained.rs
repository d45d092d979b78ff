//! Causes of late wake-ups: the timeline of the worst, the share of each cause, a table, and the other timelines.

use super::markup::{Markup, Prose, Text};
use super::table::numbers;
use super::{Results, runs};
use crate::sections::explained::{self, stages, unseen};
use crate::sections::watched::{packet_stages, parts};
use punctual_analysis::explain::{blame, cause_name, marks_line, row_of};
use punctual_analysis::wording::{count, duration, things};
use punctual_analysis::{PhaseSummary, RunSummary, Stages, WatchedSummary};
use punctual_model::{
    CauseTotal, Evidence, ExplainRecord, Explanation, HostLanes, HostPiece, HostState, Order, PhaseLength, Segment,
};
use std::cmp::Reverse;
use std::fmt::{self, Write};

/// Width of the time in a timeline, in its units, and the places of its rows.
pub(super) const WIDTH: f64 = 1720.0;
pub(super) const LEFT: f64 = 20.0;
const PHASES: (u32, u32) = (4, 44);
const OWNERS: (u32, u32) = (56, 84);
/// Places of a guest's threads on the host, and what they add to the height.
const VCPU: (u32, u32) = (148, 44);
const EMULATOR: (u32, u32) = (196, 44);
const LANES: u32 = 100;
const AXIS: u32 = 152;
const HEIGHT: u32 = 200;
/// Approximate width of a character. A name without room is in the list below the timeline.
const CHARACTER: f64 = 18.0;
/// The least width of a box, so that the shortest is visible.
const NARROWEST: f64 = 3.0;
/// The most watched threads of a cell whose time is drawn.
const BARS: usize = 12;
/// The most segments listed below a timeline, the longest.
const LISTED: usize = 8;

/// Writes the causes of each explained cell: the worst timeline, the share of each cause, and the table. Returns
/// whether there is one.
pub(super) fn write(page: &mut Markup, runs: &[Results<'_>]) -> bool {
    let mut is_any = false;
    for (index, run) in runs::own(runs) {
        let cells: Vec<_> =
            run.summary.cells.iter().filter_map(|cell| Some((cell, cell.explained.as_ref()?))).collect();
        if cells.is_empty() {
            continue;
        }
        is_any = true;
        let answer = run.summary.answer().to_string();
        let are_gaps = cells.iter().all(|(cell, _)| cell.cell.task.is_noise());
        let title = if are_gaps { "Causes of gaps" } else { "Causes of late wake-ups" };
        page.section(&format!("explained{index}"), "", title, super::letter(runs, index));
        for (cell, explained) in &cells {
            if cells.len() > 1 {
                page.add(format_args!("<h3>{}</h3>\n", Text(&cell.name)));
            }
            if let Some(said) = cell.not_caught() {
                page.add(format_args!("<p class=quiet>{}</p>\n", Prose(said)));
            }
            of_cell(page, explained, cell.stages.as_ref(), &answer);
        }
        page.raw("</section>\n");
    }
    is_any
}

/// Writes the pictures of a cell, then its tables, then its other timelines, folded. The first timeline is that of the
/// thread that the answer names, if it names one.
fn of_cell(page: &mut Markup, explained: &ExplainRecord, both: Option<&Stages>, answer: &str) {
    let is_named = |one: &Explanation| one.thread.as_ref().is_some_and(|thread| answer.starts_with(&thread.name));
    let first = explained.worst.iter().position(is_named).unwrap_or(0);
    explained.worst.get(first).iter().for_each(|worst| spike(page, worst));
    bar(page, explained);
    causes(page, explained);
    let rest: Vec<_> = explained.worst.iter().enumerate().filter(|(index, _)| *index != first).collect();
    if !rest.is_empty() {
        page.folded(&format!("Timelines of {}", things(rest.len() as u64, "more spike")), |page| {
            rest.iter().for_each(|(_, one)| spike(page, one));
        });
    }
    if let Some(both) = both {
        page.folded("Stages of every wake-up", |page| {
            numbers(page, "Stages", "", &stages(both));
            unseen(both, explained).iter().for_each(|said| page.add(format_args!("<p>{}</p>\n", Prose(said))));
        });
    }
}

/// Writes the extent, the table of causes, and the remarks on it.
fn causes(page: &mut Markup, record: &ExplainRecord) {
    page.add(format_args!(
        "<p>{}; {} not covered by the trace.</p>\n",
        explained::extent(record),
        count(record.not_covered)
    ));
    if !record.causes.is_empty() {
        numbers(page, "Causes", "", &explained::totals(record));
        explained::remarks(record).iter().for_each(|said| page.add(format_args!("<p>{}</p>\n", Prose(said))));
    }
}

/// Draws the share of each cause in all explained wake-ups; its list is the key to the colors of the timelines.
fn bar(page: &mut Markup, record: &ExplainRecord) {
    let ExplainRecord { causes, late, explained: n, .. } = record;
    if causes.is_empty() {
        return;
    }
    let title = format!("{}, {} in all: share of each cause", things(*n, "spike"), duration(late.ns() as f64));
    let cause = |total: &CauseTotal| {
        let open = if total.or.is_some() { " open" } else { "" };
        (format!("w{}{open}", row_of(total.cause).color), explained::name_of(total), total.total.ns() as f64)
    };
    shares(page, &title, late.ns() as f64, "cause", causes.iter().map(cause));
    page.add(format_args!("<li>{}dashed outline: ambiguous evidence</ul></figure>\n", Swatch("w8 open")));
}

/// Writes the stages of the packets, and draws the account, of each watched thread.
pub(super) fn accounts(page: &mut Markup, summary: &RunSummary) {
    for cell in &summary.cells {
        let all = cell.watch.as_ref().map_or(&[][..], |watch| &watch.threads);
        let threads = all.iter().take(BARS);
        for (thread, packets) in threads.clone().filter_map(|thread| Some((thread, thread.packets.as_ref()?))) {
            let title = format!("stages of the packets that release {}, us", unique(thread, all));
            page.add(format_args!("<p>{}</p>\n", Prose(&title)));
            numbers(page, &title, "", &packet_stages(packets));
        }
        for (thread, account) in threads.filter_map(|thread| Some((thread, thread.account.as_ref()?))) {
            let several = if summary.cells.len() > 1 { format!("{}: ", cell.name) } else { String::new() };
            let title = format!("{several}time of {}", unique(thread, all));
            let parts = parts(account).into_iter().filter(|part| part.ns > 0);
            let shown = parts.map(|part| (part.class(), part.name.to_owned(), part.ns as f64));
            shares(page, &title, account.total().ns() as f64, "part", shown);
            page.raw("</ul></figure>\n");
        }
    }
}

/// The name of a thread, with its ID where others have the same name.
fn unique(thread: &WatchedSummary, all: &[WatchedSummary]) -> String {
    match all.iter().filter(|other| other.name == thread.name).count() {
        0 | 1 => thread.name.clone(),
        _ => format!("{} ({})", thread.name, thread.tid),
    }
}

/// Draws the phases of the activations of each watched thread: of all of them, and of the lateness.
pub(super) fn phases(page: &mut Markup, summary: &RunSummary) {
    for cell in &summary.cells {
        let several = if summary.cells.len() > 1 { format!("{}: ", cell.name) } else { String::new() };
        let all = cell.watch.as_ref().map_or(&[][..], |watch| &watch.threads);
        for (thread, phases) in all.iter().take(BARS).filter_map(|thread| Some((thread, thread.phases.as_deref()?))) {
            for what in ["response time", "lateness"] {
                let share = |one: &PhaseSummary| if what == "lateness" { one.late_share } else { one.share };
                // Colors of the causes, none twice in a row; before the first mark it is the kernel's.
                let class = |index: usize| match index {
                    0 => "phase".to_owned(),
                    index => format!("w{}", (index - 1) % 7),
                };
                let shown = phases.iter().enumerate().filter_map(|(index, one)| {
                    Some((class(index), one.name().to_owned(), share(one).filter(|share| *share > 0.0)?))
                });
                let shown: Vec<_> = shown.collect();
                if !shown.is_empty() {
                    let title = format!("{several}{what} of {} by phase", unique(thread, all));
                    shares(page, &title, 1.0, "phase", shown.into_iter());
                    page.raw("</ul></figure>\n");
                }
            }
        }
    }
}

/// Draws the shares of a time, each with its class, its name and its length, in the unit of all of it, up to the key,
/// which is not closed yet. `what` they are is said of those that are too short for it.
fn shares(page: &mut Markup, title: &str, all: f64, what: &str, parts: impl Iterator<Item = (String, String, f64)>) {
    let all = if all > 0.0 { all } else { 1.0 };
    page.add(format_args!(
        "<figure class=\"spike bar\"><figcaption>{title}</figcaption><svg viewBox=\"0 0 1760 {}\" role=img aria-label=\"{title}\">\
         <g transform=\"translate({LEFT})\">",
        PHASES.0 + OWNERS.1,
        title = Text(title),
    ));
    let mut at = 0.0;
    let (mut keys, mut left) = (String::new(), 0);
    for (class, name, part) in parts {
        let (width, percent) = (part / all * WIDTH, part / all * 100.0);
        let words = format!("{name} {percent:.0} %");
        boxed(page, &format!("\"{class}\""), (at, width), (PHASES.0, OWNERS.1), &words, &words);
        at += width;
        if percent >= 0.5 {
            // Writing to a String never fails.
            let _ = write!(keys, "<li>{}{}", Swatch(&class), Text(words));
        } else {
            left += 1;
        }
    }
    page.raw("</g></svg><ul class=key>");
    page.raw(&keys);
    if left > 0 {
        page.add(format_args!("<li>{} of less than 0.5 %", things(left, what)));
    }
}

/// A small box of a class, before a name in a key.
struct Swatch<'a>(&'a str);

impl fmt::Display for Swatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Swatch(class) = self;
        write!(f, "<svg viewBox=\"0 0 32 10\"><rect class=\"{class}\" width=32 height=10 /></svg>")
    }
}

/// Writes one late wake-up: its phases above, the CPU's owners below, and time.
fn spike(page: &mut Markup, one: &Explanation) {
    let Explanation { cpu, due_ns, latency, phases, segments, doubts, host, thread, .. } = one;
    let scale = WIDTH / latency.ns().max(1) as f64;
    let late = duration(latency.ns() as f64);
    let what = match thread {
        Some(thread) => format!("{} took {late}", thread.name),
        None if explained::is_gap(one) => format!("gap of {late}"),
        None => format!("{late} late"),
    };
    let below = if host.is_some() { LANES } else { 0 };
    page.add(format_args!(
        "<figure class=spike><figcaption>{}, CPU {cpu}, {:.4} s into the measurement</figcaption>\
         <svg viewBox=\"0 0 1760 {}\" role=img aria-label=\"Phases and owners of the CPU: {late}\">\
         <g transform=\"translate({LEFT})\">",
        Text(what),
        *due_ns as f64 / 1e9,
        HEIGHT + below
    ));
    let mut at = 0.0;
    let mut short_phases = Vec::new();
    for PhaseLength { phase, length } in phases {
        let width = length.ns() as f64 * scale;
        let name = phase.name();
        let words = format!("{name} {}", duration(length.ns() as f64));
        if !boxed(page, "phase", (at, width), PHASES, name, &words) {
            short_phases.push(words);
        }
        at += width;
    }
    let mut short = Vec::new();
    for segment in segments {
        let Segment { at, length, owner, .. } = segment;
        let class = format!("\"{}\"", class(segment));
        let place = (at.ns() as f64 * scale, length.ns() as f64 * scale);
        if !boxed(page, &class, place, OWNERS, &owner.name, &in_words(segment)) {
            short.push(segment);
        }
    }
    if let Some(HostLanes { vcpu, emulator }) = host {
        lane(page, ("vCPU", 0), VCPU, vcpu, scale);
        lane(page, ("emulator", 1), EMULATOR, emulator, scale);
    }
    axis(page, latency.ns(), scale, AXIS + below);
    page.add(format_args!("</g></svg><p class=note>{}", Prose(blame(one))));
    doubts.iter().for_each(|doubt| page.add(format_args!(" Doubt: {}.", Text(doubt))));
    if !short_phases.is_empty() {
        page.add(format_args!(" Short phases: {}.", Text(short_phases.join(", "))));
    }
    marks_line(one).iter().for_each(|marks| page.add(format_args!(" {}.", Text(marks))));
    page.raw("</p>");
    listed(page, short);
    page.raw("</figure>\n");
}

/// Draws a thread of a guest on the host; `waiting` is the color of its waits.
fn lane(page: &mut Markup, (thread, waiting): (&str, usize), row: (u32, u32), pieces: &[HostPiece], scale: f64) {
    for HostPiece { at, length, state, cpu, owner, .. } in pieces {
        let by = owner.as_ref().map_or("", |owner| owner.name.as_str());
        let (class, name) = match state {
            HostState::Running => ("w8".to_owned(), format!("{thread} ran")),
            HostState::Waiting => (format!("w{waiting}"), format!("{thread} waited: {by}")),
            HostState::Asleep => ("phase".to_owned(), format!("{thread} slept")),
            HostState::Stopped => ("w5".to_owned(), format!("{thread} stopped")),
            HostState::Unknown => ("w7 open".to_owned(), "unknown".to_owned()),
        };
        let on = cpu.map(|cpu| format!(", host CPU {cpu}")).unwrap_or_default();
        let title = format!("{name} {}{on}", duration(length.ns() as f64));
        let place = (at.ns() as f64 * scale, length.ns() as f64 * scale);
        boxed(page, &format!("\"{class}\""), place, row, &name, &title);
    }
}

/// Lists the segments without room for their name, in the order of time.
fn listed(page: &mut Markup, mut segments: Vec<&Segment>) {
    let n = segments.len();
    if n == 0 {
        return;
    }
    segments.order_by_key(|segment| Reverse(segment.length));
    segments.truncate(LISTED);
    segments.order_by_key(|segment| segment.at);
    page.raw("<ul class=key>");
    for segment in segments {
        page.add(format_args!("<li>{}{}", Swatch(&class(segment)), Text(in_words(segment))));
    }
    if n > LISTED {
        page.add(format_args!("<li>and {} shorter", n - LISTED));
    }
    page.raw("</ul>");
}

/// Returns the class of a segment: its color, and whether its evidence is ambiguous.
fn class(segment: &Segment) -> String {
    let is_open = matches!(segment.evidence, Evidence::Ambiguous | Evidence::Undetermined);
    format!("w{}{}", row_of(segment.cause).color, if is_open { " open" } else { "" })
}

/// Returns the owner, the cause, the length and the place of a segment.
fn in_words(segment: &Segment) -> String {
    let Segment { length, owner, cause, or, evidence, place, .. } = segment;
    let (cause, evidence) = (cause_name(*cause, *or), *evidence);
    // The ordinary part of a wake-up is its own cause.
    let cause = if cause == owner.name { String::new() } else { format!("{cause}, ") };
    let place = place.as_ref().map(|place| format!("; {place}")).unwrap_or_default();
    format!("{}: {cause}{} [{evidence}]{place}", owner.name, duration(length.ns() as f64))
}

/// Draws a box with its name, where there is room for it. Returns whether there is.
pub(super) fn boxed(
    page: &mut Markup,
    class: &str,
    (at, width): (f64, f64),
    (top, height): (u32, u32),
    name: &str,
    title: &str,
) -> bool {
    let width = width.max(NARROWEST);
    page.add(format_args!(
        "<rect class={class} x={at:.1} y={top} width={width:.1} height={height}><title>{}</title></rect>",
        Text(title)
    ));
    let has_room = name.chars().count() as f64 * CHARACTER < width;
    if has_room {
        let (x, y) = (at + width / 2.0, top + height / 2 + 10);
        let kind = if class.contains("phase") { "" } else { " class=on" };
        page.add(format_args!("<text{kind} x={x:.1} y={y}>{}</text>", Text(name)));
    }
    has_room
}

/// Draws the axis of time since the wake-up was due, at round values.
pub(super) fn axis(page: &mut Markup, latency_ns: u64, scale: f64, axis: u32) {
    let step = step(latency_ns);
    let mut ticks = String::new();
    let mut names = String::new();
    let mut at_ns = 0;
    while at_ns <= latency_ns {
        let x = at_ns as f64 * scale;
        // Writing to a String never fails.
        let _ = write!(ticks, "M{x:.1},{}v14", axis - 6);
        let anchor = if at_ns == 0 { " class=first" } else { "" };
        let name = if at_ns == 0 { "due".to_owned() } else { duration(at_ns as f64) };
        // The last one would leave the picture.
        let is_last = latency_ns - at_ns < step / 4 && at_ns > 0;
        let anchor = if is_last { " class=last" } else { anchor };
        let _ = write!(names, "<text{anchor} x={x:.1} y={}>{name}</text>", axis + 38);
        at_ns += step;
    }
    page.add(format_args!("<path class=tick d=\"M0,{axis}h{WIDTH}{ticks}\"/><g class=tx>{names}</g>"));
}

/// Returns a round distance of ticks, for four to ten of them.
fn step(latency_ns: u64) -> u64 {
    let mut power = 1;
    while power * 10 <= latency_ns / 4 {
        power *= 10;
    }
    [5, 2, 1].into_iter().map(|factor| factor * power).find(|step| step * 4 <= latency_ns).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{Cause, Owner, Phase, Span};

    #[test]
    fn ticks_are_round_and_few() {
        for (latency_ns, expected) in
            [(0, 1), (3, 1), (4, 1), (9, 2), (412_000, 100_000), (1_000_000, 200_000), (2_000_000, 500_000)]
        {
            let found = step(latency_ns);
            assert_eq!(found, expected, "{latency_ns}");
            assert!(latency_ns / found <= 10, "{latency_ns}");
        }
    }

    #[test]
    fn a_spike_is_drawn_to_scale_with_ambiguous_segments_marked() {
        let segment = |at, length, cause, or, evidence, name: &str| Segment {
            at: Span(at),
            length: Span(length),
            phase: Phase::WakeupToSwitch,
            owner: Owner { name: name.to_owned(), pid: Some(7) },
            cause,
            or,
            evidence,
            place: None,
        };
        let one = Explanation {
            cpu: 1,
            cycle: 5,
            due_ns: 5_000_000,
            latency: Span(430_000),
            phases: vec![
                PhaseLength { phase: Phase::ExpiryToInterrupt, length: Span(43_000) },
                PhaseLength { phase: Phase::WakeupToSwitch, length: Span(387_000) },
            ],
            segments: vec![
                segment(43_000, 215_000, Cause::NotPreemptible, Some(Cause::CpuStalled), Evidence::Ambiguous, "<b>&"),
                segment(258_000, 1, Cause::Softirq, None, Evidence::Direct, "softirq RCU"),
            ],
            ..Explanation::default()
        };
        let mut page = Markup::default();
        spike(&mut page, &one);
        let page = page.into_string();
        for part in [
            "430 us late",
            "class=phase x=172.0 y=4 width=1548.0",
            "class=\"w1 open\" x=172.0 y=56 width=860.0",
            "<title>&lt;b&gt;&amp;: not preemptible or CPU stalled, 215 us [ambiguous]</title>",
            "Short phases: expiry to interrupt 43 us.",
            "<rect class=\"w2\" width=32 height=10 /></svg>softirq RCU: softirq, 1 ns [direct]",
            "class=\"w2\" x=1032.0 y=56 width=3.0",
            ">400 us</text>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<b>&"), "{page}");
        let piece = |at, length, state, owner: Option<&str>| HostPiece {
            at: Span(at),
            length: Span(length),
            state,
            cpu: owner.map(|_| 1),
            owner: owner.map(|name| Owner { name: name.to_owned(), pid: Some(9) }),
            is_inferred: false,
        };
        let vcpu = vec![
            piece(0, 215_000, HostState::Waiting, Some("<load>")),
            piece(215_000, 215_000, HostState::Running, None),
        ];
        let emulator = vec![piece(0, 430_000, HostState::Asleep, None)];
        let one = Explanation { host: Some(HostLanes { vcpu, emulator }), ..one };
        let mut page = Markup::default();
        spike(&mut page, &one);
        let page = page.into_string();
        for part in [
            "<svg viewBox=\"0 0 1760 300\"",
            "class=\"w0\" x=0.0 y=148 width=860.0 height=44><title>vCPU waited: &lt;load&gt; 215 us, host CPU 1</title>",
            "class=\"w8\" x=860.0 y=148 width=860.0",
            "class=\"phase\" x=0.0 y=196 width=1720.0 height=44><title>emulator slept 430 us</title>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn every_cause_has_a_color_of_the_style() {
        let style = include_str!("style.css");
        assert!((0..=8).all(|class| style.contains(&format!(".w{class} {{"))));
    }
}
