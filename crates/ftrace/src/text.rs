//! Reading of ftrace's text: `trace`, `trace_pipe`, and the output of `trace-cmd report`.
//!
//! Layout: kernel/trace/trace_output.c of Linux 6.12, with all combinations of its columns; trace-cmd-report(1).

mod event;
mod line;

use super::dat::{DatError, Parser};
use super::recording::RecordingError;
use super::stream::{Part, Records, Stream};
use event::{Known, number};
use line::Line;
use punctual_analysis::explain::{Context, Event, Trace, What, flags};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Read, Seek};

/// Bytes at the beginning from which the resolution and the number of CPUs are taken.
const BEGINNING: u64 = 1 << 20;
/// The clock, which the text does not show.
pub(super) const CLOCK: &str = "unknown";
/// Most CPUs that the head of a text can declare; more are known by their events.
const MOST_DECLARED: usize = 1024;

/// How to read its lines.
#[derive(Debug)]
pub(super) struct TextRecords {
    resolution_ns: u64,
    known: Known,
    /// Flags of each CPU as interrupts begin and end, for text without the column of flags.
    contexts: HashMap<u32, u8>,
}

/// A file with the resolution of its times, ns.
pub(super) type TextFile<R> = (Stream<R, TextRecords>, u64);

/// Finds out what the beginning shows; `None` if it is not ftrace's text.
pub(super) fn open<R: Read + Seek>(mut input: Parser<R>) -> Result<Option<TextFile<R>>, RecordingError> {
    let length = input.length();
    let beginning = input.bytes(length.min(BEGINNING))?;
    let (mut n_cpus, mut resolution_ns) = (0, None);
    for line in lines(&beginning) {
        if let Some(line) = Line::parse(&line) {
            resolution_ns.get_or_insert(line.resolution_ns);
            n_cpus =
                n_cpus.max(usize::try_from(line.cpu).unwrap_or(MOST_DECLARED).saturating_add(1)).min(MOST_DECLARED);
        } else {
            let declared = line.split_once("#P:").map(|(_, n)| n).or_else(|| line.strip_prefix("cpus="));
            n_cpus = declared.and_then(|n| n.trim().parse().ok()).unwrap_or(n_cpus).min(MOST_DECLARED);
        }
    }
    let Some(resolution_ns) = resolution_ns else { return Ok(None) };
    let records = TextRecords { resolution_ns, known: Known::default(), contexts: HashMap::new() };
    Ok(Some((Stream::new(input, records, 0..length, n_cpus, true), resolution_ns)))
}

/// The whole lines of these bytes.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').and_then(|end| bytes.get(..end));
    whole.unwrap_or_default().split(|byte| *byte == b'\n').map(String::from_utf8_lossy)
}

impl TextRecords {
    /// The interrupt in which an event happens, as its flags would say.
    fn context(&mut self, cpu: u32, what: What) -> u8 {
        let of = |context: Context| if context.is_hard() { flags::HARDIRQ } else { flags::SOFTIRQ };
        match what {
            What::Enter(context) => *self.contexts.entry(cpu).or_default() |= of(context),
            What::Leave(context) => *self.contexts.entry(cpu).or_default() &= !of(context),
            _ => {}
        }
        self.contexts.get(&cpu).copied().unwrap_or(0)
    }
}

impl Records for TextRecords {
    fn read(&mut self, bytes: &[u8], part: &mut Part<'_>) -> Result<u64, DatError> {
        for text in lines(bytes) {
            let Some(line) = Line::parse(&text) else {
                let cpu = line::gap(&text);
                cpu.into_iter().for_each(|cpu| part.lost(cpu, part.latest_ns().saturating_add(1)));
                continue;
            };
            let Some(what) = self.known.what(&line, part.trace) else { continue };
            // Lines are in the order of time, also those that its resolution does not tell apart.
            let most_ns = line.at_ns.saturating_add(self.resolution_ns - 1);
            let at_ns = part.latest_ns().saturating_add(1).clamp(line.at_ns, most_ns);
            let flags = line.flags.unwrap_or_else(|| self.context(line.cpu, what));
            part.add(line.cpu, Event { at_ns, pid: line.pid, flags, what });
            if let What::TimerExpire { .. } = what
                && let Some(now_ns) = number(line.fields, "now=")
            {
                part.expiry(line.cpu, line.at_ns, now_ns);
            }
        }
        part.end_round();
        // A last line without end may be cut; so is one that is longer than all that is read at once.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        Ok(whole as u64)
    }

    fn begin(&self) -> Trace {
        Trace::default()
    }

    fn function(&self, address: u64) -> Option<String> {
        self.known.function(address)
    }

    fn finish(&self, trace: &mut Trace) {
        trace.vectors.clone_from(&self.known.vectors);
    }
}

#[cfg(test)]
pub(super) mod tests;
