//! Detection of the tool that wrote a file, by content: file names are not reliable.

use super::ParseError;
use model::ResultTool;

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
    /// OSADL's JSON exchange format.
    RtDataset,
    /// Table of latency classes and frequencies.
    Table,
}

impl Kind {
    /// The programs that write it.
    pub(super) fn tools(self) -> &'static [ResultTool] {
        match self {
            Kind::Cyclictest | Kind::CyclictestJson => &[ResultTool::Cyclictest],
            Kind::Jitterdebugger => &[ResultTool::Jitterdebugger],
            Kind::Rtla => &[ResultTool::Rtla],
            Kind::Oslat => &[ResultTool::Oslat],
            // latmus prints the lines of Xenomai's program.
            Kind::Xenomai | Kind::XenomaiPlot => &[ResultTool::XenomaiLatency, ResultTool::Latmus],
            Kind::Latmus => &[ResultTool::Latmus],
            Kind::Table => &[ResultTool::TableUs, ResultTool::TableNs],
            Kind::Rteval | Kind::RtDataset => &[],
        }
    }
}

/// Whether the first bytes are a record of `samples.raw`: a CPU number below 65 536 and a time of less than 2^40 s
/// contain zero bytes, which text does not.
pub(super) fn is_raw(head: &[u8]) -> bool {
    head.contains(&0)
}

/// Detects the format of a text.
pub(super) fn kind(text: &str) -> Result<Kind, ParseError> {
    let start = text.trim_start();
    if start.starts_with('{') {
        if text.contains("\"RT Dataset\"") {
            return Ok(Kind::RtDataset);
        }
        // Keys of the two tools; a document with neither is rejected by the parser chosen here.
        let is_jitterdebugger = text.contains("\"cpu\":") && !text.contains("\"thread\"");
        return Ok(if is_jitterdebugger { Kind::Jitterdebugger } else { Kind::CyclictestJson });
    }
    if start.starts_with('<') {
        return Ok(Kind::Rteval);
    }
    let mut numbers_first = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
        if starts(&["# RTLA "]) {
            return Ok(Kind::Rtla);
        }
        if starts(&["RTT|", "RTH|", "RTD|", "== Sampling period"]) {
            return Ok(Kind::Xenomai);
        }
        if starts(&["oslat V "]) {
            return Ok(Kind::Oslat);
        }
        if starts(&["# ----lat min|"]) {
            return Ok(Kind::XenomaiPlot);
        }
        if starts(&["# sampling period:", "# context:"]) {
            return Ok(Kind::Latmus);
        }
        if starts(&["T:", "# Histogram", "# /dev/cpu_dma_latency", "# Min Latenc", "policy:", "Thread 0 Interval:"])
            || is_verbose(line)
        {
            return Ok(Kind::Cyclictest);
        }
        // A histogram of cyclictest may lack its header, but never its footer.
        numbers_first |= line.starts_with(|c: char| c.is_ascii_digit());
    }
    if numbers_first {
        return Ok(Kind::Table);
    }
    Err(ParseError::of_file(
        "unknown format: expected output of cyclictest, jitterdebugger, rtla, rteval, oslat, latency or latmus, or a \
         table of latencies and counts",
    ))
}

/// Whether a line is one of `cyclictest -v`: `       0:       1:      21`.
fn is_verbose(line: &str) -> bool {
    let mut parts = line.split(':').map(str::trim);
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<i64>().is_ok());
    is_number(parts.next()) && is_number(parts.next()) && is_number(parts.next()) && parts.next().is_none()
}
