//! A late wake-up of a guest as the host has it: what the threads of its vCPU and of the emulator did meanwhile.

use crate::{Owner, Span};
use serde::{Deserialize, Serialize};

/// State of a thread of a guest on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// It ran.
    Running,
    /// It was ready to run, and another thread had its CPU.
    Waiting,
    /// It slept: a vCPU that halted, or waited for the emulator.
    Asleep,
    /// A signal or a debugger had stopped it.
    Stopped,
    /// Events of the host are missing.
    Unknown,
}

/// Interval of a thread of a guest in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostPiece {
    /// Start, ns after the due time of the wake-up.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Its length, ns.
    #[serde(rename = "length_ns")]
    pub length: Span,
    /// State.
    pub state: HostState,
    /// CPU of the host that it ran on or waited for; `null` while it slept.
    pub cpu: Option<u32>,
    /// Thread that had this CPU; `null` unless the thread waited.
    pub owner: Option<Owner>,
    /// Whether the owner is inferred, because the switch to it left no event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_inferred: bool,
}

/// Both threads during a late wake-up, each without gaps; of more than [`super::Explanation::STRETCHES`] pieces the
/// longest.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostLanes {
    /// The vCPU of the measured thread.
    pub vcpu: Vec<HostPiece>,
    /// The emulator's main loop, which serves timers and devices.
    pub emulator: Vec<HostPiece>,
}

/// The threads of a guest on this machine, by thread ID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestTids {
    /// The vCPUs, by number.
    pub vcpus: Vec<u32>,
    /// The emulator's main loop.
    pub emulator: u32,
}

/// One reading of the guest's clock between two readings of the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockMark {
    /// Host, before, `CLOCK_MONOTONIC`, ns.
    pub before_ns: u64,
    /// Host, after, ns.
    pub after_ns: u64,
    /// Guest, `CLOCK_MONOTONIC`, ns.
    pub guest_ns: u64,
}

/// Interval in which QEMU had stopped the guest on request (QMP), by the host's `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestStop {
    /// Start, ns.
    pub from_ns: u64,
    /// End, ns.
    pub to_ns: u64,
}

/// How the clock of a guest follows that of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockTie {
    /// Largest error, ns, of a time of the guest as a time of the host.
    pub error_ns: u64,
    /// Rate of the host's clock against the guest's, parts in 10^9; positive when the guest's is slower.
    pub drift_ppb: i64,
    /// Number of readings.
    pub marks: u32,
}
