//! A capture: the events around some late wake-ups, with all that explains them again, anywhere, by later rules.
//!
//! A file of trace-cmd, compressed by zstd, whose checksum protects it. `zstd -d` makes it one for trace-cmd and
//! KernelShark.

use super::dat::{DatError, DatFile, DatHead};
use super::layouts::{LayoutError, Layouts};
use super::window::Window;
use punctual_analysis::explain::{Case, Symbols, Trace};
use punctual_model::{Explanation, plain};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{Cursor, Read};

/// Most bytes of a capture when it is decompressed.
const MOST_BYTES: u64 = 256 << 20;
/// Name of the buffer with what the watched threads do.
const OWN: &str = "watched";

/// A capture.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    layouts: Layouts,
    names: HashMap<i32, String>,
    functions: Vec<(u64, String)>,
    window: Window,
    evidence: Evidence,
}

/// What this program adds to the trace, as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Evidence {
    /// Version of the program that made it.
    version: String,
    /// Architecture, of which the numbers of system calls are.
    architecture: String,
    /// Start of the window, ns.
    from_ns: u64,
    /// Functions of the timers whose starts count, by address; empty: all.
    timers: Vec<u64>,
    /// What was explained.
    cases: Vec<Case>,
    /// Its explanations at that time.
    verdicts: Vec<Explanation>,
}

/// Reason why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It is not compressed as captures are, or damaged.
    #[error("damaged: its checksum or its compression is wrong")]
    Compression,
    /// It is larger than any that this program writes.
    #[error("too large: more than {} MiB of events", MOST_BYTES >> 20)]
    Size,
    /// The trace in it.
    #[error(transparent)]
    Trace(#[from] DatError),
    /// Its layouts.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A trace that has no case in it.
    #[error("no capture: it holds a trace without the wake-ups to explain")]
    NoCase,
    /// A case that this program cannot judge.
    #[error("damaged: {0}")]
    Case(String),
    /// A case of another machine.
    #[error(
        "unsupported: a watched thread on {0}, whose system calls have other numbers; explain it on such a machine"
    )]
    Architecture(String),
}

/// A late wake-up as it was explained, and as it is explained now.
#[derive(Debug, Clone, PartialEq)]
pub struct Again {
    /// The explanation when it was captured.
    pub then: Explanation,
    /// That by the rules of this program; `None` if they find it not covered.
    pub now: Option<Explanation>,
}

impl Capture {
    /// The capture of cases in a window, with their explanations. `trace` is that of the window, and `timers` as in
    /// `Decoder::only_timers_of`.
    pub fn new(
        layouts: Layouts,
        window: Window,
        trace: &Trace,
        symbols: Symbols<'_>,
        timers: &[u64],
        explained: Vec<(Case, Explanation)>,
    ) -> Capture {
        let (cases, verdicts) = explained.into_iter().unzip();
        let evidence = Evidence {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            from_ns: window.from_ns,
            timers: timers.to_vec(),
            cases,
            verdicts,
        };
        let functions = super::functions(trace, symbols);
        Capture { layouts, names: trace.names.clone(), functions, window, evidence }
    }

    /// Version of the program that made it.
    pub fn version(&self) -> &str {
        &self.evidence.version
    }

    /// The file.
    pub fn pack(&self) -> Vec<u8> {
        compress_to_vec(&self.trace_file()[..], CompressionLevel::Fastest)
    }

    /// The file of trace-cmd in it.
    pub(crate) fn trace_file(&self) -> Vec<u8> {
        let head = DatHead {
            layouts: self.layouts.clone(),
            names: self.names.clone(),
            functions: self.functions.clone(),
            own: serde_json::to_vec(&self.evidence).unwrap_or_default(),
            ..DatHead::default()
        };
        let Window { around, own, .. } = &self.window;
        let buffers = [("", &around[..]), (OWN, &own[..])];
        let used = if own.is_empty() { 1 } else { 2 };
        head.file(buffers.get(..used).unwrap_or_default())
    }

    /// Reads a file. Errors: when the file has another format, is damaged, or is of a machine with other system calls.
    pub fn unpack(file: &[u8]) -> Result<Capture, CaptureError> {
        Capture::of_trace_file(&decompressed(file)?)
    }

    pub(crate) fn of_trace_file(file: &[u8]) -> Result<Capture, CaptureError> {
        let mut dat = DatFile::open(Cursor::new(file))?;
        if dat.head.own.is_empty() {
            return Err(CaptureError::NoCase);
        }
        let evidence: Evidence = serde_json::from_slice(&dat.head.own)
            .map_err(|err| CaptureError::Case(plain(&err.to_string()).into_owned()))?;
        let is_whole = evidence.cases.len() == evidence.verdicts.len();
        if !is_whole || !evidence.cases.iter().all(Case::is_in_order) {
            return Err(CaptureError::Case("times that are not in order".to_owned()));
        }
        let is_watched = evidence.cases.iter().any(|case| case.inside.is_some());
        if is_watched && evidence.architecture != std::env::consts::ARCH {
            return Err(CaptureError::Architecture(plain(&evidence.architecture).into_owned()));
        }
        let mut window = Window { from_ns: evidence.from_ns, ..Window::default() };
        let mut left = MOST_BYTES;
        for (index, buffer) in dat.buffers.clone().iter().enumerate() {
            let pages = (0..buffer.n_cpus()).map(|cpu| dat.pages_within(index, cpu, &mut left));
            let pages = pages.collect::<Result<_, _>>()?;
            match index {
                0 => window.around = pages,
                _ if buffer.name == OWN => window.own = pages,
                _ => {}
            }
        }
        let DatHead { layouts, names, functions, .. } = dat.head;
        Ok(Capture { layouts, names, functions, window, evidence })
    }

    /// Its cases, with their explanations when it was made.
    pub fn cases(&self) -> impl Iterator<Item = (&Case, &Explanation)> {
        self.evidence.cases.iter().zip(&self.evidence.verdicts)
    }

    /// Its events. Errors: when they cannot be decoded.
    pub fn trace(&self) -> Result<Trace, CaptureError> {
        let mut decoder = self.layouts.decoder()?;
        decoder.only_timers_of(self.evidence.timers.clone());
        let (trace, _) = self.window.trace(&decoder, |trace| {
            trace.names.extend(self.names.iter().map(|(pid, name)| (*pid, name.clone())));
        });
        Ok(trace)
    }

    /// Explains its cases by the rules of this program. Errors: as [`Capture::trace`].
    pub fn again(&self) -> Result<Vec<Again>, CaptureError> {
        let trace = self.trace()?;
        let symbols = |address: u64| {
            let at = self.functions.binary_search_by_key(&address, |(address, _)| *address).ok()?;
            self.functions.get(at).map(|(_, name)| name.clone())
        };
        let again =
            |(case, then): (&Case, &Explanation)| Again { then: then.clone(), now: case.explain(&trace, &symbols) };
        Ok(self.cases().map(again).collect())
    }
}

/// The content of a file that is compressed by zstd, if its checksum is right.
fn decompressed(file: &[u8]) -> Result<Vec<u8>, CaptureError> {
    let mut decoder = StreamingDecoder::new(file).map_err(|_| CaptureError::Compression)?;
    let mut content = Vec::new();
    (&mut decoder).take(MOST_BYTES + 1).read_to_end(&mut content).map_err(|_| CaptureError::Compression)?;
    if content.len() as u64 > MOST_BYTES {
        return Err(CaptureError::Size);
    }
    let decoder = decoder.into_frame_decoder();
    let is_right = decoder.get_checksum_from_data().is_some()
        && decoder.get_checksum_from_data() == decoder.get_calculated_checksum();
    if is_right { Ok(content) } else { Err(CaptureError::Compression) }
}

#[cfg(test)]
pub(crate) mod tests;
