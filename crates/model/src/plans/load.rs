//! The load: background work during a measurement.

mod part;
mod place;
mod program;

use crate::UnknownWord;
use crate::words::word::as_text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use part::{AboutLoad, FileLoad, KernelLoad, LoadPart, Percent};
pub use place::LoadCpus;
pub use program::{Program, Tool};

/// Background work during a measurement: any number of parts at the same time, none for `none`.
///
/// Its text form is complete: `messaging+disk`, `cmd:make -j4`, `high`, and for a load named in a plan, `build=cmd:make
/// -j4`. Reports show [`Load::label`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub struct Load {
    /// The name from a plan's `[loads]` or from a preset.
    name: Option<String>,
    parts: Vec<LoadPart>,
}

/// Named loads of a plan.
pub type NamedLoads = BTreeMap<String, Load>;

/// Every load, as help shows it.
const WORDS: &[&str] = &[
    "none",
    "cpu[:PERCENT]",
    "messaging[:groups=N]",
    "pipe",
    "mmap",
    "fork",
    "exec",
    "tcp",
    "udp",
    "disk[:DIR]",
    "files[:DIR]",
    "sync",
    "memory",
    "timers",
    "signals",
    "proc",
    "interrupts",
    "light",
    "cost[:DIR]",
    "high",
    "half",
    "low",
    "stress-ng[:ARGS]",
    "hackbench:ARGS",
    "ping:HOST",
    "fio:FILE",
    "cmd:COMMAND",
];

/// Presets of the studies: their names and parts.
const PRESETS: [(&str, &str); 3] = [("high", "cpu+disk"), ("half", "cpu:50"), ("low", "light")];

/// The longest label of a load, characters.
const LABEL: usize = 32;

/// Parse error of a load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Unknown load.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// A CPU share outside 1 to 100 percent.
    #[error("invalid load `{0}`: expected a share of 1 to 100 percent, like cpu:50")]
    Percent(String),
    /// A number of groups out of range.
    #[error("invalid load `{0}`: expected 1 to 1000 groups, like messaging:groups=10")]
    Groups(String),
    /// A relative directory.
    #[error("invalid load `{0}`: expected an absolute path, like {1}:/var/tmp")]
    Directory(String, String),
    /// A program without arguments.
    #[error("invalid load `{0}`: expected arguments on one line, like `{1}`")]
    Arguments(String, &'static str),
    /// `hackbench` alone.
    #[error(
        "invalid load `hackbench`: expected hackbench:ARGUMENTS like hackbench:-g 10, or messaging, which is built in"
    )]
    Hackbench,
    /// An option after `=` in place of `:`.
    #[error("invalid load `{0}`: expected {1}")]
    Equals(String, String),
    /// The same part twice.
    #[error("duplicate part `{0}` in a load; give each part once")]
    Twice(String),
    /// `none` among other parts.
    #[error("load `none` cannot be combined with others; leave it out")]
    NoneAndMore,
    /// A malformed name.
    #[error("invalid load name `{0}`: expected lower-case letters, digits, - and _, beginning with a letter")]
    Name(String),
    /// A name of a built-in load.
    #[error("invalid load name `{0}`: already a built-in load; choose another name")]
    Taken(String),
}

impl Load {
    /// Whether it times the operations of the cost suite.
    pub fn times_operations(&self) -> bool {
        self.parts().iter().any(|part| matches!(part, LoadPart::Files { work: FileLoad::Cost, .. }))
    }

    /// No load; the machine's other work goes on.
    pub const NONE: Load = Load { name: None, parts: Vec::new() };
    /// Every load in its typed form.
    pub const KNOWN: &[&str] = WORDS;

    /// Returns the name from a plan or from a preset.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The parts that run at the same time.
    pub fn parts(&self) -> &[LoadPart] {
        &self.parts
    }

    /// The same load, its parts started in another order.
    pub fn rotated(&self, by: u32) -> Load {
        let mut load = self.clone();
        let n = load.parts.len().max(1);
        load.parts.rotate_left(usize::try_from(by).unwrap_or(0) % n);
        load
    }

    /// hackbench's pattern in its default size.
    pub fn messaging() -> Load {
        Load { name: None, parts: vec![LoadPart::Messaging { groups: None }] }
    }

    /// Parses a load whose parts may also be `named` ones. `idle` is another word for `none`. Errors: if a part is
    /// neither named nor known, or has an invalid option.
    pub fn parse(text: &str, named: &NamedLoads) -> Result<Load, LoadError> {
        let preset = PRESETS.iter().find(|(name, _)| *name == text);
        if let Some((name, parts)) = preset {
            return Ok(Load { name: Some((*name).to_owned()), ..Load::parse(parts, named)? });
        }
        if let Some(load) = named.get(text) {
            return Ok(load.clone());
        }
        if let Some((name, parts)) = named_text(text) {
            // `cpu=50` is `cpu:50` rather than a load called cpu.
            if is_known(name) {
                let with_colon = format!("{name}:{parts}");
                let is_load = Load::parse(parts, named).is_ok();
                let taken = |err| if is_load { LoadError::Taken(name.to_owned()) } else { err };
                Load::parse(&with_colon, named).map_err(taken)?;
                return Err(LoadError::Equals(text.to_owned(), with_colon));
            }
            return Load::parse(parts, named)?.named(name);
        }
        if text == "none" || text == "idle" {
            return Ok(Load::NONE);
        }
        let mut load = Load::NONE;
        let mut rest = Some(text);
        while let Some(text) = rest {
            let (part, more) = first_part(text);
            rest = more;
            match part {
                "none" | "idle" => return Err(LoadError::NoneAndMore),
                part if named.contains_key(part) || PRESETS.iter().any(|(name, _)| *name == part) => {
                    load.parts.extend(Load::parse(part, named)?.parts);
                }
                part => load.parts.push(LoadPart::parse(part)?),
            }
        }
        let twice = load.parts.iter().enumerate().find(|(index, part)| load.parts[..*index].contains(part));
        twice.map_or(Ok(()), |(_, part)| Err(LoadError::Twice(part.to_string())))?;
        Ok(load)
    }

    /// The load without the parts that `is_wanted` rejects.
    pub fn only(&self, is_wanted: impl Fn(&LoadPart) -> bool) -> Load {
        let parts: Vec<_> = self.parts.iter().filter(|part| is_wanted(part)).cloned().collect();
        // A name applies to the whole load only.
        if parts == self.parts { self.clone() } else { Load { name: None, parts } }
    }

    /// The same load with a name. Errors: if the name is malformed or belongs to a built-in load.
    pub fn named(self, name: &str) -> Result<Load, LoadError> {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_word) {
            return Err(LoadError::Name(name.to_owned()));
        }
        if is_known(name) {
            return Err(LoadError::Taken(name.to_owned()));
        }
        Ok(Load { name: Some(name.to_owned()), ..self })
    }

    /// The label for reports: the name or the parts, cut off at the length of a label.
    pub fn label(&self) -> String {
        Load::shortened(&self.name.clone().unwrap_or_else(|| self.definition()))
    }

    /// Cuts a text off at the length of a label.
    pub(crate) fn shortened(text: &str) -> String {
        if text.chars().count() <= LABEL {
            return text.to_owned();
        }
        text.chars().take(LABEL - 3).chain("...".chars()).collect()
    }

    /// The parts in their typed form.
    pub fn definition(&self) -> String {
        let parts: Vec<_> = self.parts.iter().map(ToString::to_string).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join("+") }
    }
}

/// Whether a name is that of a built-in load.
fn is_known(name: &str) -> bool {
    WORDS.iter().any(|form| form.split([':', '[']).next() == Some(name))
}

/// Splits a text into its first part and the rest. A program takes all of the rest, because its arguments may have any
/// character.
fn first_part(text: &str) -> (&str, Option<&str>) {
    let word = text.split([':', '+']).next().unwrap_or(text);
    let is_program = Tool::ALL.iter().any(|tool| tool.name() == word && text[word.len()..].starts_with(':'));
    match text.split_once('+').filter(|_| !is_program) {
        Some((part, more)) => (part, Some(more)),
        None => (text, None),
    }
}

/// Splits `NAME=LOAD`; `None` without a `=` before the first option.
fn named_text(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(name, _)| !name.contains([':', '+']))
}

impl FromStr for Load {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        Load::parse(text, &NamedLoads::new())
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.name {
            None => self.definition(),
            Some(name) if PRESETS.iter().any(|(preset, _)| preset == name) => name.clone(),
            Some(name) => format!("{name}={}", self.definition()),
        };
        f.pad(&text)
    }
}

as_text!(Load, LoadError);

#[cfg(test)]
mod tests;
