//! What is judged without a measurement, so that no option of measuring goes with it: kept spikes, and recorded traces.

use super::command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Error};

/// What goes with `--again`: what is explained, and how it is shown.
const WITH_AGAIN: [&str; 4] = ["again", "what", "run", "format"];
/// What goes with a recorded trace.
const WITH_TRACE: [&str; 14] = [
    "from", "what", "thread", "period", "deadline", "chain", "sample", "wait_in", "marks", "above", "most", "keep",
    "all", "format",
];

/// Refuses another option beside `--again` and recorded traces. Errors: as clap reports two options that conflict.
pub(super) fn stands_alone(matches: &ArgMatches) -> Result<(), Error> {
    let Some((name, given)) = matches.subcommand() else { return Ok(()) };
    let (own, with) = match () {
        () if matches!(given.try_get_one::<bool>("again"), Ok(Some(true))) => ("--again", &WITH_AGAIN[..]),
        () if name == "watch" && is_given(given, "from") => ("--from", &WITH_TRACE[..]),
        () if name == "explain" && matches!(given.try_get_one("what"), Ok(Some(super::MethodOrRun::Run(_)))) => {
            ("FILE", &WITH_TRACE[..])
        }
        () => return Ok(()),
    };
    // Only arguments of a command that is built can be shown.
    let mut command = command();
    command.build();
    let arguments = command.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
    let is_foreign = |argument: &&Arg| {
        let id = argument.get_id().as_str();
        !with.contains(&id) && is_given(given, id)
    };
    let Some(other) = arguments.filter(|argument| !argument.is_global_set()).find(is_foreign) else { return Ok(()) };
    let mut error = Error::new(ErrorKind::ArgumentConflict);
    error.insert(ContextKind::InvalidArg, ContextValue::String(own.to_owned()));
    error.insert(ContextKind::PriorArg, ContextValue::String(other.to_string()));
    Err(error)
}

/// Whether an argument is on the command line.
pub(super) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    let is_known = matches.try_contains_id(id).unwrap_or(false);
    is_known && matches.value_source(id) == Some(ValueSource::CommandLine)
}
