//! Places in the code of other programs: functions, files and lines of a sample's stack, and where probes can be.
//!
//! All input is hostile: another user's process maps the files. Nothing here panics; memory and time are bounded
//! ([`budget`]), for all files together.
#![forbid(unsafe_code)]

mod budget;
mod elf;
#[cfg(test)]
mod fuzz;
mod module;
mod perf_map;
mod probe;
mod python;
mod registers;
mod sample;
mod symbols;
mod unwind;

pub use perf_map::PerfMap;
pub use probe::{NoPlace, ProbePlace, functions, static_probes};
pub use python::{Python, PythonFrames, PythonThread};
pub use registers::{PERF_REGISTERS, Registers};
pub use sample::{RawSample, Record, parse};

use budget::Budget;
use module::Module;
use punctual_host::MappedCode;
use punctual_model::{CodeFrame, CodePlace};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Places that are kept for addresses that come again.
const MOST_PLACES: usize = 10_000;

/// One function at an address, with file and line; several where functions are inlined, innermost first.
type Place = (Option<String>, Option<String>, Option<u32>);

/// Device and inode of a file.
type FileId = (u64, u64);

/// Symbols of the files that watched programs have mapped.
#[derive(Debug)]
pub struct Resolver {
    budget: Rc<Budget>,
    /// `None`: not an ELF file, or beyond the budget.
    modules: HashMap<FileId, Option<Rc<Module>>>,
    /// By file and address in it.
    places: HashMap<(FileId, u64), Rc<[Place]>>,
}

impl Resolver {
    /// Begins with no file; nothing is looked up any more once `is_stopped` is set.
    pub fn new(is_stopped: Arc<AtomicBool>) -> Resolver {
        Resolver { budget: Rc::new(Budget::new(is_stopped)), modules: HashMap::new(), places: HashMap::new() }
    }

    /// Stack of a sample, innermost frame first: up to [`CodePlace::FRAMES`]. It ends where nothing tells the caller.
    /// Code without a file has the names of `made`, which is read after the sample.
    pub fn stack(&mut self, sample: &RawSample, mapped: &[MappedCode], made: Option<&PerfMap>) -> Vec<CodeFrame> {
        let budget = Rc::clone(&self.budget);
        budget.timed(|| self.walked(sample, mapped, made))
    }

    fn walked(&mut self, sample: &RawSample, mapped: &[MappedCode], made: Option<&PerfMap>) -> Vec<CodeFrame> {
        let mut find = |address: u64| {
            let mapping = mapped.iter().find(|one| (one.start..one.end).contains(&address))?;
            Some((mapping, self.module(mapping)))
        };
        let mut addresses = Vec::new();
        unwind::walk(sample, &mut find, |address| addresses.push(address));
        let mut frames = Vec::new();
        for (index, address) in addresses.into_iter().enumerate() {
            let Some(mapping) = mapped.iter().find(|one| (one.start..one.end).contains(&address)) else { break };
            // A return address is behind its call.
            let probe = if index == 0 { address } else { address.saturating_sub(1) };
            match made.filter(|_| mapping.file.is_none()).and_then(|made| made.frame(probe, sample.at_ns)) {
                Some(frame) => frames.push(frame),
                None => self.add_frames(mapping, address, probe, &mut frames),
            }
        }
        frames.truncate(CodePlace::FRAMES);
        frames
    }

    /// The module of a mapping; `None` where it has no file, or one that is not understood.
    fn module(&mut self, mapping: &MappedCode) -> Option<Rc<Module>> {
        let (file, budget) = (mapping.file.as_ref().filter(|_| self.budget.is_open())?, &self.budget);
        let module = self.modules.entry(mapping.id).or_insert_with(|| Module::open(file, budget).map(Rc::new));
        module.clone()
    }

    /// Adds the functions at `probe`, an address in the process, in a frame whose instruction is at `address`.
    fn add_frames(&mut self, mapping: &MappedCode, address: u64, probe: u64, frames: &mut Vec<CodeFrame>) {
        let frame = |(function, file, line): Place, address| CodeFrame {
            function,
            file,
            line,
            object: mapping.name.clone(),
            address,
        };
        let Some(module) = self.module(mapping) else {
            frames.push(frame((None, None, None), None));
            return;
        };
        let in_file =
            |address: u64| module.address_of(address.wrapping_sub(mapping.start).wrapping_add(mapping.offset));
        let Some(at) = in_file(probe) else {
            frames.push(frame((None, None, None), None));
            return;
        };
        if self.places.len() > MOST_PLACES {
            self.places.clear();
        }
        let places = self.places.entry((mapping.id, at)).or_insert_with(|| module.places(at).into());
        frames.extend(places.iter().map(|place| frame(place.clone(), in_file(address))));
    }
}
