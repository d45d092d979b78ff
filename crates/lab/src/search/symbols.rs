//! Functions of a guest's kernel by their addresses.

use super::super::protocol::{CLOCK, SYMBOL};
use super::super::{LabError, Monitor, directories, snapshot};
use super::clock::GuestTime;
use super::{OneCpu, Search};
use crate::protocol::Job;
use punctual_host::KernelSymbols;
use punctual_model::without_module;
use std::fs;

/// Functions of a kernel and of its modules at the addresses of its guests, and what its clock is in QEMU's time.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    functions: KernelSymbols,
    /// `CLOCK_MONOTONIC` at a moment, and the time of QEMU's ACPI timer then since the guest went on from its rest, ns.
    pub(super) clock_ns: [u64; 2],
}

/// Addresses below are those of programs (Documentation/arch/x86/x86_64/mm.rst).
pub(super) const KERNEL: u64 = 1 << 63;

impl Symbols {
    /// Parses a line with the two times of the clock, and lines of `/proc/kallsyms`. `None` without functions.
    pub fn parse(text: &str) -> Option<Symbols> {
        let (clock, functions) = text.split_once('\n')?;
        let (monotonic, elapsed) = clock.split_once(' ')?;
        let functions = KernelSymbols::of_guest(functions);
        let clock_ns = [monotonic.parse().ok()?, elapsed.parse().ok()?];
        if functions.is_empty() { None } else { Some(Symbols { functions, clock_ns }) }
    }

    /// Whether it has this function; its module may be left out.
    pub fn has(&self, function: &str) -> bool {
        self.functions.all().iter().any(|(_, name)| name == function || without_module(name) == function)
    }

    /// The index of the function at an address; `None` for a program's code.
    pub(super) fn index(&self, address: u64) -> Option<usize> {
        if address < KERNEL { None } else { self.functions.index(address) }
    }

    /// The name of a function.
    pub(super) fn name(&self, index: Option<usize>) -> &str {
        index.and_then(|index| self.functions.name_at(index)).unwrap_or("user")
    }
}

impl Search {
    /// The functions of the kernel, from a guest of its own; kept with the snapshot. Errors: if the kernel does not
    /// tell them.
    pub fn symbols(&self, monitor: Monitor<'_>) -> Result<Symbols, LabError> {
        let limits = self.limits(monitor);
        let _one_cpu = OneCpu::take();
        let saved = snapshot::ready(&self.setup, limits)?;
        let kept = saved.symbols();
        if let Some(known) = fs::read_to_string(&kept).ok().and_then(|text| Symbols::parse(&text)) {
            return Ok(known);
        }
        (monitor.say)("reading the functions of the kernel");
        let place = directories::for_guest()?;
        let job = Job { movable: None, lists_symbols: true, ..self.job(0, 0) };
        let files = self.setup.files_below(place.path(), Some(&job))?;
        let mut qemu = self.setup.start(&files, snapshot::arguments(&saved))?;
        let read = snapshot::enter(&mut qemu, &saved.devices(), limits).and_then(|()| {
            let mut time = GuestTime::begin(&mut qemu, limits)?;
            snapshot::start(&mut qemu, limits)?;
            snapshot::wait_for_pause(&mut qemu, limits)?;
            let elapsed_ns = time.elapsed_ns(&mut qemu, limits)?;
            snapshot::start(&mut qemu, limits)?;
            qemu.wait(limits).map(|()| elapsed_ns)
        });
        let elapsed_ns = read.map_err(|gone| self.failed(&files, gone))?;
        let clock = self.setup.result(&files, CLOCK)?;
        let text = format!("{clock} {elapsed_ns}\n{}", files.result_lines(SYMBOL).join("\n"));
        let symbols = Symbols::parse(&text).ok_or_else(|| self.setup.without_symbols())?;
        // Without a place to keep them, they are read again.
        let _ = fs::write(&kept, text);
        Ok(symbols)
    }
}
