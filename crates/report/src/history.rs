//! Histories of series: a table, sentences about their changes, a document, tests for CI, and a page.

mod document;
mod junit;
mod text;

pub(crate) use text::{limits, table};

pub use document::HistoryDocument;

use punctual_analysis::Answer;
use punctual_analysis::history::{Direction, FIRST_TEST, SeriesChange, SeriesHistory, Standing};
use punctual_analysis::wording::{count, duration, number, things};
use punctual_model::{Order, Span, plain};
use std::cmp::Reverse;

/// Which changes count as alarms.
#[derive(Debug, Clone, Copy)]
pub struct Judgment {
    /// Time before the last run of a series within which a change has to be found.
    pub recent: Span,
    /// Ratio below which a change does not matter.
    pub margin: f64,
}

/// The histories that one question asks for.
#[derive(Debug)]
pub struct History {
    series: Vec<SeriesHistory>,
    judgment: Judgment,
}

/// Buckets of a histogram: lowest latency, ns, and count; `None` without one.
pub type Buckets = Option<Vec<(u64, u64)>>;

/// Series that a page shows in full; others have a row in its table.
const IN_FULL: usize = 24;

impl History {
    /// The histories of one question.
    pub fn new(series: Vec<SeriesHistory>, judgment: Judgment) -> History {
        History { series, judgment }
    }

    /// Whether a series became later lately, by the margin or more.
    pub fn has_alarm(&self) -> bool {
        self.series.iter().any(|series| self.alarms(series).next().is_some())
    }

    /// The series that a page shows in full: those with changes first.
    pub fn shown_in_full(&self) -> Vec<&SeriesHistory> {
        let changed = self.series.iter().filter(|series| !series.changes.is_empty());
        let others = self.series.iter().filter(|series| series.changes.is_empty());
        changed.chain(others).take(IN_FULL).collect()
    }

    /// The answer: the series that changed, the newest change first.
    pub fn answer(&self) -> Answer {
        let n = |n: usize| format!("{} series", count(n as u64));
        let of = |standing| self.series.iter().filter(|series| series.standing == standing).count();
        let (all, few) = (self.series.len(), of(Standing::TooFew));
        let mut changes: Vec<_> =
            self.series.iter().flat_map(|one| one.changes.iter().map(move |change| (one, change))).collect();
        changes.order_by_key(|(_, change)| Reverse(change.found_unix_ms));
        let untested = if few > 0 { format!("; {} too short to test", n(few)) } else { String::new() };
        match changes.first() {
            Some((one, change)) => {
                let newest = format!("{}: {}", name(one), sentence(change));
                Answer::new(format!("{} of {} changed: {newest}{untested}", of(Standing::Changed), n(all)))
            }
            None if all == 0 => Answer::cannot_tell("whether latencies changed", "no series", 0),
            None if few == all => {
                let missing = format!("{} with fewer than {FIRST_TEST} runs", n(all));
                Answer::cannot_tell("whether latencies changed", &missing, 0)
            }
            None => Answer::new(format!("no change in {}{untested}", n(all - few))),
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[SeriesHistory] {
        &self.series
    }

    /// The changes of a series that are alarms.
    fn alarms<'a>(&self, history: &'a SeriesHistory) -> impl Iterator<Item = &'a SeriesChange> + use<'a> {
        let last = history.series.points.last().map_or(0, |point| point.started_unix_ms);
        let (since, margin) = (last.saturating_sub(self.judgment.recent.ns() / 1_000_000), self.judgment.margin);
        let is_alarm = move |change: &&SeriesChange| {
            change.direction == Direction::Later && change.ratio >= margin && change.found_unix_ms >= since
        };
        history.changes.iter().filter(is_alarm)
    }
}

/// Machine and cell of a series.
pub(crate) fn name(history: &SeriesHistory) -> String {
    format!("{} {}", plain(&history.series.machine), plain(&history.label))
}

/// The day of a time, UTC.
pub(crate) fn day(unix_ms: u64) -> String {
    super::rfc3339(unix_ms).get(..10).unwrap_or_default().to_owned()
}

/// A change in a sentence without its full stop.
pub(crate) fn sentence(change: &SeriesChange) -> String {
    let direction = if change.direction == Direction::Later { "later" } else { "earlier" };
    let (first, last) = (day(change.range_unix_ms.0), day(change.range_unix_ms.1));
    let range = if first == last { String::new() } else { format!(" ({first} to {last})") };
    let (low, high) = change.interval;
    let runs = things(u64::try_from(change.runs_until_found).unwrap_or(u64::MAX), "run");
    let mut sentence = format!(
        "{} {direction} since {}{range}: {} times [{}, {}], {} before, {} after; found after {runs}",
        change.response.name(),
        day(change.since_unix_ms),
        number(change.ratio),
        number(low),
        number(high),
        duration(change.before_ns),
        duration(change.after_ns)
    );
    let marks: Vec<_> = change.coincides.iter().take(MARKS).map(mark).collect();
    if !marks.is_empty() {
        sentence += &format!("; coincides with {}", marks.join("; "));
    }
    let more = change.coincides.len().saturating_sub(MARKS);
    if more > 0 {
        sentence += &format!("; and {more} more");
    }
    sentence
}

/// Changes of the machine that a sentence names.
const MARKS: usize = 3;

/// A change of the machine in words.
pub(crate) fn mark(mark: &punctual_analysis::history::Mark) -> String {
    let (before, after) = punctual_analysis::wording::facts_apart(Some(&mark.before), Some(&mark.after));
    format!("{}: {} to {}", mark.fact, plain(&before), plain(&after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::history::{Response, Series};

    fn series(cell: &str, standing: Standing, found_unix_ms: &[u64]) -> SeriesHistory {
        let change = |found_unix_ms: &u64| SeriesChange {
            response: Response::P99,
            direction: Direction::Later,
            since_unix_ms: 0,
            before_unix_ms: 0,
            range_unix_ms: (0, 0),
            found_unix_ms: *found_unix_ms,
            runs_until_found: 3,
            before_ns: 40_000.0,
            after_ns: 80_000.0,
            ratio: 2.0,
            interval: (1.8, 2.2),
            coincides: Vec::new(),
        };
        let text = str::to_owned;
        let series = Series {
            machine: text("board7"),
            machine_identity: String::new(),
            cell: text(cell),
            cell_identity: String::new(),
            details: String::new(),
            points: Vec::new(),
        };
        let changes = found_unix_ms.iter().map(change).collect();
        SeriesHistory { label: series.cell.clone(), series, standing, changes, marks: Vec::new() }
    }

    #[test]
    fn the_answer_names_the_newest_change_or_counts_the_series_without_one() {
        use Standing::{Changed, TooFew, Unchanged};
        let changed = "p99 later since 1970-01-01: 2 times [1.8, 2.2], 40 us before, 80 us after; found after 3 runs";
        for (all, answer) in [
            (vec![], "cannot tell whether latencies changed: no series".to_owned()),
            (
                vec![series("a", TooFew, &[])],
                "cannot tell whether latencies changed: 1 series with fewer than 20 runs".to_owned(),
            ),
            (vec![series("a", Unchanged, &[])], "no change in 1 series".to_owned()),
            (
                vec![series("a", Unchanged, &[]), series("b", TooFew, &[])],
                "no change in 1 series; 1 series too short to test".to_owned(),
            ),
            (vec![series("a", Changed, &[5])], format!("1 of 1 series changed: board7 a: {changed}")),
            (
                vec![series("a", Changed, &[5]), series("b", Changed, &[4, 6]), series("c", Unchanged, &[])],
                format!("2 of 3 series changed: board7 b: {changed}"),
            ),
        ] {
            let history = History::new(all, Judgment { recent: Span(0), margin: 1.25 });
            assert_eq!(history.answer().to_string(), answer);
            let page = crate::history_html(&history, &[]);
            assert!(
                page.contains(&format!("<main id=top>\n<header>\n<p class=answer>{answer}</p>")),
                "first on the page"
            );
        }
    }
}
