//! `--again` measures nothing, so that no option of measuring goes with it.

use super::command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Error};

/// What goes with it: what is explained, and how it is shown.
const WITH: [&str; 4] = ["again", "what", "run", "format"];

/// Refuses another option beside `--again`.
///
/// # Errors
/// As clap reports two options that conflict.
pub(super) fn stands_alone(matches: &ArgMatches) -> Result<(), Error> {
    let Some((name, given)) = matches.subcommand() else { return Ok(()) };
    if !matches!(given.try_get_one::<bool>("again"), Ok(Some(true))) {
        return Ok(());
    }
    // Only arguments of a command that is built can be shown.
    let mut command = command();
    command.build();
    let arguments = command.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
    let is_given = |argument: &&Arg| {
        let id = argument.get_id().as_str();
        !WITH.contains(&id) && given.value_source(id) == Some(ValueSource::CommandLine)
    };
    let Some(other) = arguments.filter(|argument| !argument.is_global_set()).find(is_given) else { return Ok(()) };
    let mut error = Error::new(ErrorKind::ArgumentConflict);
    error.insert(ContextKind::InvalidArg, ContextValue::String("--again".to_owned()));
    error.insert(ContextKind::PriorArg, ContextValue::String(other.to_string()));
    Err(error)
}
