//! Histories for a terminal.

use super::{History, day, name, sentence};
use crate::Style;
use crate::lines::Lines;
use crate::table::{Column, Field, Table, UNKNOWN};
use punctual_analysis::history::{FIRST_TEST, Point, SeriesHistory, Standing};
use punctual_analysis::wording::duration;
use punctual_model::plain;
use std::io;

impl History {
    /// Writes the answer, a row for each series, a sentence for each change, and what is controlled.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        lines.framed(out, &self.answer(), |out| {
            let alarms = self.series.iter().filter(|series| self.alarms(series).next().is_some()).count();
            if alarms > 0 {
                lines.paragraph(out, "", &format!("{alarms} later lately."))?;
            }
            writeln!(out)?;
            let table = table(&self.series).tightening().fitted(style.width);
            table.write(out, &lines)?;
            writeln!(out)?;
            for history in &self.series {
                for change in &history.changes {
                    lines.paragraph(out, "", &format!("{}: {}.", name(history), sentence(change)))?;
                }
            }
            lines.paragraph(out, "", limits())
        })
    }
}

/// What the test promises.
pub(crate) fn limits() -> &'static str {
    "If runs are independent, one false alarm of all these series together is expected in ten years of nightly runs \
     (punctual help guide history)."
}

/// A row for each series.
pub(crate) fn table(series: &[SeriesHistory]) -> Table {
    let first = |history: &SeriesHistory| history.series.points.first().map(|point| day(point.started_unix_ms));
    let last = |history: &SeriesHistory| history.series.points.last().map(|point| day(point.started_unix_ms));
    let fields: [Field<SeriesHistory>; 8] = [
        (Column::text("machine").after(0), |history| plain(&history.series.machine).into_owned()),
        (Column::text("cell"), |history| plain(&history.label).into_owned()),
        (Column::figure("runs"), |history| history.series.points.len().to_string()),
        (Column::text("first").spare(0), |_| String::new()),
        (Column::text("last").spare(1), |_| String::new()),
        (Column::figure("p99"), |history| newest(history, |point| point.p99_ns)),
        (Column::figure("max"), |history| newest(history, |point| point.max_ns)),
        (Column::text("history"), state),
    ];
    let mut table = Table::of(&fields, series);
    for (row, history) in table.rows.iter_mut().zip(series) {
        for (index, day) in [(3, first(history)), (4, last(history))] {
            if let Some(field) = row.get_mut(index) {
                *field = day.unwrap_or_else(|| UNKNOWN.to_owned());
            }
        }
    }
    table
}

/// A latency of the last run.
fn newest(history: &SeriesHistory, of: fn(&Point) -> Option<i64>) -> String {
    let ns = history.series.points.last().and_then(of);
    ns.map_or_else(|| UNKNOWN.to_owned(), |ns| duration(ns as f64))
}

fn state(history: &SeriesHistory) -> String {
    match (history.standing, history.changes.last()) {
        (Standing::TooFew, _) => format!("fewer than {FIRST_TEST} runs"),
        (Standing::Changed, Some(last)) => format!("changed {}", day(last.since_unix_ms)),
        _ => "no change found".to_owned(),
    }
}
