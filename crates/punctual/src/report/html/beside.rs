//! The published rows of the study that a run repeats, next to the run's own: facts side by side, no ranking.

use super::Ours;
use super::markup::{Markup, Text};
use super::matrix::ns;
use crate::report::published::{self, About, Row, stands_for};
use analysis::CellSummary;
use analysis::wording::{count, duration};
use model::{Host, Kernel, LabClock, Load, Study};
use std::collections::BTreeSet;

const HEAD: [&str; 8] = ["kernel", "policy", "samples", "min", "mean", "max", "sd", "missed"];

/// What is compared: cells with the same period and a load of the same kind.
#[derive(PartialEq)]
struct Topic {
    load: String,
    our_load: Option<String>,
    period_us: Option<String>,
}

pub(super) fn write(page: &mut Markup, study: Study, run: &Ours<'_>, letter: Option<char>) {
    let (about, rows) = (published::about(study), published::rows(study));
    let letter = letter.map(|letter| format!(" <b class=run>{letter}</b>")).unwrap_or_default();
    page.add(format_args!(
        "<section class=later>\n<h2>Beside what was published{letter}</h2>\n<p><b>{}.</b> {}. {}.</p>\n",
        Text(&about.title),
        Text(&about.source),
        Text(&about.note)
    ));
    conditions(page, &about, &rows, run);
    let mut topics: Vec<Topic> = Vec::new();
    for row in &rows {
        let topic = Topic { load: row.load.clone(), our_load: row.our_load.clone(), period_us: row.period_us.clone() };
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    let measured = |topic: &Topic| run.summary.cells.iter().any(|cell| cell.blocks > 0 && is_of(cell, topic));
    let (both, theirs): (Vec<_>, Vec<_>) = topics.into_iter().partition(measured);
    table(page, &both, &rows, run);
    if !theirs.is_empty() {
        page.add(format_args!("<details><summary>{} more published, without a cell here</summary>\n", theirs.len()));
        table(page, &theirs, &rows, run);
        page.raw("</details>\n");
    }
    page.raw(
        "<p class=quiet>Other machines, kernels, loads and lengths of measurement: the rows show what was seen where, not \
         which is better.</p>\n</section>\n",
    );
}

fn table(page: &mut Markup, topics: &[Topic], rows: &[Row], run: &Ours<'_>) {
    if topics.is_empty() {
        return;
    }
    page.raw("<div class=scroll tabindex=0 role=region aria-label=\"Published rows\"><table class=beside><thead><tr>");
    HEAD.iter().for_each(|head| page.add(format_args!("<th scope=col>{head}")));
    page.raw("</thead>\n");
    for topic in topics {
        let ours: Vec<_> = run.summary.cells.iter().filter(|cell| cell.blocks > 0 && is_of(cell, topic)).collect();
        group(page, topic, rows, &ours, run);
    }
    page.raw("</table></div>\n");
}

fn is_of(cell: &CellSummary, topic: &Topic) -> bool {
    let period = topic.period_us.as_ref().and_then(|us| us.parse::<u64>().ok()).and_then(|us| us.checked_mul(1_000));
    // A plan may call a load what it likes.
    let load = topic.our_load.as_ref().and_then(|load| load.parse::<Load>().ok());
    period.is_none_or(|ns| cell.cell.period.ns() == ns) && load.is_some_and(|load| stands_for(&cell.cell.load, &load))
}

/// What differs, before any number.
fn conditions(page: &mut Markup, about: &About, rows: &[Row], run: &Ours<'_>) {
    let host = run.summary.cells.iter().find_map(target).unwrap_or(&run.header.host);
    let started = humantime::format_rfc3339_seconds(super::unix(run.header.started_unix_ms)).to_string();
    let kernels: BTreeSet<_> = rows.iter().map(|row| row.kernel.as_str()).collect();
    let kernels = kernels.into_iter().collect::<Vec<_>>().join(", ");
    let unknown = || "not given".to_owned();
    let ours =
        super::host::named(host).into_iter().skip(usize::from(host.hostname.is_some())).collect::<Vec<_>>().join(", ");
    let kernels_here: BTreeSet<String> = run.summary.cells.iter().map(|cell| kernel(cell, run)).collect();
    let mut clocks: Vec<_> = run.summary.cells.iter().map(|cell| cell.cell.kernel.clock()).collect();
    clocks.sort_unstable();
    clocks.dedup();
    let times: Vec<_> = clocks.iter().map(|clock| time(*clock)).collect();
    let ours = if clocks.contains(&None) || clocks.is_empty() { ours } else { format!("QEMU, on {ours}") };
    page.raw("<table class=conditions><thead><tr><th scope=col>differs in<th scope=col>published<th scope=col>here</thead><tbody>\n");
    for (what, published, here) in [
        ("machine", about.machine.clone().unwrap_or_else(unknown), ours),
        ("year", about.year.clone().unwrap_or_else(unknown), started.get(..4).unwrap_or_default().to_owned()),
        ("kernel", kernels, kernels_here.into_iter().collect::<Vec<_>>().join(", ")),
        ("time", "real".to_owned(), times.join(", ")),
    ] {
        // Where nothing runs in a guest, time is nothing that differs.
        if what == "time" && published == here {
            continue;
        }
        page.add(format_args!("<tr><th scope=row>{what}<td>{}<td>{}\n", Text(published), Text(here)));
    }
    page.raw("</tbody></table>\n");
}

fn group(page: &mut Markup, topic: &Topic, rows: &[Row], ours: &[&CellSummary], run: &Ours<'_>) {
    let period = topic.period_us.as_ref().and_then(|us| us.parse::<f64>().ok()).map(|us| duration(us * 1e3));
    let period = period.map(|period| format!("{period}, ")).unwrap_or_default();
    let stand_in = match (&topic.our_load, ours.first()) {
        // As the study's table calls it, unless it is another one.
        (Some(load), Some(first)) if load.parse::<Load>().is_ok_and(|load| load.parts() == first.cell.load.parts()) => {
            format!(" (here: {load})")
        }
        (Some(_), Some(first)) => format!(" (here: {})", first.cell.load.label()),
        _ => String::new(),
    };
    page.add(format_args!(
        "<tbody><tr><th class=topic colspan={} scope=rowgroup>{}\n",
        HEAD.len(),
        Text(format!("{period}load {}{stand_in}", topic.load))
    ));
    let of_topic = |row: &&Row| row.load == topic.load && row.period_us == topic.period_us;
    for row in rows.iter().filter(of_topic) {
        let us = |text: &Option<String>| {
            text.as_ref().and_then(|us| us.parse::<f64>().ok()).map_or_else(dash, |us| duration(us * 1e3))
        };
        let plain =
            |text: &Option<String>| text.as_ref().map_or_else(dash, |n| n.parse().map_or_else(|_| n.clone(), count));
        let preemption = row.preemption.as_ref().filter(|model| !row.kernel.contains(model.as_str()));
        let preemption = preemption.map(|model| format!(" ({model})")).unwrap_or_default();
        let thread = row.thread.as_ref().map(|thread| format!(", thread {thread}")).unwrap_or_default();
        let machine = row.machine.as_ref().map(|machine| format!("{machine}: ")).unwrap_or_default();
        let values = [
            format!("{machine}{}{preemption}{thread}", row.kernel),
            row.policy.clone().unwrap_or_else(dash),
            plain(&row.samples),
            us(&row.min_us),
            us(&row.mean_us),
            us(&row.max_us),
            us(&row.stddev_us),
            plain(&row.overruns),
        ];
        page.raw("<tr>");
        values.iter().for_each(|value| page.add(format_args!("<td>{}", Text(value))));
        page.raw("\n");
    }
    for cell in ours {
        let virtually = if cell.cell.kernel.is_virtual() { ", virtual time" } else { "" };
        let missed = if cell.cell.method.is_relative() { dash() } else { count(cell.missed) };
        let values = [
            format!("here: {}{virtually}", kernel(cell, run)),
            cell.cell.policy.to_string(),
            count(cell.samples),
            cell.min_ns.map_or_else(dash, ns),
            cell.mean_ns.map_or_else(dash, duration),
            cell.max.map_or_else(dash, |max| format!("{}{}", if max.at_least { "> " } else { "" }, ns(max.latency_ns))),
            cell.stddev_ns.map_or_else(dash, duration),
            missed,
        ];
        page.raw("<tr class=ours>");
        values.iter().for_each(|value| page.add(format_args!("<td>{}", Text(value))));
        page.raw("\n");
    }
    page.raw("</tbody>\n");
}

/// The machine that answered, where one was started for that.
fn target(cell: &CellSummary) -> Option<&Host> {
    cell.response.as_ref()?.target.as_ref()?.host.as_deref()
}

/// The kernel of a cell: that of the machine, or of its guest.
fn kernel(cell: &CellSummary, run: &Ours<'_>) -> String {
    match &cell.cell.kernel {
        Kernel::Running => {
            target(cell).unwrap_or(&run.header.host).kernel_release.clone().unwrap_or_else(|| "unknown".to_owned())
        }
        lab @ Kernel::Lab(_) => lab.to_string(),
    }
}

/// What the times of cells are.
fn time(clock: Option<LabClock>) -> &'static str {
    match clock {
        None => "real",
        Some(LabClock::Virtual) => "virtual: an instruction counts as a nanosecond, nothing else takes time",
        Some(LabClock::Emulated) => "real, of an emulated machine: no latency of any hardware",
        Some(LabClock::Kvm) => "real, of a KVM guest",
    }
}

fn dash() -> String {
    "-".to_owned()
}
