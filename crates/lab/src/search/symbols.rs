//! Functions of a guest's kernel by their addresses.

use super::super::protocol::SYMBOL;
use super::super::{LabError, Monitor, directories, snapshot};
use super::{OneCpu, Search};
use crate::protocol::Job;
use std::fs;

/// Functions of a kernel and of its modules, at the addresses of its guests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Address and name, by address.
    functions: Vec<(u64, String)>,
}

/// Addresses below are those of programs (Documentation/arch/x86/x86_64/mm.rst).
pub(super) const KERNEL: u64 = 1 << 63;

impl Symbols {
    /// Reads lines of an address, a name and possibly a module; lines of other forms and addresses of no kernel are
    /// left out. Of two names of an address, the first is used.
    pub fn parse(text: &str) -> Symbols {
        let mut functions: Vec<(u64, String)> = text.lines().filter_map(Symbols::line).collect();
        functions.sort_by_key(|(address, _)| *address);
        functions.dedup_by_key(|(address, _)| *address);
        Symbols { functions }
    }

    fn line(line: &str) -> Option<(u64, String)> {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address >= KERNEL)?;
        let name = words.next()?;
        Some((address, words.next().map_or_else(|| name.to_owned(), |module| format!("{name} {module}"))))
    }

    /// Whether no function is known.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The index of the function at an address; `None` for a program's code.
    pub(super) fn index(&self, address: u64) -> Option<usize> {
        let after = self.functions.partition_point(|(begin, _)| *begin <= address);
        if address < KERNEL { None } else { after.checked_sub(1) }
    }

    /// The name of a function.
    pub(super) fn name(&self, index: Option<usize>) -> &str {
        index.and_then(|index| self.functions.get(index)).map_or("user", |(_, name)| name)
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
        let known = fs::read_to_string(&kept).map(|text| Symbols::parse(&text)).unwrap_or_default();
        if !known.is_empty() {
            return Ok(known);
        }
        (monitor.say)("reading the functions of the kernel");
        let place = directories::for_guest()?;
        let job = Job { movable: None, lists_symbols: true, ..self.job(0, 0) };
        let files = self.setup.files_below(place.path(), Some(&job))?;
        self.carry_out(&saved, &files, snapshot::arguments(&saved).collect(), limits)?;
        let text = files.result_lines(SYMBOL).join("\n");
        let symbols = Symbols::parse(&text);
        if symbols.is_empty() {
            return Err(self.setup.without_symbols());
        }
        // Without a place to keep them, they are read again.
        let _ = fs::write(&kept, text);
        Ok(symbols)
    }
}
