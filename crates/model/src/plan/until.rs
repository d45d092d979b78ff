//! Conditions that end a run before all of its blocks are measured.

use crate::UnknownWord;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The condition that ends a run; the number of blocks is then an upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Its two cells are shown to differ or to be equivalent. Checked after every block.
    Decided,
    /// Its numbers are as precise as required. Checked whenever the measured time has doubled.
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
