//! When a run ends before all of its blocks are measured.

use crate::UnknownWord;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What a run is measured until; its blocks are then the most it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Its two cells are shown to differ, or to be equivalent. It is looked at after every block.
    Decided,
    /// Its numbers are as sure as they have to be. It is looked at whenever the time has doubled.
    Enough,
}

impl FromStr for Until {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Until, UnknownWord> {
        match text {
            "decided" => Ok(Until::Decided),
            "enough" => Ok(Until::Enough),
            _ => Err(UnknownWord::new("end", text, &["decided", "enough"])),
        }
    }
}
