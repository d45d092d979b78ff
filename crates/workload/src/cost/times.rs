//! Times of the operations of the load `cost`, written by its workers and read by the process that started it.
//!
//! Memory is bounded: of the batches of each operation the workers keep a random sample (Vitter's algorithm R, 1985),
//! and beside it the number, the sum and the longest of all. The random numbers have a fixed seed, so that in virtual
//! time the sample is the same in each run.

use super::NOT_REACHED;
use punctual_model::{
    AllBatches, COST_OPERATIONS, ClockId, CostRecord, CpuSet, OperationRecord, Policy, SkippedOperation, Span,
    SplitMix64,
};
use punctual_sys::memory::SharedNumbers;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// Batches of one operation that are kept, of all workers together.
const KEPT: usize = 512;
/// The least number that a worker keeps, where there are many of them.
const KEPT_BY_EACH: usize = 8;
/// Length of a reason in numbers of 8 bytes; a longer one is cut.
const REASON: usize = 16;
/// Size of the batches of an operation that is skipped.
const SKIPPED: u64 = u64::MAX;
/// Attempts to read an operation between two of its batches, and the pause between them.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(1);

/// The shared memory: the number of the window, for each operation the size of its batches and the reason if it is
/// skipped, and for each worker and operation a [`Header`] and the sample.
#[derive(Debug)]
pub(crate) struct Times {
    numbers: SharedNumbers,
    workers: usize,
    clock: Span,
}

/// The numbers before a sample, in this order. The version is odd while a worker writes.
struct Header<'a> {
    version: &'a AtomicU64,
    window: &'a AtomicU64,
    batches: &'a AtomicU64,
    total_ns: &'a AtomicU64,
    worst_ns: &'a AtomicU64,
    sample: &'a [AtomicU64],
}

/// Numbers of a header.
const HEADER: usize = 5;

impl Times {
    /// Memory for this number of workers. Errors: `ENOMEM`.
    pub(crate) fn new(workers: usize) -> io::Result<Times> {
        let workers = workers.max(1);
        let operations = COST_OPERATIONS.len();
        let len = 1 + operations * (1 + REASON) + workers * operations * (HEADER + kept_by_each(workers));
        Ok(Times {
            numbers: SharedNumbers::new(len)?,
            workers,
            clock: punctual_sys::clock::reading(ClockId::Monotonic),
        })
    }

    /// Time of reading the clock.
    pub(super) fn clock(&self) -> Span {
        self.clock
    }

    /// Begins a new window: batches that end from now on and began in it are recorded, earlier ones forgotten.
    pub(crate) fn begin_window(&self) {
        if let Some(window) = self.window() {
            window.fetch_add(1, Relaxed);
        }
    }

    /// The recorder of a worker, counted from 0.
    pub(crate) fn recorder(&self, worker: usize) -> Recorder<'_> {
        Recorder { times: self, worker, random: SplitMix64::new(worker as u64) }
    }

    /// Everything that was recorded in the window so far.
    pub(crate) fn record(&self, policy: Policy, cpus: &CpuSet) -> CostRecord {
        let (mut operations, mut skipped) = (Vec::new(), Vec::new());
        for (place, operation) in COST_OPERATIONS.iter().enumerate() {
            let name = operation.name.to_owned();
            let per_batch = self.size(place).map_or(0, |size| size.load(Acquire));
            if per_batch == SKIPPED {
                skipped.push(SkippedOperation { name, reason: self.reason(place) });
                continue;
            }
            let mut batches_ns = Vec::new();
            let mut all = AllBatches { batches: 0, total_ns: 0, worst_ns: 0 };
            for (of_worker, sample) in (0..self.workers).filter_map(|worker| self.of_worker(worker, place)) {
                all.batches += of_worker.batches;
                all.total_ns += of_worker.total_ns;
                all.worst_ns = all.worst_ns.max(of_worker.worst_ns);
                batches_ns.extend(sample);
            }
            if batches_ns.is_empty() {
                skipped.push(SkippedOperation { name, reason: NOT_REACHED.to_owned() });
                continue;
            }
            batches_ns.sort_unstable();
            operations.push(OperationRecord { name, per_batch, batches_ns, all: Some(all) });
        }
        let clock_ns = self.clock.ns();
        CostRecord { policy, cpus: cpus.clone(), cpu_dma_latency_us: None, clock_ns, operations, skipped }
    }

    /// What a worker recorded of an operation in the window, read while it writes nothing; `None` without any batch.
    fn of_worker(&self, worker: usize, place: usize) -> Option<(AllBatches, Vec<u64>)> {
        let header = self.header(worker, place)?;
        for _ in 0..ATTEMPTS {
            let version = header.version.load(Acquire);
            let all = AllBatches {
                batches: header.batches.load(Acquire),
                total_ns: header.total_ns.load(Acquire),
                worst_ns: header.worst_ns.load(Acquire),
            };
            let window = header.window.load(Acquire);
            let n = usize::try_from(all.batches).unwrap_or(usize::MAX);
            let sample: Vec<u64> = header.sample.iter().take(n).map(|ns| ns.load(Acquire)).collect();
            if version.is_multiple_of(2) && header.version.load(Acquire) == version {
                let is_of_window = self.window().is_some_and(|now| now.load(Relaxed) == window);
                return (is_of_window && n > 0).then_some((all, sample));
            }
            // The worker was interrupted in between.
            std::thread::sleep(PAUSE);
        }
        None
    }

    fn window(&self) -> Option<&AtomicU64> {
        self.numbers.as_slice().first()
    }

    fn size(&self, place: usize) -> Option<&AtomicU64> {
        self.numbers.as_slice().get(1 + place)
    }

    fn reason_of(&self, place: usize) -> &[AtomicU64] {
        let start = 1 + COST_OPERATIONS.len() + place * REASON;
        self.numbers.as_slice().get(start..start + REASON).unwrap_or_default()
    }

    fn reason(&self, place: usize) -> String {
        let bytes: Vec<u8> = self.reason_of(place).iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned()
    }

    fn header(&self, worker: usize, place: usize) -> Option<Header<'_>> {
        let (operations, length) = (COST_OPERATIONS.len(), HEADER + kept_by_each(self.workers));
        let start = 1 + operations * (1 + REASON) + (worker * operations + place) * length;
        let [version, window, batches, total_ns, worst_ns, sample @ ..] =
            self.numbers.as_slice().get(start..start + length)?
        else {
            return None;
        };
        Some(Header { version, window, batches, total_ns, worst_ns, sample })
    }
}

/// Batches of one operation that each worker keeps.
fn kept_by_each(workers: usize) -> usize {
    (KEPT / workers.max(1)).max(KEPT_BY_EACH)
}

/// The writing end of one worker.
pub(crate) struct Recorder<'a> {
    times: &'a Times,
    worker: usize,
    random: SplitMix64,
}

impl Recorder<'_> {
    /// Time of reading the clock.
    pub(super) fn clock(&self) -> Span {
        self.times.clock()
    }

    /// The size of the batches of an operation: that of the worker which came first, or else `found`. Errors: that of
    /// `found`.
    pub(super) fn size(&self, place: usize, found: impl FnOnce() -> io::Result<u64>) -> io::Result<u64> {
        let Some(size) = self.times.size(place) else { return found() };
        match size.load(Acquire) {
            0 => {
                let n = found()?;
                Ok(size.compare_exchange(0, n, Release, Acquire).map_or_else(|first| first, |_| n))
            }
            n => Ok(n),
        }
    }

    /// Records that this machine cannot carry out an operation.
    pub(super) fn skip(&self, place: usize, reason: &str) {
        let words = reason
            .as_bytes()
            .chunks(8)
            .map(|bytes| bytes.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte)));
        self.times.reason_of(place).iter().zip(words).for_each(|(word, bytes)| word.store(bytes, Relaxed));
        if let Some(size) = self.times.size(place) {
            size.store(SKIPPED, Release);
        }
    }

    /// The number of the current window; a batch belongs to it if it is the same afterwards.
    pub(super) fn window(&self) -> u64 {
        self.times.window().map_or(0, |window| window.load(Relaxed))
    }

    /// Records a batch that began in `window`.
    pub(super) fn record(&mut self, place: usize, window: u64, batch: Span) {
        let Some(header) = self.times.header(self.worker, place).filter(|_| window == self.window()) else { return };
        let before = if header.window.load(Relaxed) == window { header.batches.load(Relaxed) } else { 0 };
        let (total_ns, worst_ns) = match before {
            0 => (0, 0),
            _ => (header.total_ns.load(Relaxed), header.worst_ns.load(Relaxed)),
        };
        let kept = header.sample.len();
        let index = match usize::try_from(before) {
            Ok(n) if n < kept => n,
            n => self.random.below(n.unwrap_or(usize::MAX - 1) + 1),
        };
        let version = header.version.load(Relaxed);
        header.version.store(version + 1, Relaxed);
        // Nothing below becomes visible before the odd version.
        std::sync::atomic::fence(Release);
        header.window.store(window, Relaxed);
        if let Some(place) = header.sample.get(index) {
            place.store(batch.ns(), Relaxed);
        }
        header.total_ns.store(total_ns.saturating_add(batch.ns()), Relaxed);
        header.worst_ns.store(worst_ns.max(batch.ns()), Relaxed);
        header.batches.store(before + 1, Relaxed);
        header.version.store(version + 2, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: usize = 1;

    fn record(times: &Times) -> CostRecord {
        times.record(Policy::OTHER, &[0].into_iter().collect())
    }

    fn batches(times: &Times) -> Option<(Vec<u64>, AllBatches)> {
        let operation = record(times).operations.into_iter().find(|one| one.name == COST_OPERATIONS[READ].name)?;
        Some((operation.batches_ns, operation.all?))
    }

    #[test]
    fn the_batches_of_the_window_are_recorded_of_all_workers() {
        let times = Times::new(2).unwrap();
        let mut recorders = [times.recorder(0), times.recorder(1)];
        let window = recorders[0].window();
        recorders[0].record(READ, window, Span(7));
        times.begin_window();
        assert_eq!(batches(&times), None, "that one ended before the window");
        recorders[0].record(READ, window, Span(8));
        assert_eq!(batches(&times), None, "that one began before the window");
        let window = recorders[0].window();
        recorders[0].record(READ, window, Span(30));
        recorders[1].record(READ, window, Span(10));
        recorders[0].record(READ, window, Span(20));
        let all = AllBatches { batches: 3, total_ns: 60, worst_ns: 30 };
        assert_eq!(batches(&times), Some((vec![10, 20, 30], all)));
    }

    #[test]
    fn samples_are_bounded_spread_over_all_batches_and_repeatable() {
        let run = |n: u64| {
            let times = Times::new(1).unwrap();
            let mut recorder = times.recorder(0);
            let window = recorder.window();
            (1..=n).for_each(|ns| recorder.record(READ, window, Span(ns)));
            batches(&times).unwrap()
        };
        let kept = KEPT as u64;
        assert_eq!(run(kept - 1).0, (1..kept).collect::<Vec<_>>());
        assert_eq!(run(kept).0, (1..=kept).collect::<Vec<_>>());
        assert_eq!(run(kept + 1).0.len(), KEPT);
        let n = 20 * kept;
        let (sample, all) = run(n);
        assert_eq!(all, AllBatches { batches: n, total_ns: n * (n + 1) / 2, worst_ns: n });
        assert_eq!(sample.len(), KEPT);
        // With 512 of them, the share of the first half has a standard deviation of 0.022.
        let early = sample.iter().filter(|ns| **ns <= n / 2).count() as f64 / KEPT as f64;
        assert!((0.4..0.6).contains(&early), "{early}");
        assert_eq!(run(n), (sample, all));
    }

    #[test]
    fn many_workers_keep_fewer_batches_each() {
        assert_eq!([1, 2, 64, 65, 1000].map(kept_by_each), [512, 256, 8, 8, 8]);
    }

    #[test]
    fn the_first_size_counts_for_all_and_what_is_skipped_has_its_reason() {
        let times = Times::new(2).unwrap();
        let [first, second] = [times.recorder(0), times.recorder(1)];
        assert_eq!(first.size(READ, || Ok(64)).unwrap(), 64);
        assert_eq!(second.size(READ, || panic!("it is known")).unwrap(), 64);
        let long = "x".repeat(8 * REASON);
        for (place, reason, shown) in [
            (0, "no /dev/zero", "no /dev/zero"),
            (2, "eight ch", "eight ch"),
            (3, "", ""),
            (4, &*long, &*long),
            (5, &*format!("{long}y"), &*long),
        ] {
            first.skip(place, reason);
            let skipped = record(&times).skipped;
            let found = skipped.iter().find(|skipped| skipped.name == COST_OPERATIONS[place].name);
            assert_eq!(found.map(|skipped| skipped.reason.as_str()), Some(shown));
        }
        let reached = record(&times);
        assert!(reached.skipped.iter().any(|one| one.name == COST_OPERATIONS[READ].name && one.reason == NOT_REACHED));
        assert!(reached.operations.is_empty());
    }
}
