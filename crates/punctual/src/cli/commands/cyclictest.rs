//! `punctual cyclictest`, and `cyclictest` as a name of this program.

use crate::cli::arguments::CyclictestArguments;
use crate::cli::terminal::Outcome;
use punctual_cyclictest::{Call, Console};
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// The arguments if this program was started under the name cyclictest.
pub(in crate::cli) fn by_name(words: &[OsString]) -> Option<CyclictestArguments> {
    let (name, arguments) = words.split_first()?;
    let is_cyclictest = Path::new(name).file_name().is_some_and(|name| name == "cyclictest");
    is_cyclictest.then(|| CyclictestArguments { words: arguments.to_vec(), is_drop_in: true })
}

/// Exit status of a shell for a program killed by SIGPIPE, as cyclictest is: 128 plus the signal number.
const SIGPIPE_STATUS: u8 = 141;

pub(super) fn cyclictest(arguments: CyclictestArguments) -> Outcome {
    let text = |word: OsString| {
        word.into_string().map_err(|word| format!("invalid argument `{}`: expected UTF-8", word.display()))
    };
    let words = arguments.words.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let command_line =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let call = Call {
        command_line,
        is_drop_in: arguments.is_drop_in,
        compat: variable(punctual_cyclictest::COMPAT),
        break_status: variable(punctual_cyclictest::BREAK_STATUS),
    };
    let mut console = Console { out: &mut io::stdout(), err: &mut io::stderr(), is_closed: false };
    match punctual_cyclictest::run(&words, &call, &mut console) {
        Err(_) if console.is_closed => Ok(SIGPIPE_STATUS),
        status => status.map_err(|err| format!("cyclictest: {err}").into()),
    }
}
