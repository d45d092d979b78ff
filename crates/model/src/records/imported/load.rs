//! Background work during a measurement of another tool.

use crate::Load;
use crate::words::word::as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Background work during a measurement of another tool: a load of this program, or a description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub enum ImportedLoad {
    /// A load that this program can start.
    Known(Load),
    /// A description: one line, like `idle` or `compiling a kernel`.
    Described(String),
}

/// The longest description, characters.
const MOST: usize = 200;

/// A description that is empty, too long or not one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid load `{}`: expected one line of 1 to {MOST} characters", .0.escape_debug())]
pub struct ImportedLoadError(String);

impl ImportedLoad {
    /// Returns the label for reports, cut off at the length of a label.
    pub fn label(&self) -> String {
        match self {
            ImportedLoad::Known(load) => load.label(),
            ImportedLoad::Described(text) => Load::shortened(text),
        }
    }
}

impl From<Load> for ImportedLoad {
    fn from(load: Load) -> Self {
        ImportedLoad::Known(load)
    }
}

impl FromStr for ImportedLoad {
    type Err = ImportedLoadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        // Words with a default of this program, like `stress-ng` and `idle`, do not tell what the other tool ran.
        if let Some(load) = text.parse().ok().filter(|load: &Load| load.to_string() == text) {
            return Ok(ImportedLoad::Known(load));
        }
        let is_line = !text.is_empty() && text.chars().count() <= MOST && !text.chars().any(char::is_control);
        is_line.then(|| ImportedLoad::Described(text.to_owned())).ok_or_else(|| ImportedLoadError(text.to_owned()))
    }
}

impl fmt::Display for ImportedLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportedLoad::Known(load) => load.fmt(f),
            ImportedLoad::Described(text) => f.pad(text),
        }
    }
}

as_text!(ImportedLoad, ImportedLoadError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_of_ours_is_recognized_and_any_other_line_is_kept() {
        for (text, known) in [
            ("none", true),
            ("messaging+disk", true),
            ("build=cmd:make -j4", true),
            ("idle", false),
            ("stress-ng", false),
            (" kernel compile, 8 jobs ", false),
            (&"x".repeat(200), false),
        ] {
            let load: ImportedLoad = text.parse().unwrap();
            assert_eq!(matches!(load, ImportedLoad::Known(_)), known, "{text}");
            assert_eq!(load.to_string(), text.trim());
            let stored = serde_json::to_string(&load).unwrap();
            assert_eq!(serde_json::from_str::<ImportedLoad>(&stored).unwrap(), load);
        }
        assert_eq!("x".repeat(40).parse::<ImportedLoad>().unwrap().label(), format!("{}...", "x".repeat(29)));
        for text in ["", " ", "two\nlines", "\u{1b}[2J", &"x".repeat(201)] {
            let err = text.parse::<ImportedLoad>().unwrap_err().to_string();
            assert!(err.starts_with("invalid load `") && !err.contains('\n'), "{err}");
        }
    }
}
