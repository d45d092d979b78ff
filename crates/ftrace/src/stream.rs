//! Files with one record after the other, those of all CPUs mixed, as the events of a recorded trace.

use super::dat::{DatError, MOST_CPUS, Parser};
use super::recording::{MOST_WINDOW, RecordingError};
use super::timer_clock::TimerClock;
use super::window::forget_before;
use punctual_analysis::explain::{CpuEvents, Event, Trace};
use punctual_analysis::recorded::Recording;
use std::io::{Read, Seek};
use std::ops::Range;

/// Bytes of a file that are read at once.
const BLOCK: u64 = 1 << 18;
/// Longest time, ns, by which an event is behind a later one of another CPU, besides what the kind of file allows: a
/// CPU may be stopped between reading the clock and writing the event.
const LAG_NS: u64 = 100_000_000;
/// Most bytes between two marks that earlier events are complete.
const MOST_ROUND: u64 = 512 << 20;
/// Most places in the index, and events of it.
const MOST_PLACES: usize = 4096;
const MOST_LATEST: usize = 1 << 20;

/// The records of one kind of file.
pub(super) trait Records {
    /// Passes the events of the records that `bytes` begins with to `part`. Returns the distance to the first record
    /// that is not whole. Errors: when a record is damaged.
    fn read(&mut self, bytes: &[u8], part: &mut Part<'_>) -> Result<u64, DatError>;

    /// An empty trace.
    fn begin(&self) -> Trace;

    /// The kernel's function at an address.
    fn function(&self, address: u64) -> Option<String>;

    /// Adds what is known of all events to a trace.
    fn finish(&self, _: &mut Trace) {}
}

/// How far a file is read.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Where the next record begins.
    place: u64,
    /// The latest event, ns.
    latest_ns: u64,
    /// The same when earlier events were last known to be complete, and the time before which they are.
    round_ns: u64,
    complete_ns: u64,
    /// Bytes since then.
    round_bytes: u64,
}

impl Progress {
    /// Whatever is read after the next round was recorded after the latest event of this one.
    fn end_round(&mut self) {
        self.complete_ns = self.complete_ns.max(self.round_ns);
        self.round_ns = self.latest_ns;
        self.round_bytes = 0;
    }

    /// The time before which all events are known, ns.
    fn known_ns(&self) -> u64 {
        self.complete_ns.saturating_sub(LAG_NS)
    }
}

/// The events of a block.
pub(super) struct Part<'a> {
    /// Where they belong, with names of threads and the like.
    pub(super) trace: &'a mut Trace,
    progress: Progress,
    clocks: &'a mut Clocks,
}

/// The clock of timers as each CPU shows it; `None`: it is that of the file.
type Clocks = Option<Vec<TimerClock>>;

impl Part<'_> {
    /// The latest event so far, ns; 0: there is none.
    pub(super) fn latest_ns(&self) -> u64 {
        self.progress.latest_ns
    }

    /// Adds an event.
    pub(super) fn add(&mut self, cpu: u32, mut event: Event) {
        if let Some(clock) = self.clock(cpu)
            && !clock.translate_one(&mut event)
        {
            return;
        }
        if let Some(events) = self.cpu(cpu) {
            events.events.push(event);
            self.progress.latest_ns = self.progress.latest_ns.max(event.at_ns);
        }
    }

    /// Notes that events before this time, ns, were lost; before the first event of the file, that it begins late.
    pub(super) fn lost(&mut self, cpu: u32, at_ns: u64) {
        let is_first = self.progress.latest_ns == 0;
        if let Some(events) = self.cpu(cpu) {
            if is_first { events.is_cut = true } else { events.lost_ns.push(at_ns) }
        }
    }

    /// Notes the expiry of a timer, ns by the clocks of the file and of the timer.
    pub(super) fn expiry(&mut self, cpu: u32, at_ns: u64, now_ns: u64) {
        self.clock(cpu).into_iter().for_each(|clock| clock.note(at_ns, now_ns));
    }

    fn clock(&mut self, cpu: u32) -> Option<&mut TimerClock> {
        let index = usize::try_from(cpu).ok().filter(|_| cpu < MOST_CPUS)?;
        let clocks = self.clocks.as_mut()?;
        clocks.resize_with(clocks.len().max(index + 1), TimerClock::default);
        clocks.get_mut(index)
    }

    /// Ends a round: each CPU's events were read once since the last one.
    pub(super) fn end_round(&mut self) {
        self.progress.end_round();
    }

    fn cpu(&mut self, cpu: u32) -> Option<&mut CpuEvents> {
        let index = usize::try_from(cpu).ok().filter(|_| cpu < MOST_CPUS)?;
        self.trace.cpus.resize_with(self.trace.cpus.len().max(index + 1), CpuEvents::default);
        self.trace.cpus.get_mut(index)
    }
}

/// A place in a file from which events can be read.
#[derive(Debug)]
struct Place {
    progress: Progress,
    /// The last event of each CPU that has any between here and the next place; `None`: others were lost after it.
    latest: Vec<(usize, Option<Event>)>,
}

/// A file, and how far it is read.
#[derive(Debug)]
pub(super) struct Stream<R, D> {
    input: Parser<R>,
    pub(super) records: D,
    /// Where its records are.
    within: Range<u64>,
    n_cpus: usize,
    progress: Progress,
    clocks: Clocks,
    index: Vec<Place>,
    /// Bytes between two places of the index.
    step: u64,
}

impl<R: Read + Seek, D: Records> Stream<R, D> {
    /// The records within these bytes of a file with so many CPUs or more, and whether timers have another clock.
    pub(super) fn new(
        input: Parser<R>,
        records: D,
        within: Range<u64>,
        n_cpus: usize,
        translates: bool,
    ) -> Stream<R, D> {
        let progress = Progress { place: within.start, ..Progress::default() };
        let clocks = translates.then(Vec::new);
        Stream { input, records, within, n_cpus: n_cpus.max(1), progress, clocks, index: Vec::new(), step: 0 }
    }

    /// Reads one block; `None` after the last one.
    fn block(
        &mut self,
        progress: Progress,
        clocks: &mut Clocks,
        trace: &mut Trace,
    ) -> Result<Option<Progress>, DatError> {
        let left = self.within.end.saturating_sub(progress.place);
        if left == 0 {
            return Ok(None);
        }
        self.input.seek(progress.place)?;
        let bytes = self.input.bytes(left.min(BLOCK))?;
        let mut part = Part { trace, progress, clocks };
        let read = self.records.read(&bytes, &mut part)?;
        if read == 0 || read > left {
            return Err(DatError::Damaged("a record beyond its end"));
        }
        let mut progress = part.progress;
        progress.place += read;
        progress.round_bytes += read;
        if progress.round_bytes > MOST_ROUND {
            progress.end_round();
        }
        trace.cpus.iter_mut().for_each(|cpu| Event::sort(&mut cpu.events));
        Ok(Some(progress))
    }

    /// Notes where a block was read, and its last events.
    fn note(&mut self, before: Progress, trace: &Trace) {
        if self.index.last().is_none_or(|last| before.place - last.progress.place >= self.step) {
            self.index.push(Place { progress: before, latest: Vec::new() });
        }
        let Some(last) = self.index.last_mut() else { return };
        for (cpu, events) in trace.cpus.iter().enumerate() {
            let latest = events.events.last().copied();
            let is_lost = events.lost_ns.last().is_some_and(|lost| latest.is_none_or(|event| event.at_ns < *lost));
            if latest.is_some() || is_lost {
                last.replace(cpu, latest.filter(|_| !is_lost));
            }
        }
        let n_latest: usize = self.index.iter().map(|place| place.latest.len()).sum();
        if self.index.len() > MOST_PLACES || n_latest > MOST_LATEST {
            let mut thinned: Vec<Place> = Vec::new();
            for (number, place) in std::mem::take(&mut self.index).into_iter().enumerate() {
                match thinned.last_mut() {
                    Some(before) if number % 2 == 1 => {
                        place.latest.into_iter().for_each(|(cpu, latest)| before.replace(cpu, latest));
                    }
                    _ => thinned.push(place),
                }
            }
            self.index = thinned;
            self.step = (self.step * 2).max(BLOCK * 2);
        }
    }
}

impl Place {
    fn replace(&mut self, cpu: usize, latest: Option<Event>) {
        match self.latest.binary_search_by_key(&cpu, |(cpu, _)| *cpu) {
            Ok(at) => self.latest.get_mut(at).into_iter().for_each(|known| known.1 = latest),
            Err(at) => self.latest.insert(at, (cpu, latest)),
        }
    }
}

impl<R: Read + Seek, D: Records> Recording for Stream<R, D> {
    type Error = RecordingError;

    fn n_cpus(&self) -> usize {
        self.n_cpus
    }

    fn rewind(&mut self) {
        self.progress = Progress { place: self.within.start, ..Progress::default() };
        self.clocks = self.clocks.take().map(|_| Vec::new());
        self.index = Vec::new();
    }

    fn next(&mut self, part: &mut Trace) -> Result<Option<u64>, RecordingError> {
        let before = self.progress;
        let mut clocks = self.clocks.take();
        let after = self.block(before, &mut clocks, part);
        self.clocks = clocks;
        let Some(after) = after? else { return Ok(None) };
        self.note(before, part);
        self.progress = after;
        self.n_cpus = self.n_cpus.max(part.cpus.len());
        let is_last = after.place >= self.within.end;
        Ok(Some(if is_last { u64::MAX } else { after.known_ns() }))
    }

    fn window(&mut self, times_ns: &Range<u64>) -> Result<Option<Trace>, RecordingError> {
        // All events before a place are as late as its latest one, or earlier.
        let is_before = |place: &Place| place.progress.latest_ns < times_ns.start;
        let first = self.index.partition_point(is_before).saturating_sub(1);
        let start = Progress { place: self.within.start, ..Progress::default() };
        let mut progress = self.index.get(first).map_or(start, |place| place.progress);
        let (begin, mut trace, mut clocks) =
            (progress.place, self.records.begin(), self.clocks.as_ref().map(|_| Vec::new()));
        while progress.known_ns() <= times_ns.end
            && let Some(after) = self.block(progress, &mut clocks, &mut trace)?
        {
            progress = after;
            if progress.place - begin > MOST_WINDOW as u64 {
                return Ok(None);
            }
        }
        trace.cpus.resize_with(trace.cpus.len().max(self.n_cpus), CpuEvents::default);
        let mut is_known = vec![false; trace.cpus.len()];
        for (cpu, latest) in self.index.iter().take(first).rev().flat_map(|place| &place.latest) {
            let is_new = is_known.get_mut(*cpu).is_some_and(|known| !std::mem::replace(known, true));
            if let Some(events) = trace.cpus.get_mut(*cpu).filter(|_| is_new) {
                events.events.extend(latest);
                Event::sort(&mut events.events);
            }
        }
        trace.cpus.iter_mut().for_each(|cpu| cpu.is_cut |= first > 0);
        self.records.finish(&mut trace);
        forget_before(&mut trace, times_ns.start);
        trace.imply_switches();
        Ok(Some(trace))
    }

    fn share(&self) -> f64 {
        (self.progress.place - self.within.start) as f64 / (self.within.end - self.within.start).max(1) as f64
    }

    fn function(&self, address: u64) -> Option<String> {
        self.records.function(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_complete_a_round_later() {
        let second = 1_000_000_000;
        let mut progress = Progress::default();
        for (latest_ns, known_ns) in [(0, 0), (second, 0), (2 * second, second - LAG_NS), (second, 2 * second - LAG_NS)]
        {
            progress.latest_ns = latest_ns;
            progress.end_round();
            assert_eq!(progress.known_ns(), known_ns);
        }
    }

    #[test]
    fn an_index_that_is_thinned_keeps_the_last_events() {
        let event = |at_ns: u64| Event { at_ns, pid: 0, flags: 0, what: punctual_analysis::explain::What::Exit };
        let mut place = Place { progress: Progress::default(), latest: Vec::new() };
        for (cpu, latest) in [(3, Some(event(1))), (1, Some(event(2))), (3, None), (0, Some(event(3)))] {
            place.replace(cpu, latest);
        }
        assert_eq!(place.latest, [(0, Some(event(3))), (1, Some(event(2))), (3, None)]);
    }
}
