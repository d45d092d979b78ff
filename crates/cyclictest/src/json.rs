//! JSON output, version 1 of the format of rt-tests: its keys, including those that end in a colon, and our own.

use super::option_values::Layout;
use super::tally::Tally;
use super::text::ThreadReport;
use punctual_model::{Host, Preemption, TOOL};
use serde::{Serialize, Serializer};
use std::time::{Duration, SystemTime};

/// What the JSON of every program of rt-tests tells of a run.
#[derive(Debug)]
pub(super) struct Header<'a> {
    pub(super) command_line: &'a str,
    pub(super) layout: Layout,
    pub(super) started: SystemTime,
    pub(super) ended: SystemTime,
    pub(super) exit_status: u8,
    pub(super) host: &'a Host,
}

/// Properties of a run of cyclictest, besides its threads.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) nanoseconds: bool,
    pub(super) method: &'a str,
    /// Thread id and value of the break, if there was one.
    pub(super) broke: Option<(u32, i64)>,
}

#[derive(Debug, Serialize)]
struct Document<'a, Results> {
    file_version: u8,
    #[serde(rename = "cmdline:")]
    cmdline_with_colon: &'a str,
    cmdline: &'a str,
    #[serde(rename = "rt_test_version:")]
    rt_test_version_with_colon: &'a str,
    rt_test_version: &'a str,
    tool: &'a str,
    start_time: String,
    end_time: String,
    return_code: u8,
    sysinfo: SystemInformation<'a>,
    #[serde(flatten)]
    results: Results,
}

#[derive(Debug, Serialize)]
struct Results<'a> {
    num_threads: usize,
    resolution_in_ns: u8,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    break_thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    break_value: Option<i64>,
    #[serde(serialize_with = "by_index")]
    thread: &'a [ThreadReport],
}

#[derive(Debug, Serialize)]
struct SystemInformation<'a> {
    sysname: &'a str,
    nodename: Option<&'a str>,
    release: Option<&'a str>,
    version: Option<&'a str>,
    machine: Option<&'a str>,
    realtime: Option<u8>,
}

#[derive(Debug, Serialize)]
struct Thread<'a> {
    #[serde(serialize_with = "rows")]
    histogram: &'a Tally,
    cycles: u64,
    min: Option<i64>,
    max: Option<i64>,
    avg: Option<f64>,
    /// CPU of the thread; -1: not pinned.
    cpu: i64,
    node: Option<u32>,
    histogram_overflows: u64,
    histogram_overflow_cycles: &'a [u64],
    policy: String,
    interval_us: u64,
    missed: Option<u64>,
    lost: u64,
    early: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    smis: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    still_waiting: Option<i64>,
}

fn by_index<S: Serializer>(threads: &[ThreadReport], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(threads.iter().enumerate().map(|(index, thread)| (index.to_string(), of_thread(thread))))
}

/// Serializes the non-empty rows in order.
fn rows<S: Serializer>(tally: &Tally, serializer: S) -> Result<S::Ok, S::Error> {
    let rows = tally.counts.iter().enumerate().filter(|(_, count)| **count > 0);
    serializer.collect_map(rows.map(|(row, count)| (row.to_string(), count)))
}

fn of_thread(thread: &ThreadReport) -> Thread<'_> {
    let ThreadReport { policy, cpu, node, tally, interval_us, missed, lost, smis, overdue, .. } = thread;
    Thread {
        histogram: tally,
        cycles: tally.cycles,
        min: tally.min,
        max: tally.max,
        // Two decimals, as in the original.
        avg: tally.mean().map(|mean| (mean * 100.0).round() / 100.0),
        cpu: cpu.map_or(-1, i64::from),
        node: *node,
        histogram_overflows: tally.overflows,
        histogram_overflow_cycles: &tally.overflow_cycles,
        policy: policy.to_string(),
        interval_us: *interval_us,
        missed: *missed,
        lost: *lost,
        early: tally.early,
        smis: *smis,
        still_waiting: *overdue,
    }
}

/// Serializes the document, with a line feed at its end. Errors: none in practice: all keys are strings.
pub(super) fn document(header: &Header<'_>, results: impl Serialize) -> serde_json::Result<String> {
    let (host, version) = (header.host, header.layout.version());
    let document = Document {
        file_version: 1,
        cmdline_with_colon: header.command_line,
        cmdline: header.command_line,
        rt_test_version_with_colon: version,
        rt_test_version: version,
        tool: TOOL,
        start_time: date(header.started),
        end_time: date(header.ended),
        return_code: header.exit_status,
        sysinfo: SystemInformation {
            sysname: "Linux",
            nodename: host.hostname.as_deref(),
            release: host.kernel_release.as_deref(),
            version: host.kernel_version.as_deref(),
            machine: host.architecture.as_deref(),
            realtime: host.preemption.map(|preemption| u8::from(preemption == Preemption::Realtime)),
        },
        results,
    };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

/// The document of cyclictest. Errors: as [`document`].
pub(super) fn json(header: &Header<'_>, run: &Run<'_>, threads: &[ThreadReport]) -> serde_json::Result<String> {
    let results = Results {
        num_threads: threads.len(),
        resolution_in_ns: u8::from(run.nanoseconds),
        method: run.method,
        break_thread: run.broke.map(|(tid, _)| tid),
        break_value: run.broke.map(|(_, value)| value),
        thread: threads,
    };
    document(header, results)
}

/// Formats a date as in e-mail (RFC 5322), UTC: `Sat, 21 Nov 2026 00:22:35 +0000`.
fn date(time: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    // 1970-01-01 was a Thursday.
    let day_name = usize::try_from(since.as_secs() / 86_400 % 7).ok().and_then(|day| DAYS.get(day)).unwrap_or(&"");
    // 2026-11-21T00:22:35Z
    let text = humantime::format_rfc3339_seconds(time).to_string();
    let (year, month, day, clock) = (&text[..4], &text[5..7], &text[8..10], &text[11..19]);
    let month = month.parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?)).unwrap_or(&"");
    format!("{day_name}, {day} {month} {year} {clock} +0000")
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::shown;
    use super::*;
    use expect_test::expect_file;

    fn document(command_line: &str, threads: &[ThreadReport]) -> String {
        let host = Host {
            hostname: Some("board7".to_owned()),
            kernel_release: Some("6.1.0".to_owned()),
            kernel_version: Some("#1 SMP PREEMPT_RT".to_owned()),
            architecture: Some("aarch64".to_owned()),
            preemption: Some(Preemption::Realtime),
            ..Host::default()
        };
        let started = SystemTime::UNIX_EPOCH + Duration::new(1_795_220_555, 0);
        let header = Header {
            command_line,
            layout: Layout::V2_4,
            started,
            ended: started + Duration::new(86_400, 0),
            exit_status: 2,
            host: &host,
        };
        let run = Run { nanoseconds: false, method: "clock_nanosleep", broke: Some((7326, 9)) };
        json(&header, &run, threads).unwrap().replace(TOOL, "TOOL")
    }

    #[test]
    fn it_has_the_keys_of_rt_tests_and_ours() {
        let mut silent = shown(1, &[], 4);
        (silent.cpu, silent.node, silent.missed) = (None, None, None);
        expect_file!["../tests/golden/run.json"]
            .assert_eq(&document("cyclictest -q", &[shown(0, &[1, 1, 3, 9], 4), silent]));
    }

    #[test]
    fn it_is_json_whatever_was_typed() {
        let typed = "cyclictest --json=a\"b\\c\n\u{1}\u{e9}";
        let parsed: serde_json::Value = serde_json::from_str(&document(typed, &[])).unwrap();
        assert_eq!(parsed["cmdline:"], typed);
    }
}
