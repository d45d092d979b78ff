//! Runs and imported measurements as one page that can be mailed: table, pictures, findings, machine, plan, all in one file.
//!
//! Pictures are SVG written here. The page works without its script, which only sorts the table and shows values under
//! the pointer; nothing is ever loaded. Whatever comes from outside, such as a plan's title, goes through [`Text`].

mod axes;
mod cells;
mod comparison;
mod cost;
mod curves;
mod details;
mod differences;
mod explained;
mod machine;
mod markup;
mod matrix;
mod overlay;
mod path;
mod published;
mod runs;
mod scale;
mod strip;
mod table;

use super::sections::{Section, imported, responses, tracers};
use super::{OwnRun, Results};
use analysis::{RunSummary, Verdict};
use axes::Axes;
use cells::{counted, members};
use markup::{Markup, Prose, Text};
use runs::{Top, badge, letter, lettered};

/// Findings listed for a run; those of a cell are in its part.
const FINDINGS: usize = 12;

/// The page for one run, or for several beside each other; empty for none.
pub fn html(runs: &[Results<'_>]) -> String {
    let tops: Vec<Top<'_>> = runs.iter().map(Results::top).collect();
    let Some(first) = tops.first() else { return String::new() };
    let members = members(runs);
    let curves = members.iter().filter_map(|member| member.curves.as_ref());
    let axes = Axes::around(curves, first.require, counted(&members), cells::virtually(&members));
    let mut page = Markup::default();
    head(&mut page, &tops);
    if let Some(axes) = &axes {
        axes.define(&mut page, first.require);
    }
    page.raw("<main>\n");
    let asked = tops.iter().zip(runs).enumerate();
    asked.for_each(|(index, (top, run))| question(&mut page, top, run.verdict(), letter(runs, index)));
    differences::write(&mut page, runs);
    matrix::write(&mut page, &members);
    let by_cpu = axes.as_ref().map(|axes| overlay::write(&mut page, &members, axes)).unwrap_or_default();
    explained::write(&mut page, runs);
    topic(&mut page, runs, responses::of);
    topic(&mut page, runs, tracers::of);
    cost::write(&mut page, runs);
    comparison::write(&mut page, runs);
    findings(&mut page, runs);
    published_rows(&mut page, runs);
    details::write(&mut page, &members, axes.as_ref(), &by_cpu);
    conditions(&mut page, runs);
    machine::write(&mut page, runs);
    plans(&mut page, runs);
    page.raw("</main>\n");
    foot(&mut page, tops.iter().all(|top| top.is_virtual));
    page.into_string()
}

/// A section for each own run that has this topic.
fn topic(page: &mut Markup, runs: &[Results<'_>], of: fn(&RunSummary) -> Option<Section>) {
    for (index, run) in runs::own(runs) {
        if let Some(topic) = of(run.summary) {
            table::section(page, &topic, &badge(runs, index), |_| ());
        }
    }
}

fn head(page: &mut Markup, tops: &[Top<'_>]) {
    let titles: Vec<_> = tops.iter().map(|top| top.title.as_str()).collect();
    page.add(format_args!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>{}</title>\n\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none';style-src 'unsafe-inline';\
         script-src 'unsafe-inline';img-src data:\">\n\
         <link rel=icon href=\"data:,\">\n<style>\n",
        Text(titles.join("; "))
    ));
    page.raw(include_str!("html/style.css"));
    page.raw("</style>\n<a class=skip href=#cells>To the table</a>\n");
}

/// The question, and the answer in a sentence.
fn question(page: &mut Markup, top: &Top<'_>, verdict: &Verdict, letter: Option<char>) {
    let title = Text(&top.title);
    page.raw("<header>\n");
    match letter {
        None => page.add(format_args!("<h1>{title}</h1>\n")),
        Some(letter) => {
            page.add(format_args!("<h1><b class=run>{letter}</b> {title} <small>{}</small></h1>\n", Text(top.name)));
        }
    }
    let class = match verdict {
        Verdict::NoneAsked => "",
        Verdict::Pass { .. } => "pass",
        Verdict::Fail { .. } => "fail",
        Verdict::NotShown { .. } => "open",
    };
    let word = verdict.word();
    if !word.is_empty() {
        let sentence = verdict.sentence();
        let reason = sentence.strip_prefix(word).unwrap_or_default().trim_start_matches([':', ' ']);
        page.add(format_args!("<p class=\"verdict {class}\"><strong>{word}</strong> {}</p>\n", Prose(reason)));
    }
    page.add(format_args!("<p class=answer>{}</p>\n", Text(&top.answer)));
    page.raw("<ul class=facts>");
    top.facts.iter().for_each(|fact| page.add(format_args!("<li>{}", Text(fact))));
    page.add(format_args!("</ul>\n<p class=quiet>{}.</p>\n</header>\n", Text(&top.extent)));
}

fn published_rows(page: &mut Markup, runs: &[Results<'_>]) {
    for (index, run) in runs::own(runs) {
        if let Some(study) = run.header.plan.study {
            published::write(page, study, run, &badge(runs, index));
        }
    }
}

fn findings(page: &mut Markup, runs: &[Results<'_>]) {
    for (index, run) in runs.iter().enumerate() {
        let (sentences, more) = run.sentences(FINDINGS);
        if sentences.is_empty() {
            continue;
        }
        let badge = badge(runs, index);
        page.add(format_args!("<section id=findings{index}>\n<h2>What stands out{badge}</h2>\n<ul class=findings>\n"));
        sentences.iter().for_each(|sentence| page.add(format_args!("<li>{}\n", Prose(sentence))));
        page.raw("</ul>\n");
        if more > 0 {
            page.add(format_args!("<p class=quiet>{more} more, in the parts of the cells.</p>\n"));
        }
        page.raw("</section>\n");
    }
}

/// Under which conditions imported measurements were made; nothing on a page without one.
fn conditions(page: &mut Markup, runs: &[Results<'_>]) {
    let conditions = imported::conditions(runs::imported(runs));
    if !conditions.rows.is_empty() {
        page.raw("<section id=conditions class=later>\n<h2>Where it comes from</h2>\n");
        table::numbers(page, "Files and conditions", "host", &conditions);
        page.raw("<p class=quiet>- is not known.</p>\n</section>\n");
    }
}

/// The plan of each run, and how to run it again.
fn plans(page: &mut Markup, runs: &[Results<'_>]) {
    for (index, run) in runs::own(runs) {
        let letter = letter(runs, index);
        let file = letter
            .map_or_else(|| "plan.toml".to_owned(), |letter| format!("plan-{}.toml", letter.to_ascii_lowercase()));
        let header = run.header;
        let samples = if header.samples { " --samples" } else { "" };
        page.add(format_args!(
            "<section class=later>\n<h2>Again{}</h2>\n<p>Save the plan as <code>{file}</code>, then:</p>\n\
             <pre tabindex=0><code>punctual run {file} --seed {}{samples}</code></pre>\n\
             <p class=quiet>The seed gives the cells the same order in every block. Leave it out for another order, which is the \
             better second experiment.</p>\n",
            badge(runs, index),
            header.seed
        ));
        if !header.skipped.is_empty() {
            page.add(format_args!(
                "<p>{} combinations of the plan could not be measured here; see what stands out.</p>\n",
                header.skipped.len()
            ));
        }
        page.add(format_args!("<pre tabindex=0><code>{}</code></pre>\n", Text(header.plan.to_toml())));
        page.raw("</section>\n");
    }
}

fn foot(page: &mut Markup, is_virtual: bool) {
    // Measured again in virtual time, everything is the same to the bit.
    let bound = if is_virtual {
        ""
    } else {
        " A maximum is no bound: measured as long again, it is exceeded with a chance of one half."
    };
    page.add(format_args!(
        "<footer><p>Made by {} from what was recorded; every number is computed from it again whenever the page is \
         made.{bound}</p></footer>\n\
         <div id=tip role=status hidden></div>\n<script>\n",
        Text(model::TOOL)
    ));
    page.raw(include_str!("html/script.js"));
    page.raw("</script>\n</html>\n");
}

#[cfg(test)]
mod tests;
