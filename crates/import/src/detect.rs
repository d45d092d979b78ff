//! Detection of the tool that wrote a file, by content: file names are not reliable.
//!
//! A file is accepted by a signature (first bytes, a line, the keys of its JSON), never because a parser can read its
//! numbers. What is recognized and not read is named in the refusal.

use super::ParseError;
use super::cyclictest_json::no_json;
use super::raw;
use Foreign::{
    Archive, BpfHistogram, Compressed, Ctf, Database, Elf, FtraceText, Hwlatdetect, OwnResult, Parquet, Pcap, PerfData,
    PerfSched, Picture, RingBuffer, RtTests, RtemsTicks, RtlaTop, RttestSummary, TraceDat, Utf16, WebPage, Zstd,
};
use punctual_model::ResultTool;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Supported text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text of cyclictest: `T:` lines, histogram or `-v`.
    Cyclictest,
    /// `--json` of cyclictest.
    CyclictestJson,
    /// `results.json` of jitterdebugger.
    Jitterdebugger,
    /// Histogram of rtla timerlat or osnoise.
    Rtla,
    /// `summary.xml` of rteval.
    Rteval,
    /// Text of Xenomai's latency and of latmus.
    Xenomai,
    /// `-g` of Xenomai's latency.
    XenomaiPlot,
    /// `-g` of latmus.
    Latmus,
    /// Text of oslat.
    Oslat,
    /// `--json` of oslat.
    OslatJson,
    /// OSADL's JSON exchange format.
    RtDataset,
    /// Interval log of HdrHistogram.
    HdrLog,
    /// Samples of rttest (ROS 2).
    Rttest,
    /// JSON of performance_test (ROS 2).
    PerformanceTestJson,
    /// CSV of performance_test (ROS 2).
    PerformanceTestCsv,
    /// Rows of numbers: latency classes and frequencies, or one latency a line.
    Numbers,
}

impl Kind {
    /// The programs that write it, as [`ResultTool`]s.
    pub(super) fn tools(self) -> &'static [ResultTool] {
        match self {
            Kind::Cyclictest | Kind::CyclictestJson => &[ResultTool::Cyclictest],
            Kind::Jitterdebugger => &[ResultTool::Jitterdebugger],
            Kind::Rtla => &[ResultTool::Rtla],
            Kind::Oslat | Kind::OslatJson => &[ResultTool::Oslat],
            // latmus prints the lines of Xenomai's program.
            Kind::Xenomai | Kind::XenomaiPlot => &[ResultTool::XenomaiLatency, ResultTool::Latmus],
            Kind::Latmus => &[ResultTool::Latmus],
            Kind::Numbers => &[ResultTool::TableUs, ResultTool::TableNs],
            Kind::Rteval
            | Kind::RtDataset
            | Kind::HdrLog
            | Kind::Rttest
            | Kind::PerformanceTestJson
            | Kind::PerformanceTestCsv => &[],
        }
    }
}

/// Contents that are recognized and not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreign {
    TraceDat,
    PerfData,
    FtraceText,
    RingBuffer,
    Ctf,
    Zstd,
    Compressed(&'static str),
    Archive(&'static str),
    Picture,
    WebPage,
    Elf,
    Pcap,
    Database,
    Parquet,
    Utf16,
    OwnResult,
    /// Text of signaltest, cyclicdeadline, ptsematest and others.
    RtTests,
    RtlaTop,
    Hwlatdetect,
    PerfSched,
    BpfHistogram,
    RttestSummary,
    RtemsTicks,
}

impl Foreign {
    /// What it is, and what to do.
    fn refusal(self) -> String {
        let (what, remedy) = match self {
            TraceDat => ("trace.dat of trace-cmd", "punctual watch --from FILE reads it"),
            PerfData => ("perf.data", "punctual watch --from FILE reads it"),
            FtraceText => ("text of ftrace", "punctual watch --from FILE reads it"),
            RingBuffer => (
                "raw pages of the kernel's ring buffer",
                "punctual watch --from DIRECTORY reads them with their formats",
            ),
            Ctf => ("a trace of LTTng (CTF)", "babeltrace2 or CARET reads it"),
            Zstd => ("zstd data", "a capture of punctual: punctual explain FILE --again; otherwise zstd -d FILE first"),
            Compressed(unpack) => ("compressed data", unpack),
            Archive(unpack) => ("an archive", unpack),
            Picture => ("a picture or PDF", "import the file that it was drawn from"),
            WebPage => ("a web page", "save the file itself (raw, download)"),
            Elf => ("a program or core dump", "import its output"),
            Pcap => ("captured packets", "tshark -r FILE reads them"),
            Database => ("an SQLite database", "a store of punctual: punctual store history reads it"),
            Parquet => ("Parquet", "export the latencies as text, one a line, and add --unit"),
            Utf16 => ("UTF-16 text", "iconv -f UTF-16 -t UTF-8 FILE > TEXT first"),
            OwnResult => ("a result of punctual", "punctual show DIR reads its directory"),
            RtTests => ("text of another program of rt-tests", "only those of cyclictest and oslat are read"),
            RtlaTop => ("rtla top, which has no histogram", "measure with rtla timerlat hist or rtla osnoise hist"),
            Hwlatdetect => ("output of hwlatdetect", "it lists only gaps above a threshold, without a distribution"),
            PerfSched => ("text of perf sched", "punctual watch --from perf.data reads what it was made from"),
            BpfHistogram => {
                ("a histogram of bcc or bpftrace", "its classes are powers of two, too coarse for a quantile")
            }
            RttestSummary => ("the statistics of rttest", "import the samples: iteration timestamp latency"),
            RtemsTicks => (
                "cyclictest of RTEMS in ticks of the TSC, not microseconds",
                "divide them by the MHz of its first line",
            ),
        };
        format!("unsupported: {what}; {remedy}")
    }
}

impl From<Foreign> for ParseError {
    fn from(foreign: Foreign) -> ParseError {
        ParseError::of_file(foreign.refusal())
    }
}

/// First bytes and their offset.
pub(super) const MAGIC: &[(usize, &[u8], Foreign)] = &[
    (0, b"\x17\x08\x44tracing", TraceDat),
    (0, b"PERFILE2", PerfData),
    (0, b"PERFFILE", PerfData),
    (0, b"2ELIFREP", PerfData),
    (0, b"\xc1\x1f\xfc\xc1", Ctf),
    (0, b"\xc1\xfc\x1f\xc1", Ctf),
    (0, b"/* CTF ", Ctf),
    (0, b"\x28\xb5\x2f\xfd", Zstd),
    (0, b"\x1f\x8b", Compressed("gzip -d FILE first; packed raw pages: punctual watch --from FILE")),
    (0, b"\xfd7zXZ", Compressed("xz -d FILE first")),
    (0, b"BZh", Compressed("bzip2 -d FILE first")),
    (0, b"PK\x03\x04", Archive("unzip FILE first")),
    (0, b"7z\xbc\xaf", Archive("7z x FILE first")),
    (257, b"ustar", Archive("tar xf FILE first")),
    (0, b"\x89PNG", Picture),
    (0, b"\xff\xd8\xff", Picture),
    (0, b"GIF8", Picture),
    (0, b"%PDF-", Picture),
    (0, b"\x7fELF", Elf),
    (0, b"\xd4\xc3\xb2\xa1", Pcap),
    (0, b"\x0a\x0d\x0d\x0a", Pcap),
    (0, b"SQLite format 3", Database),
    (0, b"PAR1", Parquet),
    (0, b"\xff\xfe", Utf16),
    (0, b"\xfe\xff", Utf16),
];

/// Beginnings of lines, without blanks before them; the first line with one decides.
const LINES: &[(&str, Result<Kind, Foreign>)] = &[
    ("# RTLA ", Ok(Kind::Rtla)),
    ("RTT|", Ok(Kind::Xenomai)),
    ("RTH|", Ok(Kind::Xenomai)),
    ("RTD|", Ok(Kind::Xenomai)),
    ("== Sampling period", Ok(Kind::Xenomai)),
    ("oslat V ", Ok(Kind::Oslat)),
    ("# ----lat min|", Ok(Kind::XenomaiPlot)),
    ("# sampling period:", Ok(Kind::Latmus)),
    ("# context:", Ok(Kind::Latmus)),
    ("#[Histogram log format", Ok(Kind::HdrLog)),
    ("\"StartTimestamp\",", Ok(Kind::HdrLog)),
    ("iteration timestamp latency", Ok(Kind::Rttest)),
    ("---EXPERIMENT-START---", Ok(Kind::PerformanceTestCsv)),
    ("T:", Ok(Kind::Cyclictest)),
    ("# Histogram", Ok(Kind::Cyclictest)),
    ("# /dev/cpu_dma_latency", Ok(Kind::Cyclictest)),
    ("# Min Latenc", Ok(Kind::Cyclictest)),
    ("policy:", Ok(Kind::Cyclictest)),
    ("Thread 0 Interval:", Ok(Kind::Cyclictest)),
    ("#0: ID", Err(RtTests)),
    ("TSC:", Err(RtemsTicks)),
    ("Timer Latency", Err(RtlaTop)),
    ("Operating System Noise", Err(RtlaTop)),
    ("Hardware-related Noise", Err(RtlaTop)),
    ("hwlatdetect:", Err(Hwlatdetect)),
    ("# tracer:", Err(FtraceText)),
    ("cpus=", Err(FtraceText)),
    ("Task                  |", Err(PerfSched)),
    ("time    cpu  task name", Err(PerfSched)),
    ("usecs  ", Err(BpfHistogram)),
    ("nsecs  ", Err(BpfHistogram)),
    ("msecs  ", Err(BpfHistogram)),
    ("Min latency:", Err(RttestSummary)),
];

/// Bytes of [`content`].
pub(super) const HEAD: u64 = 512;

/// What the parsers take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Records of `samples.raw`.
    Raw,
    Text,
}

/// Tells text from `samples.raw` by the first [`HEAD`] bytes.
pub(super) fn content(head: &[u8]) -> Result<Content, ParseError> {
    let is_it = |(at, magic, _): &&(usize, &[u8], Foreign)| head.get(*at..).is_some_and(|rest| rest.starts_with(magic));
    if let Some((.., foreign)) = MAGIC.iter().find(is_it) {
        return Err((*foreign).into());
    }
    if !head.contains(&0) {
        return Ok(Content::Text);
    }
    if raw::is_record(head) {
        return Ok(Content::Raw);
    }
    // A page begins with a time and the number of its bytes (struct buffer_data_page, kernel/trace/ring_buffer.c).
    let word = |at: usize| head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    if word(0) > 0 && (1..4_096).contains(&(word(8) & 0xfffff)) && word(8) >> 32 == 0 {
        return Err(RingBuffer.into());
    }
    Err(ParseError::of_file("unknown binary format: expected text, or samples.raw of a little-endian machine"))
}

/// Detects the format of a text.
pub(super) fn kind(text: &str) -> Result<Kind, ParseError> {
    let start = text.trim_start();
    if start.starts_with('{') {
        return json(text);
    }
    let is_tag = |name: &str| start.get(1..=name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
    if start.starts_with('<') && !start.lines().next().is_some_and(is_traced) {
        return match () {
            () if is_tag("!doctype html") || is_tag("html") => Err(WebPage.into()),
            () if is_tag("svg") => Err(Picture.into()),
            () => Ok(Kind::Rteval),
        };
    }
    let (mut rows, mut words) = (0_u64, None);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(found) = of_line(line) {
            return found.map_err(ParseError::from);
        }
        if is_verbose(line) {
            return Ok(Kind::Cyclictest);
        }
        if is_traced(line) {
            return Err(FtraceText.into());
        }
        if line.starts_with('[') && line.contains("|@") {
            return Err(BpfHistogram.into());
        }
        // A histogram of cyclictest may lack its header, but never its footer.
        if line.trim_start_matches(['-', '+', '.']).starts_with(|c: char| c.is_ascii_digit()) {
            rows += 1;
        } else if !line.starts_with('#') && words.is_none() {
            words = Some(line);
        }
    }
    match words {
        None if rows > 0 => Ok(Kind::Numbers),
        Some(line) if rows > 0 => Err(ParseError::of_file(format!(
            "unknown format: rows of numbers with `{}`; one column of latencies can be imported with --unit",
            super::fields::shortened(line)
        ))),
        _ => Err(unknown()),
    }
}

fn unknown() -> ParseError {
    ParseError::of_file(
        "unknown format: expected output of cyclictest, jitterdebugger, rtla, rteval, oslat, latency, latmus, rttest or \
         performance_test, an HdrHistogram log, or latencies with --unit",
    )
}

/// Keys of a document by which its writer is recognized.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Keys {
    /// The colon is part of the key in rt-tests; `punctual cyclictest` writes both.
    #[serde(rename = "cmdline:")]
    original_command_line: Option<String>,
    cmdline: Option<String>,
    format: Option<Format>,
    thread: Option<IgnoredAny>,
    version: Option<IgnoredAny>,
    cpu: Option<IgnoredAny>,
    perf_test_version: Option<IgnoredAny>,
    tool: Option<serde_json::Value>,
}

/// `format` is an object of OSADL's files, and a number of ours.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Format {
    RtDataset { name: String },
    Other(IgnoredAny),
}

/// The writer of a document; of several, as in JSON Lines, that of the first.
fn json(text: &str) -> Result<Kind, ParseError> {
    let mut documents = serde_json::Deserializer::from_slice(text.as_bytes()).into_iter::<Keys>();
    let keys = documents.next().unwrap_or_else(|| Ok(Keys::default())).map_err(|err| no_json(&err))?;
    let program = keys.original_command_line.as_deref().or(keys.cmdline.as_deref()).map(program);
    match keys {
        Keys { format: Some(Format::RtDataset { name }), .. } if name == "RT Dataset" => Ok(Kind::RtDataset),
        Keys { perf_test_version: Some(_), .. } => Ok(Kind::PerformanceTestJson),
        Keys { thread: Some(_), .. } => match program {
            Some(name) if name.ends_with("cyclictest") => Ok(Kind::CyclictestJson),
            Some("oslat") => Ok(Kind::OslatJson),
            Some(name) => Err(ParseError::of_file(format!(
                "unsupported: JSON of {} of rt-tests; only those of cyclictest and oslat are read",
                super::fields::shortened(name)
            ))),
            None => Err(ParseError::of_file(
                "unknown program of rt-tests: no `cmdline:` in its JSON; expected that of cyclictest or oslat",
            )),
        },
        Keys { cpu: Some(_), version: Some(_), .. } => Ok(Kind::Jitterdebugger),
        Keys { tool: Some(serde_json::Value::String(tool)), .. } if tool.starts_with("punctual") => {
            Err(OwnResult.into())
        }
        _ => Err(unknown()),
    }
}

/// Name of the program of a command line; that of a subcommand of ours.
fn program(command_line: &str) -> &str {
    let mut words = command_line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or_default());
    match words.next() {
        Some("punctual") => words.next(),
        first => first,
    }
    .unwrap_or_default()
}

/// Whether a line is an event of ftrace: `task-pid [CPU] flags seconds.microseconds: event:`.
fn is_traced(line: &str) -> bool {
    let Some((task, rest)) = line.split_once(" [") else { return false };
    let Some((cpu, rest)) = rest.split_once(']') else { return false };
    let is_time = |word: &str| {
        let time = word.strip_suffix(':').and_then(|word| word.split_once('.'));
        time.is_some_and(|(s, part)| [s, part].iter().all(|digits| digits.parse::<u64>().is_ok()))
    };
    task.contains('-') && cpu.parse::<u32>().is_ok() && rest.split_whitespace().take(2).any(is_time)
}

/// Whether a line is one by which text of cyclictest is recognized.
pub(super) fn is_of_cyclictest(line: &str) -> bool {
    is_verbose(line) || matches!(of_line(line), Some(Ok(Kind::Cyclictest)))
}

fn of_line(line: &str) -> Option<Result<Kind, Foreign>> {
    // signaltest and cyclicdeadline print the same line without the one or the other.
    if line.starts_with("T:") && !(line.contains("P:") && line.contains("I:")) {
        return Some(Err(RtTests));
    }
    LINES.iter().find(|(mark, _)| line.starts_with(mark)).map(|(_, found)| *found)
}

/// Whether a line is one of `cyclictest -v`: `       0:       1:      21`.
fn is_verbose(line: &str) -> bool {
    let mut parts = line.split(':').map(str::trim);
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<i64>().is_ok());
    is_number(parts.next()) && is_number(parts.next()) && is_number(parts.next()) && parts.next().is_none()
}
