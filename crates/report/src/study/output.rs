//! A study with the values of runs as text and CSV.

use super::{FilledField, FilledLine, FilledTable, LeftOut, StudyList, StudyReport, WayReport};
use crate::Style;
use crate::lines::Lines;
use crate::table::{Column, Table, dash};
use punctual_analysis::study::StudyJudgment;
use punctual_analysis::wording::{count, duration, things};
use punctual_model::{StudyBeyond, plain};
use std::io;

impl StudyList {
    /// Writes the list for a terminal.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        for study in &self.studies {
            let year = study.year.map(|year| format!(" ({year})")).unwrap_or_default();
            lines.heading(out, study.name)?;
            lines.paragraph(out, "  ", &format!("{}{year}", study.title))?;
            let ways = match study.ways.as_slice() {
                [] => "numbers only, shown beside a run whose plan has this study".to_owned(),
                ways => format!("ways: {}; {}", ways.join(", "), things(study.conclusions as u64, "conclusion")),
            };
            lines.paragraph(out, "  ", &ways)?;
        }
        Ok(())
    }
}

/// Numbers of loops, each where it differs from that of the column before; `None` without any.
fn once(loops: Vec<Option<String>>) -> Option<Vec<String>> {
    let is_known = loops.iter().any(Option::is_some);
    let before = std::iter::once(None).chain(loops.iter().cloned());
    let differs = |(loops, before): (&Option<String>, Option<String>)| {
        loops.clone().filter(|loops| Some(loops) != before.as_ref()).unwrap_or_default()
    };
    is_known.then(|| loops.iter().zip(before).map(differs).collect())
}

/// A whole number as published, with spaces between groups of digits.
fn whole(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), count)
}

impl FilledField {
    /// The value as printed: `> ` before a lower bound.
    fn text(&self, decimals: usize) -> String {
        match self.value {
            _ if self.is_baseline => "base".to_owned(),
            None => "never woke".to_owned(),
            Some(value) => format!("{}{value:.decimals$}", if self.is_at_least { "> " } else { "" }),
        }
    }

    /// The single latencies as printed.
    fn singles(&self, decimals: usize, between: &str) -> Option<String> {
        let all: Vec<String> = self.singles.iter().map(|value| format!("{value:.decimals$}")).collect();
        Some(all.join(between)).filter(|_| !all.is_empty())
    }
}

impl FilledLine {
    /// The run, and the load if that has another name in the study.
    fn source(&self) -> String {
        let load = self.load.iter().map(|load| format!(" ({load})"));
        std::iter::once(self.run.clone()).chain(load).collect()
    }
}

/// Overruns per million loops as printed.
fn per_million(value: f64) -> String {
    format!("{value:.0}")
}

impl FilledTable {
    /// The table as lines: for each row of the study the published values, and those of each run with the range over
    /// its blocks.
    fn lines(&self) -> Table {
        let mut columns: Vec<Column> = self.axes.iter().map(|axis| Column::text(*axis).after(0)).collect();
        columns.iter_mut().skip(1).for_each(|column| *column = column.clone().after(2));
        columns.push(Column::text("values"));
        columns.extend(self.columns.iter().map(|head| Column::figure(head.clone())));
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut before: Vec<String> = Vec::new();
        for row in &self.rows {
            // Repeated values of outer axes are left out.
            let shared = row.keys.iter().zip(&before).take_while(|(a, b)| a == b).count();
            let keys = row.keys.iter().enumerate();
            let mut keys: Vec<String> =
                keys.map(|(i, key)| if i < shared { String::new() } else { key.clone() }).collect();
            before.clone_from(&row.keys);
            let mut line = |source: &str, fields: Vec<String>| {
                let mut all = std::mem::replace(&mut keys, vec![String::new(); row.keys.len()]);
                all.push(source.to_owned());
                all.extend(fields);
                rows.push(all);
            };
            line("published", row.published.iter().map(|value| value.clone().unwrap_or_else(dash)).collect());
            if let Some(loops) = once(row.published_loops.iter().map(|loops| loops.as_deref().map(whole)).collect()) {
                line("  loops", loops);
            }
            let rates = |rates: Vec<Option<f64>>| -> Option<Vec<String>> {
                let is_known = rates.iter().any(Option::is_some);
                is_known.then(|| rates.into_iter().map(|rate| rate.map_or_else(dash, per_million)).collect())
            };
            rates(row.published_per_million.clone()).into_iter().for_each(|rates| line("  per million", rates));
            for one in &row.runs {
                let fields = || one.fields.iter().zip(&self.decimals);
                let of = |show: &dyn Fn(&FilledField, usize) -> Option<String>| -> Vec<String> {
                    let shown = |(field, decimals): (&Option<FilledField>, &usize)| show(field.as_ref()?, *decimals);
                    fields().map(|field| shown(field).unwrap_or_else(dash)).collect()
                };
                line(&one.source(), of(&|field, decimals| Some(field.text(decimals))));
                if one.fields.iter().flatten().any(|field| field.blocks.is_some()) {
                    line(
                        "  blocks",
                        of(&|field, decimals| {
                            field.blocks.map(|(low, high)| format!("{low:.decimals$}..{high:.decimals$}"))
                        }),
                    );
                }
                let loops = one.fields.iter().map(|field| field.as_ref()?.loops.map(count)).collect();
                once(loops).into_iter().for_each(|loops| line("  loops", loops));
                let overruns = one.fields.iter().map(|field| field.as_ref()?.per_million).collect();
                rates(overruns).into_iter().for_each(|rates| line("  per million", rates));
            }
        }
        Table::new(columns, rows)
    }

    /// Fields with few latencies, each shown.
    fn singles(&self) -> Vec<String> {
        let mut all = Vec::new();
        for row in &self.rows {
            for line in &row.runs {
                for ((head, decimals), field) in self.columns.iter().zip(&self.decimals).zip(&line.fields) {
                    if let Some(singles) = field.as_ref().and_then(|field| field.singles(*decimals, "  ")) {
                        let place = [&row.keys.join(", "), &line.run, head].map(String::as_str).join(", ");
                        all.push(format!("{place}: {singles}"));
                    }
                }
            }
        }
        all
    }
}

impl WayReport {
    fn text(&self, out: &mut dyn io::Write, lines: &Lines) -> io::Result<()> {
        let extent = self.measurements.zip(self.expected_ns).filter(|(measurements, _)| *measurements > 0).map(
            |(measurements, ns)| {
                format!(" ({}, about {})", things(measurements as u64, "measurement"), duration(ns as f64))
            },
        );
        let extent = extent.unwrap_or_default();
        lines.hanging(out, &format!("  {:<11} ", self.name), &format!("{}; plan {}{extent}", self.what, self.plan))?;
        let needs = self.needs.map(|needs| format!("needs {needs}"));
        let missing = self.missing.iter().map(|reason| format!("not here: {}", plain(reason)));
        needs.into_iter().chain(missing).try_for_each(|note| lines.paragraph(out, "              ", &note))
    }
}

/// Most fields whose latencies are shown one by one in text.
const SINGLE_FIELDS: usize = 40;

impl StudyReport {
    /// Writes the tables and the conclusions for a terminal.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        lines.framed(out, &self.answer, |out| {
            lines.paragraph(out, "", &format!("{}; {}.", self.title, self.source))?;
            for table in self.with_rows() {
                writeln!(out)?;
                lines.heading(out, &table.title)?;
                table.lines().write(out, &lines)?;
                let singles = table.singles();
                if !singles.is_empty() {
                    writeln!(out, "single values:")?;
                    singles.iter().take(SINGLE_FIELDS).try_for_each(|single| lines.paragraph(out, "  ", single))?;
                }
                if let Some(more) = singles.len().checked_sub(SINGLE_FIELDS).filter(|more| *more > 0) {
                    writeln!(out, "  ({} more: --format csv)", count(more as u64))?;
                }
            }
            if !self.left_out.is_empty() {
                writeln!(out)?;
                lines.heading(out, "Not in these tables")?;
                for LeftOut { cells, measurements, why } in &self.left_out {
                    let cells = format!("{}: {}; {why}", plain(cells), things(*measurements as u64, "measurement"));
                    lines.hanging(out, "  ", &cells)?;
                }
            }
            writeln!(out)?;
            lines.heading(out, "Conclusions")?;
            for StudyJudgment { says, verdict, why, .. } in &self.conclusions {
                lines.hanging(out, &format!("{:<16}", verdict.words()), says)?;
                lines.paragraph(out, "                ", &plain(why))?;
            }
            if !self.ways.is_empty() {
                writeln!(out)?;
                lines.heading(out, "This machine")?;
                self.ways.iter().try_for_each(|way| way.text(out, &lines))?;
                for StudyBeyond { item, takes } in self.beyond {
                    lines.paragraph(out, "  ", &format!("{item}: takes {takes}"))?;
                }
            }
            writeln!(out)?;
            self.notes().iter().try_for_each(|note| lines.paragraph(out, "", note))
        })
    }

    /// Explanations of the tables.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "blocks: smallest and largest value of a block. A conclusion is found again if each part of its order is \
             shown by an exact rank-sum test of the blocks at 5 %."
                .to_owned(),
            "loops: due times of which the values are. Of more loops a maximum is larger, and more are missed."
                .to_owned(),
        ];
        for kernels in &self.shared {
            notes.push(format!("One kernel stands for {}: their values here are the same.", kernels.join(" and ")));
        }
        if self.has_virtual_time {
            notes.push(
                "In virtual time 1 us is 1000 instructions: what comes from the kernel's code is repeated exactly; \
                 caches, buses, devices and rare events of hardware are not there."
                    .to_owned(),
            );
        }
        notes
    }

    /// The tables as CSV: the rows and columns of the study, and a line for each source. Tables are separated by an
    /// empty line.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        for table in &self.tables {
            if !text.is_empty() {
                text.push('\n');
            }
            let mut line = |fields: Vec<&str>| {
                let quoted: Vec<String> = fields.into_iter().map(crate::formats::csv_field).collect();
                text.push_str(&quoted.join(","));
                text.push('\n');
            };
            let head = table.axes.iter().copied().chain(["values"]);
            line(["table"].into_iter().chain(head).chain(table.columns.iter().map(String::as_str)).collect());
            for row in &table.rows {
                let keys = || [table.title.as_str()].into_iter().chain(row.keys.iter().map(String::as_str));
                let published = row.published.iter().map(|value| value.as_deref().unwrap_or(""));
                line(keys().chain(["published"]).chain(published).collect());
                if row.published_loops.iter().any(Option::is_some) {
                    let loops = row.published_loops.iter().map(|loops| loops.as_deref().unwrap_or(""));
                    line(keys().chain(["published, loops"]).chain(loops).collect());
                }
                if row.published_per_million.iter().any(Option::is_some) {
                    let rates: Vec<String> = row
                        .published_per_million
                        .iter()
                        .map(|rate| rate.map(per_million).unwrap_or_default())
                        .collect();
                    line(keys().chain(["published, per million"]).chain(rates.iter().map(String::as_str)).collect());
                }
                for one in &row.runs {
                    let run = one.source();
                    let mut of = |name: &str, show: &dyn Fn(&FilledField, usize) -> Option<String>| {
                        let fields = one.fields.iter().zip(&table.decimals);
                        let values: Vec<String> = fields
                            .map(|(field, decimals)| show(field.as_ref()?, *decimals))
                            .map(Option::unwrap_or_default)
                            .collect();
                        if values.iter().any(|value| !value.is_empty()) {
                            line(keys().chain([name]).chain(values.iter().map(String::as_str)).collect());
                        }
                    };
                    of(&run, &|field, decimals| Some(field.text(decimals)));
                    of(&format!("{run}, smallest block"), &|field, decimals| {
                        Some(format!("{:.decimals$}", field.blocks?.0))
                    });
                    of(&format!("{run}, largest block"), &|field, decimals| {
                        Some(format!("{:.decimals$}", field.blocks?.1))
                    });
                    of(&format!("{run}, loops"), &|field, _| field.loops.map(|loops| loops.to_string()));
                    of(&format!("{run}, per million"), &|field, _| field.per_million.map(per_million));
                    of(&format!("{run}, single values"), &|field, decimals| field.singles(decimals, " "));
                }
            }
        }
        text
    }

    /// The tables for the page.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&str, Table)> {
        self.with_rows().map(|table| (table.title.as_str(), table.lines()))
    }

    /// The tables with anything in them.
    fn with_rows(&self) -> impl Iterator<Item = &FilledTable> {
        self.tables.iter().filter(|table| !table.rows.is_empty())
    }
}
