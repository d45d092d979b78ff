//! Bounds of the response times of one thread, where the kernel does not show every release.

use super::activation::{Activation, Release};
use crate::stats::quantile::quantile;
use model::Histogram;

/// The shortest of usual values: 10 % are shorter.
const SHORT: f64 = 0.1;

/// Response times with a lower and an upper bound.
///
/// - Where a call returned at once, its data came at some time after the last call that slept.
/// - A semaphore, a condition variable or a queue is a futex with a number in user space. A release that finds the
///   thread running changes the number and does not enter the kernel, nor does the thread when it takes what it finds.
///   An activation longer than the usual interval, with the CPU time of two or more, may be as many.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    /// Whether the thread waits for a futex.
    pub(super) is_in_user_space: bool,
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
    pub(super) fn take(&mut self, one: &Activation) {
        if one.release != Release::Immediate {
            self.slept_release_ns = None;
        }
        let slept_ns = *self.slept_release_ns.get_or_insert(one.release_ns);
        let at_most_ns = one.end_ns.saturating_sub(slept_ns);
        let taken = Taken { run_ns: one.run_ns, response_ns: one.response_ns(), at_most_ns };
        match self.usual {
            None if self.is_in_user_space => self.first.push(taken),
            _ => self.count(taken),
        }
    }

    /// Takes what is usual: times on the CPU, and intervals between releases.
    pub(super) fn learn(&mut self, run: &Histogram, interval: &Histogram) {
        if !self.is_in_user_space {
            return;
        }
        let of = |histogram: &Histogram, p: f64| quantile(histogram, p).and_then(|ns| u64::try_from(ns).ok());
        let usual = of(run, SHORT).zip(of(interval, 0.5));
        self.usual = usual.map(|(run_ns, interval_ns)| Usual { interval_ns, run_ns }).or(self.usual);
        let first = std::mem::take(&mut self.first);
        first.into_iter().for_each(|taken| self.count(taken));
    }

    /// Most activations that one of this CPU time and response time may be.
    pub(super) fn most(&self, run_ns: u64, response_ns: u64) -> u64 {
        let may_be_several = |usual: &Usual| self.is_in_user_space && response_ns > usual.interval_ns;
        let most = self.usual.filter(may_be_several).and_then(|usual| run_ns.checked_div(usual.run_ns));
        most.unwrap_or(1).max(1)
    }

    fn count(&mut self, taken: Taken) {
        let Taken { run_ns, response_ns, at_most_ns } = taken;
        let n = self.most(run_ns, response_ns);
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
