//! Parser for `summary.xml` of rteval: the distribution of each core, measured by cyclictest or timerlat.

use super::ParseError;
use super::column::Column;
use super::fields::{ns, option, period_us, seconds_span};
use punctual_cyclictest::asked_there;
use punctual_model::{Beyond, Host, Imported, ImportedThread, Preemption, Source, Span, StatedConditions};
use roxmltree::Node;

/// Unit of rteval's values: microseconds (`unit="us"`).
const UNIT_NS: u64 = 1_000;
/// From this version on, cyclictest's own maximum is read, and no core reported if it is beyond the histogram. 2.x read
/// the rows only, as do unknown versions for all that is known (rteval/modules/measurement/cyclictest.py).
const READS_MAXIMUM: (u32, u32) = (3, 7);

/// Parses a whole report: one measurement for each tool that rteval ran.
pub(super) fn read(text: &str, name: &str) -> Result<Vec<Imported>, ParseError> {
    let document = super::xml::document(text)?;
    let root = document.root_element();
    if root.tag_name().name() != "rteval" {
        return Err(ParseError::at(
            line(root),
            format!("invalid root element <{}>: expected a report of rteval", root.tag_name().name()),
        ));
    }
    let named = |name: &'static str| root.descendants().filter(move |node| node.has_tag_name(name));
    let tools = named("cyclictest").chain(named("timerlat")).filter(|node| node.has_attribute("command_line"));
    let report = Report { name, version: root.attribute("version"), host: host(root), measured: measured(root) };
    let all: Vec<_> = tools.map(|node| of_tool(node, &report)).collect::<Result<_, _>>()?;
    if all.is_empty() { Err(ParseError::of_file("no measurement of cyclictest or timerlat")) } else { Ok(all) }
}

/// Common properties of all measurements of a report.
#[derive(Debug)]
struct Report<'a> {
    name: &'a str,
    version: Option<&'a str>,
    host: Host,
    measured: Option<Span>,
}

/// Line of an element for an error message; the search reads the file from its start.
fn line(node: Node<'_, '_>) -> usize {
    usize::try_from(node.document().text_pos_at(node.range().start).row).unwrap_or(0)
}

fn text_of<'a>(root: Node<'a, '_>, name: &str) -> Option<&'a str> {
    root.descendants().find(|node| node.has_tag_name(name))?.text().map(str::trim).filter(|text| !text.is_empty())
}

/// Whether rteval takes the rows of cyclictest's histogram for all of its samples.
fn reads_rows_only(version: Option<&str>) -> bool {
    let mut parts = version.unwrap_or_default().split('.').map(|part| part.parse::<u32>().ok());
    let version = parts.next().flatten().zip(parts.next().flatten());
    version.is_none_or(|version| version < READS_MAXIMUM)
}

/// Remarks on what rteval leaves out of its report; `drops` says whether it drops samples beyond the histogram.
fn remarks_on(threads: &[ImportedThread], is_timerlat: bool, drops: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if is_timerlat {
        remarks.push("rteval adds interrupt, thread and user latencies of timerlat into one distribution".to_owned());
    }
    if drops {
        let tool = if is_timerlat { "timerlat" } else { "cyclictest" };
        remarks.push(format!(
            "rteval drops samples beyond {tool}'s histogram without their number: its maximum may be too small"
        ));
    }
    if threads.iter().any(|thread| thread.samples != thread.histogram.as_ref().map(|histogram| histogram.n)) {
        remarks
            .push("rteval gives no statistics, or not of all samples, if a latency is beyond the histogram".to_owned());
    }
    let skips = "cyclictest and timerlat skip missed periods and do not count them";
    remarks.push(skips.to_owned());
    remarks
}

fn of_tool(node: Node<'_, '_>, report: &Report<'_>) -> Result<Imported, ParseError> {
    let command_line = node.attribute("command_line").unwrap_or_default();
    let is_timerlat = node.has_tag_name("timerlat");
    let cores: Vec<_> = node.children().filter(|child| child.has_tag_name("core")).collect();
    // rtla omits samples beyond the histogram, and old versions skip cyclictest's lines about them, so rteval does not
    // know their number.
    let drops = is_timerlat || reads_rows_only(report.version);
    let [short, long] = if is_timerlat { ["-E", "--entries"] } else { ["-h", "--histogram"] };
    let entries = option(command_line, short, long).and_then(|n| n.parse::<i64>().ok()).filter(|_| drops);
    let entries = entries.or((drops && !is_timerlat).then_some(0));
    let threads: Vec<_> = cores.iter().map(|core| of_core(*core, entries)).collect::<Result<_, _>>()?;
    if threads.is_empty() {
        return Err(ParseError::at(line(node), format!("<{}> has no <core>", node.tag_name().name())));
    }
    let remarks = remarks_on(&threads, is_timerlat, drops);
    let count = u32::try_from(threads.len()).unwrap_or(u32::MAX);
    let asked = asked_there(command_line, count);
    let priorities: Vec<Option<u32>> = cores.iter().map(|core| core.attribute("priority")?.parse().ok()).collect();
    let period = if is_timerlat {
        // The tool's default is 1 ms; an option that was not given is not assumed, because defaults can change.
        option(command_line, "-p", "--period").and_then(|us| us.parse().ok()).and_then(period_us)
    } else {
        asked.as_ref().and_then(|asked| asked.period)
    };
    let (tool, what) = if is_timerlat { ("rtla timerlat", "irq, thread and user") } else { ("cyclictest", "wake-up") };
    Ok(Imported {
        conditions: StatedConditions {
            policy: asked.and_then(|asked| asked.policy),
            priority: priorities
                .first()
                .copied()
                .flatten()
                .filter(|first| priorities.iter().all(|p| *p == Some(*first))),
            period,
            ..StatedConditions::of(what)
        },
        // `date` and `time` are local times in an unknown time zone.
        measured: report.measured,
        host: report.host.clone(),
        threads,
        remarks,
        ..Imported::of(
            Source {
                version: report.version.map(str::to_owned),
                command_line: Some(command_line.to_owned()),
                ..Source::of(&format!("{tool} (rteval)"), report.name)
            },
            UNIT_NS,
        )
    })
}

fn measured(root: Node<'_, '_>) -> Option<Span> {
    let info = root.descendants().find(|node| node.has_tag_name("run_info"))?;
    let part = |name: &str| info.attribute(name)?.parse::<u64>().ok();
    let seconds = [("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)]
        .iter()
        .try_fold(0_u64, |all, (name, factor)| all.checked_add(part(name)?.checked_mul(*factor)?));
    seconds.and_then(seconds_span)
}

fn host(root: Node<'_, '_>) -> Host {
    let kernel = root.descendants().find(|node| node.has_tag_name("kernel"));
    let own = |name: &str| text_of(root, name).map(str::to_owned);
    let is_realtime = kernel.and_then(|kernel| kernel.attribute("is_RT")) == Some("1");
    Host {
        hostname: own("node"),
        kernel_release: kernel.and_then(|kernel| kernel.text()).map(|text| text.trim().to_owned()),
        architecture: own("arch"),
        preemption: is_realtime.then_some(Preemption::Realtime),
        ..Host::default()
    }
}

fn of_core(core: Node<'_, '_>, entries: Option<i64>) -> Result<ImportedThread, ParseError> {
    let id = core.attribute("id").and_then(|id| id.parse().ok());
    let cpu = id.ok_or_else(|| ParseError::at(line(core), "a <core> without the number of its CPU"))?;
    let mut column = Column::default();
    for bucket in core.descendants().filter(|node| node.has_tag_name("bucket")) {
        let of = |name: &str| bucket.attribute(name).and_then(|value| value.parse::<u64>().ok());
        let numbers = of("index").zip(of("value"));
        let (value, n) = numbers.ok_or_else(|| ParseError::at(line(bucket), "a <bucket> without index and value"))?;
        column.add(value, n, 0).map_err(|flaw| ParseError::at(line(bucket), flaw.reason))?;
    }
    let statistic = |name: &str| text_of(core, name);
    let samples = statistic("samples").and_then(|text| text.parse::<u64>().ok()).filter(|n| *n >= column.n);
    let scaled = |name: &str| {
        let value = statistic(name).and_then(|text| text.parse::<i64>().ok());
        value.map(|value| ns(value, UNIT_NS).map_err(|reason| ParseError::at(line(core), reason))).transpose()
    };
    let missing = samples.map(|samples| samples - column.n).filter(|n| *n > 0);
    let beyond = match (missing, entries) {
        (Some(n), _) => Some((Some(n), i64::try_from(column.end()).unwrap_or(0))),
        (None, Some(entries)) => Some((None, entries)),
        (None, None) => None,
    };
    let mean = statistic("mean").and_then(|text| text.parse::<f64>().ok());
    Ok(ImportedThread {
        number: cpu,
        cpu: Some(cpu),
        samples: samples.or(Some(column.n)),
        beyond: beyond.map(|(samples, from)| Beyond { samples, at_least_ns: ns(from, UNIT_NS).unwrap_or(0) }),
        min_ns: scaled("minimum")?.filter(|_| column.n > 0),
        max_ns: scaled("maximum")?.filter(|_| column.n > 0),
        mean_ns: mean.filter(|mean| mean.is_finite() && mean.abs() <= 3e13).map(|mean| mean * 1e3),
        histogram: Some(column.histogram(UNIT_NS)?),
        missed: None,
        slices: Vec::new(),
    })
}
