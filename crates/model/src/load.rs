//! Background work while measuring.

mod about;
mod part;
mod place;
mod program;

use crate::UnknownWord;
use crate::word::as_text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use about::AboutLoad;
pub use part::{FileLoad, KernelLoad, LoadPart, Percent};
pub use place::LoadCpus;
pub use program::{Program, Tool};

/// Background work while measuring: any number of parts at the same time, none for `none`.
///
/// Its text form is complete: `messaging+disk`, `cmd:make -j4`, `high`, and for one that a plan has given a name,
/// `build=cmd:make -j4`. People see [`Load::label`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
#[serde(try_from = "String", into = "String")]
pub struct Load {
    /// What a plan, or this program, calls it.
    name: Option<String>,
    parts: Vec<LoadPart>,
}

/// Loads of a plan by their names.
pub type NamedLoads = BTreeMap<String, Load>;

/// Every word, as help shows it.
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
    "stress-ng:ARGS",
    "hackbench:ARGS",
    "ping:HOST",
    "fio:FILE",
    "cmd:COMMAND",
];

/// Loads of the studies: their names, and what they are made of.
const PRESETS: [(&str, &str); 3] = [("high", "cpu+disk"), ("half", "cpu:50"), ("low", "light")];

/// The most characters of a load's label.
const LABEL: usize = 32;

/// Why a text names no load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No such load.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// An option that the load does not take.
    #[error("invalid load `{0}`: expected a share of 1 to 100 percent, like cpu:50")]
    Percent(String),
    /// Another number of groups than can be.
    #[error("invalid load `{0}`: expected 1 to 1000 groups, like messaging:groups=10")]
    Groups(String),
    /// A directory that depends on where one stands.
    #[error("invalid load `{0}`: expected an absolute path, like {1}:/var/tmp")]
    Directory(String, String),
    /// A program without anything to do.
    #[error("invalid load `{0}`: expected arguments on one line, like `{1}`")]
    Arguments(String, &'static str),
    /// A load that is started twice.
    #[error("duplicate part `{0}` in a load; give each part once")]
    Twice(String),
    /// Nothing, and something.
    #[error("load `none` cannot be combined with others; leave it out")]
    NoneAndMore,
    /// A name that is no name.
    #[error("invalid load name `{0}`: expected lower-case letters, digits, - and _, beginning with a letter")]
    Name(String),
    /// A name that means something else.
    #[error("invalid load name `{0}`: already a built-in load; choose another name")]
    Taken(String),
}

impl Load {
    /// Nothing is started; whatever else the machine does goes on.
    pub const NONE: Load = Load { name: None, parts: Vec::new() };
    /// Every load as it is typed.
    pub const KNOWN: &[&str] = WORDS;

    /// Returns the name that a plan, or this program, gives it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What runs at the same time.
    #[must_use]
    pub fn parts(&self) -> &[LoadPart] {
        &self.parts
    }

    /// hackbench's pattern, as large as by default.
    #[must_use]
    pub fn messaging() -> Load {
        Load { name: None, parts: vec![LoadPart::Messaging { groups: None }] }
    }

    /// Reads a load whose parts may be `named` ones, too.
    ///
    /// # Errors
    /// When a part is neither named nor known, or has another option than it can have.
    pub fn parse(text: &str, named: &NamedLoads) -> Result<Load, LoadError> {
        let preset = PRESETS.iter().find(|(name, _)| *name == text);
        if let Some((name, parts)) = preset {
            return Ok(Load { name: Some((*name).to_owned()), ..Load::parse(parts, named)? });
        }
        if let Some(load) = named.get(text) {
            return Ok(load.clone());
        }
        if let Some((name, parts)) = named_text(text) {
            return Load::parse(parts, named)?.named(name);
        }
        if text == "none" {
            return Ok(Load::NONE);
        }
        let mut load = Load::NONE;
        let mut rest = Some(text);
        while let Some(text) = rest {
            let (part, more) = first_part(text);
            rest = more;
            match part {
                "none" => return Err(LoadError::NoneAndMore),
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

    /// Those of its parts that `is_wanted` takes.
    #[must_use]
    pub fn only(&self, is_wanted: impl Fn(&LoadPart) -> bool) -> Load {
        let parts: Vec<_> = self.parts.iter().filter(|part| is_wanted(part)).cloned().collect();
        // A name is that of the whole.
        if parts == self.parts { self.clone() } else { Load { name: None, parts } }
    }

    /// The same load with a name.
    ///
    /// # Errors
    /// When the name is none, or means another load.
    pub fn named(self, name: &str) -> Result<Load, LoadError> {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_word) {
            return Err(LoadError::Name(name.to_owned()));
        }
        if WORDS.iter().any(|form| form.split([':', '[']).next() == Some(name)) {
            return Err(LoadError::Taken(name.to_owned()));
        }
        Ok(Load { name: Some(name.to_owned()), ..self })
    }

    /// What people call it: its name, or what it is made of, cut off where that is long.
    #[must_use]
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

    /// Its parts as they are typed.
    #[must_use]
    pub fn definition(&self) -> String {
        let parts: Vec<_> = self.parts.iter().map(ToString::to_string).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join("+") }
    }
}

/// The first part of a text, and what follows it. A program takes all the rest: its arguments may have any sign.
fn first_part(text: &str) -> (&str, Option<&str>) {
    let word = text.split([':', '+']).next().unwrap_or(text);
    let is_program = Tool::ALL.iter().any(|tool| tool.name() == word && text[word.len()..].starts_with(':'));
    match text.split_once('+').filter(|_| !is_program) {
        Some((part, more)) => (part, Some(more)),
        None => (text, None),
    }
}

/// A name and what it stands for, if that is what the text is: a `=` before any option.
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
