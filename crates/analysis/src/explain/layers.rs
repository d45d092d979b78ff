//! The layer of the machine that each cause belongs to.

use super::event::Context;
use punctual_model::{Cause, Evidence, Explanation, Layer, Share};
use std::collections::BTreeMap;

/// The layer of a share: where two causes leave the same trace, or events are missing, it is unknown.
pub fn layer_of(share: &Share) -> Layer {
    if share.or.is_some() || share.evidence == Evidence::Undetermined {
        return Layer::Unknown;
    }
    match share.cause {
        Cause::CpuStalled
        | Cause::Firmware
        | Cause::Hypervisor
        | Cause::VcpuOffTheCpu
        | Cause::EmulatorOffTheCpu
        | Cause::Emulation
        | Cause::GuestStopped => Layer::FirmwareOrHost,
        // That of a device has a number, and can be moved to another CPU.
        Cause::Interrupt if Context::is_of_device(&share.owner.name) => Layer::Treatable,
        Cause::Interrupt
        | Cause::Softirq
        | Cause::InterruptsOff
        | Cause::NotPreemptible
        | Cause::KernelEntry
        | Cause::UsualWakeUp => Layer::Kernel,
        Cause::HigherPriority
        | Cause::EqualPriority
        | Cause::Throttling
        | Cause::Demoted
        | Cause::FairScheduling
        | Cause::TimerSlack
        | Cause::IdleExit
        | Cause::PageFault
        | Cause::Stopped
        | Cause::OwnOverrun
        | Cause::RanLonger
        | Cause::Lock
        | Cause::KernelLock
        | Cause::PriorityInversion
        | Cause::Disk
        | Cause::MemoryAllocation
        | Cause::SystemCall
        | Cause::Migration
        | Cause::UsualRun => Layer::Treatable,
        Cause::LinkAndTarget | Cause::InsideTheGuest | Cause::Unknown => Layer::Unknown,
    }
}

/// What each layer took of one wake-up or gap.
pub(super) fn layers_of(explanation: &Explanation) -> BTreeMap<Layer, punctual_model::Span> {
    let mut layers: BTreeMap<Layer, punctual_model::Span> = BTreeMap::new();
    for share in &explanation.shares {
        let took = layers.entry(layer_of(share)).or_default();
        *took = punctual_model::Span(took.ns() + share.total.ns());
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Totals;
    use punctual_model::{LayerTotal, Owner, Phase, Span};

    fn share(cause: Cause, or: Option<Cause>, evidence: Evidence, owner: &str, ns: u64) -> Share {
        let owner = Owner { name: owner.to_owned(), pid: None };
        let (total, phase) = (Span(ns), Phase::Gap);
        Share {
            phase,
            owner,
            threads: 1,
            cause,
            or,
            evidence,
            total,
            longest: total,
            pieces: 1,
            place: None,
            code: None,
        }
    }

    #[test]
    fn idle_states_are_never_firmware_and_what_is_ambiguous_is_unknown() {
        let idle = |or, evidence| layer_of(&share(Cause::IdleExit, or, evidence, "idle", 1));
        assert_eq!(idle(None, Evidence::Inferred), Layer::Treatable);
        assert_eq!(idle(Some(Cause::CpuStalled), Evidence::Ambiguous), Layer::Unknown);
        let interrupt = |owner| layer_of(&share(Cause::Interrupt, None, Evidence::Direct, owner, 1));
        assert_eq!(interrupt("interrupt 36 virtio1-req"), Layer::Treatable);
        assert_eq!(interrupt("interrupt local_timer (tick_nohz_handler)"), Layer::Kernel);
        assert_eq!(interrupt("interrupt call_function_single"), Layer::Kernel);
        assert_eq!(layer_of(&share(Cause::InterruptsOff, None, Evidence::Inferred, "insmod", 1)), Layer::Kernel);
        for cause in [Cause::CpuStalled, Cause::Firmware, Cause::Hypervisor] {
            assert_eq!(layer_of(&share(cause, None, Evidence::Inferred, "x", 1)), Layer::FirmwareOrHost);
            assert_eq!(layer_of(&share(cause, None, Evidence::Undetermined, "x", 1)), Layer::Unknown);
        }
    }

    #[test]
    fn a_gap_counts_once_for_each_layer_with_all_of_its_shares() {
        let direct = |cause, ns| share(cause, None, Evidence::Direct, "interrupt local_timer", ns);
        let shares =
            vec![direct(Cause::Interrupt, 6_000), direct(Cause::Softirq, 5_000), direct(Cause::Stopped, 100_000)];
        let mut totals = Totals::default();
        totals.add(&Explanation { shares: shares.clone(), ..Explanation::default() });
        totals.add(&Explanation { shares: shares[..1].to_vec(), ..Explanation::default() });
        let layer = |layer, gaps, total, longest, longer| LayerTotal {
            layer,
            gaps,
            total: Span(total),
            longest: Span(longest),
            longer,
        };
        let expected = [
            layer(Layer::Kernel, 2, 17_000, 11_000, [1, 0, 0, 0]),
            layer(Layer::Treatable, 1, 100_000, 100_000, [1, 0, 0, 0]),
        ];
        assert_eq!(totals.layers(), expected);
    }
}
