//! `punctual help`: the help of a command.

use super::cyclictest;
use crate::cli::arguments::{CyclictestArguments, HelpArguments, command, page};
use crate::cli::terminal::{Outcome, output, usage};

pub(super) fn help(arguments: &HelpArguments) -> Outcome {
    if arguments.path.first().is_some_and(|word| word == "cyclictest") {
        return cyclictest::cyclictest(CyclictestArguments { words: vec!["--help".into()], is_drop_in: false });
    }
    let mut root = command();
    root.build();
    let mut shown = &root;
    for word in &arguments.path {
        let below = shown.find_subcommand(word).filter(|below| !below.is_hide_set());
        shown = below.ok_or_else(|| usage::unknown_command(shown, word))?;
    }
    output::write(page(shown).as_bytes())?;
    Ok(0)
}
