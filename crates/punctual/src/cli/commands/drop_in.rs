//! Programs of rt-tests whose options and output this one has: cyclictest and oslat, as commands and as names of it.

use crate::cli::arguments::{Command, DropInArguments};
use crate::cli::terminal::Outcome;
use punctual_cyclictest::{Call, Console};
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// The other programs of rt-tests, with the command that measures the same.
const OTHERS: &[(&str, &str)] = &[
    ("cyclicdeadline", "punctual measure --policy deadline:200us/1ms/1ms"),
    ("deadline_test", "punctual measure --policy deadline:200us/1ms/1ms"),
    ("hackbench", "punctual load messaging"),
    ("hwlatdetect", "punctual measure noise"),
    ("pi_stress", "punctual verify"),
    ("pip_stress", "punctual verify"),
    ("pmqtest", "punctual measure handoff:mq"),
    ("ptsematest", "punctual measure handoff:sem"),
    ("queuelat", "punctual measure noise"),
    ("rt-migrate-test", "punctual verify"),
    ("signaltest", "punctual measure handoff:signal"),
    ("sigwaittest", "punctual measure handoff:signal"),
    ("svsematest", "punctual measure handoff:sysv-sem"),
];

/// The command if this program was started under the name of one of rt-tests. Errors: the command to type instead.
pub(in crate::cli) fn by_name(words: &[OsString]) -> Option<Result<Command, String>> {
    let (name, words) = words.split_first()?;
    let name = Path::new(name).file_name()?.to_str()?;
    let arguments = || DropInArguments { words: words.to_vec(), is_drop_in: true };
    match name {
        "cyclictest" => Some(Ok(Command::Cyclictest(arguments()))),
        "oslat" => Some(Ok(Command::Oslat(arguments()))),
        _ => {
            let (_, instead) = OTHERS.iter().find(|(other, _)| *other == name)?;
            Some(Err(format!("unsupported: the name {name}, only cyclictest and oslat; use: {instead}")))
        }
    }
}

/// Exit status of a shell for a program killed by SIGPIPE, as those of rt-tests are: 128 plus the signal number.
const SIGPIPE_STATUS: u8 = 141;

pub(super) fn cyclictest(arguments: DropInArguments) -> Outcome {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let call = Call {
        command_line: command_line(),
        is_drop_in: arguments.is_drop_in,
        compat: variable(punctual_cyclictest::COMPAT),
        break_status: variable(punctual_cyclictest::BREAK_STATUS),
    };
    started("cyclictest", arguments, |words, console| punctual_cyclictest::run(words, &call, console))
}

pub(super) fn oslat(arguments: DropInArguments) -> Outcome {
    started("oslat", arguments, |words, console| punctual_cyclictest::oslat(words, &command_line(), console))
}

fn command_line() -> String {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Starts `run` with the words after the name.
fn started(
    name: &str,
    arguments: DropInArguments,
    run: impl FnOnce(&[String], &mut Console<'_>) -> Result<u8, Box<dyn Error>>,
) -> Outcome {
    let text = |word: OsString| {
        word.into_string().map_err(|word| format!("invalid argument `{}`: expected UTF-8", word.display()))
    };
    let words = arguments.words.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let mut console = Console { out: &mut io::stdout(), err: &mut io::stderr(), is_closed: false };
    match run(&words, &mut console) {
        Err(_) if console.is_closed => Ok(SIGPIPE_STATUS),
        status => status.map_err(|err| format!("{name}: {err}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::Arguments;

    #[test]
    fn the_commands_that_are_named_instead_can_be_typed() {
        for (name, instead) in OTHERS {
            let words: Vec<OsString> = instead.split(' ').map(OsString::from).collect();
            assert!(Arguments::read(&words).is_ok(), "{name}: {instead}");
            assert!(by_name(&[format!("/usr/bin/{name}").into()]).is_some_and(|command| command.is_err()), "{name}");
        }
        assert!(by_name(&["/usr/bin/punctual".into()]).is_none());
        assert!(matches!(by_name(&["./oslat".into()]), Some(Ok(Command::Oslat(_)))));
    }
}
