//! The CPUs that a load may run on.

use crate::words::word::as_text;
use crate::{CpuSet, CpuSetError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The CPUs of a load as given in a plan, independent of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LoadCpus {
    /// Every CPU that this process may use.
    #[default]
    All,
    /// The measured CPUs.
    Measured,
    /// The usable CPUs that are not measured.
    Others,
    /// A fixed set.
    Only(CpuSet),
}

impl LoadCpus {
    /// The CPUs on a machine where `allowed` may be used and `measured` are measured; `None`: all of `allowed`. Errors:
    /// one line, if the set is empty or not allowed.
    pub fn resolve(&self, allowed: &CpuSet, measured: &CpuSet) -> Result<Option<CpuSet>, String> {
        let cpus = match self {
            LoadCpus::All => return Ok(None),
            LoadCpus::Measured => measured.clone(),
            LoadCpus::Others => allowed.minus(measured),
            LoadCpus::Only(cpus) => cpus.clone(),
        };
        let absent = cpus.minus(allowed);
        if !absent.is_empty() {
            return Err(format!("load_cpus: CPU {absent} cannot be used here; this process may use {allowed}"));
        }
        if cpus.is_empty() {
            return Err("load_cpus: no CPU is left for the load: all that may be used are measured; \
                 measure fewer (--cpus, key `cpus`)"
                .to_owned());
        }
        Ok(Some(cpus))
    }
}

impl FromStr for LoadCpus {
    type Err = LoadCpusError;

    fn from_str(text: &str) -> Result<Self, LoadCpusError> {
        match text {
            "all" => Ok(LoadCpus::All),
            "measured" => Ok(LoadCpus::Measured),
            "others" => Ok(LoadCpus::Others),
            list => match list.parse() {
                Ok(cpus) if cpus == CpuSet::default() => Err(LoadCpusError(text.to_owned(), None)),
                Ok(cpus) => Ok(LoadCpus::Only(cpus)),
                Err(err) => Err(LoadCpusError(text.to_owned(), Some(err))),
            },
        }
    }
}

/// Parse error of the CPUs of a load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid load CPUs `{0}`: expected all, measured, others, or a list like 0-3,5")]
pub struct LoadCpusError(String, #[source] Option<CpuSetError>);

impl fmt::Display for LoadCpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadCpus::All => f.write_str("all"),
            LoadCpus::Measured => f.write_str("measured"),
            LoadCpus::Others => f.write_str("others"),
            LoadCpus::Only(cpus) => cpus.fmt(f),
        }
    }
}

as_text!(LoadCpus, LoadCpusError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_resolved_on_the_machine() {
        let cpus = |text: &str| text.parse::<CpuSet>().unwrap();
        let (allowed, measured) = (cpus("0-3"), cpus("2-3"));
        for (text, resolved) in [
            ("all", Ok(None)),
            ("measured", Ok(Some(cpus("2-3")))),
            ("others", Ok(Some(cpus("0-1")))),
            ("1,3", Ok(Some(cpus("1,3")))),
            ("3-4", Err("load_cpus: CPU 4 cannot be used here; this process may use 0-3".to_owned())),
        ] {
            let asked: LoadCpus = text.parse().unwrap();
            assert_eq!((asked.resolve(&allowed, &measured), asked.to_string()), (resolved, text.to_owned()));
        }
        let none_left = LoadCpus::Others.resolve(&allowed, &allowed).unwrap_err();
        assert!(none_left.contains("no CPU is left for the load"), "{none_left}");
    }

    #[test]
    fn what_is_no_place_is_said_so() {
        for text in ["", "some", "3-1", "-1"] {
            let message = text.parse::<LoadCpus>().unwrap_err().to_string();
            assert_eq!(
                message,
                format!("invalid load CPUs `{text}`: expected all, measured, others, or a list like 0-3,5")
            );
        }
    }
}
