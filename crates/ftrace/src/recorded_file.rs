//! A recorded trace of any kind, recognized by its first bytes.

use super::dat::{DatError, DatFile, MAGIC, Machine, Parser};
use super::packed::{self, Files};
use super::perf::{self, PERF};
use super::recording::{DatRecording, RecordingError};
use super::text;
use flate2::read::MultiGzDecoder;
use punctual_analysis::recorded::Recording;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};

/// Bytes by which a file is recognized.
const HEAD: u64 = 512;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const UNKNOWN: &str = "unknown kind of file: expected trace.dat of trace-cmd, perf.data, text of ftrace (trace, \
                       trace_pipe, trace-cmd report), or a directory or tar.gz with raw pages in traces/cpu0 and their formats";

/// An open trace.
pub struct RecordedFile {
    /// Its events.
    pub recording: Box<dyn Recording<Error = RecordingError>>,
    /// The clock, like `mono`.
    pub clock: String,
    /// Names of threads that it has besides its events.
    pub names: HashMap<i32, String>,
    /// The machine, where the file describes it.
    pub machine: Option<Machine>,
    /// Resolution of its times, ns.
    pub resolution_ns: u64,
    /// The architecture, if it is another one than ours: the names of its system calls are unknown.
    pub foreign: Option<String>,
}

impl fmt::Debug for RecordedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedFile").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl RecordedFile {
    /// Recognizes a file, and reads its head. Errors: when it is of an unknown kind, or cannot be read.
    pub fn open<R: Read + Seek + 'static>(input: R) -> Result<RecordedFile, RecordingError> {
        RecordedFile::recognize(BufReader::new(input), true)
    }

    /// The files of a directory: their names and sizes, and how each is opened, by its index. Errors: when they are not
    /// raw pages with their formats, or cannot be read.
    pub fn of_directory<R: Read + Seek + 'static>(
        files: Vec<(String, u64)>,
        open: impl FnMut(usize) -> io::Result<R> + 'static,
    ) -> Result<RecordedFile, RecordingError> {
        let (input, entries) = Files::new(files, open);
        RecordedFile::of_pages(packed::open(Parser::new(input)?, &entries)?)
    }

    fn recognize<R: Read + Seek + 'static>(mut input: R, may_be_packed: bool) -> Result<RecordedFile, RecordingError> {
        let mut head = Vec::new();
        input.by_ref().take(HEAD).read_to_end(&mut head)?;
        input.seek(SeekFrom::Start(0))?;
        match &head[..] {
            [] => Err(RecordingError::Kind("the file is empty")),
            head if head.starts_with(MAGIC) => RecordedFile::of_pages(DatFile::open(input)?),
            head if head.starts_with(PERF) => {
                let (stream, clock, names, foreign) = perf::open(Parser::new(input)?)?;
                Ok(RecordedFile {
                    recording: Box::new(stream),
                    clock: clock.to_owned(),
                    names,
                    machine: None,
                    resolution_ns: 1,
                    foreign,
                })
            }
            head if perf::OTHERS.iter().any(|other| head.starts_with(other)) => {
                Err(perf::only_perf("perf.data of another byte order, or of version 1").into())
            }
            head if head.starts_with(ZSTD) => {
                Err(RecordingError::Kind("a capture: punctual explain FILE --again explains it"))
            }
            head if head.starts_with(GZIP) && may_be_packed => {
                let mut unpacked = Vec::new();
                let unpack = MultiGzDecoder::new(input).take(packed::MOST_ARCHIVE + 1).read_to_end(&mut unpacked);
                unpack.map_err(|_| DatError::Damaged("what is compressed"))?;
                if unpacked.len() as u64 > packed::MOST_ARCHIVE {
                    return Err(RecordingError::Kind("unsupported: more than 256 MiB compressed; unpack it first"));
                }
                RecordedFile::recognize(Cursor::new(unpacked), false)
            }
            head if packed::is_archive(head) => {
                let mut input = Parser::new(input)?;
                let entries = packed::entries(&mut input)?;
                RecordedFile::of_pages(packed::open(input, &entries)?)
            }
            _ => {
                let (stream, resolution_ns) = text::open(Parser::new(input)?)?.ok_or(RecordingError::Kind(UNKNOWN))?;
                let (clock, names) = (text::CLOCK.to_owned(), HashMap::new());
                Ok(RecordedFile {
                    recording: Box::new(stream),
                    clock,
                    names,
                    machine: None,
                    resolution_ns,
                    foreign: None,
                })
            }
        }
    }

    fn of_pages<R: Read + Seek + 'static>(file: DatFile<R>) -> Result<RecordedFile, RecordingError> {
        let (clock, names, machine) = (file.clock.clone(), file.head.names.clone(), file.head.machine.clone());
        let foreign = file.head.foreign_architecture();
        let recording = Box::new(DatRecording::new(file)?);
        Ok(RecordedFile { recording, clock, names, machine, resolution_ns: 1, foreign })
    }
}

#[cfg(test)]
pub(super) mod tests;
