//! The table of gaps in threads that never wait, common to all text formats.

use super::Section;
use super::latencies::latency_or_dash;
use crate::table::{Column, Table, dash};
use punctual_analysis::wording::{count, duration, number, things};
use punctual_analysis::{CellSummary, CpuNoise, GapRate, NoiseSummary, RunSummary, lost_share};
use punctual_model::{Cause, OwnerTotal};
use std::collections::BTreeSet;

/// The gaps of each CPU; `None` where no thread without waits was measured.
pub(crate) fn of(summary: &RunSummary) -> Option<Section> {
    let cells: Vec<(&CellSummary, &NoiseSummary)> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.noise.as_ref()?))).collect();
    let rows: Vec<(&CellSummary, &CpuNoise)> =
        cells.iter().flat_map(|(cell, noise)| noise.cpus.iter().map(move |cpu| (*cell, cpu))).collect();
    let lengths: BTreeSet<u64> = rows.iter().flat_map(|(_, cpu)| cpu.above.iter().map(|rate| rate.above_ns)).collect();
    let mut notes = vec![
        "Gaps an hour above a length, with exact 95 % limits (Poisson); they assume that gaps do not come in groups."
            .to_owned(),
    ];
    notes.extend(cells.iter().map(|(cell, noise)| counts(cell, noise, cells.len() > 1)));
    (!rows.is_empty()).then(|| Section {
        title: "Gaps of each CPU",
        table: Some(table(&rows, &lengths)),
        sentences: Vec::new(),
        notes,
    })
}

fn table(rows: &[(&CellSummary, &CpuNoise)], lengths: &BTreeSet<u64>) -> Table {
    let mut columns = vec![
        Column::text("noise"),
        Column::figure("CPU"),
        Column::figure("lost"),
        Column::figure("gaps"),
        Column::figure("longest"),
    ];
    // Of a narrow table the lower lengths go first: the threshold is in the number of gaps.
    for (order, length) in (0_u8..).step_by(2).zip(lengths) {
        columns.push(Column::figure(format!(">{}/h", duration(*length as f64))).spare(order + 1));
        columns.push(Column::text("[95 %]").after(1).spare(order));
    }
    let row = |(cell, cpu): &(&CellSummary, &CpuNoise)| {
        let rate = |length: &u64| {
            let rate = cpu.above.iter().find(|rate| rate.above_ns == *length);
            rate.map_or_else(|| [dash(), String::new()], |rate| [number(rate.per_hour), limits(rate)])
        };
        let first = [
            cell.name.clone(),
            cpu.cpu.to_string(),
            lost_share(cpu.lost_share),
            count(cpu.gaps),
            latency_or_dash(cpu.longest_ns),
        ];
        first.into_iter().chain(lengths.iter().flat_map(rate)).collect()
    };
    Table::new(columns, rows.iter().map(row).collect())
}

pub(super) fn limits(rate: &GapRate) -> String {
    format!("[{}-{}]", number(rate.lower_per_hour), number(rate.upper_per_hour))
}

/// What the machine counted meanwhile, and what the loop itself costs.
fn counts(cell: &CellSummary, noise: &NoiseSummary, is_named: bool) -> String {
    let name = if is_named { format!("{}: ", cell.name) } else { String::new() };
    let a_second = |rate: Option<f64>| rate.map_or_else(|| "unknown".to_owned(), number);
    let known = |n: Option<u64>, unit: &str| n.map_or_else(|| "unknown".to_owned(), |n| format!("{}{unit}", count(n)));
    let mut loops: Vec<String> = noise.cpus.iter().map(of_loop).collect();
    loops.extend((noise.not_ended > 0).then(|| format!("{} did not end", things(noise.not_ended, "loop"))));
    let switches: Option<u64> = noise.cpus.iter().map(|cpu| cpu.involuntary_switches).sum();
    format!(
        "{name}{}. Interrupts a second: timer {}, all {}, soft {}{}. In all: involuntary switches {}, steal {}, SMIs {}.",
        loops.join("; "),
        a_second(noise.timer_interrupts_per_second),
        a_second(noise.interrupts_per_second),
        a_second(noise.soft_interrupts_per_second),
        interrupting(cell, noise),
        known(switches, ""),
        known(noise.steal_ms, " ms"),
        known(noise.smis, ""),
    )
}

/// How often each interrupt, softirq and timer function that is known by name made a gap, a second of a CPU; empty
/// unless the gaps were explained.
fn interrupting(cell: &CellSummary, noise: &NoiseSummary) -> String {
    let seconds = noise.cpus.iter().map(|cpu| cpu.observed_ns).sum::<u64>() as f64 / 1e9;
    let causes = cell.explained.iter().flat_map(|explained| &explained.causes);
    let meant = causes.filter(|total| matches!(total.cause, Cause::Interrupt | Cause::Softirq) && total.or.is_none());
    let of = |owner: &OwnerTotal| Some(format!("{} {}", owner.name, number(owner.wakeups? as f64 / seconds)));
    let all: Vec<String> = meant.flat_map(|total| &total.owners).filter_map(of).collect();
    if all.is_empty() { String::new() } else { format!("; in gaps: {}", all.join(", ")) }
}

fn of_loop(cpu: &CpuNoise) -> String {
    format!(
        "CPU {}: {} readings of {}, {} ns each; gaps above {}",
        cpu.cpu,
        count(cpu.readings),
        cpu.counter,
        number(cpu.reading_ns),
        duration(cpu.threshold_ns as f64)
    )
}
