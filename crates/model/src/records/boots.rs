//! The boots of a run whose kernels are installed ones.

use crate::Kernel;
use serde::{Deserialize, Serialize};

/// What was done under a running kernel, for a run over boots: one line of `boots.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootLine {
    /// What was done.
    pub event: BootEvent,
    /// Block that is measured in the boot.
    pub block: u32,
    /// Kernel that is measured in the boot.
    pub kernel: Kernel,
    /// The kernel that was running then.
    #[serde(flatten)]
    pub running: RunningKernel,
}

/// What was done for a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootEvent {
    /// The machine was set to boot the kernel next.
    Asked,
    /// The kernel was running, and its measurements began.
    Began,
}

/// A kernel that runs this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningKernel {
    /// Another one with each boot (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// Its release (uname(2)).
    pub release: String,
    /// Its command line.
    pub command_line: String,
}
