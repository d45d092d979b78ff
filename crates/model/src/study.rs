//! Published studies that a plan can repeat.

use crate::UnknownWord;
use crate::word::as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A published study whose numbers are part of this program. Reports show them beside those of a run that repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Study(usize);

impl Study {
    /// Every study, by name.
    pub const KNOWN: &[&str] = &[
        "adeos-2005",
        "arm64-preemption-models",
        "debian10-stock-vs-rt-2020",
        "fluxsand-rpi",
        "linaro-kernelci-2026",
        "ospert-2013",
        "python-sleep-2021",
        "rpi-rt",
        "rt-tests-readme",
        "ti-sitara-2026",
        "toshiba-periodic-2010",
        "ubuntu-rt",
        "xeon-rteval",
    ];

    /// Name of the study.
    #[must_use]
    pub fn name(self) -> &'static str {
        // Only `FromStr` creates one, from its index in the list.
        Study::KNOWN.get(self.0).copied().unwrap_or_default()
    }
}

impl FromStr for Study {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let known = Study::KNOWN.iter().position(|name| *name == text);
        known.map(Study).ok_or_else(|| UnknownWord::new("study", text, Study::KNOWN))
    }
}

impl fmt::Display for Study {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

as_text!(Study, UnknownWord);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_are_known_by_their_names() {
        for name in Study::KNOWN {
            assert_eq!(name.parse::<Study>().map(|study| study.to_string()), Ok((*name).to_owned()));
        }
        assert!(Study::KNOWN.is_sorted(), "as people look them up");
        let unknown = "toshiba-2010".parse::<Study>().unwrap_err().to_string();
        assert!(
            unknown.starts_with("unknown study `toshiba-2010` (did you mean `toshiba-periodic-2010`?"),
            "{unknown}"
        );
    }
}
