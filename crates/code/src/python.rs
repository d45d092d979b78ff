//! Frames of Python, read from the memory of a process that runs on meanwhile.
//!
//! All that is read is checked: each object has its type, each instruction is within its code, and at the end the
//! thread and its frames are what they were at the beginning. Else nothing is known.

mod layout;
mod lines;

use crate::budget::Budget;
use crate::elf::Elf;
use crate::module::plain;
use crate::symbols::addresses_of;
use layout::{Layout, Lines, PUBLISHED_BYTES};
use punctual_host::MappedCode;
use punctual_model::{CodeFrame, CodePlace};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Most interpreters and threads of a process that are looked at.
const MOST_THREADS: usize = 1000;
/// Most frames that are visited, with those of C.
const MOST_FRAMES: usize = 64;
/// Longest name, file and table of lines.
const LONGEST_NAME: u64 = 1000;
const LONGEST_PATH: u64 = 4096;
const LONGEST_TABLE: u64 = 1 << 18;
/// Characters that are kept of the end of a path.
const PATH_CHARACTERS: usize = 200;
/// Bytes of a thread of the C library in which its ID is looked for.
const THREAD_BYTES: usize = 1024;
/// Size of an object with a length: the bytes of `PyBytesObject` follow.
const SIZED_BYTES: usize = 32;
/// First value of `owner` of a frame that is not one of Python (`FRAME_OWNED_BY_CSTACK` of 3.12 and 3.13).
const OWNED_BY_C: u8 = 3;
/// Readings after which frames are what they were.
const AGAIN: usize = 2;
/// What a `_PyRuntime` is found by, and the types of objects.
const SYMBOLS: [&str; 6] = ["_PyRuntime", "PyCode_Type", "PyUnicode_Type", "PyBytes_Type", "PyFrame_Type", "Py_Version"];

/// Memory of a process.
pub(crate) trait Memory {
    /// The bytes of each part, given by address and length. Errors: when one is not mapped, or may not be read.
    fn read(&self, parts: &[(u64, usize)]) -> io::Result<Vec<Vec<u8>>>;
}

/// A running process.
#[derive(Debug)]
struct Process(u32);

impl Memory for Process {
    fn read(&self, parts: &[(u64, usize)]) -> io::Result<Vec<Vec<u8>>> {
        let mut all: Vec<Vec<u8>> = parts.iter().map(|(_, length)| vec![0; *length]).collect();
        let mut wanted: Vec<_> =
            parts.iter().zip(&mut all).map(|((address, _), bytes)| (*address, bytes.as_mut_slice())).collect();
        punctual_sys::memory::read_of(self.0, &mut wanted)?;
        Ok(all)
    }
}

/// Addresses of the runtime and of the types of objects.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    runtime: u64,
    code: u64,
    text: u64,
    bytes: u64,
    frame: u64,
}

/// The interpreter of a process.
pub struct Python {
    memory: Box<dyn Memory + Send>,
    layout: Layout,
    at: Addresses,
    object: String,
}

impl std::fmt::Debug for Python {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Python").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// A thread of an interpreter, by the address and the identity that it has there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PythonThread {
    state: u64,
    interpreter: u64,
    id: u64,
}

/// A frame as it is in memory.
struct Frame {
    bytes: Vec<u8>,
    at: u64,
    code: u64,
}

fn word(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: u64) -> Option<u32> {
    let at = usize::try_from(at).ok()?;
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Addresses of objects are multiples of 8; the bits below are marks.
fn object(word: u64) -> u64 {
    word & !7
}

impl Python {
    /// The interpreter of process `process`, by the code that it has mapped; `None` without one. Errors: why it is not
    /// read, in one line.
    pub fn find(process: u32, mapped: &[MappedCode]) -> Result<Option<Python>, String> {
        if cfg!(not(all(target_pointer_width = "64", target_endian = "little"))) {
            return Ok(None);
        }
        let budget = Rc::new(Budget::new(Arc::default()));
        for mapping in mapped.iter().filter(|one| one.name.contains("python")) {
            let Some(at) = symbols_in(mapping, &budget) else { continue };
            let [Some(runtime), Some(code), Some(text), Some(bytes), Some(frame), version] = at else { continue };
            let memory = Process(process);
            let layout = layout_of(&memory, &mapping.name, runtime, version)
                .map_err(|reason| format!("Python frames of process {process}: {reason}"))?;
            let at = Addresses { runtime, code, text, bytes, frame };
            return Ok(Some(Python { memory: Box::new(memory), layout, at, object: mapping.name.clone() }));
        }
        Ok(None)
    }

    /// The thread that has ID `tid` in the PID namespace of the process; `None` if it runs no Python.
    pub fn thread(&self, tid: u32) -> Option<PythonThread> {
        let layout = &self.layout;
        let mut interpreter = self.word(self.at.runtime + layout.interpreters)?;
        let (mut found, mut visited) = (Vec::new(), 0);
        while interpreter != 0 && visited < MOST_THREADS {
            let mut state = self.word(interpreter.checked_add(layout.threads)?)?;
            while state != 0 && visited < MOST_THREADS {
                let bytes = self.bytes(state, layout.thread_bytes())?;
                let thread = PythonThread { state, interpreter, id: word(&bytes, layout.id)? };
                if word(&bytes, layout.interpreter)? == interpreter && self.is_of(thread.id, tid) {
                    found.push(thread);
                }
                state = word(&bytes, layout.next_thread)?;
                visited += 1;
            }
            interpreter = self.word(interpreter.checked_add(layout.next_interpreter)?)?;
            visited += 1;
        }
        // One thread may run in several interpreters; which of them it is in is not told.
        found.first().copied().filter(|_| found.len() == 1 && visited < MOST_THREADS)
    }

    /// Whether an identity is that of a thread: its ID from 3.11 on, before the address of what the C library knows of
    /// it, which has the ID.
    fn is_of(&self, id: u64, tid: u32) -> bool {
        if self.layout.lines == Lines::Locations {
            return id == u64::from(tid);
        }
        let bytes = self.bytes(id, THREAD_BYTES).unwrap_or_default();
        bytes.chunks_exact(4).any(|one| one == tid.to_le_bytes())
    }

    /// The frames of a thread, innermost first, up to [`CodePlace::FRAMES`]; empty where it runs no Python. `None` if
    /// that changed meanwhile, or is not what a Python of this version has.
    pub fn frames(&self, thread: &PythonThread) -> Option<Vec<CodeFrame>> {
        let layout = &self.layout;
        let state = self.bytes(thread.state, layout.thread_bytes())?;
        if word(&state, layout.interpreter)? != thread.interpreter || word(&state, layout.id)? != thread.id {
            return None;
        }
        let mut read = vec![(thread.state, state.clone())];
        let mut at = word(&state, layout.frame)?;
        if let Some(offset) = layout.in_c_frame {
            let (holder, bytes) = (at.checked_add(offset)?, self.bytes(at.checked_add(offset)?, 8)?);
            at = word(&bytes, 0)?;
            read.push((holder, bytes));
        }
        let mut frames = Vec::new();
        for _ in 0..MOST_FRAMES {
            if at == 0 || frames.len() >= CodePlace::FRAMES {
                break;
            }
            let bytes = self.bytes(at, layout.frame_bytes())?;
            let owner = layout.owner.and_then(|owner| bytes.get(usize::try_from(owner).ok()?).copied());
            let previous = word(&bytes, layout.previous)?;
            read.push((at, bytes.clone()));
            if owner.is_none_or(|owner| owner < OWNED_BY_C) {
                let code = object(word(&bytes, layout.code)?);
                frames.push(Frame { at: word(&bytes, layout.instruction)?, bytes, code });
            }
            at = previous;
        }
        let named = self.named(&frames)?;
        self.is_unchanged(&read).then_some(named)
    }

    /// Whether memory still is what was read before: all at once, inwards and outwards, and twice. A thread that runs on
    /// would have to be back at the same places each time, between two words.
    fn is_unchanged(&self, before: &[(u64, Vec<u8>)]) -> bool {
        let both = || before.iter().chain(before.iter().rev());
        let parts: Vec<_> = both().map(|(address, bytes)| (*address, bytes.len())).collect();
        let is_same = |after: Vec<Vec<u8>>| both().zip(&after).all(|((_, before), after)| before == after);
        (0..AGAIN).all(|_| self.memory.read(&parts).is_ok_and(is_same))
    }

    /// Names, files and lines of frames.
    fn named(&self, frames: &[Frame]) -> Option<Vec<CodeFrame>> {
        let layout = &self.layout;
        let length = layout.code_bytes();
        let codes = self.memory.read(&frames.iter().map(|one| (one.code, length)).collect::<Vec<_>>()).ok()?;
        let mut wanted = Vec::new();
        for (frame, code) in frames.iter().zip(&codes) {
            let is_frame = layout.lines == Lines::Locations || word(&frame.bytes, 8)? == self.at.frame;
            if !is_frame || word(code, 8)? != self.at.code {
                return None;
            }
            let texts = [layout.name, layout.filename].map(|at| word(code, at));
            wanted.extend(texts.into_iter().collect::<Option<Vec<_>>>()?);
            wanted.push(word(code, layout.table)?);
            // Up to 3.10, an object has the instructions.
            wanted.push(if layout.lines == Lines::Locations { frame.code } else { word(code, layout.instructions)? });
        }
        let heads = self.memory.read(&wanted.iter().map(|at| (*at, SIZED_BYTES + 8)).collect::<Vec<_>>()).ok()?;
        let mut parts = Vec::new();
        let mut kinds = Vec::new();
        for (at, head) in wanted.chunks_exact(4).zip(heads.chunks_exact(4)) {
            let ([name, file, table, _], [name_head, file_head, table_head, _]) = (at, head) else { return None };
            let (name, file) =
                (self.text(*name, name_head, LONGEST_NAME)?, self.text(*file, file_head, LONGEST_PATH)?);
            let n = word(table_head, 16).filter(|n| *n <= LONGEST_TABLE && word(table_head, 8) == Some(self.at.bytes))?;
            parts.extend([name.0, file.0, (table.checked_add(SIZED_BYTES as u64)?, usize::try_from(n).ok()?)]);
            kinds.push([name.1, file.1]);
        }
        let data = self.memory.read(&parts).ok()?;
        let mut all = Vec::new();
        for ((index, frame), code) in frames.iter().enumerate().zip(&codes) {
            let [name, file, table] = data.get(index * 3..index * 3 + 3)? else { return None };
            let [name_kind, file_kind] = *kinds.get(index)?;
            let first = half(code, layout.first_line)?;
            let at = self.instruction(frame, heads.get(index * 4 + 3)?)?;
            let file = decoded(file, file_kind)?;
            let kept = file.chars().count().saturating_sub(PATH_CHARACTERS);
            let function = plain(&decoded(name, name_kind)?);
            all.push(CodeFrame {
                function: Some(function).filter(|name| !name.is_empty()),
                file: Some(plain(&file.chars().skip(kept).collect::<String>())),
                line: lines::line(layout.lines, table, first, at),
                object: self.object.clone(),
                address: None,
            });
        }
        Some(all)
    }

    /// The byte of the code at which a frame is, negative before its first instruction; `None` outside. `head` begins
    /// the object that has the instructions.
    fn instruction(&self, frame: &Frame, head: &[u8]) -> Option<i64> {
        let n = i64::try_from(word(head, 16)?).ok()?;
        // 3.8 and 3.9 count bytes; later ones instructions of 2 bytes.
        let (at, length) = match self.layout.lines {
            Lines::Lnotab => (i64::from(half(&frame.bytes, self.layout.instruction)?.cast_signed()), n),
            Lines::Pairs => (i64::from(half(&frame.bytes, self.layout.instruction)?.cast_signed()) * 2, n),
            Lines::Locations => {
                let first = frame.code.checked_add(self.layout.instructions)?;
                (frame.at.wrapping_sub(first).cast_signed(), n.checked_mul(2)?)
            }
        };
        let is_object = self.layout.lines == Lines::Locations || word(head, 8)? == self.at.bytes;
        (is_object && (-2..length).contains(&at)).then_some(at)
    }

    /// Where the characters of a text are, and the size of each; `head` begins the object.
    fn text(&self, at: u64, head: &[u8], longest: u64) -> Option<((u64, usize), usize)> {
        let (n, state) = (word(head, 16)?, half(head, 32)?);
        let kind = usize::try_from(state >> 2 & 7).ok()?;
        let (is_compact, is_ascii) = (state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        if word(head, 8)? != self.at.text || n > longest || !is_compact || ![1, 2, 4].contains(&kind) {
            return None;
        }
        let offset = if is_ascii { self.layout.ascii } else { self.layout.other };
        Some(((at.checked_add(offset)?, usize::try_from(n).ok()? * kind), kind))
    }

    fn bytes(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        self.memory.read(&[(address, length)]).ok()?.pop()
    }

    fn word(&self, address: u64) -> Option<u64> {
        word(&self.bytes(address, 8)?, 0)
    }
}

/// Characters of 1, 2 or 4 bytes.
fn decoded(bytes: &[u8], kind: usize) -> Option<String> {
    let number = |one: &[u8]| one.iter().rev().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
    bytes.chunks_exact(kind).map(|one| char::from_u32(number(one))).collect()
}

/// Addresses of [`SYMBOLS`] in the process that has mapped the file.
fn symbols_in(mapping: &MappedCode, budget: &Rc<Budget>) -> Option<[Option<u64>; 6]> {
    let elf = Elf::open(mapping.file.as_ref()?, budget)?;
    // In its middle: at its beginning is the end of another segment, if segments share a page.
    let middle = (mapping.end - mapping.start) / 2;
    let there = elf.address_of(mapping.offset.checked_add(middle)?)?;
    let moved = mapping.start.wrapping_add(middle).wrapping_sub(there);
    Some(addresses_of(&elf, SYMBOLS).map(|found| found.map(|address| address.wrapping_add(moved))))
}

/// The layout of an interpreter. Errors: why it is unknown.
fn layout_of(memory: &dyn Memory, file: &str, runtime: u64, version: Option<u64>) -> Result<Layout, String> {
    let read = |address, length| {
        let read = memory.read(&[(address, length)]).map_err(|err| format!("cannot read its memory: {err}"));
        read.map(|mut parts| parts.pop().unwrap_or_default())
    };
    let published = read(runtime, PUBLISHED_BYTES)?;
    if let Some(layout) = Layout::published(&published) {
        return Ok(layout);
    }
    // `Py_Version` is there from 3.11 on; before, the name of the file tells.
    let minor = match version {
        Some(version) => half(&read(version, 4)?, 0).filter(|all| all >> 24 == 3).and_then(|all| (all >> 16 & 255).try_into().ok()),
        None => file.split_once("python3.").and_then(|(_, rest)| {
            rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok())
        }),
    };
    let layout = minor.and_then(Layout::of);
    layout.ok_or_else(|| match minor {
        Some(minor) => format!("unsupported: Python 3.{minor}; expected 3.8 to 3.13 with the global lock"),
        None => "unsupported: a Python of unknown version".to_owned(),
    })
}

#[cfg(test)]
mod tests;
