//! Runs below a directory, one line each: when, where, what, and what came out.

use super::{Style, lines::Lines};
use analysis::wording::{count, things};
use analysis::{ImportedSummary, RunSummary, Verdict};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use model::{Header, Host, ImportHeader};
use serde::Serialize;
use std::io;
use std::time::{Duration, SystemTime};

/// A run of the list.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    path: String,
    started_unix_ms: u64,
    host: Option<String>,
    kernel_release: Option<String>,
    title: String,
    verdict: &'static str,
    /// The verdict in one line.
    text: String,
    cells: usize,
    measurements: usize,
    planned: usize,
    bytes: u64,
    /// Lines that cannot be read.
    damage: Vec<String>,
}

/// A directory whose run cannot be read at all.
#[derive(Debug, Serialize)]
pub(crate) struct Unreadable {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) reason: String,
}

/// All that was found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct List {
    /// Runs, the oldest first.
    runs: Vec<Listed>,
    /// What is damaged beyond reading.
    unreadable: Vec<Unreadable>,
}

impl List {
    /// Adds a run.
    pub(crate) fn add(
        &mut self,
        (path, bytes): (String, u64),
        header: &Header,
        (summary, measurements): (&RunSummary, usize),
        damage: Vec<String>,
    ) {
        self.runs.push(Listed {
            path,
            started_unix_ms: header.started_unix_ms,
            host: header.host.hostname.clone(),
            kernel_release: header.host.kernel_release.clone(),
            title: header.plan.title.clone(),
            verdict: word(&summary.verdict),
            text: summary.verdict.to_string(),
            cells: header.cells.len(),
            measurements,
            planned: header.n_measurements(),
            bytes,
            damage,
        });
        self.sort();
    }

    /// Adds imported measurements.
    pub(crate) fn add_imported(
        &mut self,
        (path, bytes): (String, u64),
        header: &ImportHeader,
        summary: &ImportedSummary,
        damage: Vec<String>,
    ) {
        let hosts: Vec<_> = summary.cells.iter().map(|cell| &cell.imported.host).collect();
        let same = |of: fn(&Host) -> &Option<String>| {
            let first = hosts.first().and_then(|host| of(host).clone());
            first.filter(|first| hosts.iter().all(|host| of(host).as_ref() == Some(first)))
        };
        let measurements = summary.cells.len();
        let title = if header.title.is_empty() { String::new() } else { format!(": {}", header.title) };
        self.runs.push(Listed {
            path,
            started_unix_ms: header.imported_unix_ms,
            host: same(|host| &host.hostname),
            kernel_release: same(|host| &host.kernel_release),
            title: format!("imported{title}"),
            verdict: word(&summary.verdict),
            text: summary.verdict.to_string(),
            cells: measurements,
            measurements,
            planned: measurements + damage.len(),
            bytes,
            damage,
        });
        self.sort();
    }

    fn sort(&mut self) {
        self.runs.sort_by(|a, b| (a.started_unix_ms, &a.path).cmp(&(b.started_unix_ms, &b.path)));
    }

    /// Adds a directory whose run cannot be read.
    pub(crate) fn add_unreadable(&mut self, unreadable: Unreadable) {
        self.unreadable.push(unreadable);
    }

    /// Writes the table and names what is damaged; `below` is where was looked.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub(crate) fn text(&self, out: &mut dyn io::Write, below: &str, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        if self.runs.is_empty() && self.unreadable.is_empty() {
            return lines.paragraph(out, "", &format!("no runs below {below}"));
        }
        if !self.runs.is_empty() {
            let drawn = self.drawn();
            let (head, rows) = drawn.split_once('\n').unwrap_or((&drawn, ""));
            lines.heading(out, head)?;
            writeln!(out, "{rows}")?;
        }
        for damage in self.runs.iter().flat_map(|run| &run.damage) {
            writeln!(out, "damaged: {damage}")?;
        }
        self.unreadable.iter().try_for_each(|broken| writeln!(out, "damaged: {}", broken.reason))?;
        let damaged = self.unreadable.len() + self.runs.iter().filter(|run| !run.damage.is_empty()).count();
        let bytes =
            self.runs.iter().map(|run| run.bytes).chain(self.unreadable.iter().map(|broken| broken.bytes)).sum();
        let damaged = if damaged == 0 { String::new() } else { format!(", {damaged} damaged") };
        let runs = self.runs.len() + self.unreadable.len();
        writeln!(out, "{}{damaged}, {}", things(u64::try_from(runs).unwrap_or(u64::MAX), "run"), size(bytes))
    }

    /// The table, its head first.
    fn drawn(&self) -> String {
        let mut table = Table::new();
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(["date (UTC)", "host", "title", "verdict", "measured", "size", "path"]);
        for run in &self.runs {
            let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { plain(text) };
            let measured = if run.measurements == run.planned {
                count(u64::try_from(run.measurements).unwrap_or(u64::MAX))
            } else {
                format!("{} of {}", run.measurements, run.planned)
            };
            table.add_row([
                date(run.started_unix_ms),
                or_dash(run.host.as_deref().unwrap_or_default()),
                or_dash(&run.title),
                run.verdict.to_uppercase().replace('_', " "),
                measured,
                size(run.bytes),
                plain(&run.path),
            ]);
        }
        for (i, column) in table.column_iter_mut().enumerate() {
            let is_figure = i == 4 || i == 5;
            column.set_cell_alignment(if is_figure { CellAlignment::Right } else { CellAlignment::Left });
            column.set_padding((if i == 0 { 0 } else { 2 }, 0));
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

/// What a terminal shows as it is.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::NoneAsked => "none",
        Verdict::Pass { .. } => "pass",
        Verdict::Fail { .. } => "fail",
        Verdict::NotShown { .. } => "not_shown",
    }
}

/// Date and time, UTC, to the minute.
fn date(unix_ms: u64) -> String {
    // What no calendar holds is no date of a run.
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(unix_ms.min(253_402_300_799_000)));
    let text = humantime::format_rfc3339_seconds(time.unwrap_or(SystemTime::UNIX_EPOCH)).to_string();
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

/// Bytes as people read them, in powers of 1000.
fn size(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let (unit, factor) = units.into_iter().find(|(_, factor)| bytes as f64 >= *factor).unwrap_or(("B", 1.0));
    format!("{} {unit}", analysis::wording::number(bytes as f64 / factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::summarise;
    use analysis::testing::RunBuilder;
    use expect_test::expect;

    #[test]
    fn runs_stand_in_the_order_of_their_dates_and_damage_is_named() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").require("max=1ms").measure(0, 0, |_, _| 5_000);
        let mut list = List::default();
        let summary = summarise(&run.header, &run.entries);
        list.add(("runs/b".to_owned(), 1_234_567), &run.header, (&summary, 1), Vec::new());
        run.header.started_unix_ms -= 3_600_000;
        (run.header.host.hostname, run.header.plan.title) = (None, String::new());
        let summary = summarise(&run.header, &[]);
        let damage = vec!["runs/a/run.jsonl:2: the line is cut off".to_owned()];
        list.add(("runs/a".to_owned(), 999), &run.header, (&summary, 0), damage);
        let reason = "runs/c/run.jsonl:1: the header is damaged".to_owned();
        list.add_unreadable(Unreadable { path: "runs/c".to_owned(), bytes: 0, reason });
        let mut out = Vec::new();
        list.text(
            &mut out,
            "runs",
            Style { width: 100, colour: false, unicode: false, all_findings: false, each_spike: false },
        )
        .unwrap();
        expect![[r#"
            date (UTC)        host    title                          verdict    measured     size  path
            2026-09-21 13:13  -       -                              NOT SHOWN    0 of 1    999 B  runs/a
            2026-09-21 14:13  board7  How late can this machine be?  PASS              1  1.23 MB  runs/b
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
