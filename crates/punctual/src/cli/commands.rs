//! The commands, one file each, and what several of them share.

mod again;
mod capture;
mod cell;
mod cells;
mod check;
mod compare;
mod consent;
mod cost;
mod doctor;
mod drop_in;
mod explain;
mod export;
mod fetching;
mod floor;
mod frontier;
mod help;
mod history;
mod import;
mod internal;
mod lab;
mod load;
mod measure;
mod merge;
mod monitor;
mod new_directory;
mod plan;
mod read;
mod recorded;
mod recover;
mod respond;
mod run;
mod run_directory;
mod run_over_boots;
mod show;
mod stick;
mod store;
mod study;
mod tune;
mod verify;
mod watch;

pub(super) use drop_in::by_name;
pub(super) use lab::usage_error_status;

use crate::cli::arguments::Command;
use crate::cli::terminal::Outcome;

/// Runs a command.
pub(super) fn execute(command: Command) -> Outcome {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Plan(arguments) => plan::command(&arguments.command),
        Command::Study(arguments) => study::command(arguments.command),
        Command::Measure(arguments) => measure::measure(arguments),
        Command::Watch(arguments) => watch::watch(*arguments),
        Command::Capture(arguments) => capture::capture(arguments),
        Command::Monitor(arguments) => monitor::monitor(arguments),
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Floor(arguments) => floor::floor(arguments),
        Command::Frontier(arguments) => frontier::frontier(arguments),
        Command::Tune(arguments) => tune::tune(*arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::List(arguments) => show::list(&arguments),
        Command::Store(arguments) => store::command(&arguments.command),
        Command::History(arguments) => history::history(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::Load(arguments) => load::load(&arguments),
        Command::Lab(arguments) => lab::lab(arguments.command),
        Command::Stick(arguments) => stick::stick(&arguments),
        Command::Report(arguments) => show::report(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Respond(arguments) => respond::respond(&arguments),
        Command::Recover(arguments) => recover::recover(&arguments),
        Command::Cyclictest(arguments) => drop_in::cyclictest(arguments),
        Command::Oslat(arguments) => drop_in::oslat(arguments),
        Command::Completion(arguments) => help::completion(&arguments),
        Command::Man(arguments) => help::man(&arguments),
        Command::Help(arguments) => help::help(&arguments),
        Command::Complete(arguments) => help::complete(&arguments),
        Command::Cell(arguments) => cell::cell(&arguments),
        Command::Operation(arguments) => internal::operation(&arguments),
        Command::Launch(arguments) => internal::launch_program(arguments),
        Command::Supervise(arguments) => internal::supervise(arguments),
        Command::ServeCells => punctual_campaign::serve().map(|()| 0),
    }
}
