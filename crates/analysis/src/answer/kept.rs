//! Whether a period was kept: the answer of a measurement without limits.

use super::sentence::Answer;
use crate::row::Row;
use crate::summary::cell::CellSummary;
use crate::summary::imported::ImportedCell;
use crate::verdict::{Gap, gaps};
use crate::wording::{count, duration, load, policy, things};
use punctual_model::{Cell, Level, Order, Span, Task};
use std::cmp::Reverse;

/// Settings besides the first whose latencies are named.
const OTHERS: usize = 2;

/// The answer of imported measurements: the largest latency.
pub(crate) fn of_imported(cells: &[ImportedCell]) -> Answer {
    let largest = cells.iter().filter_map(|cell| Some((cell.max_ns?, cell))).max_by_key(|(max_ns, _)| *max_ns);
    let Some((max_ns, cell)) = largest else {
        return Answer::cannot_tell("how late", "the files have no largest latency", 0);
    };
    let time = cell.imported.measured.map(|measured| format!(" in {}", duration(measured.ns() as f64)));
    let (max, time) = (duration(max_ns as f64), time.unwrap_or_default());
    Answer::new(format!("largest latency{time}: {max} ({}); a maximum is not a bound", cell.name))
}

/// The answer of cells without latencies.
pub(super) fn of_costs(cells: &[CellSummary]) -> Answer {
    let costs = || cells.iter().filter_map(|cell| Some((cell, cell.cost.as_ref()?)));
    let operations = costs().map(|(_, cost)| cost.operations.len() as u64).max().unwrap_or(0);
    let slowest = costs().filter_map(|(cell, cost)| Some((cell, cost.total_ns?))).max_by(|a, b| a.1.total_cmp(&b.1));
    match slowest {
        _ if operations == 0 => Answer::nothing(cells.iter().map(|cell| cell.cell.duration.ns()).sum()),
        Some((cell, ns)) => Answer::new(format!("a fixed amount of work took up to {} ({})", duration(ns), cell.name)),
        None => Answer::new(format!(
            "{} measured; a cost has no verdict: compare two configurations",
            things(operations, "operation")
        )),
    }
}

/// Cells that differ in their load only.
struct Setting<'a> {
    rows: Vec<(&'a Row<'a>, &'a CellSummary)>,
    state: State,
}

/// Whether a setting kept its period, the best first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Kept,
    /// The first reason, and the time, ns, to measure again.
    Unknown(String, u64),
    /// Missed due times, of all that were due.
    Missed {
        missed: u64,
        due: u64,
    },
    /// Waits that have no due times to keep, or whose missed ones are not counted.
    NoPeriod,
}

/// The answer of own cells with latencies, at least one.
pub(super) fn of_rows(rows: &[Row<'_>]) -> Answer {
    let mut settings = settings(rows);
    if settings.iter().all(|setting| setting.worst().is_none()) {
        return Answer::nothing(rows.iter().filter_map(Row::own).map(|cell| cell.cell.duration.ns()).sum());
    }
    settings.order_by_key(Setting::rank);
    let names = Names::of(&settings);
    let Some((first, others)) = settings.split_first() else { return Answer::nothing(0) };
    let mut sentence = first.answer(&names);
    let unmeasured = others.iter().filter(|other| other.worst().is_none());
    let unmeasured: Vec<String> = unmeasured.map(|other| names.name(other, false)).collect();
    let mut others: Vec<_> = others.iter().filter_map(|other| Some((other, other.worst()?))).collect();
    others.order_by_key(|(_, (_, max_ns, _))| Reverse(*max_ns));
    for (other, (_, max_ns, at_least)) in others.iter().take(OTHERS) {
        sentence += &format!("; {} is {} late", names.name(other, false), bounded(*max_ns, *at_least));
    }
    let more = others.len().saturating_sub(OTHERS);
    if more > 0 {
        sentence += &format!("; {more} other{} less late", if more == 1 { " is" } else { "s are" });
    }
    match unmeasured.as_slice() {
        [] => {}
        [one] => sentence += &format!("; {one} was not measured"),
        all => sentence += &format!("; {} were not measured", things(all.len() as u64, "setting")),
    }
    Answer::new(sentence)
}

/// The settings of these cells, in their order.
fn settings<'a>(rows: &'a [Row<'a>]) -> Vec<Setting<'a>> {
    let mut settings: Vec<Vec<(&Row<'_>, &CellSummary)>> = Vec::new();
    for (row, cell) in rows.iter().filter_map(|row| Some((row, row.own()?))) {
        let is_of = |all: &&mut Vec<(&Row<'_>, &CellSummary)>| all.first().is_some_and(|one| is_alike(cell, one.1));
        match settings.iter_mut().find(is_of) {
            Some(all) => all.push((row, cell)),
            None => settings.push(vec![(row, cell)]),
        }
    }
    settings.into_iter().map(|rows| Setting { state: State::of(&rows), rows }).collect()
}

fn is_alike(CellSummary { cell: a, .. }: &CellSummary, CellSummary { cell: b, .. }: &CellSummary) -> bool {
    let is_same_wait = a.policy == b.policy && a.period == b.period && a.task == b.task;
    is_same_wait && a.kernel == b.kernel && a.conditions.prepare == b.conditions.prepare
}

impl State {
    fn of(rows: &[(&Row<'_>, &CellSummary)]) -> State {
        let is_counted = |cell: &CellSummary| {
            let task = &cell.cell.task;
            // A hand-off shows nothing of the timer that the waker waits for.
            let waits = task.method().is_some_and(|method| method.handoff().is_none()) && !task.is_relative();
            let waits = waits || task.is_reported();
            waits && (cell.blocks == 0 || cell.missed.is_some())
        };
        if !rows.iter().all(|(_, cell)| is_counted(cell)) {
            return State::NoPeriod;
        }
        let missed: u64 = rows.iter().filter_map(|(_, cell)| cell.missed).sum();
        // A response of an outside program may be late without a missed due time.
        let is_late = |(row, cell): &&(&Row<'_>, &CellSummary)| row.max_ns > i64::try_from(cell.cell.period.ns()).ok();
        let late: u64 = rows.iter().filter(is_late).count() as u64;
        if missed > 0 || late > 0 {
            let due = |cell: &CellSummary| cell.ledger.due.max(cell.samples + cell.missed.unwrap_or(0));
            return State::Missed { missed: missed.max(late), due: rows.iter().map(|(_, cell)| due(cell)).sum() };
        }
        let unknown = rows.iter().find_map(|(row, cell)| Some((why_unknown(row, cell)?, cell.cell.duration.ns())));
        unknown.map_or(State::Kept, |(why, ns)| State::Unknown(why, ns))
    }
}

/// What is missing to know that a cell kept its period.
fn why_unknown(row: &Row<'_>, cell: &CellSummary) -> Option<String> {
    if cell.blocks == 0 {
        return Some(format!("the cell {} was not measured", row.load.as_ref().map(load).unwrap_or_default()));
    }
    let gap: Gap = gaps(row, cell.cell.period.span()).into_iter().next()?;
    Some(gap.without_cell(row.name))
}

impl<'a> Setting<'a> {
    /// Its latest row, the latency, ns, and whether that is a lower bound.
    fn worst(&self) -> Option<(&'a Row<'a>, i64, bool)> {
        let known = self.rows.iter().filter_map(|(row, cell)| Some((*row, row.max_ns?, cell.may_be_later())));
        known.max_by_key(|(_, max_ns, at_least)| (*max_ns, *at_least))
    }

    /// The best first: of those that kept their period the shortest, then those of a real-time policy; of those that
    /// missed the smallest share.
    fn rank(&self) -> (u8, u64, bool, i64) {
        let worst = self.worst().map(|(_, max_ns, _)| max_ns);
        let is_normal = self.rows.iter().any(|(_, cell)| !cell.cell.policy.is_realtime());
        if self.state == State::NoPeriod {
            // The latest of all, as the sentence says.
            return (3, 0, false, worst.map_or(i64::MAX, i64::saturating_neg));
        }
        let (state, first) = match &self.state {
            State::Kept => (0, self.period().ns()),
            State::Unknown(..) => (1, self.period().ns()),
            State::Missed { missed, due } => (2, missed.saturating_mul(1_000_000_000) / due.max(&1)),
            State::NoPeriod => (3, 0),
        };
        (state, first, is_normal, worst.unwrap_or(i64::MAX))
    }

    fn period(&self) -> Span {
        self.rows.first().map_or(Span(0), |(_, cell)| cell.cell.period.span())
    }

    /// What it shows, as the first of a run.
    fn answer(&self, names: &Names) -> String {
        let (name, rate, time) = (names.name(self, true), self.rate(), self.time());
        let worst = self.worst().map(|(row, max_ns, at_least)| {
            let load = row.load.as_ref().map_or(String::new(), |of| format!(" {}", load(of)));
            let tail = [Level::P999, Level::P99]
                .into_iter()
                .find_map(|level| Some(format!(" ({level} {})", duration(row.quantiles.at(level).value_ns()? as f64))));
            (bounded(max_ns, at_least), load, tail.unwrap_or_default())
        });
        let (max, load, tail) = worst.unwrap_or_else(|| ("unknown".to_owned(), String::new(), String::new()));
        match &self.state {
            State::Kept => format!("{rate} is kept for {time}: worst {max} with {name}{load}{tail}"),
            State::Unknown(why, ns) => {
                Answer::cannot_tell(&format!("whether {rate} is kept with {name}"), why, *ns).to_string()
            }
            State::Missed { missed, due } => {
                let (missed, due) = (count(*missed), things(*due, "period"));
                let is_kept = if self.has_several_periods() { "not every period is kept" } else { "is not kept" };
                let rate = if self.has_several_periods() { String::new() } else { format!("{rate} ") };
                format!("{rate}{is_kept}: {missed} of {due} missed with {name} (worst {max}{load})")
            }
            State::NoPeriod => {
                let event = match self.rows.first().map(|(_, cell)| &cell.cell.task) {
                    Some(Task::Response(_) | Task::Watch(_)) => "response",
                    Some(Task::Sleep(_)) => "sleep error",
                    Some(Task::Cyclic(method)) if method.handoff().is_some() => "hand-off",
                    _ => "wake-up",
                };
                format!("worst {event} in {time}: {max} with {name}{load}{tail}")
            }
        }
    }

    /// The rate of its due times: `1 kHz`, or `a period of 1.5 ms`.
    fn rate(&self) -> String {
        if self.has_several_periods() { "every period".to_owned() } else { rate(self.period()) }
    }

    fn has_several_periods(&self) -> bool {
        self.rows.iter().any(|(_, cell)| cell.has_several_periods())
    }

    /// The time that each of its cells was measured, of those that were.
    fn time(&self) -> String {
        let measured = self.rows.iter().filter(|(_, cell)| cell.blocks > 0);
        let least = measured.map(|(_, cell)| cell.measured.ns()).min().unwrap_or(0);
        let is_virtual = self.rows.iter().any(|(row, _)| row.is_virtual());
        format!("{}{}", duration(least as f64), if is_virtual { " of virtual time" } else { "" })
    }
}

/// A rate in hertz where it is a whole number, or the period.
fn rate(period: Span) -> String {
    match 1_000_000_000 % period.ns().max(1) {
        0 if period.ns() < 1_000_000_000 => {
            let hertz = 1_000_000_000 / period.ns().max(1);
            if hertz >= 1_000 {
                format!("{} kHz", crate::wording::number(hertz as f64 / 1e3))
            } else {
                format!("{hertz} Hz")
            }
        }
        _ => format!("a period of {}", duration(period.ns() as f64)),
    }
}

fn bounded(max_ns: i64, at_least: bool) -> String {
    format!("{}{}", if at_least { "at least " } else { "" }, duration(max_ns as f64))
}

/// The axes besides load and policy that the cells of a run vary, which names of settings have.
struct Names {
    kernel: bool,
    period: bool,
    task: bool,
    prepare: bool,
}

impl Names {
    fn of(settings: &[Setting<'_>]) -> Names {
        let cells: Vec<&Cell> = settings.iter().flat_map(|one| &one.rows).map(|(_, cell)| &cell.cell).collect();
        let varies = |differ: fn(&Cell, &Cell) -> bool| cells.windows(2).any(|pair| differ(pair[0], pair[1]));
        Names {
            kernel: varies(|a, b| a.kernel != b.kernel),
            period: varies(|a, b| a.period != b.period),
            task: varies(|a, b| a.task != b.task),
            prepare: varies(|a, b| a.conditions.prepare != b.conditions.prepare),
        }
    }

    /// `FIFO 80`, `FIFO 80 (timerfd, 2 kHz) on debian:6.1`, the period only of another setting than the first.
    fn name(&self, setting: &Setting<'_>, is_first: bool) -> String {
        let Some((_, CellSummary { cell, .. })) = setting.rows.first() else { return String::new() };
        let period = match setting.state {
            State::NoPeriod => Some(duration(cell.period.ns() as f64)),
            _ if is_first => None,
            _ => Some(rate(cell.period.span())),
        };
        let task = [self.task.then(|| cell.task.label()), period.filter(|_| self.period)];
        let task: Vec<String> = task.into_iter().flatten().collect();
        let parts = [
            Some(policy(cell.policy)),
            (!task.is_empty()).then(|| format!(" ({})", task.join(", "))),
            self.prepare.then(|| format!(" with {}", cell.conditions.prepare)),
            self.kernel.then(|| format!(" on {}", cell.kernel)),
        ];
        parts.into_iter().flatten().collect()
    }
}
