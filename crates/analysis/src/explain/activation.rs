//! Explanation of a late activation of a watched thread: its wake-up, and what happened until its next wait.

use super::event::{CpuEvents, What};
use super::excess::{Excess, Inside};
use super::judge::Scene;
use super::locate::{Piece, Wake};
use super::own::{self, ThreadState};
use super::timeline::Stretch;
use super::{Baseline, Facts, Inherited, Subject, Symbols, Trace, explanation, is_covered};
use crate::watch::{Block, Call, CallKind};
use model::{Cause, Explanation, Phase};
use std::collections::BTreeMap;

/// Explains a late activation; `None` if the trace does not cover it. `subject` is its wake-up: due at the release, and
/// back in the program at its beginning.
///
/// `cycle` and `due_ns` of the result are 0; the caller fills them in.
#[must_use]
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
    let excess = Excess::of(trace, subject, facts, inside);
    let inside = Some((inside, &excess));
    let scene = Scene { trace, subject, facts, symbols, baseline, inherited, wake: &wake, inside };
    Some(explanation(&scene, &pieces, one.end_ns))
}

/// What a sleep within an activation was for.
pub(super) struct Sleep {
    pub(super) cause: Cause,
    /// The thread that it waited for; `None`: itself.
    pub(super) owner: Option<i32>,
    pub(super) place: String,
    /// Whether events show it.
    pub(super) is_certain: bool,
}

/// Longest standstill of a guest, ns, that its host may not count as stolen while the program computes: some of 1 ms
/// were seen. In a system call there is no limit, because it may need work of the host.
const UNCOUNTED_NS: u64 = 2_000_000;

impl Scene<'_> {
    /// The sleep of the activation that is under way at `at_ns`.
    fn block_at(&self, at_ns: u64) -> Option<Block> {
        let blocks = &self.inside?.0.activation.blocks;
        blocks.iter().find(|block| (block.from_ns..=block.to_ns).contains(&at_ns)).copied()
    }

    /// What the thread slept for between two instants of the activation.
    pub(super) fn slept(&self, from_ns: u64, to_ns: u64) -> Sleep {
        let unknown =
            |place: &str| Sleep { cause: Cause::Unknown, owner: None, place: place.to_owned(), is_certain: false };
        let Some(block) = self.block_at(from_ns + (to_ns - from_ns) / 2) else {
            return unknown("the events of its sleep are missing");
        };
        let certain = |cause, owner, place| Sleep { cause, owner, place, is_certain: true };
        let Some(call) = block.call else {
            return match block.is_fault {
                true => certain(Cause::PageFault, None, "the page came from a file or from swap".to_owned()),
                false => unknown("it slept outside of system calls, without a page fault"),
            };
        };
        let until = match block.waker {
            Some(waker) => format!(", until {} woke it", self.named(waker)),
            None => ", until an interrupt or a timer woke it".to_owned(),
        };
        if call.is_unknown() {
            return unknown(&format!("the trace has no system calls{until}"));
        }
        let plain = |cause| certain(cause, None, format!("{}{until}", self.described(call)));
        match call.kind() {
            CallKind::PiLock | CallKind::Futex if block.waker.is_none() => plain(Cause::SystemCall),
            CallKind::PiLock => {
                let holder = block.waker.map_or_else(String::new, |pid| self.with_priority(pid));
                certain(Cause::Lock, block.waker, format!("held by {holder}; priority inheritance is on"))
            }
            CallKind::Futex if call.text() != "futex" => plain(Cause::SystemCall),
            CallKind::Futex => self.lock(block),
            CallKind::Memory => plain(Cause::Memory),
            CallKind::Storage => plain(Cause::Storage),
            CallKind::Affinity => plain(Cause::Migration),
            CallKind::Sleep => certain(Cause::SystemCall, None, format!("it sleeps itself: {}", call.text())),
            CallKind::Other if block.is_uninterruptible => plain(Cause::Storage),
            CallKind::Other => plain(Cause::SystemCall),
        }
    }

    /// A sleep in a futex that another thread ended: a lock, as far as events show.
    fn lock(&self, block: Block) -> Sleep {
        let Some(holder) = block.waker else {
            return Sleep { cause: Cause::Unknown, owner: None, place: String::new(), is_certain: false };
        };
        let who = self.with_priority(holder);
        let (ours, theirs) = (self.subject.priority, self.priority(holder));
        let is_lower = theirs.is_some_and(|theirs| theirs > ours);
        let (between, waited_ns) = self.ran_instead_of(holder, block.from_ns, block.to_ns);
        let is_inverted = is_lower && waited_ns * 10 > block.to_ns - block.from_ns;
        match between.filter(|_| is_inverted) {
            Some(between) => Sleep {
                cause: Cause::PriorityInversion,
                owner: Some(holder),
                place: format!("held by {who}, while {} ran instead of it", self.with_priority(between)),
                is_certain: true,
            },
            None => Sleep {
                cause: Cause::Lock,
                owner: Some(holder),
                place: format!(
                    "held by {who}{}",
                    if is_lower { ", of lower priority, without inheritance" } else { "" }
                ),
                is_certain: true,
            },
        }
    }

    /// The thread of lower priority than ours that ran longest while `holder` was runnable and did not run, and the
    /// time of all of them, ns.
    fn ran_instead_of(&self, holder: i32, from_ns: u64, to_ns: u64) -> (Option<i32>, u64) {
        let mut by: BTreeMap<i32, u64> = BTreeMap::new();
        for interval in own::intervals(self.trace, holder, self.subject.cpu, from_ns, to_ns) {
            let ThreadState::Runnable(cpu) = interval.state else { continue };
            let Some(events) = self.trace.cpu(cpu) else { continue };
            for stretch in super::timeline::stretches(events, interval.from_ns, interval.to_ns) {
                let is_between = stretch.priority.is_some_and(|priority| priority > self.subject.priority);
                if is_between && stretch.context.is_none() && stretch.pid != holder && stretch.pid != 0 {
                    *by.entry(stretch.pid).or_default() += stretch.length_ns();
                }
            }
        }
        let longest = by.iter().max_by_key(|(_, ns)| **ns).map(|(pid, _)| *pid);
        (longest, by.values().sum())
    }

    /// Priority of a thread without what it inherits: the lowest with which a switch shows it.
    fn priority(&self, pid: i32) -> Option<i32> {
        let shown = self.trace.cpus.iter().flat_map(|cpu| &cpu.events).filter_map(|event| match event.what {
            What::Switch { next, next_priority, .. } if next == pid => Some(next_priority),
            What::Switch { prev, prev_priority, .. } if prev == pid => Some(prev_priority),
            _ => None,
        });
        shown.max().or_else(|| self.inside?.0.priorities.get(&pid).copied())
    }

    fn named(&self, pid: i32) -> String {
        self.trace.owner_name(None, pid)
    }

    /// A thread with its priority as users write it: `logger (nice 10)`.
    fn with_priority(&self, pid: i32) -> String {
        let name = self.named(pid);
        match self.priority(pid) {
            None => name,
            Some(-1) => format!("{name} (deadline)"),
            Some(priority) if priority < 100 => format!("{name} (priority {})", 99 - priority),
            Some(priority) => format!("{name} (nice {})", priority - 120),
        }
    }

    /// A system call with the file that it is about.
    fn described(&self, call: Call) -> String {
        let text = call.text();
        let is_about_file = text.ends_with(')') && call.kind() == CallKind::Other;
        let file = self.inside.filter(|_| is_about_file).and_then(|(inside, _)| inside.files.get(&call.detail));
        file.map_or(text.clone(), |file| format!("{text} {file}"))
    }

    /// Wait for a lock with priority inheritance on the CPU, while the holder ran on another one.
    fn spun(&self, call: Call, stretch: &Stretch) -> String {
        let since = self.inside.map_or(stretch.from_ns, |(inside, _)| inside.activation.user_ns);
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
        let Some((inside, excess)) = self.inside else { return (Cause::Unknown, None, None) };
        let usual = (Cause::UsualRun, None, None);
        match excess.call_at(stretch.from_ns) {
            _ if excess.is_stolen => {
                (Cause::Steal, None, Some("the scheduler counts less time than it had the CPU".to_owned()))
            }
            Some(call) => match excess.calls.get(&call.number) {
                Some(more_ns) => {
                    let (cause, place) = match call.kind() {
                        CallKind::Memory => (Cause::Memory, self.described(call)),
                        CallKind::Storage => (Cause::Storage, self.described(call)),
                        CallKind::Affinity => (Cause::Migration, self.described(call)),
                        CallKind::PiLock => (Cause::Lock, self.spun(call, stretch)),
                        _ => (Cause::SystemCall, self.described(call)),
                    };
                    (cause, self.may_be_stolen(cpu, stretch, *more_ns, true).then_some(Cause::Steal), Some(place))
                }
                None => usual,
            },
            None => match (excess.fault_at(stretch.from_ns), excess.user) {
                (Some(cause), _) => {
                    let faults = crate::wording::things(inside.activation.faults.into(), "page fault");
                    (cause, None, Some(faults))
                }
                (None, Some(more_ns)) => {
                    let usual_ns = inside.usual.run_ns as f64;
                    let place = format!("usually {}", crate::wording::duration(usual_ns));
                    // Where pages came from a disk, the kernel's work for them has no events but its sleeps.
                    let reads_pages = inside.activation.blocks.iter().any(|block| block.is_fault);
                    let or = match self.may_be_stolen(cpu, stretch, more_ns, more_ns < UNCOUNTED_NS) {
                        true => Some(Cause::Steal),
                        false => reads_pages.then_some(Cause::PageFault),
                    };
                    (Cause::LongRun, or, Some(place))
                }
                (None, None) => usual,
            },
        }
    }

    /// Whether the CPU may have been taken away for most of an excess. `may_be_uncounted`: also by a host that counts
    /// what it takes, but did not count this.
    fn may_be_stolen(&self, cpu: &CpuEvents, stretch: &Stretch, more_ns: u64, may_be_uncounted: bool) -> bool {
        let hole = super::silence::longest_hole(cpu, stretch.from_ns, stretch.to_ns).length_ns();
        let is_silent = self.facts.may_be_taken() && hole.saturating_mul(2) > more_ns;
        match self.inside.and_then(|(_, excess)| excess.stolen_ns) {
            // A host counts what it gives to others, not what it needs itself, like for a page of the guest.
            Some(stolen_ns) => stolen_ns.saturating_mul(2) > more_ns || (is_silent && may_be_uncounted),
            None => is_silent,
        }
    }
}
