//! Published studies that a plan can repeat.

mod definition;

pub use definition::*;

use crate::UnknownWord;
use crate::words::word::as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

/// Names and definitions of all studies.
macro_rules! studies {
    ($($name:literal),* $(,)?) => {
        const NAMES: &[&str] = &[$($name),*];
        #[cfg(feature = "studies")]
        const TEXTS: &[&str] = &[$(include_str!(concat!("../../../../studies/", $name, ".toml"))),*];
        #[cfg(not(feature = "studies"))]
        const TEXTS: &[&str] = &[];
    };
}

studies![
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

/// The definitions, in the order of the names. A test parses them all, so that none is left empty.
static DEFINITIONS: LazyLock<Vec<StudyDefinition>> =
    LazyLock::new(|| TEXTS.iter().map(|text| toml::from_str(text).unwrap_or_default()).collect());

/// A published study whose numbers are part of this program. Reports show them beside those of a run that repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Study(usize);

impl Study {
    /// Whether this program has their definitions and numbers.
    pub const ARE_KNOWN: bool = cfg!(feature = "studies");
    /// Every study, by name.
    pub const KNOWN: &[&str] = NAMES;

    /// Every study, in the order of their names.
    pub fn all() -> impl Iterator<Item = Study> {
        (0..NAMES.len()).map(Study)
    }

    /// Its definition.
    pub fn definition(self) -> &'static StudyDefinition {
        static NONE: LazyLock<StudyDefinition> = LazyLock::new(StudyDefinition::default);
        // Only `FromStr` and `all` create one, from its index in the list.
        DEFINITIONS.get(self.0).unwrap_or(&NONE)
    }

    /// Name of the study.
    pub fn name(self) -> &'static str {
        NAMES.get(self.0).copied().unwrap_or_default()
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
    fn every_definition_is_whole() {
        for (name, text) in NAMES.iter().zip(TEXTS) {
            let definition: StudyDefinition = toml::from_str(text).unwrap_or_else(|err| panic!("{name}: {err}"));
            assert!(!definition.title.is_empty() && !definition.source.is_empty(), "{name}");
            let kernels: Vec<_> = definition.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            for conclusion in &definition.conclusions {
                let is_order = conclusion.falls.len() >= 2 && conclusion.below.is_none();
                let is_limit = conclusion.falls.is_empty() && conclusion.below.is_some();
                assert!(is_order || is_limit, "{name}: {}", conclusion.says);
                for cells in conclusion.falls.iter().chain([&conclusion.only]) {
                    let known = cells.kernel.iter().all(|kernel| kernels.contains(&kernel.as_str()));
                    assert!(known, "{name}: {}: {cells:?}", conclusion.says);
                }
            }
            let of_tables = definition.tables.iter().map(|table| &table.method);
            let named = of_tables.chain(definition.conclusions.iter().map(|conclusion| &conclusion.method));
            let is_known = |method: &String| definition.methods.contains(method);
            assert!(named.flatten().all(is_known), "{name}");
            let is_repeated = !definition.ways.is_empty();
            assert_eq!(is_repeated, !definition.conclusions.is_empty(), "{name}");
            assert_eq!(is_repeated, !definition.tables.is_empty(), "{name}");
            assert_eq!(is_repeated, !definition.methods.is_empty(), "{name}");
        }
        assert_eq!(Study::all().filter(|study| !study.definition().ways.is_empty()).count(), 5);
        let unknown = Study(0).definition().way("labs").unwrap_err();
        assert_eq!(unknown, "unknown way `labs` (known: lab cost co-kernel machines)");
    }

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
