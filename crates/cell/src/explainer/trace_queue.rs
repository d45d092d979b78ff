//! Queue of traces that were taken and are not explained yet, from the taking to the explaining thread.

use punctual_model::Order;
use punctual_rt::LateWakeup;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Largest size of waiting traces, bytes; from half of that on they are explained even where that disturbs the
/// measurement.
const MAX_BYTES: usize = 128 << 20;

/// The pages of each CPU.
pub(super) type Pages = Vec<Vec<u8>>;

/// A trace as a spike stopped it, and the spikes.
#[derive(Debug)]
pub(super) struct TakenTrace {
    pub(super) pages: Pages,
    /// Whether older pages were dropped.
    pub(super) is_cut: bool,
    /// The late wake-ups of each measured thread.
    pub(super) late: Vec<Vec<LateWakeup>>,
    /// Start of the complete part of the trace, `CLOCK_MONOTONIC`, ns.
    pub(super) armed_ns: u64,
    /// Offset of the method's clock from `CLOCK_MONOTONIC`, ns; positive when ahead.
    pub(super) ahead_ns: i64,
}

impl TakenTrace {
    fn bytes(&self) -> usize {
        self.pages.iter().map(Vec::len).sum()
    }

    /// The largest of its latencies, ns.
    fn worst_ns(&self) -> i64 {
        self.late.iter().flatten().map(|late| late.latency.0).max().unwrap_or(i64::MIN)
    }
}

/// Late wake-ups of each measured thread in a trace dropped for lack of room, and the offset of the method's clock, ns.
pub(super) type DroppedTrace = (Vec<Vec<LateWakeup>>, i64);

#[derive(Debug, Default)]
struct Waiting {
    traces: Vec<TakenTrace>,
    /// The spikes of traces dropped for lack of room.
    dropped: Vec<DroppedTrace>,
    /// Pages of explained traces, for reuse.
    spare: Vec<Pages>,
    is_over: bool,
}

/// The waiting traces.
#[derive(Debug)]
pub(super) struct TraceQueue {
    /// Whether traces are explained as they arrive, not only at the end or when there is little room.
    at_once: bool,
    most_bytes: usize,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl TraceQueue {
    pub(super) fn new(at_once: bool) -> TraceQueue {
        TraceQueue { at_once, most_bytes: MAX_BYTES, waiting: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a trace. Without room, those with the smallest latencies are dropped.
    pub(super) fn push(&self, taken: TakenTrace) {
        let mut waiting = self.lock();
        waiting.traces.push(taken);
        // Largest latency last.
        waiting.traces.order_by_key(TakenTrace::worst_ns);
        while waiting.traces.len() > 1 && waiting.traces.iter().map(TakenTrace::bytes).sum::<usize>() > self.most_bytes
        {
            let TakenTrace { late, pages, ahead_ns, .. } = waiting.traces.remove(0);
            waiting.dropped.push((late, ahead_ns));
            waiting.spare.push(pages);
        }
        self.changed.notify_one();
    }

    /// Empty pages of `n_cpus` CPUs, reused where possible.
    pub(super) fn pages(&self, n_cpus: usize) -> Pages {
        let mut pages = self.lock().spare.pop().unwrap_or_else(|| vec![Vec::new(); n_cpus]);
        pages.iter_mut().for_each(Vec::clear);
        pages
    }

    /// Returns pages for reuse.
    pub(super) fn reuse(&self, pages: Pages) {
        let mut waiting = self.lock();
        // One is filled while another is explained.
        if waiting.spare.len() < 2 {
            waiting.spare.push(pages);
        }
    }

    /// Marks the end: no more traces are pushed.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_one();
    }

    /// The trace with the largest latency, once one may be explained; `None` after the last one.
    pub(super) fn next(&self) -> Option<TakenTrace> {
        let mut waiting = self.lock();
        loop {
            let is_full = || waiting.traces.iter().map(TakenTrace::bytes).sum::<usize>() > self.most_bytes / 2;
            if self.at_once || waiting.is_over || is_full() {
                match waiting.traces.pop() {
                    None if waiting.is_over => return None,
                    None => {}
                    taken => return taken,
                }
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The spikes of the traces dropped for lack of room.
    pub(super) fn dropped(&self) -> Vec<DroppedTrace> {
        std::mem::take(&mut self.lock().dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{ClockTime, Nanos};

    fn taken(latency: i64, bytes: usize) -> TakenTrace {
        let late = vec![vec![LateWakeup { due: ClockTime(5), latency: Nanos(latency) }], Vec::new()];
        TakenTrace { pages: vec![vec![0; bytes]], is_cut: false, late, armed_ns: 0, ahead_ns: 0 }
    }

    #[test]
    fn the_latest_is_explained_first_and_the_least_late_dropped_when_full() {
        let queue = TraceQueue { most_bytes: 100, ..TraceQueue::new(true) };
        for (latency, bytes) in [(10, 50), (300, 40), (20, 10), (200, 30)] {
            queue.push(taken(latency, bytes));
        }
        queue.end();
        let order: Vec<i64> = std::iter::from_fn(|| queue.next()).map(|taken| taken.worst_ns()).collect();
        assert_eq!(order, [300, 200, 20]);
        let dropped = queue.dropped().into_iter().flat_map(|(late, _)| late).flatten();
        let dropped: Vec<i64> = dropped.map(|late| late.latency.0).collect();
        assert_eq!(dropped, [10]);
        // A single trace is kept, whatever its size.
        let queue = TraceQueue { most_bytes: 100, ..TraceQueue::new(true) };
        queue.push(taken(1, 500));
        assert!(queue.next().is_some() && queue.dropped().is_empty());
    }

    #[test]
    fn traces_wait_where_explaining_disturbs_until_the_end_or_little_room() {
        let queue = TraceQueue { most_bytes: 100, ..TraceQueue::new(false) };
        queue.push(taken(1, 51));
        assert!(queue.next().is_some());
        queue.push(taken(1, 50));
        let waits = std::thread::scope(|scope| {
            let explaining = scope.spawn(|| queue.next().is_some());
            queue.end();
            explaining.join().unwrap()
        });
        assert!(waits && queue.next().is_none());
    }

    #[test]
    fn pages_are_used_again_and_empty() {
        let queue = TraceQueue::new(true);
        queue.reuse(vec![vec![7; 9]; 2]);
        let pages = queue.pages(2);
        assert!(pages.len() == 2 && pages.iter().all(|pages| pages.is_empty() && pages.capacity() >= 9));
        assert_eq!(queue.pages(3).len(), 3);
    }
}
