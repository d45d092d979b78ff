//! The table of the kernel's tracers, common to all text formats.

use super::Section;
use super::latencies::latency;
use crate::table::{Column, Table, UNKNOWN};
use punctual_analysis::wording::{count, duration, things};
use punctual_analysis::{CellSummary, Osnoise, RunSummary, Timerlat, Tracers};
use punctual_model::HwlatGaps;
use std::collections::BTreeSet;

/// A column and its content.
type Field = (Column, fn(&Tracers) -> Option<String>);

fn fields() -> [Field; 13] {
    [
        (Column::figure("irq p50"), |seen| timerlat(seen)?.irq.p50_ns.map(shown)),
        (Column::figure("irq max"), |seen| timerlat(seen)?.irq.max_ns.map(shown)),
        (Column::figure("thread p50"), |seen| timerlat(seen)?.thread.p50_ns.map(shown)),
        (Column::figure("thread max"), |seen| timerlat(seen)?.thread.max_ns.map(shown)),
        (Column::figure("noise").spare(8), |seen| Some(format!("{:.2} %", osnoise(seen)?.noise_percent))),
        (Column::figure("longest").spare(5), |seen| Some(count(osnoise(seen)?.max_single_us))),
        (Column::figure("hw").spare(2), |seen| Some(count(osnoise(seen)?.hardware))),
        (Column::figure("nmi").spare(0), |seen| Some(count(osnoise(seen)?.nmi))),
        (Column::figure("irqs").spare(3), |seen| Some(count(osnoise(seen)?.irq))),
        (Column::figure("softirqs").spare(1), |seen| Some(count(osnoise(seen)?.softirq))),
        (Column::figure("threads").spare(4), |seen| Some(count(osnoise(seen)?.thread))),
        (Column::figure("hwlat").spare(7), |seen| Some(count(seen.hwlat.as_ref()?.gaps))),
        (Column::figure("hwlat max").spare(6), |seen| Some(count(seen.hwlat.as_ref()?.longest_us?))),
    ]
}

fn timerlat(seen: &Tracers) -> Option<&Timerlat> {
    seen.timerlat.as_ref()
}

fn osnoise(seen: &Tracers) -> Option<&Osnoise> {
    seen.osnoise.as_ref()
}

fn shown(ns: i64) -> String {
    latency(ns as f64)
}

/// The section of the tracers of a run; `None` if not requested, or before the first measurement.
pub(crate) fn of(summary: &RunSummary) -> Option<Section> {
    let traced: Vec<(&CellSummary, &Tracers)> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.tracers.as_ref()?))).collect();
    if traced.is_empty() {
        return None;
    }
    let has_hwlat = traced.iter().any(|(_, seen)| seen.hwlat.is_some());
    let fields = || fields().into_iter().take(if has_hwlat { 13 } else { 11 });
    let columns = std::iter::once(Column::text("tracers")).chain(fields().map(|(column, _)| column)).collect();
    let row = |(cell, seen): &(&CellSummary, &Tracers)| {
        let fields = fields().map(|(_, show)| show(seen).unwrap_or_else(|| UNKNOWN.to_owned()));
        std::iter::once(cell.name.clone()).chain(fields).collect()
    };
    let rows = traced.iter().map(row).collect();
    let mut notes = Vec::new();
    if traced.iter().any(|(_, seen)| seen.timerlat.is_some() || seen.osnoise.is_some()) {
        notes.push(format!(
            "After each cell, under its load: irq and thread, how late timerlat was; the rest by osnoise, of a normal thread. In {}.",
            crate::unit(summary)
        ));
    }
    notes.extend(traced.iter().filter_map(|(cell, seen)| Some(below(cell, seen.hwlat.as_ref()?, traced.len() > 1))));
    let lacking: BTreeSet<String> = traced
        .iter()
        .filter(|(_, seen)| seen.timerlat.is_none() && seen.osnoise.is_none() && seen.hwlat.is_none())
        .map(|(cell, _)| cell.cell.kernel.to_string())
        .collect();
    if !lacking.is_empty() {
        let kernels = lacking.into_iter().collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "No tracers in {kernels}: built without CONFIG_TIMERLAT_TRACER, CONFIG_OSNOISE_TRACER and \
             CONFIG_HWLAT_TRACER; of Debian's, the -rt kernels have all."
        ));
    }
    let lost: u64 = traced.iter().filter_map(|(_, seen)| seen.timerlat.as_ref()).map(|seen| seen.lost).sum();
    if lost > 0 {
        notes.push(format!("The trace had no room for {} lines of timerlat, the last ones.", count(lost)));
    }
    let table = Some(Table::new(columns, rows));
    Some(Section { title: "The kernel's tracers", table, sentences: Vec::new(), notes })
}

/// What hwlat saw with interrupts off, in words: gaps of the hardware, or of the virtual machine's host.
fn below(cell: &CellSummary, seen: &HwlatGaps, is_named: bool) -> String {
    let name = if is_named { format!("{}: ", cell.name) } else { String::new() };
    let watched = seen.watched_us.map_or_else(|| "an unknown time".to_owned(), |us| duration(us as f64 * 1e3));
    let longest = seen.longest_us.map_or_else(String::new, |us| format!(", the longest {}", duration(us as f64 * 1e3)));
    format!(
        "{name}hwlat, with interrupts off for {watched}: {} above {}{longest}; NMIs {}, lost lines {}.",
        things(seen.gaps, "gap"),
        duration(seen.threshold_us as f64 * 1e3),
        count(seen.nmi),
        count(seen.lost)
    )
}
