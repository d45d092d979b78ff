//! What Cobalt, the co-kernel of Xenomai, counted for a measured thread.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What Cobalt counted for a thread during its cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CobaltRecord {
    /// Switches to secondary mode, where Linux schedules the thread: those latencies are of Linux.
    pub mode_switches: u64,
    /// Context switches in primary mode.
    pub context_switches: u64,
    /// System calls of Cobalt.
    pub system_calls: u64,
    /// Page faults in primary mode.
    pub page_faults: u64,
    /// Why it left primary mode for the first time, as Cobalt's signal says; `null` without a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SwitchReason>,
}

/// Reason of Cobalt for a switch to secondary mode (`SIGDEBUG_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwitchReason {
    /// A signal of Linux, like those of a debugger.
    Signal,
    /// A system call of Linux.
    SystemCall,
    /// A fault, like that of a page that is not in memory.
    Fault,
    /// It waited for a lock of a thread of lower priority.
    PriorityInversion,
    /// Memory is not locked.
    MemoryNotLocked,
    /// It ran for longer than the watchdog allows (`watchdog_timeout` of xenomai's parameters).
    Watchdog,
    /// Another reason.
    Other,
}

impl SwitchReason {
    /// The reason of a number of `SIGDEBUG_*` (`cobalt/uapi/signal.h`).
    pub fn of_number(number: u8) -> SwitchReason {
        match number {
            1 => SwitchReason::Signal,
            2 => SwitchReason::SystemCall,
            3 => SwitchReason::Fault,
            4 => SwitchReason::PriorityInversion,
            5 => SwitchReason::MemoryNotLocked,
            6 => SwitchReason::Watchdog,
            _ => SwitchReason::Other,
        }
    }
}

impl fmt::Display for SwitchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SwitchReason::Signal => "a signal",
            SwitchReason::SystemCall => "a system call of Linux",
            SwitchReason::Fault => "a fault",
            SwitchReason::PriorityInversion => "a priority inversion",
            SwitchReason::MemoryNotLocked => "memory that is not locked",
            SwitchReason::Watchdog => "Cobalt's watchdog",
            SwitchReason::Other => "another reason",
        })
    }
}
