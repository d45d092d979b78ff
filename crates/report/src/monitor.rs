//! The history of a monitor: one line for a window that has just ended; and a summary of weeks.

use super::lines::Lines;
use super::table::{Column, Field, Table, UNKNOWN};
use super::{Style, rfc3339};
use punctual_analysis::explain::blame;
use punctual_analysis::quantile;
use punctual_analysis::wording::{count, duration, things};
use punctual_model::{GapReason, Histogram, MonitorGap, MonitorStart, MonitorWindow, MonitoredCpu, Order, Span};
use serde::Serialize;
use std::io;

/// Windows in the list of the worst ones.
const WORST: usize = 10;

/// What `punctual monitor show` shows.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct MonitorDocument {
    /// Every start of the monitor, in order.
    pub starts: Vec<MonitorStart>,
    /// Every window, in order.
    pub windows: Vec<MonitorWindow>,
    /// One line about lines that cannot be read; `null` if all can.
    pub damage: Option<String>,
}

/// All windows of one CPU together.
#[derive(Default)]
struct CpuTotal {
    cpu: u32,
    histogram: Histogram,
    missed: u64,
    lost: u64,
    max: Option<i64>,
    when: Option<u64>,
    is_open: bool,
}

/// The wall time of a time stamp, to the second.
fn time(unix_ms: u64) -> String {
    rfc3339(unix_ms).replace('T', " ").replace('Z', "")
}

/// A latency; the mark says that it is a bound from below.
fn latency(ns: Option<i64>, is_open: bool) -> String {
    let mark = if is_open { ">" } else { "" };
    ns.map_or_else(|| UNKNOWN.to_owned(), |ns| format!("{mark}{}", duration(ns as f64)))
}

/// Whether an open wait is later than every wake-up.
fn is_open(cpu: &MonitoredCpu) -> bool {
    cpu.open.is_some() && cpu.max_ns() != cpu.histogram.max_ns
}

/// The CPU with the largest latency.
fn worst(window: &MonitorWindow) -> Option<&MonitoredCpu> {
    window.cpus.iter().max_by_key(|cpu| cpu.max_ns())
}

/// The cause of the largest latency, if it was explained.
fn cause(window: &MonitorWindow) -> Option<String> {
    let spike = window.spikes.first()?;
    let max = worst(window)?.max_ns()?;
    let is_worst = i64::try_from(spike.explanation.latency.ns()).ok() == Some(max);
    let which = if is_worst { String::new() } else { format!("{}: ", duration(spike.explanation.latency.ns() as f64)) };
    Some(format!("{which}{}", blame(&spike.explanation)))
}

/// One line about a window.
pub fn monitor_line(window: &MonitorWindow) -> String {
    let mut line = time(window.ended_unix_ms);
    match worst(window) {
        Some(cpu) if cpu.max_ns().is_some() => {
            line += &format!("  max {} on CPU {}", latency(cpu.max_ns(), is_open(cpu)), cpu.cpu);
            if let Some(at) = cpu.worst_unix_ms.filter(|_| !is_open(cpu)) {
                line += &format!(" at {}", time(at).get(11..).unwrap_or_default());
            }
            if let Some(p99) = quantile(&cpu.histogram, 0.99) {
                line += &format!(", p99 {}", duration(p99 as f64));
            }
        }
        _ => line += "  no wake-up",
    }
    let sum = |of: fn(&MonitoredCpu) -> u64| window.cpus.iter().map(of).sum::<u64>();
    line += &format!(", {}", things(sum(|cpu| cpu.histogram.n), "wake-up"));
    for (n, what) in [(sum(|cpu| cpu.missed), "missed"), (sum(|cpu| cpu.lost), "lost")] {
        if n > 0 {
            line += &format!(", {} {what}", count(n));
        }
    }
    for gap in &window.gaps {
        line += &format!("; {}", gap_words(*gap));
    }
    cause(window).iter().for_each(|cause| line += &format!("; {cause}"));
    line
}

fn gap_words(gap: MonitorGap) -> String {
    let length = duration(gap.ended_unix_ms.saturating_sub(gap.started_unix_ms) as f64 * 1e6);
    match gap.reason {
        GapReason::Measurement => format!("paused {length} for another measurement"),
        GapReason::Clock => format!("suspended or clock set, {length}"),
        GapReason::NotRunning => format!("not running for {length} before"),
    }
}

/// Writes the summary: totals of each CPU, days, the worst windows, gaps.
pub fn monitor_summary(document: &MonitorDocument, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    if let Some(start) = document.starts.last() {
        let host = start.hostname.as_deref().unwrap_or("unknown host");
        let kernel = start.kernel_release.as_deref().unwrap_or("unknown");
        let facts = [
            start.tool.clone(),
            host.to_owned(),
            format!("Linux {kernel}"),
            format!("{} every {}, CPU {}", start.policy, start.period, start.cpus),
            format!("windows of {}", start.window),
        ];
        lines.facts(out, &facts)?;
        if let Some(reason) = &start.unexplained {
            lines.paragraph(out, "", &format!("Late wake-ups are not explained: {reason}"))?;
        }
    }
    if let Some(damage) = &document.damage {
        lines.paragraph(out, "", &format!("damaged: {damage}"))?;
    }
    let (Some(first), Some(last)) = (document.windows.first(), document.windows.last()) else {
        return lines.paragraph(out, "", "no window has ended yet");
    };
    let measured = Span(document.windows.iter().map(|window| window.measured.ns()).sum());
    let (from, to) = (time(first.started_unix_ms), time(last.ended_unix_ms));
    let windows = things(u64::try_from(document.windows.len()).unwrap_or(u64::MAX), "window");
    let total = duration(measured.ns() as f64);
    lines.paragraph(out, "", &format!("{from} to {to} UTC: {windows}, {total} measured"))?;
    for (reason, what) in [
        (GapReason::Measurement, "paused for other measurements"),
        (GapReason::Clock, "suspended or clock set"),
        (GapReason::NotRunning, "not running"),
    ] {
        let gaps: Vec<_> =
            document.windows.iter().flat_map(|window| &window.gaps).filter(|gap| gap.reason == reason).collect();
        if !gaps.is_empty() {
            let ms: u64 = gaps.iter().map(|gap| gap.ended_unix_ms.saturating_sub(gap.started_unix_ms)).sum();
            let times = things(u64::try_from(gaps.len()).unwrap_or(u64::MAX), "time");
            lines.paragraph(out, "", &format!("{what}: {} in all, {times}", duration(ms as f64 * 1e6)))?;
        }
    }
    writeln!(out)?;
    cpu_table(&totals(&document.windows)).write(out, &lines)?;
    writeln!(out)?;
    day_table(&document.windows).write(out, &lines)?;
    writeln!(out)?;
    lines.paragraph(out, "", "Worst windows")?;
    for window in worst_windows(&document.windows) {
        lines.hanging(out, "  ", &monitor_line(window))?;
    }
    Ok(())
}

fn totals(windows: &[MonitorWindow]) -> Vec<CpuTotal> {
    let mut totals: Vec<CpuTotal> = Vec::new();
    for cpu in windows.iter().flat_map(|window| &window.cpus) {
        let at = totals.iter().position(|total| total.cpu == cpu.cpu).unwrap_or_else(|| {
            totals.push(CpuTotal { cpu: cpu.cpu, ..CpuTotal::default() });
            totals.len() - 1
        });
        let Some(total) = totals.get_mut(at) else { continue };
        total.histogram.merge(&cpu.histogram);
        total.missed += cpu.missed;
        total.lost += cpu.lost;
        if cpu.max_ns() > total.max {
            (total.max, total.when, total.is_open) = (cpu.max_ns(), cpu.worst_unix_ms, is_open(cpu));
        }
    }
    totals.order_by_key(|total| total.cpu);
    totals
}

fn cpu_table(totals: &[CpuTotal]) -> Table {
    let fields: [Field<CpuTotal>; 8] = [
        (Column::figure("CPU"), |total| total.cpu.to_string()),
        (Column::figure("wake-ups"), |total| count(total.histogram.n)),
        (Column::figure("missed"), |total| count(total.missed)),
        (Column::figure("p50"), |total| latency(quantile(&total.histogram, 0.5), false)),
        (Column::figure("p99"), |total| latency(quantile(&total.histogram, 0.99), false)),
        (Column::figure("p99.9"), |total| latency(quantile(&total.histogram, 0.999), false)),
        (Column::figure("max"), |total| latency(total.max, total.is_open)),
        (Column::text("when (UTC)"), |total| total.when.map_or_else(|| UNKNOWN.to_owned(), time)),
    ];
    Table::of(&fields, totals)
}

/// One day of all CPUs.
struct Day {
    date: String,
    measured: Span,
    /// Each with whether it is a wait that was still open: a lower bound.
    max: Option<(i64, bool)>,
    median_max: Option<(i64, bool)>,
    missed: u64,
}

fn day_table(windows: &[MonitorWindow]) -> Table {
    let date = |window: &MonitorWindow| time(window.started_unix_ms).get(..10).unwrap_or_default().to_owned();
    let days = windows.chunk_by(|a, b| date(a) == date(b)).map(|windows| {
        let of = |cpu: &MonitoredCpu| Some((cpu.max_ns()?, is_open(cpu)));
        let mut maxima: Vec<_> = windows.iter().filter_map(|window| of(worst(window)?)).collect();
        maxima.sort_unstable();
        Day {
            date: windows.first().map(date).unwrap_or_default(),
            measured: Span(windows.iter().map(|window| window.measured.ns()).sum()),
            max: maxima.last().copied(),
            median_max: maxima.get(maxima.len().saturating_sub(1) / 2).copied(),
            missed: windows.iter().flat_map(|window| &window.cpus).map(|cpu| cpu.missed).sum(),
        }
    });
    fn bound(max: Option<(i64, bool)>) -> String {
        latency(max.map(|(ns, _)| ns), max.is_some_and(|(_, is_open)| is_open))
    }
    let fields: [Field<Day>; 5] = [
        (Column::text("day (UTC)"), |day| day.date.clone()),
        (Column::figure("measured"), |day| duration(day.measured.ns() as f64)),
        (Column::figure("median of maxima"), |day| bound(day.median_max)),
        (Column::figure("max"), |day| bound(day.max)),
        (Column::figure("missed"), |day| count(day.missed)),
    ];
    Table::of(&fields, &days.collect::<Vec<_>>())
}

/// The windows with the largest latencies, largest first.
fn worst_windows(windows: &[MonitorWindow]) -> Vec<&MonitorWindow> {
    let mut ranked: Vec<_> = windows.iter().filter(|window| worst(window).is_some()).collect();
    ranked.order_by_key(|window| std::cmp::Reverse(worst(window).and_then(MonitoredCpu::max_ns)));
    ranked.truncate(WORST);
    ranked
}
