//! Why a wake-up had to wait, and how sure that is.

use serde::{Deserialize, Serialize};

/// Why a wake-up had to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The CPU itself stood still: taken by a hypervisor, or by the firmware (SMI).
    Steal,
    /// Interrupts were off.
    IrqsOff,
    /// Kernel code ran on that may not be preempted, although the thread was to be switched in.
    NonPreemptible,
    /// A softirq ran.
    Softirq,
    /// An interrupt was handled.
    Interrupt,
    /// A thread of higher priority ran.
    HigherPriority,
    /// A thread of the same real-time priority ran first.
    EqualPriority,
    /// The scheduler held the thread back: real-time throttling, the fair server, or a control group's limit.
    Throttling,
    /// The fair scheduler let other threads run first.
    FairScheduling,
    /// The kernel was allowed to let the timer expire later.
    TimerSlack,
    /// The CPU was idle and took so long to come back.
    IdleExit,
    /// The thread's memory was not there.
    PageFault,
    /// The thread was stopped (SIGSTOP, a debugger).
    Stopped,
    /// The thread itself was still running when it was due.
    OwnOverrun,
    /// The answer was on its way, or not given yet: the link, and who answers.
    Away,
    /// What a wake-up costs when nothing is in its way.
    Ordinary,
    /// Nothing in the trace says it.
    Unknown,
}

/// What a statement about a cause rests on, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Events show it.
    Direct,
    /// One sound reading of what the events leave open.
    Inferred,
    /// Two causes would leave the same trace.
    TwoReadings,
    /// Events are missing.
    CannotTell,
}

impl Evidence {
    /// All, strongest first.
    pub const ALL: [Evidence; 4] = [Evidence::Direct, Evidence::Inferred, Evidence::TwoReadings, Evidence::CannotTell];

    /// Its place among all.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Evidence::Direct => 0,
            Evidence::Inferred => 1,
            Evidence::TwoReadings => 2,
            Evidence::CannotTell => 3,
        }
    }
}
