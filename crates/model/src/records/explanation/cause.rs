//! Causes of late wake-ups, and the evidence for them.

use serde::{Deserialize, Serialize};

/// Cause of a delay of a wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The CPU itself was stopped: by a hypervisor, or by the firmware (SMI).
    Steal,
    /// Interrupts were off.
    IrqsOff,
    /// Kernel code that may not be preempted ran, although the thread was to be switched in.
    NonPreemptible,
    /// A softirq ran.
    Softirq,
    /// An interrupt was handled.
    Interrupt,
    /// A thread of higher priority ran.
    HigherPriority,
    /// A thread of the same real-time priority ran first.
    EqualPriority,
    /// The scheduler throttled the thread: real-time throttling, the fair server, a control group's limit, or the
    /// runtime of SCHED_DEADLINE.
    Throttling,
    /// The priority of the thread had been lowered from outside, and others ran first.
    Demoted,
    /// The fair scheduler let other threads run first.
    FairScheduling,
    /// Timer slack allowed the kernel to let the timer expire later.
    TimerSlack,
    /// The CPU was in an idle state with a long exit.
    IdleExit,
    /// The thread's memory was not resident.
    PageFault,
    /// The thread was stopped (SIGSTOP, a debugger, a frozen control group).
    Stopped,
    /// The thread itself was still running at its due time.
    OwnOverrun,
    /// The answer was in transit or not yet sent: the link and the peer.
    Away,
    /// In a guest: its vCPU was ready to run, and another thread of the host had the CPU.
    VcpuWaiting,
    /// In a guest: its vCPU slept, and the emulator, which was to wake it, waited for a CPU of the host.
    EmulatorWaiting,
    /// In a guest: its vCPU ran on the host, so that the guest itself was late; its own trace says no more.
    Guest,
    /// In a guest: the emulator itself was at work.
    Emulation,
    /// In a guest: it was stopped on the host, by a signal, a debugger or over QMP.
    GuestStopped,
    /// In an activation: it ran longer than usual, in its own code.
    LongRun,
    /// In an activation: another thread held a lock.
    Lock,
    /// In an activation: another thread held a lock of the kernel, like that of a file or of the memory map.
    KernelLock,
    /// In an activation: a thread of lower priority held a lock, and others ran instead of it.
    PriorityInversion,
    /// In an activation: it waited for a disk.
    Storage,
    /// In an activation: it got memory from the kernel or gave some back.
    Memory,
    /// In an activation: it waited in a system call, or worked there longer than usual.
    SystemCall,
    /// In an activation: it was moved to another CPU.
    Migration,
    /// In an activation: its usual work.
    UsualRun,
    /// The ordinary cost of a wake-up.
    Ordinary,
    /// No event shows the cause.
    Unknown,
}

/// Evidence for a cause, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Events show it.
    Direct,
    /// The only sound interpretation of incomplete events.
    Inferred,
    /// Two causes would leave the same trace.
    TwoReadings,
    /// Events are missing.
    CannotTell,
}

impl Evidence {
    /// All, strongest first.
    pub const ALL: [Evidence; 4] = [Evidence::Direct, Evidence::Inferred, Evidence::TwoReadings, Evidence::CannotTell];

    /// Position in [`Evidence::ALL`].
    pub fn index(self) -> usize {
        match self {
            Evidence::Direct => 0,
            Evidence::Inferred => 1,
            Evidence::TwoReadings => 2,
            Evidence::CannotTell => 3,
        }
    }
}
