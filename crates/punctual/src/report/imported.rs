//! Imported measurements as people and programs read them.

use super::lines::Lines;
use super::table::latency;
use super::{Style, host};
use analysis::wording::{count, duration};
use analysis::{ImportedCell, ImportedFinding, ImportedSummary, Level, Quantile, Refusal, Verdict};
use model::{Conditions, ImportHeader, Imported};
use std::io;

/// Findings shown unless all are asked for.
const SHOWN: usize = 8;

/// Writes the whole report: where it comes from, table, what stands out, answer.
///
/// # Errors
/// When `out` does not take it.
pub(crate) fn text(
    out: &mut dyn io::Write,
    header: &ImportHeader,
    summary: &ImportedSummary,
    style: Style,
) -> io::Result<()> {
    let lines = Lines::new(style);
    let title = if header.title.is_empty() { String::new() } else { format!(": {}", header.title) };
    lines.paragraph(out, "", &format!("{}, imported{title}", header.tool))?;
    about(summary).iter().try_for_each(|machine| lines.paragraph(out, "", machine))?;
    writeln!(out)?;
    let (heads, rows) = table(summary);
    let drawn = super::table::fit(&heads, &rows, lines.width);
    let (head, rows) = drawn.split_once('\n').unwrap_or((&drawn, ""));
    lines.heading(out, head)?;
    writeln!(out, "{rows}\nmicroseconds where no unit stands; - is not known\n")?;
    let sentences = sentences(summary);
    lines.heading(out, "What stands out")?;
    let shown = if style.all_findings { sentences.len() } else { SHOWN.min(sentences.len()) };
    sentences[..shown].iter().try_for_each(|sentence| lines.paragraph(out, "  ", sentence))?;
    if shown < sentences.len() {
        lines.paragraph(out, "  ", &format!("{} more: punctual show RUN --all", sentences.len() - shown))?;
    }
    writeln!(out)?;
    if summary.verdict == Verdict::NoneAsked {
        lines.paragraph(out, "", &answer(summary))?;
    }
    lines.verdict(out, &summary.verdict)
}

/// The same as one JSON document.
pub(crate) fn json(header: &ImportHeader, summary: &ImportedSummary) -> serde_json::Value {
    let document = analysis::imported_document(header, summary);
    serde_json::to_value(document).expect("plain fields with text keys always become JSON")
}

/// The machines that the files describe, each once.
pub(super) fn about(summary: &ImportedSummary) -> Vec<String> {
    let mut machines: Vec<String> = Vec::new();
    for cell in &summary.cells {
        let facts = host::known_facts(&cell.imported.host);
        let machine = if facts.is_empty() { "machine not known".to_owned() } else { facts.join(", ") };
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    machines
}

/// Heads, with whether the column holds text, and rows.
pub(super) fn table(summary: &ImportedSummary) -> (Vec<(&'static str, bool)>, Vec<Vec<String>>) {
    let heads = vec![
        ("file", true),
        ("tool", true),
        ("policy", true),
        ("period", false),
        ("load", true),
        ("samples", false),
        ("missed", false),
        ("min", false),
        ("mean", false),
        ("p50", false),
        ("p99", false),
        ("p99.9", false),
        ("max", false),
    ];
    let dash = || "-".to_owned();
    let ns = |ns: Option<i64>| ns.map_or_else(dash, |ns| latency(ns as f64));
    let row = |cell: &ImportedCell| {
        let Imported { conditions, source, .. } = &cell.imported;
        vec![
            cell.name.clone(),
            source.tool.clone(),
            policy(conditions).unwrap_or_else(dash),
            conditions.period.map_or_else(dash, |period| duration(period.ns() as f64)),
            conditions.load.as_ref().map_or_else(dash, model::Load::label),
            cell.samples.map_or_else(dash, count),
            cell.missed.map_or_else(dash, count),
            ns(cell.min_ns),
            cell.mean_ns.map_or_else(dash, latency),
            quantile(cell, Level::P50),
            quantile(cell, Level::P99),
            quantile(cell, Level::P999),
            ns(cell.max_ns),
        ]
    };
    (heads, summary.cells.iter().map(row).collect())
}

/// How the threads were scheduled; `?:80` where only the priority is known.
pub(super) fn policy(conditions: &Conditions) -> Option<String> {
    let priority = conditions.priority.map(|priority| format!("?:{priority}"));
    conditions.policy.map(|policy| policy.to_string()).or(priority)
}

/// A quantile; one beyond the tool's histogram is known to be at least so large.
fn quantile(cell: &ImportedCell, level: Level) -> String {
    match cell.quantiles.at(level) {
        Quantile::Known { value_ns, .. } => latency(*value_ns as f64),
        Quantile::Refused(Refusal::Beyond { at_least_ns }) => format!(">={}", latency(*at_least_ns as f64)),
        Quantile::Refused(_) => "-".to_owned(),
    }
}

/// The findings of all cells, equal ones together.
pub(super) fn sentences(summary: &ImportedSummary) -> Vec<String> {
    let mut found: Vec<(&ImportedFinding, Vec<&str>)> = Vec::new();
    for cell in &summary.cells {
        for finding in &cell.findings {
            match found.iter_mut().find(|(other, _)| *other == finding) {
                Some((_, names)) => names.push(&cell.name),
                None => found.push((finding, vec![&cell.name])),
            }
        }
    }
    // Stable: equally important ones stay in the order of the files.
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

/// The largest latency, and how little of a bound that is.
pub(super) fn answer(summary: &ImportedSummary) -> String {
    let largest = summary.cells.iter().filter_map(|cell| Some((cell.max_ns?, cell))).max_by_key(|(max_ns, _)| *max_ns);
    match largest {
        Some((max_ns, cell)) => {
            let time = cell.imported.measured.map(|measured| format!(" in {}", duration(measured.ns() as f64)));
            let (max, time) = (duration(max_ns as f64), time.unwrap_or_default());
            format!("Largest latency{time}: {max} ({}). A maximum is no bound.", cell.name)
        }
        None => "The largest latency is not known.".to_owned(),
    }
}
