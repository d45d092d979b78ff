//! A value shared by several CPUs, stored once.

use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// A value with its CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OnCpus<T> {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Their value.
    pub value: T,
}

impl<T: PartialEq> OnCpus<T> {
    /// Collects each distinct value once, in the order of first occurrence.
    pub fn gather(values: impl IntoIterator<Item = (CpuSet, T)>) -> Vec<OnCpus<T>> {
        let mut gathered: Vec<OnCpus<T>> = Vec::new();
        for (cpus, value) in values {
            match gathered.iter_mut().find(|group| group.value == value) {
                Some(group) => group.cpus.extend(cpus.iter()),
                None => gathered.push(OnCpus { cpus, value }),
            }
        }
        gathered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_there_once() {
        let one = |cpu: u32, value| (CpuSet::from_iter([cpu]), value);
        let gathered = OnCpus::gather([one(0, 'a'), one(1, 'b'), one(2, 'a')]);
        let texts: Vec<_> = gathered.iter().map(|group| (group.cpus.to_string(), group.value)).collect();
        assert_eq!(texts, [("0,2".to_owned(), 'a'), ("1".to_owned(), 'b')]);
        assert_eq!(OnCpus::<u8>::gather([]), []);
    }
}
