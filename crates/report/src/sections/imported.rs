//! Imported measurements as text and tables.

use super::latencies::{dash, figures, shown_levels};
use super::{findings, machine};
use crate::Style;
use crate::lines::Lines;
use crate::results::{ImportedSet, Results};
use crate::table::{Column, Field, Table};
use punctual_analysis::wording::duration;
use punctual_analysis::{ImportedFinding, ImportedSummary, Row, Verdict};
use punctual_model::{Imported, ImportedLoad, Order, Span, StatedConditions};
use std::io;

/// Writes the report: answer, source, findings, table. Errors: when `out` does not take it.
pub(crate) fn text(out: &mut dyn io::Write, run: &ImportedSet<'_>, style: Style) -> io::Result<()> {
    let ImportedSet { name, header, summary } = *run;
    let lines = Lines::new(style);
    crate::headline(out, &Results::Imported(*run), &lines)?;
    let title = if header.title.is_empty() { String::new() } else { format!(": {}", header.title) };
    lines.paragraph(out, "", &format!("{}, imported{title}", header.tool))?;
    machines(summary).iter().try_for_each(|machine| lines.paragraph(out, "", machine))?;
    writeln!(out)?;
    let (sentences, more) =
        findings::first(sentences(summary), if style.all_findings { usize::MAX } else { findings::MOST });
    let shown = sentences.len();
    let heading = match more {
        0 => "Findings".to_owned(),
        _ => format!("Findings ({shown} of {}; {})", shown + more, findings::rest(name)),
    };
    lines.findings(out, &heading, sentences)?;
    table(&Row::of_imported(&summary.cells, &summary.cell_findings))
        .without_unknown()
        .fitted(lines.width)
        .write(out, &lines)?;
    writeln!(out, " us unless marked; -: not known\n")?;
    if summary.verdict == Verdict::NoneAsked { lines.verdict(out, &summary.verdict) } else { Ok(()) }
}

/// The machines of the files, without duplicates.
pub(crate) fn machines(summary: &ImportedSummary) -> Vec<String> {
    let mut machines: Vec<String> = Vec::new();
    for cell in &summary.cells {
        let facts = machine::known_facts(&cell.imported.host);
        let machine = if facts.is_empty() { "machine not known".to_owned() } else { facts.join(", ") };
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    machines
}

/// A row for each measurement, with every column.
pub(crate) fn table(rows: &[Row<'_>]) -> Table {
    /// A fact of the file.
    fn of_file(row: &Row<'_>, fact: fn(&Imported) -> String) -> String {
        row.imported().map_or_else(dash, fact)
    }
    let mut fields: Vec<Field<Row<'_>>> = vec![
        (Column::text("file"), |row| row.name.to_owned()),
        (Column::text("tool").spare(1), |row| of_file(row, |imported| imported.source.tool.clone())),
        (Column::text("policy"), |row| of_file(row, |imported| policy(&imported.conditions))),
        (Column::figure("period"), |row| of_file(row, |imported| period(&imported.conditions))),
        (Column::text("load").spare(3), |row| of_file(row, |imported| load(&imported.conditions))),
    ];
    let mut figures = figures(&shown_levels(rows.iter().map(|row| row.quantiles)));
    // Other tools count samples; files have neither intervals of every cell nor the time of a maximum.
    figures.retain(|(column, _)| !["n_eff", "sd", "[95 %]", "when"].contains(&&*column.head));
    figures.first_mut().into_iter().for_each(|(column, _)| column.head = "samples".into());
    fields.extend(figures);
    Table::of(&fields, rows)
}

/// Conditions of each measurement, as far as the files contain them; the names are those of the page.
pub(crate) fn conditions<'a>(all: impl Iterator<Item = (String, &'a Imported)>) -> Table {
    let all: Vec<_> = all.collect();
    let fields: [Field<(String, &Imported)>; 11] = [
        (Column::text("file"), |(name, _)| name.clone()),
        (Column::text("tool"), |(_, Imported { source, .. })| {
            source.version.as_ref().map_or_else(|| source.tool.clone(), |version| format!("{} {version}", source.tool))
        }),
        (Column::text("latency of"), |(_, imported)| imported.conditions.what.clone()),
        (Column::text("policy"), |(_, imported)| policy(&imported.conditions)),
        (Column::text("period"), |(_, imported)| period(&imported.conditions)),
        (Column::text("load"), |(_, imported)| load(&imported.conditions)),
        (Column::text("measured"), |(_, imported)| imported.measured.map_or_else(dash, span)),
        (Column::text("values in"), |(_, imported)| span(imported.resolution)),
        (Column::text("began"), |(_, imported)| imported.started_unix_ms.map_or_else(dash, crate::rfc3339)),
        (Column::text("added by hand"), |(_, imported)| imported.conditions.stated.join(", ")),
        (Column::text("command"), |(_, imported)| imported.source.command_line.clone().unwrap_or_else(dash)),
    ];
    Table::of(&fields, &all)
}

/// Scheduling of the threads; `?:80` if only the priority is known.
fn policy(conditions: &StatedConditions) -> String {
    let priority = conditions.priority.map(|priority| format!("?:{priority}"));
    conditions.policy.map(|policy| policy.to_string()).or(priority).unwrap_or_else(dash)
}

fn period(conditions: &StatedConditions) -> String {
    conditions.period.map_or_else(dash, |period| duration(period.ns() as f64))
}

fn load(conditions: &StatedConditions) -> String {
    conditions.load.as_ref().map_or_else(dash, ImportedLoad::label)
}

fn span(span: Span) -> String {
    duration(span.ns() as f64)
}

/// The findings of all cells, equal ones merged.
pub(crate) fn sentences(summary: &ImportedSummary) -> Vec<String> {
    let mut found: Vec<(&ImportedFinding, Vec<&str>)> = Vec::new();
    for (cell, findings) in summary.cells.iter().zip(&summary.cell_findings) {
        for finding in findings {
            match found.iter_mut().find(|(other, _)| *other == finding) {
                Some((_, names)) => names.push(&cell.name),
                None => found.push((finding, vec![&cell.name])),
            }
        }
    }
    // Stable: equally important ones keep the order of the files.
    found.order_by_key(|(finding, _)| finding.importance());
    let sentence = |(finding, names): &(&ImportedFinding, Vec<&str>)| {
        let is_all = names.len() == summary.cells.len();
        let of = match names.as_slice() {
            _ if is_all && names.len() > 1 => "all: ".to_owned(),
            _ if is_all => String::new(),
            [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} more: ", rest.len()),
            names => format!("{}: ", names.join(", ")),
        };
        format!("{of}{finding}.")
    };
    found.iter().map(sentence).collect()
}
