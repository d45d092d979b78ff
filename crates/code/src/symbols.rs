//! Functions of a file by the addresses in its table of symbols.

use crate::elf::{Elf, integer, text};
use std::sync::Arc;

/// Most symbols of a file.
const MOST: usize = 1_000_000;
/// `STT_FUNC`, `STT_GNU_IFUNC`.
const FUNCTIONS: [u64; 2] = [2, 10];

/// Addresses, without relocation, of what a file exports under these names.
pub(crate) fn addresses_of<const N: usize>(elf: &Elf, wanted: [&str; N]) -> [Option<u64>; N] {
    let mut found = [None; N];
    let (Some(table), Some(names)) = (elf.data(".dynsym"), elf.data(".dynstr")) else { return found };
    let (entry, field, size) = if elf.address_bytes() == 8 { (24, 8, 8) } else { (16, 4, 4) };
    for one in table.chunks_exact(entry).take(MOST) {
        let Some(name) = integer(one, 0, 4).and_then(|at| text(&names, at)) else { continue };
        if let Some(index) = wanted.iter().position(|wanted| wanted.as_bytes() == name) {
            found[index] = integer(one, field, size).filter(|address| *address > 0);
        }
    }
    found
}

/// Functions, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// Address, size, offset of the name.
    functions: Vec<(u64, u64, u64)>,
    names: Arc<[u8]>,
}

impl Symbols {
    /// The symbols of a file: all, or those for linking where the others were stripped.
    pub(crate) fn of(elf: &Elf) -> Symbols {
        let full = Symbols::read(elf, ".symtab", ".strtab").unwrap_or_default();
        if full.functions.is_empty() { Symbols::read(elf, ".dynsym", ".dynstr").unwrap_or_default() } else { full }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// All names as in the file, with the addresses of their functions.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, u64)> {
        self.functions
            .iter()
            .filter_map(|(address, _, name)| Some((std::str::from_utf8(text(&self.names, *name)?).ok()?, *address)))
    }

    fn read(elf: &Elf, table: &str, names: &str) -> Option<Symbols> {
        let (table, names) = (elf.data(table)?, elf.data(names)?);
        let is_64 = elf.address_bytes() == 8;
        let entry = if is_64 { 24 } else { 16 };
        // The lowest bit of an address tells Thumb functions of 32-bit ARM.
        let mask = if cfg!(target_arch = "arm") { !1 } else { !0 };
        let symbol = |one: &[u8]| {
            let (info, address, size) = if is_64 {
                (integer(one, 4, 1)?, integer(one, 8, 8)?, integer(one, 16, 8)?)
            } else {
                (integer(one, 12, 1)?, integer(one, 4, 4)?, integer(one, 8, 4)?)
            };
            let section = if is_64 { integer(one, 6, 2)? } else { integer(one, 14, 2)? };
            let is_function = FUNCTIONS.contains(&(info & 15)) && section != 0 && size > 0;
            is_function.then_some((address & mask, size, integer(one, 0, 4)?))
        };
        let mut functions: Vec<_> = table.chunks_exact(entry).take(MOST).filter_map(symbol).collect();
        functions.sort_unstable();
        Some(Symbols { functions, names })
    }

    /// Name of the function that contains an address, as in the file.
    pub(crate) fn name(&self, address: u64) -> Option<String> {
        let after = self.functions.partition_point(|(from, ..)| *from <= address);
        let (from, ..) = *self.functions.get(after.checked_sub(1)?)?;
        // The first of several names.
        let first = self.functions.partition_point(|(before, ..)| *before < from);
        let (_, size, name) = *self.functions.get(first)?;
        let name = text(&self.names, name).filter(|name| !name.is_empty() && address - from < size)?;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}
