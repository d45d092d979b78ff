//! The suite's process: prepares each operation, and times batch after batch of it.

use super::{Batch, Directory, NotReady, Operation, ReadyOperation, Recorder, make};
use punctual_model::{COST_OPERATIONS, ClockId, CostOperation, CostScope, CpuSet, MonoTime, Policy, Span};
use punctual_sys::memory::SharedCounters;
use punctual_sys::{clock, mount, sched};
use serde::{Deserialize, Serialize};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::Ordering::Relaxed;

/// Rounds through all operations: a temporary disturbance then affects all of them alike.
const ROUNDS: u32 = 10;
/// Batches of an operation in a round, at most.
const BATCHES: usize = 50;
/// Length of a batch in clock readings, so that the error is at most a thousandth.
const CLOCKS: u64 = 1_000;
/// The shortest batch: reading some clocks takes less time than their resolution.
const SHORTEST: Span = Span(50_000);
/// Tries of a new batch size; the shortest counts.
const BATCH_ATTEMPTS: u32 = 3;
/// The largest batch, as a power of two: no operation is so cheap that it needs more.
const MAX_DOUBLINGS: u32 = 24;

/// The operations to measure, and their settings.
#[derive(Debug, Clone)]
pub struct SuiteRequest {
    /// The operations.
    pub scope: CostScope,
    /// The CPU that its processes share.
    pub cpus: CpuSet,
    /// The scheduling policy of its processes.
    pub policy: Policy,
    /// The time for the batches of all operations together.
    pub duration: Span,
}

/// Messages of the process, one line each. An operation is identified by its place in the table.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SuiteMessage {
    /// An operation that cannot be measured on this machine.
    Skipped { place: u8, reason: String },
    /// All other operations can be measured.
    Ready { clock_ns: u64 },
    /// The batches of one turn of an operation.
    Batches { place: u8, per_batch: u64, batches_ns: Vec<u64> },
    /// The process ends, for this reason.
    Failed { reason: String },
}

/// The ends of the pipes and counters shared with the parent.
pub(super) struct ChildEnds<'a> {
    pub(super) words: PipeWriter,
    pub(super) gate: PipeReader,
    pub(super) stop: &'a SharedCounters,
}

/// Prepares, reports that it is ready, waits for the gate, runs the request; returns the exit status.
pub(super) fn work(request: &SuiteRequest, directory: &Directory, mut ends: ChildEnds<'_>) -> i32 {
    match carry_out(request, directory, &mut ends) {
        Ok(()) => 0,
        Err(reason) => {
            // The failure may be that the parent no longer reads.
            let _ = say(&mut ends.words, &SuiteMessage::Failed { reason });
            1
        }
    }
}

fn carry_out(request: &SuiteRequest, directory: &Directory, ends: &mut ChildEnds<'_>) -> Result<(), String> {
    let broken = |err: io::Error| format!("the pipe to the cell broke: {err}");
    // Semaphores and queues then end with this process, whatever kills it. Without the permission, they are removed one
    // by one.
    let _ = mount::unshare_ipc();
    sched::set_affinity(0, &request.cpus).map_err(|err| format!("cannot run on CPU {}: {err}", request.cpus))?;
    sched::set_inherited_policy(0, request.policy).map_err(|err| format!("cannot run as {}: {err}", request.policy))?;
    let found = sched::policy(0).map_err(|err| format!("cannot read its policy: {err}"))?.to_string();
    if found != request.policy.to_string() {
        return Err(format!("cannot run as {}: the kernel reports {found}", request.policy));
    }
    // All of them once, so that errors are reported before anything is measured.
    let mut able: Vec<(u8, &CostOperation)> = Vec::new();
    for (place, operation) in (0..).zip(COST_OPERATIONS) {
        if !request.scope.operations().any(|meant| meant == operation) {
            continue;
        }
        match make(operation, directory) {
            Ok(_) => able.push((place, operation)),
            Err(NotReady::Missing(reason)) => {
                say(&mut ends.words, &SuiteMessage::Skipped { place, reason }).map_err(broken)?
            }
            Err(NotReady::Failed(err)) => return Err(format!("{}: {err}", operation.name)),
        }
    }
    let clock_ns = clock::reading(ClockId::Monotonic).ns();
    punctual_sys::fail::point("suite-ready");
    say(&mut ends.words, &SuiteMessage::Ready { clock_ns }).map_err(broken)?;
    ends.gate.read_exact(&mut [0]).map_err(broken)?;
    let slice = Span(request.duration.ns() / u64::from(ROUNDS) / (able.len() as u64).max(1));
    let mut sizes: Vec<Option<u64>> = vec![None; able.len()];
    let rounds = if request.scope == CostScope::Total { 1 } else { ROUNDS };
    for _ in 0..rounds {
        for ((place, operation), size) in able.iter().zip(&mut sizes) {
            punctual_sys::fail::point("suite-turn");
            if is_stopped(ends) {
                return Ok(());
            }
            let ready = make(operation, directory).map_err(|err| format!("{}: {err}", operation.name))?;
            let failed = |err: io::Error| format!("{}: {err}", operation.name);
            let (per_batch, batches_ns) = if request.scope == CostScope::Total {
                (operation.fixed, vec![fixed_work(ready, operation.fixed).map_err(failed)?.ns()])
            } else {
                turn(ready, size, clock_ns, slice, ends).map_err(failed)?
            };
            say(&mut ends.words, &SuiteMessage::Batches { place: *place, per_batch, batches_ns }).map_err(broken)?;
        }
    }
    Ok(())
}

fn is_stopped(ends: &ChildEnds<'_>) -> bool {
    ends.stop.get(0).is_some_and(|stop| stop.load(Relaxed) != 0)
}

/// Writes one line.
fn say(words: &mut PipeWriter, word: &SuiteMessage) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    words.write_all(&line)
}

/// The batches of one turn: as many as time allows, at least one. The first turn finds the size of a batch.
fn turn(
    mut ready: ReadyOperation,
    size: &mut Option<u64>,
    clock_ns: u64,
    slice: Span,
    ends: &ChildEnds<'_>,
) -> io::Result<(u64, Vec<u64>)> {
    let operation = &mut *ready.operation;
    let n = match (*size, ready.batch) {
        (Some(n), _) | (None, Batch::Exactly(n)) => n,
        (None, Batch::Of(unit)) => suiting(operation, unit, clock_ns)?,
    };
    *size = Some(n);
    // The first batch meets cold caches, and processes that do not wait yet.
    timed(operation, n)?;
    let until = clock::monotonic().plus(slice);
    let mut batches_ns = Vec::with_capacity(BATCHES);
    while batches_ns.is_empty() || batches_ns.len() < BATCHES && clock::monotonic() < until && !is_stopped(ends) {
        batches_ns.push(timed(operation, n)?.ns());
    }
    Ok((n, batches_ns))
}

/// The smallest batch that is long enough for the clock.
fn suiting(operation: &mut dyn Operation, unit: u64, clock_ns: u64) -> io::Result<u64> {
    let enough = Span(clock_ns.saturating_mul(CLOCKS)).max(SHORTEST);
    for doublings in 0..MAX_DOUBLINGS {
        let n = unit << doublings;
        let mut shortest = timed(operation, n)?;
        for _ in 1..BATCH_ATTEMPTS {
            if shortest < enough {
                break;
            }
            shortest = shortest.min(timed(operation, n)?);
        }
        if shortest >= enough {
            return Ok(n);
        }
    }
    Ok(unit << MAX_DOUBLINGS)
}

/// The time of one batch, including that of reading the clock.
fn timed(operation: &mut dyn Operation, n: u64) -> io::Result<Span> {
    operation.prepare(n)?;
    let began = clock::monotonic();
    operation.run(n)?;
    Ok(since(began))
}

fn since(began: MonoTime) -> Span {
    Span(clock::monotonic().0.saturating_sub(began.0))
}

/// The time that this many operations take, without the preparations in between.
fn fixed_work(mut ready: ReadyOperation, n: u64) -> io::Result<Span> {
    let at_a_time = if let Batch::Exactly(batch) = ready.batch { batch } else { n };
    let mut all = Span(0);
    for _ in 0..n / at_a_time {
        all = Span(all.ns() + timed(&mut *ready.operation, at_a_time)?.ns());
    }
    Ok(all)
}

/// Length of the turn of an operation when the suite is a load.
const TIME_SLICE: Span = Span(1_000_000);

pub(super) fn for_ever(directory: &Directory, count: &dyn Fn(u64), recorder: &mut Recorder<'_>) -> io::Result<()> {
    loop {
        for (place, operation) in COST_OPERATIONS.iter().enumerate() {
            let failed = |err: io::Error| io::Error::other(format!("{}: {err}", operation.name));
            match make(operation, directory) {
                Ok(ready) => turn_of_load(ready, place, TIME_SLICE, count, recorder).map_err(failed)?,
                Err(NotReady::Missing(reason)) => recorder.skip(place, &reason),
                Err(NotReady::Failed(err)) => return Err(failed(err)),
            }
        }
    }
}

/// Batches of the suite's size for the length of a turn, `slice`, as in [`turn`]: the first is not recorded, at least
/// one is, so that an operation that takes longer than its turn has a time, too.
fn turn_of_load(
    mut ready: ReadyOperation,
    place: usize,
    slice: Span,
    count: &dyn Fn(u64),
    recorder: &mut Recorder<'_>,
) -> io::Result<()> {
    let began = clock::monotonic();
    let operation = &mut *ready.operation;
    let (unit, n) = match ready.batch {
        Batch::Exactly(n) => (n, recorder.size(place, || Ok(n))?),
        Batch::Of(unit) => (unit, recorder.size(place, || suiting(operation, unit, recorder.clock().ns()))?),
    };
    timed(operation, n)?;
    count(n / unit);
    loop {
        let window = recorder.window();
        let batch = timed(operation, n)?;
        recorder.record(place, window, batch);
        count(n / unit);
        if since(began) >= slice {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Times;
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// Counts the operations of each batch, of which so many succeed.
    struct Batches(u64, Rc<Cell<u64>>);

    impl Operation for Batches {
        fn run(&mut self, n: u64) -> io::Result<()> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::Other)?;
            self.1.set(self.1.get() + n);
            Ok(())
        }
    }

    #[test]
    fn a_turn_of_the_load_leaves_out_its_first_batch_and_times_at_least_one() {
        // Turns that are over at once, and one that its operation ends.
        for (slice, turns, batches) in [(Span(0), 1, 1), (Span(0), 3, 3), (Span(u64::MAX), 1, 99)] {
            let times = Times::new(1).unwrap();
            let (mut recorder, run, counted) = (times.recorder(0), Rc::new(Cell::new(0)), Cell::new(0));
            for _ in 0..turns {
                let operation = Box::new(Batches(100, Rc::clone(&run)));
                let ready = ReadyOperation { operation, batch: Batch::Exactly(64) };
                let turn = turn_of_load(ready, 0, slice, &|n| counted.set(counted.get() + n), &mut recorder);
                assert_eq!(turn.is_ok(), slice == Span(0), "{turn:?}");
            }
            let record = times.record(Policy::OTHER, &[0].into_iter().collect());
            let [one] = &record.operations[..] else { panic!("one operation: {record:?}") };
            let all = one.all.unwrap();
            assert_eq!((one.per_batch, run.get()), (64, 64 * counted.get()));
            assert_eq!((all.batches, counted.get()), (batches, batches + turns));
            assert!(all.worst_ns <= all.total_ns, "{all:?}");
        }
    }

    #[test]
    fn the_load_ends_with_the_name_of_the_operation_that_failed() {
        let directory = Directory::new().unwrap();
        std::fs::remove_file(directory.name("data").unwrap().to_str().unwrap()).unwrap();
        let times = Times::new(1).unwrap();
        let counted = Cell::new(0);
        let failed = for_ever(&directory, &|n| counted.set(counted.get() + n), &mut times.recorder(0)).unwrap_err();
        assert!(failed.to_string().starts_with("syscall/stat: No such file or directory"), "{failed}");
        let record = times.record(Policy::OTHER, &[0].into_iter().collect());
        let measured: Vec<_> = record.operations.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(measured, ["syscall/null", "syscall/read", "syscall/write"]);
        let batches: u64 = record.operations.iter().filter_map(|one| Some(one.all?.batches)).sum();
        assert!(batches > 0 && counted.get() > batches, "operations are counted, not batches of several");
    }
}
