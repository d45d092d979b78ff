//! The clock of a guest.

use crate::words::word::words;
use serde::{Deserialize, Serialize};

words! {
    /// The clock of the times of a guest. Times of different clocks are never compared.
    #[derive(Default, Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    LabClock, "clock" {
        /// Virtual time: each instruction counts as one nanosecond, and nothing else takes time (QEMU, "TCG Instruction
        /// Counting"). One CPU.
        #[default]
        Virtual = "virtual",
        /// Host time, with instructions translated by QEMU: tens of times slower than hardware.
        Emulated = "emulated",
        /// Host time, with instructions run by the host's processor (KVM).
        Kvm = "kvm",
    }
}
