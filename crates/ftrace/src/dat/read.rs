//! Reading of trace.dat, versions 6 and 7: what its head says, and the pages of one CPU after the other.
//!
//! Layout: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5). A file may come from anyone: every length is checked against what
//! the file has, and against a limit.

mod parser;
mod sections;

use super::{
    DatHead, MAGIC, Machine, OPTION_BUFFER, OPTION_CLOCK, OPTION_MACHINE, OPTION_OWN, OPTION_UNAME, OPTIONS, PAGES,
};
use crate::layouts::Layouts;
pub(crate) use parser::Parser;
use punctual_model::{Order, plain};
pub(crate) use sections::NextPart;
use std::collections::HashMap;
use std::io::{self, Read, Seek};

/// Largest number of CPUs, buffers and formats.
pub(crate) const MOST_CPUS: u32 = 8192;
const MOST_BUFFERS: usize = 1024;
const MOST_FORMATS: u32 = 1 << 16;
/// Most bytes of the description of a machine.
const MOST_MACHINE: usize = 4096;

/// Reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DatError {
    /// It cannot be read at all, or ends too early.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a file of another kind.
    #[error("unknown kind of file: expected trace.dat, as written by trace-cmd")]
    Kind,
    /// A version or a machine that this program does not read.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Content that no trace-cmd writes.
    #[error("damaged: {0}")]
    Damaged(&'static str),
}

/// The pages of a trace within a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Its name; empty for the first one.
    pub name: String,
    /// Where the pages of each CPU are.
    cpus: Vec<Place>,
}

/// Where pages are in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    at: u64,
    bytes: u64,
    is_compressed: bool,
}

/// Compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Buffer {
    /// The number of CPUs.
    pub fn n_cpus(&self) -> usize {
        self.cpus.len()
    }
}

/// An open file.
#[derive(Debug)]
pub struct DatFile<R> {
    input: Parser<R>,
    compression: Compression,
    /// Everything except the pages.
    pub head: DatHead,
    /// The buffers; the first one always exists.
    pub buffers: Vec<Buffer>,
    /// The clock, like `mono`; `local` where the file says nothing.
    pub clock: String,
}

impl<R: Read + Seek> DatFile<R> {
    /// Reads the head. Errors: when the file has another format, is of another version or machine, or is damaged.
    pub fn open(input: R) -> Result<DatFile<R>, DatError> {
        let mut input = Parser::new(input)?;
        if input.bytes(MAGIC.len() as u64).ok().as_deref() != Some(MAGIC) {
            return Err(DatError::Kind);
        }
        let version = input.word()?;
        if !matches!(version.as_str(), "6" | "7") {
            return Err(DatError::Unsupported(format!("version {} of trace.dat; known are 6 and 7", plain(&version))));
        }
        let page_bytes = byte_order(&mut input)?;
        let layouts = Layouts { page_bytes, ..Layouts::default() };
        let mut file = DatFile {
            input,
            compression: Compression::None,
            head: DatHead { layouts, ..DatHead::default() },
            buffers: Vec::new(),
            clock: "local".to_owned(),
        };
        match version.as_str() {
            "6" => file.in_a_row()?,
            _ => file.in_sections()?,
        }
        if file.buffers.is_empty() {
            return Err(DatError::Unsupported("a trace.dat without raw pages".to_owned()));
        }
        Ok(file)
    }

    /// Version 6: one part after the other.
    fn in_a_row(&mut self) -> Result<(), DatError> {
        let DatFile { input, head, .. } = self;
        let page_bytes = head.layouts.page_bytes;
        *head = head_in_a_row(input, page_bytes)?;
        let n_cpus = input.number_32()?;
        if n_cpus > MOST_CPUS {
            return Err(DatError::Damaged("too many CPUs"));
        }
        let mut mark = self.input.bytes(PAGES.len() as u64)?;
        let mut further = Vec::new();
        let mut has_clock = false;
        if mark == OPTIONS {
            while let Some((id, value)) = self.input.option()?.filter(|(id, _)| *id != 0) {
                match id {
                    OPTION_CLOCK => {
                        has_clock = true;
                        self.clock = chosen_clock(&String::from_utf8_lossy(&value));
                    }
                    OPTION_OWN => self.head.own = value,
                    OPTION_UNAME => self.head.uname = uname(&value),
                    OPTION_MACHINE => self.head.machine = Some(machine(&value)?),
                    OPTION_BUFFER if further.len() < MOST_BUFFERS => {
                        let (at, name) =
                            value.split_first_chunk().ok_or(DatError::Damaged("a buffer without place"))?;
                        let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
                        further.push((u64::from_ne_bytes(*at), name));
                    }
                    _ => {}
                }
            }
            mark = self.input.bytes(PAGES.len() as u64)?;
        }
        if mark != PAGES {
            return Err(DatError::Unsupported("a trace.dat with text instead of raw pages".to_owned()));
        }
        self.table(String::new(), n_cpus)?;
        if has_clock {
            let size = self.input.number_64()?;
            self.clock = chosen_clock(&self.input.text(size)?);
        }
        for (at, name) in further {
            self.input.seek(at)?;
            if self.input.bytes(PAGES.len() as u64)? != PAGES {
                return Err(DatError::Damaged("a buffer without pages"));
            }
            self.table(name, n_cpus)?;
        }
        Ok(())
    }

    /// Pages that lie at these places of each CPU, uncompressed: the first byte, and the number of bytes.
    pub(crate) fn of_places(input: Parser<R>, head: DatHead, clock: String, places: &[(u64, u64)]) -> DatFile<R> {
        let place = |(at, bytes): &(u64, u64)| Place { at: *at, bytes: *bytes, is_compressed: false };
        let buffers = vec![Buffer { name: String::new(), cpus: places.iter().map(place).collect() }];
        DatFile { input, compression: Compression::None, head, buffers, clock }
    }

    fn table(&mut self, name: String, n_cpus: u32) -> Result<(), DatError> {
        let mut cpus = Vec::new();
        for _ in 0..n_cpus {
            let (at, bytes) = (self.input.number_64()?, self.input.number_64()?);
            self.input.check(at, bytes)?;
            cpus.push(Place { at, bytes, is_compressed: false });
        }
        self.add(Buffer { name, cpus })
    }

    /// Adds a buffer. Errors: when pages overlap, so that the file would have more of them than bytes.
    fn add(&mut self, buffer: Buffer) -> Result<(), DatError> {
        self.buffers.push(buffer);
        let places = self.buffers.iter().flat_map(|buffer| &buffer.cpus);
        let all = places.fold(0_u64, |all, place| all.saturating_add(place.bytes));
        if all > self.input.length() { Err(DatError::Damaged("pages that overlap")) } else { Ok(()) }
    }
}

/// The machine that wrote a file: its byte order, the bytes of its words, and those of its pages, which are returned.
pub(crate) fn byte_order<R: Read + Seek>(input: &mut Parser<R>) -> Result<usize, DatError> {
    let [is_big, long_bytes] = input.array()?;
    if (is_big != 0) != cfg!(target_endian = "big") {
        let order = if is_big != 0 { "big" } else { "little" };
        let what = format!("a trace of a machine with {order}-endian numbers");
        return Err(DatError::Unsupported(format!("{what}; read its text: trace-cmd report -t FILE > FILE.txt")));
    }
    if !matches!(long_bytes, 4 | 8) {
        return Err(DatError::Damaged("a machine with words of neither 32 nor 64 bits"));
    }
    Ok(usize::try_from(input.number_32()?).unwrap_or(usize::MAX))
}

/// Layouts, functions and names, one part after the other: as in version 6, and as in perf.data.
pub(crate) fn head_in_a_row<R: Read + Seek>(input: &mut Parser<R>, page_bytes: usize) -> Result<DatHead, DatError> {
    let mut head = DatHead { layouts: Layouts { page_bytes, ..Layouts::default() }, ..DatHead::default() };
    header_info(input, &mut head.layouts)?;
    own_formats(input, &mut head.layouts)?;
    formats(input, &mut head.layouts)?;
    head.functions = functions(input)?;
    let printk = u64::from(input.number_32()?);
    input.text(printk)?;
    head.names = names(input)?;
    Ok(head)
}

/// What uname(1) prints, without its terminating zero.
fn uname(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_matches(['\0', '\n', ' ']).to_owned()
}

/// The layouts of pages and records.
fn header_info<R: Read + Seek>(input: &mut Parser<R>, layouts: &mut Layouts) -> Result<(), DatError> {
    for (mark, text) in [("header_page", &mut layouts.page), ("header_event", &mut layouts.event)] {
        if input.word()? != mark {
            return Err(DatError::Damaged("no layout of pages"));
        }
        *text = input.text_64()?;
    }
    Ok(())
}

/// The formats of ftrace itself.
fn own_formats<R: Read + Seek>(input: &mut Parser<R>, layouts: &mut Layouts) -> Result<(), DatError> {
    for _ in 0..limited(input.number_32()?)? {
        layouts.formats.extend(path("ftrace", input.text_64()?));
    }
    Ok(())
}

/// The other formats, by system.
fn formats<R: Read + Seek>(input: &mut Parser<R>, layouts: &mut Layouts) -> Result<(), DatError> {
    for _ in 0..limited(input.number_32()?)? {
        let system = input.word()?;
        for _ in 0..limited(input.number_32()?)? {
            layouts.formats.extend(path(&system, input.text_64()?));
        }
    }
    Ok(())
}

/// Functions of the kernel from lines like `ffffffff81000000 T _text [module]`, ascending.
fn functions<R: Read + Seek>(input: &mut Parser<R>) -> Result<Vec<(u64, String)>, DatError> {
    let size = u64::from(input.number_32()?);
    let function = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((address, words.nth(1)?.to_owned()))
    };
    let mut all: Vec<_> = input.text(size)?.lines().filter_map(function).collect();
    all.order_by_key(|(address, _)| *address);
    Ok(all)
}

/// Names of threads from lines like `17 name of a thread`.
fn names<R: Read + Seek>(input: &mut Parser<R>) -> Result<HashMap<i32, String>, DatError> {
    let name = |line: &str| {
        let (pid, name) = line.split_once(' ')?;
        Some((pid.parse().ok()?, name.to_owned()))
    };
    Ok(input.text_64()?.lines().filter_map(name).collect())
}

/// The machine of a capture.
fn machine(value: &[u8]) -> Result<Machine, DatError> {
    let value = Some(value).filter(|value| value.len() <= MOST_MACHINE);
    value
        .and_then(|value| serde_json::from_slice(value).ok())
        .ok_or(DatError::Damaged("the description of its machine"))
}

fn limited(n: u32) -> Result<u32, DatError> {
    if n <= MOST_FORMATS { Ok(n) } else { Err(DatError::Damaged("too many formats")) }
}

/// The path of an event's format, and the text.
pub(crate) fn path(system: &str, text: String) -> Option<(String, String)> {
    let name = text.lines().find_map(|line| line.strip_prefix("name:"))?.trim();
    Some((format!("{system}/{name}"), text))
}

/// The clock in brackets among all that the kernel has, or the only one.
fn chosen_clock(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
    chosen.unwrap_or(text).trim_matches(['\0', ' ', '\n']).to_owned()
}
