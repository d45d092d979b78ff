//! A search for the smallest period kept: every trial as it was made, then the answer and its limits.

use super::{Style, host, lines::Lines};
use analysis::frontier::{self, Asked, Outcome, Search, Trial};
use analysis::wording::{count, duration};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use model::{Cell, Header, Span};
use std::io;

/// A search that has ended, or was broken off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Searched<'a> {
    /// The run that the trials were made in.
    pub(crate) header: &'a Header,
    /// What every trial was, but for its period.
    pub(crate) cell: &'a Cell,
    /// What was searched for.
    pub(crate) asked: &'a Asked,
    /// The trials and the answer.
    pub(crate) search: &'a Search,
}

impl Searched<'_> {
    /// Writes the machine, the table of trials and the answer.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub(crate) fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        host::machine(out, self.header, &lines)?;
        lines.paragraph(out, "", &self.subject())?;
        if !self.search.trials().is_empty() {
            let drawn = table(self.search.trials()).join("\n");
            let (head, rows) = drawn.split_once('\n').unwrap_or((&drawn, ""));
            writeln!(out)?;
            lines.heading(out, head)?;
            writeln!(out, "{rows}")?;
        }
        writeln!(out)?;
        self.search.answer().iter().try_for_each(|sentence| lines.paragraph(out, "", sentence))
    }

    /// What is searched: `Smallest period kept by clock_nanosleep, none/fifo:80, on CPU 0-1, ...`.
    fn subject(&self) -> String {
        let Cell { method, cpus, duration: of_trial, prepare, .. } = self.cell;
        let with = if prepare.is_empty() { String::new() } else { format!(", with {prepare}") };
        let text = |span: Span| duration(span.ns() as f64);
        format!(
            "Smallest period without a missed cycle: {method}, {}, CPU {cpus}; from {} to {}, trials of {}{with}",
            self.cell.label(),
            text(self.asked.from.span()),
            text(self.asked.to.span()),
            text(*of_trial),
        )
    }

    /// The same as one document, with every trial.
    pub(crate) fn json(&self) -> serde_json::Value {
        let document = frontier::document(self.header, self.cell, self.asked, self.search);
        serde_json::to_value(document).expect("plain fields with text keys always become JSON")
    }
}

/// The head of a column and the count in it.
type Count = (&'static str, fn(&Outcome) -> u64);

/// The lines of the table, head first. Columns of rare troubles are there when one of them came.
fn table(trials: &[Trial]) -> Vec<String> {
    let mut columns: Vec<Count> = vec![("cycles", |outcome| outcome.cycles_due), ("missed", |outcome| outcome.missed)];
    let rare: [Count; 2] = [("lost", |outcome| outcome.lost), ("not ended", |outcome| outcome.censored)];
    columns.extend(rare.iter().filter(|(_, of)| trials.iter().any(|trial| of(&trial.outcome) > 0)));
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(comfy_table::presets::NOTHING);
    let names = columns.iter().map(|(name, _)| *name);
    table.set_header(["trial", "period", "for"].into_iter().chain(names).chain(["max"]));
    for (i, Trial { period, purpose, outcome }) in trials.iter().enumerate() {
        let counts = columns.iter().map(|(_, of)| count(of(outcome)));
        let max = outcome.max_ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64));
        let what = [(i + 1).to_string(), duration(period.ns() as f64), purpose.to_string()];
        table.add_row(what.into_iter().chain(counts).chain([max]));
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if i == 2 { CellAlignment::Left } else { CellAlignment::Right });
        column.set_padding((2, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests;
