//! The floor of a machine: what takes its CPUs, by layer, from what no setting lowers to what is the user's.

use crate::words::word::words;
use crate::{CpuSet, Span};
use serde::{Deserialize, Serialize};

words! {
    /// Layer of a machine, from what no setting of it lowers to what is the user's.
    json Layer {
        /// The firmware, or in a virtual machine its host: no setting of this machine lowers it.
        FirmwareOrHost = "firmware or host",
        /// The kernel: its own timers, softirqs and paths.
        Kernel = "kernel",
        /// Settings, programs and devices of this machine: idle states, other threads, interrupts that can be moved.
        Treatable = "treatable",
        /// No event or count shows it, or two layers would leave the same trace.
        Unknown = "unknown",
    }
}

/// What one layer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LayerTotal {
    /// The layer.
    pub layer: Layer,
    /// Number of wake-ups or gaps that it took time from.
    pub gaps: u64,
    /// All of that time, ns.
    #[serde(rename = "total_ns")]
    pub total: Span,
    /// The longest in one of them, ns.
    #[serde(rename = "longest_ns")]
    pub longest: Span,
    /// Number of them in which it took more than each of [`LayerTotal::LENGTHS`].
    pub longer: [u64; 4],
}

impl LayerTotal {
    /// Lengths above which they are counted.
    pub const LENGTHS: [Span; 4] = [Span(10_000), Span(100_000), Span(1_000_000), Span(10_000_000)];

    /// Nothing so far.
    pub fn none(layer: Layer) -> LayerTotal {
        LayerTotal { layer, gaps: 0, total: Span(0), longest: Span(0), longer: [0; 4] }
    }

    /// Adds the time that it took from one.
    pub fn add(&mut self, took: Span) {
        self.gaps += 1;
        self.total = Span(self.total.ns().saturating_add(took.ns()));
        self.longest = self.longest.max(took);
        for (n, length) in self.longer.iter_mut().zip(LayerTotal::LENGTHS) {
            *n += u64::from(took > length);
        }
    }

    /// Adds what the same layer took elsewhere.
    pub fn merge(&mut self, other: &LayerTotal) {
        self.gaps += other.gaps;
        self.total = Span(self.total.ns().saturating_add(other.total.ns()));
        self.longest = self.longest.max(other.longest);
        for (n, more) in self.longer.iter_mut().zip(other.longer) {
            *n += more;
        }
    }
}

/// The floor as `punctual floor` has measured it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Floor {
    /// Identifier of the boot: another one may have another firmware or host.
    pub boot_id: Option<String>,
    /// Start of the measurement, ms since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// The measured CPUs.
    pub cpus: CpuSet,
    /// Measured time of all of them together, ns.
    #[serde(rename = "observed_ns")]
    pub observed: Span,
    /// What the firmware or the host took.
    pub below: LayerTotal,
}
