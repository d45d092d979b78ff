//! Runs and imported measurements as one page that can be mailed: table, pictures, findings, machine, plan, all in one file.
//!
//! Pictures are SVG written here. The page works without its script, which only sorts the table and shows values under
//! the pointer; nothing is ever loaded. Whatever comes from outside, such as a plan's title, goes through [`Text`].

mod asked;
mod axes;
mod beside;
mod cells;
mod compared;
mod cost;
mod explained;
mod groups;
mod imported;
mod joined;
mod machine;
mod markup;
mod matrix;
mod part;
mod path;
mod pictures;
mod responses;
mod scale;
mod shown;
mod strip;
mod tracers;

use super::host;
use analysis::Verdict;
use axes::Axes;
use cells::{counted, members};
use markup::{Markup, Prose, Text};
pub(crate) use shown::{Imports, Ours, Shown};

/// Findings listed for a run; those of a cell are in its part.
const FINDINGS: usize = 12;

/// The page for one run, or for several beside each other; empty for none.
pub(crate) fn html(runs: &[Shown<'_>]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let members = members(runs);
    let curves = members.iter().filter_map(|member| member.curves.as_ref());
    let axes = Axes::around(curves, first.require(), counted(&members), cells::virtually(&members));
    let mut page = Markup::default();
    head(&mut page, runs);
    if let Some(axes) = &axes {
        axes.define(&mut page, first.require());
    }
    page.raw("<main>\n");
    runs.iter().enumerate().for_each(|(index, run)| question(&mut page, run, letter(runs, index)));
    joined::write(&mut page, runs);
    matrix::write(&mut page, &members);
    let by_cpu = axes.as_ref().map(|axes| groups::write(&mut page, &members, axes)).unwrap_or_default();
    explained::write(&mut page, runs);
    responses::write(&mut page, runs);
    tracers::write(&mut page, runs);
    cost::write(&mut page, runs);
    compared::write(&mut page, runs);
    findings(&mut page, runs);
    published_rows(&mut page, runs);
    part::write(&mut page, &members, axes.as_ref(), &by_cpu);
    imported::write(&mut page, runs);
    machine::write(&mut page, runs);
    asked::write(&mut page, runs);
    page.raw("</main>\n");
    foot(&mut page);
    page.into_string()
}

/// What tells the cells of several runs apart; nothing when there is one.
fn letter(runs: &[Shown<'_>], index: usize) -> Option<char> {
    let letter = u8::try_from(index).ok().and_then(|index| b'A'.checked_add(index)).filter(u8::is_ascii_uppercase);
    (runs.len() > 1).then(|| letter.map_or('?', char::from))
}

fn head(page: &mut Markup, runs: &[Shown<'_>]) {
    let titles: Vec<_> = runs.iter().map(Shown::title).collect();
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
fn question(page: &mut Markup, run: &Shown<'_>, letter: Option<char>) {
    page.raw("<header>\n");
    match letter {
        None => page.add(format_args!("<h1>{}</h1>\n", Text(run.title()))),
        Some(letter) => {
            page.add(format_args!(
                "<h1><b class=run>{letter}</b> {} <small>{}</small></h1>\n",
                Text(run.title()),
                Text(run.name())
            ));
        }
    }
    let verdict = run.verdict().to_string();
    let (word, class) = match run.verdict() {
        Verdict::NoneAsked => ("", ""),
        Verdict::Pass { .. } => ("PASS", "pass"),
        Verdict::Fail { .. } => ("FAIL", "fail"),
        Verdict::NotShown { .. } => ("NOT SHOWN", "open"),
    };
    if !word.is_empty() {
        let reason = verdict.split_once(word).map_or("", |(_, reason)| reason).trim_start_matches([':', ' ']);
        page.add(format_args!("<p class=\"verdict {class}\"><strong>{word}</strong> {}</p>\n", Prose(reason)));
    }
    page.add(format_args!("<p class=answer>{}</p>\n", Text(run.answer())));
    page.raw("<ul class=facts>");
    run.facts().iter().for_each(|fact| page.add(format_args!("<li>{}", Text(fact))));
    page.add(format_args!("</ul>\n<p class=quiet>{}.</p>\n</header>\n", Text(run.extent())));
}

fn unix(ms: u64) -> std::time::SystemTime {
    std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms)
}

fn published_rows(page: &mut Markup, runs: &[Shown<'_>]) {
    for (index, run) in shown::ours(runs) {
        if let Some(study) = run.header.plan.study {
            beside::write(page, study, run, letter(runs, index));
        }
    }
}

fn findings(page: &mut Markup, runs: &[Shown<'_>]) {
    for (index, run) in runs.iter().enumerate() {
        let (sentences, more) = run.findings(FINDINGS);
        if sentences.is_empty() {
            continue;
        }
        let letter = letter(runs, index).map(|letter| format!(" <b class=run>{letter}</b>")).unwrap_or_default();
        page.add(format_args!("<section id=findings{index}>\n<h2>What stands out{letter}</h2>\n<ul class=findings>\n"));
        sentences.iter().for_each(|sentence| page.add(format_args!("<li>{}\n", Prose(sentence))));
        page.raw("</ul>\n");
        if more > 0 {
            page.add(format_args!("<p class=quiet>{more} more, in the parts of the cells.</p>\n"));
        }
        page.raw("</section>\n");
    }
}

fn foot(page: &mut Markup) {
    page.add(format_args!(
        "<footer><p>Made by {} from what was recorded; every number is computed from it again whenever the page is made. \
         A maximum is no bound: measured as long again, it is exceeded with a chance of one half.</p></footer>\n\
         <div id=tip role=status hidden></div>\n<script>\n",
        Text(crate::TOOL)
    ));
    page.raw(include_str!("html/script.js"));
    page.raw("</script>\n</html>\n");
}

#[cfg(test)]
mod tests;
