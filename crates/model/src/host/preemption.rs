//! Preemption models of the kernel.

use serde::{Deserialize, Serialize};

/// Preemption model: the points at which the kernel may preempt a task (kernel/Kconfig.preempt).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Preemption {
    /// Only when a task gives up its CPU or returns to user space.
    None,
    /// Also at explicit points.
    Voluntary,
    /// Nearly everywhere.
    Full,
    /// As full; fair tasks are preempted lazily (since Linux 6.13).
    Lazy,
    /// `PREEMPT_DYNAMIC`: chosen at boot, and not readable here.
    Dynamic,
    /// `PREEMPT_RT`: also inside most spinlocks and interrupt handlers.
    Realtime,
}

impl Preemption {
    /// The models that `preempt=` on a kernel command line asks for, in its order, of which the kernel uses the last.
    pub fn asked_by(command_line: &str) -> impl DoubleEndedIterator<Item = Preemption> {
        command_line.split(' ').filter_map(|word| Preemption::by_parameter(word.strip_prefix("preempt=")?))
    }

    /// The model that `preempt=` chooses by this name; `None` for names that the kernel ignores.
    #[must_use]
    pub fn by_parameter(name: &str) -> Option<Preemption> {
        match name {
            "none" => Some(Preemption::None),
            "voluntary" => Some(Preemption::Voluntary),
            "full" => Some(Preemption::Full),
            "lazy" => Some(Preemption::Lazy),
            _ => None,
        }
    }

    /// The name in kernel documentation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Preemption::None => "PREEMPT_NONE",
            Preemption::Voluntary => "PREEMPT_VOLUNTARY",
            Preemption::Full => "PREEMPT",
            Preemption::Lazy => "PREEMPT_LAZY",
            Preemption::Dynamic => "PREEMPT_DYNAMIC",
            Preemption::Realtime => "PREEMPT_RT",
        }
    }
}
