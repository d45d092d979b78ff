//! Preemption models of the kernel.

use crate::words::word::words;
use serde::{Deserialize, Serialize};

words! {
    /// Preemption model: the points at which the kernel may preempt a task (kernel/Kconfig.preempt).
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    Preemption {
        /// Only when a task gives up its CPU or returns to user space.
        None = "PREEMPT_NONE",
        /// Also at explicit points.
        Voluntary = "PREEMPT_VOLUNTARY",
        /// Nearly everywhere.
        Full = "PREEMPT",
        /// As full; fair tasks are preempted lazily (since Linux 6.13).
        Lazy = "PREEMPT_LAZY",
        /// `PREEMPT_DYNAMIC`: chosen at boot, and not readable here.
        Dynamic = "PREEMPT_DYNAMIC",
        /// `PREEMPT_RT`: also inside most spinlocks and interrupt handlers.
        Realtime = "PREEMPT_RT",
    }
}

impl Preemption {
    /// The models that `preempt=` on a kernel command line asks for, in its order, of which the kernel uses the last.
    pub fn asked_by(command_line: &str) -> impl DoubleEndedIterator<Item = Preemption> {
        command_line.split(' ').filter_map(|word| Preemption::by_parameter(word.strip_prefix("preempt=")?))
    }

    /// The model that `preempt=` chooses by this name; `None` for names that the kernel ignores.
    pub fn by_parameter(name: &str) -> Option<Preemption> {
        match name {
            "none" => Some(Preemption::None),
            "voluntary" => Some(Preemption::Voluntary),
            "full" => Some(Preemption::Full),
            "lazy" => Some(Preemption::Lazy),
            _ => None,
        }
    }
}
