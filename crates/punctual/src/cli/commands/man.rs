//! `punctual man`: a man page of each command.

use crate::cli::arguments::{ManArguments, command};
use crate::cli::terminal::Outcome;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold};
use std::io::{self, Write};

pub(super) fn man(arguments: &ManArguments) -> Outcome {
    for (name, page) in pages()? {
        let path = arguments.dir.join(name);
        host::file::replace(&path, &page).map_err(|err| format!("cannot write {}: {err}", path.display()))?;
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
    pages.push((man.get_filename(), page(command, &man)?));
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| add_pages(below, pages))
}

/// The page of a command: the sections of clap_mangen, with the examples among them.
fn page(command: &Command, man: &Man) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    // clap_mangen leaves out the empty date, and thereby shifts what follows it.
    writeln!(page, ".TH {} 1 \"\" \"{}\" \"User Commands\"", man.get_filename().trim_end_matches(".1"), model::TOOL)?;
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
            [".TH punctual-measure 1 \"\" ", ".SH LOAD", "load\\-must\\-hold", ".SH EXAMPLES", "POLICY: other, "]
        {
            assert!(measure.contains(text), "{text}: {measure}");
        }
        assert!(page("punctual.1").contains("punctual\\-measure(1)"));
        assert!(!page("punctual.1").contains("operation"));
        assert!(page("punctual-lab-bisect-step.1").contains("git bisect run"));
        assert!(pages.iter().all(|(name, _)| !name.contains("supervise")));
    }
}
