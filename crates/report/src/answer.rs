//! The answer to a question in SQL: a table whose columns the question decides.

use super::Style;
use super::formats::csv_field;
use super::lines::Lines;
use super::table::{Column, Table, UNKNOWN};
use serde::Serialize;
use serde_json::Value;
use std::io;

/// Columns and rows of an answer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with a number, a text or `null` for each column.
    pub rows: Vec<Vec<Value>>,
}

impl Answer {
    /// Writes the table.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let is_text = |index: usize| self.rows.iter().any(|row| row.get(index).is_some_and(Value::is_string));
        let column = |(index, name): (usize, &String)| {
            let name = model::plain(name).into_owned();
            let column = if is_text(index) { Column::text(name) } else { Column::figure(name) };
            if index == 0 { column.after(0) } else { column }
        };
        let columns = self.columns.iter().enumerate().map(column).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(|field| shown(field, UNKNOWN)).collect()).collect();
        Table::new(columns, rows).write(out, &Lines::new(style))
    }

    /// The table as CSV (RFC 4180); an unknown value is empty.
    #[must_use]
    pub fn csv(&self) -> String {
        let line = |fields: Vec<String>| {
            let fields: Vec<_> = fields.iter().map(|field| csv_field(field)).collect();
            fields.join(",") + "\n"
        };
        let rows = self.rows.iter().map(|row| row.iter().map(|field| shown(field, "")).collect());
        std::iter::once(self.columns.clone()).chain(rows).map(line).collect()
    }
}

fn shown(field: &Value, unknown: &str) -> String {
    match field {
        Value::Null => unknown.to_owned(),
        Value::String(text) => model::plain(text).into_owned(),
        other => other.to_string(),
    }
}
