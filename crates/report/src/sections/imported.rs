//! Imported measurements as text and tables.

use super::latencies::{dash, latency, latency_or_dash, quantile, shown_levels};
use super::{findings, machine};
use crate::Style;
use crate::lines::Lines;
use crate::results::ImportedSet;
use crate::table::{Column, Field, Table};
use analysis::wording::{count, duration};
use analysis::{ImportedCell, ImportedFinding, ImportedSummary, Level, Verdict};
use model::{Imported, ImportedLoad, Span, StatedConditions};
use std::io;

/// Writes the report: source, findings, table, answer. Errors: when `out` does not take it.
pub(crate) fn text(out: &mut dyn io::Write, run: &ImportedSet<'_>, style: Style) -> io::Result<()> {
    let ImportedSet { name, header, summary } = *run;
    let lines = Lines::new(style);
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
    table(summary).without_unknown().fitted(lines.width).write(out, &lines)?;
    writeln!(out, " us unless marked; -: not known\n")?;
    if summary.verdict == Verdict::NoneAsked {
        lines.paragraph(out, "", &answer(summary))?;
    }
    lines.verdict(out, &summary.verdict)
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
pub(crate) fn table(summary: &ImportedSummary) -> Table {
    let mut fields: Vec<Field<ImportedCell>> = vec![
        (Column::text("file"), |cell| cell.name.clone()),
        (Column::text("tool").spare(1), |cell| cell.imported.source.tool.clone()),
        (Column::text("policy"), |cell| policy(&cell.imported.conditions)),
        (Column::figure("period"), |cell| period(&cell.imported.conditions)),
        (Column::text("load").spare(3), |cell| load(&cell.imported.conditions)),
        (Column::figure("samples"), |cell| cell.samples.map_or_else(dash, count)),
        (Column::figure("missed"), |cell| cell.missed.map_or_else(dash, count)),
        (Column::figure("min").spare(2), |cell| latency_or_dash(cell.min_ns)),
        (Column::figure("mean").spare(0), |cell| cell.mean_ns.map_or_else(dash, latency)),
        (Column::figure("p50").spare(4), |cell| quantile(cell.quantiles.at(Level::P50))),
        (Column::figure("p99"), |cell| quantile(cell.quantiles.at(Level::P99))),
        (Column::figure("p99.9"), |cell| quantile(cell.quantiles.at(Level::P999))),
    ];
    let higher: [(Level, Field<ImportedCell>); 3] = [
        (Level::P9999, (Column::figure("p99.99").spare(6), |cell| quantile(cell.quantiles.at(Level::P9999)))),
        (Level::P99999, (Column::figure("p99.999").spare(6), |cell| quantile(cell.quantiles.at(Level::P99999)))),
        (Level::P999999, (Column::figure("p99.9999").spare(6), |cell| quantile(cell.quantiles.at(Level::P999999)))),
    ];
    let levels = shown_levels(summary.cells.iter().map(|cell| &cell.quantiles));
    fields.extend(higher.into_iter().filter(|(level, _)| levels.contains(level)).map(|(_, field)| field));
    fields.push((Column::figure("max"), |cell| latency_or_dash(cell.max_ns)));
    Table::of(&fields, &summary.cells)
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
    found.sort_by_key(|(finding, _)| finding.importance());
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

/// The largest latency, and its limits as a bound.
pub(crate) fn answer(summary: &ImportedSummary) -> String {
    let largest = summary.cells.iter().filter_map(|cell| Some((cell.max_ns?, cell))).max_by_key(|(max_ns, _)| *max_ns);
    match largest {
        Some((max_ns, cell)) => {
            let time = cell.imported.measured.map(|measured| format!(" in {}", duration(measured.ns() as f64)));
            let (max, time) = (duration(max_ns as f64), time.unwrap_or_default());
            format!("Largest latency{time}: {max} ({}). A maximum is not a bound.", cell.name)
        }
        None => "The largest latency is not known.".to_owned(),
    }
}
