//! The machine: its facts, their changes, load and CPU use, and settings of the cells.

use super::markup::{Markup, Text};
use super::table::{numbers, table};
use super::{Results, letter, runs};
use crate::sections::intensity;
use crate::sections::machine::{self, Fact, Machine};

/// Cells of the largest run with a table of load and CPU use.
const ROWS: usize = 200;

pub(super) fn write(page: &mut Markup, runs: &[Results<'_>]) {
    for (index, run) in runs::own(runs) {
        let measured = run.summary.cells.iter().filter(|cell| cell.blocks > 0).count();
        if (1..=ROWS).contains(&measured) {
            page.section(&format!("load{index}"), "later", "Load and CPU", letter(runs, index));
            numbers(page, "Load rates and CPU use", "host", &intensity::table(run.summary));
            page.raw("</section>\n");
        }
    }
    page.section("machine", "later", "Machine", None);
    if runs::own(runs).any(|(_, run)| run.header.is_virtual()) {
        page.raw("<p>Guests in virtual time ran on this machine; their latencies do not depend on it.</p>\n");
    }
    facts_of_all(page, runs);
    for (index, run) in runs::own(runs) {
        let settings = machine::settings(run.entries);
        if settings.is_empty() {
            continue;
        }
        let letter = letter(runs, index).map(|letter| format!(" {letter}")).unwrap_or_default();
        page.add(format_args!(
            "<h3>Settings during cells, restored afterwards{letter}</h3>\n<table class=host><tbody>\n"
        ));
        for (what, values) in settings {
            page.add(format_args!("<tr><th scope=row>{}<td>{}\n", Text(what), Text(values)));
        }
        page.raw("</tbody></table>\n");
    }
    page.raw("</section>\n");
}

/// Writes one row for each fact; those that changed, or differ between the runs, come first.
fn facts_of_all(page: &mut Markup, runs: &[Results<'_>]) {
    let machines: Vec<Machine> =
        runs.iter().enumerate().flat_map(|(index, run)| of_run(run, letter(runs, index))).collect();
    let changes: Vec<_> = runs::own(runs).map(|(_, run)| machine::changes(run.header, run.entries)).collect();
    if machines.is_empty() {
        page.raw("<p>The files hold no facts about it.</p>\n");
        return;
    }
    let facts = machine::facts(&machines, &changes);
    let is_marked = facts.first().is_some_and(Fact::is_marked);
    if !changes.is_empty() && facts.iter().all(|fact| fact.became.is_empty()) {
        page.raw("<p>None of these facts changed during the run.</p>\n");
    }
    let heads = machines.iter().map(|machine| machine.head.as_str());
    let heads = std::iter::once("fact").chain(heads).chain(is_marked.then_some("changed"));
    table(page, "Facts about the machine", "host", heads, |page| {
        facts.iter().for_each(|fact| fact_row(page, fact, is_marked));
    });
}

/// Returns the machines of one run.
fn of_run(run: &Results<'_>, letter: Option<char>) -> Vec<Machine> {
    let letter = letter.map(|letter| format!("{letter} ")).unwrap_or_default();
    match run {
        Results::Own(run) => {
            let head = if letter.is_empty() { "at the start".to_owned() } else { format!("{letter}{}", run.name) };
            machine::of_run(head, &format!("{letter}target"), run.header, run.summary)
        }
        Results::Imported(run) => machine::of_imported(&letter, run.summary),
    }
}

fn fact_row(page: &mut Markup, fact: &Fact<'_>, is_marked: bool) {
    let class = if fact.is_marked() { " class=changed" } else { "" };
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
