//! Runs and imported measurements as one HTML page: tables, pictures, findings, machine and plan in one file.
//!
//! Pictures are inline SVG. The page is complete without its script, which loads nothing: it sorts and copies tables,
//! shows values under the pointer, and offers a linear axis. Foreign text, such as a plan's title, is escaped by
//! [`Text`].

mod axes;
mod columns;
mod comparison;
mod cost;
mod curves;
mod cyclictest;
mod details;
mod differences;
mod explained;
mod film;
mod history;
mod machine;
mod markup;
mod matrix;
mod overlay;
mod path;
mod pictures;
mod pivot;
mod published;
mod runs;
mod scale;
mod strip;
mod table;
mod top;
mod tune;

use super::sections::{Section, floor, imported, noise, phases, responses, threads, tracers, watched};
use super::{OwnRun, Results};
use crate::cells::{self, letter, members};
use crate::words::Counted;
use axes::Axes;
pub use film::film_svg;
pub use history::history_html;
use markup::{Markup, Prose, Text};
use matrix::Heat;
pub use pictures::Picture;
use punctual_analysis::RunSummary;
use punctual_analysis::comparison::Comparison;
use punctual_model::Study;
use runs::lettered;
use top::Top;
pub use tune::tune_html;

/// The most findings listed for a run. Those of its cells are in their details, too.
const FINDINGS: usize = 12;

/// Returns the page for one run, or for several side by side; empty for none: the answer, the picture that proves it,
/// the tables, and the rest folded.
pub fn html(runs: &[Results<'_>]) -> String {
    let tops: Vec<Top<'_>> = runs.iter().map(Results::top).collect();
    let Some(first) = tops.first() else { return String::new() };
    let members = members(runs);
    let curves = members.iter().filter_map(|member| member.curves.as_ref());
    let axes = Axes::around(curves, first.require, Counted::of(&members), cells::virtually(&members));
    let compared = comparison::of(runs);
    let mut body = Markup::default();
    let heat = matrix::heat(&members);
    proof(&mut body, runs, &members, (axes.as_ref(), heat), &compared);
    body.folded(REST, |body| {
        details::write(body, &members, axes.as_ref(), heat);
        conditions(body, runs);
        machine::write(body, runs);
        plans(body, runs);
    });
    let mut page = Markup::default();
    let titles: Vec<_> = tops.iter().map(|top| top.title.as_str()).collect();
    opening(&mut page, &titles.join("; "));
    if let Some(axes) = &axes {
        axes.define(&mut page, first.require);
    }
    page.raw("<main id=top>\n");
    match published::answer(runs) {
        Some(answer) => top::answer(&mut page, None, &answer),
        None if runs.len() > 1 => top::answer(&mut page, None, &comparison::answer(&compared)),
        None => {}
    }
    tops.iter().enumerate().for_each(|(index, top)| top::write(&mut page, top, letter(runs, index)));
    page.add(format_args!("<nav class=contents aria-label=Contents>\n{}</nav>\n", body.contents()));
    page.raw(&body.into_string());
    page.raw("</main>\n");
    foot(&mut page);
    page.into_string()
}

/// Returns the pictures of the page of these runs, in its order.
pub fn pictures(runs: &[Results<'_>]) -> Vec<Picture> {
    pictures::of(&html(runs))
}

/// The words of what is folded.
const REST: &str = "Everything else: details of each cell, machine, plan";

/// Writes the pictures that prove the answer, then the tables and findings.
fn proof(
    page: &mut Markup,
    runs: &[Results<'_>],
    members: &[cells::Member<'_>],
    (axes, heat): (Option<&Axes>, Option<Heat>),
    compared: &[Comparison],
) {
    let columns = columns::varying(members);
    // A run that repeats a study is read for the tables of that study.
    if studies(page, runs, true) {
        axes.iter().for_each(|axes| details::by_thread(page, members, axes));
    }
    differences::write(page, runs);
    if runs.len() > 1 {
        comparison::write(page, compared);
    }
    let are_explained = explained::write(page, runs);
    for (index, run) in runs::own(runs) {
        if let Some(threads) = watched::of(run.summary) {
            let accounts = |page: &mut Markup| explained::accounts(page, run.summary);
            table::section(page, &threads, &format!("watched{index}"), letter(runs, index), accounts);
        }
    }
    for (index, run) in runs::own(runs) {
        if let Some(all) = phases::of(run.summary) {
            let bars = |page: &mut Markup| explained::phases(page, run.summary);
            table::section(page, &all, &format!("phases{index}"), letter(runs, index), bars);
        }
    }
    topic(page, runs, "chain", watched::chains);
    let cells = |page: &mut Markup| {
        pivot::write(page, members, &columns, heat);
        axes.iter().for_each(|axes| overlay::write(page, members, axes));
        matrix::write(page, members, &columns, heat, runs.iter().all(|run| run.rows().is_empty()));
    };
    if !are_explained {
        cells(page);
    }
    film::write(page, runs);
    topic(page, runs, "noise", noise::of);
    topic(page, runs, "layers", floor::layers);
    topic(page, runs, "floor", floor::settings);
    topic(page, runs, "threads", threads::of);
    topic(page, runs, "responses", responses::of);
    topic(page, runs, "tracers", tracers::of);
    cost::write(page, runs);
    if runs.len() == 1 {
        comparison::write(page, compared);
    }
    findings(page, runs, !members.is_empty());
    if are_explained {
        page.folded("Latencies of all cells", cells);
    }
    studies(page, runs, false);
}

/// Writes a section for each own run with this topic.
fn topic(page: &mut Markup, runs: &[Results<'_>], id: &str, of: fn(&RunSummary) -> Option<Section>) {
    for (index, run) in runs::own(runs) {
        if let Some(topic) = of(run.summary) {
            table::section(page, &topic, &format!("{id}{index}"), letter(runs, index), |_| ());
        }
    }
}

/// Writes everything before the results.
fn opening(page: &mut Markup, title: &str) {
    page.add(format_args!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>{}</title>\n\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none';style-src 'unsafe-inline';\
         script-src 'unsafe-inline';img-src data:\">\n\
         <link rel=icon href=\"data:,\">\n<style>\n",
        Text(title)
    ));
    page.raw(include_str!("html/style.css"));
    page.raw("</style>\n<a class=skip href=#top>To the results</a>\n");
}

/// Writes the studies that the runs repeat, those with tables of their own or the others; returns whether there is one.
fn studies(page: &mut Markup, runs: &[Results<'_>], have_tables: bool) -> bool {
    let mut studied: Vec<(Study, usize, Vec<OwnRun<'_>>)> = Vec::new();
    for (index, run) in runs::own(runs) {
        let Some(study) = run.header.plan.study else { continue };
        if study.definition().tables.is_empty() == have_tables {
            continue;
        }
        // Rows of which only numbers are known stand beside each run.
        match studied.iter_mut().find(|known| known.0 == study).filter(|_| have_tables) {
            Some((.., together)) => together.push(*run),
            None => studied.push((study, index, vec![*run])),
        }
    }
    let is_any = !studied.is_empty();
    for (study, index, together) in studied {
        let letter = if together.len() > 1 { None } else { letter(runs, index) };
        published::write(page, study, &together, index, letter);
    }
    is_any
}

fn findings(page: &mut Markup, runs: &[Results<'_>], have_details: bool) {
    for (index, run) in runs.iter().enumerate() {
        let (sentences, more) = run.sentences(FINDINGS);
        if sentences.is_empty() {
            continue;
        }
        page.section(&format!("findings{index}"), "", "Findings", letter(runs, index));
        page.raw("<ul class=findings>\n");
        sentences.iter().for_each(|sentence| page.add(format_args!("<li>{}\n", Prose(sentence))));
        page.raw("</ul>\n");
        if more > 0 && have_details {
            page.add(format_args!("<p class=quiet>{more} more in the <a href=#parts>details of the cells</a>.</p>\n"));
        }
        page.raw("</section>\n");
    }
}

/// Writes the conditions of imported measurements; nothing on a page without one.
fn conditions(page: &mut Markup, runs: &[Results<'_>]) {
    let conditions = imported::conditions(runs::imported(runs));
    if !conditions.rows.is_empty() {
        page.section("conditions", "later", "Source files", None);
        table::numbers(page, "Files and conditions", "host", &conditions);
        page.raw("<p class=quiet>- is not known.</p>\n</section>\n");
    }
}

/// Writes the plan of each run, and the command that repeats it.
fn plans(page: &mut Markup, runs: &[Results<'_>]) {
    for (index, run) in runs::own(runs) {
        let letter = letter(runs, index);
        let file = letter
            .map_or_else(|| "plan.toml".to_owned(), |letter| format!("plan-{}.toml", letter.to_ascii_lowercase()));
        let header = run.header;
        let samples = if header.samples { " --samples" } else { "" };
        page.section(&format!("plan{index}"), "later", "Reproduce", letter);
        page.add(format_args!(
            "<p>Save the plan below as <code>{file}</code>, then run:</p>\n\
             <pre tabindex=0><code>punctual run {file} --seed {}{samples}</code></pre>\n\
             <p class=quiet>The seed gives the cells the same order in every block. Without it the order is another, which makes \
             the better second experiment.</p>\n",
            header.seed
        ));
        let skipped = u64::try_from(header.skipped.len()).unwrap_or(u64::MAX);
        if skipped > 0 {
            page.add(format_args!(
                "<p>{} of the plan could not be measured here; see the <a href=#findings{index}>findings</a>.</p>\n",
                punctual_analysis::wording::things(skipped, "combination")
            ));
        }
        page.add(format_args!("<h3>Plan</h3>\n<pre tabindex=0><code>{}</code></pre>\n", Text(header.plan.to_toml())));
        page.raw("</section>\n");
    }
}

fn foot(page: &mut Markup) {
    page.add(format_args!(
        "<footer><p>Made by {} from recorded measurements; every number is computed again whenever the page is made.</p></footer>\n\
         <div id=tip role=status hidden></div>\n<script>\n",
        Text(punctual_model::TOOL)
    ));
    page.raw(include_str!("html/script.js"));
    page.raw("</script>\n</html>\n");
}

#[cfg(test)]
mod tests;
