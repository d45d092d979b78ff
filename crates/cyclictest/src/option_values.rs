//! Strict parsers for option values: values that the original changes silently or runs forever on are errors.

use punctual_model::{ClockId, CpuSet, Period, Span};
use std::ops::RangeInclusive;

/// Parses a whole number within `range`.
pub(super) fn number(typed: &str, text: &str, what: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let text = text.trim();
    let (least, most) = (range.start(), range.end());
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse::<u64>().ok().filter(|number| digits && range.contains(number));
    number.ok_or_else(|| format!("{typed}: invalid {what} `{text}`: expected a number from {least} to {most}"))
}

/// Parses a duration: seconds, or a number with one of the units s, m, h, d.
pub(super) fn duration(typed: &str, text: &str) -> Result<Span, String> {
    let text = text.trim();
    let malformed =
        || format!("{typed}: invalid duration `{text}`: expected seconds, or a number with s, m, h or d, like 90s");
    let (digits, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(malformed()),
    };
    let number: u64 = digits.parse().map_err(|_| malformed())?;
    let ns = number.checked_mul(factor * Span::SECOND.ns()).filter(|ns| *ns <= Span::MAX.ns());
    ns.map(Span).ok_or_else(|| format!("{typed}: invalid duration `{text}`: expected at most 366d"))
}

/// Parses an interval in us.
pub(super) fn interval(typed: &str, text: &str) -> Result<u64, String> {
    number(typed, text, "interval in us", Period::MIN.ns() / 1000..=Period::MAX.ns() / 1000)
}

/// Parses a clock: its number in cyclictest, or its name.
pub(super) fn clock(typed: &str, text: &str) -> Result<ClockId, String> {
    match text.trim().to_ascii_lowercase().trim_start_matches("clock_") {
        "0" | "monotonic" => Ok(ClockId::Monotonic),
        "1" | "realtime" => Ok(ClockId::Realtime),
        _ => Err(format!("{typed}: invalid clock `{}`: expected 0 (monotonic) or 1 (realtime)", text.trim())),
    }
}

/// Parses CPUs like libnuma: a list, `!list` for all others, or `all`. `usable` are the CPUs that this process may use.
pub(super) fn cpus(typed: &str, text: &str, usable: &CpuSet) -> Result<CpuSet, String> {
    let text = text.trim();
    let list = |text: &str| text.parse::<CpuSet>().map_err(|err| format!("{typed}: {err}"));
    let cpus = match text.strip_prefix('!') {
        _ if text == "all" => usable.clone(),
        Some(excluded) => usable.minus(&list(excluded)?),
        None => list(text)?,
    };
    let absent = cpus.minus(usable);
    if !absent.is_empty() {
        return Err(format!("{typed}: cannot use CPU {absent}: this process may use {usable}"));
    }
    if cpus.is_empty() {
        return Err(format!("{typed}: invalid CPUs `{text}`: none of {usable} is left"));
    }
    Ok(cpus)
}

/// Parses the exit status after a latency above `-b`.
pub(super) fn break_status(typed: &str, text: &str) -> Result<u8, String> {
    match text.trim() {
        "0" => Ok(0),
        "2" => Ok(2),
        other => Err(format!("{typed}: invalid exit status `{other}`: expected 0 or 2")),
    }
}

/// Parses a version of cyclictest that selects a layout.
pub(super) fn layout(typed: &str, text: &str) -> Result<Layout, String> {
    match text.trim() {
        "2.4" => Ok(Layout::V2_4),
        "2.7" => Ok(Layout::V2_7),
        other => Err(format!("{typed}: invalid layout `{other}`: expected 2.4 (up to 2.6) or 2.7 (and later)")),
    }
}

/// Values of `--policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyName {
    Other,
    Batch,
    Idle,
    Fifo,
    RoundRobin,
}

/// Layout of cyclictest's output: the histogram changed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Layout {
    /// Up to 2.6: rows of zeros and a line `# Total:`; threads are pinned even without `-a`.
    #[default]
    V2_4,
    /// From 2.7 on (rt-tests commits edba246, b02dde1): no rows of zeros, no total; threads are pinned with `-a` only.
    V2_7,
}

impl Layout {
    /// The version as the original prints it, with `%1.2f`.
    pub(super) fn version(self) -> &'static str {
        match self {
            Layout::V2_4 => "2.40",
            Layout::V2_7 => "2.70",
        }
    }
}
