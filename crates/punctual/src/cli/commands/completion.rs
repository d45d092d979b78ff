//! `punctual completion`: completion scripts for shells.

use crate::cli::arguments::{CompletionArguments, command};
use crate::cli::terminal::{Outcome, output};
use clap::Command;

pub(super) fn completion(arguments: &CompletionArguments) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut visible(&command()), "punctual", &mut script);
    output::write(&script)?;
    Ok(0)
}

/// A copy of a command without its hidden options and the hidden commands below it, which the generators would offer.
fn visible(command: &Command) -> Command {
    let mut copy = Command::new(command.get_name().to_owned())
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()))
        .subcommands(command.get_subcommands().filter(|below| !below.is_hide_set()).map(visible));
    if let Some(about) = command.get_about() {
        copy = copy.about(about.clone());
    }
    match command.get_version() {
        Some(version) => copy.version(version.to_owned()),
        None => copy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use clap_complete::Shell;

    #[test]
    fn every_shell_completes_what_help_shows_and_nothing_hidden() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut visible(&command()), "punctual", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["frontier", "bisect-step", "load-must-hold", "cpu-dma-latency"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            let is_bash = *shell == Shell::Bash;
            assert!(!is_bash || script.contains("junit") && !script.contains("--parent"), "{script}");
            for word in ["Repeat one operation", "supervise", "launch", "tracers"] {
                assert!(!script.contains(word), "{shell}: {word}");
            }
        }
    }
}
