//! Measurements over boots: what each boot is for, which kernel is next, and when one is given up.

use crate::Kernel;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// How often a kernel is booted for one step until it is given up.
const MAX_TRIES: usize = 2;

/// What was done under a running kernel, for a run over boots: one line of `boots.jsonl`. A stick's turn over its
/// kernels, which have names, has the same lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootLine<K = Kernel> {
    /// What was done.
    pub event: BootEvent,
    /// Block that is measured in the boot.
    pub block: u32,
    /// Kernel that is measured in the boot.
    pub kernel: K,
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

/// What one boot is for: the measurements of one kernel in one block.
#[derive(Debug, PartialEq, Eq)]
pub struct BootStep<'a, K = Kernel> {
    /// The block.
    pub block: u32,
    /// The kernel.
    pub kernel: &'a K,
    /// Whether it is the running kernel.
    pub is_running: bool,
    /// Whether measurements are missing.
    pub is_open: bool,
}

/// All boots of a run, or of a stick's turn over its kernels.
#[derive(Debug)]
pub struct BootSteps<'a, K = Kernel> {
    /// In order.
    pub steps: Vec<BootStep<'a, K>>,
    /// What was done until now.
    pub log: &'a [BootLine<K>],
    /// The kernel that runs.
    pub running: &'a RunningKernel,
}

impl<'a, K: PartialEq + Clone> BootSteps<'a, K> {
    /// The step that this boot is for; `None` if the running kernel is not asked for, or has been used.
    pub fn now(&self) -> Option<&BootStep<'a, K>> {
        self.possible().find(|step| step.is_running && self.is_for(step))
    }

    /// The first step that needs a boot; `None` if none is left that the running kernel cannot measure.
    pub fn next(&self) -> Option<&BootStep<'a, K>> {
        self.possible().next()
    }

    fn possible(&self) -> impl Iterator<Item = &BootStep<'a, K>> {
        self.open().filter(|step| self.why_given_up(step).is_none())
    }

    /// The steps with missing measurements.
    pub fn open(&self) -> impl Iterator<Item = &BootStep<'a, K>> {
        self.steps.iter().filter(|step| step.is_open)
    }

    /// A line of the log about `step` under the running kernel.
    pub fn line(&self, event: BootEvent, step: &BootStep<'_, K>) -> BootLine<K> {
        BootLine { event, block: step.block, kernel: step.kernel.clone(), running: self.running.clone() }
    }

    /// Whether this boot has not been used for another step: each block has a boot of its own.
    fn is_for(&self, step: &BootStep<'_, K>) -> bool {
        let mut began = self.log.iter().filter(|line| line.event == BootEvent::Began && self.is_of_this_boot(line));
        began.all(|line| line.block == step.block && line.kernel == *step.kernel)
    }

    fn is_of_this_boot(&self, line: &BootLine<K>) -> bool {
        line.running.boot_id == self.running.boot_id
    }

    /// Earlier boots with this event for a step.
    fn tries(&self, event: BootEvent, step: &BootStep<'_, K>) -> usize {
        let lines = self.log.iter().filter(|line| line.event == event && !self.is_of_this_boot(line));
        let of_step = lines.filter(|line| line.block == step.block && line.kernel == *step.kernel);
        of_step.map(|line| &line.running.boot_id).collect::<HashSet<_>>().len()
    }

    /// Reason why a step is not tried again: it was booted in vain, or another one of its kernel.
    pub fn why_given_up(&self, step: &BootStep<'_, K>) -> Option<String> {
        let mut of_kernel = self.open().filter(|other| other.kernel == step.kernel);
        of_kernel.find_map(|step| {
            let [asked, began] = [BootEvent::Asked, BootEvent::Began].map(|event| self.tries(event, step));
            // The boot that was asked for may be this one.
            if began < MAX_TRIES && (asked < MAX_TRIES || step.is_running) {
                return None;
            }
            Some(match began {
                0 => {
                    format!("booted {asked} times, and another kernel ran afterwards, at last {}", self.running.release)
                }
                // Some boots may have been made by hand.
                _ => format!(
                    "booted {} times, and the machine went down {began} times while it was measured",
                    asked.max(began)
                ),
            })
        })
    }
}
