//! `punctual cyclictest`, and `cyclictest` as a name of this program.

use super::{Outcome, arguments::CyclictestArguments};
use crate::cyclictest::{self, Console};
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// The arguments, if this program was called by the name of cyclictest.
pub(super) fn by_name(words: &[OsString]) -> Option<CyclictestArguments> {
    let (name, arguments) = words.split_first()?;
    let is_cyclictest = Path::new(name).file_name().is_some_and(|name| name == "cyclictest");
    is_cyclictest.then(|| CyclictestArguments { words: arguments.to_vec() })
}

pub(super) fn cyclictest(arguments: CyclictestArguments) -> Outcome {
    let text = |word: OsString| word.into_string().map_err(|word| format!("`{}` is not UTF-8", word.display()));
    let words = arguments.words.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let command_line =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    let compat = std::env::var("PUNCTUAL_CYCLICTEST_COMPAT").ok().filter(|value| !value.is_empty());
    let mut console = Console { out: &mut io::stdout(), err: &mut io::stderr() };
    let conclusion = cyclictest::run(&words, &command_line, compat.as_deref(), &mut console);
    conclusion.map(cyclictest::Conclusion::exit_status).map_err(|err| format!("cyclictest: {err}").into())
}
