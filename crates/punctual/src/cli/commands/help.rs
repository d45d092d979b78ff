//! `punctual help`, `man`, `completion`: what the commands are, for people and shells.

mod complete;
mod guides;
mod markdown;
mod topics;

pub(super) use complete::complete;

use super::cyclictest;
use crate::cli::arguments::{
    CompletionArguments, CyclictestArguments, HelpArguments, ManArguments, Shell, command, page,
};
use crate::cli::terminal::{Outcome, output, usage};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold};
use std::io::{self, Write};

pub(super) fn help(arguments: &HelpArguments) -> Outcome {
    if arguments.path.first().is_some_and(|word| word == "cyclictest") {
        return cyclictest::cyclictest(CyclictestArguments { words: vec!["--help".into()], is_drop_in: false });
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

/// The page of a command: the sections of clap_mangen, with the examples among them.
fn man_page(command: &Command, man: &Man) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    // clap_mangen leaves out the empty date, and thereby shifts what follows it.
    writeln!(
        page,
        ".TH {} 1 \"\" \"{}\" \"User Commands\"",
        man.get_filename().trim_end_matches(".1"),
        punctual_model::TOOL
    )?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    for (title, text) in [("EXAMPLES", command.get_before_help()), ("NOTES", command.get_after_help())] {
        let Some(text) = text else { continue };
        let mut section = Roff::new();
        section.control("SH", [title]);
        for line in text.to_string().lines().map(example).filter(|line| !line.is_empty()) {
            section.control("PP", []);
            section.text([if title == "EXAMPLES" { bold(line) } else { line.into() }]);
        }
        section.to_writer(&mut page)?;
    }
    Ok(page)
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
        assert!(page("punctual.1").contains("punctual\\-measure(1)"));
        assert!(!page("punctual.1").contains("operation"));
        assert!(page("punctual-lab-bisect-step.1").contains("git bisect run"));
        assert!(pages.iter().all(|(name, _)| !name.contains("supervise")));
    }
}
