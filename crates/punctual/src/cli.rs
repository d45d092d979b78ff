//! The command line: what was typed, what it means, what is shown, and the exit status.

mod arguments;
mod cell;
mod check;
mod compare;
mod consent;
mod cost;
mod cyclictest;
mod doctor;
mod explain;
mod frontier;
mod import;
mod lab;
mod launch;
mod leash;
mod list;
mod live;
mod load;
mod measure;
mod operation;
mod output;
mod progress;
mod recover;
mod redrawn;
mod report;
mod respond;
mod response;
mod run;
mod show;
mod sleep;
mod start;
mod until;
mod usage;

use arguments::{Arguments, Command};
use clap::Parser;
use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// What a command comes to: an exit status, or one line that says what is wrong.
type Outcome = Result<u8, Box<dyn Error>>;

/// An error: nothing was measured, or not what was asked. The other statuses are a verdict's.
const ERROR: u8 = 1;

/// Runs the command of this process. The only place that decides an exit status.
pub(crate) fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let command = match cyclictest::by_name(&words) {
        Some(arguments) => Command::Cyclictest(arguments),
        None => match Arguments::try_parse_from(&words) {
            Ok(arguments) => arguments.command,
            Err(err) => return usage::report(&err, lab::status_of_mistake(&words)),
        },
    };
    let outcome = match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Measure(arguments) => measure::measure(arguments),
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Frontier(arguments) => frontier::frontier(arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::List(arguments) => list::list(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Load(arguments) => load::load(&arguments),
        Command::Lab(arguments) => lab::lab(arguments.command),
        Command::Report(arguments) => report::report(&arguments),
        Command::Respond(arguments) => respond::respond(&arguments),
        Command::Recover(arguments) => recover::recover(&arguments),
        Command::Cyclictest(arguments) => cyclictest::cyclictest(arguments),
        Command::Cell(arguments) => cell::cell(&arguments),
        Command::Operation(arguments) => operation::operation(&arguments),
        Command::Launch(arguments) => launch::launch_program(arguments),
        Command::Leash(arguments) => leash::leash(arguments),
    };
    outcome.map_or_else(
        |err| {
            note(format_args!("punctual: {}", one_line(&*err)));
            ExitCode::from(ERROR)
        },
        ExitCode::from,
    )
}

/// Writes a line to stderr. Nobody reading it is no reason to stop.
fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The text of an error on one line.
fn one_line(err: &dyn Error) -> String {
    err.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
