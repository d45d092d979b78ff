//! Histories of series: a table, sentences about their changes, a document, tests for CI, and a page.

mod document;
mod junit;
mod text;

pub(crate) use text::{limits, table};

pub use document::HistoryDocument;

use punctual_analysis::history::{Direction, SeriesChange, SeriesHistory};
use punctual_analysis::wording::{duration, number};
use punctual_model::{Span, plain};

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
    format!("{} {}", plain(&history.series.machine), plain(&history.series.cell))
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
    let runs = punctual_analysis::wording::things(u64::try_from(change.runs_until_found).unwrap_or(u64::MAX), "run");
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
