//! OSADL's "RT Dataset", a JSON exchange format for histograms of cyclictest (github.com/osadl/Latencyplot).

use super::ParseError;
use super::column::Column;
use super::cyclictest_json::no_json;
use super::fields::{ns, period_us};
use punctual_cyclictest::asked_there;
use punctual_model::{Beyond, Host, Imported, ImportedThread, Preemption, Source, StatedConditions};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Document {
    format: Format,
    #[serde(default)]
    system: System,
    #[serde(default)]
    processor: Processor,
    #[serde(default)]
    kernel: Kernel,
    #[serde(default)]
    condition: Condition,
    latency: Latency,
}

#[derive(Debug, Deserialize)]
struct Format {
    version: String,
}

#[derive(Debug, Default, Deserialize)]
struct System {
    hostname: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Processor {
    vendor: Option<String>,
    #[serde(rename = "type")]
    model: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Kernel {
    version: Option<String>,
    #[serde(default)]
    config: Vec<String>,
    cmdline: Option<String>,
}

/// `cycles` is ignored: the writer sets it to 10^8 if the command line has no `-l`.
#[derive(Debug, Default, Deserialize)]
struct Condition {
    load: Option<String>,
    cyclictest: Option<String>,
    interval: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Latency {
    granularity: String,
    /// Latency classes, then the counts of each core.
    cores: Vec<Vec<u64>>,
    #[serde(default)]
    maxima: Vec<i64>,
}

/// Parses a whole document.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, ParseError> {
    let document: Document = serde_json::from_slice(text.as_bytes()).map_err(|err| no_json(&err))?;
    let Document { format, system, processor, kernel, condition, latency } = document;
    if format.version.split('.').next() != Some("1") {
        let version = format.version.escape_debug();
        return Err(ParseError::of_file(format!("unsupported: version {version} of RT Dataset; expected 1")));
    }
    let unit_ns = match latency.granularity.as_str() {
        "microseconds" => 1_000,
        "nanoseconds" => 1,
        other => {
            let other = other.escape_debug();
            return Err(ParseError::of_file(format!(
                "invalid granularity `{other}`: expected microseconds or nanoseconds"
            )));
        }
    };
    let mut remarks = vec![
        "cyclictest skips missed periods and does not count them: a stall of many periods is one sample".to_owned(),
    ];
    if latency.maxima.is_empty() {
        remarks.push("no maxima in the file: values beyond the histogram are unknown".to_owned());
    }
    let threads = threads(&latency, unit_ns)?;
    let count = u32::try_from(threads.len()).unwrap_or(u32::MAX);
    let asked = condition.cyclictest.as_deref().and_then(|line| asked_there(line, count));
    let is_realtime =
        kernel.config.iter().any(|line| line == "CONFIG_PREEMPT_RT=y" || line == "CONFIG_PREEMPT_RT_FULL=y");
    Ok(Imported {
        conditions: StatedConditions {
            policy: asked.as_ref().and_then(|asked| asked.policy),
            period: condition.interval.and_then(period_us).or(asked.and_then(|asked| asked.period)),
            load: condition.load.and_then(|load| load.parse().ok()),
            ..StatedConditions::of("wake-up")
        },
        // `timestamps` is ignored: it has the times when the files were written.
        host: Host {
            hostname: system.hostname,
            cpu_model: processor.model.map(|model| match processor.vendor {
                Some(vendor) => format!("{vendor} {model}"),
                None => model,
            }),
            kernel_release: kernel.version,
            command_line: kernel.cmdline,
            preemption: is_realtime.then_some(Preemption::Realtime),
            ..Host::default()
        },
        threads,
        remarks,
        ..Imported::of(
            Source { command_line: condition.cyclictest, ..Source::of("cyclictest (RT Dataset)", name) },
            unit_ns,
        )
    })
}

fn threads(latency: &Latency, unit_ns: u64) -> Result<Vec<ImportedThread>, ParseError> {
    let Some((classes, cores)) = latency.cores.split_first().filter(|(_, cores)| !cores.is_empty()) else {
        return Err(ParseError::of_file("latency.cores has no core"));
    };
    if !latency.maxima.is_empty() && latency.maxima.len() != cores.len() {
        let (maxima, cores) = (latency.maxima.len(), cores.len());
        return Err(ParseError::of_file(format!("latency.maxima has {maxima} values for {cores} cores")));
    }
    if classes.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(ParseError::of_file("latency.cores begins with latency classes in descending order"));
    }
    let end = classes.last().map_or(0, |last| last.saturating_add(1));
    let end_ns = i64::try_from(end).map_err(|_| ParseError::of_file(format!("latency class {end} is out of range")))?;
    let end_ns = ns(end_ns, unit_ns).map_err(ParseError::of_file)?;
    let mut threads = Vec::new();
    for ((number, counts), at) in (0..).zip(cores).zip(1..) {
        let of_core = |reason: String| ParseError::of_file(format!("latency.cores[{at}]: {reason}"));
        if counts.len() != classes.len() {
            return Err(of_core(format!("{} counts for {} latency classes", counts.len(), classes.len())));
        }
        let mut column = Column::default();
        for (class, n) in classes.iter().zip(counts) {
            column.add(*class, *n, 0).map_err(|flaw| of_core(flaw.reason))?;
        }
        let histogram = column.histogram(unit_ns)?;
        let stated = latency.maxima.get(at - 1).map(|max| ns(*max, unit_ns).map_err(of_core)).transpose()?;
        if let Some((max, last)) = stated.zip(histogram.max_ns).filter(|(max, last)| max < last) {
            return Err(of_core(format!("its maximum is {max} ns, its histogram goes to {last} ns")));
        }
        let max_ns = stated.filter(|_| histogram.n > 0).or(histogram.max_ns);
        threads.push(ImportedThread {
            number,
            samples: Some(histogram.n),
            min_ns: histogram.min_ns,
            max_ns,
            // Their number is not in the file.
            beyond: max_ns.filter(|max| *max >= end_ns).map(|_| Beyond { samples: None, at_least_ns: end_ns }),
            histogram: Some(histogram),
            ..ImportedThread::default()
        });
    }
    Ok(threads)
}
