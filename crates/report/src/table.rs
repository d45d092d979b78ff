//! A table for every format: columns with heads, and rows of text; fitted to the width of a terminal.

use super::lines::Lines;
use comfy_table::{CellAlignment, ContentArrangement};
use std::borrow::Cow;
use std::io;

/// A field without a known value.
pub(super) const UNKNOWN: &str = "-";
/// The text of an unknown value.
pub(super) fn dash() -> String {
    UNKNOWN.to_owned()
}

/// A share in whole percent.
pub(super) fn share(share: Option<f64>) -> String {
    share.map_or_else(dash, |share| format!("{:.0} %", share * 100.0))
}

/// Default number of spaces before a column.
const SPACE: u16 = 2;

/// One column: its head and its layout.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) head: Cow<'static, str>,
    /// Whether it contains text, aligned left.
    pub(super) is_text: bool,
    /// Number of spaces before it.
    space: u16,
    /// Least width in characters.
    least: usize,
    /// Order of omission in narrow tables, lowest first; `None`: never omitted.
    spare: Option<u8>,
}

impl Column {
    pub(super) fn text(head: impl Into<Cow<'static, str>>) -> Column {
        Column { head: head.into(), is_text: true, space: SPACE, least: 0, spare: None }
    }

    /// A column of numbers.
    pub(super) fn figure(head: impl Into<Cow<'static, str>>) -> Column {
        Column { is_text: false, ..Column::text(head) }
    }

    /// Sets the number of spaces before the column.
    pub(super) fn after(self, space: u16) -> Column {
        Column { space, ..self }
    }

    /// Sets the least width.
    pub(super) fn at_least(self, least: usize) -> Column {
        Column { least, ..self }
    }

    /// Keeps the column in narrow tables.
    pub(super) fn never_spare(self) -> Column {
        Column { spare: None, ..self }
    }

    /// Sets the order of omission in narrow tables, lowest first.
    pub(super) fn spare(self, order: u8) -> Column {
        Column { spare: Some(order), ..self }
    }
}

/// A column and its content for an item with a row.
pub(super) type Field<T> = (Column, fn(&T) -> String);

/// Columns and rows with one field per column.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
    /// Whether the spacing shrinks before a column is omitted.
    can_tighten: bool,
}

impl Table {
    pub(super) fn new(columns: Vec<Column>, rows: Vec<Vec<String>>) -> Table {
        Table { columns, rows, can_tighten: false }
    }

    /// A table with a row for each item.
    pub(super) fn of<'a, T: 'a>(fields: &[Field<T>], things: impl IntoIterator<Item = &'a T>) -> Table {
        let row = |thing| fields.iter().map(|(_, show)| show(thing)).collect();
        Table::new(fields.iter().map(|(column, _)| column.clone()).collect(), things.into_iter().map(row).collect())
    }

    /// Lets the spacing shrink before a column is omitted.
    pub(super) fn tightening(self) -> Table {
        Table { can_tighten: true, ..self }
    }

    /// The heads of the columns.
    pub(super) fn heads(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &*column.head)
    }

    /// Removes columns without any known value.
    pub(super) fn without_unknown(mut self) -> Table {
        for index in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row.get(index).is_none_or(|field| field == UNKNOWN)) {
                self.remove(index);
            }
        }
        self
    }

    /// Removes the most dispensable columns until the table fits `width`.
    pub(super) fn fitted(mut self, width: usize) -> Table {
        while self.width() > width {
            if self.can_tighten {
                let mut tight = self.clone();
                tight.columns.iter_mut().for_each(|column| column.space = column.space.min(1));
                if tight.width() <= width || tight.least_missed().is_none() {
                    return tight;
                }
            }
            let Some(index) = self.least_missed() else { break };
            self.remove(index);
        }
        self
    }

    /// The lines, head first.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut table = comfy_table::Table::new();
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.load_style(comfy_table::presets::NOTHING);
        // A column is at least as wide as its head.
        table.set_header(self.columns.iter().map(|Column { head, is_text, least, .. }| {
            if *is_text { format!("{head:<least$}") } else { format!("{head:>least$}") }
        }));
        for row in &self.rows {
            table.add_row(row);
        }
        for (column, drawn) in self.columns.iter().zip(table.column_iter_mut()) {
            drawn.set_cell_alignment(if column.is_text { CellAlignment::Left } else { CellAlignment::Right });
            drawn.set_padding((column.space, 0));
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Length of the longest line in characters.
    pub(super) fn width(&self) -> usize {
        self.lines().iter().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// Writes the table with its head as a heading.
    pub(super) fn write(&self, out: &mut dyn io::Write, lines: &Lines) -> io::Result<()> {
        let drawn = self.lines();
        let Some((head, rows)) = drawn.split_first() else { return Ok(()) };
        lines.heading(out, head)?;
        rows.iter().try_for_each(|row| writeln!(out, "{row}"))
    }

    /// The columns, each at least as wide as its fields in characters.
    pub(super) fn columns_as_wide(mut self) -> Vec<Column> {
        for (index, column) in self.columns.iter_mut().enumerate() {
            let widths = self.rows.iter().filter_map(|row| row.get(index)).map(|field| field.chars().count());
            column.least = column.least.max(widths.max().unwrap_or(0));
        }
        self.columns
    }

    fn least_missed(&self) -> Option<usize> {
        let spare = self.columns.iter().enumerate().filter_map(|(index, column)| Some((column.spare?, index)));
        spare.min().map(|(_, index)| index)
    }

    fn remove(&mut self, index: usize) {
        self.columns.remove(index);
        self.rows.iter_mut().for_each(|row| drop(row.remove(index)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[[&str; 3]]) -> Table {
        let columns = vec![Column::text("name"), Column::figure("p50").spare(1), Column::figure("max").spare(0)];
        Table::new(columns, rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect())
    }

    #[test]
    fn a_narrow_table_shrinks_its_spacing_and_loses_spare_columns() {
        let table = of(&[["none", "41", "1 200"]]);
        let fitted = |table: &Table, width| table.clone().fitted(width).lines();
        assert_eq!(fitted(&table, 80), ["  name  p50    max", "  none   41  1 200"]);
        assert_eq!(fitted(&table, 17), ["  name  p50", "  none   41"]);
        assert_eq!(fitted(&table.clone().tightening(), 17), [" name p50   max", " none  41 1 200"]);
        assert_eq!(fitted(&table.tightening(), 3), [" name", " none"], "what is no spare stays");
    }

    #[test]
    fn columns_that_say_nothing_are_left_out() {
        let table = of(&[["a", UNKNOWN, "7"], ["b", UNKNOWN, UNKNOWN]]);
        assert_eq!(table.without_unknown().lines(), ["  name  max", "  a       7", "  b       -"]);
    }
}
