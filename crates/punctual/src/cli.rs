//! The command line: parsing, dispatch, output and the exit status.

mod arguments;
mod commands;
mod terminal;

use arguments::{Arguments, Command};
use punctual_campaign::Interrupted;
use punctual_model::{ClockId, ClockTime, OwnName, Policy};
use punctual_sys::{process, sched, signal, thread};
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use terminal::{ERROR, note, one_line};

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
    let command = match commands::by_name(&words) {
        Some(Ok(command)) => command,
        Some(Err(refused)) => {
            note(format_args!("punctual: {refused}"));
            return ExitCode::from(ERROR);
        }
        None => match Arguments::read(&words) {
            Ok(arguments) => {
                // Executed as /proc/self/exe, a process is called `exe`.
                let _ = thread::set_name(own_name(&arguments.command).name());
                arguments.command
            }
            Err(err) => return terminal::report(&err, &words, commands::usage_error_status(&words)),
        },
    };
    let outcome = leave_deadline().and_then(|()| can_sleep()).and_then(|()| commands::execute(command));
    outcome.map_or_else(
        |err| {
            note(format_args!("punctual: {}", one_line(&*err)));
            ExitCode::from(err.downcast_ref::<Interrupted>().map_or(ERROR, |interrupted| interrupted.exit_status))
        },
        ExitCode::from,
    )
}

/// The name of a process that carries out this command.
fn own_name(command: &Command) -> OwnName {
    match command {
        Command::Cell(arguments) if arguments.beside_guest => OwnName::Host,
        Command::Cell(_) => OwnName::Cell,
        Command::Load(_) => OwnName::Load,
        Command::Launch(_) => OwnName::Launch,
        Command::Supervise(_) => OwnName::Role,
        Command::ServeCells => OwnName::Serve,
        Command::Operation(_) => OwnName::Cost,
        _ => OwnName::Main,
    }
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
    let slept = punctual_sys::clock::sleep_until(ClockId::Monotonic, ClockTime(0));
    Ok(slept.map_err(|errno| format!("cannot sleep (clock_nanosleep): {}", io::Error::from_raw_os_error(errno)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_name_of_what_it_does() {
        for (words, name) in [
            ("run gate", "punctual"),
            ("doctor", "punctual"),
            ("cell", "punctual-cell"),
            ("cell --beside-guest", "punctual-host"),
            ("load cpu", "punctual-load"),
            ("serve-cells", "punctual-serve"),
            ("supervise-role -- load light", "punctual-role"),
        ] {
            let words: Vec<OsString> = ["punctual"].into_iter().chain(words.split(' ')).map(Into::into).collect();
            assert_eq!(own_name(&Arguments::read(&words).unwrap().command).name(), name, "{words:?}");
        }
    }
}
