//! The machine: what it is, what changed on it, what it did meanwhile, and what was set for the cells.

use super::markup::{Markup, Text};
use super::{Ours, Shown, shown};
use crate::report::intensity;
use analysis::facts;
use model::Host;
use std::collections::{BTreeMap, BTreeSet};

/// Runs with more cells have no table of what went on: it would say the same as the parts.
const ROWS: usize = 200;

pub(super) fn write(page: &mut Markup, runs: &[Shown<'_>]) {
    for (index, run) in shown::ours(runs) {
        meanwhile(page, run, &heading(runs, index));
    }
    page.raw("<section id=machine class=later>\n<h2>The machine</h2>\n");
    facts_of_all(page, runs);
    for (index, run) in shown::ours(runs) {
        prepared(page, run, &heading(runs, index));
    }
    page.raw("</section>\n");
}

/// One row for each fact; those that changed, or differ between the runs, come first.
fn facts_of_all(page: &mut Markup, runs: &[Shown<'_>]) {
    let later: Vec<_> = shown::ours(runs).map(|(_, run)| changes(run)).collect();
    let columns = columns(runs);
    if columns.is_empty() {
        page.raw("<p>The files say nothing about it.</p>\n");
        return;
    }
    let mut rows: Vec<Fact<'_>> = facts::names()
        .enumerate()
        .map(|(index, name)| {
            let values: Vec<_> =
                columns.iter().map(|column| column.facts.get(index).and_then(Option::as_deref)).collect();
            let became = later.iter().filter_map(|changes| changes.get(name)).flatten().map(String::as_str).collect();
            // What one of them does not say is no difference.
            let of_runs = values.iter().zip(&columns).filter(|(_, column)| !column.is_target);
            let differs = of_runs.filter_map(|(value, _)| *value).collect::<BTreeSet<_>>().len() > 1;
            Fact { name, values, became, differs }
        })
        .filter(|fact| !fact.became.is_empty() || fact.values.iter().any(Option::is_some))
        .collect();
    rows.sort_by_key(|fact| fact.became.is_empty() && !fact.differs);
    let is_marked = rows.first().is_some_and(|fact| fact.differs || !fact.became.is_empty());
    if !later.is_empty() && rows.iter().all(|fact| fact.became.is_empty()) {
        page.raw("<p>Nothing of this changed while it was measured.</p>\n");
    }
    page.raw("<div class=scroll tabindex=0 role=region aria-label=\"Facts about the machine\"><table class=host><thead><tr><th scope=col>fact");
    columns.iter().for_each(|column| page.add(format_args!("<th scope=col>{}", Text(&column.head))));
    page.raw(if is_marked { "<th scope=col>changed</thead><tbody>\n" } else { "</thead><tbody>\n" });
    for fact in rows {
        let class = if fact.became.is_empty() && !fact.differs { "" } else { " class=changed" };
        page.add(format_args!("<tr{class}><th scope=row>{}", Text(fact.name)));
        fact.values.iter().for_each(|value| page.add(format_args!("<td>{}", Text(value.unwrap_or("unknown")))));
        if is_marked {
            page.raw("<td>");
        }
        if fact.differs {
            page.raw("<b>differs between the runs</b> ");
        }
        if !fact.became.is_empty() {
            page.add(format_args!("<b>became</b> {}", Text(fact.became.join(", then "))));
        }
        page.raw("\n");
    }
    page.raw("</tbody></table></div>\n");
}

/// What is known of one machine.
struct Column {
    head: String,
    facts: Vec<Option<String>>,
    /// Whether it is of a target, which is another machine than that of its run.
    is_target: bool,
}

/// A column for each run, and for each machine that imported files describe.
fn columns(runs: &[Shown<'_>]) -> Vec<Column> {
    let mut columns = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let letter = super::letter(runs, index).map(|letter| format!("{letter} ")).unwrap_or_default();
        match run {
            Shown::Ours(run) => {
                let head = if letter.is_empty() { "at the start".to_owned() } else { format!("{letter}{}", run.name) };
                columns.push(Column { head, facts: facts::all(&run.header.host).collect(), is_target: false });
                let targets = run.summary.cells.iter().filter_map(|cell| cell.response.as_ref()?.target.as_ref());
                let mut hosts: Vec<&Host> = targets.filter_map(|target| target.host.as_deref()).collect();
                hosts.dedup_by(|a, b| facts::all(a).eq(facts::all(b)));
                columns.extend(hosts.into_iter().map(|host| Column {
                    head: format!("{letter}target"),
                    facts: facts::all(host).collect(),
                    is_target: true,
                }));
            }
            Shown::Imported(run) => {
                let mut hosts: Vec<(&Host, Vec<&str>)> = Vec::new();
                for cell in &run.summary.cells {
                    match hosts.iter_mut().find(|(host, _)| **host == cell.imported.host) {
                        Some((_, names)) => names.push(&cell.name),
                        None => hosts.push((&cell.imported.host, vec![&cell.name])),
                    }
                }
                let column = |(host, names): (&Host, Vec<&str>)| Column {
                    head: format!("{letter}{}", names.join(", ")),
                    facts: facts::told(host),
                    is_target: false,
                };
                columns.extend(hosts.into_iter().map(column));
            }
        }
    }
    columns.retain(|column| column.facts.iter().any(Option::is_some));
    columns
}

/// A fact about the machines of all runs.
struct Fact<'a> {
    name: &'static str,
    /// At the start of each run; `None`: unknown.
    values: Vec<Option<&'a str>>,
    /// What it was later.
    became: Vec<&'a str>,
    /// Whether the runs began with different values.
    differs: bool,
}

fn heading(runs: &[Shown<'_>], index: usize) -> String {
    super::letter(runs, index).map(|letter| format!(" <b class=run>{letter}</b>")).unwrap_or_default()
}

/// What the loads did, and how busy the machine was.
fn meanwhile(page: &mut Markup, run: &Ours<'_>, letter: &str) {
    let measured: Vec<_> = run.summary.cells.iter().filter(|cell| cell.blocks > 0).collect();
    if measured.is_empty() || measured.len() > ROWS {
        return;
    }
    page.add(format_args!("<section class=later>\n<h2>Meanwhile{letter}</h2>\n"));
    page.raw(
        "<div class=scroll tabindex=0 role=region aria-label=\"What the loads did\"><table class=host><thead><tr>",
    );
    intensity::HEAD.iter().for_each(|head| page.add(format_args!("<th scope=col>{}", Text(head))));
    page.raw("</thead><tbody>\n");
    for row in measured.into_iter().flat_map(intensity::rows) {
        let [name, rest @ ..] = row;
        page.add(format_args!("<tr><th scope=row>{}", Text(name)));
        rest.iter().for_each(|value| page.add(format_args!("<td>{}", Text(value))));
        page.raw("\n");
    }
    page.raw("</tbody></table></div></section>\n");
}

/// Settings that were changed for the cells, each once.
fn prepared(page: &mut Markup, run: &Ours<'_>, letter: &str) {
    let mut settings: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for setting in run.entries.iter().flat_map(|entry| &entry.record.prepared) {
        settings.entry(&setting.what).or_default().insert((&setting.before, &setting.during));
    }
    if settings.is_empty() {
        return;
    }
    page.add(format_args!("<h3>Set for each cell, and put back{letter}</h3>\n<table class=host><tbody>\n"));
    for (what, values) in settings {
        let values: Vec<_> = values.iter().map(|(before, during)| format!("{before} -> {during}")).collect();
        page.add(format_args!("<tr><th scope=row>{}<td>{}\n", Text(what), Text(values.join("; "))));
    }
    page.raw("</tbody></table>\n");
}

/// What facts became later, each other value once, in the order of time.
fn changes(run: &Ours<'_>) -> BTreeMap<&'static str, Vec<String>> {
    let start = &run.header.host;
    let mut last = start;
    let mut changes: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let here = run.entries.iter().filter(|entry| !entry.record.cell.roles.is_logged_elsewhere());
    for host in here.flat_map(|entry| [&entry.record.host_before, &entry.record.host_after]) {
        // Thousands of records have the same machine.
        if **host == *last {
            continue;
        }
        last = host;
        for (name, _, now) in facts::changes(start, host, &run.header.plan.prepare, &run.header.plan.roles) {
            let values = changes.entry(name).or_default();
            values.extend(now.filter(|now| !values.contains(now)));
        }
    }
    changes
}
