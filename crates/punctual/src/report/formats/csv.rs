//! Comma-separated values (RFC 4180, lines ended by a line feed): one row for each cell, units in the heads.

use analysis::{CellSummary, Level, RunSummary};
use model::{Cell, Header};
use std::fmt::{Display, Write};

/// A column: its head, and what it holds of a cell; empty where nothing is known.
type Column = (&'static str, fn(&CellSummary) -> String);

const COLUMNS: [Column; 34] = [
    ("name", |cell| cell.name.clone()),
    ("kernel", |cell| cell.cell.kernel.to_string()),
    ("load", |cell| cell.cell.load.to_string()),
    ("policy", |cell| cell.cell.policy.to_string()),
    ("period_ns", |cell| cell.cell.period.ns().to_string()),
    ("method", |cell| cell.cell.method.to_string()),
    ("cpus", |cell| cell.cell.cpus.to_string()),
    ("cell_id", |cell| Cell::id(&cell.cell).to_string()),
    ("blocks", |cell| cell.blocks.to_string()),
    ("measured_ns", |cell| cell.measured.ns().to_string()),
    ("samples", |cell| cell.samples.to_string()),
    ("missed", |cell| cell.missed.to_string()),
    ("early", |cell| cell.early.to_string()),
    ("lost", |cell| cell.lost.to_string()),
    ("censored", |cell| cell.censored.map_or(0, |open| open.waits).to_string()),
    ("min_ns", |cell| known(cell.min_ns)),
    ("mean_ns", |cell| known(cell.mean_ns)),
    ("stddev_ns", |cell| known(cell.stddev_ns)),
    ("p50_ns", |cell| value(cell, Level::P50)),
    ("p50_lower_ns", |cell| lower(cell, Level::P50)),
    ("p50_upper_ns", |cell| upper(cell, Level::P50)),
    ("p99_ns", |cell| value(cell, Level::P99)),
    ("p99_lower_ns", |cell| lower(cell, Level::P99)),
    ("p99_upper_ns", |cell| upper(cell, Level::P99)),
    ("p999_ns", |cell| value(cell, Level::P999)),
    ("p999_lower_ns", |cell| lower(cell, Level::P999)),
    ("p999_upper_ns", |cell| upper(cell, Level::P999)),
    ("max_ns", |cell| known(cell.max.map(|max| max.latency_ns))),
    ("max_is_lower_bound", |cell| known(cell.max.map(|max| max.at_least))),
    ("max_block", |cell| known(cell.max.map(|max| max.block))),
    ("max_cpu", |cell| known(cell.max.map(|max| max.cpu))),
    ("n_eff", |cell| known(cell.n_eff)),
    ("miss_episodes", |cell| known(cell.misses.map(|rate| rate.episodes))),
    ("misses_upper_per_hour", |cell| known(cell.misses.map(|rate| rate.upper_per_hour))),
];

/// The cells of a run as CSV. The first columns say which run it is, so that files can be put below each other.
pub(crate) fn csv(header: &Header, summary: &RunSummary) -> String {
    let mut text = String::from("started_unix_ms,hostname,kernel_release");
    for (head, _) in COLUMNS {
        let _ = write!(text, ",{head}");
    }
    text.push('\n');
    for cell in &summary.cells {
        let host = &header.host;
        let [hostname, release] = [&host.hostname, &host.kernel_release].map(|fact| field(&known(fact.as_ref())));
        let _ = write!(text, "{},{hostname},{release}", header.started_unix_ms);
        for (_, show) in COLUMNS {
            let _ = write!(text, ",{}", field(&show(cell)));
        }
        text.push('\n');
    }
    text
}

fn known(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn value(cell: &CellSummary, level: Level) -> String {
    known(cell.quantiles.at(level).value_ns())
}

fn lower(cell: &CellSummary, level: Level) -> String {
    known(cell.quantiles.at(level).interval_ns().map(|(lower, _)| lower))
}

fn upper(cell: &CellSummary, level: Level) -> String {
    known(cell.quantiles.at(level).interval_ns().map(|(_, upper)| upper))
}

/// A field as RFC 4180 wants it: in quotes where it holds a comma, a quote or a line break.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_only_where_they_must_be() {
        for (text, quoted) in
            [("", ""), ("none", "none"), ("a,b", "\"a,b\""), ("say \"x\"", "\"say \"\"x\"\"\""), ("a\nb", "\"a\nb\"")]
        {
            assert_eq!(field(text), quoted);
        }
    }
}
