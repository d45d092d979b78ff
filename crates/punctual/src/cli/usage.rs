//! Mistakes on the command line, each as one line that says what to do.

use super::note;
use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::process::ExitCode;

/// Shows help as help, and any mistake as one line with this exit status.
pub(super) fn report(err: &Error, status: u8) -> ExitCode {
    if !err.use_stderr() {
        // `--help` and `--version`. A reader that goes away early is none of our business.
        let _ = err.print();
        return ExitCode::SUCCESS;
    }
    note(format_args!("punctual: {}", line(err)));
    ExitCode::from(status)
}

fn line(err: &Error) -> String {
    let context = |kind| match err.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let argument = context(ContextKind::InvalidArg).unwrap_or_default();
    // `--period <TIME>` is `--period` to whoever typed it.
    let option = argument.split(' ').next().unwrap_or_default();
    let see = "see punctual --help";
    match err.kind() {
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(err).map(ToString::to_string).unwrap_or_default();
            format!("{option}: {reason}")
        }
        ErrorKind::InvalidValue => {
            let value = context(ContextKind::InvalidValue).unwrap_or_default();
            let valid = context(ContextKind::ValidValue).unwrap_or_default();
            if value.is_empty() {
                return format!("{option} needs a value; {see}");
            }
            format!("{option}: unknown value `{value}` (known: {valid})")
        }
        ErrorKind::UnknownArgument => {
            let near = context(ContextKind::SuggestedArg).map(|near| format!("did you mean `{near}`? "));
            format!("unknown argument `{option}` ({}{see})", near.unwrap_or_default())
        }
        ErrorKind::InvalidSubcommand => {
            let command = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            let near = context(ContextKind::SuggestedSubcommand).map(|near| format!("did you mean `{near}`? "));
            format!("unknown command `{command}` ({}{see})", near.unwrap_or_default())
        }
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg).unwrap_or_default();
            format!("{option} cannot be combined with {other}")
        }
        ErrorKind::MissingRequiredArgument => format!("{argument} is missing; {see}"),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            format!("a command is missing, like `punctual run`; {see}")
        }
        _ => {
            let text = err.to_string();
            let first = text.lines().next().unwrap_or_default();
            format!("{}; {see}", first.strip_prefix("error: ").unwrap_or(first))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::Arguments;
    use super::*;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_mistake_is_one_line_that_says_what_to_do() {
        for (arguments, message) in [
            ("", "a command is missing, like `punctual run`; see punctual --help"),
            ("mesure", "unknown command `mesure` (did you mean `measure`? see punctual --help)"),
            ("measure --polcy other", "unknown argument `--polcy` (did you mean `--policy`? see punctual --help)"),
            (
                "measure --policy fifo:0",
                "--policy: invalid policy `fifo:0`: expected a priority from 1 to 99, like fifo:80",
            ),
            (
                "measure --policy fifo:100",
                "--policy: invalid policy `fifo:100`: expected a priority from 1 to 99, like fifo:80",
            ),
            (
                "measure --policy fifoo:80",
                "--policy: unknown scheduling policy `fifoo:80` (did you mean `fifo:80`? known: other other:nice=N batch idle fifo:PRIORITY rr:PRIORITY deadline:RUNTIME/DEADLINE/PERIOD)",
            ),
            (
                "measure --duration foo",
                "--duration: invalid duration `foo`: expected a number and a unit, like 500us, 1ms, 10s, 5min, 8h",
            ),
            ("run --duration 1", "--duration: invalid duration `1`: expected a unit, as in 1us, 1ms, 1s, 1min or 1h"),
            ("run --duration -5us", "--duration: invalid duration `-5us`: expected 0 or more"),
            ("measure --period 0", "--period: invalid period `0`: expected 10us to 100s"),
            ("measure --period -5us", "--period: invalid period `-5us`: expected 10us to 100s"),
            ("measure --cpus -1", "--cpus: invalid CPU list `-1`: expected a list like 0-3,5"),
            ("measure --period", "--period needs a value; see punctual --help"),
            ("show", "<RUN> is missing; see punctual --help"),
            (
                "show x --format xml",
                "--format: unknown value `xml` (known: text, json, csv, md, junit, tap, lava, hgrm, prom)",
            ),
            ("run --resume", "--out <DIR> is missing; see punctual --help"),
            ("run --resume --out x --seed 1", "--resume cannot be combined with --seed <N>"),
            ("run --repetitions 0", "--repetitions: 0 is not in 1..=10000"),
            (
                "measure clock_nanoslep",
                "[METHOD]: unknown method `clock_nanoslep` (did you mean `clock_nanosleep`? known: clock_nanosleep[:relative][:CLOCK] nanosleep timerfd[:CLOCK] itimer posix_timer[:CLOCK] futex[:CLOCK] poll deadline sleep:RUNTIME response:LINK cost[:GROUP])",
            ),
        ] {
            let typed = std::iter::once("punctual").chain(arguments.split_whitespace());
            let err = Arguments::try_parse_from(typed).expect_err(arguments);
            assert_eq!(line(&err), message, "{arguments}");
        }
    }
}
