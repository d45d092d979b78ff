//! Files of trace-cmd: raw pages, with everything needed to read them elsewhere.
//!
//! Layout of version 6, which is written: trace-cmd.dat.v6(5). Numbers are in the byte order of the machine that wrote
//! them, which the head declares.

mod read;

pub use read::{Buffer, DatError, DatFile};
pub(crate) use read::{MOST_CPUS, NextPart, Parser, byte_order, head_in_a_row, path};

use super::layouts::Layouts;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Read, Write};

/// Bytes that a file begins with, before its version.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Marks before the options and the pages.
const OPTIONS: &[u8] = b"options  \0";
const PAGES: &[u8] = b"flyrecord\0";
/// Numbers of the options for a further buffer, for the clock, for what uname(1) prints, and for the number of CPUs.
const OPTION_BUFFER: u16 = 3;
const OPTION_CLOCK: u16 = 4;
const OPTION_UNAME: u16 = 5;
const OPTION_CPUS: u16 = 8;
/// The option of this program's own data, which trace-cmd passes over.
const OPTION_OWN: u16 = 0x7075;
/// As [`OPTION_OWN`]: the machine of the trace, as JSON.
const OPTION_MACHINE: u16 = 0x7076;
/// The clock of the traces, as trace-cmd writes it.
const CLOCK: &[u8] = b"[mono]\0";

/// Beginnings of the names of architectures, as the kernel calls them.
const ARCHITECTURES: [&str; 11] =
    ["x86_64", "i386", "i686", "aarch64", "arm", "riscv", "ppc", "s390", "mips", "loongarch", "sparc"];

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
    /// The machine, in files of `punctual capture`.
    pub machine: Option<Machine>,
    /// Kernel, host and architecture in files of trace-cmd, as uname(1) prints them; not written.
    pub uname: String,
}

impl DatHead {
    /// The architecture of the trace if it is another one than ours, so that its system calls have other numbers.
    pub(crate) fn foreign_architecture(&self) -> Option<String> {
        let own = std::env::consts::ARCH;
        let uname = self.uname.split_whitespace().next_back();
        let of_uname = uname.filter(|name| ARCHITECTURES.iter().any(|known| name.starts_with(known)));
        let name = self.machine.as_ref().map(|machine| machine.architecture.as_str()).or(of_uname)?;
        // As the kernel calls them: armv7l, ppc64le, i686.
        let is_own = name == own || own != "x86_64" && own != "aarch64" && name.starts_with(own);
        (!is_own).then(|| punctual_model::plain(name).into_owned())
    }
}

/// The machine of a trace, as far as an explanation of its events needs it. Texts of a file may hold anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Version of the program that recorded the trace.
    pub version: String,
    /// Architecture, of which the numbers of system calls are.
    pub architecture: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Hypervisor; `None` when none is detected.
    pub hypervisor: Option<String>,
    /// Whether the CPUs have idle states to tell apart.
    pub idle_states: bool,
}

impl DatHead {
    /// A file with these buffers: the name of each, which is empty for the first one, and its pages of each CPU.
    pub fn file<'a>(&self, buffers: &[(&str, &'a [Vec<u8>])]) -> Vec<u8> {
        let sources = |pages: &'a Vec<u8>| (pages.len() as u64, &pages[..]);
        let mut bytes = Vec::new();
        // A vector takes every byte, and every source has its length.
        let _ = self.write(
            &mut bytes,
            buffers.iter().map(|(name, cpus)| (*name, cpus.iter().map(sources).collect())).collect(),
        );
        bytes
    }

    /// Writes a file with these buffers: the name of each, and the pages of each CPU as their length, bytes, and their
    /// source, which is dropped once it is read. Errors: when the file cannot be written, or a source cannot be read or
    /// ends early.
    pub fn write<R: Read>(&self, out: &mut impl Write, buffers: Vec<(&str, Vec<(u64, R)>)>) -> io::Result<()> {
        let page_bytes = self.layouts.page_bytes.max(1) as u64;
        let n_cpus = buffers.iter().map(|(_, cpus)| cpus.len()).max().unwrap_or(0);
        let further: Vec<&str> = buffers.iter().skip(1).map(|(name, _)| *name).collect();
        let (mut head, places) = self.head(n_cpus, &further);
        // The first buffer follows the options; they say where the others are.
        let mut end = head.len() as u64;
        let mut tables = Vec::new();
        for (index, (_, cpus)) in buffers.iter().enumerate() {
            let place = index.checked_sub(1).and_then(|index| places.get(index));
            if let Some(place) = place.and_then(|place| head.get_mut(*place..)?.first_chunk_mut()) {
                *place = end.to_ne_bytes();
            }
            let lengths = (0..n_cpus).map(|cpu| cpus.get(cpu).map_or(0, |(bytes, _)| *bytes));
            tables.push(table(&mut end, lengths, page_bytes));
        }
        let mut at = head.len() as u64;
        out.write_all(&head)?;
        for (table, (_, cpus)) in tables.iter().zip(buffers) {
            out.write_all(table)?;
            at += table.len() as u64;
            for source in cpus.into_iter().map(Some).chain(std::iter::repeat_with(|| None)).take(n_cpus) {
                let begin = at.next_multiple_of(page_bytes);
                io::copy(&mut io::repeat(0).take(begin - at), out)?;
                let (bytes, read) = source.map_or(Ok((0, 0)), |(bytes, source)| {
                    Ok::<_, io::Error>((bytes, io::copy(&mut source.take(bytes), out)?))
                })?;
                if read < bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                at = begin + bytes;
            }
        }
        Ok(())
    }

    /// All that comes before the first buffer; and the offset in it of the place of each further buffer.
    fn head(&self, n_cpus: usize, further: &[&str]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(b"6\0");
        bytes.extend([u8::from(cfg!(target_endian = "big")), 8]);
        bytes.extend(number_32(self.layouts.page_bytes.max(1)));
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
        if let Some(machine) = &self.machine {
            option(OPTION_MACHINE, &serde_json::to_vec(machine).unwrap_or_default());
        }
        let places =
            further.iter().map(|name| option(OPTION_BUFFER, &[&[0; 8], name.as_bytes(), &[0]].concat())).collect();
        bytes.extend(0_u16.to_ne_bytes());
        (bytes, places)
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

/// The begin of a buffer at offset `end` of a file: where the pages of each CPU are, by their lengths, and the clock.
/// Moves `end` behind the buffer.
fn table(end: &mut u64, lengths: impl ExactSizeIterator<Item = u64>, page_bytes: u64) -> Vec<u8> {
    let mut bytes = PAGES.to_vec();
    *end += (PAGES.len() + lengths.len() * 16 + 8 + CLOCK.len()) as u64;
    for length in lengths {
        // Aligned to the page size for each CPU.
        let begin = end.next_multiple_of(page_bytes);
        bytes.extend(begin.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        *end = begin + length;
    }
    bytes.extend((CLOCK.len() as u64).to_ne_bytes());
    bytes.extend(CLOCK);
    bytes
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
pub(crate) mod tests;
