//! `punctual help`, `man`, `completion`: what the commands are, for people and shells.

mod complete;
mod guides;
mod markdown;
mod places;
mod topics;

pub(super) use complete::complete;

use super::drop_in;
use crate::cli::arguments::{CompletionArguments, DropInArguments, HelpArguments, ManArguments, Shell, command, page};
use crate::cli::terminal::{Outcome, output, usage};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io::{self, Write};

pub(super) fn help(arguments: &HelpArguments) -> Outcome {
    let of_drop_in = || DropInArguments { words: vec!["--help".into()], is_drop_in: false };
    match arguments.path.first().map(String::as_str) {
        Some("cyclictest") => return drop_in::cyclictest(of_drop_in()),
        Some("oslat") => return drop_in::oslat(of_drop_in()),
        _ => {}
    }
    let mut root = command();
    root.build();
    let mut shown = &root;
    for word in &arguments.path {
        let below = shown.find_subcommand(word).filter(|below| !below.is_hide_set());
        let Some(below) = below else {
            let words: Vec<_> = arguments.path.iter().map(String::as_str).collect();
            return match topics::text(&words) {
                Some(text) => output::write(text?.as_bytes()).map(|()| 0),
                None => Err(usage::unknown_command(shown, word).into()),
            };
        };
        shown = below;
    }
    output::write(page(shown).as_bytes())?;
    Ok(0)
}

pub(super) fn man(arguments: &ManArguments) -> Outcome {
    for (name, page) in pages()? {
        let path = arguments.dir.join(name);
        punctual_host::file::replace(&path, &page).map_err(|err| format!("cannot write {}: {err}", path.display()))?;
    }
    Ok(0)
}

/// The pages by the names of their files: `punctual.1`, `punctual-measure.1` ...
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut root = command();
    root.build();
    let mut pages = Vec::new();
    add_pages(&root, &mut pages)?;
    Ok(pages)
}

fn add_pages(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let man = Man::new(command.clone());
    pages.push((man.get_filename(), man_page(command, &man)?));
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| add_pages(below, pages))
}

/// The page of a command: the sections of clap_mangen, and those of man-pages(7) that it does not have.
fn man_page(command: &Command, man: &Man) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let name = man.get_filename().trim_end_matches(".1").to_owned();
    // clap_mangen leaves out the empty date, and thereby shifts what follows it.
    writeln!(page, ".TH {name} 1 \"\" \"{}\" \"User Commands\"", punctual_model::TOOL)?;
    man.render_name_section(&mut page)?;
    let usage = command.clone().render_usage().to_string();
    section(&mut page, "SYNOPSIS", &|roff| {
        lines(roff, usage.lines().map(|line| line.trim_start_matches("Usage:").trim()), bold)
    })?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let paragraphs = notes.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let (status, notes): (Vec<_>, Vec<_>) =
        paragraphs.filter(|text| !text.is_empty()).partition(|text| is_status(text));
    let status = if status.is_empty() { vec!["0 done, 1 error.".to_owned()] } else { status };
    let status = status.iter().map(|text| text.trim_start_matches("Exit status: "));
    section(&mut page, "EXIT STATUS", &|roff| lines(roff, status.clone(), roman))?;
    let words: Vec<_> = name.split('-').skip(1).collect();
    for (title, places) in [("FILES", places::FILES), ("ENVIRONMENT", places::ENVIRONMENT)] {
        if places::of(places, &words).next().is_some() {
            section(&mut page, title, &|roff| listed(roff, places::of(places, &words)))?;
        }
    }
    if !notes.is_empty() {
        section(&mut page, "NOTES", &|roff| lines(roff, notes.iter().map(String::as_str), roman))?;
    }
    let examples = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    section(&mut page, "EXAMPLES", &|roff| lines(roff, examples.lines().map(example), bold))?;
    let parent = name.rsplit_once('-').map_or("punctual", |(parent, _)| parent);
    let others = [parent, "punctual", "punctual-help"].into_iter().filter(|other| *other != name);
    let mut others: Vec<_> = others.map(|other| format!("{other}(1)")).collect();
    others.dedup();
    let guide = name.trim_start_matches("punctual-");
    let guide = guides::NAMES.iter().find(|known| **known == guide);
    others.extend(guide.map(|guide| format!("punctual help guide {guide}")));
    section(&mut page, "SEE ALSO", &|roff| lines(roff, [others.join(", ").as_str()], roman))?;
    Ok(page)
}

/// Adds a section.
fn section(page: &mut Vec<u8>, title: &str, add: &dyn Fn(&mut Roff)) -> io::Result<()> {
    let mut section = Roff::new();
    section.control("SH", [title]);
    add(&mut section);
    section.to_writer(page)
}

/// Adds a paragraph for each line.
fn lines<'a>(roff: &mut Roff, lines: impl IntoIterator<Item = &'a str>, font: fn(String) -> Inline) {
    for line in lines.into_iter().filter(|line| !line.is_empty()) {
        roff.control("PP", []);
        roff.text([font(line.to_owned())]);
    }
}

/// Adds a list of names and descriptions.
fn listed<'a>(roff: &mut Roff, places: impl Iterator<Item = &'a places::Place>) {
    for place in places {
        roff.control("TP", []);
        roff.text([bold(place.name)]);
        roff.text([roman(place.about)]);
    }
}

fn is_status(text: &str) -> bool {
    text.starts_with("Exit status")
}

/// A line of notes or examples, without the word before the first example.
fn example(line: &str) -> &str {
    line.trim_start_matches("Example:").trim()
}

pub(super) fn completion(arguments: &CompletionArguments) -> Outcome {
    output::write(script(arguments.shell).as_bytes())?;
    Ok(0)
}

/// The script of a shell: it asks this program for the words.
fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("help/completion.bash"),
        Shell::Zsh => include_str!("help/completion.zsh"),
        Shell::Fish => include_str!("help/completion.fish"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_visible_command_has_a_page_with_its_options_and_an_example() {
        let pages = pages().unwrap();
        let page = |name: &str| {
            let found = pages.iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("{name}"));
            String::from_utf8(found.1.clone()).unwrap()
        };
        let measure = page("punctual-measure.1");
        for text in
            [".TH punctual-measure 1 \"\" ", ".SH LOAD", "load\\-must\\-hold", ".SH EXAMPLES", "punctual help methods|"]
        {
            assert!(measure.contains(text), "{text}: {measure}");
        }
        for (file, text) in &pages {
            let text = String::from_utf8_lossy(text);
            for title in ["SYNOPSIS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"] {
                let head = if title.contains(' ') { format!(".SH \"{title}\"\n.PP") } else { format!(".SH {title}\n") };
                assert!(text.contains(&head) || file == "punctual-cyclictest.1", "{file}: {title}\n{text}");
            }
        }
        assert!(
            measure.contains(".SH FILES\n")
                && measure.contains("punctual measure [OPTIONS] [METHOD]")
                && measure.contains("\n0 passed, 1 error, "),
            "{measure}"
        );
        assert!(page("punctual.1").contains("punctual\\-measure(1)"));
        assert!(!page("punctual.1").contains("operation"));
        assert!(page("punctual-lab-bisect-step.1").contains("git bisect run"));
        assert!(pages.iter().all(|(name, _)| !name.contains("supervise")));
    }
}
