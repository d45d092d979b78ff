//! Where interrupts go.

use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// Affinities of interrupts (Documentation/core-api/irq/irq-affinity.rst).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Interrupts {
    /// CPUs that a new interrupt may go to.
    pub default_cpus: Option<CpuSet>,
    /// Interrupts by where they may go.
    pub groups: Vec<IrqGroup>,
}

/// Interrupts that may go to the same CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IrqGroup {
    /// Their numbers, like `24-27,30`.
    pub irqs: String,
    /// How many.
    pub count: u32,
    /// CPUs that they may go to.
    pub cpus: CpuSet,
    /// CPUs that they do go to; `null` when it is not known.
    pub effective: Option<CpuSet>,
}

impl IrqGroup {
    /// The CPUs that they do go to, as far as is known.
    #[must_use]
    pub fn reached(&self) -> &CpuSet {
        self.effective.as_ref().unwrap_or(&self.cpus)
    }
}
