//! Files of trace-cmd: raw pages, with everything needed to read them elsewhere.
//!
//! Layout of version 6, which is written: trace-cmd.dat.v6(5). Numbers are in the byte order of the machine that wrote
//! them, which the head declares.

mod read;

pub(crate) use read::NextPart;
pub use read::{Buffer, DatError, DatFile};

use super::layouts::Layouts;
use std::collections::HashMap;

/// Bytes that a file begins with, before its version.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Marks before the options and the pages.
const OPTIONS: &[u8] = b"options  \0";
const PAGES: &[u8] = b"flyrecord\0";
/// Numbers of the options for a further buffer, for the clock and for the number of CPUs.
const OPTION_BUFFER: u16 = 3;
const OPTION_CLOCK: u16 = 4;
const OPTION_CPUS: u16 = 8;
/// The option of this program's own data, which trace-cmd passes over.
const OPTION_OWN: u16 = 0x7075;
/// The clock of the traces, as trace-cmd writes it.
const CLOCK: &[u8] = b"[mono]\0";

/// What a file holds besides pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatHead {
    /// How to read the pages.
    pub layouts: Layouts,
    /// Names of threads, by ID.
    pub names: HashMap<i32, String>,
    /// Functions of the kernel, by address; those at the addresses of its events suffice.
    pub functions: Vec<(u64, String)>,
    /// Data of this program; empty in files of others.
    pub own: Vec<u8>,
}

impl DatHead {
    /// A file with these buffers: the name of each, which is empty for the first one, and its pages of each CPU.
    #[must_use]
    pub fn file(&self, buffers: &[(&str, &[Vec<u8>])]) -> Vec<u8> {
        let page_bytes = self.layouts.page_bytes.max(1);
        let n_cpus = buffers.iter().map(|(_, pages)| pages.len()).max().unwrap_or(0);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(b"6\0");
        bytes.extend([u8::from(cfg!(target_endian = "big")), 8]);
        bytes.extend(number_32(page_bytes));
        bytes.extend(b"header_page\0");
        text_64(&mut bytes, &self.layouts.page);
        bytes.extend(b"header_event\0");
        text_64(&mut bytes, &self.layouts.event);
        self.formats(&mut bytes);
        let functions: String =
            self.functions.iter().map(|(address, name)| format!("{address:016x} T {name}\n")).collect();
        bytes.extend(number_32(functions.len()));
        bytes.extend(functions.as_bytes());
        // No printk formats.
        bytes.extend(number_32(0));
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_unstable();
        let names: String = names.iter().map(|(pid, name)| format!("{pid} {name}\n")).collect();
        text_64(&mut bytes, &names);
        bytes.extend(number_32(n_cpus));
        bytes.extend(OPTIONS);
        let mut option = |id: u16, value: &[u8]| {
            bytes.extend(id.to_ne_bytes());
            bytes.extend(number_32(value.len()));
            bytes.extend(value);
            bytes.len() - value.len()
        };
        option(OPTION_CPUS, &number_32(n_cpus));
        option(OPTION_CLOCK, CLOCK);
        if !self.own.is_empty() {
            option(OPTION_OWN, &self.own);
        }
        let further = buffers.get(1..).unwrap_or_default();
        let places: Vec<usize> =
            further.iter().map(|(name, _)| option(OPTION_BUFFER, &[&[0; 8], name.as_bytes(), &[0]].concat())).collect();
        bytes.extend(0_u16.to_ne_bytes());
        // The first buffer follows the options; they say where the others are.
        for (index, (_, pages)) in buffers.iter().enumerate() {
            let at = (bytes.len() as u64).to_ne_bytes();
            let place = index.checked_sub(1).and_then(|index| places.get(index));
            if let Some(place) = place.and_then(|place| bytes.get_mut(*place..)?.first_chunk_mut()) {
                *place = at;
            }
            pages_of(&mut bytes, pages, n_cpus, page_bytes);
        }
        bytes
    }

    /// The formats: those of ftrace itself, and the others by system.
    fn formats(&self, bytes: &mut Vec<u8>) {
        let mut own: Vec<&str> = Vec::new();
        let mut systems: Vec<(&str, Vec<&str>)> = Vec::new();
        for (path, text) in &self.layouts.formats {
            let system = path.split('/').next().unwrap_or_default();
            match systems.iter_mut().find(|(known, _)| *known == system) {
                _ if system == "ftrace" => own.push(text),
                Some((_, formats)) => formats.push(text),
                None => systems.push((system, vec![text])),
            }
        }
        texts(bytes, &own);
        bytes.extend(number_32(systems.len()));
        for (system, formats) in &systems {
            bytes.extend(system.as_bytes());
            bytes.push(0);
            texts(bytes, formats);
        }
    }
}

/// Appends the number of texts, and the texts.
fn texts(bytes: &mut Vec<u8>, texts: &[&str]) {
    bytes.extend(number_32(texts.len()));
    texts.iter().for_each(|text| text_64(bytes, text));
}

/// Appends the pages of a buffer, after a table of where those of each CPU are, and the clock.
fn pages_of(bytes: &mut Vec<u8>, pages: &[Vec<u8>], n_cpus: usize, page_bytes: usize) {
    bytes.extend(PAGES);
    let nothing = Vec::new();
    let all = || (0..n_cpus).map(|cpu| pages.get(cpu).unwrap_or(&nothing));
    let after = bytes.len() + n_cpus * 16 + 8 + CLOCK.len();
    // Aligned to the page size for each CPU.
    let mut at = after.next_multiple_of(page_bytes);
    for of_cpu in all() {
        bytes.extend((at as u64).to_ne_bytes());
        bytes.extend((of_cpu.len() as u64).to_ne_bytes());
        at += of_cpu.len().next_multiple_of(page_bytes);
    }
    bytes.extend((CLOCK.len() as u64).to_ne_bytes());
    bytes.extend(CLOCK);
    for of_cpu in all() {
        bytes.resize(bytes.len().next_multiple_of(page_bytes), 0);
        bytes.extend(of_cpu);
    }
}

fn number_32(n: usize) -> [u8; 4] {
    u32::try_from(n).unwrap_or(u32::MAX).to_ne_bytes()
}

/// Appends a text after its length, 64 bits.
fn text_64(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_ne_bytes());
    bytes.extend(text.as_bytes());
}

#[cfg(test)]
mod tests;
