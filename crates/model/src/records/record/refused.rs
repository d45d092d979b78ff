//! System calls of watched programs that the kernel refused, and the limits that refused them.

use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// A system call that asked for a policy, a priority, CPUs or locked memory, and failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RefusedCall {
    /// Name of the thread that called; empty where the thread that has this entry did.
    pub thread: String,
    /// The system call.
    pub call: String,
    /// What it asked for, as text, like `fifo` or `nice -10`; `null` where the call has it in memory.
    #[serde(alias = "policy")]
    pub asked: Option<String>,
    /// The thread for which it asked, if that is another one.
    pub target: Option<String>,
    /// Name of the error, like `EPERM`; `null` in records of versions that had no other.
    pub error: Option<String>,
    /// Number of such calls; 0 in records of versions that did not count.
    pub n: u64,
    /// The limit that refused it; `null` when unknown.
    pub limit: Option<CallLimit>,
    /// Whether a later call of its kind for the same thread succeeded.
    pub granted_later: bool,
    /// What the thread for which it asked has at the end, as text; `null` when unknown.
    pub at_end: Option<String>,
}

/// What refuses a system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallLimit {
    /// A resource limit of the process (getrlimit(2)), which lacks the capability that lifts it.
    Resource {
        /// Its name, like `RLIMIT_RTPRIO`.
        name: String,
        /// Its value: of `RLIMIT_MEMLOCK` bytes.
        value: u64,
        /// The place in which the process was started.
        place: StartPlace,
    },
    /// The process lacks a capability (capabilities(7)).
    Capability {
        /// Its name, like `CAP_SYS_NICE`.
        name: String,
        /// File of the program; `null` when it cannot be read.
        program: Option<String>,
        /// The place in which the process was started.
        place: StartPlace,
    },
    /// The control group has no real-time budget.
    RtBudget {
        /// File of the budget.
        file: String,
        /// The same of the groups above it that have none either, which come first, the outermost last.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        above: Vec<String>,
    },
    /// None of the requested CPUs is allowed.
    Cpuset {
        /// The allowed CPUs.
        cpus: CpuSet,
        /// Those that are online.
        online: CpuSet,
        /// File of the group that limits them; `null` where all that are online are allowed.
        file: Option<String>,
    },
    /// A seccomp filter of the process.
    Seccomp {
        /// The place in which the process was started.
        place: StartPlace,
    },
    /// The CPU time that the kernel has left for deadline threads.
    Bandwidth,
    /// The arguments are invalid.
    Argument,
}

/// Origin of a process: where its limits are set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "in", rename_all = "snake_case")]
pub enum StartPlace {
    /// A session.
    Session {
        /// The file of `pam_limits` that grants its user a real-time priority; `null` if none does.
        granted_by: Option<String>,
    },
    /// A system service.
    Unit {
        /// Its name, with `.service`.
        unit: String,
    },
    /// A container.
    Container {
        /// Its engine.
        engine: String,
    },
}
