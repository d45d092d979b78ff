//! The table of what the kernel's tracers saw: the same in every form that people read.

use super::lines::Lines;
use super::table::{Heads, fit, latency};
use analysis::wording::count;
use analysis::{CellSummary, Osnoise, RunSummary, Timerlat, Tracers};
use std::collections::BTreeSet;
use std::io;

/// A column: its head, whether it holds text, and what it shows.
type Column = (&'static str, fn(&Tracers) -> Option<String>);

const COLUMNS: [Column; 11] = [
    ("irq p50", |seen| timerlat(seen)?.irq.p50_ns.map(shown)),
    ("irq max", |seen| timerlat(seen)?.irq.max_ns.map(shown)),
    ("thread p50", |seen| timerlat(seen)?.thread.p50_ns.map(shown)),
    ("thread max", |seen| timerlat(seen)?.thread.max_ns.map(shown)),
    ("noise", |seen| Some(format!("{:.2} %", osnoise(seen)?.noise_percent))),
    ("longest", |seen| Some(count(osnoise(seen)?.max_single_us))),
    ("hw", |seen| Some(count(osnoise(seen)?.hardware))),
    ("nmi", |seen| Some(count(osnoise(seen)?.nmi))),
    ("irqs", |seen| Some(count(osnoise(seen)?.irq))),
    ("softirqs", |seen| Some(count(osnoise(seen)?.softirq))),
    ("threads", |seen| Some(count(osnoise(seen)?.thread))),
];

fn timerlat(seen: &Tracers) -> Option<&Timerlat> {
    seen.timerlat.as_ref()
}

fn osnoise(seen: &Tracers) -> Option<&Osnoise> {
    seen.osnoise.as_ref()
}

fn shown(ns: i64) -> String {
    latency(ns as f64)
}

/// The table of a run, and what is to be said of it.
#[derive(Debug)]
pub(super) struct Traced {
    /// The heads, each with whether its column holds text.
    pub(super) heads: Heads,
    /// A row for each cell with tracers: what is not known is `-`.
    pub(super) rows: Vec<Vec<String>>,
    /// How to read it, and which kernels have no tracers.
    pub(super) notes: Vec<String>,
}

/// What the tracers of a run saw; `None` where none was asked for, or nothing is measured yet.
pub(super) fn of(summary: &RunSummary) -> Option<Traced> {
    let traced: Vec<(&CellSummary, &Tracers)> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.tracers.as_ref()?))).collect();
    if traced.is_empty() {
        return None;
    }
    let mut heads = vec![("tracers", true)];
    heads.extend(COLUMNS.map(|(head, _)| (head, false)));
    let row = |(cell, seen): &(&CellSummary, &Tracers)| {
        let fields = COLUMNS.iter().map(|(_, show)| show(seen).unwrap_or_else(|| "-".to_owned()));
        std::iter::once(cell.name.clone()).chain(fields).collect()
    };
    let rows = traced.iter().map(row).collect();
    let mut notes = Vec::new();
    if traced.iter().any(|(_, seen)| seen.timerlat.is_some() || seen.osnoise.is_some()) {
        notes.push(format!(
            "After each cell, under its load: irq and thread, how late timerlat was; the rest by osnoise, of a normal thread. In {}.",
            super::unit(summary)
        ));
    }
    let lacking: BTreeSet<String> = traced
        .iter()
        .filter(|(_, seen)| seen.timerlat.is_none() && seen.osnoise.is_none())
        .map(|(cell, _)| cell.cell.kernel.to_string())
        .collect();
    if !lacking.is_empty() {
        let kernels = lacking.into_iter().collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "No tracers in {kernels}: built without CONFIG_TIMERLAT_TRACER and CONFIG_OSNOISE_TRACER; of Debian's, the -rt \
             kernels have both."
        ));
    }
    let lost: u64 = traced.iter().filter_map(|(_, seen)| seen.timerlat.as_ref()).map(|seen| seen.lost).sum();
    if lost > 0 {
        notes.push(format!("The trace had no room for {} lines of timerlat, the last ones.", count(lost)));
    }
    Some(Traced { heads, rows, notes })
}

/// Writes the table; nothing where there is none.
pub(super) fn write(out: &mut dyn io::Write, summary: &RunSummary, lines: &Lines) -> io::Result<()> {
    let Some(Traced { heads, rows, notes }) = of(summary) else { return Ok(()) };
    writeln!(out)?;
    let drawn = fit(&heads, &rows, lines.width);
    let (head, rows) = drawn.split_once('\n').unwrap_or((&drawn, ""));
    lines.heading(out, head)?;
    writeln!(out, "{rows}")?;
    notes.iter().try_for_each(|note| lines.paragraph(out, "", note))
}
