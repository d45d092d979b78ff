//! Runs below a directory in one line each: date, machine, title and verdict.

use super::json::{List, Listed};
use super::table::{Column, Field, Table, UNKNOWN};
use super::{Style, lines::Lines, rfc3339};
use punctual_analysis::wording::{count, things};
use punctual_model::plain;
use std::io;

/// Writes the table and the damaged files; `below` is the searched directory.
pub fn text(list: &List, out: &mut dyn io::Write, below: &str, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    if list.runs.is_empty() && list.unreadable.is_empty() {
        return lines.paragraph(out, "", &format!("no runs below {below}"));
    }
    if !list.runs.is_empty() {
        table(list).write(out, &lines)?;
    }
    for damage in list.runs.iter().flat_map(|run| &run.damage) {
        writeln!(out, "damaged: {damage}")?;
    }
    list.unreadable.iter().try_for_each(|broken| writeln!(out, "damaged: {}", broken.reason))?;
    let damaged = list.unreadable.len() + list.runs.iter().filter(|run| !run.damage.is_empty()).count();
    let bytes = list.runs.iter().map(|run| run.bytes).chain(list.unreadable.iter().map(|broken| broken.bytes)).sum();
    let damaged = if damaged == 0 { String::new() } else { format!(", {damaged} damaged") };
    let runs = list.runs.len() + list.unreadable.len();
    writeln!(out, "{}{damaged}, {}", things(u64::try_from(runs).unwrap_or(u64::MAX), "run"), size(bytes))
}

/// A row for each run.
fn table(list: &List) -> Table {
    let fields: [Field<Listed>; 7] = [
        (Column::text("date (UTC)").after(0), |run| date(run.started_unix_ms)),
        (Column::text("host"), |run| or_dash(run.host.as_deref().unwrap_or_default())),
        (Column::text("title"), |run| or_dash(&run.title)),
        (Column::text("verdict"), |run| run.verdict.to_uppercase()),
        (Column::figure("measured"), |run| match run.measurements == run.planned {
            true => count(u64::try_from(run.measurements).unwrap_or(u64::MAX)),
            false => format!("{} of {}", run.measurements, run.planned),
        }),
        (Column::figure("size"), |run| size(run.bytes)),
        (Column::text("path"), |run| plain(&run.path).into_owned()),
    ];
    Table::of(&fields, &list.runs)
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { UNKNOWN.to_owned() } else { plain(text).into_owned() }
}

/// Date and time in UTC, to the minute.
fn date(unix_ms: u64) -> String {
    let text = rfc3339(unix_ms);
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

/// A size in bytes with a decimal unit.
pub fn size(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let (unit, factor) = units.into_iter().find(|(_, factor)| bytes as f64 >= *factor).unwrap_or(("B", 1.0));
    format!("{} {unit}", punctual_analysis::wording::number(bytes as f64 / factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Unreadable;
    use crate::{OwnRun, Results};
    use expect_test::expect;
    use punctual_analysis::summarise;
    use punctual_analysis::testing::RunBuilder;

    #[test]
    fn the_newest_run_is_the_first_and_damage_is_named() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").require("max=1ms").measure(0, 0, |_, _| 5_000);
        let mut list = List::default();
        let summary = summarise(&run.header, &run.entries);
        let (header, entries, summary) = (&run.header, &run.entries[..], &summary);
        list.add(1_234_567, &Results::Own(OwnRun { name: "runs/b", header, entries, summary }), Vec::new());
        run.header.started_unix_ms -= 3_600_000;
        (run.header.host.hostname, run.header.plan.title) = (None, String::new());
        let (header, entries, summary) = (&run.header, &[][..], &summarise(&run.header, &[]));
        let damage = vec!["runs/a/run.jsonl:2: the line is cut off".to_owned()];
        list.add(999, &Results::Own(OwnRun { name: "runs/a", header, entries, summary }), damage);
        let reason = "runs/c/run.jsonl:1: the header is damaged".to_owned();
        list.add_unreadable(Unreadable { path: "runs/c".to_owned(), bytes: 0, reason });
        let mut out = Vec::new();
        text(&list, &mut out, "runs", Style::plain(100)).unwrap();
        expect![[r#"
            date (UTC)        host    title                          verdict       measured     size  path
            2026-09-21 14:13  board7  How late can this machine be?  PASS                 1  1.23 MB  runs/b
            2026-09-21 13:13  -       -                              INCONCLUSIVE    0 of 1    999 B  runs/a
            damaged: runs/a/run.jsonl:2: the line is cut off
            damaged: runs/c/run.jsonl:1: the header is damaged
            3 runs, 2 damaged, 1.24 MB
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn sizes_and_dates_have_their_bounds() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (1_500_000, "1.5 MB"), (2_000_000_000, "2 GB")]
        {
            assert_eq!(size(bytes), text);
        }
        assert_eq!((date(0).as_str(), date(u64::MAX).as_str()), ("1970-01-01 00:00", "9999-12-31 23:59"));
    }
}
