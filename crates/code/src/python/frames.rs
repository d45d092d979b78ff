//! Frames of one thread at one time, with their names, files and lines.

use super::layout::{Layout, Lines};
use super::lines;
use super::memory::{Pages, word};
use super::{Python, PythonThread};
use crate::module::plain;
use punctual_model::{CodeFrame, CodePlace};

/// Most frames that are visited, with those of C.
const MOST_FRAMES: usize = 64;
/// Longest name and file, characters, and longest table of lines, bytes.
const LONGEST_NAME: u64 = 1000;
const LONGEST_PATH: u64 = 4096;
const LONGEST_TABLE: u64 = 1 << 18;
/// Characters that are kept of the end of a path.
const PATH_CHARACTERS: usize = 200;
/// Size of an object with a length: the bytes of `PyBytesObject` follow.
const SIZED_BYTES: u64 = 32;
/// First value of `owner` of a frame that is not one of Python (`FRAME_OWNED_BY_CSTACK` of 3.12 and 3.13,
/// `_INTERPRETER` of 3.14).
const OWNED_BY_C: u64 = 3;
/// Bytes at the beginning of a text or table that are read ahead.
const AHEAD: u64 = 256;

/// What a thread executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonFrames {
    /// Innermost first, up to [`CodePlace::FRAMES`]; empty where the thread runs no Python.
    pub frames: Vec<CodeFrame>,
    /// A time at which it had these frames, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// Whether it was at the same instruction before and after: else it has moved on, in the first of these functions
    /// or in others that it has called.
    pub is_still: bool,
}

/// A frame as it is in memory. That of a thread has one, too, which only leads to the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    address: u64,
    bytes: Vec<u8>,
    previous: u64,
    code: u64,
    instruction: u64,
    is_of_c: bool,
}

/// Addresses of objects are multiples of 8; the bits below are marks.
fn object(word: u64) -> u64 {
    word & !7
}

impl Frame {
    fn of(layout: &Layout, address: u64, bytes: Vec<u8>) -> Option<Frame> {
        let owner = layout.owner.map(|owner| word(&bytes, owner & !7).map(|word| word >> (owner % 8 * 8) & 255));
        let is_index = layout.lines != Lines::Locations;
        let instruction = word(&bytes, layout.instruction)? & if is_index { u64::from(u32::MAX) } else { u64::MAX };
        Some(Frame {
            address,
            previous: word(&bytes, layout.previous)?,
            code: object(word(&bytes, layout.code)?),
            instruction,
            is_of_c: owner.map_or(Some(false), |owner| owner.map(|owner| owner >= OWNED_BY_C))?,
            bytes,
        })
    }
}

impl Python {
    /// The frames of a thread, as far as they are the same before and after; `None` if none is, or if they are not what
    /// a Python of this version has.
    pub fn frames(&self, thread: &PythonThread) -> Option<PythonFrames> {
        let (layout, pages) = (&self.layout, Pages::of(&*self.memory));
        let state = pages.bytes(thread.state, layout.thread_bytes())?;
        let mut at = self.frame_in(thread, &state)?;
        let holder = layout.in_c_frame.map(|offset| at.checked_add(offset)).map_or(Some(None), |at| at.map(Some))?;
        if let Some(holder) = holder {
            at = pages.word(holder)?;
        }
        let (first, mut all) = (at, Vec::new());
        while at != 0 && all.len() < MOST_FRAMES && visible(&all).count() < CodePlace::FRAMES {
            let frame = Frame::of(layout, at, pages.bytes(at, layout.frame_bytes())?)?;
            at = frame.previous;
            all.push(frame);
        }
        // All pages at once, or as many as are known from those before.
        pages.fetch(visible(&all).map(|one| (one.code, layout.code_bytes())))?;
        let objects = [layout.name, layout.filename, layout.table, layout.instructions];
        let parts = visible(&all).flat_map(|one| objects.map(|field| pages.word(one.code.checked_add(field)?)));
        let parts: Vec<u64> = parts.flatten().collect();
        let _ = pages.fetch(parts.iter().filter(|at| **at < u64::MAX - AHEAD).map(|at| (*at, AHEAD)));
        let mut frames = visible(&all).map(|one| self.named(&pages, one)).collect::<Option<Vec<_>>>()?;
        let at_ns = punctual_sys::clock::monotonic().0;
        let (changed, is_still) = self.confirmed(thread, holder, first, &all)?;
        frames.drain(..visible(all.get(..changed)?).count());
        // It may have left the innermost one and be in it again: called from elsewhere.
        let callers = frames.iter_mut().skip(1).filter(|_| changed == 0 && !is_still);
        callers.for_each(|one| one.line = None);
        (is_still || !frames.is_empty()).then_some(PythonFrames { frames, at_ns, is_still })
    }

    /// The frame, or what has it, of a thread in memory; `None` if another one is there.
    pub(super) fn frame_in(&self, thread: &PythonThread, state: &[u8]) -> Option<u64> {
        let layout = &self.layout;
        let is_it = word(state, layout.interpreter)? == thread.interpreter && word(state, layout.id)? == thread.id;
        word(state, layout.frame).filter(|_| is_it)
    }

    /// The number of frames, from the innermost on, that are not what they were, and whether the thread stands still.
    /// All are read at once, inwards and outwards, and the thread before and after each. A caller is at its call for as
    /// long as what it calls.
    fn confirmed(
        &self,
        thread: &PythonThread,
        holder: Option<u64>,
        first: u64,
        all: &[Frame],
    ) -> Option<(usize, bool)> {
        let layout = &self.layout;
        let length = |bytes: u64| usize::try_from(bytes).ok();
        let state = (thread.state, length(layout.thread_bytes())?);
        let head = holder.map_or(state, |holder| (holder, 8));
        let bytes = length(layout.frame_bytes())?;
        let inwards = all.iter().enumerate();
        let order: Vec<(usize, &Frame)> = inwards.clone().chain(inwards.rev()).collect();
        let mut parts = vec![state, head];
        parts.extend(order.iter().flat_map(|(_, frame)| [(frame.address, bytes), head]));
        parts.push(state);
        let read = self.memory.read(&parts).ok()?;
        let of_state = |bytes: &[u8]| {
            let at = self.frame_in(thread, bytes)?;
            Some(holder.map_or(at == first, |holder| Some(holder) == at.checked_add(layout.in_c_frame.unwrap_or(0))))
        };
        let of_head = |bytes: &[u8]| if holder.is_some() { Some(word(bytes, 0)? == first) } else { of_state(bytes) };
        let mut is_first = of_state(read.first()?)? & of_state(read.last()?)? & of_head(read.get(1)?)?;
        let (mut changed, mut has_moved) = (0, false);
        for ((index, before), now) in order.into_iter().zip(read.get(2..)?.chunks_exact(2)) {
            let [bytes, head] = now else { return None };
            is_first &= of_head(head)?;
            let after = Frame::of(layout, before.address, bytes.clone())?;
            let is_there = after.instruction == before.instruction;
            let is_it = (after.previous, after.code, after.is_of_c) == (before.previous, before.code, before.is_of_c);
            has_moved |= index == 0 && is_it && !is_there;
            if !is_it || (index > 0 && !is_there) {
                changed = changed.max(index + 1);
            }
        }
        let changed = if is_first { changed } else { changed.max(1) };
        Some((changed, changed == 0 && !has_moved))
    }

    /// Name, file and line of a frame.
    fn named(&self, pages: &Pages<'_>, frame: &Frame) -> Option<CodeFrame> {
        let layout = &self.layout;
        let is_frame = layout.lines == Lines::Locations || word(&frame.bytes, 8)? == self.at.frame;
        if !is_frame || pages.word(frame.code.checked_add(8)?)? != self.at.code {
            return None;
        }
        let field = |offset: u64| frame.code.checked_add(offset).and_then(|at| pages.word(at));
        let function = plain(&self.text(pages, field(layout.name)?, LONGEST_NAME)?);
        let file = self.text(pages, field(layout.filename)?, LONGEST_PATH)?;
        let kept = file.chars().count().saturating_sub(PATH_CHARACTERS);
        let (table, n) = self.sized(pages, field(layout.table)?)?;
        let table = pages.bytes(table, Some(n).filter(|n| *n <= LONGEST_TABLE)?)?;
        let first = pages.half(frame.code.checked_add(layout.first_line)?)?;
        Some(CodeFrame {
            function: Some(function).filter(|name| !name.is_empty()),
            file: Some(plain(&file.chars().skip(kept).collect::<String>())),
            line: lines::line(layout.lines, &table, first, self.instruction(pages, frame)?),
            object: self.object.clone(),
            address: None,
        })
    }
    /// The byte of the code at which a frame is, negative before its first instruction; `None` outside.
    fn instruction(&self, pages: &Pages<'_>, frame: &Frame) -> Option<i64> {
        let layout = &self.layout;
        let index = i64::from(u32::try_from(frame.instruction).unwrap_or(0).cast_signed());
        // 3.8 and 3.9 count bytes; later ones instructions of 2 bytes.
        let of_object = || self.sized(pages, pages.word(frame.code.checked_add(layout.instructions)?)?);
        let (at, length) = match layout.lines {
            Lines::Lnotab => (index, of_object()?.1),
            Lines::Pairs => (index * 2, of_object()?.1),
            Lines::Locations => {
                let first = frame.code.checked_add(layout.instructions)?;
                let n = pages.word(frame.code.checked_add(16)?)?;
                (frame.instruction.wrapping_sub(first).cast_signed(), n.checked_mul(2)?)
            }
        };
        (-2..i64::try_from(length).ok()?).contains(&at).then_some(at)
    }

    /// Where the bytes of an object of bytes are, and how many.
    fn sized(&self, pages: &Pages<'_>, at: u64) -> Option<(u64, u64)> {
        let is_bytes = pages.word(at.checked_add(8)?)? == self.at.bytes;
        Some((at.checked_add(SIZED_BYTES)?, pages.word(at.checked_add(16)?)?)).filter(|_| is_bytes)
    }

    /// A text, whose characters have 1, 2 or 4 bytes each.
    fn text(&self, pages: &Pages<'_>, at: u64, longest: u64) -> Option<String> {
        let (n, state) = (pages.word(at.checked_add(16)?)?, pages.half(at.checked_add(32)?)?);
        let (kind, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        let is_text = pages.word(at.checked_add(8)?)? == self.at.text;
        if !is_text || n > longest || !is_compact || ![1, 2, 4].contains(&kind) {
            return None;
        }
        let offset = if is_ascii { self.layout.ascii } else { self.layout.other };
        let bytes = pages.bytes(at.checked_add(offset)?, n * u64::from(kind))?;
        let number = |one: &[u8]| one.iter().rev().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        bytes.chunks_exact(usize::try_from(kind).ok()?).map(|one| char::from_u32(number(one))).collect()
    }
}

/// Frames of Python itself.
fn visible(all: &[Frame]) -> impl Iterator<Item = &Frame> {
    all.iter().filter(|one| !one.is_of_c)
}
