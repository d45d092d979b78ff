//! Record of one thread, from given latencies.

use super::SLICES;
use punctual_model::{
    Achieved, Cell, Censored, ClockTime, Episode, Episodes, Histogram, Nanos, Period, Schedule, Second, Slice, Span,
    ThreadRecord, Usage, Worst,
};

/// Record of a thread with these latencies.
pub(super) fn thread(cell: &Cell, achieved: Achieved, cpu: u32, latency_ns: impl Fn(u64) -> i64) -> ThreadRecord {
    let period = cell.period_on(cpu);
    let (schedule, lead) = (Schedule { first_due: ClockTime(0), period }, cell.lead_of(period));
    let cycles = cell.cycles_of(period);
    let (cycles_due, deadline) = (cycles.end - cycles.start, cell.deadline_at(period).ns());
    let per_slice = cycles_due.div_ceil(SLICES).max(1);
    let mut histogram = Histogram::default();
    let mut slices: Vec<Slice> = (0..cycles_due.div_ceil(per_slice))
        .map(|i| Slice { first_cycle: i * per_slice, cycles: per_slice, histogram: Histogram::default() })
        .collect();
    let (mut worst, mut episodes, mut missed, mut early) = (Vec::new(), Vec::<Episode>::new(), 0, 0);
    let mut seconds: Vec<Second> = Vec::new();
    let mut censored = None;
    let mut unanswered = cell.task.link().map(|_| Vec::new());
    let mut cycle = schedule.cycle(0);
    while cycle.index < cycles_due {
        let (index, late) = (cycle.index, latency_ns(cycle.index));
        if let (Some(unanswered), i64::MAX) = (&mut unanswered, late) {
            let waited = Histogram::of(&[Span::SECOND.ns().cast_signed()]);
            unanswered.push(Slice { first_cycle: index / per_slice * per_slice, cycles: per_slice, histogram: waited });
            cycle = schedule.after(cycle, Nanos(0));
            continue;
        }
        if late == i64::MAX {
            censored = Some(Censored {
                cycle: i64::try_from(index).unwrap_or(0),
                at_least_ns: (cycles_due - index) * period.ns(),
            });
            missed += cycles_due - index - 1;
            let open_ns = i64::try_from((cycles_due - index) * period.ns()).unwrap_or(i64::MAX);
            if open_ns.unsigned_abs() > deadline {
                episode(&mut episodes, index, open_ns, period);
            }
            break;
        }
        histogram.record(late);
        let slice = usize::try_from(index / per_slice).unwrap_or(0);
        slices[slice].histogram.record(late);
        worst.push(Worst { latency_ns: late, cycle: index });
        let misses = if cell.task.misses_when_late() { schedule.missed(Nanos(late)) } else { 0 };
        let misses = misses.min(cycles_due - index - 1);
        take_second(&mut seconds, lead.ns() + index * period.ns(), index, late, misses);
        early += u64::from(late < 0);
        if u64::try_from(late).is_ok_and(|late| late > deadline) {
            episode(&mut episodes, index, late, period);
        }
        let late = if cell.task.link().is_none_or(|_| cell.task.misses_when_late()) { late } else { 0 };
        missed += schedule.missed(Nanos(late)).min(cycles_due - index - 1);
        cycle = schedule.after(cycle, Nanos(late));
    }
    worst.sort_by_key(|worst| (std::cmp::Reverse(worst.latency_ns), worst.cycle));
    worst.truncate(1000);
    let count = u64::try_from(episodes.len()).unwrap_or(0);
    ThreadRecord {
        cpu,
        period: Some(period).filter(|period| *period != cell.period),
        // As of a method that measures each CPU in a process of its own.
        offset: lead,
        achieved,
        cycles_due,
        recorded: histogram.n,
        missed,
        early,
        censored,
        histogram,
        seconds,
        slices,
        unanswered,
        worst,
        episodes: Episodes { count, first: episodes },
        usage: Some(Usage::default()),
        ..ThreadRecord::default()
    }
}

/// Counts a wake-up in the second of its due time.
fn take_second(seconds: &mut Vec<Second>, due_ns: u64, cycle: u64, late_ns: i64, missed: u64) {
    let second = due_ns / Span::SECOND.0;
    if seconds.last().is_none_or(|row| row.second != second) {
        seconds.push(Second { second, ..Second::default() });
    }
    let Some(row) = seconds.last_mut() else { return };
    row.n += 1;
    row.missed += missed;
    row.sum_ns = row.sum_ns.saturating_add(late_ns);
    if row.max_ns.is_none_or(|max| late_ns > max) {
        (row.max_ns, row.max_cycle) = (Some(late_ns), Some(cycle));
    }
}

/// Adds a late wake-up to the last episode if it was due less than a second after the end of that, else begins a new
/// one.
fn episode(episodes: &mut Vec<Episode>, cycle: u64, late_ns: i64, period: Period) {
    let due_ns = cycle * period.ns();
    let ended_ns = due_ns.saturating_add_signed(late_ns);
    match episodes.last_mut().filter(|last| due_ns < last.ended_ns + Span::SECOND.0) {
        Some(last) => {
            last.last_cycle = cycle;
            last.count += 1;
            last.worst_ns = last.worst_ns.max(late_ns);
            last.ended_ns = ended_ns;
        }
        None => {
            episodes.push(Episode { first_cycle: cycle, last_cycle: cycle, count: 1, worst_ns: late_ns, ended_ns });
        }
    }
}
