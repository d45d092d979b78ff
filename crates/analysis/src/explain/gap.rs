//! Gaps of a thread that never waits: what had its CPU between two readings of its counter.
//!
//! Where no event tells, counts of what is below the kernel give a name, or none.

use super::event::CpuEvents;
use super::judge::{Reading, Scene};
use super::locate::Piece;
use super::timeline::Stretch;
use super::{Facts, Taker, Trace};
use crate::wording::{duration, things};
use punctual_model::{Cause, Phase};
use serde::{Deserialize, Serialize};

/// Longest way into the kernel or back, ns, around an event: some hundred are usual.
const ENTRY_NS: u64 = 5_000;

/// What was counted in the time around a gap in which no event happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// System management interrupts; `None`: they cannot be counted here.
    pub smis: Option<u64>,
    /// Gaps of this CPU with a part without events.
    pub silent: u64,
    /// Time that the hypervisor took from this CPU, ns; `None`: the kernel does not count it.
    pub stolen_ns: Option<u64>,
    /// Number of other measured CPUs.
    pub others: u32,
    /// Those of them that had a gap at the same instant.
    pub others_stopped: u32,
}

impl Scene<'_> {
    /// Cause of a stretch of a gap in which the measured thread itself was current.
    pub(super) fn in_gap(&self, cpu: &CpuEvents, piece: &Piece, stretch: &Stretch) -> Reading {
        let is_all = stretch.from_ns == piece.from_ns && stretch.to_ns == piece.to_ns;
        let is_beside_events = !is_all || !cpu.between(piece.from_ns, piece.to_ns).is_empty();
        if is_beside_events && stretch.length_ns() <= ENTRY_NS {
            return Reading::direct(Cause::KernelEntry);
        }
        self.below(piece.cpu, stretch)
    }

    /// What is below the kernel in a stretch without an event that explains it: never a name that counts do not bear
    /// out.
    pub(super) fn below(&self, cpu: u32, stretch: &Stretch) -> Reading {
        let below = self.facts.below.unwrap_or_default();
        match self.facts.taker {
            _ if stretch.is_broken => Reading::cannot_tell("a context switch event is missing"),
            Taker::Nobody => Reading::cannot_tell("no event, although the CPU never stands still"),
            Taker::Hypervisor => match below.stolen_ns.filter(|ns| *ns >= stretch.length_ns()) {
                Some(ns) => Reading::inferred(
                    Cause::Hypervisor,
                    format!("no event, and {} were counted as stolen meanwhile", duration(ns as f64)),
                ),
                None => Reading::inferred(Cause::Hypervisor, "no event in the guest meanwhile"),
            },
            Taker::Firmware if ran(self.trace, cpu, stretch) || below.others_stopped < below.others => {
                Reading::cannot_tell("no event, and other CPUs ran meanwhile: no SMI, which stops all of them")
            }
            Taker::Firmware => match below.smis {
                Some(smis) if smis > 0 && smis >= below.silent => {
                    Reading::inferred(Cause::Firmware, format!("no event, and {} meanwhile", things(smis, "SMI")))
                }
                Some(0) => Reading::cannot_tell("no event, and no SMI was counted meanwhile"),
                Some(smis) => Reading::cannot_tell(format!(
                    "no event; {} for {} without events",
                    things(smis, "SMI"),
                    things(below.silent, "gap")
                )),
                None => Reading::cannot_tell("no event; SMIs cannot be counted here"),
            },
        }
    }
}

/// Whether another CPU had an event within a stretch, away from its ends.
fn ran(trace: &Trace, cpu: u32, stretch: &Stretch) -> bool {
    let margin = stretch.length_ns() / 4;
    let (from, to) = (stretch.from_ns + margin, stretch.to_ns - margin);
    trace.numbered().any(|(other, events)| other != cpu && !events.between(from, to).is_empty())
}

/// Whether a part of a gap has no event, and counts could tell what is below the kernel.
pub fn is_silent(explanation: &punctual_model::Explanation, facts: &Facts) -> bool {
    let is_open = |cause| matches!(cause, Cause::Unknown | Cause::Firmware | Cause::Hypervisor);
    facts.taker != Taker::Nobody
        && explanation.shares.iter().any(|share| share.phase == Phase::Gap && is_open(share.cause))
}
