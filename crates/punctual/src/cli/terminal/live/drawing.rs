//! The lines of the live view: a row per measured thread, a histogram of all latencies with few bins, the last spikes.

use super::latency;
use punctual_analysis::wording::{count, duration, durations_apart, things};
use punctual_model::{Bin, LoadProgress, Measured, Order, Progress, Span, Spike, ThreadProgress};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Size and character set of the terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Columns.
    pub(super) width: usize,
    /// Rows.
    pub(super) height: usize,
    /// Whether non-ASCII characters are shown.
    pub(super) unicode: bool,
}

/// The cell that is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    /// Time that it is measured for.
    pub(super) duration: Span,
    /// Limit of its latencies.
    pub(super) limit: Option<Span>,
    /// Whether due times can be missed.
    pub(super) has_due_times: bool,
}

/// Width of the first column, of a latency and of a count.
const FIRST: usize = 10;
const LATENCY: usize = 9;
const COUNT: usize = 11;
/// Rows for bins. From 1 us to 100 s there are 25 bins; surplus ones are merged.
const MAX_BINS: usize = 12;
/// Number of spikes, over all threads.
const MAX_SPIKES: usize = 5;

/// One column of the rows of threads.
struct Column {
    head: &'static str,
    width: usize,
    show: fn(&ThreadProgress) -> String,
    /// Priority on a narrow terminal: the lowest number is omitted first; `None`: never omitted.
    spare: Option<u8>,
}

const COLUMNS: [Column; 6] = [
    Column { head: "wake-ups", width: COUNT, show: |thread| count(thread.n), spare: None },
    Column { head: "min", width: LATENCY, show: |thread| latency(thread.min_ns), spare: Some(1) },
    Column { head: "last", width: LATENCY, show: |thread| latency(thread.last_ns), spare: Some(2) },
    Column { head: "mean", width: LATENCY, show: |thread| latency(thread.mean_ns), spare: Some(0) },
    Column { head: "p99", width: LATENCY, show: |thread| latency(thread.p99_ns), spare: Some(3) },
    Column { head: "max", width: LATENCY, show: |thread| latency(thread.max_ns), spare: None },
];
const MISSED: Column = Column { head: "missed", width: LATENCY, show: |thread| count(thread.missed), spare: None };
/// Of a watched thread, which misses no due time of ours: it is late for its own.
const LATE: Column = Column { head: "late", ..MISSED };

/// The view of a cell: time left and limit, its threads, bins and spikes. Lines and rows stay within the room: the bins
/// or the spikes are omitted if they do not fit.
pub(super) fn lines(progress: &Progress, view: View, room: Room) -> Vec<String> {
    let mut lines = vec![status(progress, view)];
    lines.extend(threads(progress, view, Room { height: room.height.saturating_sub(1), ..room }));
    for section in [bins(&progress.threads, room), spikes(&progress.threads, room)] {
        let left = room.height.saturating_sub(lines.len() + 1);
        // A heading without rows is omitted.
        if section.len() >= 2 && left >= section.len() || section.len() == 1 && left >= 1 {
            lines.push(String::new());
            lines.extend(section);
        }
    }
    let cut = |line: String| line.chars().take(room.width).collect::<String>().trim_end().to_owned();
    lines.into_iter().take(room.height).map(cut).collect()
}

/// Whether the limit is exceeded, and by which thread most; `None` without a limit.
pub(super) fn exceeded(progress: &Progress, view: View) -> Option<Option<&ThreadProgress>> {
    let limit = i64::try_from(view.limit?.ns()).unwrap_or(i64::MAX);
    let latest = progress.threads.iter().max_by_key(|thread| thread.max_ns);
    Some(latest.filter(|thread| thread.max_ns.is_some_and(|max| max > limit)))
}

/// The time that is left, the limit, and the rate of the load in the last second.
fn status(progress: &Progress, view: View) -> String {
    let rates = progress.loads.iter().filter_map(rate);
    [time_and_limit(progress, view)].into_iter().chain(rates).collect::<Vec<_>>().join(", ")
}

/// `messaging 248 000 messages/s`; `None` where operations are not counted.
fn rate(LoadProgress { load, operation, per_second }: &LoadProgress) -> Option<String> {
    let things = things((*per_second)?, operation);
    Some(format!("{load} {things}/s"))
}

/// The time that is left, and the limit.
fn time_and_limit(progress: &Progress, view: View) -> String {
    let left = view.duration.ns().saturating_sub(progress.elapsed.ns());
    // Whole seconds: the line changes once a second.
    let left = format!("{:>FIRST$} left", format!("{} s", left.div_ceil(Span::SECOND.ns())));
    let Some((over, limit)) = exceeded(progress, view).zip(view.limit) else { return left };
    match over.and_then(|one| Some((&one.thread, one.max_ns?))) {
        Some((thread, max_ns)) => {
            let limit_ns = i64::try_from(limit.ns()).unwrap_or(i64::MAX);
            let (limit, max) = durations_apart(limit_ns, max_ns);
            format!("{left}, limit {limit} EXCEEDED: {max} {}", of_thread(thread))
        }
        None => format!("{left}, limit {} met so far", duration(limit.ns() as f64)),
    }
}

/// `on CPU 3`, or `of controller 4711`.
fn of_thread(thread: &Measured) -> String {
    match thread {
        Measured::Cpu(_) => format!("on {thread}"),
        Measured::Thread { .. } => format!("of {thread}"),
    }
}

/// A row for each thread, or for those with the latest wake-ups if not all fit.
fn threads(progress: &Progress, view: View, room: Room) -> Vec<String> {
    let names = progress.threads.iter().map(|one| one.thread.to_string().chars().count());
    let first = names.fold(FIRST, usize::max);
    let is_watched = progress.threads.iter().any(|one| matches!(one.thread, Measured::Thread { .. }));
    let last = if is_watched { &LATE } else { &MISSED };
    let mut columns: Vec<&Column> = COLUMNS.iter().chain(Some(last).filter(|_| view.has_due_times)).collect();
    while first + columns.iter().map(|column| column.width).sum::<usize>() > room.width {
        let spare = columns.iter().filter_map(|column| column.spare).min();
        let Some(index) = spare.and_then(|spare| columns.iter().position(|column| column.spare == Some(spare))) else {
            break;
        };
        columns.remove(index);
    }
    let row = |head: String, show: &dyn Fn(&Column) -> String| {
        let others = columns.iter().map(|column| format!("{:>width$}", show(column), width = column.width));
        format!("{head:>first$}{}", others.collect::<String>())
    };
    let seconds = progress.elapsed.min(view.duration).as_secs_f64().floor();
    let mut lines =
        vec![row(format!("{seconds:.0}/{:.0} s", view.duration.as_secs_f64()), &|column| column.head.to_owned())];
    let n_rows = room.height.saturating_sub(1).max(1);
    let mut shown: Vec<_> = progress.threads.iter().collect();
    let mut others = Vec::new();
    if shown.len() > n_rows {
        shown.order_by_key(|thread| Reverse(thread.max_ns));
        others = shown.split_off(n_rows.saturating_sub(1));
        shown.order_by_key(|one| &one.thread);
    }
    lines.extend(shown.iter().map(|one| row(one.thread.to_string(), &|column| (column.show)(one))));
    if let Some(latest) = others.iter().max_by_key(|one| one.max_ns) {
        let things = match latest.thread {
            Measured::Cpu(_) => "CPUs",
            Measured::Thread { .. } => "threads",
        };
        lines.push(format!("{:>first$} other {things}, max {}", others.len(), latency(latest.max_ns)));
    }
    lines
}

/// Latencies of all threads: a row for each bin from the first to the last nonempty one, with a bar on a logarithmic
/// scale.
fn bins(threads: &[ThreadProgress], room: Room) -> Vec<String> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for bin in threads.iter().flat_map(|thread| &thread.bins) {
        *counts.entry(bin.lower_ns).or_default() += bin.count;
    }
    let (Some(first), Some(last)) = (counts.keys().next().copied(), counts.keys().next_back().copied()) else {
        return Vec::new();
    };
    let all: Vec<u64> = std::iter::successors(Some(first), |lower| Some(Bin::after(*lower)))
        .take_while(|lower| *lower <= last)
        .collect();
    // Surplus bins at the low end share a row, which keeps the tail.
    let shown = &all[all.len().saturating_sub(MAX_BINS)..];
    let below: u64 =
        counts.iter().filter(|(lower, _)| shown.first().is_some_and(|first| *lower < first)).map(|(_, n)| n).sum();
    let most = counts.values().copied().max().unwrap_or(0).max(below);
    let longest = room.width.saturating_sub(FIRST + COUNT + 2);
    let row = |from: &str, n: u64| {
        format!(
            "{from:>FIRST$}{:>COUNT$}  {}",
            if n > 0 { count(n) } else { String::new() },
            bar(n, most, longest, room.unicode)
        )
    };
    let head = format!("{:>FIRST$}{:>COUNT$}", "from", "wake-ups");
    let mut lines = vec![with_room_for(head, "  both on a log scale", room)];
    if below > 0 {
        lines.push(row("0 us", below));
    }
    for lower in shown {
        let from = if *lower == 0 { "0 us".to_owned() } else { duration(*lower as f64) };
        lines.push(row(&from, counts.get(lower).copied().unwrap_or(0)));
    }
    lines
}

/// A bar of logarithmic length relative to `most`; at least 1 for a nonzero `n`.
fn bar(n: u64, most: u64, longest: usize, unicode: bool) -> String {
    let size = |n: u64| ((n as f64).ln_1p() / (most as f64).ln_1p()).clamp(0.0, 1.0);
    // Counting up to the width needs no cast.
    let length =
        (1..=longest).take_while(|i| n > 0 && (*i == 1 || *i as f64 - 0.5 <= size(n) * longest as f64)).count();
    if unicode { "\u{2588}" } else { "#" }.repeat(length)
}

/// The last spikes of all CPUs, in order of time. Those of watched threads are not looked for.
fn spikes(threads: &[ThreadProgress], room: Room) -> Vec<String> {
    let factor = Spike::FACTOR;
    let mut all: Vec<_> =
        threads.iter().flat_map(|one| one.spikes.iter().map(move |spike| (spike.at, &one.thread, spike))).collect();
    if all.is_empty() {
        let is_looked_for = |one: &ThreadProgress| matches!(one.thread, Measured::Cpu(_)) && one.p99_ns.is_some();
        let none = format!("{:>FIRST$}  no spike so far", "");
        let none = with_room_for(none, &format!(", later than {factor} x p99 of its CPU"), room);
        return threads.iter().any(is_looked_for).then_some(none).into_iter().collect();
    }
    all.order_by_key(|(at, thread, _)| (*at, *thread));
    let shown = &all[all.len().saturating_sub(MAX_SPIKES)..];
    let line = |(at, thread, spike): &(Span, &Measured, &Spike)| {
        let (at, place) = (format!("{:.3} s", at.as_secs_f64()), thread.to_string());
        let (late, above) = (duration(spike.latency_ns as f64), duration(spike.above_ns as f64));
        let line = format!("{at:>FIRST$}  {place:<8}{late:>LATENCY$}");
        with_room_for(line, &format!("   above {above}"), room)
    };
    let head = format!("{:>FIRST$}  last spikes", "when");
    let head = with_room_for(head, &format!(", later than {factor} x p99 of their CPU"), room);
    std::iter::once(head).chain(shown.iter().map(line)).collect()
}

/// The line with its explanation, if both fit.
fn with_room_for(line: String, more: &str, room: Room) -> String {
    if line.chars().count() + more.chars().count() <= room.width { line + more } else { line }
}

#[cfg(test)]
mod tests;
