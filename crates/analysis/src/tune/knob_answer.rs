//! The effect of one change in the confirmation, and the answer that follows.

use super::price::Number;
use crate::ComparedLoad;
use crate::comparison::Ratio;
use serde::Serialize;

/// Effect of a change in the confirmation.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ConfirmedKnob {
    /// The number with the change, divided by that of the machine as it is; its p-value is adjusted for the number of
    /// values that were confirmed, and for the number of looks. `null` if it is refused.
    pub ratio: Option<Ratio>,
    /// Whether deadline misses rose significantly.
    pub has_more_misses: bool,
    /// The price: work of the loads, as it is and with the change.
    pub loads: Vec<ComparedLoad>,
    /// The price: electrical power during the measurements, mW.
    pub power_mw: Number,
    /// The price: interrupts and context switches a second, of all CPUs.
    pub wake_ups: Number,
}

impl ConfirmedKnob {
    /// Work of the first load with the change, as a ratio to that without; `None` if unknown.
    pub fn work(&self) -> Option<f64> {
        let load = self.loads.first()?;
        let (a, b) = (load.a_per_second?, load.b_per_second?);
        (a > 0.0).then(|| b / a)
    }
}

/// Answer for a knob.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum KnobAnswer {
    /// The changed value was confirmed to be better. It is advised.
    Better,
    /// The changed value was confirmed to be worse.
    Worse,
    /// The latency is better, but deadlines are missed more often. It is not advised.
    MoreMisses,
    /// Any effect is smaller than this share.
    NoEffect {
        /// 0.04: less than 4 % in either direction.
        beyond: f64,
    },
    /// Neither an effect nor its absence is shown.
    Undecided {
        /// Number of blocks that would probably decide; `null` if unknown.
        blocks_needed: Option<u64>,
        /// Time that these blocks take, s; `null` if unknown, and in virtual time.
        seconds_needed: Option<u64>,
    },
    /// Another program changed its setting meanwhile, so its effect is unknown.
    Disturbed,
}

impl KnobAnswer {
    /// Whether the question is open.
    pub fn is_open(self) -> bool {
        matches!(self, KnobAnswer::Undecided { .. } | KnobAnswer::Disturbed)
    }
}
