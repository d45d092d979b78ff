//! Version 7: sections that options tell the places of, compressed or not; and the pages of either version.

use super::parser::Parser;
use super::{
    Buffer, Compression, DatError, DatFile, MOST_BUFFERS, MOST_CPUS, OPTION_BUFFER, OPTION_CLOCK, OPTION_MACHINE,
    OPTION_OWN, OPTION_UNAME, Place, chosen_clock, formats, functions, header_info, machine, names, own_formats, uname,
};
use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Cursor, Read, Seek};

/// Numbers of the options that tell where a section is.
const OPTION_HEADER_INFO: u16 = 16;
const OPTION_OWN_FORMATS: u16 = 17;
const OPTION_FORMATS: u16 = 18;
const OPTION_FUNCTIONS: u16 = 19;
const OPTION_NAMES: u16 = 21;
/// Flag of a compressed section.
const COMPRESSED: u16 = 1;
/// Most sections of options: a file tells their places, and might send us in circles.
const MOST_SECTIONS: usize = 1000;
/// Most bytes of a section, or of a chunk of pages, when it is decompressed.
const MOST_CHUNK: u64 = 1 << 26;

/// Where the next part of the pages of a CPU begins.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NextPart {
    /// Bytes of the file before it, from the beginning of these pages on.
    pub(crate) bytes: u64,
    /// Number of compressed parts that are left.
    compressed: u32,
}

impl<R: Read + Seek> DatFile<R> {
    /// Reads the options, and the sections whose places they tell.
    pub(super) fn in_sections(&mut self) -> Result<(), DatError> {
        let name = self.input.word()?;
        self.input.word()?;
        self.compression = match name.as_str() {
            "none" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            other => {
                let other = punctual_model::plain(other);
                return Err(DatError::Unsupported(format!("compression by {other}; known are none, zlib and zstd")));
            }
        };
        let mut at = self.input.number_64()?;
        for _ in 0..MOST_SECTIONS {
            if at == 0 {
                return Ok(());
            }
            at = self.options(at)?;
        }
        Err(DatError::Damaged("too many sections of options"))
    }

    /// Reads one section of options; returns the place of the next, or 0.
    fn options(&mut self, at: u64) -> Result<u64, DatError> {
        let mut options = self.section(at)?;
        loop {
            let Some((id, value)) = options.option()? else {
                // Its value is a place.
                options.number_32()?;
                return options.number_64();
            };
            let place = value.first_chunk().map_or(0, |place| u64::from_ne_bytes(*place));
            match id {
                OPTION_CLOCK => self.clock = chosen_clock(&String::from_utf8_lossy(&value)),
                OPTION_OWN => self.head.own = value,
                OPTION_UNAME => self.head.uname = uname(&value),
                OPTION_MACHINE => self.head.machine = Some(machine(&value)?),
                OPTION_BUFFER if self.buffers.len() < MOST_BUFFERS => self.buffer(value)?,
                OPTION_HEADER_INFO => header_info(&mut self.section(place)?, &mut self.head.layouts)?,
                OPTION_OWN_FORMATS => own_formats(&mut self.section(place)?, &mut self.head.layouts)?,
                OPTION_FORMATS => formats(&mut self.section(place)?, &mut self.head.layouts)?,
                OPTION_FUNCTIONS => self.head.functions = functions(&mut self.section(place)?)?,
                OPTION_NAMES => self.head.names = names(&mut self.section(place)?)?,
                _ => {}
            }
        }
    }

    /// The head of a section: whether it is compressed, and its length in the file.
    fn section_head(&mut self, at: u64) -> Result<(bool, u64), DatError> {
        self.input.seek(at)?;
        self.input.number_16()?;
        let is_compressed = self.input.number_16()? & COMPRESSED != 0;
        self.input.number_32()?;
        Ok((is_compressed, self.input.number_64()?))
    }

    /// The content of a section.
    fn section(&mut self, at: u64) -> Result<Parser<Cursor<Vec<u8>>>, DatError> {
        let (is_compressed, bytes) = self.section_head(at)?;
        self.input.count(bytes)?;
        let content = if is_compressed { self.chunk()? } else { self.input.bytes(bytes)? };
        self.input.count(content.len() as u64)?;
        Parser::new(Cursor::new(content))
    }

    /// A buffer, by the value of its option.
    fn buffer(&mut self, value: Vec<u8>) -> Result<(), DatError> {
        let mut value = Parser::new(Cursor::new(value))?;
        let section = value.number_64()?;
        let (is_compressed, _) = self.section_head(section)?;
        let (name, clock) = (value.word()?, value.word()?);
        if self.buffers.is_empty() {
            self.clock = chosen_clock(&clock);
        }
        let page_bytes = usize::try_from(value.number_32()?).unwrap_or(usize::MAX);
        self.head.layouts.page_bytes = self.head.layouts.page_bytes.max(page_bytes);
        let mut cpus = Vec::new();
        for _ in 0..value.number_32()? {
            let (cpu, at, bytes) = (value.number_32()?, value.number_64()?, value.number_64()?);
            self.input.check(at, bytes)?;
            let index = usize::try_from(cpu).unwrap_or(usize::MAX);
            if cpu > MOST_CPUS {
                return Err(DatError::Damaged("too many CPUs"));
            }
            if cpus.len() <= index {
                cpus.resize(index + 1, Place::default());
            }
            if let Some(place) = cpus.get_mut(index) {
                *place = Place { at, bytes, is_compressed };
            }
        }
        self.add(Buffer { name, cpus })
    }

    /// All pages of one CPU of a buffer; none of one that does not exist.
    pub fn pages(&mut self, buffer: usize, cpu: usize) -> Result<Vec<u8>, DatError> {
        let mut left = u64::MAX;
        self.pages_within(buffer, cpu, &mut left)
    }

    /// The same, and what is left of a limit, bytes. Errors: beyond it, too.
    pub(crate) fn pages_within(&mut self, buffer: usize, cpu: usize, left: &mut u64) -> Result<Vec<u8>, DatError> {
        let (mut pages, mut next) = (Vec::new(), NextPart::default());
        loop {
            let part = self.part(buffer, cpu, &mut next, u64::MAX)?;
            if part.is_empty() {
                return Ok(pages);
            }
            *left = left.checked_sub(part.len() as u64).ok_or(DatError::Damaged("too many pages"))?;
            pages.extend(part);
        }
    }

    /// The next pages of one CPU of a buffer, about `most` bytes, or those that are compressed together; none after the
    /// last ones.
    pub(crate) fn part(
        &mut self,
        buffer: usize,
        cpu: usize,
        next: &mut NextPart,
        most: u64,
    ) -> Result<Vec<u8>, DatError> {
        let place = self.buffers.get(buffer).and_then(|buffer| buffer.cpus.get(cpu));
        let Some(Place { at, bytes, is_compressed }) = place.copied().filter(|place| place.bytes > 0) else {
            return Ok(Vec::new());
        };
        self.input.seek(at.saturating_add(next.bytes))?;
        if !is_compressed {
            let part = self.input.bytes(bytes.saturating_sub(next.bytes).min(most))?;
            next.bytes += part.len() as u64;
            return Ok(part);
        }
        if next.bytes == 0 {
            next.compressed = self.input.number_32()?;
        }
        let Some(left) = next.compressed.checked_sub(1) else { return Ok(Vec::new()) };
        let part = self.chunk()?;
        *next = NextPart { bytes: self.input.position()?.saturating_sub(at), compressed: left };
        Ok(part)
    }

    /// Bytes of the pages of all CPUs of a buffer in the file.
    pub(crate) fn bytes(&self, buffer: usize) -> u64 {
        self.buffers.get(buffer).map_or(0, |buffer| buffer.cpus.iter().map(|place| place.bytes).sum())
    }

    /// The next compressed part.
    fn chunk(&mut self) -> Result<Vec<u8>, DatError> {
        let (packed, whole) = (u64::from(self.input.number_32()?), u64::from(self.input.number_32()?));
        if whole > MOST_CHUNK {
            return Err(DatError::Damaged("a compressed part is too large"));
        }
        let packed = self.input.bytes(packed)?;
        let unpacked = match self.compression {
            Compression::None => return Err(DatError::Damaged("a compressed part without a compression")),
            Compression::Zlib => limited_to(whole, ZlibDecoder::new(&packed[..])),
            Compression::Zstd => StreamingDecoder::new(&packed[..])
                .map_err(io::Error::other)
                .and_then(|decoder| limited_to(whole, decoder)),
        };
        let is_whole = |bytes: &Vec<u8>| bytes.len() as u64 == whole;
        unpacked.ok().filter(is_whole).ok_or(DatError::Damaged("a compressed part"))
    }
}

fn limited_to(most: u64, packed: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    packed.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
