//! Explanation of a late activation of a watched thread: its wake-up, and what happened until its next wait.

use super::event::{CpuEvents, What};
use super::excess::{Excess, Inside, Within};
use super::judge::Scene;
use super::locate::{Piece, Wake};
use super::timeline::Stretch;
use super::{Baseline, Facts, Inherited, Subject, Symbols, Trace, explanation, is_covered};
use crate::watch::{Call, CallKind};
use punctual_model::{Cause, Explanation, Phase};

/// Explains a late activation; `None` if the trace does not cover it. `subject` is its wake-up: due at the release, and
/// back in the program at its beginning.
///
/// `cycle` and `due_ns` of the result are 0; the caller fills them in.
pub fn explain_activation(
    trace: &Trace,
    subject: &Subject,
    inside: &Inside,
    facts: &Facts,
    symbols: Symbols<'_>,
) -> Option<Explanation> {
    let one = &inside.activation;
    if !is_covered(trace, subject, facts, one.end_ns) {
        return None;
    }
    let wake = Wake::find(trace, subject);
    let mut pieces = wake.pieces(subject);
    if one.end_ns > subject.woke_ns {
        pieces.push(Piece { phase: Phase::Activation, cpu: one.cpu, from_ns: subject.woke_ns, to_ns: one.end_ns });
    }
    let baseline = Baseline::of(trace, subject);
    let inherited = Inherited::of(trace);
    let of = |activation| Within { activation, excess: Excess::of(trace, subject, facts, activation, &inside.usual) };
    let activations = inside.behind.iter().chain([one]).map(of).collect();
    let scene = Scene {
        trace,
        subject,
        asked: subject.priority,
        facts,
        symbols,
        baseline,
        inherited,
        wake: &wake,
        inside: Some(inside),
        activations,
    };
    Some(Explanation { marks: inside.marks.clone(), ..explanation(&scene, &pieces, one.end_ns) })
}

/// Longest standstill of a guest, ns, that its host may not count as stolen while the program computes: some of 1 ms
/// were seen. In a system call there is no limit, because it may need work of the host.
const UNCOUNTED_NS: u64 = 2_000_000;

impl Scene<'_> {
    /// The activation that was under way at `at_ns`: the one that is explained, or the one that it is behind.
    pub(super) fn within(&self, at_ns: u64) -> Option<&Within<'_>> {
        self.activations.iter().find(|within| at_ns < within.activation.end_ns)
    }

    /// Wait for a lock with priority inheritance on the CPU, while the holder ran on another one.
    fn spun(&self, call: Call, stretch: &Stretch) -> String {
        let since = self.within(stretch.from_ns).map_or(stretch.from_ns, |within| within.activation.user_ns);
        let raised = self
            .trace
            .cpus
            .iter()
            .flat_map(|cpu| cpu.between(since, stretch.to_ns))
            .filter(|event| event.pid == self.subject.pid && matches!(event.what, What::Inherit { .. }));
        match raised.max_by_key(|event| event.at_ns).map(|event| event.what) {
            Some(What::Inherit { pid, .. }) if pid != self.subject.pid => {
                format!("held by {}; priority inheritance is on", self.with_priority(pid))
            }
            _ => call.text(),
        }
    }

    /// Cause of running on this CPU within the activation, and a place.
    pub(super) fn ran(&self, cpu: &CpuEvents, stretch: &Stretch) -> (Cause, Option<Cause>, Option<String>) {
        let Some((inside, within)) = self.inside.zip(self.within(stretch.from_ns)) else {
            return (Cause::Unknown, None, None);
        };
        let Within { activation, excess } = within;
        let usual = (Cause::UsualRun, None, None);
        match excess.call_at(stretch.from_ns) {
            _ if excess.is_stolen => {
                (Cause::CpuStalled, None, Some("the scheduler counts less time than it had the CPU".to_owned()))
            }
            Some(call) => match excess.calls.get(&call.number) {
                Some(more_ns) => {
                    let (cause, place) = match call.kind() {
                        CallKind::Memory => (Cause::MemoryAllocation, self.described(call)),
                        CallKind::Storage => (Cause::Disk, self.described(call)),
                        CallKind::Affinity => (Cause::Migration, self.described(call)),
                        CallKind::PiLock => (Cause::Lock, self.spun(call, stretch)),
                        _ => (Cause::SystemCall, self.described(call)),
                    };
                    (cause, self.may_be_stolen(cpu, stretch, *more_ns, true).then_some(Cause::CpuStalled), Some(place))
                }
                None => usual,
            },
            None => match (excess.fault_at(stretch.from_ns), excess.user) {
                (Some(cause), _) => {
                    let faults = crate::wording::things(activation.faults.into(), "page fault");
                    (cause, None, Some(faults))
                }
                (None, Some(more_ns)) => {
                    let usual_ns = inside.usual.run_ns as f64;
                    let place = format!("usually {}", crate::wording::duration(usual_ns));
                    // Where pages came from a disk, the kernel's work for them has no events but its sleeps.
                    let reads_pages = activation.blocks.iter().any(|block| block.is_fault);
                    let or = match self.may_be_stolen(cpu, stretch, more_ns, more_ns < UNCOUNTED_NS) {
                        true => Some(Cause::CpuStalled),
                        false => reads_pages.then_some(Cause::PageFault),
                    };
                    (Cause::RanLonger, or, Some(place))
                }
                (None, None) => usual,
            },
        }
    }

    /// Whether the CPU may have been taken away for most of an excess. `may_be_uncounted`: also by a host that counts
    /// what it takes, but did not count this.
    fn may_be_stolen(&self, cpu: &CpuEvents, stretch: &Stretch, more_ns: u64, may_be_uncounted: bool) -> bool {
        let hole = super::untraced_gap::longest_hole(cpu, stretch.from_ns, stretch.to_ns).length_ns();
        let is_silent = self.facts.may_be_taken() && hole.saturating_mul(2) > more_ns;
        match self.within(stretch.from_ns).and_then(|within| within.excess.stolen_ns) {
            // A host counts what it gives to others, not what it needs itself, like for a page of the guest.
            Some(stolen_ns) => stolen_ns.saturating_mul(2) > more_ns || (is_silent && may_be_uncounted),
            None => is_silent,
        }
    }
}
