//! The time that CPUs lost: the answer of threads that never wait.

use super::sentence::Answer;
use crate::explain::cause_name;
use crate::summary::cell::CellSummary;
use crate::summary::noise::CpuNoise;
use crate::wording::{duration, load, number, policy, things};
use punctual_model::{CauseTotal, Order};

/// CPUs besides the first that are named.
const OTHERS: usize = 2;
/// Least share of the time of gaps of a cause that is named, percent.
const NOTABLE_PERCENT: f64 = 5.0;

/// The CPU that lost the largest share of its time, and the next ones.
pub(super) fn of_cells(cells: &[CellSummary]) -> Answer {
    let of_cell = |cell| cpus_of(cell).iter().map(move |cpu| (cell, cpu));
    let mut cpus: Vec<(&CellSummary, &CpuNoise)> = cells.iter().flat_map(of_cell).collect();
    cpus.order_by(|a, b| b.1.lost_share.total_cmp(&a.1.lost_share));
    let not_ended: u64 = cells.iter().filter_map(|cell| cell.noise.as_ref()).map(|noise| noise.not_ended).sum();
    let Some((first, others)) = cpus.split_first() else {
        let why = if not_ended > 0 { "no loop ended" } else { "nothing was measured" };
        return Answer::cannot_tell("how much time was lost", why, cells.iter().map(|c| c.cell.duration.ns()).sum());
    };
    let name = |cell: &CellSummary| match cells.len() {
        1 => String::new(),
        _ => format!(" ({} {})", policy(cell.cell.policy), load(&cell.cell.load.clone().into())),
    };
    let (cell, cpu) = first;
    let (above, time) = (duration(cpu.threshold_ns as f64), duration(cpu.observed_ns as f64));
    let mut sentence = match (cpu.gaps, cpu.longest_ns) {
        (0, _) => format!("CPU {}{} lost nothing to gaps above {above} in {time}", cpu.cpu, name(cell)),
        (gaps, longest) => format!(
            "CPU {}{} lost {} to {} above {above} in {time}; the longest {}",
            cpu.cpu,
            name(cell),
            share(cpu.lost_share),
            things(gaps, "gap"),
            longest.map_or_else(|| "unknown".to_owned(), |ns| duration(ns as f64))
        ),
    };
    for (cell, cpu) in others.iter().take(OTHERS) {
        let lost = match cpu.longest_ns {
            Some(ns) => format!("{}, the longest {}", share(cpu.lost_share), duration(ns as f64)),
            None => "nothing".to_owned(),
        };
        sentence += &format!("; CPU {}{} lost {lost}", cpu.cpu, name(cell));
    }
    let more = others.len().saturating_sub(OTHERS);
    if more > 0 {
        sentence += &format!("; {more} other{} lost less", if more == 1 { "" } else { "s" });
    }
    if not_ended > 0 {
        sentence = format!("cannot tell all that was lost: {} did not end; {sentence}", things(not_ended, "loop"));
    }
    Answer::new(sentence + &causes(cell))
}

/// The causes with most of the time of the gaps of a cell; empty unless they were explained.
fn causes(cell: &CellSummary) -> String {
    let Some(explained) = cell.explained.as_ref().filter(|explained| explained.late.ns() > 0) else {
        return String::new();
    };
    let one = |cause: &CauseTotal| {
        let percent = cause.total.ns() as f64 * 100.0 / explained.late.ns() as f64;
        (percent >= NOTABLE_PERCENT).then(|| format!("{} {percent:.0} %", cause_name(cause.cause, cause.or)))
    };
    let named: Vec<String> = explained.causes.iter().filter_map(one).collect();
    format!(". Of the time: {}", named.join(", "))
}

fn cpus_of(cell: &CellSummary) -> &[CpuNoise] {
    cell.noise.as_ref().map_or(&[], |noise| &noise.cpus)
}

/// A share, 0 to 1, with the digits that matter: `0.42 %`, `0.00003 %`.
pub fn share(share: f64) -> String {
    match share * 100.0 {
        percent if percent >= 0.01 || percent <= 0.0 => format!("{} %", number(percent)),
        percent => {
            let has_two = |digits: &u8| percent * 10_f64.powi(i32::from(*digits)) >= 9.5;
            let digits = (3..=12).find(has_two).map_or(12, usize::from);
            format!("{percent:.digits$} %")
        }
    }
}
