//! Reading of trace.dat: what its head says, and the pages of one CPU after the other.
//!
//! A file may come from anyone: every length is checked against what the file has, and against a limit.

use super::{DatHead, MAGIC, OPTION_BUFFER, OPTION_CLOCK, OPTION_OWN, OPTIONS, PAGES, VERSION};
use crate::layouts::Layouts;
use std::io::{self, Read, Seek, SeekFrom};

/// Most bytes of all texts of a head: all symbols of a kernel are 15 MB.
const MOST_TEXT: u64 = 1 << 26;
/// Largest number of CPUs, buffers and formats.
const MOST_CPUS: u32 = 8192;
const MOST_BUFFERS: usize = 1024;
const MOST_FORMATS: u32 = 1 << 16;

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
    /// Position and length of the pages of each CPU, bytes.
    cpus: Vec<(u64, u64)>,
}

impl Buffer {
    /// The number of CPUs.
    #[must_use]
    pub fn n_cpus(&self) -> usize {
        self.cpus.len()
    }
}

/// An open file.
#[derive(Debug)]
pub struct DatFile<R> {
    input: R,
    /// Bytes of the file.
    length: u64,
    /// Bytes of texts so far.
    texts: u64,
    /// All that is no page.
    pub head: DatHead,
    /// The buffers; the first one always exists.
    pub buffers: Vec<Buffer>,
    /// The clock, like `mono`; `local` where the file says nothing.
    pub clock: String,
}

impl<R: Read + Seek> DatFile<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// When it is no file of trace-cmd, one of another version or machine, or damaged.
    pub fn open(mut input: R) -> Result<DatFile<R>, DatError> {
        let length = input.seek(SeekFrom::End(0))?;
        input.seek(SeekFrom::Start(0))?;
        let mut file = DatFile {
            input,
            length,
            texts: 0,
            head: DatHead::default(),
            buffers: Vec::new(),
            clock: "local".to_owned(),
        };
        if file.bytes(MAGIC.len() as u64).ok().as_deref() != Some(MAGIC) {
            return Err(DatError::Kind);
        }
        let version = file.word()?;
        if version.as_bytes() != VERSION.strip_suffix(b"\0").unwrap_or_default() {
            return Err(DatError::Unsupported(format!("version {version} of trace.dat; known is 6")));
        }
        let [is_big, long_bytes] = file.array()?;
        if (is_big != 0) != cfg!(target_endian = "big") {
            let order = if is_big != 0 { "big" } else { "little" };
            return Err(DatError::Unsupported(format!("a trace of a machine with {order}-endian numbers")));
        }
        if !matches!(long_bytes, 4 | 8) {
            return Err(DatError::Damaged("a machine with words of neither 32 nor 64 bits"));
        }
        let page_bytes = file.number_32()?;
        file.head.layouts = file.layouts(page_bytes)?;
        let functions = u64::from(file.number_32()?);
        file.head.functions = functions_of(&file.text(functions)?);
        let formats = u64::from(file.number_32()?);
        file.text(formats)?;
        let names = file.number_64()?;
        file.head.names = file.text(names)?.lines().filter_map(name).collect();
        file.after_head()?;
        Ok(file)
    }

    fn layouts(&mut self, page_bytes: u32) -> Result<Layouts, DatError> {
        let mut layouts =
            Layouts { page_bytes: usize::try_from(page_bytes).unwrap_or(usize::MAX), ..Layouts::default() };
        for (mark, text) in [("header_page", &mut layouts.page), ("header_event", &mut layouts.event)] {
            if self.word()? != mark {
                return Err(DatError::Damaged("no layout of pages"));
            }
            *text = self.text_64()?;
        }
        let n_own = self.number_32()?;
        for _ in 0..limited(n_own)? {
            let text = self.text_64()?;
            layouts.formats.extend(path("ftrace", text));
        }
        let n_systems = self.number_32()?;
        for _ in 0..limited(n_systems)? {
            let system = self.word()?;
            let n = self.number_32()?;
            for _ in 0..limited(n)? {
                let text = self.text_64()?;
                layouts.formats.extend(path(&system, text));
            }
        }
        Ok(layouts)
    }

    /// The number of CPUs, the options, and the tables of pages.
    fn after_head(&mut self) -> Result<(), DatError> {
        let n_cpus = self.number_32()?;
        if n_cpus > MOST_CPUS {
            return Err(DatError::Damaged("too many CPUs"));
        }
        let mut mark = self.bytes(PAGES.len() as u64)?;
        let mut further = Vec::new();
        let mut has_clock = false;
        if mark == OPTIONS {
            loop {
                let id = u16::from_ne_bytes(self.array()?);
                if id == 0 {
                    break;
                }
                let size = self.number_32()?;
                if u64::from(size) > MOST_TEXT {
                    return Err(DatError::Damaged("an option is too long"));
                }
                let value = self.bytes(size.into())?;
                match id {
                    OPTION_CLOCK => {
                        has_clock = true;
                        self.clock = chosen_clock(&String::from_utf8_lossy(&value));
                    }
                    OPTION_OWN => self.head.own = value,
                    OPTION_BUFFER if further.len() < MOST_BUFFERS => {
                        let (at, name) =
                            value.split_first_chunk().ok_or(DatError::Damaged("a buffer without place"))?;
                        let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
                        further.push((u64::from_ne_bytes(*at), name));
                    }
                    _ => {}
                }
            }
            mark = self.bytes(PAGES.len() as u64)?;
        }
        if mark != PAGES {
            return Err(DatError::Unsupported("a trace.dat with text instead of raw pages".to_owned()));
        }
        self.table(String::new(), n_cpus)?;
        if has_clock {
            let size = self.number_64()?;
            self.clock = chosen_clock(&self.text(size)?);
        }
        for (at, name) in further {
            self.input.seek(SeekFrom::Start(at))?;
            if self.bytes(PAGES.len() as u64)? != PAGES {
                return Err(DatError::Damaged("a buffer without pages"));
            }
            self.table(name, n_cpus)?;
        }
        Ok(())
    }

    fn table(&mut self, name: String, n_cpus: u32) -> Result<(), DatError> {
        let mut cpus = Vec::new();
        for _ in 0..n_cpus {
            let (at, bytes) = (self.number_64()?, self.number_64()?);
            if at.checked_add(bytes).is_none_or(|end| end > self.length) {
                return Err(DatError::Damaged("pages beyond its end"));
            }
            cpus.push((at, bytes));
        }
        self.buffers.push(Buffer { name, cpus });
        Ok(())
    }

    /// All pages of one CPU of a buffer; none of one that does not exist.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn pages(&mut self, buffer: usize, cpu: usize) -> Result<Vec<u8>, DatError> {
        let place = self.buffers.get(buffer).and_then(|buffer| buffer.cpus.get(cpu));
        let Some((at, bytes)) = place.copied() else { return Ok(Vec::new()) };
        self.input.seek(SeekFrom::Start(at))?;
        self.bytes(bytes)
    }

    fn bytes(&mut self, n: u64) -> Result<Vec<u8>, DatError> {
        let left = self.length.saturating_sub(self.input.stream_position()?);
        if n > left {
            return Err(DatError::Damaged("it ends too early"));
        }
        let mut bytes = Vec::new();
        (&mut self.input).take(n).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DatError> {
        let bytes = self.bytes(N as u64)?;
        bytes.first_chunk().copied().ok_or(DatError::Damaged("it ends too early"))
    }

    fn number_32(&mut self) -> Result<u32, DatError> {
        Ok(u32::from_ne_bytes(self.array()?))
    }

    fn number_64(&mut self) -> Result<u64, DatError> {
        Ok(u64::from_ne_bytes(self.array()?))
    }

    fn text(&mut self, n: u64) -> Result<String, DatError> {
        self.texts = self.texts.saturating_add(n);
        if self.texts > MOST_TEXT {
            return Err(DatError::Damaged("its head is too long"));
        }
        Ok(String::from_utf8_lossy(&self.bytes(n)?).trim_end_matches('\0').to_owned())
    }

    fn text_64(&mut self) -> Result<String, DatError> {
        let n = self.number_64()?;
        self.text(n)
    }

    /// A text up to its terminating zero.
    fn word(&mut self) -> Result<String, DatError> {
        const MOST: usize = 256;
        let mut word = Vec::new();
        loop {
            match self.array::<1>()? {
                [0] => return Ok(String::from_utf8_lossy(&word).into_owned()),
                _ if word.len() >= MOST => return Err(DatError::Damaged("a name of its head is too long")),
                [byte] => word.push(byte),
            }
        }
    }
}

fn limited(n: u32) -> Result<u32, DatError> {
    if n <= MOST_FORMATS { Ok(n) } else { Err(DatError::Damaged("too many formats")) }
}

/// The path of an event's format, and the text.
fn path(system: &str, text: String) -> Option<(String, String)> {
    let name = text.lines().find_map(|line| line.strip_prefix("name:"))?.trim();
    Some((format!("{system}/{name}"), text))
}

/// The clock in brackets among all that the kernel has, or the only one.
fn chosen_clock(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
    chosen.unwrap_or(text).trim_matches(['\0', ' ', '\n']).to_owned()
}

/// Lines like `ffffffff81000000 T _text [module]`, ascending.
fn functions_of(text: &str) -> Vec<(u64, String)> {
    let function = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((address, words.nth(1)?.to_owned()))
    };
    let mut all: Vec<_> = text.lines().filter_map(function).collect();
    all.sort_unstable_by_key(|(address, _)| *address);
    all
}

/// A line like `17 name of a thread`.
fn name(line: &str) -> Option<(i32, String)> {
    let (pid, name) = line.split_once(' ')?;
    Some((pid.parse().ok()?, name.to_owned()))
}
