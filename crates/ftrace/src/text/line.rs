//! Lines of ftrace's text: `  name-17   [001] d..3.  4423.450467: sched_switch: prev_comm=...`.
//!
//! Those of `perf script`: `  name    17 [001]  4423.450467: sched:sched_switch: prev_comm=...`.

use punctual_analysis::explain::flags;

/// Column of the `-` between name and ID: names are right-aligned.
const DASH: usize = 16;

/// Longest line of an event, bytes: the kernel prints at most 8 KiB (`TRACE_SEQ_BUFFER_SIZE`). A longer one may have
/// places where columns seem to begin in any number.
const MOST_BYTES: usize = 16 << 10;

/// The columns of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) pid: i32,
    pub(super) cpu: u32,
    /// [`flags`]; `None` where they are not shown.
    pub(super) flags: Option<u8>,
    pub(super) at_ns: u64,
    /// 1000 for times in us, 1 for those in ns.
    pub(super) resolution_ns: u64,
    pub(super) event: &'a str,
    /// The text of the event.
    pub(super) fields: &'a str,
}

impl<'a> Line<'a> {
    /// Parses a line; `None` if it is not that of an event.
    pub(super) fn parse(text: &'a str) -> Option<Line<'a>> {
        if text.len() > MOST_BYTES {
            return None;
        }
        // A name may look like what follows it.
        let after = |at: usize, mark| text.get(at..)?.strip_prefix(mark).and_then(Line::after_name);
        let find = |mark| text.match_indices(mark).find_map(|(at, _)| after(at, mark));
        // perf right-aligns its numbers.
        after(DASH, '-').or_else(|| find('-')).or_else(|| find(' '))
    }

    fn after_name(text: &'a str) -> Option<Line<'a>> {
        let (pid, mut rest) = digits(text)?;
        rest = rest.trim_start();
        // The process, with the option `record-tgid`.
        if let Some(process) = rest.strip_prefix('(') {
            rest = process.split_once(')')?.1.trim_start();
        }
        let (cpu, rest) = digits(rest.strip_prefix('[')?)?;
        let (time, rest) = rest.strip_prefix(']')?.trim_start().split_once(": ")?;
        let (flags, time) = time.rsplit_once(' ').map_or(("", time), |(flags, time)| (flags.trim_end(), time));
        let (seconds, fraction) = time.split_once('.')?;
        let (unit_ns, resolution_ns) = match fraction.len() {
            6 => (1000, 1000),
            9 => (1, 1),
            _ => return None,
        };
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (seconds, fraction) = (seconds.parse::<u64>().ok()?, Some(fraction).filter(|text| is_number(text))?);
        let at_ns = seconds.checked_mul(1_000_000_000)?.checked_add(fraction.parse::<u64>().ok()? * unit_ns)?;
        let (mut event, mut fields) = rest.trim_start().split_once(':')?;
        // perf: the event's system.
        if fields.starts_with(|first: char| first.is_ascii_alphabetic()) {
            (event, fields) = fields.split_once(':')?;
        }
        let is_name = !event.is_empty() && event.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        Some(Line {
            pid: pid.parse().ok()?,
            cpu: cpu.parse().ok()?,
            flags: if flags.is_empty() { None } else { Some(shown_flags(flags)?) },
            at_ns,
            resolution_ns,
            event: Some(event).filter(|_| is_name)?,
            fields: fields.trim(),
        })
    }
}

fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).filter(|_| end > 0)
}

/// The flags of a column like `dNh3.` (`trace_print_lat_fmt`).
fn shown_flags(text: &str) -> Option<u8> {
    let has = |at: usize, letters: &[u8]| text.as_bytes().get(at).is_some_and(|letter| letters.contains(letter));
    let of = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let is_column = text.len() < 8 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".#".contains(&byte));
    let interrupt = of(has(2, b"hHZz"), flags::HARDIRQ) | of(has(2, b"sH"), flags::SOFTIRQ);
    is_column.then(|| of(has(0, b"dD"), flags::IRQS_OFF) | of(has(1, b"NnBb"), flags::NEED_RESCHED) | interrupt)
}

/// The CPU whose earlier events are missing, from a line like `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [12 EVENTS DROPPED]` or
/// `##### CPU 1 buffer started ####`.
pub(super) fn gap(text: &str) -> Option<u32> {
    let lost = |text: &str| {
        let (cpu, rest) = digits(text)?;
        rest.starts_with(" [")
            .then_some(cpu)
            .filter(|_| rest.contains("LOST") || rest.contains("DROPPED"))?
            .parse()
            .ok()
    };
    let started = || text.strip_prefix("##### CPU ")?.strip_suffix(" buffer started ####")?.parse().ok();
    text.strip_prefix("CPU:").and_then(lost).or_else(started)
}
