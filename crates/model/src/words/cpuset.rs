//! Sets of CPU numbers in the kernel's list format: `0-3,5`.

use crate::words::word::as_text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A set of CPU numbers in ascending order. The text form is the kernel's list format (cpuset(7)).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet(BTreeSet<u32>);

/// Parse error of a CPU set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuSetError {
    /// Something other than numbers and ascending ranges.
    #[error("invalid CPU list `{0}`: expected a list like 0-3,5")]
    Malformed(String),
    /// A number above the highest that Linux supports.
    #[error("invalid CPU `{0}`: expected a number from 0 to {max}", max = CpuSet::MAX_CPU)]
    TooLarge(u64),
}

impl CpuSet {
    /// The highest CPU number: `CONFIG_NR_CPUS` is 8192 at most (arch/x86/Kconfig, Linux 6.12).
    pub const MAX_CPU: u32 = 8191;

    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// The set after its noun: `CPU 3`, `CPUs 0-1`.
    pub fn named(&self) -> String {
        format!("{} {self}", if self.len() == 1 { "CPU" } else { "CPUs" })
    }

    /// The number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The CPUs of `self` that are not in `other`.
    pub fn minus(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.difference(&other.0).copied().collect())
    }

    /// The CPUs that are in both.
    pub fn common(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.intersection(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, cpus: I) {
        self.0.extend(cpus);
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    /// The empty text is the empty set, as in `/sys/devices/system/cpu/isolated`.
    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let malformed = || CpuSetError::Malformed(text.trim().to_owned());
        let number = |part: &str| match part.parse::<u64>() {
            Ok(cpu) => u32::try_from(cpu).ok().filter(|cpu| *cpu <= CpuSet::MAX_CPU).ok_or(CpuSetError::TooLarge(cpu)),
            Err(_) => Err(malformed()),
        };
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first.trim())?, number(last.trim())?);
            if first > last {
                return Err(malformed());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|next| *next == last + 1) {
                last = next;
            }
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

as_text!(CpuSet, CpuSetError);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_noun_agrees_with_the_number() {
        let named = |text: &str| text.parse::<CpuSet>().unwrap().named();
        assert_eq!(["3", "0-1"].map(named), ["CPU 3", "CPUs 0-1"]);
    }

    #[test]
    fn the_kernels_list_format_is_read_and_written() {
        for (text, printed) in [("", ""), ("0", "0"), ("0,1", "0-1"), ("5,0-3", "0-3,5"), ("2-2\n", "2")] {
            assert_eq!(text.parse::<CpuSet>().map(|cpus| cpus.to_string()), Ok(printed.to_owned()), "{text:?}");
        }
        for text in ["x", "1-", "3-1", "1,,2", "-1", ","] {
            assert_eq!(text.parse::<CpuSet>(), Err(CpuSetError::Malformed(text.to_owned())));
        }
        assert_eq!("0-99999999".parse::<CpuSet>(), Err(CpuSetError::TooLarge(99_999_999)));
    }

    proptest! {
        #[test]
        fn printed_sets_parse_back(cpus in prop::collection::btree_set(0..=CpuSet::MAX_CPU, 0..40)) {
            let set = CpuSet(cpus);
            prop_assert_eq!(set.to_string().parse::<CpuSet>(), Ok(set));
        }
    }
}
