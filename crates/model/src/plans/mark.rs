//! Places that a watched program passes, which cut its activations into phases.

use crate::is_plain;
use crate::words::word::as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A place that a watched thread passes.
///
/// Its text form is `marker[:TEXT]`, `function:[FILE:]NAME` or `usdt:[FILE:]PROVIDER:NAME`. Without a file, it is in
/// the watched program itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub enum Mark {
    /// A text that the thread writes to `trace_marker` and that begins with this one; empty: each text is a mark.
    Marker(String),
    /// The beginning of a function, by its name in the table of symbols or demangled.
    Function {
        /// The executable or library, by path or name; `None`: the program.
        file: Option<String>,
        /// The function.
        name: String,
    },
    /// A static probe (`sys/sdt.h`, dtrace).
    Usdt {
        /// As in [`Mark::Function`].
        file: Option<String>,
        /// Its provider.
        provider: String,
        /// Its name.
        name: String,
    },
}

/// Parse error of a mark.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid mark `{0}`: expected marker[:TEXT], function:[FILE:]NAME or usdt:[FILE:]PROVIDER:NAME")]
pub struct MarkError(String);

impl Mark {
    /// Most marks of a cell: each one is a row of every thread that passes it.
    pub const MOST: usize = 16;
    /// Most characters of a text.
    pub const LONGEST: usize = 64;

    /// Its name in reports.
    pub fn name(&self) -> String {
        match self {
            Mark::Marker(text) => text.clone(),
            Mark::Function { name, .. } => name.clone(),
            Mark::Usdt { provider, name, .. } => format!("{provider}:{name}"),
        }
    }

    /// Checks the marks of a cell. Errors: one line, if they are too many or two have one name.
    pub(crate) fn check(all: &[Mark]) -> Result<(), String> {
        if all.len() > Mark::MOST {
            return Err(format!("too many marks: {}, at most {}", all.len(), Mark::MOST));
        }
        let is_known = |(index, mark): (usize, &Mark)| all[..index].iter().any(|other| other.name() == mark.name());
        match all.iter().enumerate().find(|one| is_known(*one)) {
            Some((_, mark)) => Err(format!("duplicate mark `{mark}`; two marks cannot have one name")),
            None => Ok(()),
        }
    }
}

impl FromStr for Mark {
    type Err = MarkError;

    fn from_str(text: &str) -> Result<Self, MarkError> {
        let invalid = || MarkError(crate::plain(text).into_owned());
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let is_short = rest.chars().count() <= Mark::LONGEST || kind != "marker";
        if !text.chars().all(is_plain) || !is_short {
            return Err(invalid());
        }
        // C++ and Rust names have two colons.
        let is_single = |at: &usize| !rest[..*at].ends_with(':') && !rest[at + 1..].starts_with(':');
        let colons: Vec<usize> = rest.match_indices(':').map(|(at, _)| at).filter(is_single).collect();
        let after = |at: usize| rest[at + 1..].to_owned();
        let mark = match (kind, &colons[..]) {
            ("marker", _) if text != "marker:" => Mark::Marker(rest.to_owned()),
            ("function", []) => Mark::Function { file: None, name: rest.to_owned() },
            ("function", [at]) => Mark::Function { file: Some(rest[..*at].to_owned()), name: after(*at) },
            ("usdt", [at]) => Mark::Usdt { file: None, provider: rest[..*at].to_owned(), name: after(*at) },
            ("usdt", [file, at]) => {
                let provider = rest[file + 1..*at].to_owned();
                Mark::Usdt { file: Some(rest[..*file].to_owned()), provider, name: after(*at) }
            }
            _ => return Err(invalid()),
        };
        let is_whole = match &mark {
            Mark::Marker(_) => true,
            Mark::Function { file, name } => !name.is_empty() && file.as_deref() != Some(""),
            Mark::Usdt { file, provider, name } => {
                !name.is_empty() && !provider.is_empty() && file.as_deref() != Some("")
            }
        };
        Some(mark).filter(|_| is_whole).ok_or_else(invalid)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |file: &Option<String>| file.as_ref().map_or_else(String::new, |file| format!("{file}:"));
        match self {
            Mark::Marker(text) if text.is_empty() => f.write_str("marker"),
            Mark::Marker(text) => write!(f, "marker:{text}"),
            Mark::Function { file, name } => write!(f, "function:{}{name}", of(file)),
            Mark::Usdt { file, provider, name } => write!(f, "usdt:{}{provider}:{name}", of(file)),
        }
    }
}

as_text!(Mark, MarkError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_print_as_they_are_typed_and_have_names() {
        for (text, name) in [
            ("marker", ""),
            ("marker:frame: 1", "frame: 1"),
            ("function:solve", "solve"),
            ("function:Arm::solve(double)", "Arm::solve(double)"),
            ("function:/opt/a b/libarm.so:Arm::solve", "Arm::solve"),
            ("usdt:python:gc__start", "python:gc__start"),
            ("usdt:./servo:servo:solve", "servo:solve"),
        ] {
            let mark: Mark = text.parse().unwrap();
            assert_eq!((mark.to_string().as_str(), mark.name().as_str()), (text, name));
        }
        let long = format!("marker:{}", "x".repeat(65));
        for text in [
            "", "marker:", "marker:a\nb", &long, "function", "function:", "function::x", "function:a:", "usdt:x",
            "usdt:a:b:c:d",
        ] {
            assert!(text.parse::<Mark>().is_err(), "{text}");
        }
    }

    #[test]
    fn marks_are_few_and_of_different_names() {
        let marks = |texts: &[&str]| -> Vec<Mark> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        let many: Vec<Mark> = (0..17).map(|n| Mark::Marker(n.to_string())).collect();
        assert_eq!(Mark::check(&many[..16]), Ok(()));
        assert!(Mark::check(&many).unwrap_err().starts_with("too many marks: 17"));
        assert!(
            Mark::check(&marks(&["function:solve", "function:x:solve"])).unwrap_err().starts_with("duplicate mark")
        );
    }
}
