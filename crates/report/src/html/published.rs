//! Published rows of the study that a run repeats, next to the run's own, without a ranking.

use super::markup::{Markup, Text};
use super::matrix::{max, mean, ns};
use super::table::{numbers, table as framed_table};
use super::{OwnRun, Results, runs};
use crate::published::{self, Row as PublishedRow};
use crate::sections::latencies::dash;
use crate::study;
use punctual_analysis::wording::{count, duration};
use punctual_analysis::{Answer, CellSummary, Row};
use punctual_model::{Host, Kernel, LabClock, Load, Study, StudyDefinition, stands_for};
use std::collections::BTreeSet;

const HEAD: [&str; 8] = ["kernel", "policy", "samples", "min", "mean", "max", "sd", "missed"];

/// A group of rows: cells with the same period and a load of the same kind.
#[derive(PartialEq)]
struct Topic<'a> {
    load: &'a str,
    our_load: Option<&'a str>,
    period_us: Option<&'a str>,
}

impl<'a> Topic<'a> {
    fn of(row: &'a PublishedRow) -> Topic<'a> {
        Topic { load: row.text("load"), our_load: row.get("our_load"), period_us: row.get("period_us") }
    }
}

/// The answer of the study that all these runs repeat; `None` unless its conclusions can be judged.
pub(super) fn answer(runs: &[Results<'_>]) -> Option<Answer> {
    let own: Vec<OwnRun<'_>> = runs::own(runs).map(|(_, run)| *run).collect();
    let study = own.first()?.header.plan.study?;
    let is_judged = !study.definition().tables.is_empty() && own.iter().all(|run| run.header.plan.study == Some(study));
    (Study::ARE_KNOWN && is_judged && own.len() == runs.len()).then(|| study::of_runs(study, &own, Vec::new()).answer)
}

/// Writes the study of runs: its tables and conclusions, or the published rows beside those of the first run where only
/// numbers are known.
pub(super) fn write(page: &mut Markup, study: Study, runs: &[OwnRun<'_>], index: usize, letter: Option<char>) {
    let Some(first) = runs.first().filter(|_| Study::ARE_KNOWN) else { return };
    let (about, rows) = (study.definition(), published::rows(study));
    let title = if about.tables.is_empty() { "Published results" } else { "Published study" };
    page.section(&format!("published{index}"), "later", title, letter);
    page.add(format_args!("<p><b>{}.</b> {}. {}.</p>\n", Text(&about.title), Text(&about.source), Text(&about.note)));
    conditions(page, about, &rows, first);
    if about.tables.is_empty() {
        by_topic(page, &rows, first);
    } else {
        filled(page, study, runs);
    }
    page.raw(
        "<p class=quiet>Machines, kernels, loads and lengths of measurement differ: do not rank the rows.</p>\n</section>\n",
    );
}

/// Writes the study's own tables, and its conclusions with their verdicts.
fn filled(page: &mut Markup, study: Study, runs: &[OwnRun<'_>]) {
    let report = study::of_runs(study, runs, Vec::new());
    page.raw("<h3>Conclusions</h3>\n<dl class=conclusions>\n");
    for judgment in &report.conclusions {
        page.add(format_args!(
            "<dt>{}: <b>{}</b><dd>{}\n",
            Text(&judgment.says),
            judgment.verdict.words(),
            Text(&judgment.why)
        ));
    }
    page.raw("</dl>\n");
    for (title, table) in report.tables() {
        page.add(format_args!("<h3>{}</h3>\n", Text(title)));
        numbers(page, title, "study", &table);
    }
    report.notes().iter().for_each(|note| page.add(format_args!("<p class=quiet>{}</p>\n", Text(note))));
}

/// Writes the groups of rows; those without a cell here are folded.
fn by_topic(page: &mut Markup, rows: &[PublishedRow], run: &OwnRun<'_>) {
    let mut topics: Vec<Topic<'_>> = Vec::new();
    for topic in rows.iter().map(Topic::of) {
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    let measured = |topic: &Topic<'_>| run.summary.cells.iter().any(|cell| cell.blocks > 0 && is_of(cell, topic));
    let (both, theirs): (Vec<_>, Vec<_>) = topics.into_iter().partition(measured);
    table(page, &both, rows, run);
    if !theirs.is_empty() {
        page.add(format_args!(
            "<details><summary>{} more published groups without a cell here</summary>\n",
            theirs.len()
        ));
        table(page, &theirs, rows, run);
        page.raw("</details>\n");
    }
}

fn table(page: &mut Markup, topics: &[Topic<'_>], rows: &[PublishedRow], run: &OwnRun<'_>) {
    if topics.is_empty() {
        return;
    }
    framed_table(page, "Published rows", "beside", HEAD, |page| {
        for topic in topics {
            let all = Row::of_run(run.header, &run.summary.cells, &run.summary.cell_findings).into_iter();
            let ours = all.filter_map(|row| Some((row.own()?, row)));
            let ours: Vec<_> = ours.filter(|(cell, _)| cell.blocks > 0 && is_of(cell, topic)).collect();
            group(page, topic, rows, &ours, run);
        }
    });
}

fn is_of(cell: &CellSummary, topic: &Topic<'_>) -> bool {
    let period = topic.period_us.and_then(|us| us.parse::<u64>().ok()).and_then(|us| us.checked_mul(1_000));
    // Names of loads in a plan are free.
    let load = topic.our_load.and_then(|load| load.parse::<Load>().ok());
    period.is_none_or(|ns| cell.cell.period.ns() == ns) && load.is_some_and(|load| stands_for(&cell.cell.load, &load))
}

/// Writes the conditions that differ, before any number.
fn conditions(page: &mut Markup, about: &StudyDefinition, rows: &[PublishedRow], run: &OwnRun<'_>) {
    let host = run.summary.cells.iter().find_map(target).unwrap_or(&run.header.host);
    let started = crate::rfc3339(run.header.started_unix_ms);
    let kernels = listed(rows.iter().map(|row| row.text("kernel").to_owned()));
    let given = |fact: Option<String>| fact.unwrap_or_else(|| "not given".to_owned());
    let ours = crate::sections::machine::named(host)
        .into_iter()
        .skip(usize::from(host.hostname.is_some()))
        .collect::<Vec<_>>()
        .join(", ");
    let kernels_here = run.summary.cells.iter().map(|cell| kernel(cell, run));
    let mut clocks: Vec<_> = run.summary.cells.iter().map(|cell| cell.cell.kernel.clock()).collect();
    clocks.sort_unstable();
    clocks.dedup();
    let loads_here = run.summary.cells.iter().map(|cell| cell.cell.load.label());
    let threads = rows.iter().filter_map(|row| row.get("thread")).collect::<BTreeSet<_>>().len();
    let threads = if threads > 0 { threads.to_string() } else { String::new() };
    let cpus_here = run.summary.cells.iter().map(|cell| cell.cell.cpus.len().to_string());
    let times: Vec<_> = clocks.iter().map(|clock| time(*clock)).collect();
    let ours = if clocks.contains(&None) || clocks.is_empty() { ours } else { format!("QEMU, on {ours}") };
    page.raw("<table class=conditions><thead><tr><th scope=col>differs in<th scope=col>published<th scope=col>here</thead><tbody>\n");
    for (what, published, here) in [
        ("machine", given(about.machine.clone()), ours),
        ("year", given(about.year.map(|year| year.to_string())), started.get(..4).unwrap_or_default().to_owned()),
        ("kernel", kernels, listed(kernels_here)),
        ("load", listed(rows.iter().map(|row| row.text("load").to_owned())), listed(loads_here)),
        ("CPUs", threads, listed(cpus_here)),
        ("time", "real".to_owned(), times.join("; ")),
    ] {
        if published == here || published.is_empty() {
            continue;
        }
        page.add(format_args!("<tr><th scope=row>{what}<td>{}<td>{}\n", Text(published), Text(here)));
    }
    page.raw("</tbody></table>\n");
}

/// These texts, each once.
fn listed(all: impl Iterator<Item = String>) -> String {
    let all: BTreeSet<String> = all.filter(|text| !text.is_empty()).collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

fn group(
    page: &mut Markup,
    topic: &Topic<'_>,
    rows: &[PublishedRow],
    ours: &[(&CellSummary, Row<'_>)],
    run: &OwnRun<'_>,
) {
    let period = topic.period_us.and_then(|us| us.parse::<f64>().ok()).map(|us| duration(us * 1e3));
    let period = period.map(|period| format!("{period}, ")).unwrap_or_default();
    let stand_in = match (topic.our_load, ours.first().map(|(cell, _)| cell)) {
        // The study's own name, unless the load is another.
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
    let of_topic = |row: &&PublishedRow| row.text("load") == topic.load && row.get("period_us") == topic.period_us;
    for row in rows.iter().filter(of_topic) {
        let us =
            |column| row.get(column).and_then(|us| us.parse::<f64>().ok()).map_or_else(dash, |us| duration(us * 1e3));
        let plain = |column| row.get(column).map_or_else(dash, |n| n.parse().map_or_else(|_| n.to_owned(), count));
        let kernel = row.text("kernel");
        let preemption = row.get("preemption").filter(|model| !kernel.contains(model));
        let preemption = preemption.map(|model| format!(" ({model})")).unwrap_or_default();
        let thread = row.get("thread").map(|thread| format!(", thread {thread}")).unwrap_or_default();
        let machine = row.get("machine").map(|machine| format!("{machine}: ")).unwrap_or_default();
        let [min, mean, max, stddev] = ["min_us", "mean_us", "max_us", "stddev_us"].map(us);
        let policy = row.get("policy").map_or_else(dash, str::to_owned);
        let name = format!("{machine}{kernel}{preemption}{thread}");
        fields(page, "", &[name, policy, plain("samples"), min, mean, max, stddev, plain("overruns")]);
    }
    for (cell, row) in ours {
        let virtually = if cell.cell.kernel.is_virtual() { ", virtual time" } else { "" };
        let values = [
            format!("here: {}{virtually}", kernel(cell, run)),
            cell.cell.policy.to_string(),
            count(cell.samples),
            row.min_ns.map_or_else(dash, ns),
            mean(row).unwrap_or_else(dash),
            max(row).unwrap_or_else(dash),
            row.stddev_ns.map_or_else(dash, duration),
            row.missed.map_or_else(dash, count),
        ];
        fields(page, " class=ours", &values);
    }
    page.raw("</tbody>\n");
}

/// Writes a row without a head.
pub(super) fn fields(page: &mut Markup, class: &str, values: &[String]) {
    page.add(format_args!("<tr{class}>"));
    values.iter().for_each(|value| page.add(format_args!("<td>{}", Text(value))));
    page.raw("\n");
}

/// Returns the machine that answered, where one was started for that.
fn target(cell: &CellSummary) -> Option<&Host> {
    cell.response.as_ref()?.target.as_ref()?.host.as_deref()
}

/// Returns the kernel of a cell: that of the machine, or of its guest.
fn kernel(cell: &CellSummary, run: &OwnRun<'_>) -> String {
    match &cell.cell.kernel {
        Kernel::Running => {
            target(cell).unwrap_or(&run.header.host).kernel_release.clone().unwrap_or_else(|| "unknown".to_owned())
        }
        named @ (Kernel::Installed(_) | Kernel::Lab(_)) => named.to_string(),
    }
}

/// Returns the kind of time of cells.
fn time(clock: Option<LabClock>) -> &'static str {
    match clock {
        None => "real",
        Some(LabClock::Virtual) => "virtual: an instruction counts as a nanosecond, nothing else takes time",
        Some(LabClock::Emulated) => "real, of an emulated machine: no latency of any hardware",
        Some(LabClock::Kvm) => "real, of a KVM guest",
    }
}
