//! Bounds of the response times of one thread, where the kernel does not show every release.

use super::activation::{Activation, Block, Release};
use crate::stats::quantile::quantile;
use punctual_model::Histogram;

/// The shortest of usual values: 10 % are shorter.
const SHORT: f64 = 0.1;

/// Most activations that one may be.
const MOST: u64 = 1_000_000;

/// Response times with a lower and an upper bound.
///
/// - Where a call returned at once, its data came at some time after the last call that slept.
/// - A semaphore, a condition variable or a queue is a futex with a number in user space. A release that finds the
///   thread running changes the number and does not enter the kernel, nor does the thread when it takes what it finds.
///   An activation longer than the usual interval, with the CPU time of two or more, may be as many. Not where a timer
///   of the thread releases it: its due times are known.
/// - A thread of a pool (of Go, Java, Rust) waits for work now in a poll, now in a futex. A poll of one that waits in a
///   futex, and a sleep in a futex that is not a lock for longer than the usual interval, was such a wait, or one
///   within the activation: its time counts in the upper bound alone.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    /// Whether the thread waits for a futex.
    pub(super) is_in_user_space: bool,
    /// Whether it may wait for its next activation in another futex, too.
    pub(super) may_wait_elsewhere: bool,
    /// Release of the last activation that slept before, ns.
    slept_release_ns: Option<u64>,
    usual: Option<Usual>,
    /// Activations before the usual one is known.
    first: Vec<Taken>,
    has_several: bool,
    at_least: Histogram,
    at_most: Histogram,
}

/// Of a thread that waits for a futex, ns.
#[derive(Debug, Clone, Copy)]
struct Usual {
    /// Median interval between releases.
    interval_ns: u64,
    short_ns: u64,
    /// Time on the CPU of a short activation.
    run_ns: u64,
}

/// One activation, ns.
#[derive(Debug, Clone, Copy)]
struct Taken {
    run_ns: u64,
    response_ns: u64,
    /// From the release of the last one that slept.
    at_most_ns: u64,
    /// Sleeps that were waits for another activation.
    idle: u64,
    is_by_timer: bool,
}

/// What is known of the response times.
#[derive(Debug, Default)]
pub(super) struct Bounded {
    /// Lower bounds; `None` if they are the response times.
    pub(super) at_least: Option<Histogram>,
    /// Upper bounds, one for each activation that there may be; `None` if they are the response times.
    pub(super) at_most: Option<Histogram>,
}

impl Bounds {
    /// Takes an activation, and sets its time in sleeps that were waits for another one.
    pub(super) fn take(&mut self, one: &mut Activation) {
        let (idle, idle_ns) = self.idle(one).fold((0, 0), |(n, sum_ns), ns| (n + 1, sum_ns + ns));
        one.idle_ns = idle_ns;
        if one.release != Release::Immediate {
            self.slept_release_ns = None;
        }
        let slept_ns = *self.slept_release_ns.get_or_insert(one.release_ns);
        let at_most_ns = one.end_ns.saturating_sub(slept_ns);
        let is_by_timer = one.release == Release::Timer;
        let taken = Taken { run_ns: one.run_ns, response_ns: one.response_ns(), at_most_ns, idle, is_by_timer };
        match self.usual {
            None if self.is_in_user_space => self.first.push(taken),
            _ => self.count(taken),
        }
    }

    /// Lengths of the sleeps that were waits for another activation, ns.
    fn idle(&self, one: &Activation) -> impl Iterator<Item = u64> {
        let length_ns = |block: &Block| block.to_ns - block.from_ns;
        let is_poll = |block: &Block| self.is_in_user_space && block.futex == 0;
        let is_idle = move |block: &&Block| self.may_wait_elsewhere && is_poll(block) || self.is_idle(length_ns(block));
        one.blocks.iter().filter(|block| block.may_be_wait).filter(is_idle).map(length_ns)
    }

    /// Whether a sleep of this length in a futex that is not a lock is a wait for another activation.
    pub(super) fn is_idle(&self, length_ns: u64) -> bool {
        self.may_wait_elsewhere && self.usual.is_some_and(|usual| length_ns > usual.interval_ns)
    }

    /// Takes what is usual: times on the CPU, and intervals between releases.
    pub(super) fn learn(&mut self, run: &Histogram, interval: &Histogram) {
        if !self.is_in_user_space && !self.may_wait_elsewhere {
            return;
        }
        let of = |histogram: &Histogram, p: f64| quantile(histogram, p).and_then(|ns| u64::try_from(ns).ok());
        let usual = of(run, SHORT).zip(of(interval, SHORT)).zip(of(interval, 0.5));
        let usual = usual.map(|((run_ns, short_ns), interval_ns)| Usual { interval_ns, short_ns, run_ns });
        self.usual = usual.or(self.usual);
        let first = std::mem::take(&mut self.first);
        first.into_iter().for_each(|taken| self.count(taken));
    }

    /// Most activations that one of this CPU time and response time may be: by its CPU time, and by the releases for
    /// which there was time.
    pub(super) fn most(&self, run_ns: u64, response_ns: u64) -> u64 {
        let may_be_several = |usual: &Usual| self.is_in_user_space && response_ns > usual.interval_ns;
        let Some(usual) = self.usual.filter(may_be_several) else { return 1 };
        let by_run = run_ns.checked_div(usual.run_ns).unwrap_or(u64::MAX);
        let by_time = response_ns.checked_div(usual.short_ns).map_or(u64::MAX, |n| n.saturating_add(1));
        by_run.min(by_time).clamp(1, MOST)
    }

    fn count(&mut self, taken: Taken) {
        let Taken { run_ns, response_ns, at_most_ns, idle, is_by_timer } = taken;
        let n = if is_by_timer { 1 } else { self.most(run_ns, response_ns) } + idle;
        let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        self.has_several |= n > 1;
        // One of them took at least its share.
        self.at_least.record(ns(response_ns / n));
        self.at_most.record_n(ns(at_most_ns), n);
    }

    /// The bounds, after [`Bounds::learn`]; `immediate` calls returned at once.
    pub(super) fn finish(&mut self, immediate: u64) -> Bounded {
        let of = |histogram: &mut Histogram, is_other: bool| is_other.then(|| std::mem::take(histogram));
        Bounded {
            at_least: of(&mut self.at_least, self.has_several),
            at_most: of(&mut self.at_most, self.has_several || immediate > 0),
        }
    }
}

#[cfg(test)]
mod tests;
