//! Tables of latency classes and frequencies, as published by the OSADL QA farm: a latency, then a count for each CPU.

use super::column::Column;
use super::fields::{number, numbered};
use super::{ImportOptions, ParseError, Unit, measurement, source};
use model::{Imported, ImportedThread};

/// Parses a whole table. Fields are separated by blanks, tabs, commas or semicolons; `#` begins a comment.
pub(super) fn read(text: &str, name: &str, stated: &ImportOptions) -> Result<Imported, ParseError> {
    let unit = stated.unit.unwrap_or(Unit::Us);
    let mut columns: Vec<Column> = Vec::new();
    for (line, text) in numbered(text) {
        let text = text.split('#').next().unwrap_or_default();
        let mut fields = text.split([' ', '\t', ',', ';']).filter(|field| !field.is_empty());
        let Some(value) = fields.next() else { continue };
        let value: u64 = number(value, line, "latency class")?;
        let counts: Vec<u64> = fields.map(|field| number(field, line, "count")).collect::<Result<_, _>>()?;
        if counts.is_empty() {
            return Err(ParseError::at(line, "latency class without a count"));
        }
        if columns.is_empty() {
            columns.resize_with(counts.len(), Column::default);
        }
        if counts.len() != columns.len() {
            let expected = columns.len();
            return Err(ParseError::at(
                line,
                format!("expected as many counts as in the rows before ({expected}), found {}", counts.len()),
            ));
        }
        for (column, n) in columns.iter_mut().zip(counts) {
            column.add(value, n, line)?;
        }
    }
    let mut threads = Vec::new();
    for (number, column) in (0..).zip(&columns) {
        let histogram = column.histogram(unit.ns())?;
        let (min_ns, max_ns) = (histogram.min_ns, histogram.max_ns);
        let samples = Some(histogram.n);
        threads.push(ImportedThread {
            number,
            samples,
            min_ns,
            max_ns,
            histogram: Some(histogram),
            ..Default::default()
        });
    }
    if threads.is_empty() {
        return Err(ParseError::of_file("no row in the table"));
    }
    let mut remarks = vec!["a table does not show values beyond its range: its maximum may be too small".to_owned()];
    if stated.unit.is_none() {
        remarks.push(
            "the file does not state its unit, us or ns: taken as us; if the values are ns: --unit ns".to_owned(),
        );
    }
    Ok(Imported { threads, remarks, ..measurement(source("table", name), unit.ns()) })
}
