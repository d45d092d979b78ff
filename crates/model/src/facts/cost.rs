//! The cost suite: its operations, by group, and the words that select them.

mod operations;

use crate::UnknownWord;
use crate::words::word::words;
pub use operations::COST_OPERATIONS;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

words! {
    /// Operations of one kind.
    json CostGroup {
        /// Entry into the kernel, and the most frequent system calls.
        Syscall = "syscall",
        /// Handled signals and faults.
        Signal = "signal",
        /// Creation of processes.
        Process = "process",
        /// Switches between tasks.
        Switch = "switch",
        /// Communication between processes.
        Ipc = "ipc",
        /// The network, through the loopback device.
        Net = "net",
        /// Mapping and copying of memory.
        Memory = "memory",
        /// Files.
        File = "file",
        /// The scheduler.
        Sched = "sched",
    }
}

/// One operation of the suite with its documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CostOperation {
    /// Group and name: `syscall/read`.
    pub name: &'static str,
    /// Group of the operation.
    pub group: CostGroup,
    /// Name of a single one, in the singular: `call`, `round trip`.
    pub unit: &'static str,
    /// Bytes moved by one; `None` where bandwidth is not measured.
    pub bytes: Option<u64>,
    /// Number of them in `cost:total`.
    pub fixed: u64,
    /// Description of the measurement.
    pub does: &'static str,
}

impl CostOperation {
    /// The operation with this name.
    pub fn named(name: &str) -> Option<&'static CostOperation> {
        COST_OPERATIONS.iter().find(|operation| operation.name == name)
    }
}

/// Selection of the measured operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostScope {
    /// All operations, each measured by itself.
    All,
    /// A fixed number of each: the time of a fixed amount of work.
    Total,
    /// The operations of one group.
    Group(CostGroup),
    /// One operation: its index in [`COST_OPERATIONS`].
    Operation(u8),
}

impl CostScope {
    /// The word for [`CostScope::Total`].
    const TOTAL: &str = "total";

    /// The selected operations, in the order of the suite.
    pub fn operations(self) -> impl Iterator<Item = &'static CostOperation> {
        let is_meant = move |(place, operation): &(u8, &CostOperation)| match self {
            CostScope::All | CostScope::Total => true,
            CostScope::Group(group) => operation.group == group,
            CostScope::Operation(meant) => *place == meant,
        };
        (0..).zip(COST_OPERATIONS).filter(is_meant).map(|(_, operation)| operation)
    }
}

/// The words for selections, without single operations.
const KNOWN: &[&str] =
    &["syscall", "signal", "process", "switch", "ipc", "net", "memory", "file", "sched", CostScope::TOTAL];

/// The names of the operations as typed.
static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| COST_OPERATIONS.iter().map(|operation| operation.name).collect());

impl FromStr for CostScope {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<CostScope, UnknownWord> {
        if text == CostScope::TOTAL {
            return Ok(CostScope::Total);
        }
        if let Some(group) = CostGroup::ALL.into_iter().find(|group| group.name() == text) {
            return Ok(CostScope::Group(group));
        }
        if let Some((place, _)) = (0..).zip(COST_OPERATIONS).find(|(_, operation)| operation.name == text) {
            return Ok(CostScope::Operation(place));
        }
        Err(match text.split_once('/') {
            Some((group, _)) if KNOWN.contains(&group) => UnknownWord::new("operation", text, &NAMES),
            _ => UnknownWord::new("group of operations", text, KNOWN),
        })
    }
}

impl fmt::Display for CostScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostScope::All => f.write_str("all"),
            CostScope::Total => f.write_str(CostScope::TOTAL),
            CostScope::Group(group) => group.fmt(f),
            CostScope::Operation(_) => self.operations().next().map_or(Ok(()), |operation| f.write_str(operation.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_group_can_be_asked_for_by_its_name() {
        for operation in COST_OPERATIONS {
            let scope: CostScope = operation.name.parse().unwrap();
            let meant: Vec<_> = scope.operations().collect();
            assert_eq!((scope.to_string(), meant), (operation.name.to_owned(), vec![operation]));
            assert_eq!(CostOperation::named(operation.name), Some(operation));
            assert_eq!(operation.name.split_once('/').map(|(group, _)| group), Some(operation.group.name()));
        }
        for group in CostGroup::ALL {
            let scope: CostScope = group.name().parse().unwrap();
            assert!(scope.operations().count() > 1 && scope.operations().all(|operation| operation.group == group));
        }
        assert_eq!(CostScope::All.operations().count(), COST_OPERATIONS.len());
        assert_eq!("total".parse(), Ok(CostScope::Total));
    }

    #[test]
    fn names_are_unique_and_the_operations_of_a_group_stand_together() {
        let mut names: Vec<_> = NAMES.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COST_OPERATIONS.len());
        assert!(COST_OPERATIONS.is_sorted_by_key(|operation| operation.group));
        assert!(COST_OPERATIONS.iter().all(|operation| operation.fixed > 0));
    }

    #[test]
    fn the_nearest_is_named() {
        let nearest = |text: &str| text.parse::<CostScope>().unwrap_err().to_string();
        assert_eq!(
            nearest("sycall"),
            "unknown group of operations `sycall` (did you mean `syscall`? known: syscall signal process switch ipc net \
             memory file sched total)"
        );
        assert!(nearest("syscall/raed").contains("unknown operation `syscall/raed` (did you mean `syscall/read`?"));
        assert!(nearest("sycall/read").contains("group"));
    }
}
