//! Rows of a query in SQL, written one by one: tables whose columns the query decides.

use super::Style;
use super::formats::csv_field;
use super::lines::Lines;
use super::table::{Column, Table, UNKNOWN};
use punctual_model::{is_plain, plain};
use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, Write};

/// Rows of a text that are drawn together, and the bytes of fields after which fewer are. A block is as wide as its
/// fields and those before it.
const BLOCK_ROWS: usize = 1_000;
const BLOCK_BYTES: usize = 1 << 20;

/// Characters of a field that a text shows.
pub const FIELD_WIDTH: usize = 256;

/// Columns and rows of a query.
// Only its schema is made from it: the writer keeps no rows.
#[derive(Debug, schemars::JsonSchema)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with a number, a text or `null` for each column.
    pub rows: Vec<Vec<Value>>,
}

/// Format of the rows.
#[derive(Debug, Clone, Copy)]
pub enum RowsFormat {
    /// A table of text; fields longer than 256 characters are cut.
    Text(Style),
    /// CSV (RFC 4180); an unknown value is empty.
    Csv,
    /// A JSON document with a line for each row.
    Json,
}

/// Writer of rows, which keeps at most a block of rows.
#[derive(Debug)]
pub struct RowsWriter<W> {
    format: RowsFormat,
    out: W,
    /// Columns of a text: whether one is text is known from the first block.
    columns: Vec<Column>,
    /// Rows of the block that is not drawn, and the bytes of their fields.
    block: Vec<Vec<String>>,
    block_bytes: usize,
    /// Whether a block or row has been written.
    has_begun: bool,
}

impl<W: Write> RowsWriter<W> {
    /// A writer in this format.
    pub fn new(format: RowsFormat, out: W) -> RowsWriter<W> {
        RowsWriter { format, out, columns: Vec::new(), block: Vec::new(), block_bytes: 0, has_begun: false }
    }

    /// Begins with these names of columns. Errors: if writing fails.
    pub fn begin(&mut self, names: &[String]) -> io::Result<()> {
        match self.format {
            RowsFormat::Text(_) => {
                let column = |(n, name): (usize, &String)| Column::figure(cut(name)).after(if n == 0 { 0 } else { 2 });
                self.columns = names.iter().enumerate().map(column).collect();
                Ok(())
            }
            RowsFormat::Csv => self.csv_line(names.iter().map(Into::into)),
            RowsFormat::Json => {
                let names = escaped_json(&serde_json::to_string(names)?);
                write!(self.out, "{{\n  \"columns\": {names},\n  \"rows\": [")
            }
        }
    }

    /// Adds a row; that of a text is written with its block. Errors: if writing fails.
    pub fn row(&mut self, row: &[Value]) -> io::Result<()> {
        match self.format {
            RowsFormat::Text(style) => {
                if !self.has_begun {
                    self.columns.iter_mut().zip(row).for_each(|(column, field)| column.is_text |= field.is_string());
                }
                let row: Vec<_> = row.iter().map(|field| cut(&shown(field, UNKNOWN))).collect();
                self.block_bytes += row.iter().map(String::len).sum::<usize>();
                self.block.push(row);
                let is_full = self.block.len() == BLOCK_ROWS || self.block_bytes > BLOCK_BYTES;
                if is_full { self.draw(style) } else { Ok(()) }
            }
            RowsFormat::Csv => self.csv_line(row.iter().map(|field| shown(field, ""))),
            RowsFormat::Json => {
                let separator = if std::mem::replace(&mut self.has_begun, true) { "," } else { "" };
                write!(self.out, "{separator}\n    {}", escaped_json(&serde_json::to_string(row)?))
            }
        }
    }

    /// Ends the rows. Errors: if writing fails.
    pub fn end(mut self) -> io::Result<W> {
        match self.format {
            RowsFormat::Text(style) if !self.has_begun || !self.block.is_empty() => self.draw(style)?,
            RowsFormat::Json => self.out.write_all(if self.has_begun { b"\n  ]\n}\n" } else { b"]\n}\n" })?,
            RowsFormat::Text(_) | RowsFormat::Csv => {}
        }
        self.out.flush()?;
        Ok(self.out)
    }

    /// Draws the block, at least as wide as those before; the first with its head.
    fn draw(&mut self, style: Style) -> io::Result<()> {
        self.block_bytes = 0;
        let table = Table::new(std::mem::take(&mut self.columns), std::mem::take(&mut self.block));
        if std::mem::replace(&mut self.has_begun, true) {
            table.lines().iter().skip(1).try_for_each(|line| writeln!(self.out, "{line}"))?;
        } else {
            table.write(&mut self.out, &Lines::new(style))?;
        }
        self.columns = table.columns_as_wide();
        Ok(())
    }

    fn csv_line<'a>(&mut self, fields: impl Iterator<Item = Cow<'a, str>>) -> io::Result<()> {
        let fields: Vec<_> = fields.map(|field| csv_field(&plain(&field))).collect();
        writeln!(self.out, "{}", fields.join(","))
    }
}

fn shown<'a>(field: &'a Value, unknown: &'a str) -> Cow<'a, str> {
    match field {
        Value::Null => unknown.into(),
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

/// The text without characters that act on a terminal, and its end if that is beyond the width of a field.
fn cut(text: &str) -> String {
    match text.char_indices().nth(FIELD_WIDTH) {
        None => plain(text).into_owned(),
        Some(_) => plain(&text.chars().take(FIELD_WIDTH - 3).collect::<String>()).into_owned() + "...",
    }
}

/// JSON whose terminal control characters, which occur in strings only, are escaped; serde escapes those of ASCII.
pub fn escaped_json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c| c != '\n' && !is_plain(c)) {
        let (before, after) = rest.split_at(at);
        escaped.push_str(before);
        let c = after.chars().next().unwrap_or_default();
        escaped.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        rest = &after[c.len_utf8()..];
    }
    escaped + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: RowsFormat = RowsFormat::Text(Style {
        width: 80,
        colour: false,
        unicode: false,
        all_findings: false,
        spikes: 0,
        columns: None,
    });

    fn begun(names: &[&str], format: RowsFormat) -> RowsWriter<Vec<u8>> {
        let mut writer = RowsWriter::new(format, Vec::new());
        writer.begin(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap();
        writer
    }

    fn written(names: &[&str], rows: impl Iterator<Item = Vec<Value>>, format: RowsFormat) -> String {
        let mut writer = begun(names, format);
        rows.for_each(|row| writer.row(&row).unwrap());
        String::from_utf8(writer.end().unwrap()).unwrap()
    }

    #[test]
    fn a_text_has_one_head_and_keeps_at_most_a_block() {
        for n in [0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS] {
            let text = written(&["n", "x"], (0..n).map(|n| vec![json!(n), json!("x")]), TEXT);
            let width = n.min(BLOCK_ROWS).saturating_sub(1).to_string().len();
            assert_eq!(text.lines().next(), Some(&*format!("{:>width$}  x", "n")), "{n}");
            assert_eq!(text.lines().count(), n + 1);
        }
        let mut writer = begun(&["n"], TEXT);
        for n in 0..10 * BLOCK_ROWS {
            assert_eq!(writer.block.len(), n % BLOCK_ROWS);
            writer.row(&[json!(n)]).unwrap();
        }
        // Long fields end a block early.
        let mut writer = begun(&["x"; 500], TEXT);
        for _ in 0..30 {
            writer.row(&vec![json!("y".repeat(256)); 500]).unwrap();
            assert!(writer.block_bytes <= BLOCK_BYTES);
        }
    }

    #[test]
    fn a_long_field_is_cut_in_text_only() {
        for (length, shown) in [(255, 255), (256, 256), (257, 256), (100_000, 256)] {
            let row = || std::iter::once(vec![json!("\u{b5}".repeat(length))]);
            let line = written(&["x"], row(), TEXT).lines().last().unwrap().to_owned();
            assert_eq!((line.chars().count(), line.ends_with("...")), (shown, length > 256), "{length}");
            assert_eq!(written(&["x"], row(), RowsFormat::Csv).chars().count(), length + 3);
        }
    }

    #[test]
    fn json_and_csv_have_a_line_for_each_row() {
        let rows = || [vec![json!(1), json!("a,\u{9b}")], vec![Value::Null, json!("")]].into_iter();
        assert_eq!(written(&["n", "x"], rows(), RowsFormat::Csv), "n,x\n1,\"a,\u{fffd}\"\n,\n");
        let text = written(&["n", "x"], rows(), RowsFormat::Json);
        assert_eq!(
            text,
            "{\n  \"columns\": [\"n\",\"x\"],\n  \"rows\": [\n    [1,\"a,\\u009b\"],\n    [null,\"\"]\n  ]\n}\n"
        );
        assert_eq!(written(&[], [].into_iter(), RowsFormat::Json), "{\n  \"columns\": [],\n  \"rows\": []\n}\n");
    }
}
