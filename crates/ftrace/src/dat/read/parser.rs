//! Numbers and texts of a file, none of them beyond its end.

use super::DatError;
use std::io::{Read, Seek, SeekFrom};

/// Most bytes of all texts of a head: all symbols of a kernel are 15 MB.
const MOST_TEXT: u64 = 1 << 26;

/// A file, or a part of one, that is read from its beginning on.
#[derive(Debug)]
pub(crate) struct Parser<R> {
    input: R,
    /// Its length, bytes.
    length: u64,
    /// Bytes of texts so far.
    texts: u64,
}

impl<R: Read + Seek> Parser<R> {
    pub(crate) fn new(mut input: R) -> Result<Parser<R>, DatError> {
        let length = input.seek(SeekFrom::End(0))?;
        input.seek(SeekFrom::Start(0))?;
        Ok(Parser { input, length, texts: 0 })
    }

    /// Its length, bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Goes on at this place.
    pub(crate) fn seek(&mut self, at: u64) -> Result<(), DatError> {
        self.input.seek(SeekFrom::Start(at))?;
        Ok(())
    }

    /// The place of what is read next.
    pub(crate) fn position(&mut self) -> Result<u64, DatError> {
        Ok(self.input.stream_position()?)
    }

    /// Checks that so many bytes are at a place.
    pub(crate) fn check(&self, at: u64, bytes: u64) -> Result<(), DatError> {
        let is_within = at.checked_add(bytes).is_some_and(|end| end <= self.length);
        if is_within { Ok(()) } else { Err(DatError::Damaged("content beyond its end")) }
    }

    pub(crate) fn bytes(&mut self, n: u64) -> Result<Vec<u8>, DatError> {
        let left = self.length.saturating_sub(self.input.stream_position()?);
        if n > left {
            return Err(DatError::Damaged("it ends too early"));
        }
        let mut bytes = Vec::new();
        (&mut self.input).take(n).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DatError> {
        let bytes = self.bytes(N as u64)?;
        bytes.first_chunk().copied().ok_or(DatError::Damaged("it ends too early"))
    }

    pub(crate) fn number_16(&mut self) -> Result<u16, DatError> {
        Ok(u16::from_ne_bytes(self.array()?))
    }

    pub(crate) fn number_32(&mut self) -> Result<u32, DatError> {
        Ok(u32::from_ne_bytes(self.array()?))
    }

    pub(crate) fn number_64(&mut self) -> Result<u64, DatError> {
        Ok(u64::from_ne_bytes(self.array()?))
    }

    /// Counts the bytes of a text, or of an option.
    pub(crate) fn count(&mut self, n: u64) -> Result<(), DatError> {
        self.texts = self.texts.saturating_add(n);
        if self.texts > MOST_TEXT { Err(DatError::Damaged("its head is too long")) } else { Ok(()) }
    }

    pub(crate) fn text(&mut self, n: u64) -> Result<String, DatError> {
        self.count(n)?;
        Ok(String::from_utf8_lossy(&self.bytes(n)?).trim_end_matches('\0').to_owned())
    }

    /// A text after its length, 64 bits.
    pub(crate) fn text_64(&mut self) -> Result<String, DatError> {
        let n = self.number_64()?;
        self.text(n)
    }

    /// A text up to its terminating zero.
    pub(crate) fn word(&mut self) -> Result<String, DatError> {
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

    /// An option: its number and its value. In version 6, number 0 has no value.
    pub(crate) fn option(&mut self) -> Result<Option<(u16, Vec<u8>)>, DatError> {
        let id = self.number_16()?;
        if id == 0 {
            return Ok(None);
        }
        let size = u64::from(self.number_32()?);
        self.count(size)?;
        Ok(Some((id, self.bytes(size)?)))
    }
}
