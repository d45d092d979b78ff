//! The command line: parsing, dispatch, output and the exit status.

mod again;
mod arguments;
mod capture;
mod cell;
mod cells;
mod check;
mod compare;
mod completion;
mod consent;
mod cost;
mod cyclictest;
mod doctor;
mod explain;
mod export;
mod frontier;
mod help;
mod history;
mod import;
mod lab;
mod launch;
mod list;
mod live;
mod load;
mod man;
mod measure;
mod merge;
mod monitor;
mod new_directory;
mod one_cell;
mod operation;
mod output;
mod plan;
mod progress;
mod read;
mod recorded;
mod recover;
mod redraw;
mod report;
mod respond;
mod response;
mod run;
mod run_directory;
mod show;
mod sleep;
mod store;
mod study;
mod supervise;
mod tune;
mod usage;
mod watch;

use arguments::{Arguments, Command};
use campaign::Interrupted;
use model::{ClockId, ClockTime, Policy, plain};
use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use sys::{process, sched, signal};

/// Result of a command: an exit status, or a one-line error message.
type Outcome = Result<u8, Box<dyn Error>>;

/// Exit status of an error: nothing was measured, or not as requested. The other statuses are verdicts.
const ERROR: u8 = 1;

/// Directory of the runs without a named one, below the current directory.
const RUNS: &str = "runs";

/// Stack of the first thread: parsing the command line needs the most, about 200 KiB without optimization.
const STACK_BYTES: u64 = 1 << 20;

/// Runs the command of this process. The only place that decides an exit status.
pub(crate) fn main() -> ExitCode {
    if let Err(err) = process::have_stack(STACK_BYTES) {
        note(format_args!("punctual: cannot grow the stack to {} KiB: {err}; ulimit -s {0}", STACK_BYTES >> 10));
        return ExitCode::from(ERROR);
    }
    // The parent may ignore SIGCHLD, but children have to be reaped; a shell ignores SIGINT for `punctual ... &`.
    [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM].into_iter().for_each(signal::take_by_default);
    signal::block_none();
    // With a handler, a write beyond the file size limit fails with an error instead of ending this process. Started
    // programs get the default action again.
    let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::default());
    let words: Vec<OsString> = std::env::args_os().collect();
    let command = match cyclictest::by_name(&words) {
        Some(arguments) => Command::Cyclictest(arguments),
        None => match Arguments::read(&words) {
            Ok(arguments) => arguments.command,
            Err(err) => return usage::report(&err, &words, lab::usage_error_status(&words)),
        },
    };
    let outcome = leave_deadline().and_then(|()| can_sleep()).and_then(|()| execute(command));
    outcome.map_or_else(
        |err| {
            note(format_args!("punctual: {}", one_line(&*err)));
            ExitCode::from(err.downcast_ref::<Interrupted>().map_or(ERROR, |interrupted| interrupted.exit_status))
        },
        ExitCode::from,
    )
}

/// Leaves SCHED_DEADLINE, which `chrt -d` gives to this process: such a thread cannot create a thread or a process.
fn leave_deadline() -> Result<(), Box<dyn Error>> {
    if sched::policy(0)?.is_deadline() {
        sched::set_policy(0, Policy::OTHER).map_err(|err| format!("cannot leave SCHED_DEADLINE: {err}"))?;
    }
    Ok(())
}

/// Refuses a system call filter that forbids sleeping: the standard library panics there.
fn can_sleep() -> Result<(), Box<dyn Error>> {
    let slept = sys::clock::sleep_until(ClockId::Monotonic, ClockTime(0));
    Ok(slept.map_err(|errno| format!("cannot sleep (clock_nanosleep): {}", io::Error::from_raw_os_error(errno)))?)
}

/// Makes this process end with its parent, if it was started by another process of this program.
fn end_with(parent: Option<u32>) -> Result<(), String> {
    let tied = parent.map_or(Ok(()), process::die_with);
    tied.map_err(|err| format!("cannot end with the parent process (prctl): {err}"))
}

fn execute(command: Command) -> Outcome {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Plan(arguments) => plan::command(&arguments.command),
        Command::Study(arguments) => study::command(arguments.command),
        Command::Measure(arguments) => measure::measure(arguments),
        Command::Watch(arguments) => watch::watch(*arguments),
        Command::Capture(arguments) => capture::capture(arguments),
        Command::Monitor(arguments) => monitor::monitor(arguments),
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Frontier(arguments) => frontier::frontier(arguments),
        Command::Tune(arguments) => tune::tune(*arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::List(arguments) => list::list(&arguments),
        Command::Store(arguments) => store::command(&arguments.command),
        Command::History(arguments) => history::history(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Load(arguments) => load::load(&arguments),
        Command::Lab(arguments) => lab::lab(arguments.command),
        Command::Report(arguments) => report::report(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Respond(arguments) => respond::respond(&arguments),
        Command::Recover(arguments) => recover::recover(&arguments),
        Command::Cyclictest(arguments) => cyclictest::cyclictest(arguments),
        Command::Completion(arguments) => completion::completion(&arguments),
        Command::Man(arguments) => man::man(&arguments),
        Command::Help(arguments) => help::help(&arguments),
        Command::Cell(arguments) => cell::cell(&arguments),
        Command::Operation(arguments) => operation::operation(&arguments),
        Command::Launch(arguments) => launch::launch_program(arguments),
        Command::Supervise(arguments) => supervise::supervise(arguments),
        Command::ServeCells => campaign::serve().map(|()| 0),
    }
}

/// Writes a line to stderr and ignores a failure.
fn note(line: impl Display) {
    let _ = io::stderr().write_all((shown(&line.to_string()) + "\n").as_bytes());
}

/// The line without terminal control characters, and without the middle of a very long word. Quoted parts may come from
/// another user.
fn shown(line: &str) -> String {
    /// Length in characters up to which a line is kept: two paths of `PATH_MAX` (limits.h) fit.
    const MAX_LENGTH: usize = 10_000;
    /// Length that remains at the beginning and at the end of a longer line; the end has the hint.
    const END_LENGTH: usize = 1_000;
    let line = plain(line);
    let n = line.chars().count();
    if n <= MAX_LENGTH {
        return line.into_owned();
    }
    let part = |from: usize| line.chars().skip(from).take(END_LENGTH).collect::<String>();
    format!("{} ... ({} characters omitted) ... {}", part(0), n - 2 * END_LENGTH, part(n - END_LENGTH))
}

/// The text of an error on one line.
fn one_line(err: &dyn Error) -> String {
    err.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_is_quoted_in_it() {
        for (line, expected) in [
            ("", ""),
            ("cannot read /\u{b5}/run.jsonl", "cannot read /\u{b5}/run.jsonl"),
            ("unknown key `\x1b]0;x\x07\x1b[2J`\r\nroot# ", "unknown key `\u{fffd}]0;x\u{fffd}\u{fffd}[2J`  root# "),
        ] {
            assert_eq!(shown(line), expected);
        }
        let long = |n: usize| format!("unknown `{}`; see --help", "x".repeat(n));
        assert_eq!(shown(&long(9_976)), long(9_976));
        let cut = shown(&long(1_000_000));
        assert!(cut.len() < 2_100 && cut.starts_with("unknown `xxx") && cut.ends_with("xxx`; see --help"), "{cut}");
        assert!(cut.contains("x ... (998022 characters omitted) ... x"), "{cut}");
    }
}
