//! Frames of Python, read from the memory of a process that runs on meanwhile.
//!
//! All that is read is checked: each object has its type, each instruction is within its code, and at the end the
//! thread and its frames are what they were at the beginning. Else nothing is known.

mod frames;
mod layout;
mod lines;
mod memory;

pub use frames::PythonFrames;

use crate::budget::Budget;
use crate::elf::Elf;
use crate::symbols::addresses_of;
use layout::{Layout, Lines, PUBLISHED_BYTES};
use memory::{Memory, Pages, Process, word};
use punctual_host::MappedCode;
use std::rc::Rc;
use std::sync::Arc;

/// Most interpreters and threads of a process that are looked at.
const MOST_THREADS: usize = 1000;
/// Bytes of a thread of the C library in which its ID is looked for.
const THREAD_BYTES: u64 = 1024;
/// What a `_PyRuntime` is found by, and the types of objects.
const SYMBOLS: [&str; 6] =
    ["_PyRuntime", "PyCode_Type", "PyUnicode_Type", "PyBytes_Type", "PyFrame_Type", "Py_Version"];

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
        let (layout, pages) = (&self.layout, Pages::of(&*self.memory));
        let mut interpreter = pages.word(self.at.runtime.checked_add(layout.interpreters)?)?;
        let (mut found, mut visited) = (Vec::new(), 0);
        while interpreter != 0 && visited < MOST_THREADS {
            let mut state = pages.word(interpreter.checked_add(layout.threads)?)?;
            while state != 0 && visited < MOST_THREADS {
                let bytes = pages.bytes(state, layout.thread_bytes())?;
                let thread = PythonThread { state, interpreter, id: word(&bytes, layout.id)? };
                if word(&bytes, layout.interpreter)? == interpreter && self.is_of(&pages, thread.id, tid) {
                    found.push(thread);
                }
                state = word(&bytes, layout.next_thread)?;
                visited += 1;
            }
            interpreter = pages.word(interpreter.checked_add(layout.next_interpreter)?)?;
            visited += 1;
        }
        // One thread may run in several interpreters; which of them it is in is not told.
        found.first().copied().filter(|_| found.len() == 1 && visited < MOST_THREADS)
    }

    /// Whether an identity is that of a thread: its ID from 3.11 on, before the address of what the C library knows of
    /// it, which has the ID.
    fn is_of(&self, pages: &Pages<'_>, id: u64, tid: u32) -> bool {
        if self.layout.lines == Lines::Locations {
            return id == u64::from(tid);
        }
        let bytes = pages.bytes(id, THREAD_BYTES).unwrap_or_default();
        bytes.chunks_exact(4).any(|one| one == tid.to_le_bytes())
    }

    /// Whether a thread is still there.
    pub fn has(&self, thread: &PythonThread) -> bool {
        let state = Pages::of(&*self.memory).bytes(thread.state, self.layout.thread_bytes());
        state.is_some_and(|state| self.frame_in(thread, &state).is_some())
    }
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
    let published =
        memory.read(&[(runtime, PUBLISHED_BYTES)]).map_err(|err| format!("cannot read its memory: {err}"))?;
    if let Some(layout) = published.first().and_then(|bytes| Layout::published(bytes)) {
        return Ok(layout);
    }
    // `Py_Version` is there from 3.11 on; before, the name of the file tells.
    let minor: Option<u8> = match version.map(|version| Pages::of(memory).half(version)) {
        Some(version) => version.filter(|all| all >> 24 == 3).and_then(|all| (all >> 16 & 255).try_into().ok()),
        None => file.split_once("python3.").and_then(|(_, rest)| {
            rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok())
        }),
    };
    minor.and_then(Layout::of).ok_or_else(|| match minor {
        Some(minor) => format!("unsupported: Python 3.{minor}; expected 3.8 to 3.14 with the global lock"),
        None => "unsupported: a Python of unknown version".to_owned(),
    })
}

#[cfg(test)]
mod tests;
