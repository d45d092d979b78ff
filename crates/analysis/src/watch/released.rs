//! The futexes that a thread releases: which of its sleeps in them were for a lock.

use super::activation::Block;
use super::calls::{Call, CallKind};

/// Most releases of one activation that are kept.
const MOST: usize = 256;

/// The futexes that a thread released in one activation, by address, and when, ns.
#[derive(Debug, Default)]
pub(super) struct Released(Vec<(u64, u64)>);

impl Released {
    /// Takes a call with this first argument.
    pub(super) fn take(&mut self, call: Call, first: u64, at_ns: u64) {
        if call.wakes_futex() && self.0.len() < MOST {
            self.0.push((first, at_ns));
        }
    }

    /// Marks the sleeps that may have been waits for another activation. A thread that has slept for a lock releases it
    /// afterwards, and wakes the others that sleep for it.
    pub(super) fn mark(&self, blocks: &mut [Block]) {
        for block in blocks {
            let is_lock = self.0.iter().any(|(futex, at_ns)| *futex == block.futex && *at_ns >= block.to_ns);
            let may_be = |call: Call| call.polls() || call.kind() == CallKind::Futex && !is_lock;
            block.may_be_wait = block.call.is_some_and(may_be);
        }
    }
}
