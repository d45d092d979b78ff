//! A file of trace-cmd as the events of a recorded trace, read in parts: those of the CPU that is behind come first.

use super::dat::{DatError, DatFile, NextPart};
use super::decode::Decoder;
use super::layouts::LayoutError;
use super::pages::page_begins;
use super::timer_clock::TimerClock;
use super::window::Window;
use punctual_analysis::explain::{CpuEvents, Event, Trace, What};
use punctual_analysis::recorded::Recording;
use punctual_analysis::watch::WAKING_TIMERS;
use std::collections::HashMap;
use std::io::{Read, Seek};
use std::ops::Range;

/// Bytes of a part, in whole pages: all CPUs have one in memory.
const PART_BYTES: usize = 1 << 16;
/// Most bytes of the events around one late activation.
pub(super) const MOST_WINDOW: usize = 256 << 20;
/// A function that no timer has.
const NO_FUNCTION: u64 = 0;
/// Clocks that count nanoseconds.
const CLOCKS: [&str; 7] = [MONOTONIC, "local", "global", "perf", "boot", "mono_raw", "tai"];
pub(super) const MONOTONIC: &str = "mono";

/// Reason why a trace cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file.
    #[error(transparent)]
    File(#[from] DatError),
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Its layouts.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// It is of a kind that is not read.
    #[error("{0}")]
    Kind(&'static str),
    /// Its clock.
    #[error("unsupported: the clock `{0}`, which does not count nanoseconds; record with `trace-cmd record -C mono`")]
    Clock(String),
}

/// The first buffer with events of a file of trace-cmd.
#[derive(Debug)]
pub struct DatRecording<R> {
    file: DatFile<R>,
    decoder: Decoder,
    buffer: usize,
    part_bytes: u64,
    cpus: Vec<Cursor>,
}

/// Where reading is on one CPU.
#[derive(Debug, Clone, Default)]
struct Cursor {
    next: NextPart,
    /// Bytes after the last whole page.
    rest: Vec<u8>,
    /// Time up to which its events are known, ns; `None` after the last one.
    latest_ns: Option<u64>,
    /// Whether the page before is damaged.
    is_after_damage: bool,
    timers: TimerClock,
    /// Beginnings of parts: their times, ns, and places.
    index: Vec<(u64, NextPart)>,
}

impl<R: Read + Seek> DatRecording<R> {
    /// The trace in this file. Errors: when its layouts or its clock are not known.
    pub fn new(file: DatFile<R>) -> Result<DatRecording<R>, RecordingError> {
        if !CLOCKS.contains(&file.clock.as_str()) {
            return Err(RecordingError::Clock(punctual_model::plain(&file.clock).into_owned()));
        }
        let mut decoder = file.head.layouts.decoder()?;
        only_waking_timers(&mut decoder, &file.head.functions);
        if file.head.foreign_architecture().is_some() {
            decoder.without_calls();
        }
        // trace-cmd may have recorded in other buffers only.
        let buffer = (0..file.buffers.len()).find(|buffer| file.bytes(*buffer) > 0).unwrap_or(0);
        let part_bytes = PART_BYTES.next_multiple_of(decoder.page_bytes().max(1)) as u64;
        let n_cpus = file.buffers.get(buffer).map_or(0, super::Buffer::n_cpus);
        let cpus = vec![Cursor { latest_ns: Some(0), ..Cursor::default() }; n_cpus];
        let mut recording = DatRecording { file, decoder, buffer, part_bytes, cpus };
        if lacks_wakings(&mut recording)? {
            recording.decoder.take_wakeups();
        }
        if recording.file.head.functions.is_empty()
            && let Some(timers) = waking_timers(&mut recording)?
        {
            recording.decoder.only_timers_of(timers);
        }
        Ok(recording)
    }

    /// The next whole pages of a CPU; none after the last ones.
    fn pages(&mut self, cpu: usize, next: &mut NextPart, rest: &mut Vec<u8>) -> Result<Vec<u8>, DatError> {
        let page_bytes = self.decoder.page_bytes().max(1);
        let mut pages = std::mem::take(rest);
        loop {
            let part = self.file.part(self.buffer, cpu, next, self.part_bytes)?;
            let is_last = part.is_empty();
            pages.extend(part);
            let whole = pages.len() - pages.len() % page_bytes;
            if is_last || whole > 0 {
                *rest = pages.split_off(whole);
                return Ok(pages);
            }
        }
    }
}

impl<R: Read + Seek> Recording for DatRecording<R> {
    type Error = RecordingError;

    fn n_cpus(&self) -> usize {
        self.cpus.len()
    }

    fn rewind(&mut self) {
        self.cpus = vec![Cursor { latest_ns: Some(0), ..Cursor::default() }; self.cpus.len()];
    }

    fn next(&mut self, part: &mut Trace) -> Result<Option<u64>, RecordingError> {
        let behind = self.cpus.iter().enumerate().filter_map(|(cpu, cursor)| Some((cursor.latest_ns?, cpu))).min();
        let Some((latest_ns, cpu)) = behind else { return Ok(None) };
        let mut cursor = self.cpus.get_mut(cpu).map(std::mem::take).unwrap_or_default();
        let (place, is_aligned) = (cursor.next, cursor.rest.is_empty());
        let pages = self.pages(cpu, &mut cursor.next, &mut cursor.rest)?;
        if is_aligned && let Some(begins_ns) = page_begins(&pages) {
            cursor.index.push((begins_ns, place));
        }
        let is_first = latest_ns == 0;
        // Whole pages are large in a file that says so, and their parts compressed.
        if self.cpus.iter().map(|cursor| cursor.rest.len()).sum::<usize>() > MOST_WINDOW {
            return Err(DatError::Damaged("too many pages that are not whole").into());
        }
        let counted = self.decoder.read(part, cpu, &pages);
        let mut known_ns = None;
        if let Some(events) = part.cpus.get_mut(cpu) {
            if self.file.clock != MONOTONIC {
                cursor.timers.translate(events, &self.decoder, &pages);
            }
            let last_page = pages.chunks(self.decoder.page_bytes().max(1)).next_back().and_then(page_begins);
            known_ns = events.events.last().map(|last| last.at_ns).max(last_page);
            let is_after_damage = std::mem::replace(&mut cursor.is_after_damage, counted.ends_damaged);
            if is_after_damage || !is_first && events.is_cut {
                events.is_cut = false;
                // After a damaged one, the next page says when it begins.
                events.lost_ns.extend(page_begins(&pages).filter(|_| !counted.begins_damaged));
            }
            if counted.damaged > 0 && events.lost_ns.is_empty() {
                events.lost_ns.extend(known_ns);
            }
        }
        // A damaged page may begin earlier than the one before.
        cursor.latest_ns = known_ns.filter(|_| !pages.is_empty()).map(|known_ns| known_ns.max(latest_ns).max(1));
        if let Some(slot) = self.cpus.get_mut(cpu) {
            *slot = cursor;
        }
        Ok(Some(self.cpus.iter().filter_map(|cursor| cursor.latest_ns).min().unwrap_or(u64::MAX)))
    }

    fn window(&mut self, times_ns: &Range<u64>) -> Result<Option<Trace>, RecordingError> {
        let (mut around, mut bytes) = (Vec::new(), 0);
        for cpu in 0..self.cpus.len() {
            let index = self.cpus.get(cpu).map_or(&[][..], |cursor| &cursor.index);
            let before = index.iter().rev().find(|(at_ns, _)| *at_ns <= times_ns.start).or(index.first());
            let (mut next, is_cut) = before.map_or_else(Default::default, |(_, place)| (*place, place.bytes > 0));
            let (mut of_cpu, mut rest) = (Vec::new(), Vec::new());
            loop {
                let pages = self.pages(cpu, &mut next, &mut rest)?;
                bytes += pages.len();
                if bytes > MOST_WINDOW {
                    return Ok(None);
                }
                let is_past = page_begins(&pages).is_none_or(|begins_ns| begins_ns > times_ns.end);
                of_cpu.extend(pages);
                if is_past {
                    break;
                }
            }
            let cut = Window::cut(&self.decoder, times_ns, std::slice::from_ref(&of_cpu), is_cut);
            around.extend(cut);
        }
        let window = Window { from_ns: times_ns.start, around, own: Vec::new() };
        let (mut trace, _) = window.trace(&self.decoder, |_| ());
        if self.file.clock != MONOTONIC {
            for (events, pages) in trace.cpus.iter_mut().zip(&window.around) {
                TimerClock::default().translate(events, &self.decoder, pages);
            }
        }
        Ok(Some(trace))
    }

    fn share(&self) -> f64 {
        let read: u64 = self.cpus.iter().map(|cursor| cursor.next.bytes).sum();
        read as f64 / self.file.bytes(self.buffer).max(1) as f64
    }

    fn function(&self, address: u64) -> Option<String> {
        function_at(&self.file.head.functions, address)
    }
}

/// Limits the starts of timers to those that wake threads.
pub(super) fn only_waking_timers(decoder: &mut Decoder, functions: &[(u64, String)]) {
    let mut timers: Vec<u64> = (functions.iter())
        .filter(|(address, name)| *address > 0 && WAKING_TIMERS.contains(&name.as_str()))
        .map(|(address, _)| *address)
        .collect();
    // The timers of sleeps are not told from others.
    if timers.is_empty() {
        timers = vec![NO_FUNCTION];
    }
    decoder.only_timers_of(timers);
}

/// Whether the beginning of a trace has no waking.
pub(super) fn lacks_wakings<T: Recording>(recording: &mut T) -> Result<bool, T::Error> {
    let mut lacks = true;
    beginning(recording, |events| {
        lacks &= !events.iter().any(|event| matches!(event.what, What::Waking { .. }));
        lacks
    })?;
    Ok(lacks)
}

/// Passes the first events of each CPU to `take`, as long as that returns true.
fn beginning<T: Recording>(recording: &mut T, mut take: impl FnMut(&[Event]) -> bool) -> Result<(), T::Error> {
    const MOST_PARTS: usize = 256;
    for _ in 0..MOST_PARTS {
        let mut part = Trace { cpus: vec![CpuEvents::default(); recording.n_cpus()], ..Trace::default() };
        if recording.next(&mut part)?.is_none() || !part.cpus.iter().all(|cpu| take(&cpu.events)) {
            break;
        }
    }
    recording.rewind();
    Ok(())
}

/// Functions of the timers that wake threads, from the beginning of a trace without names of functions: the next event
/// on the CPU after most of their expiries is a waking. `None` if there are none.
pub(super) fn waking_timers<T: Recording>(recording: &mut T) -> Result<Option<Vec<u64>>, T::Error> {
    const LEAST_SHARE: f64 = 0.75;
    let mut counts = HashMap::<u64, (u64, u64)>::new();
    beginning(recording, |events| {
        for two in events.windows(2) {
            if let [Event { what: What::TimerExpire { function: Some(function), .. }, .. }, next] = two {
                let (n, wakes) = counts.entry(*function).or_default();
                *n += 1;
                *wakes += u64::from(matches!(next.what, What::Waking { .. }));
            }
        }
        true
    })?;
    let is_waking = |(n, wakes): &(u64, u64)| *wakes as f64 >= *n as f64 * LEAST_SHARE;
    let timers = counts.into_iter().filter(|(_, counted)| is_waking(counted)).map(|(function, _)| function);
    Ok(Some(timers.collect()).filter(|timers: &Vec<u64>| !timers.is_empty()))
}

/// The function at an address, of all functions by address.
pub(super) fn function_at(functions: &[(u64, String)], address: u64) -> Option<String> {
    let after = functions.partition_point(|(at, _)| *at <= address);
    let (at, name) = functions.get(after.checked_sub(1)?)?;
    (*at > 0).then(|| name.clone())
}

#[cfg(test)]
mod tests;
